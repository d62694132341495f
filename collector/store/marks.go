package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Marks returns the marks of evaluation.
func (s *Store) Marks(ctx context.Context) ([]alert.Mark, error) {
	ctx, cancel := s.db.Limited(ctx)
	defer cancel()
	ctx, conn, err := s.db.Settled(ctx)
	if err != nil {
		return nil, clickhouse.Classify("reading marks", err)
	}
	var marks []alert.Mark
	err = conn.Select(ctx, &marks, "SELECT name AS Name, kind AS Kind, upto AS Upto, closed AS Closed, at AS At FROM "+s.db.Name()+".alert_marks FINAL WHERE NOT closed")
	return marks, clickhouse.Classify("reading marks", err)
}

// LatestMark returns the latest time of any mark of a run, also of closed ones.
func (s *Store) LatestMark(ctx context.Context) (latest time.Time, err error) {
	err = s.one(ctx, "reading marks", "SELECT max(upto) FROM "+s.db.Name()+".alert_marks WHERE kind = ?", []any{alert.MarkRun}, &latest)
	return latest, err
}

// InsertLate stores that records become visible which arrive from one time up to
// another, which readers may have passed. id identifies the report. Retention keeps
// it while records may arrive then.
func (s *Store) InsertLate(ctx context.Context, id string, from, upto, now time.Time) error {
	if upto.After(now) {
		now = upto
	}
	sum := sha256.Sum256([]byte(id))
	err := s.db.Insert(ctx, "INSERT INTO "+s.db.Name()+".export_late (id, receiver, arrived, upto, at)", sum[:], func(b driver.Batch) error {
		return b.Append(id, "", from, upto, now)
	})
	return clickhouse.Classify("noting late arrivals", err)
}

// SetMarks stores marks.
func (s *Store) SetMarks(ctx context.Context, marks []alert.Mark) error {
	sum := sha256.New()
	for _, m := range marks {
		fmt.Fprint(sum, m.Name, m.Kind, m.Upto.UnixNano(), m.Closed, m.At.UnixNano())
	}
	err := s.db.Insert(ctx, "INSERT INTO "+s.db.Name()+".alert_marks (name, kind, upto, closed, at)", sum.Sum(nil), each(marks, func(m alert.Mark) []any {
		return []any{m.Name, m.Kind, m.Upto, m.Closed, m.At}
	}))
	return clickhouse.Classify("writing marks", err)
}
