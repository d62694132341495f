package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"auditproxy/internal/diskfull"
	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// The methods of this file are called with mu held.

// fillBallast reserves the ballast's space.
func (s *Session) fillBallast() error {
	name := filepath.Join(s.dir, ballastFile)
	f, err := s.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = reserve(f, ballastSize); errors.Is(err, errors.ErrUnsupported) {
		err = writeNoise(f, ballastSize)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = s.fs.Remove(name) // final records need the space of a part of it
		return err
	}
	s.ballast = true
	return nil
}

// reserve reserves space for f without writing it, because the server starts
// only after the session. It returns errors.ErrUnsupported where the file
// system cannot.
func reserve(f disk.File, size int64) error {
	if a, ok := f.(disk.Allocator); ok {
		return a.Allocate(size)
	}
	return errors.ErrUnsupported
}

// writeNoise writes size bytes that no file system can compress.
func writeNoise(f disk.File, size int) error {
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
// whether there was one.
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
	s.log.Warn("disk full, ballast freed", zap.String("dir", s.dir))
	return true
}

// regainBallast resumes service after a full disk. Intents are refused until
// the ballast is back, because their final records may need it.
func (s *Session) regainBallast() error {
	now := time.Now()
	if now.Before(s.ballastAt) {
		return fmt.Errorf("its ballast is not back: %w", diskfull.WithRemedy(unix.ENOSPC))
	}
	s.ballastAt = now.Add(ballastEvery)
	if err := s.fillBallast(); err != nil {
		return fmt.Errorf("getting ballast back: %w", err)
	}
	s.log.Warn("ballast is back", zap.String("session", s.id))
	return nil
}
