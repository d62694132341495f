package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
)

// asksAboutWork1 asks about one of the tools that a wrapped calls.
const asksAboutWork1 = `{"version":"1","default":"allow","tools":{"work_1":{"action":"require_approval"}}}`

// askingFiles is the flags of a proxy that asks through files.
func askingFiles(t *testing.T, flags ...string) []string {
	return slices.Concat(underPolicy(t, asksAboutWork1), []string{"--approval-channels", "files"}, flags)
}

// questions opens the directory of a wrapped proxy's questions as a person's
// program does.
func (w *wrapped) questions() *approval.Dir {
	w.t.Helper()
	dir, err := approval.Open(approval.Config{Dir: filepath.Join(w.spool, "approvals"), Own: true, SameUser: true, People: true})
	must(w.t, err)
	return dir
}

// TestWaitingCallsAndKills kills the proxy, its client or its server around the
// answers about calls that wait. The server executes only approved calls, none
// more than once, and each exactly once where nothing was killed. A call that
// was killed while it waited has no approval in its record, and a call that may
// have been executed has one.
func TestWaitingCallsAndKills(t *testing.T) {
	kills := 20
	if soak() {
		kills = 500
	}
	seed, proxy := seed(t), program(t)
	var executed, asked, unknown, approved atomic.Int64
	eachKill(t, seed, kills, func(t *testing.T, random *rand.Rand, n int) {
		k := &waitingKill{t: t, random: random, given: make(map[int]bool)}
		k.run(proxy, n)
		executed.Add(int64(k.executed))
		asked.Add(int64(k.asked))
		unknown.Add(int64(k.unknown))
		approved.Add(int64(k.unknownApproved))
	})
	t.Logf("%d calls asked about, %d executed; %d unknown while they waited, %d unknown after their approval",
		asked.Load(), executed.Load(), unknown.Load(), approved.Load())
	if executed.Load() == 0 || unknown.Load() == 0 || approved.Load() == 0 {
		t.Error("the kills hit no call that waits, or none that was approved")
	}
}

// A waitingKill is one run of a proxy whose calls wait, with a kill.
type waitingKill struct {
	t      *testing.T
	random *rand.Rand // people's while it runs

	mu    sync.Mutex
	given map[int]bool // guarded by mu: answers by request id; true: approved

	asked, executed, unknown, unknownApproved int
}

// What is killed, in turn; "" is nothing.
var victims = []string{"proxy", "client", "proxy", "server", "proxy", ""}

// When it is killed, in turn.
const (
	aroundQuestion = iota
	whileWaiting
	afterAnswer
	forwarded  // the server has an approved call
	aroundPoll // about when the proxy sees an answer
	moments
)

func (k *waitingKill) run(proxy string, n int) {
	t, victim := k.t, victims[n%len(victims)]
	moment := n % moments
	s := setup{proxy: proxy, flags: askingFiles(t, "--durability", []string{"intent", "os"}[k.random.IntN(2)])}
	if moment == forwarded && victim != "" {
		s.server = []string{"-hold", "100"} // no call ends
	}
	w := wrap(t, s)
	var read sync.WaitGroup
	const calls = 15 // a fifth of them needs an approval
	answered := make(chan int, calls)
	read.Go(func() {
		defer close(answered)
		for a, err := w.read(); err == nil; a, err = w.read() {
			answered <- a.ID
		}
	})
	size := []int{100, 300 << 10}[k.random.IntN(2)]
	if victim == "server" {
		size = 100 // a part of a line, which the proxy has when it ends, is a call without an id
	}
	around := time.Duration(k.random.IntN(60e6))
	kill := make(chan struct{})
	var once sync.Once
	after := func(d time.Duration) { time.AfterFunc(d, func() { once.Do(func() { close(kill) }) }) }
	dead := make(chan struct{})
	var people sync.WaitGroup
	people.Go(func() { k.people(w, victim, moment, after, dead) })
	if moment == aroundQuestion {
		after(around)
	}
	// Request n is call n, so that a question identifies its request.
	for id := 1; id <= calls; id++ {
		if w.call(id, size) != nil {
			break
		}
	}
	if victim == "" {
		for range calls {
			<-answered
		}
	} else {
		<-kill
	}
	switch victim {
	case "proxy":
		w.cmd.Process.Kill()
	case "client":
		w.in.Close()
		w.outEnd.Close()
	case "server":
		if pid, _ := w.executed(); pid != 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		} else {
			victim = "client"
		}
	}
	if victim == "" || victim == "client" {
		w.in.Close()
	}
	w.wait()
	close(dead)
	people.Wait()
	read.Wait()
	pid, _ := w.executed()
	gone(t, pid)
	w.recoverDead()
	// Questions of a killed proxy may stay, marked as abandoned; every other one
	// ends them.
	list, err := w.questions().Waiting()
	must(t, err)
	for _, q := range list {
		if victim != "proxy" || !q.Abandoned {
			t.Errorf("question %s stays, abandoned %t, after the end of the %q", q.ID, q.Abandoned, victim)
		}
	}
	k.check(w, victim, calls)
	if t.Failed() {
		t.Logf("victim %q, moment %d, %d bytes\n%s", victim, moment, size, &w.stderr)
	}
}

