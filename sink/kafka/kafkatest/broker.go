// Package kafkatest runs a real Kafka broker for tests.
//
// The files, from the top: shared, start, secure, require, broker, counted,
// parent_linux, parent_other.
package kafkatest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

// startTimeout is generous: a broker needs 3 s on an idle machine,
// and a minute where all CPUs are busy.
const startTimeout = 5 * time.Minute

// A Broker is one broker on loopback, with its own data directory. Its
// methods may not be called concurrently.
type Broker struct {
	Addr       string // host:port, in plain text, without a login
	SecureAddr string // host:port of the other listener
	CAFile     string // the authority of that listener's certificate

	CountedAddr string // host:port of the listener whose requests are counted

	counter *counter // nil: none
	dir     string
	args    []string // of deploy/kafka/broker

	// Owned by the caller.
	cmd *exec.Cmd // nil: not running
}

// The login at SecureAddr, by PLAIN or SCRAM.
const (
	User     = "shipper"
	Password = "correct horse"
)

// Start starts the broker again after Kill, with the data that it had.
func (b *Broker) Start() error {
	cmd := exec.Command(b.args[0], b.args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	b.cmd = cmd

	started, said := make(chan struct{}), make(chan string, 1)
	go func() {
		var last []string
		open := started
		for s := bufio.NewScanner(out); s.Scan(); {
			if open != nil && strings.Contains(s.Text(), "Kafka Server started") {
				close(open)
				open = nil
			}
			last = append(last[max(0, len(last)-20):], s.Text())
		}
		said <- strings.Join(last, "\n")
	}()
	select {
	case <-started:
		return nil
	case text := <-said:
		b.Kill()
		return fmt.Errorf("it ended: %s", text)
	case <-time.After(startTimeout):
		b.Kill()
		return fmt.Errorf("it did not start within %v: %s", startTimeout, <-said)
	}
}

// Kill ends the broker with SIGKILL.
func (b *Broker) Kill() {
	if b.cmd == nil {
		return
	}
	// The group: the script may not have become the broker yet.
	syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	b.cmd.Wait() // says that it was killed
	b.cmd = nil
}

// Freeze suspends the broker: connections stay open, new ones open, and
// nothing answers. Thaw resumes it.
func (b *Broker) Freeze() error { return b.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw resumes the broker after Freeze.
func (b *Broker) Thaw() error { return b.cmd.Process.Signal(syscall.SIGCONT) }

// Counted returns how many produce requests and connections came to CountedAddr.
func (b *Broker) Counted() (requests, connections int64) {
	return b.counter.produced.Load(), b.counter.conns.Load()
}

// Stop ends the broker and removes its data. It may be called repeatedly.
func (b *Broker) Stop() error {
	b.Kill()
	if b.counter != nil {
		b.counter.stop()
	}
	return os.RemoveAll(b.dir)
}

// Log returns the file with the messages of a partition. What is cut from its end after Kill
// is lost, as where a broker with fewer messages becomes the leader.
func (b *Broker) Log(topic string, partition int) string {
	return filepath.Join(b.dir, "data", fmt.Sprintf("%s-%d", topic, partition), "00000000000000000000.log")
}

// A Topic configures CreateTopic.
type Topic struct {
	Name       string
	Partitions int               // 0: 1
	Config     map[string]string // retention.ms and so on
}

// CreateTopic creates a topic and waits until it can be read and written.
func (b *Broker) CreateTopic(ctx context.Context, t Topic) error {
	var entries []kafka.ConfigEntry
	for name, value := range t.Config {
		entries = append(entries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	client, done := b.client()
	defer done()
	res, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic:             t.Name,
		NumPartitions:     max(1, t.Partitions),
		ReplicationFactor: 1,
		ConfigEntries:     entries,
	}}})
	if err == nil {
		err = res.Errors[t.Name]
	}
	for p := 0; p < max(1, t.Partitions) && err == nil; p++ {
		err = settled(ctx, func() error {
			conn, err := kafka.DialLeader(ctx, "tcp", b.Addr, t.Name, p)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, _, err = conn.ReadOffsets()
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("creating topic %q: %w", t.Name, err)
	}
	return nil
}

// settled calls f until it succeeds or its error is permanent: a partition of
// a new topic or a new broker has no leader for a moment, which is long on a
// busy machine.
func settled(ctx context.Context, f func() error) error {
	for {
		err := f()
		var passes kafka.Error
		if !(errors.As(err, &passes) && passes.Temporary()) && !hasNoLeader(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// hasNoLeader reports whether DialLeader failed because the broker named no leader: then
// it dials the port 0. A broker that is so slow that its controller takes it for dead
// leads nothing until its next heartbeat.
func hasNoLeader(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && op.Addr != nil && strings.HasSuffix(op.Addr.String(), ":0")
}

// DeleteTopic deletes a topic with its messages.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	client, done := b.client()
	defer done()
	res, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{name}})
	if err == nil {
		err = res.Errors[name]
	}
	if err != nil {
		return fmt.Errorf("deleting topic %q: %w", name, err)
	}
	return nil
}

// client returns a client and a function that closes its connections.
func (b *Broker) client() (*kafka.Client, func()) {
	transport := &kafka.Transport{}
	return &kafka.Client{Addr: kafka.TCP(b.Addr), Transport: transport}, transport.CloseIdleConnections
}

// Messages returns the messages now in a topic, by partition and offset.
func (b *Broker) Messages(ctx context.Context, topic string) ([]kafka.Message, error) {
	conn, err := kafka.DialContext(ctx, "tcp", b.Addr)
	if err != nil {
		return nil, fmt.Errorf("reading topic %q: %w", topic, err)
	}
	defer conn.Close()
	var partitions []kafka.Partition
	err = settled(ctx, func() (err error) {
		partitions, err = conn.ReadPartitions(topic)
		return err
	})
	var all []kafka.Message
	for _, p := range partitions {
		if err == nil {
			all, err = b.appendMessages(ctx, all, topic, p.ID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading topic %q: %w", topic, err)
	}
	return all, nil
}

func (b *Broker) appendMessages(ctx context.Context, all []kafka.Message, topic string, partition int) ([]kafka.Message, error) {
	var first, last int64
	err := settled(ctx, func() error {
		conn, err := kafka.DialLeader(ctx, "tcp", b.Addr, topic, partition)
		if err != nil {
			return err
		}
		defer conn.Close()
		first, last, err = conn.ReadOffsets()
		return err
	})
	if err != nil || first == last {
		return all, err
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{b.Addr}, Topic: topic, Partition: partition, MaxBytes: 16 << 20, MaxWait: 100 * time.Millisecond})
	defer r.Close()
	if err := r.SetOffset(first); err != nil {
		return nil, err
	}
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
		if m.Offset == last-1 {
			return all, nil
		}
	}
}
