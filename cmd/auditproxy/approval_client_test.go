package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
)

// A sdkClient is a client that answers a server's questions by a script.
type sdkClient struct {
	name     string
	versions []string // of the protocol
	command  []string // before the script and the server's command line
	env      []string // nil: that of a wrapped server
}

func sdkClients(t *testing.T) []sdkClient {
	peers := build(t, "./cmd/internal/peers")
	scripts := filepath.Join(root(t), "deploy/dev/peers")
	node := func(script, packages string) []string {
		return []string{dev.Command(t, "node"), filepath.Join(scripts, script), dev.Fetched(t, packages)}
	}
	python := func(release string) []string {
		return append(forkedSDK(t, release), filepath.Join(scripts, "mcp_client.py"))
	}
	requests := []string{"2025-06-18", "2025-11-25"}
	all := append(slices.Clip(requests), "2026-07-28")
	return []sdkClient{
		{"go-sdk 1.8.0", all, []string{peers, "client"}, nil},
		{"typescript-sdk 1.32.2", requests, node("typescript_sdk_client.mjs", "typescript"), nil},
		{"typescript-sdk 2.4.0", all, node("typescript_client.mjs", "typescript-client"), nil},
		{"python-sdk 1.29.0", requests, python("0.1.0a20"), nil},
		{"python-sdk 2.3.0", all, python("0.1.0a22"), nil},
	}
}

// A clientScript is what a client does. Its answers, in the order of the
// questions, are once, session, deny, empty, decline, cancel, error, late and
// never: late is once, after the test has written a line to the client.
type clientScript struct {
	Version string       `json:"version"`
	Silent  bool         `json:"silent,omitempty"` // it does not declare that it can ask
	Answers []string     `json:"answers"`
	Own     string       `json:"own,omitempty"`     // how it answers the server behind the proxy
	AtOnce  bool         `json:"at_once,omitempty"` // it makes all calls at once
	Calls   []clientCall `json:"calls"`             // one after the other
}

type clientCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// A clientLine is what a client sees.
type clientLine struct {
	Event   string // connected, asked, answered or failed
	Version string
	Message string // of the question
	How     string // it is answered
	Call    int    // its number
	Text    string
	IsError bool `json:"is_error"`
}

// A clientRun is a client's process.
type clientRun struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser // a line for each late answer
	lines chan clientLine
	ended chan error
	log   bytes.Buffer // what client and server write to standard error; the process's until it has ended
}

// start starts a client that starts the server.
func (c *sdkClient) start(t *testing.T, script clientScript, server ...string) *clientRun {
	t.Helper()
	if script.Answers == nil {
		script.Answers = []string{}
	}
	text, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	argv := slices.Concat(c.command, []string{string(text)}, server)
	r := &clientRun{t: t, cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...), lines: make(chan clientLine, 1024), ended: make(chan error, 1)}
	if r.cmd.Env = c.env; r.cmd.Env == nil {
		r.cmd.Env = environ()
	}
	r.cmd.Stderr = &r.log // no file, so that the end of the client is that of its server too
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		<-r.ended
	})
	go func() {
		defer func() {
			r.ended <- r.cmd.Wait()
			close(r.ended)
			close(r.lines)
		}()
		for in := bufio.NewScanner(stdout); in.Scan(); {
			var line clientLine
			if err := json.Unmarshal(in.Bytes(), &line); err != nil {
				line = clientLine{Event: "unreadable", Text: in.Text()}
			}
			r.lines <- line
		}
	}()
	return r
}

// next returns the next line with this event; others before it are left out.
func (r *clientRun) next(event string) clientLine {
	r.t.Helper()
	for {
		if line := r.nextLine(); line.Event == event {
			return line
		}
	}
}

func (r *clientRun) nextLine() clientLine {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		if !ok {
			r.t.Fatalf("the client ended too early\n%s", &r.log)
		}
		return line
	case <-time.After(patience):
		r.t.Fatalf("the client did nothing within %v", patience)
	}
	panic("unreachable")
}

// all returns all lines, when the client has ended.
func (r *clientRun) all() (list []clientLine) {
	r.t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, ok := <-r.lines:
			if ok {
				list = append(list, line)
				continue
			}
			if err := <-r.ended; err != nil {
				r.t.Errorf("the client ended with %v\n%s", err, &r.log)
			}
			return list
		case <-late:
			r.t.Fatalf("the client did not end within %v", patience)
		}
	}
}

