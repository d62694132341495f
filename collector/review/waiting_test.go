package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/net/html"
)

// A hall is a page at which calls of a proxy wait.
type hall struct {
	*Server
	store *fakeStore
	proxy *approval.Dir
	dir   string
	logs  *observer.ObservedLogs
	who   string // sends the requests
}

func newHall(t *testing.T, text string) *hall {
	t.Helper()
	h := &hall{store: &fakeStore{text: text, records: 3}, dir: filepath.Join(t.TempDir(), "approvals"), who: "ann"}
	var err error
	if h.proxy, err = approval.Open(approval.Config{Dir: h.dir, Own: true, SameUser: true}); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.InfoLevel)
	h.logs = logs
	f := h.store
	h.Server, err = newServer(Config{Approvals: []string{h.dir}, Log: zap.New(core), Who: func(*http.Request) string { return h.who }}, sources{f, f, f, f, f, f, f, f, f})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask makes a call wait. All its untrusted texts are text.
func (h *hall) ask(t *testing.T, id, text string, change ...func(*approval.Question)) {
	t.Helper()
	r := h.store.record()
	now := time.Now()
	q := approval.Question{
		ID: id, Asked: now.Add(-5 * time.Second), Expires: now.Add(115 * time.Second), SessionID: r.SessionID, Host: text, User: text, Server: text, Client: text, PID: 77,
		Calls: []approval.Call{{CallNo: 2, Method: "tools/call", Tool: text, Target: text, Rule: text, Reason: text, Args: r.Args,
			Risk:       audit.Risk{Category: "destructive", Level: text}.JSON(),
			Detections: audit.DetectionsJSON([]audit.Detection{{Detector: "recursive_delete", At: text}, {Detector: text}})}},
	}
	for _, c := range change {
		c(&q)
	}
	if err := h.proxy.Ask(&q); err != nil {
		t.Fatal(err)
	}
	h.desk.forget()
}

func (h *hall) get(path string) *httptest.ResponseRecorder { return do(h.Server, get(path)) }

// form returns the form of the page of the only question, with an answer.
func (h *hall) form(t *testing.T, answer string) (path string, form url.Values) {
	t.Helper()
	list := h.desk.state().Calls
	if len(list) != 1 {
		t.Fatalf("%d calls wait, want one", len(list))
	}
	path, form = "/waiting/"+list[0].Key, url.Values{"answer": {answer}}
	doc, err := html.Parse(h.get(path).Body)
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		if n.Data == "input" && attr["type"] == "hidden" {
			form.Set(attr["name"], attr["value"])
		}
	}
	return path, form
}

// TestWaitingBatch: of a call with operations in it, the page has a sentence about the
// call and a list of what is in it.
func TestWaitingBatch(t *testing.T) {
	h := newHall(t, "x")
	h.ask(t, "q1", "call_tools_batch", func(q *approval.Question) {
		q.Calls[0].Target = ""
		q.Calls[0].Args = audit.JSON(`{"operations":[{"tool":"kill_first","arguments":{}},{"tool":"kill_second","arguments":{}}]}`)
	})
	body := h.get("/waiting").Body.String()
	about, rest, _ := strings.Cut(body, "Requested, not done:")
	if strings.Contains(about, "kill_first") || strings.Count(rest, "Requested, not done:") != 0 {
		t.Errorf("the call has not one sentence:\n%s", body)
	}
	about, inside, _ := strings.Cut(rest, "<ul>")
	inside, _, _ = strings.Cut(inside, "</ul>")
	if strings.Contains(about, "kill_") || strings.Count(inside, "<li>") != 2 || !strings.Contains(inside, "kill_first") || !strings.Contains(inside, "kill_second") {
		t.Errorf("the sentence is %s\nand the list %s", about, inside)
	}
}

