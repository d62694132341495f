package brokers

import "sync"

// IDs are the ids of topics by name, as they were when a partition of it was assigned,
// or since another one was seen twice in a row: brokers learn one after another that a
// topic was made again.
type IDs struct {
	mu sync.Mutex
	of map[string]*topicID // guarded by mu
}

type topicID struct{ is, may TopicID } // may: seen once

// IsOther reports whether two ids are known, and not the same.
func IsOther(a, b TopicID) bool {
	none := TopicID{}
	return a != b && a != none && b != none
}

// Is returns the id of a topic; zero: it is not known.
func (t *IDs) Is(topic string) TopicID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := t.of[topic]; id != nil {
		return id.is
	}
	return TopicID{}
}

// Set sets the id of a topic.
func (t *IDs) Set(topic string, id TopicID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]*topicID{}
	}
	t.of[topic] = &topicID{is: id}
}

// See notes the id that a broker says a topic has.
func (t *IDs) See(topic string, id TopicID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now := t.of[topic]; {
	case now == nil:
	case id == now.may:
		now.is = id
	case id == now.is:
		now.may = TopicID{}
	default:
		now.may = id
	}
}
