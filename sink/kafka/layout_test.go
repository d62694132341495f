package kafka

import (
	"slices"
	"testing"
	"time"

	"auditproxy/schemas/audit"
)

// TestLayout has sessions stay in their partitions while some are added, and later ones
// use all.
func TestLayout(t *testing.T) {
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var first, second, third []string // sessions
	for i := range 100 {
		at := time.Duration(i) * time.Second
		first, second, third = append(first, audit.NewID(noon.Add(at))), append(second, audit.NewID(noon.Add(time.Hour+at))), append(third, audit.NewID(noon.Add(2*time.Hour+at)))
	}
	first = append(first, "one that is no UUID")
	var l layout
	check := func(sessions []string, partitions int) {
		t.Helper()
		used := map[int]bool{}
		for _, s := range sessions {
			p := l.partition(s)
			used[p] = true
			if p != partitionOf(s, partitions) {
				t.Errorf("session %s is in partition %d, want that of %d partitions", s, p, partitions)
			}
		}
		if len(used) != partitions {
			t.Errorf("%d partitions are used, want %d", len(used), partitions)
		}
	}
	led := func(n int) []string { return slices.Repeat([]string{"broker:9092"}, n) }
	l.set(led(2), noon)
	check(first, 2)
	l.set(append(led(3), ""), noon.Add(time.Minute)) // a new one has no leader yet
	check(first, 2)
	l.set(led(4), noon.Add(time.Hour))
	l.set(led(4), noon.Add(time.Hour+time.Minute)) // looked up again
	check(first, 2)
	check(second, 4)
	l.set(led(8), noon.Add(2*time.Hour))
	check(first, 2)
	check(second, 4)
	check(third, 8)
	l.set(led(3), noon.Add(3*time.Hour)) // the topic was made again
	check(first, 3)
	check(third, 3)
}

// TestAbandoned has a partition fail that no session tries any more, as after the topic
// was made again with other partitions: it does not count as stalled for ever.
func TestAbandoned(t *testing.T) {
	p, err := New(Config{Access: Access{Brokers: []string{"127.0.0.1:9"}}, Topic: "t", Source: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := NewBatcher(p, BatcherConfig{AtOnce: 1})
	for _, partition := range []int{0, 1} {
		l := newLane(partition)
		b.lanes[partition] = l
		b.fail(l, leaderNotAvailable)
	}
	if wait := b.send(t.Context()); wait > abandoned+retryLast || p.Stats().Stalled == "" {
		t.Errorf("at once, it looks again in %v, stalled %q", wait, p.Stats().Stalled)
	}
	b.lanes[0].retry = time.Now().Add(-abandoned)
	b.send(t.Context())
	if p.Stats().Stalled == "" || len(b.lanes) != 1 {
		t.Error("while another partition fails, it does not count as stalled")
	}
	b.lanes[1].retry = time.Now().Add(-abandoned)
	b.send(t.Context())
	if got := p.Stats().Stalled; got != "" || len(b.lanes) != 0 {
		t.Errorf("nothing waits, and it is stalled: %q", got)
	}
}
