package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"auditproxy/schemas/audit"
)

// underPolicy is the flags of a proxy with a policy.
func underPolicy(t *testing.T, source string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.json")
	must(t, os.WriteFile(file, []byte(source), 0o600))
	return []string{"--policy-file", file}
}

// onlyWork1 allows one of the tools that a wrapped calls: work_N by the id's
// remainder of five.
const onlyWork1 = `{"version":"1","default":"deny","tools":{"work_1":{}}}`

// denied reports whether the policy refused the call.
func (a answer) denied() bool {
	return a.Result.IsError && len(a.Result.Content) == 1 && strings.HasPrefix(a.Result.Content[0].Text, "[POLICY DENIED] ")
}

// checkDecided checks that the server executed what the policy allows and
// nothing else, and that each denied call has a record.
func (w *wrapped) checkDecided(tr *trail) {
	w.t.Helper()
	_, executed := w.executed()
	for _, id := range executed {
		if id%5 != 1 {
			w.t.Errorf("call %d was executed, which the policy denies", id)
		}
	}
	for id, list := range tr.finals {
		if id%5 != 1 && (list[0].Forwarded || list[0].Outcome == audit.OutcomeOK) {
			w.t.Errorf("denied call %d: forwarded %t, %s", id, list[0].Forwarded, list[0].Outcome)
		}
	}
}

// TestManyDeniedCalls makes denied calls without a pause: each is answered and
// recorded, and the memory stays.
func TestManyDeniedCalls(t *testing.T) {
	t.Parallel()
	calls := 2_000
	if soak() {
		calls = 100_000
	}
	w := wrap(t, setup{proxy: shipped(t), flags: underPolicy(t, onlyWork1)})
	sent := make(chan error, 1)
	go func() {
		for id := 1; id <= calls; id++ {
			if err := w.call(5*id, 100); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for id := 1; id <= calls; id++ {
		if a := w.next(5 * id); !a.denied() {
			t.Fatalf("call %d is answered with %+v", id, a)
		}
	}
	must(t, <-sent)
	if rss := procStatus(t, w, "VmHWM"); rss > 96*1024 {
		t.Errorf("%d KiB of memory, want at most 96 MiB", rss)
	}
	if a := w.answered(1, 100); a.denied() {
		t.Error("the next call, which the policy allows, is denied")
	}
	w.end()
	tr := w.checkTrail()
	if w.checkDecided(tr); len(tr.finals) != calls+1 {
		t.Errorf("%d calls have a record, want %d", len(tr.finals), calls+1)
	}
}

// TestMixedBatches sends batches: one denied call refuses all of a batch, and an
// allowed batch goes through with a decision for each call. A batch that is too
// long to wait for its end is refused from its first call on.
func TestMixedBatches(t *testing.T) {
	t.Parallel()
	const most, many = 1000, 5000
	w := wrap(t, setup{proxy: shipped(t), argv: []string{"cat"}, flags: underPolicy(t, `{"version":"1","default":"deny","tools":{"work_1":{"limits":[{"counter":"c","window":"day","max":3000,"scope":"session"}]}}}`)})
	id := 0
	batch := func(calls int, last string) []byte {
		line := []byte{'['}
		for range calls {
			id++
			line = fmt.Appendf(line, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work_1"}},`, id)
		}
		return append(line, last+"]\n"...)
	}
	// answered sends a line and returns the answers, up to so many denials or, for
	// 0, as many bytes as the line has.
	answered := func(line []byte, denials int) (got []byte) {
		t.Helper()
		go w.send(line)
		for bytes.Count(got, []byte(`"jsonrpc"`)) < denials || denials == 0 && len(got) < len(line) {
			part, err := w.out.ReadBytes('\n')
			must(t, err)
			got = append(got, part...)
		}
		return got
	}
	const other = `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"work_2"}}`
	for _, calls := range []int{most, many} {
		if got := answered(batch(calls, other), calls+1); bytes.Contains(got, []byte("tools/call")) {
			t.Errorf("the server got calls of a mixed batch of %d: %.200s", calls, got)
		}
	}
	if got := answered(batch(many, `{"jsonrpc":"2.0","id":0,"method":"ping"}`), many+1); bytes.Contains(got, []byte("tools/call")) {
		t.Errorf("the server got calls of a long batch: %.200s", got)
	}
	// The refused batches used no quota, and the allowed ones all of it.
	for range 3 {
		allowed := batch(most, `{"jsonrpc":"2.0","id":0,"method":"ping"}`)
		if got := answered(allowed, 0); !bytes.Equal(got, allowed) {
			t.Errorf("the allowed batch became %.200q", got)
		}
	}
	if got := answered([]byte(callOne), 1); !bytes.Contains(got, []byte("Rate limit of 3000 per day")) {
		t.Errorf("the call after the limit: %.200s", got)
	}
	w.end()
	counts, denied := map[int64]bool{}, 0
	for _, r := range readTrail(t, w.spool).records {
		p, err := audit.ParsePolicy(r.Policy)
		switch {
		case r.Kind != audit.KindCall:
		case err != nil || r.Forwarded != (p.Decision == "allow"):
			t.Fatalf("%v: forwarded %t, policy %s", err, r.Forwarded, r.Policy)
		case r.Forwarded:
			counts[p.Count] = true
		default:
			denied++
		}
	}
	if want := most + 1 + many + 1 + many + 1; len(counts) != 3*most || denied != want {
		t.Errorf("%d different counts before a call, %d denied, want %d and %d", len(counts), denied, 3*most, want)
	}
}

// TestManyOperations sends calls with as many operations as are decided about, and
// with as many as fit into a line: those are refused, in little memory.
func TestManyOperations(t *testing.T) {
	t.Parallel()
	w := wrap(t, setup{proxy: shipped(t), argv: []string{"cat"}, flags: underPolicy(t, `{"version":"1","default":"deny","tools":{"work_1":{"limits":[{"counter":"c","window":"day","max":5000,"scope":"session"}]}}}`)})
	for _, n := range []int{4000, 4096, 1_100_000} {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work_1","arguments":{"operations":[` +
			strings.Repeat(`{"tool":"work_1"},`, n-1) + `{"tool":"work_1"}]}}}` + "\n"
		if n > 1_000_000 {
			line = strings.ReplaceAll(line, "work_1", "a")
		}
		go w.send([]byte(line))
		got, err := w.out.ReadString('\n')
		must(t, err)
		if passed := got == line; passed != (n == 4000) || !passed && !strings.Contains(got, "It has too many operations to be decided") {
			t.Errorf("the call with %d operations: %.300s", n, got)
		}
	}
	if rss := procStatus(t, w, "VmHWM"); rss > 96*1024 {
		t.Errorf("%d KiB of memory, want at most 96 MiB", rss)
	}
	w.end()
}

// TestDeniedOnAFullDisk fills the spool's disk: what the policy denies is not
// executed, also where calls that cannot be recorded are let through.
func TestDeniedOnAFullDisk(t *testing.T) {
	for _, failure := range []string{"deny", "allow"} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			room := filepath.Join(t.TempDir(), "room")
			w := wrap(t, setup{env: []string{envRoom + "=" + room}, flags: append(underPolicy(t, onlyWork1), "--on-audit-failure", failure)})
			w.answered(1, 100)
			must(t, takeRoom(room, "bytes"))
			for id := 2; id <= 60; id++ {
				a := w.answered(id, 100)
				if refused := a.refused() || a.denied(); refused != (id%5 != 1 || failure == "deny") {
					t.Errorf("call %d on a full disk: %+v", id, a)
				}
			}
			must(t, os.Remove(room))
			last := 60
			eventually(t, "recording does not resume", func() bool {
				last++
				w.answered(last, 100)
				return recorded(t, w.spool, last)
			})
			if status := w.end(); status != 0 {
				t.Errorf("status %#x\n%s", status, &w.stderr)
			}
			w.checkDecided(w.checkTrail())
		})
	}
}