// TestWaiting checks that the page shows a question with all its details, also
// without the store, and that every page has the number of questions.
func TestWaiting(t *testing.T) {
	h := newHall(t, "sent keys")
	if w := h.get("/waiting"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Nothing waits") {
		t.Errorf("without questions: %d\n%s", w.Code, w.Body)
	}
	h.ask(t, "q1", "kill_thing")
	h.ask(t, "q2", "second_thing", func(q *approval.Question) { q.Asked, q.More = q.Asked.Add(time.Second), 3 })
	list := h.get("/waiting").Body.String()
	for _, want := range []string{
		`<meta http-equiv="refresh" content="5; url=/waiting">`, "kill_thing", "second_thing", "destructive", "recursive_delete", "89abcdef01234567", "process 77",
		"3 more calls", "1 min ", "Requested, not done:", "Last calls of the session", `href="/calls/019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e"`, "PaneNotFound", `value="deny"`,
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the page of waiting calls has no %q", want)
		}
	}
	if strings.Index(list, "kill_thing") > strings.Index(list, "second_thing") {
		t.Error("the oldest call is not the first")
	}
	if strings.Contains(list, `value="once"`) {
		t.Error("a page that is refreshed has a button that allows a call: another call may take its place")
	}
	if held := h.get("/waiting?hold").Body.String(); strings.Contains(held, "http-equiv") {
		t.Error("the page is refreshed although it was to hold still")
	}
	one := h.get("/waiting/" + deskKey(h.dir, "q1")).Body.String()
	for _, want := range []string{"kill_thing", "Allow once", "Allow for this session", "Deny", "89abcdef01234567"} {
		if !strings.Contains(one, want) {
			t.Errorf("the page of the question has no %q", want)
		}
	}
	if strings.Contains(one, "http-equiv") {
		t.Error("the page of the question is refreshed: a choice would be lost")
	}
	for _, path := range pagePaths {
		if w := h.get(path); !strings.Contains(w.Body.String(), `Waiting <span class="badge bad">2</span>`) {
			t.Errorf("%s does not say that two calls wait", path)
		}
	}
	h.store.err = context.DeadlineExceeded
	for _, path := range []string{"/waiting", "/waiting/" + deskKey(h.dir, "q1")} {
		if w := h.get(path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "kill_thing") || !strings.Contains(w.Body.String(), "cannot be read now") {
			t.Errorf("%s while the store does not answer: %d", path, w.Code)
		}
	}
}

// TestWithoutApprovals checks that without directories no page shows calls that
// wait.
func TestWithoutApprovals(t *testing.T) {
	s := newTestServer(t, &fakeStore{text: "x"})
	if w := do(s, get("/waiting")); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "/waiting") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := do(s, post("/waiting/x", nil)); w.Code != http.StatusNotFound {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestAnswer(t *testing.T) {
	for choice, want := range map[string]approval.Answer{
		"once":    {Approved: true, Scope: approval.Once, By: "ann"},
		"session": {Approved: true, Scope: approval.Session, By: "ann"},
		"deny":    {Scope: approval.Once, By: "ann"},
	} {
		h := newHall(t, "x")
		h.ask(t, "q1", "kill_thing")
		path, form := h.form(t, choice)
		w := do(h.Server, post(path, form))
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/waiting?done="+choice {
			t.Fatalf("%s: %d to %q\n%s", choice, w.Code, to, w.Body)
		}
		if said := h.get(w.Header().Get("Location")).Body.String(); !strings.Contains(said, dones[choice]) {
			t.Errorf("%s: the page does not say %q", choice, dones[choice])
		}
		got, err := h.proxy.Answer("q1")
		if err != nil || got == nil {
			t.Fatalf("%s: answer %v, %v", choice, got, err)
		}
		if got.Approved != want.Approved || got.Scope != want.Scope || got.By != want.By || got.User == "" {
			t.Errorf("%s: answer %+v, want %+v of a user", choice, got, want)
		}
		logged := h.logs.FilterMessage("waiting call answered").All()
		if len(logged) != 1 {
			t.Fatalf("%s: logged %v", choice, h.logs.All())
		}
		fields := logged[0].ContextMap()
		if diff := cmp.Diff(map[string]any{"who": "ann", "question": "q1", "directory": h.dir, "approved": want.Approved, "scope": string(want.Scope)}, fields); diff != "" {
			t.Errorf("%s: log (-want +got):\n%s", choice, diff)
		}
	}
}

