package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/collector/ingest"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// cluster is the one broker of this package's tests.
var cluster kafkatest.Shared

// newTopic makes a topic of its own for a test.
func newTopic(t *testing.T, partitions int) string {
	t.Helper()
	return cluster.NewTopic(t, kafkatest.Topic{Partitions: partitions})
}

// produce writes messages to their partitions by key.
func produce(t *testing.T, topic string, messages ...kafka.Message) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{Addr: kafka.TCP(cluster.Broker(t).Addr), Topic: topic, Transport: transport, RequiredAcks: kafka.RequireAll,
		Balancer: &kafka.RoundRobin{}, BatchTimeout: time.Millisecond, Compression: kafka.Lz4}
	if err := w.WriteMessages(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func records(from, n int) []kafka.Message {
	list := make([]kafka.Message, n)
	for i := range list {
		list[i] = kafka.Message{Key: []byte(testSession), Value: line(from + i)}
	}
	return list
}

// A member is a running collector.
type member struct {
	*Collector
	cancel context.CancelFunc
	done   chan error
}

func join(t *testing.T, store Inserter, group string, topics ...string) *member {
	t.Helper()
	var reached func(context.Context, []ingest.Source) ([]uint64, error)
	var lacks func(context.Context, []ingest.Stored) ([]bool, error)
	var unfilled func(context.Context, []string) ([]ingest.Gap, error)
	if s, ok := store.(*fakeStore); ok {
		reached, lacks, unfilled = s.Reached, s.Lacks, s.Unfilled
	}
	c, err := New(Config{
		Store: store, Reached: reached, Lacks: lacks, Unfilled: unfilled, Keep: 400 * 24 * time.Hour, BatchWait: 20 * time.Millisecond, BatchRows: 500,
		Kafka: Kafka{Brokers: []string{cluster.Broker(t).Addr}, Group: group, Topics: topics},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &member{c, cancel, make(chan error, 1)}
	go func() { m.done <- c.Run(ctx) }()
	t.Cleanup(func() { m.leave(t) })
	return m
}

func (m *member) leave(t *testing.T) {
	t.Helper()
	if m.done == nil {
		return
	}
	m.cancel()
	if err := <-m.done; err != nil {
		t.Error(err)
	}
	m.done = nil
}

// eventually waits for a condition that other goroutines make true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !is(); <-tick.C {
		if ctx.Err() != nil {
			t.Fatalf("after five minutes not: %s", what)
		}
	}
}

func (s *fakeStore) has(records, letters int) func() bool {
	return func() bool {
		r, l := s.stored()
		return r >= records && l >= letters
	}
}

func TestKafka(t *testing.T) {
	topic, store := newTopic(t, 4), newFakeStore()
	store.faults = []fault{lost, ackDropped, none, lost}
	produce(t, topic, records(1, 2000)...)
	m := join(t, store, topic, topic)
	eventually(t, "the first records are stored", store.has(2000, 0))
	produce(t, topic, append(records(2001, 500),
		kafka.Message{Key: []byte("k"), Value: []byte("not JSON")},
		kafka.Message{Key: []byte("k"), Value: make([]byte, 900<<10)},
		kafka.Message{Key: []byte("k")},
		kafka.Message{Key: []byte("other"), Value: line(1)},
	)...)
	eventually(t, "the rest is stored", store.has(2500, 4))
	m.leave(t)
	if r, l := store.stored(); r != 2500 || l != 4 {
		t.Errorf("%d records, %d dead letters, want 2500 and 4", r, l)
	}
	want := map[string]int{"not_json": 1, "too_long": 1, "tombstone": 1, "key": 1}
	if got := store.reasons(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("dead letters %v, want %v", got, want)
	}
	if len(store.gaps) > 0 {
		t.Errorf("gaps %v where there are none", store.gaps)
	}
	// A new member of the group continues where the last one ended.
	next := newFakeStore()
	produce(t, topic, records(5001, 10)...)
	m = join(t, next, topic, topic)
	eventually(t, "what came meanwhile is stored", next.has(10, 0))
	m.leave(t)
	if r, l := next.stored(); r != 10 || l != 0 {
		t.Errorf("%d records, %d dead letters the second time, want 10 and none: offsets were not committed", r, l)
	}
}

// TestNoTopic checks that a missing topic is reported, and that its records are
// read once it exists.
func TestNoTopic(t *testing.T) {
	name := fmt.Sprintf("late-%x", rand.Uint64())
	b := cluster.Broker(t)
	store := newFakeStore()
	m := join(t, store, name, name)
	eventually(t, "the topic is missed", func() bool {
		err := m.Ready()
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf("topic %q does not exist", name))
	})
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: name}); err != nil {
		t.Fatal(err)
	}
	produce(t, name, records(1, 10)...)
	eventually(t, "its records are stored", store.has(10, 0))
	eventually(t, "nothing is missed", func() bool { return m.Ready() == nil })
}

