package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// TestTimed: latency is of the last calls, whose number is bounded but for one
// count of the series.
func TestTimed(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		calls []uint64 // by hour
		from  int      // the hour in which the measured time begins
	}{
		"few":                {[]uint64{10, 20, 0, 30}, 0},
		"as many as allowed": {[]uint64{timedCalls / 2, 0, timedCalls / 2, 0}, 0},
		"too many":           {[]uint64{1, timedCalls / 2, timedCalls / 2, 0}, 1},
		"one hour has more":  {[]uint64{1, 2 * timedCalls, 0, 0}, 1},
		"more, and before":   {[]uint64{1, 2 * timedCalls, 2 * timedCalls, 0}, 2},
		"none":               {[]uint64{0, 0, 0}, 0},
	} {
		o := Overview{Window: Window{begin, begin.Add(time.Duration(len(tt.calls)) * time.Hour)}, Step: time.Hour}
		for i, n := range tt.calls {
			o.Series = append(o.Series, Count{Start: begin.Add(time.Duration(i) * time.Hour), OK: n})
		}
		want := Window{begin.Add(time.Duration(tt.from) * time.Hour), o.Window.To}
		if got := o.timed(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	long := Overview{Window: Window{begin, begin.Add(30 * 24 * time.Hour)}, Step: 24 * time.Hour}
	if got, want := long.timed().From, long.Window.To.Add(-timedSpan); !got.Equal(want) {
		t.Errorf("of a month, from %v, want %v", got, want)
	}
}

// TestAtLimit: what the server refuses for its own limits is no failure of it, and
// what others took is no fault of the query.
func TestAtLimit(t *testing.T) {
	for _, tt := range []struct {
		code    int32
		message string
		want    error // nil: no limit
	}{
		{159, "Timeout exceeded: elapsed 10 seconds", ErrTooMuch},
		{241, "Query memory limit exceeded: would use 513.00 MiB", ErrTooMuch},
		{241, "Memory limit (for query) exceeded: would use 513.00 MiB: (while reading column (total))", ErrTooMuch},
		{241, "(total) memory limit exceeded: would use 1.00 GiB", ErrBusy},
		{241, "Memory limit (total) exceeded: would use 1.00 GiB", ErrBusy},
		{241, "DB::Exception: User memory limit exceeded: would use 1.00 GiB", ErrBusy},
		{497, "(total)", nil},
		{60, "Table does not exist", nil},
	} {
		err := atLimit(fmt.Errorf("sending: %w", &ch.Exception{Code: tt.code, Message: tt.message}))
		for _, limit := range []error{ErrTooMuch, ErrBusy} {
			if errors.Is(err, limit) != (limit == tt.want) {
				t.Errorf("code %d, %q: %v, want %v", tt.code, tt.message, err, tt.want)
			}
		}
	}
	if !errors.Is(errTooLong, ErrTooMuch) {
		t.Errorf("%v is no limit", errTooLong)
	}
}

// TestPatiently: a query is repeated only while the server has no memory for it or
// is away, and not beyond its time.
func TestPatiently(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	cut := fmt.Errorf("reading a block: %w", io.ErrUnexpectedEOF)
	noSocket := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}
	noServer := &ch.HTTPError{StatusCode: http.StatusBadGateway, Err: errors.New("no server")}
	failed := &ch.HTTPError{StatusCode: http.StatusServiceUnavailable, Err: &ch.Exception{Code: 60}}
	hangs := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	others := &ch.Exception{Code: memoryLimitExceeded, Message: "(total) memory limit exceeded: would use 1.00 GiB"}
	own := &ch.Exception{Code: memoryLimitExceeded, Message: "Query memory limit exceeded: would use 1.00 GiB"}
	for name, tt := range map[string]struct {
		answers []error
		within  time.Duration
		want    error
		calls   int
	}{
		"answered":          {[]error{nil}, time.Minute, nil, 1},
		"its own limit":     {[]error{own, nil}, time.Minute, own, 1},
		"busy, then not":    {[]error{others, others, others, nil}, time.Minute, nil, 4},
		"busy, then failed": {[]error{others, own, nil}, time.Minute, own, 2},
		"away, then not":    {[]error{refused, noSocket, noServer, cut, nil}, time.Minute, nil, 5},
		"away for long":     {slices.Repeat([]error{refused}, 20), time.Minute, refused, 10}, // the last one after 5.55 s
		"its own failure":   {[]error{failed, nil}, time.Minute, failed, 1},
		"it hangs":          {[]error{hangs, nil}, time.Minute, hangs, 1},
		"busy for ever":     {slices.Repeat([]error{others}, 100), time.Hour, others, 35}, // the last one after 30.55 s
		"busy for long":     {[]error{others, others, others, others, others}, busyFirst + 2*busyFirst + busyFirst, others, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.within)
			defer cancel()
			calls := 0
			err := patiently(ctx, func() error {
				calls++
				return tt.answers[calls-1]
			})
			if err != tt.want || calls != tt.calls {
				t.Errorf("%s: %v after %d calls, want %v after %d", name, err, calls, tt.want, tt.calls)
			}
		})
	}
}
