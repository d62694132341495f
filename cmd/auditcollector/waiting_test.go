package main

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An askingProxy is a proxy whose policy asks about kill_session.
type askingProxy struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	done func() string // ids of the calls that the server executed
}

func (a *agents) asking(t *testing.T, args ...string) *askingProxy {
	t.Helper()
	policy := filepath.Join(filepath.Dir(a.journal), "policy.yaml")
	if err := os.WriteFile(policy, []byte("version: '1'\ndefault: allow\ntools:\n  kill_session: {action: require_approval, reason: Somebody may be working there.}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &askingProxy{t: t, done: func() string {
		text, err := os.ReadFile(a.journal)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}}
	p.cmd = exec.Command(a.proxy, append(append([]string{"--spool-dir", a.spool, "--policy-file", policy, "--approval-channels", "files"}, args...), "--", a.server, a.journal)...)
	p.cmd.Env = []string{"HOME=" + filepath.Dir(a.journal), "PATH=" + os.Getenv("PATH")}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *askingProxy) call(id, tool string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"session_name":"work"}}}`+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *askingProxy) answer() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the proxy ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// end closes the client's side and returns what the proxy still answers.
func (p *askingProxy) end() string {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Fatal(err)
	}
	var rest strings.Builder
	for p.out.Scan() {
		rest.Write(p.out.Bytes())
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
	return rest.String()
}

// waits waits until the page has a call that waits, and returns the path and the
// form of its page, which is not the one before.
func (r *reviewer) waits(before string) (path string, form url.Values, page string) {
	r.t.Helper()
	eventually(r.t, "the page has the call", func() bool {
		_, list := r.get("/waiting")
		found := regexp.MustCompile(`href="(/waiting/[0-9a-f]{24})"`).FindStringSubmatch(list)
		if found == nil || found[1] == before {
			return false
		}
		status, text := r.get(found[1])
		fields := regexp.MustCompile(`name="token" value="([0-9a-f]+)"><input type="hidden" name="question" value="([0-9a-f]+)"`).FindStringSubmatch(text)
		if status != http.StatusOK || fields == nil {
			return false
		}
		path, page, form = found[1], text, url.Values{"token": {fields[1]}, "question": {fields[2]}}
		return true
	})
	return path, form, page
}

// TestWaitingOnPage answers a proxy's question on the page: the server executes
// the call once, after the approval.
func TestWaitingOnPage(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agents := newAgents(t, h.dir, h.spoolDir(), 1)
	if err := os.Mkdir(h.approvals(), 0o700); err != nil {
		t.Fatal(err)
	}
	first := agents.asking(t)
	first.call("1", "kill_session")
	first.call("2", "list_panes")
	if got := first.answer(); !strings.Contains(got, `"id":2,`) {
		t.Errorf("while a call waits, another is answered %s", got)
	}
	p := h.collect(t, "--batch-wait", "20ms", "--review-listen", "127.0.0.1:0", "--review-approvals", filepath.Join(h.spoolDir(), "approvals"), "--review-approvals", h.approvals())
	eventually(t, "the other call is stored", func() bool { return h.number("SELECT count() FROM audit.events WHERE tool = 'list_panes'") == 1 })
	r := newReviewer(t, "", &http.Transport{})
	r.open(h.link(t))

	path, form, page := r.waits("")
	for _, want := range []string{"kill_session", "Somebody may be working there.", "session_name", "work"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the call has no %q", want)
		}
	}
	last := h.ask(t, "SELECT record_id FROM audit.events WHERE tool = 'list_panes'")[0]
	eventually(t, "the page of the call has the last call of the session", func() bool {
		_, page := r.get(path)
		return strings.Contains(page, `href="/calls/`+last+`"`)
	})
	if got := first.done(); got != "2" {
		t.Errorf("before the approval, the server executed %q", got)
	}
	form.Set("answer", "once")
	if status, said := r.send("POST", path, form.Encode()); status != http.StatusOK || !strings.Contains(said, "Allowed once") {
		t.Errorf("allowing it: %d\n%s", status, said)
	}
	if got := first.answer(); !strings.Contains(got, `"id":1,`) || !strings.Contains(got, `"content":[]`) {
		t.Errorf("after the approval, the call is answered %s", got)
	}
	if rest := first.end(); rest != "" || first.done() != "2 1" {
		t.Errorf("the server executed %q, and the proxy still answered %q", first.done(), rest)
	}

	// Where the agent's user may not answer, neither may a page that it serves.
	second := agents.asking(t, "--approval-same-user=false", "--approval-approvers", "nobody", "--approval-dir", h.approvals())
	second.call("3", "kill_session")
	path, form, page = r.waits(path)
	if !strings.Contains(page, "approval.same_user is false") {
		t.Errorf("the page does not say that its answers do not count:\n%s", page)
	}
	form.Set("answer", "once")
	if status, said := r.send("POST", path, form.Encode()); status != http.StatusForbidden || !strings.Contains(said, "does not accept") {
		t.Errorf("allowing it: %d\n%s", status, said)
	}
	if rest := second.end(); !strings.Contains(rest, `"id":3,`) || !strings.Contains(rest, "POLICY DENIED") || second.done() != "2 1" {
		t.Errorf("the server executed %q, and the proxy answered %q", second.done(), rest)
	}

	eventually(t, "both calls are stored", func() bool {
		return h.number("SELECT count() FROM audit.events WHERE tool = 'kill_session' AND kind = 'call'") == 2
	})
	got := h.ask(t, `SELECT approval_outcome, JSONExtractString(approval, 'scope'), JSONExtractString(approval, 'by'), JSONExtractString(approval, 'user') = user, JSONExtractString(approval, 'channel'), outcome
		FROM audit.events WHERE tool = 'kill_session' AND kind = 'call' ORDER BY ts`)
	if len(got) < 6 {
		t.Fatalf("the records say %q", got)
	}
	if diff := cmp.Diff([]string{"approved", "once", "ann", "1", "files", "ok", "cancelled"}, got[:7]); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	eventually(t, "there is an alert about the agent's own user", func() bool {
		return h.number("SELECT count() FROM audit.open_alerts WHERE rule = 'approval-by-own-user'") == 1
	})
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := p.stderr.String(); !strings.Contains(log, "waiting call answered") || strings.Contains(log, "session_name") {
		t.Errorf("the log:\n%s", log)
	}
}