// TestOneTopicMissing checks that other topics are read while one is missing, and
// after another is deleted; once the missing one exists, it is read too.
func TestOneTopicMissing(t *testing.T) {
	b := cluster.Broker(t)
	there, deleted, late := newTopic(t, 2), newTopic(t, 1), fmt.Sprintf("second-%x", rand.Uint64())
	store := newFakeStore()
	m := join(t, store, late, there, late, deleted)
	missed := func(name string) func() bool {
		return func() bool {
			err := m.Ready()
			return err != nil && strings.Contains(err.Error(), fmt.Sprintf("topic %q does not exist", name))
		}
	}
	produce(t, there, records(1, 10)...)
	eventually(t, "the other topic is read", store.has(10, 0))
	eventually(t, "the topic is missed", missed(late))
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: late}); err != nil {
		t.Fatal(err)
	}
	produce(t, late, records(11, 10)...)
	eventually(t, "its records are stored", store.has(20, 0))
	eventually(t, "nothing is missed", func() bool { return m.Ready() == nil })
	if err := b.DeleteTopic(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted topic is missed", missed(deleted))
	produce(t, there, records(21, 10)...)
	eventually(t, "the other topic is read on", store.has(30, 0))
	if r, l := store.stored(); r != 30 || l != 0 {
		t.Errorf("%d records, %d dead letters, want 30 and none", r, l)
	}
}

// TestTopicDeleted checks that what may have been lost with a topic is a gap, and that
// all of the next one of that name is read.
func TestTopicDeleted(t *testing.T) {
	topic, store, b := newTopic(t, 1), newFakeStore(), cluster.Broker(t)
	produce(t, topic, records(1, 10)...)
	m := join(t, store, topic, topic)
	eventually(t, "the offset is committed", func() bool { return committedOffset(t, m, topic) == 10 })
	if err := b.DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic is missed", func() bool {
		err := m.Ready()
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf("topic %q does not exist", topic))
	})
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	produce(t, topic, records(11, 20)...)
	eventually(t, "its records are stored", store.has(30, 0))
	m.leave(t)
	want := ingest.Gap{Topic: topic, From: 10, To: 10, Reason: "log is another"}
	if len(store.gaps) != 1 || !store.gaps[want] {
		t.Errorf("gaps %v, want %v", store.gaps, want)
	}
}

