package collector

import (
	"slices"
	"sync"
	"time"
)

// maxEnds bounds the memory for a partition that is far behind.
const maxEnds = 128

// unread has the ends of partitions beyond what is acknowledged, and when they
// were first seen, so that the age of what waits is known over rebalances and
// while the brokers do not answer. The times are the collector's own: those of
// records come from input.
type unread struct {
	mu sync.Mutex
	of map[any]*unreadPartition // by the partition's key; guarded by mu
}

// An unreadPartition is acknowledged up to an offset.
type unreadPartition struct {
	acked int64
	ends  []seenEnd // beyond acked, ascending
}

// A seenEnd is an end of a partition, and when it was first seen.
type seenEnd struct {
	end int64
	at  time.Time
}

// acked returns the partition with a key that is acknowledged up to an offset.
func (u *unread) acked(id any, upto int64) *unreadPartition {
	p := u.of[id]
	if p == nil {
		p = &unreadPartition{}
		if u.of == nil {
			u.of = map[any]*unreadPartition{}
		}
		u.of[id] = p
	}
	p.acked = max(p.acked, upto)
	p.ends = slices.DeleteFunc(p.ends, func(e seenEnd) bool { return e.end <= p.acked })
	return p
}

// ack notes that a partition is acknowledged up to an offset.
func (u *unread) ack(id any, upto int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.acked(id, upto)
}

// see notes the end of a partition that has nothing before first.
func (u *unread) see(id any, first, end int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.of[id]; p != nil && end < p.acked {
		delete(u.of, id) // the topic was made again
	}
	p := u.acked(id, first)
	if n := len(p.ends); end > p.acked && (n == 0 || end > p.ends[n-1].end) {
		p.ends = append(p.ends, seenEnd{end, time.Now()})
	}
	if len(p.ends) > maxEnds {
		kept := p.ends[:0]
		for i := 0; i < len(p.ends); i += 2 { // the first, which is the oldest, stays
			kept = append(kept, p.ends[i])
		}
		p.ends = kept
	}
}

// keep forgets the partitions that others read now.
func (u *unread) keep(ids map[any]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id := range u.of {
		if !ids[id] {
			delete(u.of, id)
		}
	}
}

// age returns the age of the oldest record that is not acknowledged.
func (u *unread) age() (oldest time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.of {
		if len(p.ends) > 0 {
			oldest = max(oldest, time.Since(p.ends[0].at))
		}
	}
	return oldest
}
