package collector

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/sink/kafka/kafkatest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
)

// A heldStore answers while the test does not hold its gate.
type heldStore struct {
	*fakeStore
	gate    sync.Mutex
	waiting atomic.Int32 // inserts at the gate
}

func (s *heldStore) InsertRows(ctx context.Context, rows []ingest.Row, at time.Time) error {
	s.waiting.Add(1)
	s.gate.Lock()
	defer s.gate.Unlock()
	s.waiting.Add(-1)
	return s.fakeStore.InsertRows(ctx, rows, at)
}

// reads reports whether a member has read from a partition that it still has.
func (m *member) reads() bool {
	lags := make(chan prometheus.Metric, 100)
	m.metrics.lag.Collect(lags)
	return len(lags) > 0
}

func newClient(t *testing.T) *kafka.Client {
	t.Helper()
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(cluster.Broker(t).Addr), Transport: transport, Timeout: time.Minute}
}

// groupIs reports whether a group is in a state, with so many members.
func groupIs(t *testing.T, group, state string, members int) func() bool {
	t.Helper()
	client := newClient(t)
	return func() bool {
		resp, err := client.DescribeGroups(t.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		return err == nil && len(resp.Groups) == 1 && resp.Groups[0].GroupState == state && len(resp.Groups[0].Members) == members
	}
}

// TestStopInRebalance stops members while the group waits for a slow one: they do
// not wait too. A member that had partitions leaves the group, so that the others
// need not wait for it.
func TestStopInRebalance(t *testing.T) {
	const waits, settled = "PreparingRebalance", "Stable"
	topic, store := newTopic(t, 4), &heldStore{fakeStore: newFakeStore()}
	produce(t, topic, records(1, 100)...)
	slow, early := join(t, store, topic, topic), join(t, newFakeStore(), topic, topic)
	both := groupIs(t, topic, settled, 2)
	eventually(t, "both have partitions", func() bool { return both() && slow.reads() && early.reads() })

	store.gate.Lock()
	defer store.gate.Unlock()
	produce(t, topic, records(101, 100)...)
	eventually(t, "one has an insert under way", func() bool { return store.waiting.Load() > 0 })
	late := join(t, newFakeStore(), topic, topic)
	eventually(t, "the group waits for it", groupIs(t, topic, waits, 3))
	eventually(t, "the other gave its partitions back", func() bool { return !early.reads() })
	early.leave(t)
	if !groupIs(t, topic, waits, 2)() {
		t.Error("a member that was stopped waited for the slow one, or did not take leave")
	}
	late.leave(t)
	if !groupIs(t, topic, waits, 2)() {
		t.Error("a member that was stopped before it had partitions waited for the slow one")
	}
}

// TestStopCommits checks that an insert running at a stop is finished and
// committed, and not repeated.
func TestStopCommits(t *testing.T) {
	topic, store := newTopic(t, 1), &heldStore{fakeStore: newFakeStore()}
	store.gate.Lock()
	produce(t, topic, records(1, 100)...)
	m := join(t, store, topic, topic)
	eventually(t, "an insert is under way", func() bool { return store.waiting.Load() > 0 })
	m.cancel()
	if !groupIs(t, topic, "Stable", 1)() {
		t.Error("the member left with an insert under way")
	}
	store.gate.Unlock()
	m.leave(t)
	resp, err := newClient(t).OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{GroupID: topic, Topics: map[string][]int{topic: {0}}})
	if err != nil || len(resp.Topics[topic]) != 1 {
		t.Fatalf("OffsetFetch = %+v, %v", resp, err)
	}
	if r, _ := store.stored(); r == 0 || resp.Topics[topic][0].CommittedOffset != int64(r) {
		t.Errorf("%d records are stored and %d committed", r, resp.Topics[topic][0].CommittedOffset)
	}
}