// TestTopicRisks checks the warnings about settings by which Kafka may lose records, before
// any is lost: each when it is new, with a gauge until it is mended. A broker on its own has
// no topic with enough replicas.
func TestTopicRisks(t *testing.T) {
	topic, other, store := newTopic(t, 1), newTopic(t, 1), newFakeStore()
	core, logs := observer.New(zap.InfoLevel)
	registry := prometheus.NewRegistry()
	c, err := New(Config{Store: store, Keep: time.Hour, Log: zap.New(core), Metrics: registry,
		Kafka: Kafka{Brokers: []string{cluster.Broker(t).Addr}, Group: topic, Topics: []string{topic, other}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &member{c, cancel, make(chan error, 1)}
	go func() { m.done <- c.Run(ctx) }()
	defer m.leave(t)
	set := func(op kafka.ConfigOperation, name, value string) {
		t.Helper()
		transport := &kafka.Transport{}
		defer transport.CloseIdleConnections()
		client := &kafka.Client{Addr: kafka.TCP(cluster.Broker(t).Addr), Transport: transport}
		answer, err := client.IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: name, Value: value, ConfigOperation: op}},
		}}})
		if err == nil {
			err = answer.Resources[0].Error
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	risky := func(topic, setting string) bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if l := m.GetLabel(); f.GetName() == "auditcollector_kafka_topic_risk" && l[0].GetValue() == setting && l[1].GetValue() == topic {
					return m.GetGauge().GetValue() == 1
				}
			}
		}
		return false
	}
	warnings := func(topic, because string) int {
		return logs.FilterMessage("the topic may lose records").FilterField(zap.String("topic", topic)).FilterField(zap.String("because", because)).Len()
	}
	const compacts = "cleanup.policy compacts it: of a session only the last record would stay"
	eventually(t, "both topics have a warning", func() bool {
		return warnings(topic, "fewer than 3 replicas") == 1 && warnings(other, "fewer than 3 replicas") == 1 && risky(other, "replicas")
	})
	for n := range 2 {
		eventually(t, "a safe setting has no gauge", func() bool { return !risky(topic, "cleanup.policy") })
		set(kafka.ConfigOperationSet, "cleanup.policy", "compact")
		eventually(t, "the change has a warning and a gauge", func() bool {
			return warnings(topic, compacts) == n+1 && risky(topic, "cleanup.policy")
		})
		set(kafka.ConfigOperationDelete, "cleanup.policy", "")
	}
	if n := warnings(topic, "fewer than 3 replicas"); n != 1 {
		t.Errorf("%d warnings about what did not change, want 1", n)
	}
	if risky(other, "cleanup.policy") {
		t.Error("another topic has the gauge")
	}
}

// TestShorterLog checks that a topic which was made again is read from its start if it has
// fewer records when that is found out, and more at the next fetch.
func TestShorterLog(t *testing.T) {
	topic, b := newTopic(t, 1), cluster.Broker(t)
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &brokers.Client{Kafka: &kafka.Client{Addr: kafka.TCP(b.Addr), Timeout: time.Minute, Transport: transport}}
	for _, there := range []int{0, 9, 10} {
		p := &partition{source: newTestCollector(t, newFakeStore()).source(), client: client, ids: new(brokers.IDs), partitionOffset: partitionOffset{Partition: brokers.Partition{Topic: topic, Number: 0}, next: 11}, last: 10, answered: time.Now(), turn: new(sync.Mutex)}
		if err := b.DeleteTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the topic is made again", func() bool { return b.CreateTopic(t.Context(), kafkatest.Topic{Name: topic}) == nil })
		if there > 0 {
			produce(t, topic, records(1, there)...)
		}
		c, err := p.leaveOld(t.Context())
		if err != nil || p.next != 0 || p.doubtful || len(c.gaps) != 1 {
			t.Errorf("with %d records there: at offset %d, gaps %v, error %v, want offset 0 and a gap", there, p.next, c.gaps, err)
		}
	}
}

// TestNobodyHasPartition checks that partitions which the group's leader assigned to no
// member are reported, and read after that: a leader assigns what it sees, and may see
// no partition while a topic is made again.
func TestNobodyHasPartition(t *testing.T) {
	topic, store := newTopic(t, 2), newFakeStore()
	leader := blindLeader{}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: topic, Brokers: []string{cluster.Broker(t).Addr}, Topics: []string{topic}, GroupBalancers: []kafka.GroupBalancer{&leader},
	})
	if err != nil {
		t.Fatal(err)
	}
	leads, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for joined := false; ; {
			gen, err := group.Next(t.Context())
			switch {
			case errors.Is(err, kafka.ErrGroupClosed) || t.Context().Err() != nil:
				return
			case err != nil: // of a new broker, which has no groups yet
				continue
			}
			gen.Start(func(ctx context.Context) { <-ctx.Done() })
			if !joined {
				joined = true
				close(leads)
			}
		}
	}()
	defer func() { group.Close(); <-done }()
	<-leads
	m := join(t, store, topic, topic)
	produce(t, topic, records(1, 10)...)
	want := fmt.Sprintf(`no collector has: topic "%[1]s", partition 0; topic "%[1]s", partition 1`, topic)
	eventually(t, "the partitions are missed", func() bool {
		err := m.Ready()
		return err != nil && strings.Contains(err.Error(), want)
	})
	eventually(t, "their records are stored", store.has(10, 0))
	eventually(t, "nothing is missed", func() bool { return m.Ready() == nil })
}

