package main_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"auditproxy/schemas/audit"
)

// shortest is the smallest approval.timeout, too short for what has to happen in
// time on a busy machine.
const shortest = 10 * time.Second

// An askingClient is a client whose calls of safe need an approval, with the
// proxy and the server that it starts.
type askingClient struct {
	*clientRun
	name     string
	script   clientScript
	inResult bool // the question is the result of the call
	blind    bool // the client reads nothing while its user is asked
	spool    string
	journal  string
	seen     string // what the server was sent
	end      string // with the proxy's process id, a named pipe: the server ends when it is opened
}

// askers are the programs, the policy and approval.timeout of an askingClient.
type askers struct {
	proxy, peers, policy string
	timeout              time.Duration
}

func newAskers(t *testing.T, timeout time.Duration) askers {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.json")
	text := `{"version":"1","default":"allow","tools":{"safe":{"action":"require_approval"},"kill_session":{"action":"require_approval"}}}`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return askers{build(t, "./cmd/auditproxy"), build(t, "./cmd/internal/peers"), policy, timeout}
}

// flags is the command line of a proxy, up to that of its server.
func (a askers) flags(spool string) []string {
	return []string{a.proxy, "--spool-dir", spool, "--policy-file", a.policy, "--approval-channels", "client", "--approval-timeout", a.timeout.String(), "--"}
}

func (a askers) start(t *testing.T, c *sdkClient, script clientScript) *askingClient {
	t.Helper()
	dir := t.TempDir()
	r := &askingClient{
		name: c.name + " " + script.Version, script: script, inResult: script.Version == "2026-07-28", blind: c.name == "python-sdk 1.29.0",
		spool: filepath.Join(dir, "spool"), journal: filepath.Join(dir, "journal"), seen: filepath.Join(dir, "seen"),
		end: filepath.Join(dir, "end."),
	}
	// The shell ends with the last one that is still there: the server's pipe, or
	// the reader of the named pipe, which ends the others.
	const server = `mkfifo "$3$PPID"; exec 3<&0; (read _ <"$3$PPID"; kill 0) & tee "$0" <&3 | "$1" go-sdk "$2"; kill $!`
	r.clientRun = c.start(t, script, append(a.flags(r.spool), "sh", "-c", server, r.seen, a.peers, r.journal, r.end)...)
	return r
}

// line writes the line that a late answer waits for. The client may have ended.
func (r *askingClient) line() { io.WriteString(r.stdin, "\n") }

// recorded waits until a session of the spool has all these texts, and returns
// its lines. The TypeScript SDK 2.4.0 begins with a session in which it calls
// nothing.
func (r *askingClient) recorded(texts ...string) (lines []byte) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%s: no session has %q", r.name, texts), func() bool {
		files, _ := filepath.Glob(filepath.Join(r.spool, "sessions", "*", "*.jsonl"))
		return slices.ContainsFunc(files, func(name string) bool {
			lines, _ = os.ReadFile(name)
			return !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(lines, []byte(text)) })
		})
	})
	return lines
}

// proxy returns the process id of the proxy that asks.
func (r *askingClient) proxy() int {
	r.t.Helper()
	pid, err := strconv.Atoi(string(regexp.MustCompile(`"pid":(\d+)`).FindSubmatch(append(r.recorded(`"safe"`), `"pid":0`...))[1]))
	if err != nil || pid == 0 {
		r.t.Fatalf("the session has no process id: %v", err)
	}
	return pid
}

// endServer has the server end by itself, and waits for the end of the session.
func (r *askingClient) endServer() {
	r.t.Helper()
	pipe := r.end + strconv.Itoa(r.proxy())
	eventually(r.t, "the server did not start", func() bool { _, err := os.Stat(pipe); return err == nil })
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	f.Close()
	r.recorded(`"safe"`, `"session_end"`)
}

// recover ends the session of a killed proxy. The system closes the files of a
// process one after another, so the client sees the end of its pipe before the
// lock of the session is free.
func (r *askingClient) recover(proxy string) {
	r.t.Helper()
	eventually(r.t, r.name+": no session is recovered", func() bool {
		out, err := exec.Command(proxy, "recover", "--spool-dir", r.spool).CombinedOutput()
		if err != nil {
			r.t.Fatalf("recovering: %v\n%s", err, out)
		}
		return bytes.Contains(out, []byte(": recovered, "))
	})
}

// eventually polls until done, or fails the test with what.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// over waits for the end of client, proxy and server.
func (r *askingClient) over() (lines []clientLine) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatalf("%s: the client, the proxy or the server did not end", r.name)
	}
	for l := range r.lines {
		if l.Event == "answered" || l.Event == "failed" {
			lines = append(lines, l)
		}
	}
	return lines
}

