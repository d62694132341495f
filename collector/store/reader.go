package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"syscall"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// pageTimeout is for one query of the review page.
const pageTimeout = 10 * time.Second

// A Reader asks with a reader's rights, which may be narrower than those of a
// Store's user. Its methods may be called concurrently.
type Reader struct {
	conn    driver.Conn
	settled *clickhouse.Settled
}

// OpenReader checks c and returns a reader. It does not connect.
func OpenReader(c clickhouse.Config) (*Reader, error) {
	conn, err := clickhouse.OpenReader(c)
	if err != nil {
		return nil, err
	}
	return &Reader{conn, clickhouse.NewSettled(c, conn, clickhouse.OpenReader)}, nil
}

// Close closes the connections.
func (r *Reader) Close() error {
	r.settled.Close()
	return r.conn.Close()
}

// ErrNotFound means that the object does not exist, or that this reader may
// not see it.
var ErrNotFound = errors.New("not found")

// ErrTooMuch means that a query reached a limit of time or memory. It does not
// mean that there is nothing.
var ErrTooMuch = errors.New("choose a shorter time or fewer conditions")

// ErrBusy means that others left the server no memory, which is no fault of the
// query. It does not mean that there is nothing.
var ErrBusy = errors.New("the server was out of memory for a moment: repeat the question")

var (
	errTooLong  = fmt.Errorf("the question took too long: %w", ErrTooMuch)
	errTooLarge = fmt.Errorf("the question needed too much memory: %w", ErrTooMuch)
)

// atLimit returns err as the limit that it reports, if any.
func atLimit(err error) error {
	var e *ch.Exception
	if errors.As(err, &e) {
		switch {
		case e.Code == timeoutExceeded:
			return errTooLong
		case busy(err):
			return ErrBusy
		case e.Code == memoryLimitExceeded:
			return errTooLarge
		}
	}
	return err
}

// A Failure is a part of a page that could not be read. It does not mean that
// there is nothing.
type Failure struct {
	Part string
	Err  error
}

func failed(list []Failure, part string) bool {
	return slices.ContainsFunc(list, func(f Failure) bool { return f.Part == part })
}

// shared begins the message about a limit that others take part in: the server's,
// or the user's. The query's own is "Query memory limit exceeded", before
// ClickHouse 25 "Memory limit (for query) exceeded".
var shared = regexp.MustCompile(`^(DB::Exception: )?(\(total\)|User|Memory limit \((total|for user)\))`)

// busy reports whether err is about memory that others have.
func busy(err error) bool {
	var e *ch.Exception
	return errors.As(err, &e) && e.Code == memoryLimitExceeded && shared.MatchString(e.Message)
}

// away reports whether no server answered, or not to the end: it starts again, or a
// proxy before it has none just now. A server that hangs is not away.
func away(err error) bool {
	var e *ch.Exception
	var answer *ch.HTTPError
	switch {
	case errors.As(err, &e):
		return false
	case errors.As(err, &answer):
		return slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable}, answer.StatusCode)
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, fs.ErrNotExist} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// The pauses before a query is repeated for which the server had no memory, or was
// away.
const (
	busyFirst = 50 * time.Millisecond
	busyLast  = time.Second

	// busyFor bounds what has no limit of its own: the question of a rule. A question
	// that needs more memory than there is would be repeated without end: the other
	// rules would wait, and no alert would report it.
	busyFor = 30 * time.Second

	// awayFor is more than the local engine needs to start again, and less than
	// a person waits for a page that says what is wrong.
	awayFor = 5 * time.Second
)

// patiently calls do until it returns another error than that the server is busy or
// away, until it was so for long, or until ctx ends. do only reads.
func patiently(ctx context.Context, do func() error) error {
	began := time.Now()
	for pause := busyFirst; ; pause = min(2*pause, busyLast) {
		err := do()
		again := busy(err) && time.Since(began) < busyFor || away(err) && time.Since(began) < awayFor
		if !again || wait.For(ctx, pause) != nil {
			return err
		}
	}
}

// The server's codes for its own limits, and for a user who may not see a table.
const (
	timeoutExceeded     = 159
	memoryLimitExceeded = 241
	accessDenied        = 497
)

// args are the parameters of a query by name.
type args map[string]any

func (a args) named() []any {
	list := make([]any, 0, len(a))
	for name, v := range a {
		list = append(list, ch.Named(name, v))
	}
	return list
}

// micros formats a time as a parameter, for fromUnixTimestamp64Micro: text
// would have to be in the right time zone, and ClickHouse's numbers end in
// 2299.
func micros(t time.Time) int64 { return t.UnixMicro() }

// limited returns a context that ends after pageTimeout. It has no
// deadline: the driver would send one as a setting, which a user who may only
// read must not set.
func (r *Reader) limited(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(pageTimeout, func() { cancel(errTooLong) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// ask returns the rows of a query, each in a struct whose fields name their columns.
// It repeats the query patiently. what names the object in errors.
func ask[T any](ctx context.Context, r *Reader, what, sql string, a args) ([]T, error) {
	ctx, done := r.limited(ctx)
	defer done()
	var list []T
	err := patiently(ctx, func() error {
		list = nil
		return r.conn.Select(ctx, &list, sql, a.named()...)
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !busy(err) {
			err = cause
		}
		return nil, fmt.Errorf("reading %s: %w", what, clickhouse.Explain(atLimit(err)))
	}
	return list, nil
}

// askOne is ask for one row; without any it is the zero value.
func askOne[T any](ctx context.Context, r *Reader, what, sql string, a args) (row T, err error) {
	list, err := ask[T](ctx, r, what, sql, a)
	if len(list) > 0 {
		row = list[0]
	}
	return row, err
}

// denied reports whether err means that this user may not see the table.
func denied(err error) bool {
	var e *ch.Exception
	return errors.As(err, &e) && e.Code == accessDenied
}
