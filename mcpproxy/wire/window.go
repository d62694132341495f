package wire

import (
	"hash"
	"sync"
)

// A window is a piece of a stream: buf[0] is at offset off.
type window struct {
	buf     []byte
	off     int64
	hashing *hashing // reads pieces of buf; nil where nothing is oversize
}

// slice returns the bytes of the stream between two offsets in the window.
func (w *window) slice(from, to int64) []byte {
	return w.buf[from-w.off : to-w.off : to-w.off]
}

// move moves the window's bytes from an offset on to the start of buf.
func (w *window) move(buf []byte, from int64) {
	w.hashing.wait()
	w.buf = append(buf, w.buf[from-w.off:]...)
	w.off = from
}

func (w *window) end() int64 { return w.off + int64(len(w.buf)) }

// trim drops the bytes before an offset.
func (w *window) trim(from int64) {
	if n := min(from-w.off, int64(len(w.buf))); n > 0 {
		w.buf = w.buf[:copy(w.buf, w.buf[n:])]
		w.off = from
	}
}

// A digest is made of a piece of a stream while it passes.
type digest struct {
	h       hash.Hash
	from    int64    // the bytes before it have been written, or will be by hashing
	hashing *hashing // nil before the first write
}

func newDigest(h func() hash.Hash, from int64) *digest {
	return &digest{h: h(), from: from}
}

func (d *digest) write(w *window, to int64) {
	if d.from < to {
		d.hashing = w.hashing
		d.hashing.write(d.h, w.slice(d.from, to))
		d.from = to
	}
}

func (d *digest) sum() []byte {
	if d.hashing != nil {
		d.hashing.wait()
	}
	return d.h.Sum(nil)
}

const (
	minHanded = 16 << 10 // fewer bytes are hashed by the caller
	maxHanded = 64       // pieces that wait for the goroutine
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
