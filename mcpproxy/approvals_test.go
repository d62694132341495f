package mcpproxy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
)

const asksAboutKills = `{"version":"1","default":"allow","tools":{"kill_session":{"action":"require_approval"}}}`

func kill(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"kill_session","arguments":{"session_name":"work"}}}`+"\n", id)
}

// asking starts a proxy that asks through files.
func asking(t *testing.T, server string) (*peer, mcpproxy.Approval) {
	t.Helper()
	a := testFiles(t, nil)
	p := start(t, server, func(c *mcpproxy.Config) {
		c.Gate = testGate(t, asksAboutKills)
		c.Approval = a
	})
	return p, a
}

// approvalOf returns the members of a call's record that approvals are about.
func approvalOf(t *testing.T, records []audit.Record, callNo uint64) (audit.Record, audit.Approval) {
	t.Helper()
	for _, r := range records {
		if r.Kind == audit.KindCall && r.CallNo == callNo {
			a, err := audit.ParseApproval(r.Approval)
			if err != nil {
				t.Fatal(err)
			}
			return r, a
		}
	}
	t.Fatalf("call %d has no record", callNo)
	return audit.Record{}, audit.Approval{}
}

// TestQuestionHasTheMostDangerous asks about more calls than a question has: it leaves
// out none in which something was found, however far behind an agent puts it.
func TestQuestionHasTheMostDangerous(t *testing.T) {
	p, a := asking(t, "cat")
	var calls []string
	for id := range approval.MaxCalls + 1 {
		calls = append(calls, strings.TrimSpace(kill(id)))
	}
	last := len(calls)
	calls[last-1] = strings.Replace(calls[last-1], `"work"`, `"work","keys":"rm -rf /"`, 1)
	p.send("[" + strings.Join(calls, ",") + "]\n")
	if q := p.question(a.Files, uint64(last)); q.Calls[0].CallNo != uint64(last) || len(q.Calls) != approval.MaxCalls || q.More != 1 {
		t.Errorf("the first of %d calls has number %d, and %d are left out, want %d, and 1", len(q.Calls), q.Calls[0].CallNo, q.More, last)
	}
	p.wait()
}

// TestManyWait has more calls wait than may: the next one is refused at once, and
// waits again when another is over.
func TestManyWait(t *testing.T) {
	const most = 100
	p, a := asking(t, "cat")
	for id := range most {
		p.send(kill(id))
	}
	p.question(a.Files, most)
	p.send(kill(most))
	if line := p.line(); !strings.Contains(line, fmt.Sprintf(`"id":%d,`, most)) || !strings.Contains(line, "POLICY DENIED") {
		t.Errorf("the client got %s, want a refusal of call %d", line, most+1)
	}
	p.answer(a.Files, `1 {"approved":true}`)
	if line := p.line(); line != kill(0) {
		t.Errorf("the client got %s, want the approved call from the server", line)
	}
	p.send(kill(most + 1))
	p.question(a.Files, most+2)
	records := p.wait()
	r, one := approvalOf(t, records, most+1)
	if r.ErrorType != audit.ErrApprovalUnavailable || one.Outcome != "unavailable" || r.Forwarded {
		t.Errorf("call %d has error type %q and approval %+v, want unavailable", most+1, r.ErrorType, one)
	}
	for n := uint64(2); n <= most; n++ {
		if r, one := approvalOf(t, records, n); r.ErrorType != audit.ErrCancelled || one.Outcome != "cancelled" || r.Forwarded {
			t.Fatalf("call %d has error type %q and approval %+v, want cancelled", n, r.ErrorType, one)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(a.Files.Path(), "*.json")); len(left) > 0 {
		t.Errorf("questions are left: %q", left)
	}
}

// TestNobodyCanBeAsked takes the directory away while the proxy runs, or has none that
// could be opened.
func TestNobodyCanBeAsked(t *testing.T) {
	for name, usable := range map[string]bool{"the directory is gone": true, "the directory could not be used": false} {
		t.Run(name, func(t *testing.T) {
			a := testFiles(t, nil)
			if err := os.Remove(a.Files.Path()); err != nil {
				t.Fatal(err)
			}
			if !usable {
				a.Files = nil
			}
			p := start(t, "cat", func(c *mcpproxy.Config) {
				c.Gate = testGate(t, asksAboutKills)
				c.Approval = a
			})
			p.send(kill(1))
			if line := p.line(); !strings.Contains(line, "nobody can be asked") {
				t.Errorf("the client got %s, want a refusal", line)
			}
			if r, one := approvalOf(t, p.wait(), 1); r.ErrorType != audit.ErrApprovalUnavailable || one.Outcome != "unavailable" || r.Forwarded {
				t.Errorf("the call has error type %q and approval %+v, want unavailable", r.ErrorType, one)
			}
		})
	}
}

// TestCancelOfTwo cancels an id that two waiting calls have: neither can be approved then.
func TestCancelOfTwo(t *testing.T) {
	p, a := asking(t, "cat")
	p.send(kill(1) + kill(1))
	first, second := p.question(a.Files, 1), p.question(a.Files, 2)
	const ping = `{"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n"
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n" + ping)
	if line := p.line(); line != ping {
		t.Errorf("the server got %s, want the ping only", line)
	}
	p.withdrawn(a.Files, first)
	p.withdrawn(a.Files, second)
	records := p.wait()
	for n := range uint64(2) {
		if r, one := approvalOf(t, records, n+1); r.ErrorType != audit.ErrCancelled || one.Outcome != "cancelled" || r.Forwarded {
			t.Errorf("call %d has error type %q and approval %+v, want cancelled", n+1, r.ErrorType, one)
		}
	}
}

