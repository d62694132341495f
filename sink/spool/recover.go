package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool/chain"
	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// A RecoverConfig selects the sessions to recover.
type RecoverConfig struct {
	Dir     string      // the spool directory. Required.
	Machine string      // who this machine is; "" for its machine-id(5)
	Force   bool        // also sessions of other machines, whose locks are invisible here
	KeyFile string      // the host's key, see chain.Config
	Log     *zap.Logger // nil: none
	FS      disk.FS     // nil for the real one
}

// A Recovered is a session that recovery has ended.
type Recovered struct {
	Session string
	Unknown int      // calls that were open
	Damaged int      // places that could not be read; they stay unchanged
	Torn    []string // names of the bad tails that were set aside

	Unsigned error // why there is no last checkpoint, although the session has evidence; nil: there is one
}

// A Skipped is a session without a writer that was left unchanged.
type Skipped struct {
	Session string
	Err     error // why
}

// maxTail is the limit on a copied tail in bytes. A crash leaves less; a
// longer tail was written by another program, and its copy could fill memory
// and disk.
const maxTail = 2 * maxPending

// maxStart is the limit on a session_start in bytes, beyond which its evidence is
// not looked for.
const maxStart = 64 << 10

// errForeign is the reason for skipping a session of another machine.
var errForeign = errors.New("written on another machine: recover it there, or here with auditproxy recover --force if that machine is gone")

// A recovery is the recovery of one session.
type recovery struct {
	RecoverConfig
	fs      disk.FS
	id, dir string
	lock    disk.File
	durable Position
	result  Recovered
	settled bool // ended and published: it never needs recovery again

	uncovered bool // it has ended, and only its last checkpoint is missing
}

// run reports whether it ended the session.
func (r *recovery) run(ctx context.Context, unnamed bool) (bool, error) {
	if unnamed {
		// Between its mkdir and its flock a live process holds no lock, and its
		// files appear one by one.
		i, err := r.fs.Lstat(r.dir)
		if err != nil || time.Since(i.ModTime) < time.Minute {
			return false, err
		}
	}
	if err := disk.CheckDir(r.fs, r.dir); err != nil {
		return false, err
	}
	var err error
	if r.durable, err = loadDurable(r.fs, r.dir); err != nil {
		return false, err
	}
	if err := r.checkMachine(); err != nil {
		if errors.Is(err, errForeign) && !unnamed {
			// A container leaves many that ended well. Nothing is missing in them.
			r.settled = r.complete()
		}
		if r.settled {
			return false, nil
		}
		return false, err
	}
	ok, err := r.take(unnamed)
	if err != nil || !ok {
		return false, err
	}
	defer func() {
		if r.lock != nil {
			r.lock.Close()
		}
	}()
	if unnamed {
		if kept, err := r.name(); err != nil || !kept {
			return false, err
		}
	}
	segs, err := segments(r.fs, r.dir)
	if err != nil {
		return false, err
	}
	// Again, now that the lock protects it.
	if r.durable, err = loadDurable(r.fs, r.dir); err != nil {
		return false, err
	}
	ended, covered, err := endsWell(r.fs, r.dir, segs)
	if err != nil {
		return false, err
	}
	if ended && (covered || !r.lacksCheckpoint(segs)) {
		return r.publish(ctx, segs)
	}
	r.uncovered = ended
	return true, r.end(ctx, segs, false)
}

// checkMachine refuses a session that another machine wrote.
func (r *recovery) checkMachine() error {
	other, err := foreign(r.fs, r.dir, r.Machine, r.durable)
	if err != nil || !other || r.Force {
		return err
	}
	return errForeign
}

// complete reports whether the session has all that recovery would give it. It takes
// no lock, which is invisible on another machine; a writer adds nothing after it.
func (r *recovery) complete() bool {
	segs, err := segments(r.fs, r.dir)
	if err != nil || len(segs) == 0 {
		return false
	}
	last := segs[len(segs)-1]
	i, err := r.fs.Lstat(filepath.Join(r.dir, segmentName(last)))
	if err != nil || r.durable != (Position{last, i.Size}) {
		return false
	}
	ended, covered, err := endsWell(r.fs, r.dir, segs)
	return err == nil && ended && (covered || !r.lacksCheckpoint(segs))
}

