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

// Check gives the selected sessions to a checker, which the caller finishes.
func (s *Source) Check(ctx context.Context, k Check, to *verify.Checker) error {
	erased, err := s.Erasures(ctx)
	if err != nil {
		return err
	}
	cutoff, err := s.removedBefore(ctx)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, k.Selection, func(list []Session) error {
		f := feed{check: k, to: to, erased: erased, cutoff: cutoff, sessions: list}
		err := s.Read(ctx, list, f.row)
		f.finish(err)
		return err
	})
}

// removedBefore returns the time before which retention may have removed records.
func (s *Source) removedBefore(ctx context.Context) (cutoff time.Time, err error) {
	sql := "SELECT max(cutoff) FROM " + s.DB.Name() + ".retention_log WHERE table_name = 'events'"
	err = s.query(ctx, "reading what retention removed", sql, func(rows driver.Rows) error { return rows.Scan(&cutoff) })
	return cutoff, err
}

// A feed gives rows to the checker.
type feed struct {
	check    Check
	to       *verify.Checker
	erased   map[string]Erasure
	cutoff   time.Time
	sessions []Session // not begun yet
	current  *verify.Session
	id       string
	by       string // who erased the current one
	rows     int
}

func (f *feed) row(r *Row) error {
	if f.current == nil || f.id != r.Session {
		f.begin(r.Session)
	}
	row := verify.Row{Line: r.Raw, Seq: r.Seq, HasSeq: true, Leaf: r.Leaf, Evidence: r.Evidence, Differs: r.Differs}
	if r.Raw == nil {
		row.Erased = f.by
	}
	f.current.Add(row)
	if f.rows++; f.rows == 1000 {
		f.progress()
	}
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
	f.by = ""
	if e, ok := f.erased[id]; ok {
		f.by = fmt.Sprintf("by %s on %s", e.Who, e.At.UTC().Format(time.DateOnly))
	}
	f.id, f.current = id, f.to.Session(id, f.about(one))
}

func (f *feed) about(one Session) verify.About {
	silent := f.check.Now.Sub(one.Ingested)
	old := one.First.Before(f.cutoff) || one.Started().Before(f.cutoff)
	return verify.About{
		Live: !one.Ended && silent < silentFor && f.by == "",
		Dead: !one.Ended && silent >= silentFor && f.by == "" && one.Here > 0,
		// Retention keeps leaves of sessions with evidence only.
		Arriving: silent < settles || old && !one.Signed,
		Cut:      old,
		Gone:     one.Here == 0 && f.by == "",
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
