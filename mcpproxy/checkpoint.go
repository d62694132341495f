package mcpproxy

import (
	"fmt"
	"time"

	"go.uber.org/zap"
)

// runCheckpoints writes session_start, hashes records and writes checkpoints, until
// stop is closed.
func (s *session) runCheckpoints(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.proof.kick:
		case <-s.proof.due.C:
		}
		s.checkpoint()
	}
}

// checkpoint hashes what was written, and writes a checkpoint if one is due. It
// signs before it takes the session's mutex, so that no call waits; where records
// are written faster than it signs, it signs with the mutex held.
func (s *session) checkpoint() {
	p := &s.proof
	if p.keys != nil { // what begin needs, before the mutex is locked
		_, _ = p.keys() // begin reports an error
		s.proxy()
	}
	s.mu.Lock()
	s.begin()
	now := time.Now()
	signer, base, due, calm := p.signer, s.base, p.isDue(now), now.Sub(p.since) >= calmAfter
	lines := p.fresh
	p.fresh, p.spare = p.spare[:0], nil
	// Locked before the session's mutex is released: the lines that come next are
	// hashed next.
	p.growing.Lock()
	s.mu.Unlock()
	p.hash(lines)
	var early []byte
	var err error
	size := p.tree.Size()
	if signer != nil && due && calm {
		early, err = p.checkpoint(base, now, signer)
	}
	p.growing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.spare = lines[:0]
	if p.signer == nil || !due {
		return
	}
	if err == nil {
		err = s.appendCheckpoint(now, early, size)
	}
	if err != nil {
		// It is tried again. What the checkpoint was to cover stays uncovered.
		p.due.Reset(checkpointEvery)
		if !p.failing {
			s.cfg.Log.Warn("checkpoint not written", zap.Error(err))
		}
	}
	p.failing = err != nil
}

// appendCheckpoint writes a checkpoint: the line that was made early, if no record
// was written after that.
func (s *session) appendCheckpoint(now time.Time, line []byte, size int64) error {
	p := &s.proof
	p.growing.Lock()
	defer p.growing.Unlock()
	p.grow()
	if uint64(p.tree.Size()) != s.seq {
		return fmt.Errorf("%d records wait for the spool", int64(s.seq)-p.tree.Size())
	}
	if line == nil || size != p.tree.Size() {
		var err error
		if line, err = p.checkpoint(s.base, now, p.signer); err != nil {
			return err
		}
	}
	pos, err := s.cfg.Journal.Append(line, false)
	if err != nil {
		return err
	}
	s.pos = pos
	s.seq++
	p.hash(line)
	p.uncovered = 0
	return nil
}

// appendLastCheckpoint appends to lines, the session's last, the checkpoint that
// covers them. What waits for the journal is not written: then there is none.
func (s *session) appendLastCheckpoint(lines []byte, now time.Time) []byte {
	p := &s.proof
	if p.signer == nil {
		return lines
	}
	p.growing.Lock()
	defer p.growing.Unlock()
	p.grow()
	p.hash(lines)
	signer := p.signer
	p.signer = nil
	p.due.Stop()
	if uint64(p.tree.Size()) != s.seq {
		return lines
	}
	line, err := p.checkpoint(s.base, now, signer)
	if err != nil {
		s.cfg.Log.Error("last checkpoint not written", zap.Error(err))
		return lines
	}
	s.seq++
	return append(lines, line...)
}
