package spool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/internal/diskfull"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"

	"golang.org/x/sys/unix"
)

// State is the state of a session.
type State uint8

// The states.
const (
	Live  State = iota // a process has its lock
	Dead               // its lock is free and it has no end: Recover ends it
	Ended              // its last line is a session_end record
)

func (s State) String() string {
	return [...]string{"live", "dead", "ended"}[s]
}

// An Entry is a session in a spool directory.
type Entry struct {
	ID       string
	State    State
	Segments []uint32  // numbers, ascending; retention removes the first ones
	Bytes    int64     // in the segments
	Durable  Position  // how far its writer has synced
	End      Position  // how far it is written; after a dead writer it may be past Durable
	Shipped  Position  // the position of its consumer; zero: not started
	Waiting  int64     // bytes from Shipped on
	Modified time.Time // of the last segment
	Torn     []string  // names of the bad tails that recovery set aside
	Err      error     // why it cannot be read, else nil; the fields above may be incomplete
}

// Unshipped reports whether records wait for a consumer.
func (e Entry) Unshipped() bool { return e.Shipped.Before(e.Durable) }

// Finished reports whether the session has ended and its consumer has all of
// it, so that it does not change any more. If a writer died between its last
// line and publishing it, Recover publishes the ended session later.
func (e Entry) Finished() bool {
	return e.Err == nil && e.State == Ended && e.Durable == e.End && !e.Unshipped()
}

// List returns the sessions in a spool directory, oldest first, as their ids
// sort. A session that cannot be read has its Err set. For a missing or empty
// directory the list is empty.
func List(dir string) ([]Entry, error) { return list(disk.Host(), dir, nil) }

// Sessions per goroutine, and the limit on goroutines: listing a year of
// sessions mostly waits for the disk or the kernel.
const (
	perLooker  = 64
	maxLookers = 8
)

// list is List, but calls looked, if not nil, after each session, from
// several goroutines.
func list(f disk.FS, dir string, looked func(sessions int64)) ([]Entry, error) {
	ids, err := names(f, dir)
	entries, there := make([]Entry, len(ids)), make([]bool, len(ids))
	var next atomic.Int64
	var lookers sync.WaitGroup
	for range min((len(ids)+perLooker-1)/perLooker, maxLookers) {
		lookers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
				entries[i], there[i] = look(f, dir, ids[i])
				if looked != nil {
					looked(1)
				}
			}
		})
	}
	lookers.Wait()
	found := entries[:0]
	for i := range entries {
		if there[i] {
			found = append(found, entries[i])
		}
	}
	return found, err
}

// Names returns the ids of the sessions in a spool directory, oldest first.
// It costs little compared to List, which opens files of each.
func Names(dir string) ([]string, error) { return names(disk.Host(), dir) }

func names(f disk.FS, dir string) ([]string, error) {
	sessions := filepath.Join(dir, sessionsDir)
	// A directory of another user is one problem, not one for each session.
	err := disk.CheckDir(f, sessions)
	var all []string
	if err == nil {
		all, err = f.ReadDir(sessions)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	// Other names are .new- and .old- directories, or not the spool's.
	return slices.DeleteFunc(all, func(name string) bool { return validID(name) != nil }), nil
}

// Look returns the Entry of one session, and whether it exists.
func Look(dir, id string) (Entry, bool) {
	if validID(id) != nil {
		return Entry{}, false
	}
	return look(disk.Host(), dir, id)
}

func look(f disk.FS, dir, id string) (Entry, bool) {
	e, session := Entry{ID: id}, filepath.Join(dir, sessionsDir, id)
	if err := e.look(f, session); errors.Is(err, fs.ErrNotExist) && gone(f, session) {
		return Entry{}, false // retention removed it meanwhile
	} else if err != nil {
		e.Err = fmt.Errorf("looking at session %q: %w", id, err)
	}
	return e, true
}

// Machine returns the machine that wrote a session, "" if unknown.
func Machine(dir, id string) string {
	if validID(id) != nil {
		return ""
	}
	m, err := disk.ReadFile(disk.Host(), filepath.Join(dir, sessionsDir, id, machineFile), 256)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(m))
}

func gone(f disk.FS, session string) bool {
	_, err := f.Lstat(session)
	return errors.Is(err, fs.ErrNotExist)
}

// look fills e from the session's directory.
func (e *Entry) look(f disk.FS, session string) error {
	if err := disk.CheckDir(f, session); err != nil {
		return err
	}
	names, err := f.ReadDir(session)
	if err != nil {
		return err
	}
	hasDurable, hasShipped := false, false
	var sizes []int64
	for _, name := range names {
		switch name {
		case durableFile:
			hasDurable = true
		case shippedFile:
			hasShipped = true
		}
		no, ok := segmentNo(name)
		if !ok {
			if strings.Contains(name, tornInfix) {
				e.Torn = append(e.Torn, name)
			}
			continue
		}
		i, err := f.Lstat(filepath.Join(session, name))
		if err != nil {
			return err
		}
		e.Segments = append(e.Segments, no)
		sizes = append(sizes, i.Size)
		e.Bytes += i.Size
		e.Modified = i.ModTime
		e.End = Position{no, i.Size}
	}
	if hasShipped {
		e.Shipped = readShipped(f, session)
	}
	for i, no := range e.Segments {
		switch {
		case no > e.Shipped.Segment:
			e.Waiting += sizes[i]
		case no == e.Shipped.Segment:
			e.Waiting += max(sizes[i]-e.Shipped.Offset, 0)
		}
	}
	if hasDurable {
		if e.Durable, err = loadDurable(f, session); err != nil {
			return err
		}
	}
	live, err := locked(f, session)
	switch {
	case err != nil:
		return err
	case live:
		e.State = Live
		return nil
	}
	e.State = Dead
	ended, _, err := endsWell(f, session, e.Segments)
	if ended {
		e.State = Ended
	}
	return err
}

