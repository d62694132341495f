package stream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/stream"
	"auditproxy/sink/kafka"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/google/go-cmp/cmp"
)

func toTopic(t *testing.T, topic string) *stream.Writer {
	t.Helper()
	return must(t)(stream.NewKafka(stream.Config{Encode: raw}, stream.Kafka{Access: kafka.Access{Brokers: []string{cluster.Broker(t).Addr}}, Topic: topic}))
}

// TestMessages checks what a message is, and that each session is in order in one
// partition.
func TestMessages(t *testing.T) {
	topic := cluster.NewTopic(t, kafkatest.Topic{Partitions: 4})
	list := records(t, 0, 5000) // of more than one batch
	w := toTopic(t, topic)
	if err := w.Send(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	messages, err := cluster.Broker(t).Messages(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	got, partitions := map[string][]string{}, map[string]int{}
	for i, m := range messages {
		key := string(m.Key)
		if p, known := partitions[key]; known && p != m.Partition {
			t.Fatalf("session %s is in two partitions", key)
		}
		partitions[key] = m.Partition
		got[key] = append(got[key], string(m.Value))
		headers := map[string]string{}
		for _, h := range m.Headers {
			headers[h.Key] = string(h.Value)
		}
		id := headers["ce_id"]
		if !strings.Contains(string(m.Value), `"record_id":"`+id+`"`) {
			t.Fatalf("ce_id is %q in %s", id, m.Value)
		}
		delete(headers, "ce_id")
		want := map[string]string{"ce_specversion": "1.0", "ce_source": "/auditproxy/auditcollector", "ce_type": "mcp.audit.event", "content-type": "application/json"}
		if diff := cmp.Diff(want, headers); i == 0 && diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
	}
	want := map[string][]string{}
	for _, r := range list {
		want[r.Record.SessionID] = append(want[r.Record.SessionID], r.Raw)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%.2000s", diff)
	}
}

// TestBrokerRefuses checks errors about one event, and errors about the topic.
func TestBrokerRefuses(t *testing.T) {
	topic := cluster.NewTopic(t, kafkatest.Topic{Partitions: 1, Config: map[string]string{"max.message.bytes": "20000", "compression.type": "uncompressed"}})
	w := toTopic(t, topic)
	// Each fits, all together do not.
	small := records(t, 0, 1000)
	if err := w.Send(t.Context(), small); err != nil {
		t.Errorf("many small events: %v", err)
	}
	messages, err := cluster.Broker(t).Messages(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != len(small) {
		t.Errorf("%d messages, want %d", len(messages), len(small))
	}
	if err := w.Send(t.Context(), []receiver.Record{record(t, 1), large(t, 2, 50_000), record(t, 3)}); !errors.Is(err, receiver.ErrRefused) {
		t.Errorf("an event that is too large: %v, want it refused", err)
	}
	err = toTopic(t, "unknown").Send(t.Context(), small[:1])
	if err == nil || errors.Is(err, receiver.ErrRefused) || !strings.Contains(err.Error(), `topic "unknown": the topic does not exist`) {
		t.Errorf("an unknown topic: %v", err)
	}
	closed := must(t)(stream.NewKafka(stream.Config{Encode: raw}, stream.Kafka{Access: kafka.Access{Brokers: []string{"127.0.0.1:1"}}, Topic: topic}))
	err = closed.Send(t.Context(), small[:1])
	if err == nil || errors.Is(err, receiver.ErrRefused) || !strings.Contains(err.Error(), "no broker can be reached") {
		t.Errorf("no broker: %v", err)
	}
}

// TestBrokerKilled kills the broker and starts it again while events are sent: all
// are there, each session in order if repeats are left out, and repeats are equal.
func TestBrokerKilled(t *testing.T) {
	topic := cluster.NewTopic(t, kafkatest.Topic{Partitions: 2})
	b := cluster.Broker(t)
	w := toTopic(t, topic)
	list := records(t, 0, 3000)
	const batch = 100
	failed := 0
	for i := 0; i < len(list); i += batch {
		if i == len(list)/2 {
			b.Kill()
		}
		for w.Send(t.Context(), list[i:i+batch]) != nil {
			if failed++; failed == 2 {
				if err := b.Start(); err != nil {
					t.Fatal(err)
				}
			}
			if t.Context().Err() != nil {
				t.FailNow()
			}
		}
	}
	if failed == 0 {
		t.Error("no Send failed without a broker")
	}
	messages, err := b.Messages(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, m := range messages {
		if key := string(m.Key); !slices.Contains(got[key], string(m.Value)) {
			got[key] = append(got[key], string(m.Value))
		}
	}
	want := map[string][]string{}
	for _, r := range list {
		want[r.Record.SessionID] = append(want[r.Record.SessionID], r.Raw)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%.2000s", diff)
	}
}
