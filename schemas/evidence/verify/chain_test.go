package verify

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"auditproxy/schemas/evidence"
)

// newChain returns the sessions of one host in a row, each of which names the one
// before it.
func newChain(n int) (list []link, here map[sessionID]*ended) {
	list, here = make([]link, n), make(map[sessionID]*ended, n)
	for i := range list {
		s := &ended{id: sessionID{text: fmt.Sprint("s", i+1)}, leaf: evidence.Hash{byte(i)}, seq: uint64(i + 1)}
		if i > 0 {
			s.follows, s.previous, s.leafOf = true, list[i-1].id, list[i-1].session.leaf
		}
		list[i], here[s.id] = link{seq: uint64(i + 1), id: s.id, session: s}, s
	}
	return list, here
}

func TestWholeChain(t *testing.T) {
	if missing := (&chains{}).chain(newChain(1000)); len(missing) > 0 {
		t.Errorf("missing sessions of a whole chain: %v", missing)
	}
}

// TestBefore compares before with a look at each link.
func TestBefore(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var tails []link
		for seq := uint64(0); len(tails) < 8; seq += rnd.Uint64N(3) { // several chains have the same numbers
			tails = append(tails, link{seq: seq, id: sessionID{text: fmt.Sprint(len(tails))}})
		}
		seq, want := rnd.Uint64N(20), link{}
		for _, l := range tails {
			if l.seq+1 < seq {
				want = l
			}
		}
		if got := before(tails, seq); got.id != want.id {
			t.Errorf("before %d of %v: %v, want %v", seq, tails, got, want)
		}
	}
}

// BenchmarkChain follows the sessions of a host. One takes no longer where there are
// more of them.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list, here := newChain(n)
			for b.Loop() {
				(&chains{}).chain(list, here)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/session")
		})
	}
}

// TestSessionID keeps ids as they are.
func TestSessionID(t *testing.T) {
	for _, id := range []string{"", "s1", "01a18474-12b2-7649-a2c1-eadc32e2d215", "01A18474-12b2-7649-a2c1-eadc32e2d215", "01a1847412b27649a2c1eadc32e2d215",
		"01a18474+12b2-7649-a2c1-eadc32e2d215", "01a18474-12b2-7649-a2c1-eadc32e2d21x", "00000000-0000-0000-0000-000000000000"} {
		if got := packID(id).String(); got != id {
			t.Errorf("packed and unpacked, %q is %q", id, got)
		}
	}
}
