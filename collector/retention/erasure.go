package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"auditproxy/sink/clickhouse"

	"github.com/google/uuid"
)

// An Erasure is what is to be erased: a session, or all sessions of a user.
type Erasure struct {
	ID       uuid.UUID `json:"id"`
	Kind     string    `json:"kind"` // HoldSession, HoldUser
	Value    string    `json:"value"`
	Tenant   string    `json:"tenant,omitempty"` // only this tenant's; "" for all
	NoTenant bool      `json:"-"`                // only what has no tenant; Tenant is ""
	Unseen   bool      `json:"unseen,omitempty"` // also a session of which nothing arrived yet
	Who      string    `json:"who"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`

	// Others are the other tenants in which the user has sessions, as of a time before a
	// tenant had another name.
	Others []string `json:"other_tenants,omitempty"`

	// Shared is one of the sessions of the user that has records of another one; nil: none has.
	Shared *SharedSession `json:"-"`

	Sessions []Session         `json:"sessions"`
	Rows     map[string]uint64 `json:"rows"` // by table
	Places   Places            `json:"places"`
	Done     bool              `json:"done"`
}

// A Session is one that is erased.
type Session struct {
	ID     string `json:"id" ch:"session_id"`
	Tenant string `json:"tenant,omitempty" ch:"tenant"`
}

// A SharedSession is a session with another user of its records. A proxy writes those of
// one user only: who writes to a topic can claim another's session.
type SharedSession struct {
	ID   string `ch:"session_id"`
	User string `ch:"user"`
}

// Places are where the records of an erasure came from. These may have them still.
type Places struct {
	Kafka  []KafkaPlace `json:"kafka,omitempty"`
	Spools []SpoolPlace `json:"spools,omitempty"`
}

// A KafkaPlace is a part of a topic.
type KafkaPlace struct {
	Topic     string `json:"topic" ch:"kafka_topic"`
	Partition uint32 `json:"partition" ch:"kafka_partition"`
	From      uint64 `json:"from" ch:"first"`
	To        uint64 `json:"to" ch:"last"`
	Records   uint64 `json:"records" ch:"n"`
}

// A SpoolPlace is a session in the spool of a host.
type SpoolPlace struct {
	Host    string `json:"host" ch:"host"`
	Session string `json:"session" ch:"session_id"`
}

// ErrHeld means that a hold is on what is to be erased.
var ErrHeld = errors.New("under a hold")

// ErrTenants means that a user or a session has records in several tenants.
var ErrTenants = errors.New("in several tenants")

// ErrRuns means that a session goes on: what its agent does later would be
// refused as well, and so go unseen.
var ErrRuns = errors.New("still running")

// An eraser erases one erasure, or with the nil id everything that was ever
// erased and is there again.
type eraser struct {
	db      *clickhouse.DB
	e       Erasure
	unseen  bool // nothing of the session arrived yet
	written bool // the sessions are in erased_sessions

	holds  string   // the condition that they are still those that checkHolds saw; "" before
	users  []string // of the sessions; nil: not known
	unheld string   // with the nil id, the clause for sessions that no hold is on
}

func (x *eraser) exec(ctx context.Context, doing, format string, args ...any) error {
	ctx, cancel := x.db.Long(ctx)
	defer cancel()
	return x.db.Exec(ctx, doing, format, args...)
}

func (x *eraser) query(ctx context.Context, doing string, to any, format string, args ...any) error {
	ctx, cancel := x.db.Long(ctx)
	defer cancel()
	sql := strings.ReplaceAll(format, "${database}", x.db.Name())
	return clickhouse.Classify(doing, x.db.Conn().Select(ctx, to, fmt.Sprintf(sql, args...)))
}

// oneTenant reports whether only one tenant's records are to be erased.
func (x *eraser) oneTenant() bool { return x.e.Tenant != "" || x.e.NoTenant }

func (x *eraser) tenants() (list []string) {
	for _, s := range x.e.Sessions {
		list = append(list, s.Tenant)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
