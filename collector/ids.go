package collector

import (
	"sync"

	"auditproxy/collector/brokers"
)

// topicIDs are the ids of topics by name, as they were when a partition of it was assigned,
// or since another one was seen twice in a row: brokers learn one after another that a
// topic was made again.
type topicIDs struct {
	mu sync.Mutex
	of map[string]*topicID // guarded by mu
}

type topicID struct{ is, may brokers.TopicID } // may: seen once

// isOther reports whether two ids are known, and not the same.
func isOther(a, b brokers.TopicID) bool {
	none := brokers.TopicID{}
	return a != b && a != none && b != none
}

// is returns the id of a topic; zero: it is not known.
func (t *topicIDs) is(topic string) brokers.TopicID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := t.of[topic]; id != nil {
		return id.is
	}
	return brokers.TopicID{}
}

// set sets the id of a topic.
func (t *topicIDs) set(topic string, id brokers.TopicID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]*topicID{}
	}
	t.of[topic] = &topicID{is: id}
}

// see notes the id that a broker says a topic has.
func (t *topicIDs) see(topic string, id brokers.TopicID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now := t.of[topic]; {
	case now == nil:
	case id == now.may:
		now.is = id
	case id == now.is:
		now.may = brokers.TopicID{}
	default:
		now.may = id
	}
}
