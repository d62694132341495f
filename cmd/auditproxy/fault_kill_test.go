package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// seed comes from FAULT_SEED, else from the clock; a failure prints it.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("FAULT_SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("FAULT_SEED=%d", n)
	return n
}

// TestProxyKills kills the proxy under load, at random times. Each call that
// the server executed has one record after recovery.
func TestProxyKills(t *testing.T) {
	kills := 60
	if soak() {
		kills = 1000
	}
	seed, proxy := seed(t), program(t)
	var executed, unknown atomic.Int64
	eachKill(t, seed, kills, func(t *testing.T, random *rand.Rand, n int) {
		k := &killing{t: t, random: random, next: n%10 == 9}
		e, u := k.run(proxy)
		executed.Add(int64(e))
		unknown.Add(int64(u))
	})
	t.Logf("%d calls executed, %d of unknown outcome", executed.Load(), unknown.Load())
	if executed.Load() == 0 || unknown.Load() == 0 {
		t.Error("the kills hit no load")
	}
}

// eachKill calls kill for each of a number of kills, two at a time, until one fails.
func eachKill(t *testing.T, seed uint64, kills int, kill func(t *testing.T, random *rand.Rand, n int)) {
	t.Run("group", func(t *testing.T) {
		for worker := range 2 {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for n := worker; n < kills && !t.Failed(); n += 2 {
					t.Run(strconv.Itoa(n), func(t *testing.T) { kill(t, rand.New(rand.NewPCG(seed, uint64(n))), n) })
				}
			})
		}
	})
}

// A killing is one run of a proxy under load until it is killed.
type killing struct {
	t      *testing.T
	random *rand.Rand
	next   bool // the next proxy recovers, and may be killed at it
}

func (k *killing) run(proxy string) (executed, unknown int) {
	t := k.t
	durability := []string{"intent", "interval", "os", "always"}[k.random.IntN(4)]
	w := wrap(t, setup{proxy: proxy, flags: []string{"--durability", durability}})
	callers := 1 + k.random.IntN(8)
	largest := []int{100, 2 << 10, 200 << 10}[k.random.IntN(3)]
	loading := k.load(w, callers, largest)
	if k.random.IntN(4) > 0 {
		<-loading.begun // else it may still be starting
	}
	after := min(time.Duration(k.random.ExpFloat64()*60e6), 200*time.Millisecond)
	watch := k.random.IntN(3) == 0
	time.AfterFunc(after, func() { w.cmd.Process.Kill() })
	if watch { // while it is written, and perhaps killed meanwhile
		w.checkUntouched()
	}
	if status := w.wait(); status.Signal() != syscall.SIGKILL {
		t.Fatalf("proxy ended by itself, status %#x\n%s", status, &w.stderr)
	}
	loading.wait.Wait()
	pid, ids := w.executed()
	gone(t, pid)
	w.checkUntouched()
	if k.next {
		k.recoverByNext(w)
	}
	w.recoverDead()
	for id, list := range w.checkTrail().finals {
		if int64(id) > loading.last.Load() {
			t.Errorf("call %d was not sent", id)
		}
		if list[0].Outcome == audit.OutcomeUnknown {
			unknown++
		}
	}
	if t.Failed() {
		t.Logf("%d callers, up to %d bytes, %s, killed after %v with %d calls executed", callers, largest, durability, after, len(ids))
	}
	return len(ids), unknown
}

// A loading holds the callers until their proxy ends.
type loading struct {
	begun chan struct{} // closed at the first answer, or the end
	last  atomic.Int64  // id of the last call
	wait  sync.WaitGroup
}

func (k *killing) load(w *wrapped, callers, largest int) *loading {
	l := &loading{begun: make(chan struct{})}
	free := make(chan struct{}, callers) // one in it for each that may call
	for range callers {
		free <- struct{}{}
		size := rand.New(rand.NewPCG(k.random.Uint64(), 0))
		l.wait.Go(func() {
			for range free {
				if w.call(int(l.last.Add(1)), 100+size.IntN(largest)) != nil {
					return
				}
			}
		})
	}
	l.wait.Go(func() {
		defer close(free)
		_, err := w.read()
		close(l.begun)
		for err == nil {
			free <- struct{}{}
			_, err = w.read()
		}
	})
	return l
}

// recoverByNext starts a proxy on the same spool, which recovers the dead
// session in the background, and kills it around that.
func (k *killing) recoverByNext(w *wrapped) {
	t := k.t
	next := wrap(t, setup{proxy: w.proxy, spool: w.spool})
	if k.random.IntN(2) == 0 {
		time.AfterFunc(tidyAfter+time.Duration(k.random.IntN(5e6)), func() { next.cmd.Process.Kill() })
		next.wait()
		next.in.Close()
		pid, _ := next.executed()
		gone(t, pid)
		return
	}
	eventually(t, "the next proxy does not recover the dead session", func() bool {
		entries, err := spool.List(w.spool)
		must(t, err)
		ended := 0
		for _, e := range entries {
			if e.State == spool.Ended {
				ended++
			}
		}
		return ended == len(entries)-1
	})
	next.end()
}