// TestKilledWhileDenying kills the proxy before and in each operation on the
// spool of a session with denied calls, so also between the record of a denial
// and its answer. No denied call is executed, and each answered call has a record.
func TestKilledWhileDenying(t *testing.T) {
	t.Parallel()
	proxy := program(t)
	flags := underPolicy(t, onlyWork1)
	survived := 0
	for n := 1; survived < 2 && !t.Failed(); n++ {
		if denyUntil(t, proxy, fmt.Sprint(n), flags) {
			survived++
		}
		if soak() {
			denyUntil(t, proxy, fmt.Sprint(n)+" half", flags)
		}
		if n > 500 {
			t.Fatal("a session of 4 calls does not end")
		}
	}
}

func denyUntil(t *testing.T, proxy, stop string, flags []string) (survived bool) {
	t.Helper()
	w := wrap(t, setup{proxy: proxy, env: []string{envStop + "=" + stop}, flags: flags})
	var reader sync.WaitGroup
	var answers []answer
	next := make(chan struct{}, 4)
	reader.Go(func() {
		defer close(next)
		for {
			a, err := w.read()
			if err != nil {
				return
			}
			answers = append(answers, a)
			next <- struct{}{}
		}
	})
	for id := 1; id <= 4; id++ {
		if w.call(id, 100) != nil {
			break
		}
		<-next
	}
	w.in.Close()
	status := w.wait()
	reader.Wait()
	pid, _ := w.executed()
	gone(t, pid)
	if survived = status == 0; !survived && status.Signal() != syscall.SIGKILL {
		t.Fatalf("proxy ended by itself, status %#x\n%s", status, &w.stderr)
	}
	w.recoverDead()
	tr := w.checkTrail()
	w.checkDecided(tr)
	for _, a := range answers {
		if list := tr.finals[a.ID]; len(list) != 1 || a.denied() != (a.ID%5 != 1) || a.denied() && !strings.Contains(string(list[0].Policy), `"deny"`) {
			t.Errorf("stopped at %s: answer %+v, records %+v", stop, a, list)
		}
	}
	return survived
}
