package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func newQuestion(id string) *approval.Question {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &approval.Question{ID: id, Asked: now, Expires: now.Add(time.Hour), SessionID: "5e5510", Host: "build7", User: "ann", PID: 7,
		Server: "libtmux", Client: "claude", ServerKey: "0123456789abcdef", Calls: []approval.Call{{CallNo: 3, Method: "tools/call", Tool: "send_keys",
			Target: "%1", Rule: "/tools/send_keys/action", Reason: "Somebody may be working there.", Args: `{"keys":"rm -rf x"}`,
			Risk: `{"category":"destructive","level":"critical"}`, Detections: audit.DetectionsJSON([]audit.Detection{{Detector: "recursive_delete", At: "keys"}})}}}
}

// A proxy asks and takes answers, as a proxy does.
type proxy struct {
	*approval.Dir
	t       *testing.T
	answers chan *approval.Answer
}

func newProxy(t *testing.T) proxy {
	t.Helper()
	d, err := approval.Open(approval.Config{Dir: filepath.Join(t.TempDir(), "approvals"), Own: true, SameUser: true})
	if err != nil {
		t.Fatal(err)
	}
	return proxy{d, t, make(chan *approval.Answer, 100)}
}

// ask asks, and takes the answer when it comes.
func (p proxy) ask(q *approval.Question) {
	p.t.Helper()
	if err := p.Ask(q); err != nil {
		p.t.Fatal(err)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(p.t.Context())
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			if a, _ := p.Answer(q.ID); a != nil {
				p.answers <- a
				p.Withdraw(q.ID)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	p.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// people opens the proxy's directory. The two buffers receive the output and the
// messages.
func (p proxy) people(cfg Config) (*Session, *bytes.Buffer, *bytes.Buffer) {
	p.t.Helper()
	var out, said bytes.Buffer
	cfg.Files = approval.Config{Dir: p.Path(), Own: true, SameUser: true}
	cfg.Stdout, cfg.Say = &out, func(err error) { fmt.Fprintln(&said, err) }
	s, err := Open(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	return s, &out, &said
}

// steady replaces what differs from run to run.
func steady(text string, p proxy) string {
	text = regexp.MustCompile(`\d+m?\d*s ago, [0-9hms]+ left`).ReplaceAllString(text, "TIME")
	return strings.ReplaceAll(text, "asked by "+userOf(p)+"  ", "asked by USER  ")
}

func userOf(p proxy) string {
	list, _ := p.Waiting()
	for _, q := range list {
		return q.Owner
	}
	return "?"
}

func TestListForPeople(t *testing.T) {
	p := newProxy(t)
	s, out, said := p.people(Config{})
	if n, err := s.List(); n != 0 || err != nil || out.Len()+said.Len() > 0 {
		t.Errorf("nothing waits: %d, %v, %s%s", n, err, out, said)
	}
	p.ask(newQuestion("019e8b1c-5a2f"))
	batch := newQuestion("019e8b1c-5a30")
	batch.Asked = batch.Asked.Add(time.Second)
	batch.Calls = append(batch.Calls, approval.Call{CallNo: 4, Method: "resources/read", Rule: "(default)", Args: `{"uri":"file:///x"}`})
	batch.More = 2
	p.ask(batch)
	if n, err := s.List(); n != 2 || err != nil {
		t.Errorf("two wait: %d, %v", n, err)
	}
	want := `019e8b1c-5a2f  TIME
  asked by USER  user ann  host build7  client claude  server libtmux  session 5e5510
  send_keys %1  destructive critical !recursive_delete:keys  /tools/send_keys/action: Somebody may be working there.
    {"keys":"rm -rf x"}
019e8b1c-5a30  TIME
  asked by USER  user ann  host build7  client claude  server libtmux  session 5e5510
  send_keys %1  destructive critical !recursive_delete:keys  /tools/send_keys/action: Somebody may be working there.
    {"keys":"rm -rf x"}
  resources/read  (default)
    {"uri":"file:///x"}
  and 2 more calls that the question leaves out
`
	if diff := cmp.Diff(want, steady(out.String(), p)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestListAsJSON(t *testing.T) {
	p := newProxy(t)
	s, out, _ := p.people(Config{JSON: true})
	p.ask(newQuestion("q1"))
	if _, err := s.List(); err != nil {
		t.Fatal(err)
	}
	var got shownQuestion
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.ID != "q1" || !got.Yours || got.LeftMS <= 0 || got.Owner == "" || !strings.Contains(got.MayAnswer, "root may answer") || len(got.Calls) != 1 ||
		string(got.Calls[0].Args) != `{"keys":"rm -rf x"}` || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("list: %s", out)
	}
}

// Names and arguments of questions neither control a terminal nor hide calls.
func TestHostileQuestionsAreHarmless(t *testing.T) {
	const hostile = "Marma\x1b[2J\x1b]0;title\a\u009b31m\u0085\r\n\t\b\x7f\u202e\u2066\u200b\U000e0041lade"
	p := newProxy(t)
	q := newQuestion("q1")
	q.SessionID, q.Host, q.User, q.Server, q.Client = hostile, hostile, hostile, hostile, hostile
	c := &q.Calls[0]
	c.Method, c.Tool, c.Target, c.Rule, c.Reason = hostile, hostile, hostile, hostile, hostile
	text, _ := json.Marshal(map[string]string{"keys": hostile + strings.Repeat("a", 2*maxShown) + "; rm -rf x"})
	c.Args = audit.JSON(text)
	q.Client, c.Target = strings.Repeat("x", 100<<10), strings.Repeat("y", 100<<10)
	c.Detections = audit.DetectionsJSON([]audit.Detection{{Detector: hostile, At: hostile}})
	p.ask(q)
	if err := os.WriteFile(filepath.Join(p.Path(), "bad.json"), []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []Config{{}, {JSON: true}, {Cells: 60}} {
		s, out, said := p.people(cfg)
		var exit cli.ExitError
		if _, err := s.List(); !errors.As(err, &exit) || exit.Code != cli.ExitUnclear {
			t.Errorf("a question cannot be read: %v", err)
		}
		if !cfg.JSON {
			list, _ := s.waiting()
			out.Write(s.text(&list[0], time.Now(), true))
			if out.Len() > 40<<10 || strings.Count(out.String(), "bytes more)") != 4 {
				t.Errorf("long texts fill the screen: %d bytes", out.Len())
			}
			if !strings.Contains(out.String(), "bytes that are not shown") {
				t.Errorf("long arguments end without notice: %s", out)
			}
		}
		if i := strings.IndexFunc(out.String()+said.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("the output has a control character: %q", out.String()[i:])
		}
		if strings.Count(said.String(), "bad") != 1 {
			t.Errorf("said: %s, want the question that cannot be read, once", said)
		}
	}
}

// TestNoTextLooksLikeAQuestion shows texts that fill rows of the terminal, at all widths: no
// row begins with their words. Arguments could show a second, harmless question right above
// the prompt.
func TestNoTextLooksLikeAQuestion(t *testing.T) {
	p := newProxy(t)
	q := newQuestion("q1")
	for _, field := range []*string{&q.Server, &q.Calls[0].Tool, &q.Calls[0].Target, &q.Calls[0].Reason} {
		*field = strings.Repeat(" ", 80) + "q2  1s ago, 1m59s left" + strings.Repeat("\u4f60", 60)
	}
	filled := map[string]string{}
	for i := range 200 {
		filled[fmt.Sprint("a", i)] = strings.Repeat(" ", i) + "  asked by ann"
		filled[fmt.Sprint("b", i)] = strings.Repeat("x", i) + "  capture_pane  read low"
	}
	text, _ := json.Marshal(filled)
	q.Calls[0].Args = audit.JSON(text[:maxShown-1])
	s, _, _ := p.people(Config{})
	now := time.Now()
	plain := string(s.text(q, now, true))
	for cells := 20; cells < 100; cells++ {
		s.cfg.Cells = cells
		got := string(s.text(q, now, true))
		if whole := strings.ReplaceAll(got, "\n    | ", ""); whole != plain {
			t.Fatalf("%d cells:\n%s\nwant:\n%s", cells, whole, plain)
		}
		for row := range strings.Lines(got) {
			if n := terminal.Cells(strings.TrimSuffix(row, "\n")); n > cells {
				t.Errorf("a row of %d cells, want %d: %s", n, cells, row)
			}
		}
		if strings.Count(got, "  asked by ") > 1 || strings.Contains(got, "  capture_pane") || strings.Contains(got, "\nq2 ") {
			t.Errorf("%d cells: a row looks like one of a question:\n%s", cells, got)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := newProxy(t)
	found := func(err error) bool {
		var exit cli.ExitError
		return errors.As(err, &exit) && exit.Code == cli.ExitFound
	}
	s, out, _ := p.people(Config{})
	ctx := t.Context()
	p.ask(newQuestion("019e-a1"))
	p.ask(newQuestion("019e-b2"))
	if err := s.Answer(ctx, "019e", approval.Answer{Approved: true}); err == nil || found(err) || !strings.Contains(err.Error(), "more than one call waits") {
		t.Errorf("an id that two have: %v", err)
	}
	for _, id := range []string{"", "x", "019e-a1x", "../a"} {
		if err := s.Answer(ctx, id, approval.Answer{Approved: true}); !found(err) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if err := s.Answer(ctx, "019e-a", approval.Answer{Approved: true, Scope: approval.Session, By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	if a := <-p.answers; !a.Approved || a.Scope != approval.Session || a.By != "Ann" {
		t.Errorf("answer: %+v", a)
	}
	if !strings.HasPrefix(out.String(), "allowed for this session\n019e-a1  ") || !strings.Contains(out.String(), "rm -rf x") {
		t.Errorf("printed: %s", out)
	}
	if err := s.Answer(ctx, "019e-a1", approval.Answer{Approved: true}); !found(err) || !strings.Contains(err.Error(), "no call waits") {
		t.Errorf("answered again: %v", err)
	}
	if err := s.Answer(ctx, "019e", approval.Answer{}); err != nil {
		t.Fatal(err)
	}
	if a := <-p.answers; a.Approved {
		t.Errorf("answer: %+v", a)
	}

	// Another answer was first, and the proxy has not read it yet.
	if err := p.Ask(newQuestion("q3")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Path(), "q3.answer"), []byte(`{"approved":false,"by":"Bob"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(ctx, "q3", approval.Answer{Approved: true}); !found(err) || !strings.Contains(err.Error(), "already answered by") || !strings.Contains(err.Error(), "Bob") {
		t.Errorf("the second answer: %v", err)
	}

	// The proxy knows the question that it asked.
	q4 := newQuestion("q4")
	p.ask(q4)
	q4.Calls[0].Args = `{"keys":"ls"}`
	other, err := approval.Open(approval.Config{Dir: filepath.Join(t.TempDir(), "x"), Own: true, SameUser: true})
	if err == nil {
		err = other.Ask(q4)
	}
	if err == nil {
		err = os.Rename(filepath.Join(other.Path(), "q4.json"), filepath.Join(p.Path(), "q4.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(ctx, "q4", approval.Answer{Approved: true}); !found(err) || !strings.Contains(err.Error(), "did not accept") {
		t.Errorf("an answer to a question that was changed: %v", err)
	}

	// No proxy takes the answer.
	if err := p.Ask(newQuestion("q5")); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Answer(short, "q5", approval.Answer{Approved: true}); err == nil || found(err) || !strings.Contains(err.Error(), "has not taken it") {
		t.Errorf("an answer that is not taken: %v", err)
	}
}

func TestAlwaysAllowed(t *testing.T) {
	p := newProxy(t)
	s, out, _ := p.people(Config{})
	p.ask(newQuestion("q1"))
	if err := s.Answer(t.Context(), "q1", approval.Answer{Approved: true, Scope: approval.Always, By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if n, err := s.Allowed(time.UTC); n != 1 || err != nil {
		t.Errorf("allowed: %d, %v", n, err)
	}
	if got := out.String(); !strings.HasPrefix(got, "send_keys  server 0123456789abcdef  up to risk critical  by ") || !strings.Contains(got, "(Ann)  since 20") || !strings.HasSuffix(got, " !recursive_delete\n") {
		t.Errorf("allowed: %s", got)
	}
	if diff := cmp.Diff([]string{"send_keys"}, s.Tools()); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(p.Path(), "always", "bad.answer"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var exit cli.ExitError
	if n, err := s.Allowed(time.UTC); n != 2 || !errors.As(err, &exit) || exit.Code != cli.ExitFound || !strings.Contains(out.String(), "does not count: ") {
		t.Errorf("allowed, with one that does not count: %d, %v: %s", n, err, out)
	}
	if err := s.Revoke("send_keys", "fedcba9876543210"); !errors.As(err, &exit) || exit.Code != cli.ExitFound {
		t.Errorf("revoking another server's: %v", err)
	}
	if err := s.Revoke("send_keys", ""); err != nil {
		t.Error(err)
	}
	if a, err := p.Allows("send_keys", "0123456789abcdef", nil, ""); a != nil || err != nil {
		t.Errorf("after it was revoked: %+v, %v", a, err)
	}
}

// Without a terminal calls are printed as they come, each once. The directory
// may be made later.
func TestFollow(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := filepath.Join(t.TempDir(), "approvals")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	files := approval.Config{Dir: dir, Own: true, SameUser: true}
	s, err := Open(Config{Files: files, JSON: true, Stdout: write, Say: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Follow(ctx)
		write.Close()
	}()
	d, err := approval.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(read)
	for _, id := range []string{"q1", "q2"} {
		if err := d.Ask(newQuestion(id)); err != nil {
			t.Fatal(err)
		}
		var got shownQuestion
		if err := lines.Decode(&got); err != nil || got.ID != id {
			t.Fatalf("follows with %+v, %v, want %s", got, err, id)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var more shownQuestion
	if err := lines.Decode(&more); err == nil {
		t.Errorf("a call is printed twice: %+v", more)
	}
	read.Close()
}