// A blindLeader assigns nothing to itself and to the first member beside it, and all to
// the others.
type blindLeader struct {
	kafka.RangeGroupBalancer
	seen []string // IDs of members
}

func (l *blindLeader) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	for _, m := range members {
		if len(l.seen) < 2 && !slices.Contains(l.seen, m.ID) {
			l.seen = append(l.seen, m.ID)
		}
	}
	others := slices.DeleteFunc(members, func(m kafka.GroupMember) bool { return slices.Contains(l.seen, m.ID) })
	return l.RangeGroupBalancer.AssignGroups(others, partitions)
}

// TestRepeatsChangeNothing reads the topic from its start again, and with two
// groups concurrently: nothing changes.
func TestRepeatsChangeNothing(t *testing.T) {
	topic, store := newTopic(t, 3), newFakeStore()
	produce(t, topic, records(1, 1000)...)
	one, two := join(t, store, topic+"-one", topic), join(t, store, topic+"-two", topic)
	twice := func() bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		n := 0
		for _, times := range store.rows {
			n += times
		}
		return n >= 2000
	}
	eventually(t, "both groups have stored everything", twice)
	one.leave(t)
	two.leave(t)
	if r, l := store.stored(); r != 1000 || l != 0 {
		t.Errorf("%d records, %d dead letters, want 1000 and none", r, l)
	}
}

// TestRebalance has members join and leave under load while the store fails at
// times: nothing is lost.
func TestRebalance(t *testing.T) {
	const batches, size = 30, 200
	topic, store := newTopic(t, 6), newFakeStore()
	members := []*member{join(t, store, topic, topic)}
	for i := range batches {
		produce(t, topic, records(1+i*size, size)...)
		store.mu.Lock()
		store.faults = append(store.faults, []fault{none, lost, ackDropped}[rand.IntN(3)])
		store.mu.Unlock()
		switch {
		case i%6 == 2:
			members = append(members, join(t, store, topic, topic))
		case i%6 == 5 && len(members) > 1:
			go members[0].cancel() // while it has inserts under way
			members[0].leave(t)
			members = slices.Delete(members, 0, 1)
		}
	}
	eventually(t, "everything is stored", store.has(batches*size, 0))
	for _, m := range members {
		m.leave(t)
	}
	if r, l := store.stored(); r != batches*size || l != 0 {
		t.Errorf("%d records, %d dead letters, want %d and none", r, l, batches*size)
	}
	if len(store.gaps) > 0 {
		t.Errorf("gaps %v where there are none", store.gaps)
	}
}

// TestRemoved checks that records which retention removed unread are a gap.
func TestRemoved(t *testing.T) {
	topic, store := newTopic(t, 1), newFakeStore()
	produce(t, topic, records(1, 100)...)
	m := join(t, store, topic, topic)
	eventually(t, "the first records are stored", store.has(100, 0))
	m.leave(t)
	produce(t, topic, records(101, 100)...)
	deleteRecords(t, topic, 150)
	m = join(t, store, topic, topic)
	eventually(t, "what is left is stored", store.has(150, 0))
	m.leave(t)
	want := ingest.Gap{Topic: topic, From: 100, To: 149, Reason: "removed"}
	if len(store.gaps) != 1 || !store.gaps[want] {
		t.Errorf("gaps %v, want %v", store.gaps, want)
	}
}