// take locks the session. It returns false if another process has the lock.
func (r *recovery) take(unnamed bool) (bool, error) {
	flags := os.O_RDWR
	if unnamed || r.Force {
		flags |= os.O_CREATE
	}
	l, err := r.fs.OpenFile(filepath.Join(r.dir, lockFile), flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// Its writer may be alive and hold a file that was removed.
		return false, noLock(err)
	}
	if err != nil {
		return false, err
	}
	ok, err := l.Lock(false)
	if err != nil || !ok {
		l.Close()
		return false, err
	}
	r.lock = l
	return true, nil
}

// name completes a directory whose maker died, by renaming it, if a line was
// written in it. Otherwise it removes it: no call was executed. It reports
// whether there is a session now.
func (r *recovery) name() (bool, error) {
	segs, err := segments(r.fs, r.dir)
	if err != nil {
		return false, err
	}
	for _, no := range segs {
		i, err := r.fs.Lstat(filepath.Join(r.dir, segmentName(no)))
		if err != nil {
			return false, err
		}
		if i.Size == 0 {
			continue
		}
		final := filepath.Join(filepath.Dir(r.dir), r.id)
		if _, err := r.fs.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
			// It was remade after it had been removed: there are two, keep both.
			return false, errors.Join(fmt.Errorf("session %q is there too, look at both", r.id), err)
		}
		if err := r.fs.Rename(r.dir, final); err != nil {
			return false, err
		}
		r.dir = final
		return true, disk.SyncNames(r.fs, filepath.Dir(final))
	}
	lock := r.lock
	r.lock = nil
	return false, removeLocked(r.fs, r.dir, lock)
}

// publish syncs and publishes an ended session, and reports whether that was
// necessary: its writer may have died before it did.
func (r *recovery) publish(ctx context.Context, segs []uint32) (bool, error) {
	last := segs[len(segs)-1]
	i, err := r.fs.Lstat(filepath.Join(r.dir, segmentName(last)))
	if err != nil {
		return false, err
	}
	if r.durable == (Position{last, i.Size}) {
		err := r.dropBallast()
		r.settled = err == nil
		return false, err
	}
	return true, r.end(ctx, segs, true)
}

