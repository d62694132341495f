package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"
	"auditproxy/sink/kafka"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/google/go-cmp/cmp"
	kgo "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// batch returns n different lines.
func batch(from, n int) [][]byte {
	var lines [][]byte
	for i := range n {
		lines = append(lines, fmt.Appendf(nil, `{"v":1,"kind":"call","record_id":"id-%d","seq":%d}`, from+i, from+i))
	}
	return lines
}

func texts(lines [][]byte) []string {
	var all []string
	for _, l := range lines {
		all = append(all, string(l))
	}
	return all
}

// firsts removes repeats.
func firsts(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// TestMessage checks what a message is: the key, the bytes and the headers of a
// CloudEvent, all of a session in one partition.
func TestMessage(t *testing.T) {
	topic := newTopic(t, 4, nil)
	p, _ := newProducer(t, kafka.Config{Topic: topic})
	line := audit.AppendRecord(nil, &audit.Record{Kind: audit.KindGap, RecordID: "the-id", SessionID: "s"})
	line = bytes.TrimSuffix(line, []byte("\n"))
	for _, session := range []string{"a", "b", "c", "a"} {
		if err := p.Write(t.Context(), session, [][]byte{line}); err != nil {
			t.Fatal(err)
		}
	}
	messages, err := cluster.Broker(t).Messages(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	partitions := map[string][]int{}
	for _, m := range messages {
		partitions[string(m.Key)] = append(partitions[string(m.Key)], m.Partition)
		if !bytes.Equal(m.Value, line) {
			t.Errorf("value %q, want the line", m.Value)
		}
		got := map[string]string{}
		for _, h := range m.Headers {
			got[h.Key] = string(h.Value)
		}
		want := map[string]string{
			"ce_specversion": "1.0", "ce_id": "the-id", "ce_source": "/auditproxy/test", "ce_type": "mcp.audit.v1",
			"content-type": "application/json",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
	}
	if a := partitions["a"]; len(a) != 2 || a[0] != a[1] {
		t.Errorf("a session is in partitions %v, want one, twice", a)
	}
	if partitions["a"][0] == partitions["b"][0] && partitions["b"][0] == partitions["c"][0] {
		t.Errorf("all sessions are in one partition: %v", partitions)
	}
}

// TestBrokerKilled kills the broker while several sessions are written, and starts it
// again: all is there, each session in order, and what is there twice is the
// same.
func TestBrokerKilled(t *testing.T) {
	const sessions, batches, size = 4, 30, 50
	topic := newTopic(t, 2, nil)
	p, logs := newProducer(t, kafka.Config{Topic: topic})
	var wait sync.WaitGroup
	begun := make(chan struct{}, sessions*batches)
	for s := range sessions {
		wait.Go(func() {
			for b := range batches {
				if err := p.Write(t.Context(), fmt.Sprint("session-", s), batch(b*size, size)); err != nil {
					t.Error(err)
				}
				begun <- struct{}{}
			}
		})
	}
	for range sessions * batches / 4 {
		<-begun
	}
	b := cluster.Broker(t)
	b.Kill()
	waitFor(t, logs, "no broker can be reached")
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if logs.FilterMessage("shipping resumed").Len() == 0 {
		t.Error("the log does not say that shipping resumed")
	}
	want, got := texts(batch(0, batches*size)), values(t, topic)
	for s := range sessions {
		if diff := cmp.Diff(want, firsts(got[fmt.Sprint("session-", s)])); diff != "" {
			t.Errorf("session %d (-want +got):\n%.1000s", s, diff)
		}
	}
}

// TestRefusedRecords checks that of a batch only the records that Kafka refuses for
// themselves are refused, one at a time, and that all before them are kept.
func TestRefusedRecords(t *testing.T) {
	topic := newTopic(t, 1, map[string]string{"max.message.bytes": "2000"})
	p, _ := newProducer(t, kafka.Config{Topic: topic})
	lines := batch(0, 100)
	// Random letters, which no compression makes short.
	for _, i := range []int{0, 57, 99} {
		lines[i] = []byte(incompressible(8000))
	}
	var refused []int
	for from := 0; from < len(lines); {
		err := p.Write(t.Context(), "s", lines[from:])
		if err == nil {
			break
		}
		var r *sink.RefusedError
		if !errors.As(err, &r) {
			t.Fatal(err)
		}
		refused = append(refused, from+r.Index)
		from += r.Index + 1
	}
	if diff := cmp.Diff([]int{0, 57, 99}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	want := slices.Concat(texts(lines[1:57]), texts(lines[58:99]))
	if diff := cmp.Diff(want, values(t, topic)["s"]); diff != "" {
		t.Errorf("the topic (-want +got):\n%.1000s", diff)
	}
}

func incompressible(n int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < n; {
		x = x*1664525 + 1013904223 // Numerical Recipes
		b.WriteByte('a' + byte(x>>24)%26)
	}
	return b.String()
}

// fake starts a cluster that fails as it is told, with a topic named "t".
func fake(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestInvalidRecord does the same where the broker says INVALID_RECORD, which
// a real one has no reason to.
func TestInvalidRecord(t *testing.T) {
	c := fake(t)
	c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord, Count: -1,
		When: func(r kmsg.Request) bool {
			return bytes.Contains(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records, []byte("unwanted"))
		},
	})
	p, _ := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	lines := batch(0, 4)
	lines[2] = []byte("unwanted")
	var refused *sink.RefusedError
	if err := p.Write(t.Context(), "s", lines); !errors.As(err, &refused) || refused.Index != 2 {
		t.Errorf("Write: %v, want record 2 to be refused", err)
	}
}

// TestBatchesAreCompressed reads the attributes of a record batch: LZ4, which
// every supported broker has and which costs little memory.
func TestBatchesAreCompressed(t *testing.T) {
	const attributes, codecs, lz4 = 21, 7, 3 // where they are in a batch; their lowest bits are the codec
	c := fake(t)
	var batches [][]byte
	var mu sync.Mutex
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		c.KeepControl()
		batches = append(batches, bytes.Clone(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records))
		return nil, nil, false
	})
	p, _ := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	lines := batch(0, 500)
	if err := p.Write(t.Context(), "s", lines); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	size := len(bytes.Join(lines, nil))
	for _, b := range batches {
		if codec := b[attributes+1] & codecs; codec != lz4 || len(b) > size/2 {
			t.Errorf("codec %d, %d bytes for %d of lines; want codec %d, less than half", codec, len(b), size, lz4)
		}
	}
	if len(batches) == 0 {
		t.Error("no batch was sent")
	}
}

// TestAllReplicasAcknowledge reads what a request asks for: an answer once all
// in-sync replicas have the records.
func TestAllReplicasAcknowledge(t *testing.T) {
	c := fake(t)
	acks := make(chan int16, 1)
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		acks <- r.(*kmsg.ProduceRequest).Acks
		return nil, nil, false
	})
	p, _ := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	if err := p.Write(t.Context(), "s", batch(0, 1)); err != nil {
		t.Fatal(err)
	}
	if got := <-acks; got != -1 {
		t.Errorf("acks is %d, want -1", got)
	}
}