// foreign reports whether a session was written on another machine than this one.
func foreign(f disk.FS, session, this string, durable Position) (bool, error) {
	m, err := disk.ReadFile(f, filepath.Join(session, machineFile), 256)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	m, whole := bytes.CutSuffix(m, []byte("\n"))
	// The first sync covers the machine's name: a crash before that may leave
	// none, or a part of it.
	unknown := !whole && durable == Position{}
	return string(m) != this && !unknown, nil
}

func loadDurable(f disk.FS, session string) (Position, error) {
	name := filepath.Join(session, durableFile)
	d, err := f.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, nil
	}
	if err != nil {
		return Position{}, err
	}
	defer d.Close()
	if err := disk.CheckRegular(d, name); err != nil {
		return Position{}, err
	}
	return readDurable(d)
}

// locked reports whether a process has the session's lock. It takes the lock
// briefly and shared, so that concurrent checks do not see each other.
func locked(f disk.FS, session string) (bool, error) {
	l, err := f.OpenFile(filepath.Join(session, lockFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, noLock(err)
	}
	if err != nil {
		return false, err
	}
	defer l.Close()
	free, err := l.Lock(true)
	return !free, err
}

func noLock(err error) error {
	return fmt.Errorf("lock file is gone: if its proxy is too, auditproxy recover --force: %w", err)
}

// endsWell reports whether the session ends with a session_end, followed at
// most by a checkpoint, which covers it, and lines that this version does not
// know.
func endsWell(f disk.FS, session string, segs []uint32) (ended, covered bool, err error) {
	if len(segs) == 0 {
		return false, false, nil
	}
	name := filepath.Join(session, segmentName(segs[len(segs)-1]))
	r, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false, false, err
	}
	defer r.Close()
	if err := disk.CheckRegular(r, name); err != nil {
		return false, false, err
	}
	i, err := r.Stat()
	if err != nil {
		return false, false, err
	}
	// A session_end is short, and so are the lines that may follow it; the
	// end of a longer line is enough to answer no.
	b := make([]byte, min(i.Size, 16<<10))
	if _, err := r.ReadAt(b, i.Size-int64(len(b))); ignoreEOF(err) != nil {
		return false, false, err
	}
	for {
		rest, ok := bytes.CutSuffix(b, []byte("\n"))
		if !ok {
			return false, false, nil
		}
		b = rest[:bytes.LastIndexByte(rest, '\n')+1]
		kind, rec, err := audit.ParseLine(rest[len(b):])
		switch {
		case err != nil || !audit.Check(rest[len(b):]):
			return false, false, nil
		case kind == audit.LineRecord && rec.Kind == audit.KindCheckpoint:
			covered = true
		case kind == audit.LineRecord && rec.Kind.Known():
			return rec.Kind == audit.KindSessionEnd, covered, nil
		case kind == audit.LineIntent || kind == audit.LineContext || kind == audit.LineTool:
			return false, false, nil
		}
		// A newer proxy may write unknown kinds of records and lines after it.
	}
}

// Usage is the state of a spool directory.
type Usage struct {
	Dir      string
	Writable error  // nil: a session can be created; fs.ErrNotExist: the directory will be made
	Bytes    int64  // in segments
	Free     int64  // bytes available to this user
	Inodes   uint64 // free, as disk.Room has them
	Live     int
	Dead     int // sessions to recover
	Foreign  int // of them, those of another machine: only RecoverConfig.Force ends them
	Ended    int
	Unread   int // sessions that cannot be read, see Entry.Err
	// Unshipped counts sessions with durable lines that were not consumed.
	Unshipped int
	Read      bool // a consumer has ever read one, as far as the directory tells
	Sessions  []Entry
}

const readFile = "read" // in the spool directory: a consumer has read a session, see wasRead

// Status checks a spool directory. It writes an empty file and removes it. It
// calls looked, if not nil, after each session, from several goroutines.
func Status(dir string, looked func(sessions int64)) (Usage, error) {
	u := Usage{Dir: dir, Writable: diskfull.WithRemedy(probe(disk.Host(), dir))}
	room, err := disk.Space(dir)
	if err != nil {
		return u, err
	}
	u.Free, u.Inodes = int64(room.Free), room.Inodes
	u.Sessions, err = list(disk.Host(), dir, looked)
	_, unread := os.Lstat(filepath.Join(dir, readFile))
	u.Read = unread == nil
	this := machineID()
	for _, e := range u.Sessions {
		u.Bytes += e.Bytes
		switch {
		case e.Err != nil:
			u.Unread++
			continue
		case e.State == Live:
			u.Live++
		case e.State == Dead:
			u.Dead++
			// Recovery tells what cannot be read.
			if other, err := foreign(disk.Host(), filepath.Join(dir, sessionsDir, e.ID), this, e.Durable); err == nil && other {
				u.Foreign++
			}
		default:
			u.Ended++
		}
		if e.Unshipped() {
			u.Unshipped++
		}
		u.Read = u.Read || e.Shipped.Segment > 0
	}
	return u, err
}

func probe(f disk.FS, dir string) error {
	if err := disk.CheckDir(f, dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = cmp.Or(probeParent(filepath.Dir(dir)), err)
		}
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf(".probe-%d", os.Getpid()))
	p, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(p.Close(), f.Remove(name))
}

// probeParent returns why directories cannot be made in dir, which may have to be
// made too.
func probeParent(dir string) error {
	switch err := unix.Access(dir, unix.W_OK|unix.X_OK); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir:
		return probeParent(filepath.Dir(dir))
	default:
		return fmt.Errorf("making a directory in %q: %w", dir, err)
	}
}
