package alert

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"

	"go.uber.org/zap"
)

// keep moves this run's mark, also during a sweep: others take a mark that stands
// still for that of a dead run. A problem is logged once while it lasts, and again where
// it is told in other words: of the store's errors some have the name of a new part.
func (e *Engine) keep(ctx context.Context) {
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	written, said, saidAt := uint64(0), "", time.Time{}
	for idle := markIdle; ; idle++ {
		e.mu.Lock()
		number := e.number
		e.mu.Unlock()
		if idle >= markIdle || number != written {
			if err := errors.Join(e.setMark(ctx, false), e.lookPassed(ctx)); err == nil {
				idle, written, said = 0, number, ""
			} else if ctx.Err() == nil && (said == "" || err.Error() != said && time.Since(saidAt) >= sayEvery) {
				said, saidAt = err.Error(), time.Now()
				e.Log.Warn("the mark of what is evaluated was not written", zap.Error(err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// seek sweeps records that were not evaluated: at the start those of other runs,
// later those that a full queue refused and those of dead runs.
func (e *Engine) seek(ctx context.Context) {
	for first := true; ; {
		err := e.catchUp(ctx, first)
		e.tellSweep(ctx, err)
		pause := sweepAgain
		if err == nil {
			first, pause = false, lookEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-e.wake:
		}
	}
}

// tellSweep counts a sweep. As with rules, one failure may be the store's, and
// another one raises an alert, which closes with the next success.
func (e *Engine) tellSweep(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	e.unswept++
	if err == nil {
		e.unswept = 0
	}
	failures, from := e.unswept, earliest(e.sweeping, e.missed)
	e.mu.Unlock()
	e.metrics.tellSweep(err)
	a := sweepCannotRun(earliest(from, e.Now()), e.Now(), err)
	if err != nil {
		e.swept = false
		e.Log.Warn("alerts are not evaluated up to now; the next sweep goes on", zap.Error(err))
		if failures < failuresToTell {
			return
		}
	} else if a.Extent = 0; e.swept {
		return
	}
	if storeErr := e.store(ctx, []Alert{a}); storeErr != nil {
		e.Log.Warn("the alert about sweeps was not stored", zap.Error(storeErr))
		return
	}
	e.swept = err == nil
}

// catchUp sweeps from the first missed record, and then closes abandoned
// marks; a crash in between repeats the sweep.
func (e *Engine) catchUp(ctx context.Context, first bool) error {
	marks, err := e.Keeper.Marks(ctx)
	if err != nil {
		return err
	}
	var left []Mark
	from := e.takeMissed()
	for _, m := range marks {
		if m.Kind != MarkRun || m.Closed || m.Name == e.Name {
			continue
		}
		dead := e.isStale(m) || e.Dead(m.Name)
		if !dead {
			delete(e.covered, m.Name) // it may store more, with a clock that is behind
		} else {
			left = append(left, m)
			// A sweep that failed goes on where it came to. A run that is dead since
			// before it began stored nothing that it has not read.
			if e.covered[m.Name] {
				continue
			}
			e.covered[m.Name] = true
		}
		// A restart is the common case: the last run's records are evaluated
		// now, not when its mark is old.
		if dead || first {
			from = earliest(from, e.notAhead(m.Upto))
		}
	}
	if from.IsZero() {
		return nil
	}
	if err := e.sweep(ctx, from); err != nil {
		return err
	}
	clear(e.covered)
	for i := range left {
		left[i].Closed, left[i].At = true, left[i].At.Add(time.Millisecond) // of marks with one name, the latest counts
		if now := e.Now(); now.After(left[i].At) {
			left[i].At = now
		}
	}
	if len(left) == 0 {
		return nil
	}
	return e.Keeper.SetMarks(ctx, left)
}

// isStale reports whether a run has written no mark for long. A mark that is ahead of this
// clock was written by a clock that is wrong, or was: it is old once it has been the same
// for that long.
func (e *Engine) isStale(m Mark) bool {
	now := e.Now()
	if now.Sub(m.At) > -aheadMost {
		delete(e.ahead, m.Name)
		return now.Sub(m.At) > staleAfter
	}
	seen, ok := e.ahead[m.Name]
	if !ok || !seen.at.Equal(m.At) {
		seen = still{m.At, now}
		e.ahead[m.Name] = seen
	}
	return now.Sub(seen.since) > staleAfter
}

// notAhead returns how far all was seen, of a mark that says so: a mark that is ahead of
// this clock does not say what arrived since the clock that it was written by was set
// right. Nothing is found twice that is read again.
func (e *Engine) notAhead(upto time.Time) time.Time {
	if now := e.Now(); upto.Sub(now) > aheadMost {
		return now.Add(-aheadBack).Round(0)
	}
	return upto
}

// takeMissed returns the arrival of the first record that a full queue
// refused. It stays recorded until a sweep has read them.
func (e *Engine) takeMissed() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.missed.IsZero() {
		e.sweeping = earliest(e.sweeping, before(e.missed))
		e.missed = time.Time{}
	}
	return e.sweeping
}

// sweep evaluates the records that arrived after a time, slice by slice. A slice
// that fails is read again from its start: a store that has not the time or the
// memory for a long one may have it for a shorter one.
func (e *Engine) sweep(ctx context.Context, from time.Time) error {
	e.mu.Lock()
	e.sweeping = earliest(e.sweeping, from)
	e.mu.Unlock()
	records := 0
	for last := false; !last; {
		upto := from.Add(e.slice)
		if last = upto.After(e.Now()); last {
			upto = from.Add(10 * 365 * 24 * time.Hour) // another collector's clock may be ahead
		}
		err := e.Records.Arrived(ctx, from, upto, func(rows []ingest.Row) error {
			records += len(rows)
			return e.evaluate(rows, func(alerts []Alert) error { return e.store(ctx, alerts) })
		})
		if err != nil {
			e.slice = max(e.slice/8, sweepLeast)
			return fmt.Errorf("evaluating what arrived after %s: %w", from.Format(time.RFC3339), err)
		}
		e.slice = min(2*e.slice, sweepMost)
		from = upto
		e.mu.Lock()
		e.sweeping = from
		if last {
			e.sweeping = time.Time{}
		}
		e.mu.Unlock()
	}
	e.Log.Info("evaluated what was left", zap.Int("records", records))
	return nil
}

const (
	failuresToTell = 2               // failures in a row after which a rule has an alert; one may be the store's
	askAgain       = time.Minute     // after the first failure
	keepAfter      = 5 * time.Second // of asking, the marks are written
)

// schedule runs the queries of the scheduled rules.
func (e *Engine) schedule(ctx context.Context) {
	due := map[string]time.Time{} // time of a rule's next run
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := e.ask(ctx, due); err != nil && ctx.Err() == nil {
			e.Log.Warn("scheduled rules wait", zap.Error(err))
			if wait.For(ctx, retryLast) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask runs the queries that are due. A rule's mark is kept in the store and stays
// behind the marks of the runs: later records may still be stored by any of them,
// and by a run that begins with another clock. Of several collectors one asks; two
// that begin at once both do, and find the same.
//
// Marks are written together, because each write is a part of a table. If the queries
// take long, they are written in between: what was asked counts if this collector
// ends, and the others leave it out.
func (e *Engine) ask(ctx context.Context, due map[string]time.Time) error {
	var rules []*Rule
	for _, r := range e.Rules.all {
		left := due[r.Name].Sub(e.Now())
		if r.Scheduled() && (left <= 0 || left > r.Every*11/10) { // the clock was set back
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	marks, err := e.questions(ctx)
	if err != nil {
		return err
	}
	// Two that ask at once ask different rules.
	rand.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	p, kept := pass{}, e.Now()
	for _, r := range rules {
		if e.asksAnother(r, marks.asked[r.Name], due) {
			continue
		}
		due[r.Name] = e.Now().Add(r.Every)
		from, known := marks.since[r.Name]
		if !known {
			from = marks.upto
		}
		from = e.notAhead(from)
		if _, err := e.askOne(ctx, r, from, marks.seen); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// The rule may be at fault: the others run all the same.
			e.Log.Warn("a scheduled rule was not answered; it is asked again", zap.String("rule", r.Name), zap.Error(err))
			if e.fails(r.Name) < failuresToTell {
				due[r.Name] = e.Now().Add(min(r.Every, askAgain))
				continue
			}
			if err := e.store(ctx, []Alert{r.cannotRun(marks.since[r.Name], e.Now(), err)}); err != nil {
				return err
			}
			continue
		}
		p.runs = append(p.runs, e.runs(r)...)
		m := Mark{Name: r.Name, Kind: MarkRule, Upto: marks.upto, At: e.Now()}
		if asked := marks.asked[r.Name]; !m.At.After(asked) { // by a clock that was ahead
			m.At = asked.Add(time.Millisecond)
		}
		if from.After(m.Upto) { // of a run that has just started or has died
			m.Upto = from
		}
		p.rules, p.marks = append(p.rules, r), append(p.marks, m)
		if r.FirstSeen != nil && !marks.seen[r.seenName()] {
			p.marks = append(p.marks, SeenMark(r, from, e.Now()))
		}
		if e.Now().Sub(kept) < keepAfter {
			continue
		}
		if err := e.finish(ctx, p, due); err != nil {
			return err
		}
		if marks, err = e.questions(ctx); err != nil {
			return err
		}
		p, kept = pass{}, e.Now()
	}
	return e.finish(ctx, p, due)
}

// questions are what the store knows of scheduled rules.
type questions struct {
	upto  time.Time            // the arrival time up to which all is stored
	since map[string]time.Time // up to which a rule has seen all
	asked map[string]time.Time // when it ran
	seen  map[string]bool      // see SeenMark
}

func (e *Engine) questions(ctx context.Context) (questions, error) {
	marks, err := e.Keeper.Marks(ctx)
	q := questions{e.mark().Upto, map[string]time.Time{}, map[string]time.Time{}, map[string]bool{}}
	for _, m := range marks {
		switch {
		case m.Kind == MarkRule:
			q.since[m.Name], q.asked[m.Name] = m.Upto, m.At
		case m.Kind == MarkSeen:
			q.seen[m.Name] = true
		case m.Kind == MarkRun && !m.Closed:
			q.upto = earliest(q.upto, m.Upto)
		}
	}
	q.upto = q.upto.Add(-ruleLag)
	return q, err
}

// asksAnother reports whether another collector asks r, which was asked at a time.
func (e *Engine) asksAnother(r *Rule, asked time.Time, due map[string]time.Time) bool {
	age := e.Now().Sub(asked)
	if age < 0 || age > r.Every*9/10 || !e.sound[r.Name] {
		return false
	}
	due[r.Name] = asked.Add(r.Every * 11 / 10) // the other one is due first, unless it ended
	e.ran([]*Rule{r}, due)
	return true
}

// A pass is rules that ran, but for what the store is to know of it.
type pass struct {
	rules []*Rule
	marks []Mark
	runs  []Alert // which end the alerts that they could not run
}

// finish writes the marks of p. After a crash before it the rules run again, and find
// the same.
func (e *Engine) finish(ctx context.Context, p pass, due map[string]time.Time) error {
	if len(p.marks) == 0 {
		return nil
	}
	if err := e.Keeper.SetMarks(ctx, p.marks); err != nil {
		return err
	}
	if err := e.store(ctx, p.runs); err != nil {
		return err
	}
	for _, r := range p.rules {
		e.sound[r.Name] = true
	}
	e.ran(p.rules, due)
	return nil
}

// ran notes when rules that ran are due again.
func (e *Engine) ran(rules []*Rule, due map[string]time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range rules {
		if e.failed[r.Name] == 0 {
			e.due[r.Name] = due[r.Name]
		}
	}
}

// fails counts a failure of a rule.
func (e *Engine) fails(rule string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.metrics.ruleFailures.WithLabelValues(rule).Inc()
	e.failed[rule]++
	delete(e.sound, rule)
	return e.failed[rule]
}

// runs forgets the failures of a rule, and returns the alert that ends the alerts
// about them, of this run or of an earlier one.
func (e *Engine) runs(r *Rule) []Alert {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.failed, r.Name)
	if e.sound[r.Name] {
		return nil
	}
	a := r.cannotRun(time.Time{}, e.Now(), nil)
	a.Extent = 0
	return []Alert{a}
}

// pageOfAlerts is how many alerts of one query are stored together.
const pageOfAlerts = 1000

// askOne runs the query of r and stores its alerts.
func (e *Engine) askOne(ctx context.Context, r *Rule, since time.Time, seen map[string]bool) (found int, err error) {
	var page []Alert
	collect := func(a Alert) error {
		found++
		if page = append(page, a); len(page) < pageOfAlerts {
			return nil
		}
		defer func() { page = page[:0] }()
		return e.store(ctx, page)
	}
	if r.FirstSeen != nil {
		err = AskSeen(ctx, e.Keeper, e.Asker, r, since, seen[r.seenName()], collect)
	} else {
		err = Ask(ctx, e.Asker, r, since, collect)
	}
	if err != nil {
		return found, err
	}
	return found, e.store(ctx, page)
}

// Ask calls do with each alert that a scheduled rule finds in records that
// arrived since a time. It changes nothing in the store, so a rule with FirstSeen
// reads all records; see AskSeen.
func Ask(ctx context.Context, asker Asker, r *Rule, since time.Time, do func(Alert) error) error {
	return asker.Ask(ctx, r.question(), since, func(row map[string]any) error {
		a, err := r.found(row)
		if err != nil {
			return err
		}
		return do(a)
	})
}