// executedBy returns the arguments of the calls in a journal.
func executedBy(t *testing.T, journal string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(journal)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestClientsShowQuestions has a server ask as the proxy does. The clients of all
// SDKs accept its messages, and the choices of their users count.
func TestClientsShowQuestions(t *testing.T) {
	peers := build(t, "./cmd/internal/peers")
	script := clientScript{Answers: []string{"once", "session", "deny", "empty", "decline", "cancel", "error"}}
	for i := range script.Answers {
		script.Calls = append(script.Calls, clientCall{"safe", map[string]any{"n": i}})
	}
	want := []string{"approved: once", "approved: session", "denied", "denied", "denied", "dismissed", "refused"}
	for _, c := range sdkClients(t) {
		for _, version := range c.versions {
			t.Run(c.name+" "+version, func(t *testing.T) {
				t.Parallel()
				script := script
				script.Version = version
				journal := filepath.Join(t.TempDir(), "journal")
				lines := c.start(t, script, peers, "asking", journal).all()
				if len(lines) == 0 || lines[0].Version != version {
					t.Fatalf("the client says %+v", lines)
				}
				var answers []string
				asked := 0
				for _, l := range lines {
					switch {
					case l.Event == "asked":
						asked++
						if !strings.HasPrefix(l.Message, "auditproxy asks: may this call run?\n\n- tool: `safe`\n") {
							t.Errorf("the person reads %q", l.Message)
						}
					case l.Event == "answered":
						answers = append(answers, l.Text)
					case l.Event == "failed" && version == "2026-07-28" && l.Call == 6:
						answers = append(answers, "refused") // the call is not repeated
					}
				}
				if diff := gocmp.Diff(want, answers); diff != "" || asked != len(want) {
					t.Errorf("%d questions; -want +got:\n%s", asked, diff)
				}
				if diff := gocmp.Diff([]string{`["safe",{"n":0}]`, `["safe",{"n":1}]`}, executedBy(t, journal)); diff != "" {
					t.Errorf("executed -want +got:\n%s", diff)
				}
			})
		}
	}
}

// TestClientsThatCannotAsk checks that a client which does not declare elicitation
// gets no question.
func TestClientsThatCannotAsk(t *testing.T) {
	peers := build(t, "./cmd/internal/peers")
	for _, c := range sdkClients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := clientScript{Version: c.versions[len(c.versions)-1], Silent: true, Calls: []clientCall{{"safe", map[string]any{}}}}
			r := c.start(t, script, peers, "asking", filepath.Join(t.TempDir(), "journal"))
			if l := r.next("answered"); l.Text != "nobody can be asked" {
				t.Errorf("the call was answered with %q", l.Text)
			}
		})
	}
}

// TestServersQuestionSurvives has the server ask in a call that needs an approval.
// Clients return only the answers to the last question. The server gets its own
// state and answers, and nothing of the proxy's; else the test's server exits.
func TestServersQuestionSurvives(t *testing.T) {
	peers := build(t, "./cmd/internal/peers")
	for _, c := range sdkClients(t) {
		if !slices.Contains(c.versions, "2026-07-28") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := clientScript{Version: "2026-07-28", Answers: []string{"once", "session"}, Calls: []clientCall{{"evil", map[string]any{"n": 1}}}}
			journal := filepath.Join(t.TempDir(), "journal")
			r := c.start(t, script, peers, "asking", journal)
			if l := r.next("asked"); l.Message != "The server asks." {
				t.Errorf("the person reads %q first", l.Message)
			}
			if l := r.next("answered"); l.Text != "approved: session" {
				t.Errorf("the call was answered with %q", l.Text)
			}
			if got := executedBy(t, journal); len(got) != 1 {
				t.Errorf("executed %q", got)
			}
		})
	}
}

// TestClientsAnswerLate withdraws a question, and refuses its call, before the
// client answers. Some SDKs send the answer then, some an error, and some
// nothing. It approves nothing, not even the next question.
func TestClientsAnswerLate(t *testing.T) {
	peers := build(t, "./cmd/internal/peers")
	for _, c := range sdkClients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			script := clientScript{Version: "2025-11-25", Answers: []string{"late", "decline"},
				Calls: []clientCall{{"safe", map[string]any{"takenBack": pipe}}, {"safe", map[string]any{}}}}
			journal := filepath.Join(t.TempDir(), "journal")
			r := c.start(t, script, peers, "asking", journal)
			r.next("asked")
			withdrawn, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(r.stdin, "\n"); err != nil {
				t.Error(err)
			}
			withdrawn.Close() // not before: some SDKs end without the late answer
			if l := r.next("answered"); l.Text != "too late" {
				t.Errorf("the first call was answered with %q", l.Text)
			}
			if l := r.next("answered"); l.Text != "denied" {
				t.Errorf("the second call was answered with %q", l.Text)
			}
			if got := executedBy(t, journal); len(got) > 0 {
				t.Errorf("executed %q", got)
			}
		})
	}
}

// An approvalStep is a call that needs an approval, with its outcome.
type approvalStep struct {
	answer    string // as in a clientScript
	text      string // in the answer to the call
	outcome   string
	scope     string
	errorType string
}

