package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
)

// Limits on the memory of one session, and its pauses.
const (
	batchRecords = 1000      // records in one write at most
	batchBytes   = 512 << 10 // bytes after which a batch is full

	pollFirst   = 10 * time.Millisecond // after a record, until the next poll of the queue; doubled
	pollLast    = 200 * time.Millisecond
	commitEvery = time.Second // each commit costs a disk sync

	refusedFirst = time.Second // between attempts while even a short record is refused, doubled
	refusedLast  = time.Minute
)

// A ForwardConfig configures Forward.
type ForwardConfig struct {
	Session string // id. Required.
	Queue   Queue  // Required.
	Sink    Sink   // Required.

	// Done is closed once the session is complete; Forward then returns at
	// the end of the queue. nil: it returns there in any case.
	Done <-chan struct{}

	// GiveUp has Forward return an error, rather than wait, while the sink
	// refuses even a short record.
	GiveUp bool

	// HostKey returns the key that signs the short record in place of a refused one, as
	// evidence has it. With an error, or nil, short records are not signed: where the
	// session has evidence, they are taken for changed ones.
	HostKey func() (note.Signer, error)

	Sent func(records int, bytes int64) // called after each delivery; nil: no callback
	Log  *zap.Logger                    // nil: none
}

// Forward moves the records of one session to a sink, in order, until the
// session is over or ctx ends. It commits only what the sink has
// acknowledged: a crash repeats at most commitEvery of records and loses
// none. A record that the sink refuses for its contents is set aside and
// replaced by a short one, and the others are delivered. Memory is constant.
func Forward(ctx context.Context, c ForwardConfig) error {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	f := forwarder{ForwardConfig: c, log: c.Log.With(zap.String("session", c.Session))}
	err := f.run(ctx)
	if f.dirty {
		err = errors.Join(err, f.Queue.Commit())
	}
	if err != nil {
		return fmt.Errorf("forwarding session %q: %w", c.Session, err)
	}
	return nil
}

// A forwarder is owned by the goroutine that calls Forward.
type forwarder struct {
	ForwardConfig
	log *zap.Logger

	buf   []byte // the lines of the batch
	ends  []int  // where each ends in buf
	lines [][]byte

	dirty     bool      // acknowledged records are not committed yet
	committed time.Time // of the last commit
}

func (f *forwarder) run(ctx context.Context) error {
	poll := pollFirst
	for {
		over := f.over() // checked first: lines written before the end are still to be read
		atEnd, err := f.fill()
		if err != nil {
			return err
		}
		if len(f.lines) > 0 {
			poll = pollFirst
			if err := f.deliver(ctx, f.lines); err != nil {
				return err
			}
			f.Queue.Ack()
			f.dirty = true
			if f.Sent != nil {
				f.Sent(len(f.lines), int64(len(f.buf)))
			}
		}
		if f.dirty && time.Since(f.committed) >= commitEvery {
			// A crash before this repeats the deliveries since the last commit.
			if err := f.Queue.Commit(); err != nil {
				return err
			}
			f.dirty, f.committed = false, time.Now()
		}
		switch {
		case !atEnd:
			continue
		case over:
			return nil
		}
		if err := wait.Until(ctx, f.Done, poll); err != nil {
			return err
		}
		poll = min(2*poll, pollLast)
	}
}

// over reports whether the session is complete.
func (f *forwarder) over() bool {
	if f.Done == nil {
		return true
	}
	select {
	case <-f.Done:
		return true
	default:
		return false
	}
}

// fill reads the next batch, and reports whether the queue ends after it.
func (f *forwarder) fill() (atEnd bool, err error) {
	f.buf, f.ends, f.lines = f.buf[:0], f.ends[:0], f.lines[:0]
	for len(f.ends) < batchRecords && len(f.buf) < batchBytes {
		line, err := f.Queue.Next()
		if errors.Is(err, io.EOF) {
			atEnd = true
			break
		}
		if err != nil {
			return false, err
		}
		f.buf = append(f.buf, line...)
		f.ends = append(f.ends, len(f.buf))
	}
	from := 0
	for _, end := range f.ends {
		f.lines = append(f.lines, f.buf[from:end:end])
		from = end
	}
	return atEnd, nil
}

// deliver writes lines until the sink has all that it accepts.
func (f *forwarder) deliver(ctx context.Context, lines [][]byte) error {
	for len(lines) > 0 {
		err := f.Sink.Write(ctx, f.Session, lines)
		var refused *RefusedError
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &refused):
			return err
		}
		if err := f.replace(ctx, lines[refused.Index], refused.Err); err != nil {
			return err
		}
		lines = lines[refused.Index+1:]
	}
	return nil
}

// replace delivers a short record in place of a line that the sink refuses,
// and sets the line aside. A crash between the two repeats both.
func (f *forwarder) replace(ctx context.Context, line []byte, why error) error {
	short := f.standIn(line)
	for pause := refusedFirst; short != nil; pause = min(2*pause, refusedLast) {
		err := f.Sink.Write(ctx, f.Session, [][]byte{short})
		var refused *RefusedError
		if err == nil {
			break
		}
		if !errors.As(err, &refused) {
			return err
		}
		// The record is not the cause: the sink must be reconfigured.
		if f.GiveUp {
			return fmt.Errorf("even a short record is refused: %w", refused.Err)
		}
		f.log.Error("even a short record is refused; the session waits until that changes", zap.Error(refused.Err))
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
		if err := f.Sink.Write(ctx, f.Session, [][]byte{line}); !errors.As(err, &refused) {
			return err
		}
	}
	where, err := f.Queue.SetAside(line)
	if err != nil {
		return err
	}
	f.log.Error("record refused and set aside", zap.String("file", where), zap.Bool("stand_in", short != nil), zap.Int("bytes", len(line)), zap.Error(why))
	return nil
}

// standIn returns the line of a record which reports that line could not be
// delivered. It has the same id, numbers and operation, so that the call is
// seen, omits the members that can be long, and stands for line in the tree of
// the session. The same line and key always give the same bytes. It returns nil
// if line is not a record.
func (f *forwarder) standIn(line []byte) []byte {
	r, err := audit.Parse(line)
	if err != nil {
		return nil
	}
	r.Anomalies = []string{"undeliverable"}
	r.Candidates, r.Args, r.Annotations, r.Labels, r.Proxy = nil, "", "", "", ""
	if f.HostKey != nil {
		host, err := f.HostKey()
		if err == nil {
			err = evidence.SignStandIn(&r, evidence.Leaf(line), host)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // without evidence there is no key
			f.log.Error("the short record in place of a refused one is not signed", zap.Error(err))
		}
	}
	short := audit.AppendRecord(nil, &r)
	return short[:len(short)-len("\n")]
}
