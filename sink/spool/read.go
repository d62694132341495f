package spool

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"
)

// A ReaderConfig configures a Reader.
type ReaderConfig struct {
	Dir     string   // the spool directory. Required.
	Session string   // the session's id. Required.
	From    Position // where to start, the end of an Item; zero: at the first remaining segment
	Durable bool     // read up to the position that the writer has synced, else to the end
	FS      disk.FS  // nil for the real one
}

// A Reader reads the lines of one session in order. It needs no lock and may
// read while the session is being written. Memory is constant; it does not
// allocate per line. A line that was written twice because a sync failed is
// returned once.
type Reader struct {
	fs      disk.FS
	session string    // directory
	durable disk.File // nil: not limited
	plain   bool      // ignores repeat markers
	all     bool      // returns repeated lines too

	// The fields below belong to the goroutine that calls Next.

	f      disk.File // nil: no segment is open
	seg    uint32
	from   Position // where to start in the next segment
	sealed bool     // this segment does not grow any more
	limit  int64    // offset in this segment to read to

	buf      []byte
	lo, hi   int   // buf[lo:hi] is read and not yet returned
	searched int   // no line feed in buf[lo:searched]
	off      int64 // offset of buf[lo]
	skipped  int64 // bytes of a line that is too long, before buf[lo]

	repeats *repeats // lines that this segment may repeat, else nil
}

// A segment is read in pieces of readSize, except the first piece: most
// sessions are short.
const (
	firstRead = 32 << 10
	readSize  = 1 << 20
)

// OpenReader opens a session for reading.
func OpenReader(c ReaderConfig) (*Reader, error) {
	if err := validID(c.Session); err != nil {
		return nil, fmt.Errorf("opening session: %w", err)
	}
	return openReader(c, filepath.Join(c.Dir, sessionsDir, c.Session))
}

func openReader(c ReaderConfig, session string) (*Reader, error) {
	r := &Reader{fs: disk.OrHost(c.FS), session: session, from: c.From}
	if err := disk.CheckDir(r.fs, r.session); err != nil {
		return nil, fmt.Errorf("opening session: %w", err)
	}
	if !c.Durable {
		return r, nil
	}
	name := filepath.Join(r.session, durableFile)
	f, err := r.fs.OpenFile(name, os.O_RDONLY, 0)
	if err == nil {
		err = disk.CheckRegular(f, name)
		if err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening session: %w", err)
	}
	r.durable = f
	return r, nil
}

// Close closes the reader's files. The reader cannot be used afterwards.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range []disk.File{r.f, r.durable} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	r.f, r.durable = nil, nil
	return errors.Join(errs...)
}

// Tail returns the start and number of the bytes after the last line feed,
// once Next returned io.EOF. In a live session they are a line being written,
// in a dead one a torn line.
func (r *Reader) Tail() (Position, int64) {
	return Position{r.seg, r.off - r.skipped}, r.skipped + int64(r.hi-r.lo)
}

// Next returns the next line or damage. It returns io.EOF at the current end;
// a later call may return more. Damage is an Item, not an error: reading
// continues at the next line feed.
func (r *Reader) Next() (Item, error) {
	for {
		if r.f == nil {
			item, err := r.open()
			if err != nil || item.Damage != Intact {
				return item, err
			}
		}
		if i := bytes.IndexByte(r.buf[r.searched:r.hi], '\n'); i >= 0 {
			if item, ok := r.line(r.searched + i); ok {
				return item, nil
			}
			continue
		}
		r.searched = r.hi
		if n, err := r.fill(); err != nil {
			return Item{}, err
		} else if n > 0 {
			continue
		}
		if !r.sealed {
			if more, err := r.refresh(); err != nil {
				return Item{}, err
			} else if !more {
				return Item{}, io.EOF
			}
			continue
		}
		if item, ok := r.finish(); ok {
			return item, nil
		}
	}
}

// line takes the line that ends with the line feed at buf[end]. It returns
// false for one that was returned before.
func (r *Reader) line(end int) (Item, bool) {
	line := r.buf[r.lo:end]
	item := Item{Line: line, Pos: Position{r.seg, r.off - r.skipped}, Length: r.skipped + int64(len(line)) + 1}
	switch {
	case r.skipped > 0 || len(line) > audit.MaxLine:
		item.Line, item.Damage = nil, LongLine
	case !audit.Check(line):
		item.Damage = BadLine
	}
	r.off += int64(end + 1 - r.lo)
	r.lo, r.searched, r.skipped = end+1, end+1, 0
	if item.Damage != Intact {
		return item, true
	}
	if from, ok := repeatFrom(line); ok && item.Pos.Offset == 0 && !r.plain {
		r.repeats = r.loadRepeats(from)
	} else if r.repeats != nil {
		item = r.repeats.check(item)
		return item, !item.again || r.all
	}
	return item, true
}

