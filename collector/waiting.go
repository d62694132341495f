package collector

import "sync"

// A backlogs counts the records that wait in sources. What a source has is not known
// while it does not answer, and does not count.
type backlogs struct {
	mu sync.Mutex
	of map[any]int64 // by the source's key; guarded by mu
}

func (b *backlogs) set(key any, records int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[any]int64{}
	}
	b.of[key] = records
}

func (b *backlogs) forget(key any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, key)
}

func (b *backlogs) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.of)
}

func (b *backlogs) total() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.of {
		n += one
	}
	return n
}