func (r *recovery) dropBallast() error {
	err := r.fs.Remove(filepath.Join(r.dir, ballastFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// end writes the missing records. A crash at any step leaves the session
// dead, with some of its calls ended.
func (r *recovery) end(ctx context.Context, segs []uint32, ended bool) error {
	r.result.Session = r.id
	for _, no := range segs {
		name := filepath.Join(r.dir, segmentName(no))
		i, err := r.fs.Lstat(name)
		if err != nil {
			return err
		}
		if err := checkSize(i, name); err != nil {
			return err
		}
		// The bytes read below must be on the medium.
		if err := disk.SyncFile(r.fs, name); err != nil {
			return fmt.Errorf("syncing segment %d: %w", no, err)
		}
	}
	h, err := readHistory(r.fs, r.dir, r.durable)
	if err != nil {
		return err
	}
	r.result.Damaged = h.damaged
	for _, no := range segs {
		if err := r.setAside(no, h); err != nil {
			return fmt.Errorf("setting the tail of segment %d aside: %w", no, err)
		}
	}
	// The dead proxy kept it for the records written now.
	if err := r.dropBallast(); err != nil {
		return err
	}
	s, err := r.resume(segs, h)
	if err != nil {
		return err
	}
	if !ended {
		err = r.write(ctx, s, h)
	}
	return errors.Join(err, s.Close())
}

// setAside copies what follows the last good line of a segment to a file of
// its own and cuts it off. Published bytes stay, good or bad: a consumer's
// cursor may be past them.
func (r *recovery) setAside(no uint32, h *history) error {
	g, err := r.fs.OpenFile(filepath.Join(r.dir, segmentName(no)), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer g.Close()
	i, err := g.Stat()
	if err != nil {
		return err
	}
	from := h.ends[no].good
	switch {
	case no < r.durable.Segment:
		from = h.ends[no].line
	case no == r.durable.Segment:
		from = max(from, r.durable.Offset)
	}
	if from >= i.Size {
		return nil
	}
	if i.Size-from > maxTail || i.Links > 1 {
		r.result.Damaged++ // readers skip it in place
		return nil
	}
	name, err := r.copyTail(g, no, from, i.Size)
	if err != nil {
		return err
	}
	// A crash before this leaves the tail twice, and the next recovery finds
	// the copy.
	if err := g.Truncate(from); err != nil {
		return err
	}
	r.result.Torn = append(r.result.Torn, name)
	return g.Sync()
}

// copyTail makes a durable copy of g[from:to] and returns its name. An
// existing copy with other contents is from another recovery that died, and
// stays.
func (r *recovery) copyTail(g disk.File, no uint32, from, to int64) (string, error) {
	tail := make([]byte, to-from)
	if _, err := g.ReadAt(tail, from); ignoreEOF(err) != nil {
		return "", err
	}
	name := fmt.Sprintf("%08d%s%d", no, tornInfix, from)
	for n := 2; ; n++ {
		path := filepath.Join(r.dir, name)
		there, err := disk.ReadFile(r.fs, path, len(tail)+1)
		if err == nil && bytes.Equal(there, tail) {
			return name, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return name, disk.ReplaceFile(r.fs, path, tail)
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%08d%s%d-%d", no, tornInfix, from, n)
	}
}

// resume opens the session for writing after its last good line.
func (r *recovery) resume(segs []uint32, h *history) (*Session, error) {
	s := newSession(Config{Dir: r.Dir, Log: r.Log, Head: h.head, Machine: r.Machine, FS: r.fs}, r.id)
	s.next = max(1, r.durable.Segment+1)
	if n := len(segs); n > 0 {
		s.next = max(s.next, segs[n-1]+1)
	}
	s.newNames, s.newDir = true, true
	var err error
	name := filepath.Join(r.dir, durableFile)
	if i, err := r.fs.Lstat(name); err == nil && i.Links > 1 {
		// A backup, or another file: it must not receive the next lines.
		if err := disk.ReplaceFile(r.fs, name, appendPosition(nil, r.durable)); err != nil {
			return nil, err
		}
	}
	s.durable, err = r.fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if n := len(segs); n > 0 && segs[n-1] >= r.durable.Segment {
		if s.cur, err = r.reopen(segs[n-1]); err != nil {
			s.durable.Close()
			return nil, err
		}
	}
	if s.cur == nil {
		// No segment to continue: there is none, or its published end is
		// damaged, and a consumer's cursor may be past it.
		s.mu.Lock()
		err = s.restart()
		s.mu.Unlock()
		if err != nil {
			s.durable.Close()
			return nil, err
		}
	}
	s.lock, r.lock = r.lock, nil
	return s, nil
}

// reopen opens the last segment. It returns nil if that is shorter than the
// published position, does not end with a line, or has a second name, which
// may be a backup's.
func (r *recovery) reopen(no uint32) (*segment, error) {
	name := filepath.Join(r.dir, segmentName(no))
	g, err := r.fs.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	i, err := g.Stat()
	if err != nil {
		g.Close()
		return nil, err
	}
	last := []byte{'\n'}
	if i.Size > 0 {
		_, err = g.ReadAt(last, i.Size-1)
	}
	if err != nil || last[0] != '\n' || (Position{no, i.Size}).Before(r.durable) || i.Links > 1 {
		g.Close()
		return nil, ignoreEOF(err)
	}
	return &segment{f: g, no: no, name: name, inode: i.Inode, size: i.Size, limit: segmentSize}, nil
}

// write appends the missing records.
func (r *recovery) write(ctx context.Context, s *Session, h *history) error {
	var b []byte
	for _, rec := range h.unknown() {
		if b = r.appendRecord(b, h, &rec); len(b) >= 64<<10 {
			if err := r.append(ctx, s, b); err != nil {
				return err
			}
			b = b[:0]
		}
		r.result.Unknown++
	}
	now := time.Now()
	switch {
	case h.end == nil || r.result.Unknown > 0:
		if h.nextSeq == 0 && h.contextLine != nil {
			// The proxy was killed before it had its key. What it started is in the
			// context; the record has no evidence.
			rec := h.context
			rec.Kind, rec.RecordID, rec.TS, rec.Duration, rec.Recovered = audit.KindSessionStart, audit.NewID(now), begun(r.id, now), -1, true
			b = r.appendRecord(b, h, &rec)
		}
		rec := h.context
		rec.Kind, rec.RecordID, rec.TS, rec.Duration, rec.Recovered = audit.KindSessionEnd, audit.NewID(now), now, -1, true
		b = r.appendRecord(b, h, &rec)
	case !r.uncovered || s.cur.no != h.endSegment:
		// The session did end, but a failed sync started another segment, or the
		// one with the end was cut: repeat the lines there, where readers
		// recognize them.
		if err := s.rotate(h.endSegment); err != nil {
			return err
		}
		b = append(b, h.end...)
	}
	if b = r.appendCheckpoint(b, h, now); len(b) == 0 {
		r.settled = true // there is none to be had
		return nil
	}
	return r.append(ctx, s, b)
}

// begun returns when the session with an id began: the milliseconds in a UUID of
// version 7 (RFC 9562, section 5.7), or now if they are none before it.
func begun(id string, now time.Time) time.Time {
	ms, err := strconv.ParseInt(strings.ReplaceAll(id[:min(len(id), 13)], "-", ""), 16, 64)
	if t := time.UnixMilli(ms); err == nil && t.Before(now) {
		return t
	}
	return now
}

func (r *recovery) appendRecord(dst []byte, h *history, rec *audit.Record) []byte {
	rec.SessionID, rec.Seq = r.id, h.nextSeq
	from := len(dst)
	dst = audit.AppendRecord(dst, rec)
	if uint64(h.tree.Size()) == h.nextSeq {
		h.tree.Append(evidence.Leaf(dst[from : len(dst)-1]))
	}
	h.nextSeq++
	return dst
}

// appendCheckpoint appends the checkpoint of all records, signed with the host's
// key: the session's own died with its process. There is none if a record is
// missing: its leaf is unknown.
func (r *recovery) appendCheckpoint(dst []byte, h *history, now time.Time) []byte {
	if h.evidence.Origin == "" || h.last == audit.KindCheckpoint && h.end != nil || uint64(h.tree.Size()) != h.nextSeq {
		return dst
	}
	host, public, err := chain.Key(chain.Config{Dir: r.Dir, KeyFile: r.KeyFile, FS: r.fs})
	if err == nil && public != h.evidence.HostKey {
		err = fmt.Errorf("the session was begun under the host key %q", h.evidence.HostKey)
	}
	rec := h.context
	rec.Kind, rec.RecordID, rec.TS, rec.Duration, rec.Recovered = audit.KindCheckpoint, audit.NewID(now), now, -1, true
	rec.SessionID, rec.Seq = r.id, h.nextSeq
	if err == nil {
		err = (evidence.Checkpoint{Origin: h.evidence.Origin, Size: h.tree.Size(), Root: h.tree.Root()}).SignRecord(&rec, host)
	}
	if err != nil {
		r.result.Unsigned = err
		r.Log.Warn("recovered session has no last checkpoint", zap.String("session", r.id), zap.Error(err))
		return dst
	}
	return r.appendRecord(dst, h, &rec)
}

// lacksCheckpoint reports whether a session that has ended still needs the
// checkpoint of its last records: its writer, or a recovery, died in between.
func (r *recovery) lacksCheckpoint(segs []uint32) bool {
	lines, err := disk.ReadFile(r.fs, filepath.Join(r.dir, segmentName(segs[0])), maxStart)
	if err != nil {
		return false
	}
	first := lines
	for bytes.HasPrefix(first, []byte(`{"line":`)) { // the context, which may be before it
		_, first, _ = bytes.Cut(first, []byte("\n"))
	}
	first, _, _ = bytes.Cut(first, []byte("\n"))
	rec, err := audit.Parse(first)
	if err != nil {
		return false
	}
	e, err := evidence.ReadSession(&rec)
	if err != nil {
		return false
	}
	_, public, err := chain.Key(chain.Config{Dir: r.Dir, KeyFile: r.KeyFile, FS: r.fs})
	return err == nil && public == e.HostKey
}

func (r *recovery) append(ctx context.Context, s *Session, lines []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, err := s.Append(lines, true)
	return err
}
