package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"auditproxy/cmd/internal/ledger"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/kafka/kafkatest"
	"auditproxy/sink/spool"

	"github.com/segmentio/kafka-go"
)

const (
	chainTopic     = "mcp.audit.v1"
	chainDeadTopic = "mcp.audit.v1.dead"
)

// A chain is everything that a record passes: agents, a shipper, a broker,
// collectors of several groups, and a ClickHouse server, which is the engine
// behind a port.
type chain struct {
	home
	t      *testing.T
	broker *kafkatest.Broker
	kafka  *kafka.Client
	server *faultServer
	engine *atomic.Pointer[exec.Cmd] // the running one
	agents *agents
}

// startBroker starts a broker that ends with the test.
func startBroker(t *testing.T, c kafkatest.Config) *kafkatest.Broker {
	t.Helper()
	kafkatest.Require(t)
	b, err := kafkatest.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// newChain starts a chain. Its programs have env too.
func newChain(t *testing.T, poison int, env ...string) *chain {
	t.Helper()
	b := startBroker(t, kafkatest.Config{})
	for topic, partitions := range map[string]int{chainTopic: 4, chainDeadTopic: 1} {
		if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: topic, Partitions: partitions}); err != nil {
			t.Fatal(err)
		}
	}
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	h := newHome(t)
	h.env = append(h.env, "AUDITCOLLECTOR_BATCH_WAIT=20ms")
	h.env = append(h.env, env...)
	c := &chain{home: h, t: t, broker: b, engine: h.supervise(t), server: h.serve(t),
		kafka: &kafka.Client{Addr: kafka.TCP(b.Addr), Transport: transport, Timeout: time.Minute}}
	c.env = append(c.env, "AUDITCOLLECTOR_CLICKHOUSE_ADDR="+c.server.addr, "AUDITCOLLECTOR_CLICKHOUSE_PROTOCOL=http",
		"AUDITCOLLECTOR_KAFKA_BROKERS="+b.Addr)
	c.alter(t, "ADD CONSTRAINT poison CHECK tool != '"+poisonTool+"'")
	c.agents = newAgents(t, h.dir, h.spoolDir(), poison)
	return c
}

