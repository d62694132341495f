package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

const oldPrefix = ".old-" // of a session's directory that is being removed

const (
	looksFile = "looks" // in the spool directory: when Retain looked, see looks
	looksSize = 64
	lookAgain = 24 * time.Hour // until the time of a look counts
	future    = time.Hour      // that a file may be newer than the clock
)

// A RetainConfig limits the age and size of consumed segments.
type RetainConfig struct {
	Dir      string        // the spool directory. Required.
	Age      time.Duration // zero: for ever. A file goes a day or two later, see looks.
	Bytes    int64         // on the disk, of consumed segments and sessions, oldest go first; zero: no bound
	Consumed bool          // sessions have a consumer; else only ended sessions are removed, by age
	// FindConsumer keeps sessions that are not read once a consumer has read any: whether
	// there is one is not configured. It has no effect if Consumed is true.
	FindConsumer bool
	Log          *zap.Logger // nil: none
	FS           disk.FS     // nil for the real one

	now   func() time.Time // nil: time.Now
	clock time.Time        // the time that ages are measured at; zero: unknown, nothing is old
}

// A removalCandidate is a consumed segment, or without a consumer a whole session.
type removalCandidate struct {
	session string // directory
	no      uint32
	size    int64     // on the disk; with last, including the session's other files
	end     time.Time // of its last write
	last    bool      // the session ends with it and may be removed as a whole
	unread  bool      // a session that no consumer has read to its end
}

// Retain removes old and excess segments, and returns the number of bytes. It
// keeps records that are not consumed, and every segment with the intent of
// an open call. A problem with one session does not stop the removal of
// others.
func Retain(ctx context.Context, c RetainConfig) (int64, error) {
	f := disk.OrHost(c.FS)
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.now == nil {
		c.now = time.Now
	}
	ids, err := names(f, c.Dir)
	if err != nil {
		return 0, fmt.Errorf("removing old sessions: %w", err)
	}
	var errs []error
	if err := sweep(f, c.Dir); err != nil {
		errs = append(errs, fmt.Errorf("removing old sessions: %w", err))
	}
	if c.Age > 0 && len(ids) > 0 {
		c.clock, err = c.look(f)
		errs = append(errs, err)
	}
	var list []removalCandidate
	read := false // by a consumer
	for _, id := range ids {
		// Checked before each: there may be a hundred thousand, and shutdown
		// must not wait.
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if e, there := look(f, c.Dir, id); there {
			read = read || e.Shipped.Segment > 0
			more, err := c.removable(f, e)
			list, errs = append(list, more...), append(errs, err)
		}
	}
	keep, unnoted := false, false
	if c.FindConsumer && !c.Consumed {
		keep, err = c.wasRead(f, read)
		errs, unnoted = append(errs, err), err != nil
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].end.Before(list[j].end) }) // a third of the code of slices.SortStableFunc
	var total, removed int64
	kept := 0
	for _, u := range list {
		total += u.size
	}
	for _, u := range list {
		old := c.Age > 0 && c.clock.Sub(u.end) > c.Age
		if !old && (!c.Consumed || c.Bytes <= 0 || total <= c.Bytes) {
			continue
		}
		if keep && u.unread {
			kept++
			continue
		}
		if unnoted { // one that was read stays, to tell it at the next run
			unnoted = false
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
	if kept > 0 {
		c.Log.Warn("old sessions are kept until their consumer has read them: start it, or set spool.consumer to none", zap.Int("sessions", kept))
	}
	return removed, errors.Join(errs...)
}

// wasRead reports whether a consumer has ever read a session of the spool: one does
// now, or did in a session that was removed since. In an outage that is longer than
// c.Age no session that was read is left, only those that wait.
//
// A crash leaves the file or not, and nothing is removed before; several processes may make
// it at once.
func (c RetainConfig) wasRead(f disk.FS, now bool) (bool, error) {
	name := filepath.Join(c.Dir, readFile)
	if _, err := f.Lstat(name); err == nil {
		return true, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return true, fmt.Errorf("looking whether a consumer has read sessions: %w", err)
	}
	if !now {
		return false, nil
	}
	err := disk.ReplaceFile(f, name, nil)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		err = nil // another process notes the same at this moment
	}
	if err != nil {
		err = fmt.Errorf("noting that a consumer has read sessions: %w", err)
	}
	return true, err
}

