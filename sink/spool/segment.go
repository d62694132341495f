package spool

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// The functions of this file are called with mu held.

// pending returns the number of bytes written and not known to be synced.
func (s *Session) pending() int { return len(s.live) + len(s.inflight) }

// newSegment starts a segment: a line that names the repeated segments, if
// any, the lines of Head, and the lines to repeat. It changes nothing if it
// fails.
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
		var i disk.Info
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

// cut removes the remains of a failed write. If that fails, the segment is
// abandoned: its last line stays torn, and the next segment records that it
// may repeat it.
func (s *Session) cut() error {
	err := s.cur.f.Truncate(s.cur.size)
	if err == nil {
		s.torn = false
		return nil
	}
	seg, nerr := s.newSegment(s.cur.no)
	if nerr != nil {
		return errors.Join(err, nerr)
	}
	s.log.Warn("segment abandoned", zap.String("session", s.id), zap.Uint32("segment", s.cur.no), zap.Error(err))
	s.old = append(s.old, s.cur)
	s.cur, s.torn = seg, false
	return nil
}

// rotate starts the next segment, which may repeat lines of segment repeat
// and later ones; 0 for none. The next sync syncs and closes the previous
// segment.
func (s *Session) rotate(repeat uint32) error {
	if s.torn {
		repeat = s.cur.no
	}
	seg, err := s.newSegment(repeat)
	if err != nil {
		return err
	}
	s.old = append(s.old, s.cur)
	s.cur, s.torn = seg, false
	return nil
}

// publish writes the position up to which readers may read. One pwrite: a
// shared mapping would be cheaper, but its writer dies by SIGBUS when the
// file is cut.
func (s *Session) publish(p Position) {
	var b [8]byte
	if _, err := s.durable.WriteAt(appendPosition(b[:0], p), 0); err != nil {
		// Readers lag until the next publish; nothing is lost.
		s.log.Warn("durable offset not published", zap.String("session", s.id), zap.Error(err))
	}
}

// release closes everything; the lock is free afterwards.
func (s *Session) release() error {
	var errs []error
	for _, g := range append(s.old, s.cur) {
		if g != nil {
			errs = append(errs, g.f.Close())
		}
	}
	s.cur, s.old = nil, nil
	for _, f := range []disk.File{s.durable, s.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	s.durable, s.lock, s.closed = nil, nil, true
	s.due.Stop()
	return errors.Join(errs...)
}