// TestCancelOfAnother cancels one of two waiting calls whose ids are texts: the other one goes
// on waiting, and can be approved.
func TestCancelOfAnother(t *testing.T) {
	p, a := asking(t, "cat")
	named := func(id string) string { return strings.Replace(kill(1), `"id":1`, `"id":"`+id+`"`, 1) }
	p.send(named("a") + named("b"))
	first := p.question(a.Files, 1)
	p.question(a.Files, 2)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}` + "\n")
	p.withdrawn(a.Files, first)
	p.answer(a.Files, `2 {"approved":true}`)
	if line := p.line(); line != named("b") {
		t.Errorf("the client got %s, want the approved call from the server", line)
	}
	records := p.wait()
	for n, want := range map[uint64]string{1: "cancelled", 2: "approved"} {
		if _, one := approvalOf(t, records, n); one.Outcome != want {
			t.Errorf("call %d has approval %+v, want %s", n, one, want)
		}
	}
}

// TestAlways approves a tool for good, and takes that back, while the proxy runs:
// both are recorded.
func TestAlways(t *testing.T) {
	p, a := asking(t, "cat")
	p.send(kill(1))
	q := p.question(a.Files, 1)
	if err := os.MkdirAll(filepath.Join(a.Files.Path(), "always"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.Files.Path(), "always", "kill_session.answer")
	if err := os.WriteFile(file, []byte(`{"approved":true,"scope":"always","by":"ann"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if line := p.line(); line != kill(1) { // it waited
		t.Fatalf("the client got %s, want the call %s", line, q.ID)
	}
	p.send(kill(2))
	if line := p.line(); line != kill(2) {
		t.Fatalf("the client got %s, want the second call", line)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.send(kill(3))
	p.question(a.Files, 3)
	records := p.wait()
	var events []string
	for _, r := range records {
		if r.Kind == audit.KindPolicy {
			v, err := audit.ParsePolicy(r.Policy)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, v.Event)
		}
	}
	if got := strings.Join(events, " "); got != "loaded always_added always_removed" {
		t.Errorf("the policy's events are %q", got)
	}
	for n, want := range map[uint64]string{1: "approved", 2: "approved", 3: "cancelled"} {
		_, one := approvalOf(t, records, n)
		if one.Outcome != want || want == "approved" && (one.Scope != "always" || one.By != "ann" || one.User == "") {
			t.Errorf("call %d has approval %+v, want %s", n, one, want)
		}
	}
}

