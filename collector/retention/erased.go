package retention

import (
	"context"
	"sync/atomic"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/sink/clickhouse"

	"go.uber.org/zap"
)

// refresh is how often a collector asks which sessions were erased.
const refresh = 5 * time.Second

// An Erased is the sessions that were erased. Its methods may be called
// concurrently.
type Erased struct {
	db       *clickhouse.DB
	sessions atomic.Pointer[map[string]bool]
}

// NewErased returns an Erased without sessions, which Load fills.
func NewErased(db *clickhouse.DB) *Erased {
	e := &Erased{db: db}
	e.sessions.Store(&map[string]bool{})
	return e
}

// Has reports whether a session was erased.
func (e *Erased) Has(session string) bool {
	m := *e.sessions.Load()
	return len(m) > 0 && m[session]
}

// Load reads the sessions.
func (e *Erased) Load(ctx context.Context) error {
	ctx, cancel := e.db.Limited(ctx)
	defer cancel()
	rows, err := e.db.Conn().Query(ctx, "SELECT DISTINCT session_id FROM "+e.db.Name()+".erased_sessions")
	if err != nil {
		return clickhouse.Classify("reading which sessions were erased", err)
	}
	defer rows.Close()
	m := map[string]bool{}
	for rows.Next() {
		var session string
		if err := rows.Scan(&session); err != nil {
			return clickhouse.Classify("reading which sessions were erased", err)
		}
		m[session] = true
	}
	if err := rows.Err(); err != nil {
		return clickhouse.Classify("reading which sessions were erased", err)
	}
	e.sessions.Store(&m)
	return nil
}

// Run keeps the sessions current until ctx ends. A problem is logged once while it
// lasts.
func (e *Erased) Run(ctx context.Context, log *zap.Logger) error {
	for said := ""; wait.For(ctx, refresh) == nil; {
		err := e.Load(ctx)
		if err == nil {
			said = ""
		} else if err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			log.Warn("erased sessions not known", zap.Error(err))
		}
	}
	return nil
}