// TestNoOffset checks that records are a gap which retention removed before anything of
// their partition was read, or after the brokers forgot the group's offsets, as they do
// when a group has had no member for a week. A log that is shorter than what the store has
// is another one, as of another cluster at this address.
func TestNoOffset(t *testing.T) {
	topic, store := newTopic(t, 1), newFakeStore()
	run := func(group string, want int, gaps ...ingest.Gap) {
		t.Helper()
		m := join(t, store, group, topic)
		eventually(t, "the records are stored", store.has(want, 0))
		eventually(t, "they are committed", func() bool { return committedOffset(t, m, topic) == logEnd(t, topic) })
		m.leave(t)
		wanted := map[ingest.Gap]bool{}
		for _, g := range gaps {
			g.Topic = topic
			wanted[g] = true
		}
		if diff := cmp.Diff(wanted, store.gaps); diff != "" {
			t.Errorf("gaps (-want +got):\n%s", diff)
		}
	}
	run("first", 0)
	produce(t, topic, records(1, 5)...)
	deleteRecords(t, topic, 3)
	first := ingest.Gap{From: 0, To: 2, Reason: "removed"}
	run("first", 2, first)
	produce(t, topic, records(6, 5)...)
	run("second", 7, first) // the store has all that was removed, or reported it
	again := records(11, 5)
	produce(t, topic, again...)
	deleteRecords(t, topic, 12)
	second := ingest.Gap{From: 10, To: 11, Reason: "removed"}
	run("third", 10, first, second)
	produce(t, topic, again[2:]...) // as the host ships them again
	run("third", 10, first, second)
	deleteRecords(t, topic, 18)
	run("fourth", 10, first, second)
	b := cluster.Broker(t)
	if err := b.DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic is made again", func() bool { return b.CreateTopic(t.Context(), kafkatest.Topic{Name: topic}) == nil })
	produce(t, topic, records(16, 4)...)
	run("fifth", 14, first, second, ingest.Gap{From: 15, To: 15, Reason: "log is another"})
}

// TestOffsetWasSet checks that records which another program makes the group pass are a
// gap, and that no other offset of a group is: one that a collector committed, also where
// the store has none of the last records, and one that was set back.
func TestOffsetWasSet(t *testing.T) {
	topic, store := newTopic(t, 1), newFakeStore()
	run := func(want int) {
		t.Helper()
		m := join(t, store, topic, topic)
		eventually(t, "the records are stored", store.has(want, 0))
		eventually(t, "they are committed", func() bool { return committedOffset(t, m, topic) == logEnd(t, topic) })
		m.leave(t)
	}
	check := func(what string, want ...ingest.Gap) {
		t.Helper()
		if len(store.gaps) != len(want) {
			t.Errorf("%s: gaps %v, want %v", what, store.gaps, want)
		}
		for _, g := range want {
			if !store.gaps[g] {
				t.Errorf("%s: gaps %v, want %v", what, store.gaps, want)
			}
		}
	}
	produce(t, topic, records(1, 5)...)
	setOffset(t, topic, 2) // before the first collector: the store has nothing
	run(3)
	first := ingest.Gap{Topic: topic, From: 0, To: 1, Reason: "offset was set"}
	check("before the first start", first)
	produce(t, topic, records(6, 5)...)
	setOffset(t, topic, 8)
	run(5)
	second := ingest.Gap{Topic: topic, From: 5, To: 7, Reason: "offset was set"}
	check("later", first, second)
	store.mu.Lock()
	clear(store.next) // as of repeats, which collapse with what came from elsewhere
	store.mu.Unlock()
	produce(t, topic, records(11, 1)...)
	run(6)
	check("committed by a collector", first, second)
	for i, want := range [][]uint64{{0, 8}, {0, 8}, {2, 8}} { // what lacks its first record was not read
		to := []int64{3, 1, 0}[i]
		setOffset(t, topic, to)
		run(9 + i)
		check("set back", first, second)
		if got := store.readTo(first, second); !slices.Equal(got, want) {
			t.Errorf("set back to %d: the gaps were read up to %d, want %d", to, got, want)
		}
	}
}

