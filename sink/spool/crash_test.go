package spool

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"

	"golang.org/x/sys/unix"
)

const calls = 30

// A told holds the results that a script got for its lines.
type told struct {
	created bool
	written [][]byte // Append returned nil
	synced  [][]byte // Wait returned true
}

// script is a session of 30 calls, each second one answered late, some of the
// intents synced. It continues after errors, as the proxy does, and gives a
// sequence number only to a record that was written.
func script(f disk.FS, d Durability) (got told) {
	s, err := Create(Config{Dir: "/spool", Durability: d, Head: head, Machine: "m", FS: f}, testID)
	if err != nil {
		return got
	}
	got.created = true
	var seq uint64
	var pending []int
	put := func(lines []byte, final, wait bool) bool {
		pos, err := s.Append(lines, final)
		if err != nil {
			s.sync() // as Run does at any time
			return false
		}
		got.written = append(got.written, lines)
		if wait && d != OS && s.Wait(pos, 0) {
			got.synced = append(got.synced, lines)
		}
		return true
	}
	open := 0
	finish := func(n int) {
		open++
		// The outcome of a failed write is unknown: write the same bytes
		// again, never another record with this number.
		for range 3 {
			if put(final(n, seq), true, n%5 == 0) {
				seq++
				open--
				return
			}
		}
	}
	if put(boundary(audit.KindSessionStart, seq), true, true) {
		seq++
	}
	for n := 1; n <= calls; n++ {
		if !put(intent(n), false, n%3 != 0) {
			continue // refused
		}
		if n == 10 || n == 20 {
			s.mu.Lock()
			s.cur.limitForTest()
			s.mu.Unlock()
		}
		if pending = append(pending, n); n%2 == 0 {
			for _, p := range pending {
				finish(p)
			}
			pending = pending[:0]
		}
	}
	if open == 0 && len(pending) == 0 { // else Recover writes the end
		put(boundary(audit.KindSessionEnd, seq), true, true)
	}
	s.Close()
	return got
}

// limitForTest makes the next append start a segment.
func (g *segment) limitForTest() {
	if g != nil {
		g.limit = 1
	}
}

// check recovers an image and compares it with the script's results.
func check(t *testing.T, f *memFS, must [][]byte, context string) {
	t.Helper()
	recoverAll(t, f, context)
	f.judge = func(_ int, op, name string) (verdict, error) {
		t.Errorf("%s: a second recovery does a %s of %s", context, op, name)
		return fine, nil
	}
	recoverAll(t, f, context+", again")
	f.judge = nil
	entries, err := list(f, "/spool", nil)
	if err != nil {
		t.Fatalf("%s: %v", context, err)
	}
	if len(entries) == 0 {
		if len(must) > 0 {
			t.Errorf("%s: the session is gone", context)
		}
		return
	}
	if e := entries[0]; e.State != Ended || e.Err != nil || e.Durable.Offset == 0 {
		t.Errorf("%s: state %v, durable %v, err %v after recovery", context, e.State, e.Durable, e.Err)
	}
	for _, c := range []ReaderConfig{{Dir: "/spool", FS: f}, {Dir: "/spool", FS: f, Durable: true}} {
		checkLines(t, items(t, c), must, context)
	}
}

// checkDurable cuts the power after a recovery and checks that its result
// survives.
func checkDurable(t *testing.T, f *memFS, must [][]byte, context string) {
	t.Helper()
	check(t, f, must, context)
	g := f.crash(none)
	if list, err := list(g, "/spool", nil); err != nil || len(list) == 0 && len(must) > 0 {
		t.Fatalf("%s, power cut after recovery: %v, %v", context, list, err)
	} else if len(list) > 0 {
		checkLines(t, items(t, ReaderConfig{Dir: "/spool", FS: g}), must, context+", power cut after recovery")
	}
}

func checkLines(t *testing.T, list []Item, must [][]byte, context string) {
	t.Helper()
	var seqs []uint64
	intents, finals := map[string]int{}, map[string]int{}
	have := map[string]bool{}
	for _, i := range list {
		if i.Damage == TornEnd || i.Damage == BadLine {
			continue // an abandoned segment may end so
		}
		if i.Damage != Intact {
			t.Errorf("%s: %v at %v", context, i.Damage, i.Pos)
			continue
		}
		have[string(i.Line)+"\n"] = true
		kind, r, err := audit.ParseLine(i.Line)
		switch {
		case err != nil:
			t.Errorf("%s: %v", context, err)
		case kind == audit.LineIntent:
			intents[r.RecordID]++
		case kind == audit.LineRecord:
			seqs = append(seqs, r.Seq)
			if r.Kind == audit.KindCall {
				finals[r.RecordID]++
			}
		}
	}
	for _, line := range must {
		if !have[string(line)] {
			t.Errorf("%s: lost %s", context, bytes.TrimSpace(line))
		}
	}
	for id := range intents {
		if finals[id] != 1 {
			t.Errorf("%s: call %s has %d final records", context, id, finals[id])
		}
	}
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != uint64(i) {
			t.Errorf("%s: sequence is %v, not dense", context, seqs)
			break
		}
	}
}

