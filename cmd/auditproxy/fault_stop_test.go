package main

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
)

// TestStopAtEveryOperation kills the proxy before, and for a write also in
// the middle of, each file operation of a session of 30 calls. What the server
// executed has a record, because its intent was written before.
func TestStopAtEveryOperation(t *testing.T) {
	t.Parallel()
	proxy := program(t)
	// The number of operations differs a little from run to run: syncs run
	// concurrently with the calls. So the end is where a session survives,
	// twice.
	survived := 0
	for n := 1; survived < 2 && !t.Failed(); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if stopAt(t, proxy, n, false) {
				survived++
			}
			stopAt(t, proxy, n, true)
		})
		if n > 2000 {
			t.Fatal("a session of 30 calls does not end")
		}
	}
}

// stopAt reports whether the session had fewer operations than n.
func stopAt(t *testing.T, proxy string, n int, half bool) (survived bool) {
	stop := fmt.Sprint(n)
	if half {
		stop += " half"
	}
	w := wrap(t, setup{proxy: proxy, env: []string{envStop + "=" + stop}})
	var reader sync.WaitGroup
	answers := make(chan struct{}, 30)
	reader.Go(func() {
		defer close(answers)
		for {
			if _, err := w.read(); err != nil {
				return
			}
			answers <- struct{}{}
		}
	})
	for id := 1; id <= 30; id++ {
		if w.call(id, 100) != nil {
			break
		}
		switch {
		case id <= 6: // one at a time
			<-answers
		case id%3 == 0: // three
			<-answers
			<-answers
			<-answers
		}
	}
	w.in.Close()
	status := w.wait()
	reader.Wait()
	pid, executed := w.executed()
	gone(t, pid)
	switch {
	case status == 0 && len(executed) == 30:
		survived = true
	case status.Signal() != syscall.SIGKILL:
		t.Fatalf("proxy ended by itself, status %#x\n%s", status, &w.stderr)
	}
	w.recoverDead()
	w.checkTrail()
	return survived
}