// TestGapFillsInParts reads what a gap lacks in parts: only what was read from its begin on
// counts, whether or not another generation read it, and nothing of another topic.
func TestGapFillsInParts(t *testing.T) {
	id := brokers.TopicID{1}
	gap := ingest.Gap{Topic: "t", From: 10, To: 29, TopicID: uuid.UUID(id)}
	for _, tt := range []struct {
		read, reads, left uint64 // how far it was read before; 0: not
		from, next        int64
	}{
		{0, 0, 0, 0, 10},
		{0, 11, 11, 0, 11},
		{0, 15, 15, 10, 15},
		{0, 0, 0, 11, 30},
		{15, 20, 20, 15, 20},
		{15, 0, 15, 16, 30},
		{15, 0, 15, 0, 15},
		{15, 30, 0, 15, 30},
		{0, 30, 0, 5, 100},
	} {
		p := partition{partitionOffset: partitionOffset{next: tt.next, id: id}}
		g := gap
		g.ReadTo = tt.read
		p.unfilled = []ingest.Gap{g}
		p.fill(tt.from)
		var reads uint64
		if len(p.filled) > 0 {
			reads = p.filled[0].ReadTo
		}
		if len(p.unfilled) > 0 != (reads <= gap.To) || reads != tt.reads || len(p.unfilled) > 0 && p.unfilled[0].ReadTo != tt.left {
			t.Errorf("read before up to %d, now from %d to %d: up to %d, and %v is left, want up to %d", tt.read, tt.from, tt.next, reads, p.unfilled, tt.reads)
		}
	}
	store := newFakeStore()
	var fails bool
	c := consumer{source: newTestCollector(t, store).source(), fill: func(ctx context.Context, gaps []ingest.Gap) error {
		if fails {
			return errStore
		}
		return store.InsertGaps(ctx, gaps)
	}}
	mark := func(to uint64) partitionOffset {
		g := gap
		g.ReadTo = to
		return partitionOffset{filled: []ingest.Gap{g}}
	}
	fails = true
	left, err := c.fillGaps(nil, []partitionOffset{mark(15), mark(30)})
	if err == nil || len(left) != 1 || left[0].ReadTo != 30 {
		t.Errorf("with a store that fails: %v is left, %v, want all that was read and an error", left, err)
	}
	fails = false
	left, err = c.fillGaps(left, nil)
	gap.TopicID = uuid.UUID{}
	if got := store.readTo(gap); err != nil || len(left) > 0 || got[0] != 30 {
		t.Errorf("later: read up to %d, %v is left, %v, want it stored", got, left, err)
	}
}

// TestStoreIsOlder has a collector start with a store that was restored from a backup: what
// was read since is a gap, once. Records that came again and dead letters are none.
func TestStoreIsOlder(t *testing.T) {
	topic, store := newTopic(t, 1), newFakeStore()
	run := func(store *fakeStore, want int, messages ...kafka.Message) {
		t.Helper()
		produce(t, topic, messages...)
		m := join(t, store, topic, topic)
		eventually(t, "the records are stored", store.has(want, 0))
		eventually(t, "they are committed", func() bool { return committedOffset(t, m, topic) == logEnd(t, topic) })
		m.leave(t)
	}
	first := records(1, 5)
	run(store, 5, first...)
	backup := newFakeStore()
	maps.Copy(backup.rows, store.rows)
	maps.Copy(backup.numbers, store.numbers)
	maps.Copy(backup.next, store.next)
	maps.Copy(backup.nextAll, store.nextAll)
	run(store, 5, append(first, kafka.Message{Key: []byte("k"), Value: []byte("not JSON")})...)
	run(store, 6, records(6, 1)...)
	if len(store.gaps) > 0 {
		t.Errorf("gaps %v, want none", store.gaps)
	}
	want := map[ingest.Gap]bool{{Topic: topic, From: 5, To: 11, Reason: "store is older"}: true}
	for no := range 2 {
		run(backup, 6+no, records(7+no, 1)...)
		if diff := cmp.Diff(want, backup.gaps); diff != "" {
			t.Errorf("gaps (-want +got):\n%s", diff)
		}
	}
	setOffset(t, topic, 5)
	run(backup, 8)
	for g := range want {
		if got := backup.readTo(g); got[0] != g.To+1 {
			t.Errorf("after the remedy, the gap was read up to %d, want all of it", got)
		}
	}
	if diff := cmp.Diff(want, backup.gaps); diff != "" {
		t.Errorf("after the remedy, gaps (-want +got):\n%s", diff)
	}
}