// TestAnswerRefused checks that forms which this page did not make for this
// reviewer and question, and late answers, have no effect.
func TestAnswerRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, h *hall, path *string, form url.Values)
		code   int
		says   string
	}{
		{"it wants its token", func(_ *testing.T, _ *hall, _ *string, v url.Values) { v.Del("token") }, 403, "not made by this page"},
		{"it wants its own token", func(_ *testing.T, _ *hall, _ *string, v url.Values) { v.Set("token", strings.Repeat("0", 64)) }, 403, "not made by this page"},
		{"it wants the token of the reviewer", func(_ *testing.T, h *hall, _ *string, _ url.Values) { h.who = "eve" }, 403, "not made by this page"},
		{"it wants the token of the question", func(_ *testing.T, h *hall, path *string, _ url.Values) { *path = "/waiting/" + deskKey(h.dir, "q2") }, 403, "not made by this page"},
		{"it wants the token of the text", func(_ *testing.T, _ *hall, _ *string, v url.Values) { v.Set("question", strings.Repeat("0", 64)) }, 403, "not made by this page"},
		{"it knows three answers", func(_ *testing.T, _ *hall, _ *string, v url.Values) { v.Set("answer", "always") }, 400, "can be allowed once"},
		{"it wants an answer", func(_ *testing.T, _ *hall, _ *string, v url.Values) { v.Del("answer") }, 400, "can be allowed once"},
		{"it bounds the form", func(_ *testing.T, _ *hall, _ *string, v url.Values) { v.Set("x", strings.Repeat("x", maxForm)) }, 400, "could not be read"},
		{"it says that the call was cancelled", func(t *testing.T, h *hall, _ *string, _ url.Values) {
			if err := h.proxy.Withdraw("q1"); err != nil {
				t.Fatal(err)
			}
		}, 409, "no longer waits"},
		{"it says that the question is another one", func(t *testing.T, h *hall, _ *string, _ url.Values) {
			if err := h.proxy.Withdraw("q1"); err != nil {
				t.Fatal(err)
			}
			h.ask(t, "q1", "drop_all")
		}, 409, "has changed"},
		{"it says who was first", func(t *testing.T, h *hall, _ *string, _ url.Values) {
			q, err := h.proxy.Waiting()
			if err != nil {
				t.Fatal(err)
			}
			if err := h.proxy.Give(&q[0], approval.Answer{By: "<bob>"}); err != nil {
				t.Fatal(err)
			}
		}, 409, "(&lt;bob&gt;)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHall(t, "x")
			h.ask(t, "q1", "kill_thing")
			path, form := h.form(t, "once")
			tt.change(t, h, &path, form)
			h.desk.state() // as a page that was just made has it
			w := do(h.Server, post(path, form))
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("%d, want %d with %q\n%s", w.Code, tt.code, tt.says, w.Body)
			}
			if a, _ := h.proxy.Answer("q1"); a != nil && a.Approved {
				t.Errorf("it was allowed: %+v", a)
			}
		})
	}
}

// TestAnswerType checks that a form of another content type, which other sites can
// send without the browser's check, is not read.
func TestAnswerType(t *testing.T) {
	h := newHall(t, "x")
	h.ask(t, "q1", "kill_thing")
	path, form := h.form(t, "once")
	for _, kind := range []string{"text/plain", "application/json", "multipart/form-data; boundary=x", ""} {
		r := post(path, form)
		r.Header.Set("Content-Type", kind)
		if w := do(h.Server, r); w.Code != http.StatusForbidden {
			t.Errorf("%q: %d", kind, w.Code)
		}
	}
	if w := do(h.Server, post(path+"?"+form.Encode(), nil)); w.Code != http.StatusForbidden {
		t.Errorf("in the URL: %d", w.Code)
	}
	if a, err := h.proxy.Answer("q1"); a != nil || err != nil {
		t.Errorf("answer %+v, %v", a, err)
	}
}

// TestNotAllowed checks that the page reports before and after an answer that the
// proxy does not accept answers from it.
func TestNotAllowed(t *testing.T) {
	h := newHall(t, "x")
	var err error
	if h.proxy, err = approval.Open(approval.Config{Dir: h.dir, Own: true}); err != nil {
		t.Fatal(err)
	}
	h.ask(t, "q1", "kill_thing")
	path, form := h.form(t, "once")
	if w := h.get(path); !strings.Contains(w.Body.String(), "approval.same_user is false") {
		t.Errorf("the page does not say that answers from here do not count:\n%s", w.Body)
	}
	if w := do(h.Server, post(path, form)); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "does not accept answers from this page") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
}

