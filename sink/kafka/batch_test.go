package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
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
	"go.uber.org/zap/zaptest/observer"
)

// newBatcher returns a batcher that runs until the test ends.
func newBatcher(t *testing.T, c kafka.Config, bc kafka.BatcherConfig) (*kafka.Batcher, *observer.ObservedLogs) {
	t.Helper()
	p, logs := newProducer(t, c)
	b := kafka.NewBatcher(p, bc)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { b.Run(ctx) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	return b, logs
}

// deliver writes lines as a follower does: after a failure from the first line
// of the write on, and without those that are refused.
func deliver(ctx context.Context, b *kafka.Batcher, session string, lines [][]byte, size int) error {
	for len(lines) > 0 {
		n := min(size, len(lines))
		err := b.Write(ctx, session, lines[:n])
		var stalled *sink.StalledError
		var refused *sink.RefusedError
		switch {
		case err == nil:
			lines = lines[n:]
		case errors.As(err, &stalled):
			select {
			case <-time.After(time.Until(stalled.Until)):
			case <-ctx.Done():
				return ctx.Err()
			}
		case errors.As(err, &refused):
			lines = lines[refused.Index+1:]
		default:
			return err
		}
	}
	return nil
}

// TestBatcherFillsRequests counts what comes to a broker: one request for a
// record of each of 200 sessions, whichever partitions they are in.
func TestBatcherFillsRequests(t *testing.T) {
	const sessions, waves, partitions = 200, 10, 32
	kafkatest.Require(t)
	broker, err := kafkatest.Start(kafkatest.Config{Counted: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Stop() })
	if err := broker.CreateTopic(t.Context(), kafkatest.Topic{Name: "t", Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	// Only a full set of writes is sent: an hour does not pass.
	b, _ := newBatcher(t, kafka.Config{Access: kafka.Access{Brokers: []string{broker.CountedAddr}}, Topic: "t"}, kafka.BatcherConfig{AtOnce: sessions, Linger: time.Hour})
	for wave := range waves {
		var wait sync.WaitGroup
		for s := range sessions {
			wait.Go(func() {
				if err := b.Write(t.Context(), fmt.Sprint("session-", s), batch(wave, 1)); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	requests, connections := broker.Counted()
	if requests != waves {
		t.Errorf("%d produce requests for %d records, want %d", requests, sessions*waves, waves)
	}
	if connections > 3 { // records, and looking at the topic meanwhile
		t.Errorf("%d connections, want at most 3", connections)
	}
	messages, err := broker.Messages(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, m := range messages {
		got[string(m.Key)] = append(got[string(m.Key)], string(m.Value))
	}
	for s := range sessions {
		if diff := cmp.Diff(texts(batch(0, waves)), got[fmt.Sprint("session-", s)]); diff != "" {
			t.Fatalf("session %d (-want +got):\n%s", s, diff)
		}
	}
}

// TestBatcherBrokerKilled kills the broker while many sessions are written, and
// starts it again: what was acknowledged is there, each session in order.
func TestBatcherBrokerKilled(t *testing.T) {
	const sessions, lines, size = 40, 300, 7
	topic := newTopic(t, 8, nil)
	b, logs := newBatcher(t, kafka.Config{Topic: topic}, kafka.BatcherConfig{AtOnce: sessions, Linger: time.Millisecond})
	var wait sync.WaitGroup
	begun := make(chan struct{}, sessions)
	for s := range sessions {
		wait.Go(func() {
			all, session := batch(0, lines), fmt.Sprint("session-", s)
			err := deliver(t.Context(), b, session, all[:lines/2], size)
			begun <- struct{}{}
			if err == nil {
				err = deliver(t.Context(), b, session, all[lines/2:], size)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range sessions / 4 {
		<-begun
	}
	broker := cluster.Broker(t)
	broker.Kill()
	waitFor(t, logs, "no broker can be reached")
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	want, got := texts(batch(0, lines)), values(t, topic)
	for s := range sessions {
		if diff := cmp.Diff(want, firsts(got[fmt.Sprint("session-", s)])); diff != "" {
			t.Errorf("session %d (-want +got):\n%.1000s", s, diff)
		}
	}
}

// spread returns a session of each partition of a topic.
func spread(t *testing.T, c *kfake.Cluster, partitions int) []string {
	t.Helper()
	p, _ := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	sessions := make([]string, partitions)
	for i := 0; ; i++ {
		session := fmt.Sprint("session-", i)
		if err := p.Write(t.Context(), session, [][]byte{[]byte("first of " + session)}); err != nil {
			t.Fatal(err)
		}
		messages, err := (&kafkatest.Broker{Addr: c.ListenAddrs()[0]}).Messages(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range messages {
			if sessions[m.Partition] == "" {
				sessions[m.Partition] = string(m.Key)
			}
		}
		for _, s := range sessions {
			if s != "" {
				found++
			}
		}
		if found == partitions {
			return sessions
		}
	}
}

// TestBatcherPartitionFails has one partition without a leader: the sessions of
// the others are delivered meanwhile, and its own afterwards, in order.
func TestBatcherPartitionFails(t *testing.T) {
	const partitions, denied, lines = 4, 2, 100
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	sessions := spread(t, c, partitions)
	var mu sync.Mutex
	failing, tried, together := true, 0, 0
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		request := r.(*kmsg.ProduceRequest)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		has := slices.ContainsFunc(request.Topics[0].Partitions, func(p kmsg.ProduceRequestTopicPartition) bool { return p.Partition == denied })
		if !failing || !has {
			return nil, nil, false
		}
		tried++
		if len(request.Topics[0].Partitions) > 1 {
			together++
		}
		for _, p := range request.Topics[0].Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	b, logs := newBatcher(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"}, kafka.BatcherConfig{AtOnce: partitions + 1, Linger: 5 * time.Millisecond})
	// The partition fails first, and so is tried alone from then on.
	var stalled *sink.StalledError
	if err := b.Write(t.Context(), sessions[denied], batch(0, 1)); !errors.As(err, &stalled) || !errors.Is(err, stalled.Err) {
		t.Fatalf("Write: %v, want that it is stalled", err)
	}
	held := make(chan error, 1)
	go func() { held <- deliver(t.Context(), b, sessions[denied], batch(0, lines), 9) }()
	var others sync.WaitGroup
	for p, session := range sessions {
		if p == denied {
			continue
		}
		others.Go(func() {
			for from := range lines {
				if err := b.Write(t.Context(), session, batch(from, 1)); err != nil {
					t.Errorf("partition %d: %v", p, err)
				}
			}
		})
	}
	others.Wait()
	select {
	case err := <-held:
		t.Fatalf("the session of the failing partition is delivered: %v", err)
	default:
	}
	if n := logs.FilterMessage("shipping resumed").Len(); n > 0 {
		t.Errorf("it is logged %d times that shipping resumed, while a partition fails", n)
	}
	mu.Lock()
	failing = false
	if tried < 2 || together > 0 {
		t.Errorf("the failing partition was tried %d times, %d of them with others; want several and none", tried, together)
	}
	mu.Unlock()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if n := logs.FilterMessage("shipping resumed").Len(); n != 1 {
		t.Errorf("it is logged %d times that shipping resumed, want once", n)
	}
	messages, err := (&kafkatest.Broker{Addr: c.ListenAddrs()[0]}).Messages(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, m := range messages {
		got[string(m.Key)] = append(got[string(m.Key)], string(m.Value))
	}
	for _, session := range sessions {
		want := append([]string{"first of " + session}, texts(batch(0, lines))...)
		if diff := cmp.Diff(want, firsts(got[session])); diff != "" {
			t.Errorf("%s (-want +got):\n%.1000s", session, diff)
		}
	}
}

// TestBatcherAnswersForEachPartition has a request of several partitions fail
// for one: only its session is told so.
func TestBatcherAnswersForEachPartition(t *testing.T) {
	const partitions, denied = 4, 1
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	sessions := spread(t, c, partitions)
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		request := r.(*kmsg.ProduceRequest)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		for _, p := range request.Topics[0].Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			if partition.Partition = p.Partition; p.Partition == denied {
				partition.ErrorCode = kerr.LeaderNotAvailable.Code
			}
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	b, _ := newBatcher(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"}, kafka.BatcherConfig{AtOnce: partitions, Linger: time.Hour})
	var wait sync.WaitGroup
	errs := make([]error, partitions)
	for p, session := range sessions {
		wait.Go(func() { errs[p] = b.Write(t.Context(), session, batch(0, 1)) })
	}
	wait.Wait()
	for p, err := range errs {
		var stalled *sink.StalledError
		if errors.As(err, &stalled) != (p == denied) || (err != nil) != (p == denied) {
			t.Errorf("partition %d: %v", p, err)
		}
	}
}

// TestBatcherRefusedRecords checks that of a batch of several sessions only the
// records that Kafka refuses for themselves are refused, each to its session.
func TestBatcherRefusedRecords(t *testing.T) {
	const sessions, lines = 8, 60
	topic := newTopic(t, 1, map[string]string{"max.message.bytes": "2000"})
	b, _ := newBatcher(t, kafka.Config{Topic: topic}, kafka.BatcherConfig{AtOnce: sessions, Linger: time.Millisecond})
	var wait sync.WaitGroup
	for s := range sessions {
		all := batch(0, lines)
		if s%2 == 0 {
			all[s*7] = []byte(incompressible(8000))
		}
		wait.Go(func() {
			if err := deliver(t.Context(), b, fmt.Sprint("session-", s), all, 25); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	got := values(t, topic)
	for s := range sessions {
		want := texts(batch(0, lines))
		if s%2 == 0 {
			want = append(want[:s*7:s*7], want[s*7+1:]...)
		}
		if diff := cmp.Diff(want, got[fmt.Sprint("session-", s)]); diff != "" {
			t.Errorf("session %d (-want +got):\n%.1000s", s, diff)
		}
	}
}

// TestBatcherNoTopic has the topic made only after records were written, while
// one attempt at a time is made.
func TestBatcherNoTopic(t *testing.T) {
	b, logs := newBatcher(t, kafka.Config{Topic: "late"}, kafka.BatcherConfig{AtOnce: 4, Linger: time.Millisecond})
	var wait sync.WaitGroup
	for s := range 4 {
		wait.Go(func() {
			if err := deliver(t.Context(), b, fmt.Sprint("session-", s), batch(0, 10), 5); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, logs, "the topic does not exist, and is not created here")
	if err := cluster.Broker(t).CreateTopic(t.Context(), kafkatest.Topic{Name: "late", Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	got := values(t, "late")
	for s := range 4 {
		if diff := cmp.Diff(texts(batch(0, 10)), firsts(got[fmt.Sprint("session-", s)])); diff != "" {
			t.Errorf("session %d (-want +got):\n%s", s, diff)
		}
	}
}

// TestBatcherPartitionsAdded adds partitions while sessions are written: those that run
// stay where they are, in order, and new ones use all partitions.
func TestBatcherPartitionsAdded(t *testing.T) {
	const before, after, lines, sessions = 2, 6, 40, 30
	topic := newTopic(t, before, nil)
	broker := cluster.Broker(t)
	b, _ := newBatcher(t, kafka.Config{Topic: topic}, kafka.BatcherConfig{AtOnce: 1, Look: time.Millisecond})
	old := make([]string, sessions)
	for i := range old {
		old[i] = audit.NewID(time.Now())
		if err := b.Write(t.Context(), old[i], batch(0, lines)); err != nil {
			t.Fatal(err)
		}
	}
	transport := &kgo.Transport{}
	defer transport.CloseIdleConnections()
	client := &kgo.Client{Addr: kgo.TCP(broker.Addr), Transport: transport}
	if _, err := client.CreatePartitions(t.Context(), &kgo.CreatePartitionsRequest{Topics: []kgo.TopicPartitionsConfig{{Name: topic, Count: after}}}); err != nil {
		t.Fatal(err)
	}
	used := map[int]bool{}
	for n := 0; len(used) < after; n++ {
		if n == 1000 {
			t.Fatalf("after %d new sessions %d partitions are used, want %d", n, len(used), after)
		}
		session := audit.NewID(time.Now())
		for _, s := range []string{session, old[n%sessions]} {
			if err := deliver(t.Context(), b, s, batch(lines, 1), 1); err != nil {
				t.Fatal(err)
			}
		}
		if n%50 == 49 {
			messages, err := broker.Messages(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				used[m.Partition] = true
			}
		}
	}
	messages, err := broker.Messages(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]map[int]bool{}
	for _, m := range messages {
		s := string(m.Key)
		if places[s] == nil {
			places[s] = map[int]bool{}
		}
		if places[s][m.Partition] = true; len(places[s]) > 1 {
			t.Fatalf("session %s is in partitions %v", s, places[s])
		}
	}
}

// TestBatcherErrors does what TestProducerErrors does.
func TestBatcherErrors(t *testing.T) {
	for _, fault := range []*kerr.Error{
		kerr.InvalidProducerEpoch, kerr.OutOfOrderSequenceNumber, kerr.RequestTimedOut, kerr.NotLeaderForPartition, kerr.LeaderNotAvailable,
		kerr.NotEnoughReplicasAfterAppend, kerr.CorruptMessage, kerr.UnknownServerError, kerr.TopicAuthorizationFailed,
	} {
		c := fake(t)
		h := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: fault, Count: 2})
		b, _ := newBatcher(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"}, kafka.BatcherConfig{AtOnce: 1})
		lines := batch(0, 10)
		if err := deliver(t.Context(), b, "s", lines, 4); err != nil {
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

// TestBatcherEnds checks that all writes end with Run's context, also those of
// a request that is not answered, and that nothing is logged about it.
func TestBatcherEnds(t *testing.T) {
	c := fake(t)
	sent := make(chan struct{}, 1)
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if bytes.Contains(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records, []byte("first")) {
			return nil, nil, false
		}
		c.KeepControl()
		sent <- struct{}{}
		<-t.Context().Done()
		return nil, nil, false
	})
	p, logs := newProducer(t, kafka.Config{Access: kafka.Access{Brokers: c.ListenAddrs()}, Topic: "t"})
	b := kafka.NewBatcher(p, kafka.BatcherConfig{AtOnce: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ended, wrote := make(chan struct{}), make(chan error, 1)
	go func() { b.Run(ctx); close(ended) }()
	go func() { wrote <- b.Write(ctx, "s", batch(0, 1)) }()
	<-sent
	cancel()
	<-ended
	if err := <-wrote; !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v, want %v", err, context.Canceled)
	}
	if err := b.Write(t.Context(), "s", batch(0, 1)); err == nil {
		t.Error("a write after the end succeeds")
	}
	if n := logs.FilterMessage("shipping stalled").Len(); n > 0 {
		t.Errorf("it is logged %d times that shipping stalled", n)
	}
}