// TestAlwaysHoldsForNoMore has a lasting approval from before the session. It holds for
// calls that do what it names, up to its level of risk; others are asked about.
func TestAlwaysHoldsForNoMore(t *testing.T) {
	for _, tt := range []struct {
		entry, command string
		holds          bool
	}{
		{``, "ls", true},
		{``, "rm -rf /", false},
		{`,"level":"high"`, "ls", true},
		{`,"level":"medium"`, "ls", false},
		{`,"detections":["recursive_delete"]`, "rm -rf /", false},
		{`,"detections":["forced_delete","recursive_delete"]`, "rm -rf /", true},
		{`,"detections":["forced_delete","recursive_delete"],"level":"high"`, "rm -rf /", false},
	} {
		t.Run(tt.command+tt.entry, func(t *testing.T) {
			a := testFiles(t, nil)
			dir := filepath.Join(a.Files.Path(), "always")
			err := os.MkdirAll(dir, 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "run.answer"), []byte(`{"approved":true,"scope":"always"`+tt.entry+`}`), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			p := start(t, "cat", func(c *mcpproxy.Config) {
				c.Gate = testGate(t, strings.Replace(asksAboutKills, "kill_session", "run", 1))
				c.Approval = a
			})
			p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"command":"` + tt.command + `"}}}` + "\n")
			want := "cancelled" // when the client ends
			if tt.holds {
				want = "approved"
			}
			if _, one := approvalOf(t, p.wait(), 1); one.Outcome != want || tt.holds && (one.By == "" || one.By != one.User) {
				t.Errorf("approval %+v, want %s by the owner of the entry", one, want)
			}
		})
	}
}

// TestAlwaysHoldsForItsCallOfABatch has a lasting approval for one call of a batch: the other one
// needs its own, wherever it stands.
func TestAlwaysHoldsForItsCallOfABatch(t *testing.T) {
	allowed := strings.TrimSpace(strings.Replace(kill(2), "kill_session", "kill_server", 1))
	for _, batch := range []string{strings.TrimSpace(kill(1)) + "," + allowed, allowed + "," + strings.TrimSpace(kill(1))} {
		a := testFiles(t, nil)
		dir := filepath.Join(a.Files.Path(), "always")
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "kill_server.answer"), []byte(`{"approved":true,"scope":"always"}`), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, "cat", func(c *mcpproxy.Config) {
			const both = `"kill_server":{"action":"require_approval"},"kill_session":`
			c.Gate = testGate(t, strings.Replace(asksAboutKills, `"kill_session":`, both, 1))
			c.Approval = a
		})
		p.send(allowed + "\n")
		if line := p.line(); line != allowed+"\n" {
			t.Errorf("the client got %s, want the allowed call", line)
		}
		p.send("[" + batch + "]\n")
		records := p.wait()
		for n := uint64(2); n <= 3; n++ {
			if r, one := approvalOf(t, records, n); r.Forwarded || one.Outcome != "cancelled" {
				t.Errorf("%s: call %d was forwarded: %t, approval %+v, want cancelled", batch, n, r.Forwarded, one)
			}
		}
	}
}

// TestAnswerThatAllowsAlways gives an answer and, at the same time, the entry that always
// allows the tool: the answer is taken, not set aside as one that came too late.
func TestAnswerThatAllowsAlways(t *testing.T) {
	p, a := asking(t, "cat")
	p.send(kill(1))
	q := p.question(a.Files, 1)
	dir, err := approval.Open(approval.Config{Dir: a.Files.Path(), Own: true, SameUser: true, People: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Give(&q, approval.Answer{Approved: true, Scope: approval.Always, By: "ann"}); err != nil {
		t.Error(err)
	}
	p.line()
	p.withdrawn(a.Files, q)
	if n := dir.Rejections(&q); n > 0 {
		t.Errorf("%d answers are set aside", n)
	}
	if _, one := approvalOf(t, p.wait(), 1); one.Request != q.ID || one.Scope != "always" {
		t.Errorf("approval %+v, want the answer to question %q", one, q.ID)
	}
}

// TestAnswerThatAllowedAlways takes back what an answer always allowed: the session of
// that answer asks again, as others do.
func TestAnswerThatAllowedAlways(t *testing.T) {
	p, a := asking(t, "cat")
	dir, err := approval.Open(approval.Config{Dir: a.Files.Path(), Own: true, SameUser: true, People: true})
	if err != nil {
		t.Fatal(err)
	}
	p.send(kill(1))
	q := p.question(a.Files, 1)
	if err := dir.Give(&q, approval.Answer{Approved: true, Scope: approval.Always, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	p.line()
	p.withdrawn(a.Files, q)
	p.send(kill(2))
	if line := p.line(); line != kill(2) {
		t.Fatalf("the client got %s, want the second call", line)
	}
	if err := dir.Revoke("kill_session", ""); err != nil {
		t.Fatal(err)
	}
	p.send(kill(3))
	p.question(a.Files, 3)
	records := p.wait()
	for n, want := range map[uint64]string{1: "approved", 2: "approved", 3: "cancelled"} {
		if _, one := approvalOf(t, records, n); one.Outcome != want {
			t.Errorf("call %d has approval %+v, want %s", n, one, want)
		}
	}
}

// TestTheWaitIsNotTheCall: how long a person took to answer is told apart from how
// long the server took.
func TestTheWaitIsNotTheCall(t *testing.T) {
	const took = time.Second // much longer than the rest, also on a busy machine
	for _, tt := range []struct {
		answer string
		server bool // whether the server gets the call
	}{{`1 {"approved":true}`, true}, {`1 {"approved":false}`, false}} {
		p, a := asking(t, "cat")
		began := time.Now()
		p.send(kill(1))
		asked := p.question(a.Files, 1).Asked
		for next := time.NewTicker(10 * time.Millisecond); time.Since(asked) < took; <-next.C {
		}
		p.answer(a.Files, tt.answer)
		if line := p.line(); (line == kill(1)) != tt.server {
			t.Fatalf("%s: the client got %s", tt.answer, line)
		}
		r, one := approvalOf(t, p.wait(), 1)
		wait := time.Duration(one.WaitMS) * time.Millisecond
		if wait < took || r.Duration+wait > time.Since(began) {
			t.Errorf("%s: a wait of %v and a call of %v within %v", tt.answer, wait, r.Duration, time.Since(began))
		}
		if !tt.server && r.Duration >= wait {
			t.Errorf("%s: the call that was refused took %v", tt.answer, r.Duration)
		}
	}
}

// TestQuestion checks what a person gets to see: nothing that the record hides.
func TestQuestion(t *testing.T) {
	const secret = "hunter2-hunter2"
	p, a := asking(t, "cat")
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kill_session","arguments":{"session_name":"work","password":"` + secret + `"}}}` + "\n")
	q := p.question(a.Files, 1)
	records := p.wait()
	r, one := approvalOf(t, records, 1)
	c := q.Calls[0]
	switch {
	case q.ID != r.RecordID || one.Request != q.ID:
		t.Errorf("question %q, record %q with request %q", q.ID, r.RecordID, one.Request)
	case c.Tool != "kill_session" || c.Args != r.Args || c.Rule != "/tools/kill_session/action" || c.Risk != r.Risk || strings.Contains(string(c.Args), secret):
		t.Errorf("the question is about %+v", c)
	case q.SessionID != "s" || q.Host != "h" || q.User != "u" || q.PID != 1 || q.Expires.Sub(q.Asked).Round(time.Second) != a.Timeout:
		t.Errorf("the question is %+v", q)
	}
}