// TestRejectedAnswer checks that the page reports an answer that did not count.
func TestRejectedAnswer(t *testing.T) {
	h := newHall(t, "x")
	h.ask(t, "q1", "kill_thing")
	if err := os.WriteFile(filepath.Join(h.dir, "q1.answer"), []byte(`{"approved":"yes"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := h.proxy.Answer("q1"); a != nil || err == nil {
		t.Fatalf("answer %+v, %v", a, err)
	}
	h.desk.forget()
	for _, path := range []string{"/waiting", "/waiting/" + deskKey(h.dir, "q1")} {
		if w := h.get(path); !strings.Contains(w.Body.String(), "1 answer did not count") {
			t.Errorf("%s does not say that an answer did not count", path)
		}
	}
}

// TestAbandonedQuestion checks that pages tell a call whose proxy was killed from
// those that wait, and take no answer to it.
func TestAbandonedQuestion(t *testing.T) {
	h := newHall(t, "x")
	h.ask(t, "q1", "killed_thing")
	h.ask(t, "q2", "live_thing", func(q *approval.Question) { q.Asked = q.Asked.Add(time.Second) })
	// A file of the same content, which no proxy has locked.
	name := filepath.Join(h.dir, "q1.json")
	text, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	const ended = "The proxy of this call has ended, so an answer has no effect."
	list := h.get("/waiting").Body.String()
	if strings.Count(list, ended) != 1 || strings.Index(list, "live_thing") > strings.Index(list, "killed_thing") || strings.Count(list, `value="deny"`) != 1 ||
		!strings.Contains(list, `Waiting <span class="badge bad">1</span>`) {
		t.Errorf("the page of waiting calls, of which one is abandoned:\n%s", list)
	}
	if one := h.get("/waiting/" + deskKey(h.dir, "q1")).Body.String(); !strings.Contains(one, ended) {
		t.Error("the page of the question does not say that an answer has no effect")
	}
}

// TestTwoReviewers checks that of concurrent answers one counts, and that the other
// reviewer gets a message.
func TestTwoReviewers(t *testing.T) {
	h := newHall(t, "x")
	h.ask(t, "q1", "kill_thing")
	path, allow := h.form(t, "once")
	_, deny := h.form(t, "deny")
	var wg sync.WaitGroup
	codes := make(chan int, 8)
	for i := range cap(codes) {
		form := allow
		if i%2 == 1 {
			form = deny
		}
		wg.Go(func() { codes <- do(h.Server, post(path, form)).Code })
	}
	wg.Wait()
	close(codes)
	got := map[int]int{}
	for code := range codes {
		got[code]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusSeeOther: 1, http.StatusConflict: 7}, got); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

// TestHostileQuestions checks that hostile texts of questions are plain text.
func TestHostileQuestions(t *testing.T) {
	for name, text := range hostile {
		if len(text) > 1<<16 {
			text = text[:1<<16] // a question has at most a mebibyte
		}
		h := newHall(t, text)
		h.ask(t, "q1", text)
		h.ask(t, "q2", text, func(q *approval.Question) { q.SessionID, q.Calls[0].Args = text, "" })
		for _, path := range []string{"/waiting", "/waiting?hold", "/waiting/" + deskKey(h.dir, "q1"), "/waiting/" + deskKey(h.dir, "q2"), "/waiting?done=" + url.QueryEscape(text), "/waiting/" + url.PathEscape(text)} {
			w := h.get(path)
			if known := !strings.HasSuffix(path, url.PathEscape(text)); w.Code != http.StatusOK && known {
				t.Errorf("%s %.40s: %d\n%.300s", name, path, w.Code, w.Body)
				continue
			}
			doc, err := html.Parse(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			for n := range doc.Descendants() {
				checkNode(t, fmt.Sprintf("%s %.40s", name, path), n)
			}
		}
	}
}

// TestBadQuestions checks that every page reports files that are not questions, and
// that they harm nothing.
func TestBadQuestions(t *testing.T) {
	h := newHall(t, "x")
	h.ask(t, "good", "kill_thing")
	for name, text := range map[string]string{
		"empty.json": "", "list.json": "[]", "half.json": `{"id":"half"`, "other.json": `{"id":"good","asked":"2026-11-22T00:00:00Z","expires":"2036-11-22T00:00:00Z","calls":[{}]}`,
		"twice.json": `{"id":"twice","id":"good"}`, "huge.json": strings.Repeat(" ", 2<<20), "é.json": "{}", "<b>.json": "{}",
	} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(h.dir, "link.json")), os.Mkdir(filepath.Join(h.dir, "dir.json"), 0o700)); err != nil {
		t.Fatal(err)
	}
	w := h.get("/waiting")
	for _, want := range []string{"kill_thing", "could not be read whole", "empty", "more calls may wait"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, w.Body)
		}
	}
	for _, never := range []string{"root:", "<b>"} {
		if strings.Contains(w.Body.String(), never) {
			t.Errorf("the page has %q", never)
		}
	}
	if w := h.get("/calls"); !strings.Contains(w.Body.String(), "not all could be read") {
		t.Error("other pages do not say that not everything could be read")
	}
}

// TestUnreadableDirectory checks that an unreadable directory does not look empty.
func TestUnreadableDirectory(t *testing.T) {
	h := newHall(t, "x")
	if err := os.Chmod(h.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	h.desk.dirs = append(h.desk.dirs, missing)
	for range 3 {
		h.desk.forget()
		w := h.get("/waiting")
		for _, want := range []string{missing, "no such file", "chmod 3770", "Nothing that could be read waits"} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("the page has no %q:\n%s", want, w.Body)
			}
		}
		if !strings.Contains(h.get("/calls").Body.String(), "not all could be read") {
			t.Error("other pages do not say it")
		}
	}
	if n := h.logs.FilterMessage("approval directory not read").Len(); n != 2 {
		t.Errorf("logged %d times, want once for each directory", n)
	}
	if err := errors.Join(os.Chmod(h.dir, 0o700), os.Mkdir(missing, 0o700)); err != nil {
		t.Fatal(err)
	}
	h.desk.forget()
	if w := h.get("/waiting"); !strings.Contains(w.Body.String(), "✓ Nothing waits") {
		t.Errorf("once they can be read:\n%s", w.Body)
	}
	if n := h.logs.FilterMessage("approval directory read again").Len(); n != 2 {
		t.Errorf("logged %d times that they can be read, want once for each directory", n)
	}
}

// TestDesk checks that the directories are read at most once a second, and that a
// read that hangs does not delay other pages.
func TestDesk(t *testing.T) {
	now := moment
	d := newDesk([]string{t.TempDir()}, func() time.Time { return now }, zap.NewNop())
	first := d.state()
	now = now.Add(deskAge - 1)
	if d.state() != first {
		t.Error("read again within a second")
	}
	now = now.Add(1)
	second := d.state()
	if second == first {
		t.Error("not read again after a second")
	}
	now = now.Add(-time.Hour) // a clock that was set back
	third := d.state()
	if third == second {
		t.Error("not read again after the clock was set back")
	}
	d.mu.Lock() // as a read that is slow, then hangs
	now = now.Add(deskHangs - 1)
	if d.state() != third {
		t.Error("another reading than the last one")
	}
	now = now.Add(1)
	if st := d.state(); len(st.Problems) != 1 || !strings.Contains(st.Problems[0].Text, "takes long") || st.At != third.At {
		t.Errorf("while a reading hangs: %+v", st)
	}
	d.last.Store(nil)
	if st := d.state(); len(st.Problems) != 1 || st.Problems[0].Text != "not read yet" {
		t.Errorf("before the first reading: %+v", st)
	}
	d.mu.Unlock()
}

// TestManyQuestions checks that a page shows some of many questions, and how many
// wait.
func TestManyQuestions(t *testing.T) {
	h := newHall(t, "x")
	for i := range maxShown + 3 {
		h.ask(t, fmt.Sprintf("q%d", i), fmt.Sprintf("tool_%d.", i), func(q *approval.Question) {
			q.Asked, q.SessionID = q.Asked.Add(time.Duration(i)*time.Millisecond), audit.NewID(time.Now())
		})
	}
	body := h.get("/waiting").Body.String()
	if n := strings.Count(body, "<article"); n != maxShown || !strings.Contains(body, "3 more calls wait") || !strings.Contains(body, fmt.Sprintf(`<span class="badge bad">%d</span>`, maxShown+3)) {
		t.Errorf("%d questions are shown", n)
	}
	if n := strings.Count(body, "are on the page of the call"); n != maxShown-maxHistories {
		t.Errorf("the last calls of %d sessions were not read, want %d", n, maxShown-maxHistories)
	}
}
