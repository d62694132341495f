package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/ingest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// A Receiver is where records are sent.
type Receiver struct {
	Name   string            // Required. It does not change: the mark has it.
	Format string            // for people
	To     receiver.Receiver // Required.

	// Match reports whether the receiver gets a record. nil: it gets all.
	Match func(*ingest.Row) bool

	// Since is the arrival from which on a receiver without a mark gets records.
	// Zero: from now on.
	Since time.Time
}

// A Config configures an Engine.
type Config struct {
	Store     Store      // Required.
	Receivers []Receiver // any number
	Run       string     // this run of the collector, unlike any other. Required.

	// Dead reports whether the run with a name has certainly ended. nil: it knows
	// of none.
	Dead func(run string) bool

	// Erased reports whether a session was erased. nil: none was.
	Erased func(session string) bool

	// Behind reports whether many records wait to be stored. Then little is sent,
	// because storing comes first: what is stored waits safely. nil: they never do.
	Behind func() bool

	Keep time.Duration // how long the store keeps records; zero: always

	// Raise stores an alert about a receiver, or its end. nil: none is raised.
	Raise func(context.Context, alert.Alert) error

	Now     func() time.Time      // nil: time.Now
	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// checked returns c with its defaults.
func (c Config) checked() (Config, error) {
	var problems []error
	if c.Store == nil {
		problems = append(problems, errors.New("there is no store"))
	}
	if c.Run == "" {
		problems = append(problems, errors.New("this run has no name"))
	}
	names := map[string]bool{}
	for _, r := range c.Receivers {
		if r.Name == "" || r.To == nil || names[r.Name] {
			problems = append(problems, fmt.Errorf("receiver %q has no name, goes nowhere or is there twice", r.Name))
		}
		names[r.Name] = true
	}
	if c.Dead == nil {
		c.Dead = func(string) bool { return false }
	}
	if c.Behind == nil {
		c.Behind = func() bool { return false }
	}
	if c.Erased == nil {
		c.Erased = func(string) bool { return false }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, errors.Join(problems...)
}

// A Store has the stored records and the progress of receivers. Tables implements it.
// Its methods may be called concurrently. What a writing method stored is durable when
// it returns nil; after an error it may be stored too, and the caller stores it again.
// The caller also repeats what could not be read.
type Store interface {
	Arrivals
	Records
	Marks
	Lates
	Refusals
}

// Arrivals tell what there is to read.
type Arrivals interface {
	// Settled returns the time until which all that arrived can be read.
	Settled(ctx context.Context, now time.Time) (time.Time, error)
	// News returns what changed, with the records that arrived after one time and
	// up to another. With a zero time there may be some.
	News(ctx context.Context, after, upto time.Time) (News, error)
}

// Records reads the stored records.
type Records interface {
	// ReadSome is that of source.Source, with its Unreadable.
	ReadSome(ctx context.Context, after source.Position, upto time.Time, limit int, do func([]receiver.Record) error, unreadable func(source.Position, error) error) (source.Position, bool, error)
	Count(ctx context.Context, after source.Position, upto time.Time) (n uint64, first time.Time, err error)
	// Find returns the record that was refused, nil if it is no longer stored, and
	// source.ErrDamaged if its row is damaged.
	Find(ctx context.Context, refused Refused) (*receiver.Record, error)
}

// Marks keeps how far receivers are.
type Marks interface {
	Marks(ctx context.Context) ([]Mark, error)
	SetMarks(ctx context.Context, marks []Mark) error
}

// Lates keeps what became visible late, and who has it.
type Lates interface {
	// Late returns the late arrivals of which not all were sent to a receiver.
	Late(ctx context.Context, receiver string) ([]Late, error)
	// LateSent stores how far they were sent.
	LateSent(ctx context.Context, receiver string, list []Late, now time.Time) error
}

// Refusals keeps the records that receivers refused.
type Refusals interface {
	SetRefused(ctx context.Context, list []Refused) error
	// Asked returns refused records that are to be sent again, some of them.
	Asked(ctx context.Context, receiver string) ([]Refused, error)
}

// News are what changed in the store. The numbers are others when something changed.
type News struct {
	Records     bool
	Late, Asked uint64
}

// A Mark is how far a receiver has the records.
type Mark struct {
	Receiver, Format string
	Since            time.Time // what arrived before is not for it
	Position         source.Position
	Owner            string // a run of a collector; "": none
	Sent             uint64
	Failing          time.Time // since then; zero: it works
	Error            string    // escaped
	At               time.Time
}

// A Late is a period of arrivals of which records become visible after readers may have
// passed it. One of a single time is visible; others are read up to Settled, and may end
// in years: see alert.Engine.
type Late struct {
	ID         string
	From, Upto time.Time
	Sent       time.Time // up to then; before From: nothing
}

// A Refused is a record that a receiver refused.
type Refused struct {
	Receiver  string
	Tenant    string
	SessionID string
	Seq       uint64
	Hash      [16]byte
	RecordID  string
	User      string
	Arrived   time.Time
	Reason    string // escaped
	RefusedAt time.Time
	AskedAt   time.Time // zero: it is not to be sent again
	SentAt    time.Time // zero: the receiver has not taken it
	At        time.Time
}
