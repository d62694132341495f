package alert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"auditproxy/collector/ingest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

const (
	queued     = 2                // batches that wait; each may hold a whole batch's memory
	piece      = 1000             // alerts that are made before they are stored, and those of one record more
	markEvery  = 2 * time.Second  // a mark is written while records are stored; a sweep reads what arrived since
	markIdle   = 3                // times markEvery, after which it is written without any
	lookEvery  = 2 * time.Second  // the marks of others are read
	sweepAgain = 20 * time.Second // after a sweep that failed
	ruleLag    = time.Minute      // a scheduled rule's mark stays behind: the clock of the next run may be behind by less
	staleAfter = 3 * time.Minute  // a mark this old is abandoned; clocks differ by less
	lapsed     = time.Minute      // a mark this old may count as abandoned soon; less than staleAfter by more than clocks differ after aheadMost
	aheadMost  = 2 * time.Minute  // arrival times are ahead of the machine's clock by no more
	aheadBack  = 24 * time.Hour   // how far is read back where a mark is further ahead: it was written by a wrong clock, and what arrived since that was set right is before it
	sayEvery   = time.Minute      // a problem with the mark is logged, if its words change
	sweepFirst = time.Minute      // of arrivals, after which a sweep's progress is kept; of an hour there may be tens of millions
	sweepMost  = time.Hour        // likewise, where slices go well: most of a year has no records that are left
	sweepLeast = time.Second      // likewise, where they fail
	retryFirst = 100 * time.Millisecond
	retryLast  = 10 * time.Second
)

// A Keeper keeps alerts, and how far records are evaluated.
type Keeper interface {
	// InsertAlerts stores new alerts and returns them. An alert whose
	// suppression key is already stored is stored as suppressed.
	InsertAlerts(ctx context.Context, alerts []Alert) ([]Alert, error)
	Marks(ctx context.Context) ([]Mark, error)
	SetMarks(ctx context.Context, marks []Mark) error
	// LatestMark returns the latest time of any mark of a run, also of closed ones.
	LatestMark(ctx context.Context) (time.Time, error)
	// InsertLate stores that records become visible which arrive from one time up to
	// another, which readers may have passed. id identifies the report.
	InsertLate(ctx context.Context, id string, from, upto, now time.Time) error
	// Remember runs a statement that stores what rules have seen, of records that
	// arrived after one time and up to another. It may be repeated. The database's
	// name is ${database} in it.
	Remember(ctx context.Context, sql string, after, upto time.Time) error
}

// Records are the stored records.
type Records interface {
	// Arrived calls do with the records that arrived after one time and up to
	// another, in pages. It ends with the first error of do.
	Arrived(ctx context.Context, after, upto time.Time, do func([]ingest.Row) error) error
}

// An Asker runs the queries of rules.
type Asker interface {
	// Ask calls do with each row of the result of a question. It ends with the
	// first error of do.
	Ask(ctx context.Context, q Question, since time.Time, do func(map[string]any) error) error
}

