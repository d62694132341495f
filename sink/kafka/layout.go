package kafka

import (
	"hash/fnv"
	"slices"
	"time"

	"auditproxy/schemas/audit"
)

// A layout is the partitions of a topic, as this process has seen them. A session that
// began before partitions were added stays in its own, so that its records stay in
// order; where the topic was made again with fewer, all move.
type layout struct {
	leaders []string // host:port, by partition, "" if there is none now; nil: not known
	seen    int      // partitions, as last known; 0: not yet
	smaller []smaller
}

// smaller is a number of partitions before some were added.
type smaller struct {
	partitions int
	until      time.Time // it was seen to be larger
}

// set takes what was looked up at a time. Partitions that were just added, and have no
// leader yet, are left out.
func (l *layout) set(leaders []string, now time.Time) {
	if l.seen > 0 && len(leaders) > l.seen && slices.Contains(leaders[l.seen:], "") {
		leaders = leaders[:l.seen]
	}
	switch n := len(leaders); {
	case n < l.seen:
		l.smaller = nil
	case l.seen > 0 && n > l.seen:
		l.smaller = append(l.smaller, smaller{l.seen, now})
	}
	l.leaders, l.seen = leaders, len(leaders)
}

// partition returns the partition of a session, by the time in its id.
func (l *layout) partition(session string) int {
	n := l.seen
	if len(l.smaller) > 0 {
		began := audit.TimeOfID(session)
		for _, s := range l.smaller {
			if began.Before(s.until) {
				n = s.partitions
				break
			}
		}
	}
	return partitionOf(session, n)
}

// partitionOf spreads sessions as other Kafka clients for Go do.
func partitionOf(session string, partitions int) int {
	h := fnv.New32a()
	h.Write([]byte(session))
	partition := int32(h.Sum32()) % int32(partitions)
	return int(max(partition, -partition))
}