// removable lists the segments of a session that may be removed.
func (c RetainConfig) removable(f disk.FS, e Entry) ([]removalCandidate, error) {
	session := filepath.Join(c.Dir, sessionsDir, e.ID)
	if e.Err != nil || e.State == Dead || len(e.Segments) == 0 {
		return nil, nil // Recover runs first, and needs all segments
	}
	whole := e.State == Ended && (!c.Consumed || !e.Unshipped())
	if whole && !c.Consumed {
		last := filepath.Join(session, segmentName(e.Segments[len(e.Segments)-1]))
		return []removalCandidate{{session, 0, e.Bytes, e.Modified, true, e.Unshipped()}}, c.redate(f, last, e.Modified)
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
	var list []removalCandidate
	var end time.Time
	for i, no := range e.Segments {
		if no >= before && !whole {
			break
		}
		name := filepath.Join(session, segmentName(no))
		st, err := f.Lstat(name)
		if err == nil {
			err = c.redate(f, name, st.ModTime)
		}
		if err != nil {
			return nil, fmt.Errorf("looking at session %q: %w", e.ID, err)
		}
		// The clock may have been set back: segments are removed in order.
		if st.ModTime.After(end) {
			end = st.ModTime
		}
		list = append(list, removalCandidate{session, no, st.Disk, end, whole && i == len(e.Segments)-1, false})
	}
	if whole {
		beside, err := besideSegments(f, session)
		list[len(list)-1].size += beside
		return list, err
	}
	return list, nil
}

// besideSegments returns the disk space of a session's other files, which is
// most of a short session's.
func besideSegments(f disk.FS, session string) (int64, error) {
	i, err := f.Lstat(session)
	if err != nil {
		return 0, fmt.Errorf("looking at session: %w", err)
	}
	sum := i.Disk
	names, err := f.ReadDir(session)
	for _, name := range names {
		if _, segment := segmentNo(name); segment {
			continue
		}
		if i, err := f.Lstat(filepath.Join(session, name)); err == nil { // else it has been removed
			sum += i.Disk
		}
	}
	return sum, err
}

// look returns the time that ages are measured at. The system's clock may be
// wrong: years ahead, it would make everything old. So a time counts only
// when a look at least a day later, or a quarter of c.Age, finds that the
// clock has advanced from it. Until then, and after the clock was set back,
// the previous time counts; without one nothing is old. A clock that stays
// wrong for longer is believed.
//
// A crash leaves the looks before or after; several processes may look at once.
func (c RetainConfig) look(f disk.FS) (time.Time, error) {
	name, now := filepath.Join(c.Dir, looksFile), c.now()
	var counts, last int64 // seconds since 1970, 0 for none
	if b, err := disk.ReadFile(f, name, looksSize); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, fmt.Errorf("reading when the clock was looked at: %w", err)
	} else if _, err := fmt.Sscanf(string(b), "%d %d\n", &counts, &last); err != nil || counts > last {
		counts, last = 0, 0
	}
	wait := min(lookAgain, c.Age/4)
	switch passed := now.Sub(time.Unix(last, 0)); {
	case last == 0 || passed < -time.Minute: // NTP sets a clock back a little
		counts, last = 0, now.Unix()
	case passed >= wait:
		counts, last = last, now.Unix()
	default:
		return unixOrZero(counts), nil
	}
	err := disk.ReplaceFile(f, name, fmt.Appendf(nil, "%d %d\n", counts, last))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		err = nil // another process notes the same at this moment
	}
	if err != nil {
		err = fmt.Errorf("noting when the clock was looked at: %w", err)
	}
	return unixOrZero(counts), err // on a full disk, old segments must be removed all the same
}

func unixOrZero(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// redate sets the time of a file from the future to now: written while the
// clock was ahead, it would not grow old for that long. While no time counts,
// the clock itself may be behind.
func (c RetainConfig) redate(f disk.FS, name string, modified time.Time) error {
	if now := c.now(); !c.clock.IsZero() && modified.After(now.Add(future)) {
		return f.Chtimes(name, now)
	}
	return nil
}

// firstOpen returns the first segment that holds the intent of an open call.
func firstOpen(f disk.FS, session string) (uint32, error) {
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

func (u removalCandidate) remove(f disk.FS) error {
	if !u.last {
		return f.Remove(filepath.Join(u.session, segmentName(u.no)))
	}
	l, err := f.OpenFile(filepath.Join(u.session, lockFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if ok, err := l.Lock(false); err != nil || !ok {
		l.Close()
		return errors.Join(err, errors.New("locked by another process"))
	}
	// Renamed first: a crash during the removal must not leave an apparently
	// dead session. sweep completes it.
	old := filepath.Join(filepath.Dir(u.session), oldPrefix+filepath.Base(u.session))
	if err := f.Rename(u.session, old); err != nil {
		l.Close()
		return err
	}
	if err := removeLocked(f, old, l); !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil // a reader has a file open, on NFS or FUSE: the next sweep removes the rest
}

// sweep completes removals that a crash interrupted. names has checked that no other
// user can write the directory.
func sweep(f disk.FS, dir string) error {
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
