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

// MaxUser is how many counters of scope User one server has. Calls that need another
// one are denied.
const MaxUser = 1023

// Idle is after how many seconds the last window of a counter, and the one before
// it, say nothing about a call, however long windows are.
const Idle = 2 * maxWindow

// maxWindow is the length of the longest window, in seconds.
const maxWindow = 366 * 86400

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
	ErrBusy    = errors.New("its counter is locked by another process")
	ErrCounter = errors.New("its counter cannot be used")
)

// skew is how far the time of an Update may lie before the window that a
// counter already has: calls of several processes wait for each other at its
// edge. They count in their own window. A clock that goes back further is
// ErrClock.
const skew = 2 * time.Second

// A Count is what a counter has in its last window, and in the one before.
type Count struct {
	Start         int64 // of the last window, in seconds of Unix
	Value, Before int64
}

// At returns the count for a call at a time, and the window and the value that
// hold for that call. c is zero, or At returned it.
func (c Count) At(at time.Time, window int64) (count Count, start, value int64, err error) {
	start = windowStart(at, window)
	switch {
	case start == c.Start:
		return c, start, c.Value, nil
	case start == c.Start+window:
		return Count{start, 0, c.Value}, start, 0, nil
	case start > c.Start || c == Count{}:
		return Count{start, 0, 0}, start, 0, nil
	case start == c.Start-window && at.Add(skew).Unix() >= c.Start:
		return c, start, c.Before, nil
	}
	return c, 0, 0, ErrClock
}

// Add returns c with an amount, at least 0, in a window that At returned.
func (c Count) Add(start, amount int64) Count {
	value := &c.Value
	if start != c.Start {
		value = &c.Before
	}
	*value = sum(*value, amount)
	return c
}

// Less returns c without an amount that was added in the window from start.
func (c Count) Less(start, window, amount int64) Count {
	switch start {
	case c.Start:
		c.Value = max(c.Value-amount, 0)
	case c.Start - window:
		c.Before = max(c.Before-amount, 0)
	}
	return c
}

// sum is a + b, or the largest number. Both are at least 0.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
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
		var err error
		if counts[i], c.Start, values[i], err = m.counts[memoryKey{c.Scope, c.Key}].At(at, c.Window); err != nil {
			return err
		}
	}
	if !decide(values) {
		return nil
	}
	if m.counts == nil {
		m.counts = map[memoryKey]Count{}
	}
	for i, c := range counters {
		m.counts[memoryKey{c.Scope, c.Key}] = counts[i].Add(c.Start, c.Amount)
	}
	return nil
}

// Release implements Counters. It returns nil.
func (m *Memory) Release(counters []Counter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range counters {
		if last, known := m.counts[memoryKey{c.Scope, c.Key}]; known {
			m.counts[memoryKey{c.Scope, c.Key}] = last.Less(c.Start, c.Window, c.Amount)
		}
	}
	return nil
}
