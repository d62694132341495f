package wire

import (
	"hash"
	"sync"
)

const (
	minHanded = 16 << 10    // fewer bytes are hashed by the caller
	maxHanded = 64          // pieces that wait for the goroutine
	aside     = 4 * maxRead // bytes of the window that are filled before its start is used again
)

// A hashing writes pieces of the window to digests in a goroutine of its own,
// while the caller forwards the same bytes. The pieces are not copied: code that
// moves or overwrites bytes of the window, or needs a sum, calls wait first. The
// goroutine ends when no piece is left, and the window bounds their bytes.
type hashing struct {
	// Owned by the caller's goroutine.
	handed bool // there were pieces since the last wait
	wg     sync.WaitGroup

	mu      sync.Mutex
	running bool    // under mu
	pieces  []piece // under mu; not yet received by the goroutine
}

// A piece is the next bytes for a hash. Its memory is the window's.
type piece struct {
	h hash.Hash
	b []byte
}

// write writes b to h, after all earlier writes.
func (s *hashing) write(h hash.Hash, b []byte) {
	if len(b) < minHanded {
		s.wait()
		h.Write(b)
		return
	}
	s.mu.Lock()
	if len(s.pieces) == maxHanded {
		s.mu.Unlock()
		s.wait()
		s.mu.Lock()
	}
	s.pieces = append(s.pieces, piece{h, b})
	start := !s.running
	s.running, s.handed = true, true
	s.mu.Unlock()
	if start {
		s.wg.Go(s.run)
	}
}

func (s *hashing) run() {
	var pieces []piece
	for {
		s.mu.Lock()
		if len(s.pieces) == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		pieces = append(pieces[:0], s.pieces...)
		clear(s.pieces) // they would keep a released window in memory
		s.pieces = s.pieces[:0]
		s.mu.Unlock()
		for _, p := range pieces {
			p.h.Write(p.b)
		}
	}
}

// wait returns once every piece is written.
func (s *hashing) wait() {
	if s.handed {
		s.wg.Wait()
		s.handed = false
	}
}