func recoverAll(t *testing.T, f *memFS, context string) {
	t.Helper()
	_, skipped, err := Recover(t.Context(), RecoverConfig{Dir: "/spool", Machine: "m", FS: f})
	if err != nil || len(skipped) > 0 {
		t.Fatalf("%s: recovering: %v, skipped %v", context, err, skipped)
	}
}

// operations returns the number of operations of the script without failures.
func operations(d Durability) int {
	f := newMemFS()
	script(f, d)
	return f.ops
}

// stride is 1, and n with -short, for the race detector: which finds no more
// in all places than in some.
func stride(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// TestStopAtEveryOperation stops the machine before each operation of the
// script in turn. Written lines survive the process; synced lines survive the
// machine, with any part of the rest of its page cache.
func TestStopAtEveryOperation(t *testing.T) {
	for _, d := range []Durability{Intent, OS} {
		for n := 1; n <= operations(d)+1; n += stride(7) {
			f := newMemFS()
			f.judge = func(op int, _, _ string) (verdict, error) {
				if op == n {
					return stopped, nil
				}
				return fine, nil
			}
			got := script(f, d)
			if context := fmt.Sprintf("durability %d, process stopped at %d", d, n); d == OS {
				check(t, f.died(), got.written, context) // configured without syncs
			} else {
				checkDurable(t, f.died(), got.written, context)
			}
			check(t, f.crash(none), got.synced, fmt.Sprintf("durability %d, power cut at %d", d, n))
			for seed := range uint64(4) {
				check(t, f.crash(some(seed)), got.synced, fmt.Sprintf("durability %d, power cut at %d, seed %d", d, n, seed))
			}
		}
	}
}

// TestFailAtEveryOperation fails each operation in turn, once and from then
// on three times, with none, half or all of it done; then the process or the
// machine dies.
func TestFailAtEveryOperation(t *testing.T) {
	for n := 1; n <= operations(Intent); n += stride(7) {
		for _, v := range []verdict{lost, half, ghost} {
			for _, times := range []int{1, 3} {
				f := newMemFS()
				f.judge = func(op int, _, _ string) (verdict, error) {
					if n <= op && op < n+times {
						return v, nil
					}
					return fine, nil
				}
				got := script(f, Intent)
				context := fmt.Sprintf("operation %d failed as %d, %d times", n, v, times)
				if f.opens != 0 {
					t.Errorf("%s: %d files left open", context, f.opens)
				}
				if !got.created {
					continue
				}
				checkDurable(t, f.died(), got.written, context)
				check(t, f.crash(none), got.synced, context+", power cut")
			}
		}
	}
}

// TestFailAtRandom fails operations at random, most of them at some times and none at
// others: every line that was written remains, and each record once.
func TestFailAtRandom(t *testing.T) {
	for range 5000 / stride(10) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		bad, change, share := false, r.Float64()/4, r.Float64()
		verdicts := []verdict{lost, half, ghost}[:1+r.IntN(3)]
		causes := []error{unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EFBIG}[r.IntN(4):]
		f := newMemFS()
		f.judge = func(_ int, op, _ string) (verdict, error) {
			if r.Float64() < change {
				bad = !bad
			}
			if !bad || r.Float64() >= share {
				return fine, nil
			}
			v := verdicts[r.IntN(len(verdicts))]
			if op == "write" {
				v = min(v, half) // whole lines of a refused call may stay: see Append
			}
			return v, causes[r.IntN(len(causes))]
		}
		got := script(f, Intent)
		context := fmt.Sprintf("seed %d", seed)
		if f.opens != 0 {
			t.Errorf("%s: %d files left open", context, f.opens)
		}
		if got.created {
			checkDurable(t, f.died(), got.written, context)
			check(t, f.crash(none), got.synced, context+", power cut")
		}
	}
}

// TestRecoveryStopsAtEveryOperation stops a recovery at each of its
// operations, and each recovery after it at its own next one.
func TestRecoveryStopsAtEveryOperation(t *testing.T) {
	dead := newMemFS()
	dead.judge = func(op int, _, _ string) (verdict, error) {
		if op == 120 {
			return stopped, nil
		}
		return fine, nil
	}
	got := script(dead, Intent)
	// Also a torn line at the end.
	segs, err := segments(dead.died(), "/spool/sessions/"+testID)
	must(t, err)
	last := "/spool/sessions/" + testID + "/" + segmentName(segs[len(segs)-1])
	torn := func() *memFS {
		f := dead.died()
		n, err := f.walk(last)
		must(t, err)
		n.data = append(n.data, intent(99)[:50]...)
		return f
	}
	for n := 1; ; n++ {
		f := torn()
		f.judge = func(op int, _, _ string) (verdict, error) {
			if op == n {
				return stopped, nil
			}
			return fine, nil
		}
		Recover(context.Background(), RecoverConfig{Dir: "/spool", Machine: "m", FS: f})
		if !f.stopped {
			if n < 10 {
				t.Fatalf("a recovery took %d operations, want more to stop at", n)
			}
			return
		}
		checkDurable(t, f.died(), got.written, fmt.Sprintf("recovery stopped at %d", n))
		check(t, f.crash(none), got.synced, fmt.Sprintf("recovery stopped at %d, power cut", n))
		check(t, f.crash(some(uint64(n))), got.synced, fmt.Sprintf("recovery stopped at %d, power cut, some", n))
	}
}
