package export

import (
	"sync"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"

	"go.uber.org/zap"
)

// An Engine sends records to receivers. Use it once.
type Engine struct {
	c          Config
	deliveries []*delivery
	metrics    metrics

	mu      sync.Mutex
	horizon horizon // guarded by mu
}

// A horizon is how far records can be read.
type horizon struct {
	upto time.Time // zero: not known yet
	last time.Time // no record that can be read arrived later
	held bool      // records arrived after upto, which has not moved for long
	news News
}

func (e *Engine) now() horizon {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.horizon
}

const (
	readFirst  = 16             // records that one query reads, of a receiver that may not take them
	readMost   = 50_000         // and at most
	expiredFor = 24 * time.Hour // that records may have been removed is exported for so long
)

// none is the news of which nothing was seen.
const none = ^uint64(0)

// A delivery is a receiver and its progress. Its goroutine reads and sends.
type delivery struct {
	e            *Engine
	name, format string
	since        time.Time
	r            Receiver
	log          *zap.Logger
	wake         chan struct{}

	// Of run's goroutine.
	limit  int               // records that the next query reads
	batch  []receiver.Record // those that the filter leaves
	most   int               // records that are sent at once at most
	piece  int               // records that are sent next; fewer after a refusal
	well   int               // sends of so many that were taken in a row
	good   []receiver.Record // one that the receiver took; none yet
	streak int               // records that it refused since it took one

	lateOpen bool // late records may come without another report of them

	mu        sync.Mutex // guards all below
	mark      Mark
	kept      time.Time // when this collector stored the mark last, by its clock
	theirAt   time.Time // At of the stored mark, as it was read last
	theirSeen time.Time // when it was first read with that
	sending   bool      // this collector owns the mark
	changed   bool      // the mark was not stored
	epoch     uint64    // changes whenever sending or its mark is taken from elsewhere
	lateSeen  uint64    // News.Late that was sent
	askedSeen uint64
	waiting   uint64 // records after the position, when they were counted
	counted   time.Time
	expiredAt time.Time // when records were last found to be gone, perhaps
	raised    *bool     // what the alert says; nil: not known
}

func newDelivery(e *Engine, r Receiver) *delivery {
	return &delivery{
		e: e, name: r.Name, format: r.Format, since: r.Since.Truncate(time.Millisecond), r: r,
		log: e.c.Log.With(zap.String("receiver", r.Name)), wake: make(chan struct{}, 1),
		limit: readFirst, most: source.Page, piece: source.Page, lateSeen: none, askedSeen: none,
	}
}

// behind returns a position, and whether the receiver lacks something after it.
func (d *delivery) behind(h horizon) (source.Position, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mark.Position.Arrived.IsZero() && !d.sending {
		return d.mark.Position, false // not known yet
	}
	if held := source.Upto(h.upto); h.held && held.Arrived.Before(d.mark.Position.Arrived) {
		return held, true // the position is of a clock that was ahead
	}
	return d.mark.Position, h.held || d.mark.Position.Arrived.Before(source.Upto(h.last).Arrived)
}