// supervise keeps an engine running, as a collector does, until the test ends.
func (h home) supervise(t *testing.T) *atomic.Pointer[exec.Cmd] {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	running, ended := new(atomic.Pointer[exec.Cmd]), make(chan error, 1)
	env := h.env
	go func() {
		ended <- chdb.Supervise(ctx, chdb.Supervisor{Dir: h.dir + "/local", Command: func() *exec.Cmd {
			cmd := exec.Command(h.exe, "engine")
			cmd.Env, cmd.Stderr = env, os.Stderr
			running.Store(cmd)
			return cmd
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Supervise = %v", err)
		}
	})
	h.ready(t)
	return running
}

// alter changes the table of records.
func (h home) alter(t *testing.T, what string) {
	t.Helper()
	eventually(t, what, func() bool {
		_, err := h.query(chdb.Writer, "ALTER TABLE audit.events "+what)
		return err == nil
	})
}

// ship starts a shipper for every session of the host.
func (c *chain) ship() *exec.Cmd {
	c.t.Helper()
	cmd := c.shipper("--follow")
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// killUnheard kills a shipper that has sent records to the broker, which stores
// them only then: the next shipper sends them again.
func (c *chain) killUnheard(shipper *exec.Cmd) {
	c.t.Helper()
	const record = 300 // bytes; all that the shipper only asks is shorter
	eventually(c.t, "the broker has records that the spool's cursors do not have", func() bool {
		// A broker that stops before the shipper is connected, or while it
		// waits for a response other than an acknowledgement, receives no
		// records.
		flows := since(c.written)
		flows()
		eventually(c.t, "records flow", flows)
		if err := c.broker.Freeze(); err != nil {
			c.t.Fatal(err)
		}
		sent := within(10*time.Second, func() bool { return unread(c.t, shipper.Process.Pid) > record })
		if sent {
			_ = shipper.Process.Kill()
			_ = shipper.Wait() // reports that it was killed
		}
		if err := c.broker.Thaw(); err != nil {
			c.t.Fatal(err)
		}
		// A request that the broker has only a part of is not stored.
		if sent && !within(10*time.Second, c.repeats) {
			shipper, sent = c.ship(), false
		}
		return sent
	})
}

// within reports whether something is so within a time.
func within(d time.Duration, is func() bool) bool {
	end := time.Now().Add(d)
	for !is() {
		if time.Now().After(end) {
			return false
		}
		<-time.After(20 * time.Millisecond)
	}
	return true
}

// repeats reports whether the topic has a record that the next shipper sends.
func (c *chain) repeats() bool {
	c.t.Helper()
	stored := map[string]bool{}
	for _, e := range c.topicBook().Entries {
		stored[e.RecordID] = true
	}
	entries, err := spool.List(c.spoolDir())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		for _, unshipped := range readEntries(c.t, spool.ReaderConfig{Dir: c.spoolDir(), Session: e.ID, From: e.Shipped}) {
			if stored[unshipped.RecordID] {
				return true
			}
		}
	}
	return false
}

// unread returns how many bytes the process at the other end of a connection of
// pid has not read, where that is most (proc_pid_net(5)).
func unread(t *testing.T, pid int) (most uint64) {
	t.Helper()
	own := sockets(t, pid)
	type end struct{ local, remote, unread string }
	var ends []end
	mine := map[[2]string]bool{} // ports, as seen from the other end
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			_, local, _ := strings.Cut(f[1], ":")
			_, remote, _ := strings.Cut(f[2], ":")
			_, unread, _ := strings.Cut(f[4], ":")
			ends = append(ends, end{local, remote, unread})
			if len(f) > 9 && own[f[9]] {
				mine[[2]string{remote, local}] = true
			}
		}
	}
	for _, e := range ends {
		if mine[[2]string{e.local, e.remote}] {
			n, err := strconv.ParseUint(e.unread, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
	}
	return most
}

// sockets returns the inodes of the sockets of pid (proc_pid_fd(5)).
func sockets(t *testing.T, pid int) map[string]bool {
	t.Helper()
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, d := range descriptors {
		if name, err := os.Readlink(d); err == nil && strings.HasPrefix(name, "socket:[") {
			own[strings.TrimSuffix(strings.TrimPrefix(name, "socket:["), "]")] = true
		}
	}
	return own
}

func (c *chain) shipper(args ...string) *exec.Cmd {
	cmd := exec.Command(c.agents.proxy, append([]string{"ship", "--spool-dir", c.agents.spool, "--kafka-brokers", c.broker.Addr}, args...)...)
	cmd.Env = []string{"HOME=" + c.dir, "PATH=/usr/bin:/bin"}
	return cmd
}

// ends returns how many records each partition of the topic has had.
func (c *chain) ends() (ends map[int]int64, ok bool) {
	var asked []kafka.OffsetRequest
	for p := range 4 {
		asked = append(asked, kafka.LastOffsetOf(p))
	}
	resp, err := c.kafka.ListOffsets(c.t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{chainTopic: asked}})
	if err != nil {
		return nil, false
	}
	ends = map[int]int64{}
	for _, p := range resp.Topics[chainTopic] {
		if p.Error != nil {
			return nil, false
		}
		ends[p.Partition] = p.LastOffset
	}
	return ends, len(ends) == 4
}

// written returns how many records were ever written to the topic, 0 while that
// is unknown.
func (c *chain) written() (n int64) {
	ends, _ := c.ends()
	for _, end := range ends {
		n += end
	}
	return n
}

// A group is a consumer group.
type group struct {
	*chain
	name    string
	members []process
}

func (c *chain) group(name string, members int) *group {
	g := &group{chain: c, name: name}
	for range members {
		g.members = append(g.members, g.join())
	}
	return g
}

func (g *group) join() process { return g.collect(g.t, "--kafka-group", g.name) }