// check compares executed calls with records, and checks that the server received
// nothing of question and answer.
func (r *askingClient) check(t *testing.T, executed, want []string) {
	t.Helper()
	if diff := gocmp.Diff(executed, executedBy(t, r.journal), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("executed -want +got:\n%s", diff)
	}
	sent, err := os.ReadFile(r.seen)
	if err != nil && !os.IsNotExist(err) { // the server may end before it begins
		t.Fatal(err)
	}
	for _, word := range []string{"auditproxy", "allow once"} {
		if bytes.Contains(sent, []byte(word)) {
			t.Errorf("the server got %q", word)
		}
	}
	if n := bytes.Count(sent, []byte(`"safe"`)); n != bytes.Count([]byte(strings.Join(executed, "")), []byte(`"safe"`)) {
		t.Errorf("the server got %d calls of safe:\n%s", n, sent)
	}
	if diff := gocmp.Diff(want, callsIn(t, r.spool)); diff != "" {
		t.Errorf("records -want +got:\n%s", diff)
	}
	if t.Failed() {
		t.Logf("the log:\n%s", &r.log)
	}
}

// callsIn returns the records of calls in a spool without a writer: the tool, the
// argument n, what became of the call and of its approval.
func callsIn(t *testing.T, spool string) (got []string) {
	t.Helper()
	list := slices.DeleteFunc(records(t, spool), func(r audit.Record) bool { return r.Kind != audit.KindCall })
	slices.SortFunc(list, func(a, b audit.Record) int { return cmp.Compare(a.CallNo, b.CallNo) })
	for _, r := range list {
		var args struct{ N int }
		if err := json.Unmarshal([]byte(r.Args), &args); err != nil {
			t.Errorf("arguments %s: %v", r.Args, err)
		}
		one := fmt.Sprint(r.Tool, " ", args.N, ": ", r.Outcome)
		if r.ResultType != "" && r.ResultType != "complete" {
			one += " " + r.ResultType
		}
		if r.ErrorType != "" {
			one += " " + r.ErrorType
		}
		if r.Approval != "" {
			a, err := audit.ParseApproval(r.Approval)
			if err != nil {
				t.Error(err)
			}
			one += ", approval " + a.Outcome
		}
		if r.Forwarded {
			one += ", forwarded"
		}
		got = append(got, one)
	}
	return got
}

const askedInResult = "safe 0: ok input_required"

// TestClientsAnswerTooLate has all clients answer after approval.timeout, or never.
// Their call is refused and the session continues.
func TestClientsAnswerTooLate(t *testing.T) {
	t.Parallel()
	a := newAskers(t, shortest)
	var all []*askingClient
	for _, c := range sdkClients(t) {
		for _, version := range c.versions {
			script := clientScript{Version: version, Answers: []string{"late"}, Calls: []clientCall{{"safe", map[string]any{"n": 0}}, {"evil", map[string]any{"n": 1}}}}
			all = append(all, a.start(t, &c, script))
			if version == "2025-11-25" {
				script.Answers = nil
				all = append(all, a.start(t, &c, script))
			}
		}
	}
	for _, r := range all {
		r.next("asked")
	}
	expired, cancel := context.WithTimeout(t.Context(), shortest) // of the questions that are results
	defer cancel()
	for _, r := range all {
		never := r.script.Answers == nil
		t.Run(fmt.Sprintf("%s, never: %t", r.name, never), func(t *testing.T) {
			if r.inResult {
				<-expired.Done()
			} else {
				r.recorded(audit.ErrApprovalTimeout)
			}
			executed := []string{`["evil",{"n":1}]`}
			want := []string{"safe 0: error ApprovalTimeout, approval timeout", "evil 1: ok, forwarded"}
			answers := []string{"0: [POLICY DENIED] Nobody approved this call in time.", "1: done"}
			switch {
			case never && r.blind:
				r.cmd.Process.Kill()
				executed, want, answers = nil, want[:1], nil
			case !never:
				r.line()
			}
			if r.inResult {
				want = slices.Insert(want, 0, askedInResult)
			}
			var got []string
			for _, l := range r.over() {
				got = append(got, fmt.Sprintf("%d: %s", l.Call, l.Text))
			}
			if diff := gocmp.Diff(answers, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("answers -want +got:\n%s", diff)
			}
			r.check(t, executed, want)
		})
	}
}

// TestEndsWhileClientsAsk ends the client, the server or the proxy while a call
// waits or its result is a question. The call reaches no server, its record has
// the outcome, and no process remains.
func TestEndsWhileClientsAsk(t *testing.T) {
	t.Parallel()
	a := newAskers(t, patience)
	for _, tt := range []struct {
		victim string
		end    func(*askingClient)
		want   string
	}{
		{"client", func(r *askingClient) { r.cmd.Process.Kill() }, "safe 0: error Cancelled, approval cancelled"},
		{"server", (*askingClient).endServer, "safe 0: error Cancelled, approval cancelled"},
		{"proxy", func(r *askingClient) {
			if err := syscall.Kill(r.proxy(), syscall.SIGKILL); err != nil {
				r.t.Error(err)
			}
		}, "safe 0: unknown ProxyDied"},
	} {
		for _, c := range sdkClients(t) {
			for _, version := range c.versions {
				t.Run(tt.victim+", "+c.name+" "+version, func(t *testing.T) {
					t.Parallel()
					r := a.start(t, &c, clientScript{Version: version, Answers: []string{"late"}, Calls: []clientCall{{"safe", map[string]any{"n": 0}}}})
					r.next("asked")
					tt.end(r)
					if tt.victim != "client" {
						r.line()
					}
					lines := r.over()
					if tt.victim != "client" && (len(lines) != 1 || lines[0].Event != "failed") {
						t.Errorf("the client got %+v, want a failure", lines)
					}
					want := tt.want
					if r.inResult {
						want = askedInResult
					}
					if tt.victim == "proxy" {
						r.recover(a.proxy)
					}
					r.check(t, nil, []string{want})
				})
			}
		}
	}
}