// TestStalledSince logs a new problem at once, with the time since shipping
// stalled and not since that problem began.
func TestStalledSince(t *testing.T) {
	c := fake(t)
	answers := []*kerr.Error{kerr.RequestTimedOut, kerr.RequestTimedOut, kerr.NotEnoughReplicas}
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if len(answers) == 0 {
			return nil, nil, false
		}
		c.KeepControl()
		request, topic, partition := r.(*kmsg.ProduceRequest), kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
		partition.ErrorCode = answers[0].Code
		answers = answers[1:]
		topic.Topic, topic.TopicID, topic.Partitions = request.Topics[0].Topic, request.Topics[0].TopicID, []kmsg.ProduceResponseTopicPartition{partition}
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	p, logs := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	if err := p.Write(t.Context(), "s", batch(0, 1)); err != nil {
		t.Fatal(err)
	}
	stalled := logs.FilterMessage("shipping stalled").All()
	if len(stalled) != 2 {
		t.Fatalf("%d problems are logged, want 2: %v", len(stalled), stalled)
	}
	if since := stalled[1].ContextMap()["since"]; since.(time.Duration) <= 0 {
		t.Errorf("the second problem is logged as since %v, want since the first", since)
	}
	if n := logs.FilterMessage("shipping resumed").Len(); n != 1 {
		t.Errorf("it is logged %d times that shipping resumed, want once", n)
	}
}

// TestLeaderMoves writes on after the partition has gone to another broker.
func TestLeaderMoves(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p, _ := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that a producer that stays with the old one fails
	defer cancel()
	for i := range 4 {
		if err := c.MoveTopicPartition("t", 0, int32(i%2)); err != nil {
			t.Fatal(err)
		}
		if err := p.Write(ctx, "s", batch(i, 1)); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}

// TestProducerErrors injects errors that ask a producer to begin anew, that say nothing of
// whether the records were kept, or that a cluster gives while it moves leaders:
// the same records are written again until they are kept.
func TestProducerErrors(t *testing.T) {
	for _, fault := range []*kerr.Error{
		kerr.InvalidProducerEpoch, kerr.OutOfOrderSequenceNumber, kerr.ProducerFenced, kerr.RequestTimedOut, kerr.NotLeaderForPartition,
		kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.CorruptMessage, kerr.UnknownServerError,
	} {
		c := fake(t)
		h := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: fault, Count: 2})
		p, _ := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
		lines := batch(0, 10)
		if err := p.Write(t.Context(), "s", lines); err != nil {
			t.Fatal(err)
		}
		if h.Hits() != 2 {
			t.Errorf("%s: %d requests failed, want 2", fault.Message, h.Hits())
		}
		if diff := cmp.Diff(texts(lines), firsts(stored(t, c.ListenAddrs()[0]))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fault.Message, diff)
		}
	}
}