// committed returns how many records of the topic the group has committed, 0
// while that is unknown, and whether that is all of them.
func (g *group) committed() (n int64, all bool) {
	ends, ok := g.ends()
	if !ok {
		return 0, false
	}
	resp, err := g.kafka.OffsetFetch(g.t.Context(), &kafka.OffsetFetchRequest{GroupID: g.name, Topics: map[string][]int{chainTopic: {0, 1, 2, 3}}})
	if err != nil || resp.Error != nil || len(resp.Topics[chainTopic]) != len(ends) {
		return 0, false
	}
	all = true
	for _, p := range resp.Topics[chainTopic] {
		if p.Error != nil {
			return 0, false
		}
		at := max(p.CommittedOffset, 0) // -1: nothing yet
		n += at
		all = all && at == ends[p.Partition]
	}
	return n, all
}

func (g *group) hasAll() bool {
	_, all := g.committed()
	return all
}

// kill kills so many members, chosen at random, and starts others.
func (g *group) kill(random *rand.Rand, n int) {
	for _, i := range random.Perm(len(g.members))[:n] {
		g.members[i].end(syscall.SIGKILL)
		g.members[i] = g.join()
	}
}

// end ends a member, which may have been started a moment ago, and returns its exit code.
// Before a program has connected it may not take the signal yet.
func (g *group) end(m process) int {
	g.t.Helper()
	eventually(g.t, "the collector has connected", func() bool { return len(sockets(g.t, m.cmd.Process.Pid)) > 0 })
	return m.end(syscall.SIGTERM)
}

// leave makes the first member leave and another one join.
func (g *group) leave() {
	g.t.Helper()
	joined := g.join()
	if code := g.end(g.members[0]); code != 0 {
		g.t.Errorf("a collector that leaves ends with %d:\n%s", code, g.members[0].stderr)
	}
	g.members = append(g.members[1:], joined)
}

// disband makes all members leave.
func (g *group) disband() {
	g.t.Helper()
	for _, m := range g.members {
		if code := g.end(m); code != 0 {
			g.t.Errorf("a collector of group %q ends with %d:\n%s", g.name, code, m.stderr)
		}
	}
}

// spoolBook returns the contents of the spools.
func (h home) spoolBook(t *testing.T) ledger.Book {
	t.Helper()
	book := ledger.Book{Place: "spool"}
	entries, err := spool.List(h.spoolDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		book.Entries = append(book.Entries, readEntries(t, spool.ReaderConfig{Dir: h.spoolDir(), Session: e.ID})...)
	}
	return book
}

// readEntries returns the records of a session.
func readEntries(t *testing.T, c spool.ReaderConfig) (list []ledger.Entry) {
	t.Helper()
	r, err := spool.OpenReader(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if item.Record() {
			list = append(list, entry(t, item.Line))
		}
	}
}

func entry(t *testing.T, line []byte) ledger.Entry {
	t.Helper()
	e, err := ledger.Read(line)
	if err != nil {
		t.Errorf("%v: %s", err, line)
	}
	return e
}

// topicBook returns the contents of the topic.
func (c *chain) topicBook() ledger.Book {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	messages, err := c.broker.Messages(ctx, chainTopic)
	if err != nil {
		c.t.Fatal(err)
	}
	book := ledger.Book{Place: "topic", Repeats: true}
	for _, m := range messages {
		book.Entries = append(book.Entries, entry(c.t, m.Value))
	}
	return book
}

// tableBook returns the records that a reviewer sees.
func (h home) tableBook(t *testing.T) ledger.Book {
	t.Helper()
	book := ledger.Book{Place: "table"}
	text, err := h.query(chdb.Reader, "SELECT record_id, session_id, seq, call_no, if(kind = 'call', request_id, ''), hex(payload_hash) FROM audit.events FINAL")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		e := ledger.Entry{RecordID: f[0], SessionID: f[1], Call: f[4]}
		var errs [3]error
		e.Seq, errs[0] = strconv.ParseUint(f[2], 10, 64)
		e.CallNo, errs[1] = strconv.ParseUint(f[3], 10, 64)
		_, errs[2] = hex.Decode(e.Hash[:], []byte(f[5]))
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		book.Entries = append(book.Entries, e)
	}
	return book
}
