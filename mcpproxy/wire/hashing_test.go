package wire

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// A lateHash reads its bytes after other goroutines had time to overwrite them.
type lateHash struct{ hash.Hash }

func (h lateHash) Write(b []byte) (int, error) {
	if len(b) >= minHanded {
		for range 1000 {
			runtime.Gosched()
		}
	}
	return h.Hash.Write(b)
}

// TestDigestsBesideTheStream compares digests that are made while the stream is
// read with those of the same bytes in one piece, for reads of any lengths. It
// covers a call's arguments and opaque bytes.
func TestDigestsBesideTheStream(t *testing.T) {
	digest := func(s string) string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(s))) }
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = 'a' + byte(r.IntN(26))
			}
			return string(b)
		}
		first, second, junk := `"`+text(r.IntN(2<<20))+`"`, `"`+text(r.IntN(2<<20))+`"`, "}"+text(1<<20)
		line := with(`{"name":"n","arguments":{"k":`+first+`,"s":[1],"l":`+second+`}}`) + "\n"
		sizes := make([]int, 400)
		for i := range sizes {
			if sizes[i] = maxRead; r.IntN(3) > 0 {
				sizes[i] = 1 + r.IntN(maxRead)
			}
		}
		f := newFeeder(200 << 10)
		f.q.hash = func() hash.Hash { return lateHash{sha256.New()} }
		told := f.feed(t, []byte(line+junk+"\n"), sizes...)
		want := fmt.Sprintf(`"k" string %d %s;"s" array 3 %s;"l" string %d %s;`,
			len(first), digest(first), digest("[1]"), len(second), digest(second))
		sums := ""
		for _, m := range told {
			if m.State == Ended {
				sums += m.Parts
			}
			if m.Off >= int64(len(line)) {
				sums += m.Sum
			}
		}
		if len(line) > 300<<10 && !strings.HasPrefix(sums, want) {
			t.Errorf("seed %d: parts %s\nwant %s", seed, sums, want)
		}
		if !strings.Contains(sums, digest(junk)) {
			t.Errorf("seed %d: sums %s, want %s", seed, sums, digest(junk))
		}
		if f.q.Close(); f.q.hashing.running || cap(f.q.window.buf) > 4<<20 {
			t.Errorf("seed %d: running %v, window of %d bytes", seed, f.q.hashing.running, cap(f.q.window.buf))
		}
	}
}

// TestCloseWaitsForDigests ends a stream inside the bytes of a digest. After
// Close, no goroutine hashes.
func TestCloseWaitsForDigests(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, stream := range []string{
		with(`{"arguments":{"k":"` + long),
		with(`{"arguments":{"k":["` + long + `"}` + long),
		"}" + long,
		"[1," + long,
	} {
		written := 0
		f := newFeeder(100 << 10)
		f.q.hash = func() hash.Hash { return countingHash{lateHash{sha256.New()}, &written} }
		for rest := stream; rest != ""; {
			n := copy(f.q.Space(), rest)
			f.q.Scan(n)
			rest = rest[n:]
		}
		f.q.Close()
		if f.q.hashing.running || len(f.q.hashing.pieces) > 0 || written < len(long)/2 {
			t.Errorf("%.40q: running %v, %d bytes written", stream, f.q.hashing.running, written)
		}
	}
}

type countingHash struct {
	hash.Hash
	n *int
}

func (h countingHash) Write(b []byte) (int, error) {
	*h.n += len(b) // no lock: one goroutine at a time writes
	return h.Hash.Write(b)
}