// people answers questions until dead is closed, and signals when to kill.
func (k *waitingKill) people(w *wrapped, victim string, moment int, kill func(time.Duration), dead <-chan struct{}) {
	var dir *approval.Dir
	for tick := time.Tick(3 * time.Millisecond); ; {
		select {
		case <-dead:
			return
		case <-tick:
		}
		if dir == nil {
			if _, err := os.Stat(filepath.Join(w.spool, "approvals")); err != nil {
				continue
			}
			dir = w.questions()
		}
		if moment == forwarded {
			_, executed := w.executed()
			if slices.ContainsFunc(executed, func(id int) bool { return id%5 == 1 }) {
				kill(0)
			}
		}
		waiting, _ := dir.Waiting()
		for i := range waiting {
			id := int(waiting[i].Calls[0].CallNo)
			k.mu.Lock()
			_, done := k.given[id]
			approve := moment == forwarded || k.random.IntN(5) > 0
			if !done {
				k.given[id] = approve
			}
			pause := time.Duration(k.random.IntN(20e6))
			k.mu.Unlock()
			if moment == whileWaiting {
				kill(pause)
			}
			if done {
				continue
			}
			if moment == whileWaiting && victim != "" && id > 1 {
				k.mu.Lock()
				delete(k.given, id) // only the first is answered
				k.mu.Unlock()
				continue
			}
			// It fails where the proxy has ended.
			_ = dir.Give(&waiting[i], approval.Answer{Approved: approve, By: "ann"})
			switch moment {
			case afterAnswer:
				kill(pause / 4)
			case aroundPoll:
				kill(180*time.Millisecond + 2*pause)
			}
		}
	}
}

func (k *waitingKill) check(w *wrapped, victim string, calls int) {
	t := k.t
	finals := w.checkTrail().finals
	_, executed := w.executed()
	for id := 1; id <= calls; id++ {
		times := 0
		for _, one := range executed {
			if one == id {
				times++
			}
		}
		if times > 1 || victim == "" && id%5 != 1 && times != 1 {
			t.Errorf("call %d was executed %d times", id, times)
		}
		if id%5 != 1 {
			continue
		}
		k.executed += times
		allowed, answered := k.given[id]
		if times > 0 && !allowed {
			t.Errorf("call %d was executed without an approval", id)
		}
		if len(finals[id]) == 0 {
			if times > 0 || victim == "" {
				t.Errorf("call %d has no record", id)
			}
			continue
		}
		k.asked++
		r := finals[id][0]
		given := audit.Approval{}
		if r.Approval != "" {
			var err error
			given, err = audit.ParseApproval(r.Approval)
			must(t, err)
		}
		// An approved call whose server is gone is not forwarded.
		if r.Forwarded && given.Outcome != "approved" || !r.Forwarded && times > 0 && r.Outcome != audit.OutcomeUnknown {
			t.Errorf("call %d: forwarded %t with approval %+v", id, r.Forwarded, given)
		}
		switch {
		case given.Outcome == "approved" && (!allowed || given.By != "ann"),
			given.Outcome == "denied" && (!answered || allowed),
			times > 0 && given.Outcome != "approved",
			given.Outcome == "" && r.Outcome != audit.OutcomeUnknown:
			t.Errorf("call %d has %s with approval %+v, was executed %d times, and was answered %t with %t", id, r.Outcome, given, times, answered, allowed)
		case r.Outcome == audit.OutcomeUnknown && victim != "proxy":
			t.Errorf("call %d is unknown, and the proxy lived", id)
		case victim == "" && (times == 1) != allowed:
			t.Errorf("call %d was executed %d times, and approved is %t", id, times, allowed)
		case r.Outcome == audit.OutcomeUnknown && given.Outcome == "":
			k.unknown++
		case r.Outcome == audit.OutcomeUnknown:
			k.unknownApproved++
		}
	}
	if t.Failed() {
		t.Logf("executed: %v", executed)
	}
}