// wantApprovals are the records of the steps, in short. Where the question is the
// result of the call, each call that is asked about has a record, and so has its
// repetition.
func wantApprovals(steps []approvalStep, inResult bool) (list []string) {
	for n, s := range steps {
		if inResult && s.answer != "" {
			list = append(list, fmt.Sprintf("%d input_required", n))
			if s.answer == "error" {
				continue
			}
		}
		by := "client client"
		if s.outcome == "unavailable" {
			by = " "
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s", n, s.outcome, s.scope, by, s.errorType)))
	}
	return list
}

// approvalsIn returns the records of a session that has ended.
func approvalsIn(t *testing.T, spool string) (got []string) {
	t.Helper()
	list := records(t, spool)
	list = slices.DeleteFunc(list, func(r audit.Record) bool { return r.Kind != audit.KindCall })
	slices.SortFunc(list, func(a, b audit.Record) int { return cmp.Compare(a.CallNo, b.CallNo) })
	for _, r := range list {
		var args struct{ N int }
		if err := json.Unmarshal([]byte(r.Args), &args); err != nil {
			t.Errorf("arguments %s: %v", r.Args, err)
		}
		if r.ResultType != "" && r.ResultType != "complete" {
			got = append(got, fmt.Sprint(args.N, " ", r.ResultType))
			continue
		}
		a, err := audit.ParseApproval(r.Approval)
		if err != nil || a.User != "" {
			t.Errorf("approval %s: %v", r.Approval, err)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s %s", args.N, a.Outcome, a.Scope, a.By, a.Channel, r.ErrorType)))
		if r.Forwarded != (a.Outcome == "approved") {
			t.Errorf("call %d was %s, forwarded: %v", args.N, a.Outcome, r.Forwarded)
		}
	}
	return got
}

// TestClientsApprove puts the proxy between the clients and a server whose tool
// needs an approval. The server executes approved calls only, each record names
// the answer, and nothing of question and answer reaches the server.
func TestClientsApprove(t *testing.T) {
	proxy, peers := build(t, "./cmd/auditproxy"), build(t, "./cmd/internal/peers")
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"version":"1","default":"allow","tools":{"safe":{"action":"require_approval"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const denied, dismissed, unavailable = "denied it", "dismissed the question", "nobody can be asked"
	steps := []approvalStep{
		{"decline", denied, "denied", "", audit.ErrApprovalDenied},
		{"cancel", dismissed, "cancelled", "", audit.ErrCancelled},
		{"deny", denied, "denied", "", audit.ErrApprovalDenied},
		{"empty", denied, "denied", "", audit.ErrApprovalDenied},
		{"once", "done", "approved", "once", ""},
		{"error", unavailable, "unavailable", "", audit.ErrApprovalUnavailable},
		{"session", "done", "approved", "session", ""},
		{"", "done", "approved", "session", ""}, // the answer covers it
	}
	script := clientScript{}
	for n, s := range steps {
		if s.answer != "" {
			script.Answers = append(script.Answers, s.answer)
		}
		script.Calls = append(script.Calls, clientCall{"safe", map[string]any{"n": n}})
	}
	for _, c := range sdkClients(t) {
		for _, version := range c.versions {
			t.Run(c.name+" "+version, func(t *testing.T) {
				t.Parallel()
				script := script
				script.Version = version
				dir := t.TempDir()
				spool, journal, seen := filepath.Join(dir, "spool"), filepath.Join(dir, "journal"), filepath.Join(dir, "seen")
				lines := c.start(t, script, proxy, "--spool-dir", spool, "--policy-file", policy, "--approval-channels", "client", "--",
					"sh", "-c", `tee "$0" | "$1" go-sdk "$2"`, seen, peers, journal).all()
				inResult := version == "2026-07-28"
				asked := 0
				for _, l := range lines {
					switch {
					case l.Event == "connected":
						if l.Version != version {
							t.Errorf("the client speaks %s", l.Version)
						}
					case l.Event == "asked":
						if asked++; !strings.Contains(l.Message, "\n- tool: `safe`\n") {
							t.Errorf("the person reads %q", l.Message)
						}
					case l.Event == "failed" && inResult && steps[l.Call].answer == "error": // the client does not repeat the call
					case l.Event != "answered" || !strings.Contains(l.Text, steps[l.Call].text) || l.IsError == (steps[l.Call].text == "done"):
						t.Errorf("call %d: %+v, want %q", l.Call, l, steps[l.Call].text)
					}
				}
				if asked != len(script.Answers) {
					t.Errorf("the person was asked %d times, want %d", asked, len(script.Answers))
				}
				if diff := gocmp.Diff([]string{`["safe",{"n":4}]`, `["safe",{"n":6}]`, `["safe",{"n":7}]`}, executedBy(t, journal)); diff != "" {
					t.Errorf("executed -want +got:\n%s", diff)
				}
				got, err := os.ReadFile(seen)
				if err != nil {
					t.Fatal(err)
				}
				for _, word := range []string{"auditproxy", "decision", "inputResponses", "requestState"} {
					if strings.Contains(string(got), word) {
						t.Errorf("the server got %q", word)
					}
				}
				if diff := gocmp.Diff(wantApprovals(steps, inResult), approvalsIn(t, spool)); diff != "" {
					t.Errorf("records -want +got:\n%s", diff)
				}
			})
		}
	}
}