// TestServerThatDoesNotRead approves a call that a server does not read: other
// answers are applied meanwhile.
func TestServerThatDoesNotRead(t *testing.T) {
	p, a := asking(t, "hang")
	p.send(strings.Replace(kill(1), "work", strings.Repeat("a", 500<<10), 1))
	p.send(kill(2))
	first := p.question(a.Files, 1)
	p.question(a.Files, 2)
	p.answer(a.Files, `1 {"approved":true}`)
	p.withdrawn(a.Files, first) // the call is on its way to the server
	p.answer(a.Files, `2 {"approved":false}`)
	if line := p.line(); !strings.Contains(line, `"id":2,`) || !strings.Contains(line, "denied it") {
		t.Errorf("the client got %s, want the refusal of the second call", line)
	}
	p.signals <- syscall.SIGTERM
	p.wait()
}

// TestServerThatClosedItsInput: an approved call that the server cannot get any
// more is recorded as not forwarded.
func TestServerThatClosedItsInput(t *testing.T) {
	p, a := asking(t, "closein\n"+`> {"jsonrpc":"2.0","method":"notifications/closed"}`+"\nhang")
	p.line()
	p.send(kill(1))
	q := p.question(a.Files, 1)
	p.answer(a.Files, `1 {"approved":true}`)
	p.withdrawn(a.Files, q)
	p.signals <- syscall.SIGTERM
	r, one := approvalOf(t, p.wait(), 1)
	if one.Outcome != "approved" || r.Forwarded || r.ErrorType != audit.ErrNoResponse {
		t.Errorf("forwarded %v, %s, approval %+v", r.Forwarded, r.ErrorType, one)
	}
}

// withdrawn returns once a question is over.
func (p *peer) withdrawn(dir *approval.Dir, q approval.Question) {
	p.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); ; {
		if _, err := os.Stat(filepath.Join(dir.Path(), q.ID+".json")); err != nil {
			return
		}
		p.pause(look.C, late, "the answered call still waits")
	}
}

// TestLargeCallsWait has calls of 1 MiB wait: the memory for them is bounded, and
// calls that do not wait still pass.
func TestLargeCallsWait(t *testing.T) {
	if testing.Short() {
		t.Skip("the same goroutines as TestManyWait")
	}
	const size, most = 1 << 20, 64 << 20
	p, a := asking(t, "cat")
	text := strings.Repeat("x", size)
	refused := 0
	for id := range 70 {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"kill_session","arguments":{"note":%q}}}`+"\n", id, text))
		if (id+1)*size > most-size { // this one or the next finds no room
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", 1000+id))
			for line := p.line(); !strings.Contains(line, "ping"); line = p.line() {
				if !strings.Contains(line, "POLICY DENIED") {
					t.Fatalf("the client got %.200s, want a refusal", line)
				}
				refused++
			}
		}
	}
	if want := 70 - most/size + 1; refused != want {
		t.Errorf("%d of 70 calls were refused, want %d: each has some bytes more than 1 MiB", refused, want)
	}
	// A call that waits no more leaves room for another one.
	p.answer(a.Files, `1 {"approved":false}`)
	p.line()
	p.send(strings.Replace(kill(70), "work", text, 1))
	p.question(a.Files, 71)
	waited := 0
	for _, r := range p.wait() {
		if a, err := audit.ParseApproval(r.Approval); err == nil && a.Outcome == "cancelled" {
			waited++
		}
	}
	if waited != 70-refused {
		t.Errorf("%d calls waited, want %d", waited, 70-refused)
	}
}
