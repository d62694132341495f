package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/segmentio/kafka-go"
)

// TestRestoredBackup puts a copy of the local store back beside newer offsets of Kafka:
// the collector reports what it lacks, and without that nothing; and that it was read once
// the offsets are set back.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	b := startBroker(t, kafkatest.Config{})
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: chainTopic}); err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	session, began, calls := audit.NewID(time.Now()), time.Now().UTC().Truncate(time.Microsecond), 0
	collect := func(more int, gaps ...string) {
		t.Helper()
		var messages []kafka.Message
		for range more {
			calls++
			r := ingesttest.Call(calls, "list_panes", began)
			r.SessionID = session
			line := audit.AppendRecord(nil, &r)
			messages = append(messages, kafka.Message{Key: []byte(session), Value: line[:len(line)-1]})
		}
		transport := &kafka.Transport{}
		defer transport.CloseIdleConnections()
		w := &kafka.Writer{Addr: kafka.TCP(b.Addr), Topic: chainTopic, Transport: transport, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
		defer w.Close()
		if err := w.WriteMessages(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
		p := h.collect(t, "--kafka-brokers", b.Addr, "--batch-wait", "20ms")
		eventually(t, "the last record is stored", h.counts(t, "SELECT max(kafka_offset) + 1 FROM audit.events", calls))
		eventually(t, fmt.Sprintf("the gaps are %q", gaps), func() bool {
			return slices.Equal(h.ask(t, "SELECT concat(toString(from_offset), '-', toString(to_offset), '-', replaceAll(reason, ' ', '-'), '-', toString(read_to)) FROM audit.gaps FINAL"), gaps)
		})
		if code := p.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	local, backup := filepath.Join(h.dir, "local"), filepath.Join(h.dir, "backup")
	copied := func(from, to string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	collect(5)
	copied(local, backup)
	collect(5)
	collect(1)
	copied(backup, local)
	const lost = "5-10-store-is-older-"
	collect(1, lost+"0")
	collect(1, lost+"0")
	eventually(t, "the group's offset is set back", func() bool {
		transport := &kafka.Transport{}
		defer transport.CloseIdleConnections()
		client := kafka.Client{Addr: kafka.TCP(b.Addr), Transport: transport}
		resp, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{
			GroupID: "auditcollector", GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{chainTopic: {{Offset: 5}}},
		})
		return err == nil && resp.Topics[chainTopic][0].Error == nil
	})
	collect(1, lost+"11")
}
