package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

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
		err = s.fillBallast()
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("creating session in %q: %w", c.Dir, err)
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
		c: c, fs: orOS(c.FS), log: c.Log, id: id,
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
	if err := makeDirs(s.fs, sessions); err != nil {
		return err
	}
	return errors.Join(checkDir(s.fs, s.c.Dir), checkDir(s.fs, sessions))
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

// discard removes a directory that makeDir could not complete. Its contents
// are in memory too.
func (s *Session) discard() {
	for _, f := range []File{s.lock, s.durable} {
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
func (s *Session) create(name string) (File, error) {
	return s.fs.OpenFile(filepath.Join(s.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// lockNew makes a lock file and takes it.
func lockNew(f FS, name string) (File, error) {
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

// newSegment starts a segment: a line that names the repeated segments, if
// any, the lines of Head, and the lines to repeat. It is called with mu held
// and changes nothing if it fails.
func (s *Session) newSegment(repeat uint32, lines ...[]byte) (*segment, error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_EXCL | os.O_APPEND
	name := filepath.Join(s.dir, segmentName(s.next))
	f, err := s.fs.OpenFile(name, flags, 0o600)
	for range 8 {
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		// Another program's, or left behind below: not to be changed.
		s.next++
		name = filepath.Join(s.dir, segmentName(s.next))
		f, err = s.fs.OpenFile(name, flags, 0o600)
	}
	if err != nil {
		return nil, err
	}
	// The path it will have when makeDir is done.
	seg := &segment{f: f, no: s.next, limit: segmentSize, name: filepath.Join(filepath.Dir(filepath.Dir(name)), s.id, segmentName(s.next))}
	b := s.scratch[:0]
	if repeat != 0 {
		b = appendRepeat(b, repeat)
	}
	if s.c.Head != nil {
		from := len(b)
		if b = s.c.Head(b); len(b)-from > maxHead {
			b = b[:from+1+bytes.LastIndexByte(b[from:from+maxHead], '\n')]
		}
	}
	seg.head = int64(len(b))
	for _, l := range lines {
		b = append(b, l...)
	}
	seg.size = int64(len(b))
	if len(b) > 0 {
		_, err = f.Write(b)
	}
	if s.scratch = b[:0]; cap(b) > softPending {
		s.scratch = nil
	}
	if err == nil {
		var i Info
		i, err = f.Stat()
		seg.inode = i.Inode
	}
	if err != nil {
		// It holds only copies of lines in memory. If it cannot be removed,
		// the next attempt finds its number in use.
		f.Close()
		_ = s.fs.Remove(name)
		return nil, err
	}
	s.next++
	s.newNames = true
	return seg, nil
}

// fillBallast reserves the ballast's space. It is called with mu held.
func (s *Session) fillBallast() error {
	name := filepath.Join(s.dir, ballastFile)
	f, err := s.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = allocate(f, ballastSize); errors.Is(err, errors.ErrUnsupported) {
		err = writeNoise(f, ballastSize)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = s.fs.Remove(name) // final records need the space of a part of it
		return err
	}
	s.ballast = true
	return nil
}

// allocate reserves space for f without writing it, because the server starts
// only after the session. It returns errors.ErrUnsupported where the file
// system cannot.
func allocate(f File, size int64) error {
	if a, ok := f.(interface{ allocate(size int64) error }); ok {
		return a.allocate(size)
	}
	return errors.ErrUnsupported
}

// writeNoise writes size bytes that no file system can compress.
func writeNoise(f File, size int) error {
	noise := rand.NewPCG(1, 2)
	b := make([]byte, 32<<10)
	for range size / len(b) {
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], noise.Uint64())
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// freeBallast frees the ballast's space for the next lines, and reports
// whether there was one. It is called with mu held.
func (s *Session) freeBallast() bool {
	if !s.ballast {
		return false
	}
	s.ballast = false
	s.ballastAt = time.Now().Add(ballastEvery)
	if err := s.fs.Remove(filepath.Join(s.dir, ballastFile)); err != nil {
		s.log.Warn("ballast not freed", zap.String("session", s.id), zap.Error(err))
		return false
	}
	s.log.Warn("disk full, ballast freed", zap.String("session", s.id))
	return true
}

// release closes everything; the lock is free afterwards. It is called with mu
// held.
func (s *Session) release() error {
	var errs []error
	for _, g := range append(s.old, s.cur) {
		if g != nil {
			errs = append(errs, g.f.Close())
		}
	}
	s.cur, s.old = nil, nil
	for _, f := range []File{s.durable, s.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	s.durable, s.lock, s.closed = nil, nil, true
	s.due.Stop()
	return errors.Join(errs...)
}
