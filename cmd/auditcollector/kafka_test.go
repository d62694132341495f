package main

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/segmentio/kafka-go"
)

// TestKafkaKills kills collectors of one group and the broker at random moments
// while records come in, some of them twice. SOAK=1 does it as often as
// promised.
func TestKafkaKills(t *testing.T) {
	kills := 4
	if os.Getenv("SOAK") != "" {
		kills = 50
	}
	b, err := kafkatest.Start(kafkatest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	const topic = "mcp.audit.v1"
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: topic, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	h.engine(t)
	// The collectors share the engine of the test, as they would a server.
	h.env = append(h.env, "AUDITCOLLECTOR_CLICKHOUSE_ADDR="+h.serve(t), "AUDITCOLLECTOR_CLICKHOUSE_PROTOCOL=http",
		"AUDITCOLLECTOR_KAFKA_BROKERS="+b.Addr, "AUDITCOLLECTOR_BATCH_WAIT=20ms")
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{Addr: kafka.TCP(b.Addr), Topic: topic, Transport: transport, RequiredAcks: kafka.RequireAll,
		Balancer: &kafka.RoundRobin{}, BatchTimeout: time.Millisecond, MaxAttempts: 100}
	defer w.Close()
	s := &writer{t: t, ids: map[string]bool{}}
	session := audit.NewID(time.Now())
	send := func(n int) {
		t.Helper()
		var messages []kafka.Message
		for range n {
			line := s.line(func(r *audit.Record) { r.SessionID = session })
			messages = append(messages, kafka.Message{Key: []byte(session), Value: line[:len(line)-1]})
		}
		if rand.IntN(4) == 0 { // a producer that did not hear its answer
			messages = append(messages, messages...)
		}
		if err := w.WriteMessages(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
	}
	collectors := []process{h.collect(t), h.collect(t)}
	for i := range kills {
		send(300)
		if i == kills/2 {
			b.Kill()
			if err := b.Start(); err != nil {
				t.Fatal(err)
			}
		}
		send(rand.IntN(100))
		collectors[i%2].end(syscall.SIGKILL)
		collectors[i%2] = h.collect(t)
	}
	send(1)
	eventually(t, "everything is there", h.counts(t, distinct, len(s.ids)))
	h.check(t, s)
	for _, p := range collectors {
		if code := p.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d, standard error:\n%s", code, p.stderr)
		}
	}
}
