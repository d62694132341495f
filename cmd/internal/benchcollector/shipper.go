package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/cmd/internal/samples"
	"auditproxy/sink/kafka/kafkatest"
	"auditproxy/sink/spool"
)

// What the shipper of a busy host has to do, in the partitions of the shipped
// configuration.
const (
	shipSessions   = 200
	shipPartitions = 32
	shipFor        = 20 * time.Second // one record of each session a second
	shipTarget     = 80               // produce requests a second
)

// shipper measures how many produce requests a second the shipper of a host
// makes of sessions that are quiet. A listener of the broker counts them.
func (b *bench) shipper(ctx context.Context) (err error) {
	const topic = "hosts"
	if err := b.broker.CreateTopic(ctx, kafkatest.Topic{Name: topic, Partitions: shipPartitions}); err != nil {
		return err
	}
	proxy, err := b.ownProxy(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "spool")
	hosts, err := newHost(dir, b.size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hosts.close()) }()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, proxy, "ship", "--follow", "--spool-dir", dir, "--kafka-brokers", b.broker.CountedAddr, "--kafka-topic", topic)
	cmd.Env = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = &stderr
	process.EndWithParent(cmd, syscall.SIGKILL)
	if err := cmd.Start(); err != nil {
		return err
	}
	from, _ := b.broker.Counted()
	began := time.Now()
	err = hosts.write(ctx, shipFor)
	to, _ := b.broker.Counted()
	seconds := time.Since(began).Seconds()
	if err == nil {
		err = hosts.shipped(ctx)
	}
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, &stderr)
	}
	b.rows = append(b.rows, row{
		name: fmt.Sprintf("produce requests, %d sessions, %d partitions", shipSessions, shipPartitions), unit: "/s",
		value: float64(to-from) / seconds, compare: atMost, target: shipTarget,
	})
	return nil
}

// ownProxy returns the path of the auditproxy to measure.
func (b *bench) ownProxy(ctx context.Context) (path string, err error) {
	if b.proxy == "" {
		b.proxy, err = buildProgram(ctx, b.dir, "auditproxy")
	}
	return b.proxy, err
}

// A host has sessions that write.
type host struct {
	dir      string
	sessions []*spool.Session
	samples  []*samples.Session
	line     []byte
}

func newHost(dir string, size int) (*host, error) {
	h := &host{dir: dir}
	for range shipSessions {
		sample := samples.New(size)
		s, err := spool.Create(spool.Config{Dir: dir}, sample.ID)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.sessions, h.samples = append(h.sessions, s), append(h.samples, sample)
	}
	return h, nil
}

func (h *host) close() error {
	var errs []error
	for _, s := range h.sessions {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// write writes one record a second of each session, spread over the second.
func (h *host) write(ctx context.Context, d time.Duration) error {
	tick := time.NewTicker(time.Second / shipSessions)
	defer tick.Stop()
	for n := range int(d.Seconds()) * shipSessions {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		i := n % shipSessions
		h.line = append(h.samples[i].Next(h.line[:0]), '\n')
		pos, err := h.sessions[i].Append(h.line, true)
		if err != nil {
			return err
		}
		h.sessions[i].Wait(pos, 0)
	}
	return nil
}

// shipped waits until all that was written is shipped.
func (h *host) shipped(ctx context.Context) error {
	return wait(ctx, 100*time.Millisecond, "all records are shipped", func() bool {
		list, err := spool.List(h.dir)
		for _, e := range list {
			if e.Err != nil || e.Unshipped() {
				return false
			}
		}
		return err == nil
	})
}
