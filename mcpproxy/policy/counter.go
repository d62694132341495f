package policy

import (
	"errors"
	"math"
	"sync"
	"time"
)

// A Scope is who shares a counter.
type Scope string

// The scopes of limits. "grant", the word of hosted policies, is User.
const (
	Session Scope = "session" // one run of the proxy
	User    Scope = "user"    // all sessions of this user with this server on this host
)

// A Counter is a number of calls, or a sum of arguments, in one window.
type Counter struct {
	Scope  Scope
	Key    string // names the limit within the policy and its window
	Window int64  // seconds, at least 1

	Start  int64 // of the window that counts, in seconds of Unix; set by Update
	Amount int64 // what the call adds, at least 0

	refund bool // a JSON-RPC error gives the amount back
}

// Counters keep the counts of limits. Their methods may be called concurrently.
type Counters interface {
	// Update gives decide the values that the counters have in their windows at
	// a time, in order. If decide returns true, it adds to each counter its
	// Amount, which decide may have set. No other Update comes between. All
	// counters change or none. The keys of one scope differ.
	//
	// The error wraps one of the errors below where it applies. After an error
	// the counters may have changed: too much is counted, never too little.
	Update(at time.Time, counters []Counter, decide func(values []int64) bool) error

	// Release takes back what Update added, from the windows that it was added
	// to and no others.
	Release(counters []Counter) error
}

// Errors of counters. Their texts are shown to agents.
var (
	ErrDamaged = errors.New("its counter is damaged")
	ErrFull    = errors.New("its counter cannot be written")
	ErrForeign = errors.New("its counter is not this user's own file")
	ErrClock   = errors.New("the clock went back")
	ErrCounter = errors.New("its counter cannot be used")
)

// Skew is how far the time of an Update may lie before the window that a
// counter already has. Calls that wait for each other at the edge of a window
// count in the later one; a clock that goes back further is ErrClock.
const Skew = 2 * time.Second

// A Count is the value of a counter in its last window.
type Count struct{ Start, Value int64 }

// At returns the count in the window at a time: c, or zero in a later window.
func (c Count) At(at time.Time, window int64) (Count, error) {
	start := windowStart(at, window)
	switch {
	case start > c.Start:
		return Count{Start: start}, nil
	case start < c.Start && at.Add(Skew).Unix() < c.Start:
		return Count{}, ErrClock
	}
	return c, nil
}

// Add returns c with a counter's amount, which is at least 0.
func (c Count) Add(amount int64) Count {
	if c.Value > math.MaxInt64-amount {
		return Count{c.Start, math.MaxInt64}
	}
	return Count{c.Start, c.Value + amount}
}

// Less returns c without an amount that was added in the window from start.
func (c Count) Less(start, amount int64) Count {
	if c.Start != start {
		return c
	}
	return Count{c.Start, max(c.Value-amount, 0)}
}

// windowStart is the start of the window at a time, in seconds of Unix. Minutes,
// hours and days of UTC are multiples of their seconds.
func windowStart(at time.Time, window int64) int64 {
	s := at.Unix()
	return s - ((s%window)+window)%window
}

// Memory keeps counters of all scopes for one process. Its zero value is ready.
type Memory struct {
	mu     sync.Mutex
	counts map[memoryKey]Count // owned by mu
}

type memoryKey struct {
	scope Scope
	key   string
}

// Update implements Counters. Its only error is ErrClock.
func (m *Memory) Update(at time.Time, counters []Counter, decide func(values []int64) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make([]Count, len(counters))
	values := make([]int64, len(counters))
	for i := range counters {
		c := &counters[i]
		last, known := m.counts[memoryKey{c.Scope, c.Key}]
		if !known {
			last.Start = math.MinInt64
		}
		var err error
		if counts[i], err = last.At(at, c.Window); err != nil {
			return err
		}
		c.Start, values[i] = counts[i].Start, counts[i].Value
	}
	if !decide(values) {
		return nil
	}
	if m.counts == nil {
		m.counts = map[memoryKey]Count{}
	}
	for i, c := range counters {
		m.counts[memoryKey{c.Scope, c.Key}] = counts[i].Add(c.Amount)
	}
	return nil
}

// Release implements Counters. It returns nil.
func (m *Memory) Release(counters []Counter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range counters {
		if last, known := m.counts[memoryKey{c.Scope, c.Key}]; known {
			m.counts[memoryKey{c.Scope, c.Key}] = last.Less(c.Start, c.Amount)
		}
	}
	return nil
}
