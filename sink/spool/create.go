package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"auditproxy/internal/diskfull"
	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// Create makes the directory of a new session, locks it and returns it open.
// If the process dies in between, a `.new-<id>` directory remains for
// Recover. Nothing is synced: the first sync covers the directory too.
func Create(c Config, id string) (*Session, error) {
	if err := errors.Join(c.validate(), validID(id)); err != nil {
		return nil, fmt.Errorf("creating session: %w", err)
	}
	s := newSession(c, id)
	s.next = 1
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.makeRoot()
	if err == nil {
		s.cur, err = s.makeDir(0)
	}
	if err == nil {
		if err = s.fillBallast(); err != nil {
			s.cur.f.Close() // else NFS keeps it in the directory
			s.cur = nil
			s.discard() // each start on a full disk would leave a session
		}
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("creating session in %q: %w", c.Dir, diskfull.WithRemedy(err))
	}
	return s, nil
}

func (c Config) validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("dir is required"))
	}
	if c.Durability > OS {
		errs = append(errs, fmt.Errorf("durability is %d, want %d to %d", c.Durability, Intent, OS))
	}
	return errors.Join(errs...)
}

// newSession returns a session without files.
func newSession(c Config, id string) *Session {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Machine == "" {
		c.Machine = machineID()
	}
	s := &Session{
		c: c, fs: disk.OrHost(c.FS), log: c.Log, id: id,
		dir:        filepath.Join(c.Dir, sessionsDir, id),
		kick:       make(chan struct{}, 1),
		due:        time.NewTimer(time.Hour),
		retryAfter: retryFirst,
	}
	s.due.Stop()
	return s
}

// makeRoot makes the spool directory and the one for sessions, and refuses
// them if other users could change them.
func (s *Session) makeRoot() error {
	sessions := filepath.Dir(s.dir)
	if err := disk.MakeDirs(s.fs, sessions); err != nil {
		return err
	}
	return errors.Join(disk.CheckDir(s.fs, s.c.Dir), disk.CheckDir(s.fs, sessions))
}

// makeDir makes, locks and names the session's directory and starts a segment
// with the given lines. It is called with mu held.
func (s *Session) makeDir(repeat uint32, lines ...[]byte) (seg *segment, err error) {
	final, next := s.dir, s.next
	s.dir = filepath.Join(filepath.Dir(final), newPrefix+s.id)
	defer func() { s.dir = final }()
	// A crash from here to the rename leaves an unlocked directory with the
	// prefix. None of its lines was reported as written.
	if err := s.fs.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	if seg, err = s.fillDir(repeat, lines); err == nil {
		if _, lerr := s.fs.Lstat(final); !errors.Is(lerr, fs.ErrNotExist) {
			err = fmt.Errorf("session %q is there already: %w", s.id, fs.ErrExist)
		} else {
			err = s.fs.Rename(s.dir, final)
		}
	}
	if err != nil {
		if seg != nil {
			seg.f.Close()
		}
		s.next = next
		s.discard()
		return nil, err
	}
	s.newNames, s.newDir = true, true
	return seg, nil
}

// discard removes a directory that could not be completed. Its contents, if any,
// are in memory too.
func (s *Session) discard() {
	for _, f := range []disk.File{s.lock, s.durable} {
		if f != nil {
			f.Close()
		}
	}
	s.lock, s.durable = nil, nil
	names, _ := s.fs.ReadDir(s.dir)
	for _, name := range names {
		_ = s.fs.Remove(filepath.Join(s.dir, name))
	}
	_ = s.fs.Remove(s.dir)
}

func (s *Session) fillDir(repeat uint32, lines [][]byte) (*segment, error) {
	// Cleared before they are made again, so that discard closes only the new
	// ones.
	s.lock, s.durable = nil, nil
	var err error
	if s.lock, err = lockNew(s.fs, filepath.Join(s.dir, lockFile)); err != nil {
		return nil, err
	}
	m, err := s.create(machineFile)
	if err != nil {
		return nil, err
	}
	_, err = m.Write([]byte(s.c.Machine + "\n"))
	if err = errors.Join(err, m.Close()); err != nil {
		return nil, err
	}
	if s.durable, err = s.create(durableFile); err != nil {
		return nil, err
	}
	// Written in full now, so that publishing works on a full disk.
	if _, err := s.durable.WriteAt(make([]byte, 8), 0); err != nil {
		return nil, err
	}
	return s.newSegment(repeat, lines...)
}

// create makes a file that must not exist.
func (s *Session) create(name string) (disk.File, error) {
	return s.fs.OpenFile(filepath.Join(s.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// lockNew makes a lock file and takes it.
func lockNew(f disk.FS, name string) (disk.File, error) {
	l, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := l.Lock(false)
	if err == nil && !ok {
		err = fmt.Errorf("locking %q: another process has it", name)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