// TestCauses has a broker refuse records for causes that an administrator removes.
func TestCauses(t *testing.T) {
	for _, tt := range []struct {
		fault       *kerr.Error
		class, text string
	}{
		{kerr.InvalidTimestamp, "clock", "Kafka does not take the time of this host: correct its clock, or set the topic's message.timestamp.type to LogAppendTime"},
		{kerr.KafkaStorageError, "disk", "the disk of a broker is full or broken: free space there, and start the broker again if it ended"},
	} {
		t.Run(tt.class, func(t *testing.T) {
			c := fake(t)
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: tt.fault, Count: 1})
			p, logs := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
			if err := p.Write(t.Context(), "s", batch(0, 10)); err != nil {
				t.Fatal(err)
			}
			waitFor(t, logs, tt.text)
			if n := p.Stats().Errors[tt.class]; n != 1 {
				t.Errorf("%d errors of this class, want 1", n)
			}
		})
	}
}

// stored returns the values in topic "t", in order.
func stored(t *testing.T, addr string) (values []string) {
	t.Helper()
	messages, err := (&kafkatest.Broker{Addr: addr}).Messages(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		values = append(values, string(m.Value))
	}
	return values
}

// TestTopicWarnings checks the warnings about a topic that may lose what it has
// acknowledged. A broker on its own can have no safe topic, so the replicas are
// always named.
func TestTopicWarnings(t *testing.T) {
	safe := map[string]string{"min.insync.replicas": "2", "retention.ms": "-1", "cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
	for _, tt := range []struct{ key, value, want string }{
		{"", "", ""},
		{"min.insync.replicas", "1", "min.insync.replicas is below 2"},
		{"retention.ms", "86400000", "retention.ms is below 7 days"},
		{"retention.bytes", "1000000", "retention.bytes removes records of any age"},
		{"max.message.bytes", "100000", "max.message.bytes is below the longest record, 278528"},
		{"message.timestamp.type", "CreateTime", "message.timestamp.type is CreateTime: what a host sends whose clock is behind is removed early"},
		{"unclean.leader.election.enable", "true", "unclean.leader.election.enable is true"},
		{"cleanup.policy", "compact", "cleanup.policy compacts it: of a session only the last record would stay"},
	} {
		settings := map[string]string{}
		for k, v := range safe {
			settings[k] = v
		}
		want := []string{"fewer than 3 replicas"}
		if tt.key != "" {
			settings[tt.key], want = tt.value, append(want, tt.want)
		}
		topic := newTopic(t, 1, settings)
		p, logs := newProducer(t, kafka.Config{Topic: topic})
		write(t, p, "s", batch(0, 1))
		for _, because := range want {
			waitFor(t, logs, because)
		}
		if n := logs.FilterMessage("the topic may lose records").Len(); n != len(want) {
			t.Errorf("%s %s: %d warnings, want %d: %v", tt.key, tt.value, n, len(want), logs.All())
		}
	}
}

// TestTopicChanged has a topic's settings change while a producer runs. The new reason
// is a warning, those before it are not repeated.
func TestTopicChanged(t *testing.T) {
	topic := newTopic(t, 1, map[string]string{"min.insync.replicas": "2", "retention.ms": "-1", "message.timestamp.type": "LogAppendTime"})
	p, logs := newProducer(t, kafka.Config{Topic: topic, Inspect: time.Nanosecond})
	write(t, p, "s", batch(0, 1))
	transport := &kgo.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &kgo.Client{Addr: kgo.TCP(cluster.Broker(t).Addr), Transport: transport}
	answer, err := client.IncrementalAlterConfigs(t.Context(), &kgo.IncrementalAlterConfigsRequest{Resources: []kgo.IncrementalAlterConfigsRequestResource{{
		ResourceType: kgo.ResourceTypeTopic, ResourceName: topic,
		Configs: []kgo.IncrementalAlterConfigsRequestConfig{{Name: "cleanup.policy", Value: "compact", ConfigOperation: kgo.ConfigOperationSet}},
	}}})
	if err == nil {
		err = answer.Resources[0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
	const want = "cleanup.policy compacts it: of a session only the last record would stay"
	for n := 1; logs.FilterMessage("the topic may lose records").Len() < 2 && n < 1000; n++ { // a broker takes a moment to use it
		<-time.After(10 * time.Millisecond)
		write(t, p, "s", batch(n, 1))
	}
	write(t, p, "s", batch(1000, 1))
	var got []string
	for _, l := range logs.FilterMessage("the topic may lose records").All() {
		got = append(got, l.ContextMap()["because"].(string))
	}
	if diff := cmp.Diff([]string{"fewer than 3 replicas", want}, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