// A Config configures an Engine.
type Config struct {
	Rules   *Rules  // Required.
	Keeper  Keeper  // Required.
	Records Records // Required.
	Asker   Asker   // Required.
	Name    string  // of this run, unlike that of any other. Required.

	// Dead reports whether the run with a name has certainly ended; it must not
	// block. A run that this cannot know of counts as dead once its mark is old.
	// nil: it knows of none.
	Dead func(name string) bool

	// Stored is called with alerts once they are stored; it must not block.
	// nil: no callback.
	Stored func([]Alert)

	Now     func() time.Time      // nil: time.Now
	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// An Engine evaluates records and stores the alerts.
type Engine struct {
	Config
	queue chan batch
	wake  chan struct{} // signals a full queue

	storing chan struct{} // full while alerts are stored: suppression is decided one insert at a time

	metrics metrics

	mu       sync.Mutex
	latest   time.Time            // that clock has returned; guarded by mu
	dated    time.Time            // At of the last mark; guarded by mu
	lateSaid time.Time            // late arrivals were logged; guarded by mu
	unclear  bool                 // of a batch, as this run ends, is not known whether it is stored; guarded by mu
	lates    uint64               // reports of late arrivals; guarded by mu
	late     period               // reported as a whole; guarded by mu
	passed   time.Time            // the latest mark of any run, as it was read last; guarded by mu
	marked   time.Time            // when the mark that was written last was made; guarded by mu
	number   uint64               // of the last batch; guarded by mu
	pending  map[uint64]arrival   // batches not evaluated yet; guarded by mu
	missed   time.Time            // arrival of the first record that only a sweep will see; zero: none; guarded by mu
	sweeping time.Time            // start of the running sweep; zero: none; guarded by mu
	failed   map[string]int       // failures of a scheduled rule since its last success; guarded by mu
	due      map[string]time.Time // when a scheduled rule was due first since its last success; guarded by mu
	unswept  int                  // sweeps that failed since the last success; guarded by mu

	sound map[string]bool // rules that ran, whose failure is closed; of schedule's goroutine
	swept bool            // a sweep ended, and its failure is closed; of seek's goroutine
	slice time.Duration   // of the next sweep, see sweepFirst; of seek's goroutine

	covered map[string]bool  // dead runs from whose marks on the sweep that failed last was to read; of seek's goroutine
	ahead   map[string]still // open marks that are ahead of this clock, by run; of seek's goroutine
}

// A period is of arrivals. The zero value has none.
type period struct{ from, upto time.Time }

func (p period) has(arrived time.Time) bool { return !arrived.Before(p.from) && !arrived.After(p.upto) }

// still is since when a mark is the same.
type still struct{ at, since time.Time }

// An arrival is a batch that is being stored, or was stored and is in the queue.
type arrival struct {
	at     time.Time
	stored bool
}

// A batch is the records of one insert.
type batch struct {
	number uint64
	rows   []ingest.Row
}

// New checks c and returns an engine.
func New(c Config) (*Engine, error) {
	var problems []error
	if c.Rules == nil {
		problems = append(problems, errors.New("there are no rules"))
	}
	if c.Keeper == nil || c.Records == nil || c.Asker == nil {
		problems = append(problems, errors.New("there is no store"))
	}
	if c.Name == "" {
		problems = append(problems, errors.New("this run has no name"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring alerts: %w", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dead == nil {
		c.Dead = func(string) bool { return false }
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	e := &Engine{
		Config: c, pending: map[uint64]arrival{}, failed: map[string]int{}, due: map[string]time.Time{}, sound: map[string]bool{}, slice: sweepFirst, covered: map[string]bool{}, ahead: map[string]still{},
		queue: make(chan batch, queued), wake: make(chan struct{}, 1), storing: make(chan struct{}, 1), metrics: newMetrics(),
	}
	for _, r := range c.Rules.all {
		if r.Scheduled() {
			e.due[r.Name] = c.Now()
			e.metrics.ruleFailures.WithLabelValues(r.Name)
		}
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(e.metrics.ruleFailures, e.metrics.sweeps, newState(e.lag))
	}
	return e, nil
}

// Register writes this run's first mark, then reads those of the others. It must
// have returned before the first record is stored: without a mark, the records of
// a run that died would not be swept.
//
// The order matters to those who read records in the order of their arrival, up to
// the earliest mark: they see this run's mark, or this run sees how far they were,
// because they were no further than another mark.
func (e *Engine) Register(ctx context.Context) error {
	if err := e.setMark(ctx, false); err != nil {
		return fmt.Errorf("registering for alerts: %w", err)
	}
	if err := e.lookPassed(ctx); err != nil {
		return fmt.Errorf("registering for alerts: %w", err)
	}
	return nil
}

// setMark writes this run's mark.
func (e *Engine) setMark(ctx context.Context, closed bool) error {
	now := e.Now()
	m := e.mark()
	if closed {
		// After one that Run has written. That nothing is after the mark says that
		// this run, and no other for it, has closed it.
		m.At = m.At.Add(time.Millisecond)
		m.Closed, m.Upto = true, m.At
	}
	if err := e.Keeper.SetMarks(ctx, []Mark{m}); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marked = now
	return nil
}

// lookPassed reads how far the marks of all runs are, so that what arrives here
// gets a later time, whatever this machine's clock says. If they are too far ahead for
// that, it reports what arrives until then as late.
func (e *Engine) lookPassed(ctx context.Context) error {
	passed, err := e.Keeper.LatestMark(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	if passed.After(e.passed) {
		e.passed = passed
	}
	now := e.clock()
	far := e.passed.Sub(now) > aheadMost && !e.late.has(now.Truncate(time.Millisecond))
	e.mu.Unlock()
	if far { // at once: when no mark says any more how far readers were, the report does
		return e.reportAhead(ctx)
	}
	return nil
}

// Visible is called once the records that arrived at a time can be read, before
// they are acknowledged, and again until it returns nil. Those who read in the
// order of arrival may have passed that time: this run's mark is old, because the
// process was stopped or the store did not answer, and counted as abandoned; or
// other clocks are far ahead. Then it stores that the records came late. A crash
// before that leaves them unacknowledged, so they arrive again.
func (e *Engine) Visible(ctx context.Context, arrived time.Time) error {
	arrived = arrived.Truncate(time.Millisecond)
	e.mu.Lock()
	now := e.Now()
	age := max(now.Sub(e.marked), now.Round(0).Sub(e.marked.Round(0))) // one of the clocks stands still while a machine sleeps
	stopped := age > lapsed
	late := stopped || !arrived.After(e.passed) && !e.late.has(arrived)
	whole := late && !stopped && e.passed.Sub(arrived) > aheadMost
	say := late && !whole && now.Sub(e.lateSaid).Abs() > time.Minute
	if say {
		e.lateSaid = now
	}
	e.mu.Unlock()
	switch {
	case !late:
		return nil
	case whole:
		return e.reportAhead(ctx)
	case say:
		e.Log.Warn("records became visible late; exports read them again", zap.Time("arrived", arrived))
	}
	return e.insertLate(ctx, period{arrived, arrived})
}

// insertLate reports a period.
func (e *Engine) insertLate(ctx context.Context, p period) error {
	e.mu.Lock()
	e.lates++
	id := fmt.Sprintf("%s %d", e.Name, e.lates)
	e.mu.Unlock()
	return e.Keeper.InsertLate(ctx, id, p.from, p.upto, e.Now())
}

// reportAhead reports all that arrives here from now on, up to the latest mark of any
// run, as late: that mark is of a clock that was far ahead, and a report for each insert
// would be a row for each until then. Readers read such a period up to the marks of
// running collectors, so this run's mark must be one before the period.
func (e *Engine) reportAhead(ctx context.Context) error {
	if err := e.setMark(ctx, false); err != nil {
		return err
	}
	e.mu.Lock()
	p := period{e.clock().Truncate(time.Millisecond), e.passed}
	for _, a := range e.pending {
		p.from = earliest(p.from, a.at.Truncate(time.Millisecond))
	}
	e.mu.Unlock()
	if err := e.insertLate(ctx, p); err != nil {
		return err
	}
	e.Log.Warn("a clock was ahead; exports read again what arrives until the time that it had", zap.Time("from", p.from), zap.Time("until", p.upto))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = p
	return nil
}

// Begin is called before records are stored. It returns their arrival time, which
// is stored with them: no mark that was written before has passed it. The function
// that it returns is called once they are stored, before they are acknowledged, or
// with nil if they are not, or that is not known, because this run ends. Neither blocks.
func (e *Engine) Begin() (arrived time.Time, end func(stored []ingest.Row)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	arrived = e.clock()
	e.number++
	number := e.number
	e.pending[number] = arrival{at: arrived}
	return arrived, func(stored []ingest.Row) {
		if len(stored) > 0 {
			e.mu.Lock()
			e.pending[number] = arrival{arrived, true}
			e.mu.Unlock()
			select {
			case e.queue <- batch{number, stored}:
				return
			default:
			}
		}
		e.drop(number, stored)
	}
}

// drop forgets a batch that is not in the queue. Its records are after the mark if
// they may be stored.
func (e *Engine) drop(number uint64, stored []ingest.Row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	arrived := e.pending[number].at
	delete(e.pending, number)
	switch {
	case stored == nil:
		e.unclear = true // the last mark was written while it was pending, and stays as it is
	case len(stored) > 0:
		e.missed = earliest(e.missed, arrived)
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// earliest returns the earlier of two times; a zero time does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// clock returns the machine's time, but never one before a mark, of this run or another:
// records that arrive after a mark was written must have a later time. It stands still
// after the machine's clock is set back a little. Where it would be aheadMost ahead
// of the machine's clock, that clock must have been wrong, and the time is the machine's
// again: otherwise those who read in the order of arrival would read nothing until then.
// See Visible. The caller holds mu.
func (e *Engine) clock() time.Time {
	// Without the monotonic reading, by which times of one process are compared.
	now := e.Now().Round(0)
	if ahead := e.latest.Sub(now); ahead > aheadMost {
		e.latest = time.Time{}
		e.number++ // a mark is written soon
		e.Log.Warn("the clock was set back; what arrives from now on has its time", zap.Duration("by", ahead))
	}
	if ahead := e.passed.Sub(now); ahead >= 0 && ahead <= aheadMost {
		now = e.passed.Add(time.Millisecond)
	}
	if now.After(e.latest) {
		e.latest = now
	}
	return e.latest
}

// before returns the last time, in the store's resolution, before which nothing
// arrives that arrives at a time or later.
func before(t time.Time) time.Time { return t.Truncate(time.Millisecond).Add(-time.Millisecond) }

// mark returns this run's mark.
func (e *Engine) mark() Mark {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock()
	upto := earliest(e.missed, e.sweeping)
	for _, a := range e.pending {
		upto = earliest(upto, a.at)
	}
	at := now
	if !at.After(e.dated) { // of marks with one name, the latest counts
		at = e.dated.Add(time.Millisecond)
	}
	e.dated = at
	return Mark{Name: e.Name, Kind: MarkRun, Upto: before(earliest(upto, now)), At: at}
}

// idle reports whether this run leaves nothing for a sweep.
func (e *Engine) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.pending) == 0 && e.missed.IsZero() && e.sweeping.IsZero() && !e.unclear
}

// lag returns what is not evaluated now.
func (e *Engine) lag() lag {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock()
	l := lag{failingRules: len(e.failed), failingSweeps: e.unswept, overdue: map[string]time.Duration{}}
	for rule, due := range e.due {
		l.overdue[rule] = e.Now().Sub(due) // not by a clock that is set
	}
	oldest := earliest(e.missed, e.sweeping)
	for _, a := range e.pending {
		if a.stored {
			oldest = earliest(oldest, a.at)
		}
	}
	if !oldest.IsZero() {
		l.oldest = now.Sub(oldest)
	}
	return l
}

// evaluate gives the alerts of rows to store, and ends with its first error. A producer
// chooses how many alerts they are, and all of one batch need several times its memory.
func (e *Engine) evaluate(rows []ingest.Row, store func([]Alert) error) error {
	var alerts []Alert
	for i := range rows {
		alerts = append(alerts, e.Rules.Match(&rows[i])...)
		if len(alerts) >= piece || i == len(rows)-1 {
			if err := store(alerts); err != nil {
				return err
			}
			alerts = nil
		}
	}
	return nil
}

// Raise stores an alert that no rule found, or the end of one.
func (e *Engine) Raise(ctx context.Context, a Alert) error { return e.store(ctx, []Alert{a}) }

// store stores alerts and calls Stored with the new ones.
func (e *Engine) store(ctx context.Context, alerts []Alert) error {
	if len(alerts) == 0 {
		return nil
	}
	select {
	case e.storing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	stored, err := e.Keeper.InsertAlerts(ctx, alerts)
	<-e.storing
	// After a crash here, the deliverer finds the alerts in the store.
	if len(stored) > 0 && e.Stored != nil {
		e.Stored(stored)
	}
	return err
}
