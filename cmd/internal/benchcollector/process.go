package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/sink/clickhouse/chdb"
)

// An instance is a running auditcollector.
type instance struct {
	cmd    *exec.Cmd
	stdin  io.Closer // an engine ends with it
	stderr *bytes.Buffer
	addr   string // of its metrics
}

// buildProgram builds a program as it is released.
func buildProgram(ctx context.Context, dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "auditproxy/cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return path, nil
}

// start starts auditcollector with variables of its configuration, bound to
// one CPU or not. Its parent's death ends it.
func (b *bench) start(oneCPU bool, command string, env ...string) (*instance, error) {
	p := &instance{cmd: exec.Command(b.collector, command), stderr: new(bytes.Buffer)}
	p.cmd.Env = []string{"HOME=" + b.dir, "AUDITCOLLECTOR_LOCAL_DIR=" + filepath.Join(b.dir, "local"), "AUDITCOLLECTOR_LOCAL_LIBRARY=" + b.library}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = p.stderr
	process.EndWithParent(p.cmd, syscall.SIGKILL)
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	begin := p.cmd.Start
	if oneCPU {
		cpu, err := process.LastCPU()
		if err != nil {
			return nil, err
		}
		begin = func() error { return process.StartBound(cpu, p.cmd.Start) }
	}
	if err := begin(); err != nil {
		return nil, fmt.Errorf("starting %q: %w", b.collector, err)
	}
	return p, nil
}

// end ends the process as its user would.
func (p *instance) end() error {
	if err := errors.Join(p.stdin.Close(), p.cmd.Process.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("ending auditcollector: %w:\n%s", err, p.stderr)
	}
	return nil
}

// metric returns the value of a metric, 0 while the process does not answer.
func (p *instance) metric(ctx context.Context, name string) float64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/metrics", nil)
	if err != nil {
		return 0
	}
	req.Header.Set("Accept-Encoding", "identity") // whose time would be measured too
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	value, _ := strconv.ParseFloat(line, 64)
	return value
}

// recordsStored is the metric of the records that ClickHouse has taken.
const recordsStored = "auditcollector_records_total"

// until waits until the process has stored n records.
func (p *instance) until(ctx context.Context, n float64) error {
	return wait(ctx, 200*time.Millisecond, fmt.Sprintf("%.0f records are stored", n), func() bool { return p.metric(ctx, recordsStored) >= n })
}

// wait waits until a condition holds, and checks it at every step.
func wait(ctx context.Context, step time.Duration, what string, is func() bool) error {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// freeAddr returns an address on loopback that was free a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// engine starts ClickHouse's engine alone and waits until it answers.
func (b *bench) engine(ctx context.Context) (*instance, error) {
	p, err := b.start(false, "engine")
	if err != nil {
		return nil, err
	}
	if err := chdb.Ready(ctx, filepath.Join(b.dir, "local")); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

// collect starts a collector that reads a topic from its beginning.
func (b *bench) collect(oneCPU bool, topic string, env ...string) (*instance, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	b.groups++
	p, err := b.start(oneCPU, "run", append([]string{
		"AUDITCOLLECTOR_KAFKA_BROKERS=" + b.broker.Addr,
		"AUDITCOLLECTOR_KAFKA_TOPIC=" + topic,
		"AUDITCOLLECTOR_KAFKA_GROUP=bench-" + strconv.Itoa(b.groups),
		"AUDITCOLLECTOR_METRICS_LISTEN=" + addr,
		"AUDITCOLLECTOR_REVIEW_LISTEN=off",
	}, env...)...)
	if err != nil {
		return nil, err
	}
	p.addr = addr
	return p, nil
}