// TestTopicMadeAgainUnseen deletes a topic and makes it again, with more records than were
// read of the old one, while its reader waits for the store and so asks for none: all of
// the new one is read, by the same collector and by one that continues at the offset which
// was committed after that.
func TestTopicMadeAgainUnseen(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint("restarted ", restarted), func(t *testing.T) {
			topic, store, b := newTopic(t, 1), &heldStore{fakeStore: newFakeStore()}, cluster.Broker(t)
			store.gate.Lock()
			m := join(t, store, topic, topic)
			for n := range int32(2) {
				produce(t, topic, records(int(n)+1, 1)...)
				eventually(t, "an insert is under way", func() bool { return store.waiting.Load() == n+1 })
			}
			produce(t, topic, records(3, 1)...) // for it the reader waits
			eventually(t, "it is read", func() bool { return m.metrics.waiting.total() == 0 })
			if err := b.DeleteTopic(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the topic is made again", func() bool { return b.CreateTopic(t.Context(), kafkatest.Topic{Name: topic}) == nil })
			produce(t, topic, records(101, 20)...)
			if restarted {
				m.cancel() // its inserts are committed
			}
			store.gate.Unlock()
			if restarted {
				m.leave(t)
				m = join(t, store, topic, topic)
			}
			eventually(t, "all of the new topic is stored", func() bool {
				r, _ := store.stored()
				return r >= 22
			})
			m.leave(t)
			found := false
			for g := range store.gaps {
				found = found || g.Reason == "log is another"
			}
			if len(store.gaps) != 1 || !found {
				t.Errorf("gaps %v, want one that says that the log is another", store.gaps)
			}
		})
	}
}

// TestRemovedWhileReading has retention remove records while their reader waits for the store.
func TestRemovedWhileReading(t *testing.T) {
	topic, store := newTopic(t, 1), &heldStore{fakeStore: newFakeStore()}
	store.gate.Lock()
	m := join(t, store, topic, topic)
	for n := range int32(2) {
		produce(t, topic, records(int(n)+1, 1)...)
		eventually(t, "an insert is under way", func() bool { return store.waiting.Load() == n+1 })
	}
	produce(t, topic, records(3, 1)...) // for it the reader waits
	eventually(t, "it is read", func() bool { return m.metrics.waiting.total() == 0 })
	produce(t, topic, records(4, 100)...)
	deleteRecords(t, topic, 50)
	store.gate.Unlock()
	eventually(t, "all that is left is committed", func() bool { return committedOffset(t, m, topic) == 103 })
	m.leave(t)
	want := map[ingest.Gap]bool{{Topic: topic, From: 3, To: 49, Reason: "removed"}: true}
	if diff := cmp.Diff(want, store.gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	if n, _ := store.stored(); n != 3+53 {
		t.Errorf("%d records are stored, want 56", n)
	}
}

// TestLogTruncatedUnseen has a broker lose the last records that were read, as after the
// election of a leader that lacks them, and get more than these before the collector starts
// again: all of the new ones are read, and that records may be missing is a gap.
func TestLogTruncatedUnseen(t *testing.T) {
	topic, store, b := newTopic(t, 1), newFakeStore(), cluster.Broker(t)
	produce(t, topic, records(1, 5)...)
	log, err := os.Stat(b.Log(topic, 0))
	if err != nil {
		t.Fatal(err)
	}
	produce(t, topic, records(6, 5)...)
	m := join(t, store, topic, topic)
	eventually(t, "all is committed", func() bool { return committedOffset(t, m, topic) == 10 })
	m.leave(t)
	b.Kill()
	if err := os.Truncate(b.Log(topic, 0), log.Size()); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	var end int64
	eventually(t, "the topic has a leader, which knows its end", func() bool {
		conn, err := kafka.DialLeader(t.Context(), "tcp", b.Addr, topic, 0)
		if err != nil {
			return false
		}
		defer conn.Close()
		end, err = conn.ReadLastOffset()
		return err == nil
	})
	if end != 5 {
		t.Fatalf("the log ends at %d, want 5", end)
	}
	produce(t, topic, records(11, 20)...)
	m = join(t, store, topic, topic)
	eventually(t, "all is committed", func() bool { return committedOffset(t, m, topic) == 25 })
	m.leave(t)
	if n, _ := store.stored(); n != 30 {
		t.Errorf("%d records are stored, want 30", n)
	}
	want := map[ingest.Gap]bool{{Topic: topic, From: 10, To: 10, Reason: "log is another"}: true}
	if diff := cmp.Diff(want, store.gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}