// fill reads more of the open segment and returns the number of bytes.
func (r *Reader) fill() (int, error) {
	if r.buf == nil {
		r.buf = make([]byte, firstRead)
	} else if len(r.buf) < readSize && r.hi == len(r.buf) {
		r.buf = append(r.buf, make([]byte, readSize-len(r.buf))...)
	}
	if r.hi-r.lo > audit.MaxLine {
		r.skipped += int64(r.hi - r.lo)
		r.off += int64(r.hi - r.lo)
		r.lo, r.hi = 0, 0
	} else if r.lo > 0 {
		r.hi = copy(r.buf, r.buf[r.lo:r.hi])
		r.lo = 0
	}
	r.searched = r.hi
	at := r.off + int64(r.hi)
	room := min(int64(len(r.buf)-r.hi), r.limit-at, maxSegment-at)
	if room <= 0 {
		if i, err := r.f.Stat(); err == nil && r.limit > at {
			// What a proxy may have written was read before this.
			if err := checkSize(i, filepath.Join(r.session, segmentName(r.seg))); err != nil {
				return 0, fmt.Errorf("reading session: %w", err)
			}
		}
		return 0, nil
	}
	n, err := r.f.ReadAt(r.buf[r.hi:r.hi+int(room)], at)
	r.hi += n
	if err = ignoreEOF(err); err != nil && n == 0 {
		return 0, fmt.Errorf("reading segment %d at %d: %w", r.seg, at, err)
	}
	return n, nil
}

// refresh checks whether the open segment has grown or is complete.
func (r *Reader) refresh() (more bool, err error) {
	if r.durable == nil {
		next, err := r.after(r.seg)
		if err != nil || next == 0 {
			return false, err
		}
		// The writer fills a segment before it makes the next one, so the
		// rest of this one is written now.
		r.sealed = true
		return true, nil
	}
	p, err := readDurable(r.durable)
	if err != nil {
		return false, fmt.Errorf("reading durable offset: %w", err)
	}
	return r.allow(p), nil
}

// allow sets how far to read in the open segment.
func (r *Reader) allow(p Position) (more bool) {
	switch {
	case p.Segment > r.seg:
		r.limit, r.sealed = math.MaxInt64, true
		return true
	case p.Segment == r.seg && p.Offset > r.limit:
		r.limit = p.Offset
		return true
	}
	return false
}

// finish leaves a complete segment; its end may be torn.
func (r *Reader) finish() (Item, bool) {
	pos, n := r.Tail()
	item := Item{Pos: pos, Length: n, Damage: TornEnd}
	if r.skipped == 0 {
		item.Line = r.buf[r.lo:r.hi]
	}
	r.f.Close() // only read
	r.f, r.repeats = nil, nil
	r.lo, r.hi, r.searched, r.skipped, r.off = 0, 0, 0, 0, 0
	r.from = Position{r.seg + 1, 0}
	return item, n > 0
}

// open opens the next segment. It returns damage if some are missing before
// it, and io.EOF if there is none yet.
func (r *Reader) open() (Item, error) {
	var p Position
	if r.durable != nil {
		var err error
		if p, err = readDurable(r.durable); err != nil {
			return Item{}, fmt.Errorf("reading durable offset: %w", err)
		}
	}
	no, err := r.after(max(r.from.Segment, 1) - 1)
	if err != nil {
		return Item{}, err
	}
	if no == 0 || r.durable != nil && no > p.Segment {
		return Item{}, io.EOF
	}
	if no > r.from.Segment {
		start := r.from.Segment
		r.from = Position{no, 0}
		if start > 0 {
			return Item{Pos: Position{start, 0}, Length: int64(no - start), Damage: Missing}, nil
		}
	}
	name := filepath.Join(r.session, segmentName(no))
	f, err := r.fs.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Item{}, io.EOF // removed since; the next call reports it
	}
	if err == nil {
		err = disk.CheckRegular(f, name)
		if err != nil {
			f.Close()
		}
	}
	if err != nil {
		return Item{}, fmt.Errorf("reading session: %w", err)
	}
	r.f, r.seg, r.off = f, no, r.from.Offset
	r.sealed, r.limit = false, math.MaxInt64
	if r.durable != nil {
		r.limit = 0
		r.allow(p)
	}
	return Item{}, r.startRepeats()
}

// after returns the first segment after no, 0 for none.
func (r *Reader) after(no uint32) (uint32, error) {
	// Looking up one name is cheaper than reading the directory, and nearly
	// always finds it.
	if _, err := r.fs.Lstat(filepath.Join(r.session, segmentName(no+1))); err == nil {
		return no + 1, nil
	}
	list, err := segments(r.fs, r.session)
	if err != nil {
		return 0, fmt.Errorf("reading session: %w", err)
	}
	for _, n := range list {
		if n > no {
			return n, nil
		}
	}
	return 0, nil
}

// checkSize refuses a segment that is longer than any proxy writes: reading all
// of it could take hours.
func checkSize(i disk.Info, name string) error {
	if i.Size > maxSegment {
		return fmt.Errorf("%q has %d bytes, more than a proxy writes: move it to a safe place", name, i.Size)
	}
	return nil
}

// loadRepeats reads the segments from no to the one before the reader's.
// Lines that cannot be read there were not returned before either.
func (r *Reader) loadRepeats(no uint32) *repeats {
	rep := &repeats{maphash.MakeSeed(), make(map[uint64]struct{}), make(map[uint64]uint64)}
	earlier := &Reader{fs: r.fs, session: r.session, plain: true, from: Position{max(no, 1), 0}}
	defer earlier.Close()
	for {
		item, err := earlier.Next()
		if err != nil || item.Pos.Segment >= r.seg {
			return rep
		}
		if item.Damage == Intact {
			rep.add(item)
		}
	}
}

// startRepeats reads the first line of a segment that the reader starts in
// the middle of.
func (r *Reader) startRepeats() error {
	if r.off == 0 || r.plain {
		return nil
	}
	head := make([]byte, 128)
	n, err := r.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading segment %d: %w", r.seg, err)
	}
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	if from, ok := repeatFrom(line); ok && audit.Check(line) {
		r.repeats = r.loadRepeats(from)
	}
	return nil
}
