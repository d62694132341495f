package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

const oldPrefix = ".old-" // of a session's directory that is being removed

// A RetainConfig says how long to keep what has been consumed.
type RetainConfig struct {
	Dir      string        // the spool directory. Required.
	Age      time.Duration // zero: for ever
	Bytes    int64         // of consumed segments, oldest go first; zero: no bound
	Consumed bool          // sessions have a consumer; else only ended sessions go, by age
	Log      *zap.Logger   // nil: none
	FS       FS            // nil for the real one
}

// A used is a consumed segment, or without a consumer a whole session.
type used struct {
	session string // directory
	no      uint32
	size    int64
	end     time.Time // when it was written last
	last    bool      // the session ends with it and may go as a whole
}

// Retain removes what is old enough, and returns how many bytes. What no
// consumer has taken stays, and so does every segment that holds the intent of
// a call that is still open. A problem with one session does not keep it from
// the others.
func Retain(ctx context.Context, c RetainConfig) (int64, error) {
	f := orOS(c.FS)
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if err := sweep(f, c.Dir); err != nil {
		return 0, fmt.Errorf("removing old sessions: %w", err)
	}
	entries, err := list(f, c.Dir)
	if err != nil {
		return 0, fmt.Errorf("removing old sessions: %w", err)
	}
	var errs []error
	var list []used
	for _, e := range entries {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		more, err := c.used(f, e)
		list, errs = append(list, more...), append(errs, err)
	}
	slices.SortStableFunc(list, func(a, b used) int { return a.end.Compare(b.end) })
	var total, removed int64
	for _, u := range list {
		total += u.size
	}
	for _, u := range list {
		old := c.Age > 0 && time.Since(u.end) > c.Age
		if !old && (!c.Consumed || c.Bytes <= 0 || total <= c.Bytes) {
			continue
		}
		if err := u.remove(f); err != nil {
			errs = append(errs, fmt.Errorf("removing segment %d of %q: %w", u.no, u.session, err))
			continue
		}
		c.Log.Info("segment removed", zap.String("session", filepath.Base(u.session)), zap.Uint32("segment", u.no))
		total -= u.size
		removed += u.size
	}
	return removed, errors.Join(errs...)
}

// used lists what of a session may go.
func (c RetainConfig) used(f FS, e Entry) ([]used, error) {
	session := filepath.Join(c.Dir, sessionsDir, e.ID)
	if e.Err != nil || e.State == Dead || len(e.Segments) == 0 {
		return nil, nil // Recover comes first, and needs everything
	}
	whole := e.State == Ended && (!c.Consumed || !e.Unshipped())
	if whole && !c.Consumed {
		return []used{{session, 0, e.Bytes, e.Modified, true}}, nil
	}
	if !c.Consumed {
		return nil, nil
	}
	before := e.Shipped.Segment
	if e.State == Live && before > e.Segments[0] {
		needed, err := firstOpen(f, session)
		if err != nil {
			return nil, err
		}
		before = min(before, needed)
	}
	var list []used
	var end time.Time
	for i, no := range e.Segments {
		if no >= before && !whole {
			break
		}
		st, err := f.Lstat(filepath.Join(session, segmentName(no)))
		if err != nil {
			return nil, fmt.Errorf("looking at session %q: %w", e.ID, err)
		}
		// The clock may have been set back: a segment never goes before the one
		// in front of it.
		if st.ModTime.After(end) {
			end = st.ModTime
		}
		list = append(list, used{session, no, st.Size, end, whole && i == len(e.Segments)-1})
	}
	return list, nil
}

// firstOpen returns the first segment that holds the intent of an open call.
func firstOpen(f FS, session string) (uint32, error) {
	h, err := readHistory(f, session, Position{})
	if err != nil {
		return 0, err
	}
	first := uint32(math.MaxUint32)
	for _, call := range h.open {
		first = min(first, call.segment)
	}
	return first, nil
}

func (u used) remove(f FS) error {
	if !u.last {
		return f.Remove(filepath.Join(u.session, segmentName(u.no)))
	}
	l, err := f.OpenFile(filepath.Join(u.session, lockFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer l.Close()
	if ok, err := l.Lock(false); err != nil || !ok {
		return errors.Join(err, errors.New("somebody has its lock"))
	}
	// Renamed first: a crash in the middle of the removal must not leave what
	// looks like a dead session. sweep completes it.
	old := filepath.Join(filepath.Dir(u.session), oldPrefix+filepath.Base(u.session))
	if err := f.Rename(u.session, old); err != nil {
		return err
	}
	return removeAll(f, old)
}

// sweep completes removals that a crash cut short.
func sweep(f FS, dir string) error {
	sessions := filepath.Join(dir, sessionsDir)
	names, err := f.ReadDir(sessions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, oldPrefix) {
			err = errors.Join(err, removeAll(f, filepath.Join(sessions, name)))
		}
	}
	return err
}
