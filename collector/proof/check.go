package proof

import (
	"context"
	"fmt"
	"time"

	"auditproxy/schemas/evidence/verify"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// settles is for how long after its last record a session may have records that
	// are stored and not visible yet: one insert can be several parts.
	settles = 30 * time.Second

	// silentFor is how long a session without an end must have sent nothing to count
	// as one whose process died.
	silentFor = 24 * time.Hour

	// aheadBy is how far the clocks of collectors may be ahead of this one. A record
	// that arrived later than that is no reason to wait for others: a writer of the
	// tables can give it any time.
	aheadBy = time.Hour
)

// OnTheWay is how old a session must be to be missed: the ones before and after it
// are shipped by other processes.
const OnTheWay = 24 * time.Hour

// A Check is one verification.
type Check struct {
	Selection
	Now      time.Time
	Begin    func(Session)  // is called before the rows of a session; nil: nothing
	Progress func(rows int) // is called with the number of rows now and then; nil: nothing
}

// Check gives the selected sessions to a checker, which the caller finishes. A session
// that cannot be read, because a file is damaged, is unreadable there, and keeps no other
// from being checked, as long as ClickHouse answers at all.
func (s *Source) Check(ctx context.Context, k Check, to *verify.Checker) error {
	var reasons reasons
	if err := reasons.read(ctx, s); err != nil {
		return err
	}
	began := time.Now()
	return s.Sessions(ctx, k.Selection, func(list []Session) error {
		f := feed{check: k, to: to, began: began, reasons: reasons, sessions: list}
		f.again = func() error { return f.reasons.read(ctx, s) }
		err := s.feed(ctx, &f)
		f.finish(err)
		return err
	})
}

// feed reads the sessions of f. Where several cannot be read together, each of them is
// read alone until one cannot; then as many more, since a file has many sessions.
func (s *Source) feed(ctx context.Context, f *feed) error {
	left, unreadable, most := f.sessions, 0, s.Sizes.orDefault().Sessions+1
	for alone := 0; len(left) > 0; alone-- {
		part := left
		if alone > 0 {
			part = left[:1]
		}
		err := s.Read(ctx, part, f.row)
		switch {
		case err == nil:
			left, unreadable = left[len(part):], 0
		case ctx.Err() != nil || !s.answers(ctx):
			return err
		case len(part) > 1:
			left, alone = f.restart(), most
		default:
			f.fail(part[0].ID, err)
			left, alone = left[1:], min(unreadable+1, most) // without this one
			unreadable++
		}
	}
	return nil
}

// answers reports whether ClickHouse can be asked at all.
func (s *Source) answers(ctx context.Context) bool {
	return s.query(ctx, "asking whether ClickHouse answers", "SELECT 1", func(driver.Rows) error { return nil }) == nil
}

// reasons are why records may be here no more.
type reasons struct {
	erased  map[string]Erasure
	removed map[string]cutoffs // by tenant; retention logs what it removes of each
}

// cutoffs are the times before which retention may have removed records, and leaves.
type cutoffs struct{ records, leaves time.Time }

func (r *reasons) read(ctx context.Context, s *Source) (err error) {
	if r.erased, err = s.Erasures(ctx); err == nil {
		r.removed, err = s.removedBefore(ctx)
	}
	return err
}

// oldAt is how long after the cutoff a session may have started of which retention
// removed records: clocks are set, and of two replicas one is behind.
const oldAt = 24 * time.Hour

// explain reports whether there is a reason that a session lacks records.
func (r *reasons) explain(one Session) bool {
	_, erased := r.erased[one.ID]
	return erased || one.before(r.of(one).records, oldAt)
}

// of returns the cutoffs of a session: those of its tenant. Where its records and
// leaves name several, one of them is not its own, so the least count.
func (r *reasons) of(one Session) (least cutoffs) {
	if len(one.Tenants) == mostTenants {
		return cutoffs{}
	}
	for i, tenant := range one.Tenants {
		c := r.removed[tenant]
		if i == 0 || c.records.Before(least.records) {
			least.records = c.records
		}
		if i == 0 || c.leaves.Before(least.leaves) {
			least.leaves = c.leaves
		}
	}
	return least
}