// setOffset sets the offset of the group with the topic's name, as an administrator's
// tool does.
func setOffset(t *testing.T, topic string, offset int64) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(cluster.Broker(t).Addr), Transport: transport}
	eventually(t, "the group is empty, and its offset is set", func() bool {
		resp, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{
			GroupID: topic, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: {{Offset: offset}}},
		})
		return err == nil && resp.Topics[topic][0].Error == nil
	})
}

// logEnd returns the end of the one partition of a topic.
func logEnd(t *testing.T, topic string) int64 {
	t.Helper()
	conn, err := kafka.DialLeader(t.Context(), "tcp", cluster.Broker(t).Addr, topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, last, err := conn.ReadOffsets()
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// TestSkipped checks that an offset which the broker skips is a gap, and that one
// received before is not.
func TestSkipped(t *testing.T) {
	p := &partition{source: newTestCollector(t, newFakeStore()).source(), ids: new(brokers.IDs), partitionOffset: partitionOffset{Partition: brokers.Partition{Topic: "t", Number: 3}, next: 5}}
	var c chunk[partitionOffset]
	for _, offset := range []int64{3, 4, 5, 9, 10} {
		err := p.take(&c, &kafka.Record{Offset: offset, Key: kafka.NewBytes([]byte(testSession)), Value: kafka.NewBytes(line(1))})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(c.rows) != 3 || p.next != 11 {
		t.Errorf("%d rows, then offset %d, want 3 rows, then 11", len(c.rows), p.next)
	}
	if len(c.gaps) != 1 || c.gaps[0].From != 6 || c.gaps[0].To != 8 || c.gaps[0].Partition != 3 {
		t.Errorf("gaps %+v, want 6 to 8", c.gaps)
	}
}

// TestMessagesShareMemory checks that the next message does not overwrite what is
// kept of one.
func TestMessagesShareMemory(t *testing.T) {
	p := &partition{source: newTestCollector(t, newFakeStore()).source(), ids: new(brokers.IDs), partitionOffset: partitionOffset{Partition: brokers.Partition{Topic: "t", Number: 3}, next: 0}}
	var c chunk[partitionOffset]
	messages := []struct{ key, value string }{
		{"first", "no record"}, {testSession, string(line(1))}, {"other", "none here"}, {testSession, string(line(2))},
	}
	for i, m := range messages {
		err := p.take(&c, &kafka.Record{Offset: int64(i), Key: kafka.NewBytes([]byte(m.key)), Value: kafka.NewBytes([]byte(m.value))})
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []struct{ key, value string }
	for i := range c.rows {
		got = append(got, struct{ key, value string }{c.letters[i].Key, string(c.letters[i].Raw)},
			struct{ key, value string }{c.rows[i].Record.SessionID, c.rows[i].Raw})
	}
	if !slices.Equal(got, messages) {
		t.Errorf("kept %q, want %q", got, messages)
	}
}

// deleteRecords removes the records before an offset of partition 0, as retention
// does. kafka-go has no such call.
func deleteRecords(t *testing.T, topic string, before int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Broker(t).Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 60_000
	asked := kmsg.NewDeleteRecordsRequestTopic()
	asked.Topic = topic
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = before
	asked.Partitions = append(asked.Partitions, part)
	req.Topics = append(req.Topics, asked)
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("deleting records: %v", kafka.Error(code))
	}
}