// TestServersOwnQuestions has the server ask the client's user about one call
// while the proxy asks about another. Each gets the answer to its own question,
// whichever is answered first.
func TestServersOwnQuestions(t *testing.T) {
	t.Parallel()
	a := newAskers(t, patience)
	for _, tt := range []struct {
		own, proxys string // answers
		safe, evil  string // the results
		executed    []string
		record      string
	}{
		{"late", "deny", "[POLICY DENIED] A person was asked about this call and denied it.", `done: accept allow once in state "OWN"`,
			[]string{`["evil",{"ask":true,"n":1}]`}, "safe 0: error ApprovalDenied, approval denied"},
		{"decline", "late", "done", `done: decline <nil> in state "OWN"`,
			[]string{`["evil",{"ask":true,"n":1}]`, `["safe",{"n":0}]`}, "safe 0: ok, approval approved, forwarded"},
	} {
		for _, c := range sdkClients(t) {
			for _, version := range c.versions {
				t.Run(fmt.Sprintf("%s %s, %s, %s", c.name, version, tt.own, tt.proxys), func(t *testing.T) {
					t.Parallel()
					r := a.start(t, &c, clientScript{
						Version: version, Answers: []string{tt.proxys}, Own: tt.own, AtOnce: true,
						Calls: []clientCall{{"safe", map[string]any{"n": 0}}, {"evil", map[string]any{"n": 1, "ask": true}}},
					})
					got := map[int]string{}
					asked := 0
					for len(got) < 2 {
						switch l := r.nextLine(); l.Event {
						case "asked":
							// Both questions are open before the late answer, where the
							// client shows both.
							if asked++; asked == 2 || r.blind && l.How == "late" {
								r.line()
							}
						case "answered", "failed":
							got[l.Call] = l.Text
						}
					}
					r.over()
					if diff := gocmp.Diff(map[int]string{0: tt.safe, 1: tt.evil}, got); diff != "" {
						t.Errorf("answers -want +got:\n%s", diff)
					}
					sorted := executedBy(t, r.journal)
					slices.Sort(sorted)
					if diff := gocmp.Diff(tt.executed, sorted); diff != "" {
						t.Errorf("executed -want +got:\n%s", diff)
					}
					want := []string{"evil 1: ok, forwarded", tt.record}
					if r.inResult {
						want = append(want, "evil 1: ok input_required, forwarded", askedInResult)
					}
					records := callsIn(t, r.spool)
					slices.Sort(records)
					slices.Sort(want)
					if diff := gocmp.Diff(want, records); diff != "" {
						t.Errorf("records -want +got:\n%s", diff)
					}
					if t.Failed() {
						t.Logf("the log:\n%s", &r.log)
					}
				})
			}
		}
	}
}

// TestLibtmuxApproval has a client of each SDK ask before sessions of a real tmux
// are killed: what its user denies is still there, what the user approves is gone.
func TestLibtmuxApproval(t *testing.T) {
	t.Parallel()
	a := newAskers(t, patience)
	for _, c := range sdkClients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newTmuxSession(t, "0.1.0a22", "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown")
			for _, name := range []string{"denied", "approved"} {
				if out, err := s.tmux("new-session", "-d", "-s", name).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			script := clientScript{Version: c.versions[len(c.versions)-1], Answers: []string{"deny", "once"}}
			for _, name := range []string{"denied", "approved"} {
				script.Calls = append(script.Calls, clientCall{"kill_session", map[string]any{"session_name": name}})
			}
			c.env = s.env
			spool := filepath.Join(s.dir, "spool")
			lines := c.start(t, script, append(a.flags(spool), s.server...)...).all()
			out, err := s.tmux("list-sessions", "-F", "#S").CombinedOutput()
			if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, []string{"base", "denied"}) {
				t.Errorf("tmux has the sessions %q, %v; the client says %+v", got, err, lines)
			}
			want := []string{"kill_session 0: error ApprovalDenied, approval denied", "kill_session 0: ok, approval approved, forwarded"}
			if script.Version == "2026-07-28" {
				const asked = "kill_session 0: ok input_required"
				want = []string{asked, want[0], asked, want[1]}
			}
			if diff := gocmp.Diff(want, callsIn(t, spool)); diff != "" {
				t.Errorf("records -want +got:\n%s", diff)
			}
		})
	}
}