// removedBefore returns the times before which retention may have removed rows, by
// tenant.
func (s *Source) removedBefore(ctx context.Context) (map[string]cutoffs, error) {
	removed := map[string]cutoffs{}
	sql := "SELECT tenant, table_name, max(cutoff) FROM " + s.DB.Name() + ".retention_log WHERE table_name IN ('events', 'leaves') GROUP BY tenant, table_name"
	err := s.query(ctx, "reading what retention removed", sql, func(rows driver.Rows) error {
		var tenant, table string
		var cutoff time.Time
		if err := rows.Scan(&tenant, &table, &cutoff); err != nil {
			return err
		}
		c := removed[tenant]
		if table == "events" {
			c.records = cutoff
		} else {
			c.leaves = cutoff
		}
		removed[tenant] = c
		return nil
	})
	return removed, err
}

// A feed gives rows to the checker.
type feed struct {
	check    Check
	to       *verify.Checker
	began    time.Time // when it was check.Now
	reasons  reasons
	again    func() error // reads the reasons again
	sessions []Session    // not begun yet
	one      Session      // the current one
	current  *verify.Session
	rows     int

	seq  uint64 // of the last row
	here bool   // a row with this number has its record
	read bool   // the reasons, again, for this session
}

func (f *feed) row(r *Row) error {
	if f.current == nil || f.one.ID != r.Session {
		f.begin(r.Session)
	}
	if r.Arrived.After(f.one.Ingested) { // after the sessions were listed: so others may not be here
		f.one.Ingested, f.one.Here = r.Arrived, max(f.one.Here, 1)
		f.current.Update(f.about(f.one))
	}
	f.here = r.Raw != nil || f.here && f.seq == r.Seq
	f.seq = r.Seq
	row := verify.Row{Line: r.Raw, Seq: r.Seq, HasSeq: true, Leaf: r.Leaf, Evidence: r.Evidence, Differs: r.Differs}
	if r.Raw == nil {
		if err := f.reason(&row); err != nil {
			return err
		}
	}
	f.current.Add(row)
	if f.rows++; f.rows == 1000 {
		f.progress()
	}
	return nil
}

// reason says why a row has no record. Retention and an erasure keep the leaf before
// they remove the record, so there may be both. They may also have begun after the
// reasons were read.
func (f *feed) reason(row *verify.Row) error {
	if !f.here && !f.read && !f.reasons.explain(f.one) {
		f.read = true
		if err := f.again(); err != nil {
			return err
		}
		f.current.Update(f.about(f.one))
	}
	if e, ok := f.reasons.erased[f.one.ID]; ok {
		row.Erased = fmt.Sprintf("by %s on %s", e.Who, e.At.UTC().Format(time.DateOnly))
	}
	row.Lost = !f.here && !f.reasons.explain(f.one)
	return nil
}

func (f *feed) progress() {
	if f.check.Progress != nil {
		f.check.Progress(f.rows)
	}
	f.rows = 0
}

// begin begins the session of a row.
func (f *feed) begin(id string) {
	if f.current != nil {
		f.current.End()
	}
	for len(f.sessions) > 0 && f.sessions[0].ID < id { // its rows were removed meanwhile
		f.sessions = f.sessions[1:]
	}
	one := Session{ID: id}
	if len(f.sessions) > 0 && f.sessions[0].ID == id {
		one = f.sessions[0]
	}
	if f.check.Begin != nil {
		f.check.Begin(one)
	}
	f.one, f.here, f.read = one, false, false
	f.current = f.to.Session(id, f.about(one))
}

// restart forgets the session whose rows were read last, and returns it and those
// behind it.
func (f *feed) restart() []Session {
	f.current = nil
	return f.sessions
}

// fail ends a session that cannot be read further.
func (f *feed) fail(id string, err error) {
	if f.current == nil || f.one.ID != id {
		f.begin(id)
	}
	f.current.Fail(err)
	f.current.End()
	f.current, f.sessions = nil, f.sessions[1:]
}

func (f *feed) about(one Session) verify.About {
	silent := f.check.Now.Sub(one.Ingested)
	if silent < -aheadBy-time.Since(f.began) {
		silent = silentFor
	}
	cutoff := f.reasons.of(one)
	old := one.before(cutoff.records, 0)
	_, erased := f.reasons.erased[one.ID]
	return verify.About{
		Live:     !one.Ended && silent < silentFor && !erased,
		Dead:     !one.Ended && silent >= silentFor && !erased && one.Here > 0,
		Arriving: silent < settles,
		Late:     f.check.Now.Sub(one.Last) > OnTheWay,
		Cut:      old,
		Gone:     one.Here == 0 && !erased,
		Thin:     one.Here == 0 && !erased && one.before(cutoff.leaves, 0),
	}
}

func (f *feed) finish(err error) {
	if f.current != nil {
		if err != nil {
			f.current.Fail(err)
		}
		f.current.End()
	}
	f.progress()
}
