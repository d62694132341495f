package main

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// testWaiting answers the questions of a proxy in the browser.
func (s *site) testWaiting(t *testing.T) {
	proxy, err := approval.Open(approval.Config{Dir: s.h.approvals(), Own: true, SameUser: true})
	if err != nil {
		t.Fatal(err)
	}
	session := s.h.ask(t, "SELECT session_id FROM audit.events WHERE tool = 'call_mutating_tools_batch'")[0]
	ask := func(id, tool string, change ...func(*approval.Question)) {
		t.Helper()
		q := approval.Question{
			ID: id, Asked: time.Now(), Expires: time.Now().Add(9 * time.Minute), SessionID: session, Host: "ws-ann", User: "ann", Server: "libtmux-mcp", Client: "claude-code", PID: 7,
			Calls: []approval.Call{{CallNo: 1, Method: "tools/call", Tool: tool, Rule: "/tools/" + tool, Reason: "Somebody may be working there.", Args: `{"keys":"rm -rf build"}`,
				Risk: audit.Risk{Category: "destructive", Level: "critical"}.JSON(), Detections: audit.DetectionsJSON([]audit.Detection{{Detector: "recursive_delete", At: "keys"}})}},
		}
		for _, c := range change {
			c(&q)
		}
		if err := proxy.Ask(&q); err != nil {
			t.Fatal(err)
		}
	}
	over := func(id string) {
		t.Helper()
		if err := proxy.Withdraw(id); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(id string) approval.Answer {
		t.Helper()
		a, err := proxy.Answer(id)
		if err != nil || a == nil {
			t.Fatalf("the answer to %s is %v, %v", id, a, err)
		}
		return *a
	}
	tb := newTab(t, s.browser, s.base)
	tb.show(1280, "light")
	tb.open("/waiting")
	if text := tb.texts("main .empty"); len(text) != 1 || !strings.Contains(text[0], "Nothing waits") {
		t.Errorf("before a call waits: %q", text)
	}
	ask("q1", "kill_session")
	tb.soon("a call that waits appears by itself", `document.querySelector("article h2")?.textContent.includes("kill_session")`)
	tb.open("/calls")
	if badge := tb.texts(`.top a[href="/waiting"] .badge`); !slices.Equal(badge, []string{"1"}) {
		t.Errorf("the head of another page says %q", badge)
	}
	tb.open("/waiting?hold")
	s.lookAt(tb, "/waiting?hold", "kill_session", "destructive, critical", "recursive_delete", "rule /tools/kill_session", "Somebody may be working there.", "rm -rf build", "ann on ws-ann")
	last := func(path string, want int) {
		t.Helper()
		lines := tb.texts(".ask .timeline li")
		// The page does not wait for calls for long, and says so; a busy machine needs longer.
		for range 20 {
			if !strings.Contains(strings.Join(tb.texts(".ask"), ""), "cannot be read now") {
				break
			}
			tb.open(path)
			lines = tb.texts(".ask .timeline li")
		}
		if len(lines) != want {
			t.Errorf("%s has the last calls %q, want %d", path, lines, want)
		}
	}
	last("/waiting?hold", 3)
	path := eval[string](tb, `document.querySelector("a.button").getAttribute("href")`)
	s.lookAt(tb, path, "kill_session", "destructive, critical", "recursive_delete", "Somebody may be working there.", "rm -rf build")
	last(path, 10)
	if eval[bool](tb, `!!document.querySelector("meta[http-equiv]")`) {
		t.Error("the page of a question is refreshed")
	}

	t.Run("approve", func(t *testing.T) {
		tb.t = t
		tb.open("/waiting?hold")
		tb.load(chromedp.Click(chromedp.CSS("a.button")))
		eval[bool](tb, `(document.querySelector("button[value=session]").focus(), true)`)
		tb.load(chromedp.KeyEvent(kb.Enter))
		if said := tb.texts(`[role="status"]`); len(said) != 1 || !strings.Contains(said[0], "Allowed for the session") {
			t.Errorf("the page says %q", said)
		}
		if a := answer("q1"); !a.Approved || a.Scope != approval.Session || a.By != "ann" || a.User == "" {
			t.Errorf("the answer is %+v", a)
		}
		over("q1")
		tb.soon("the page forgets a call that no longer waits", `document.querySelector("main .empty")?.textContent.includes("Nothing waits")`)
	})
	t.Run("deny", func(t *testing.T) {
		tb.t = t
		ask("q2", "kill_server")
		tb.soon("the next call is there", `document.querySelector("article h2")?.textContent.includes("kill_server")`)
		tb.open("/waiting?hold")
		tb.load(chromedp.Click(chromedp.CSS("button[value=deny]")))
		if said := tb.texts(`[role="status"]`); len(said) != 1 || !strings.Contains(said[0], "Denied") {
			t.Errorf("the page says %q", said)
		}
		if a := answer("q2"); a.Approved {
			t.Errorf("the answer is %+v", a)
		}
		over("q2")
	})
	t.Run("two reviewers", func(t *testing.T) {
		tb.t = t
		ask("q3", "kill_pane")
		tb.soon("the next call is there", `document.querySelector("article h2")?.textContent.includes("kill_pane")`)
		other := newTab(t, s.browser, s.base)
		for _, tab := range []*tab{tb, other} {
			tab.open("/waiting?hold")
			tab.load(chromedp.Click(chromedp.CSS("a.button")))
		}
		tb.load(chromedp.Click(chromedp.CSS("button[value=once]")))
		other.load(chromedp.Click(chromedp.CSS("button[value=deny]")))
		if said := other.texts("main .notice"); len(said) != 1 || !strings.Contains(said[0], "already answered by") {
			t.Errorf("the second reviewer reads %q", said)
		}
		other.forgive("409")
		if a := answer("q3"); !a.Approved || a.Scope != approval.Once {
			t.Errorf("the answer is %+v", a)
		}
		over("q3")
	})
	t.Run("too late", func(t *testing.T) {
		tb.t = t
		ask("q4", "kill_window")
		tb.soon("the next call is there", `document.querySelector("article h2")?.textContent.includes("kill_window")`)
		tb.open("/waiting?hold")
		tb.load(chromedp.Click(chromedp.CSS("a.button")))
		over("q4")
		tb.load(chromedp.Click(chromedp.CSS("button[value=once]")))
		if said := tb.texts("main .notice"); len(said) != 1 || !strings.Contains(said[0], "no longer waits") {
			t.Errorf("the page says %q", said)
		}
		tb.forgive("409")
		if list, err := os.ReadDir(s.h.approvals()); err != nil || len(list) > 0 {
			t.Errorf("it left %v, %v", list, err)
		}
	})
	t.Run("hostile", func(t *testing.T) {
		tb.t = t
		for i, text := range hostile {
			quoted := string(jsontext.AppendQuote(nil, text))
			ask("h"+strconv.Itoa(i), text, func(q *approval.Question) {
				q.Host, q.User, q.Server, q.Client = text, text, text, text
				if i > 0 {
					q.SessionID = text
				}
				q.Calls[0] = approval.Call{Method: "tools/call", Tool: text + strings.Repeat("A", 5000), Target: text, Rule: text, Reason: text,
					Args: audit.JSON(`{"operations":[{"tool":` + quoted + `,"arguments":{` + quoted + `:` + quoted + `}}]}`), Risk: audit.Risk{Category: text, Level: text}.JSON(),
					Detections: audit.DetectionsJSON([]audit.Detection{{Detector: text, At: text}})}
			})
		}
		tb.open("/waiting")
		tb.soon("the calls are there", `document.querySelectorAll("article").length === `+strconv.Itoa(len(hostile)))
		tb.open("/waiting?hold")
		paths := append(eval[[]string](tb, `[...document.querySelectorAll("a.button")].map(a => a.getAttribute("href"))`), "/waiting?hold")
		if strange := slices.ContainsFunc(paths[:len(hostile)], func(p string) bool { return !regexp.MustCompile(`^/waiting/[0-9a-f]{24}$`).MatchString(p) }); strange {
			t.Errorf("links are %q", paths)
		}
		for _, path := range paths {
			tb.harmless(path)
		}
		for i := range hostile {
			over("h" + strconv.Itoa(i))
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		tb.t = t
		if err := os.Chmod(s.h.approvals(), 0o777); err != nil {
			t.Fatal(err)
		}
		tb.open("/waiting?hold")
		tb.soon("the page says that the directory cannot be read", `document.querySelector(".notice.bad")?.textContent.includes("chmod 3770") || (location.reload(), false)`)
		s.lookAt(tb, "/waiting?hold", "more calls may wait", s.h.approvals())
		tb.open("/calls")
		if head := tb.texts(`.top a[href="/waiting"]`); len(head) != 1 || !strings.Contains(head[0], "not all could be read") {
			t.Errorf("the head of another page says %q", head)
		}
		if err := os.Chmod(s.h.approvals(), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	tb.t = t
	s.forged(t, ask, over)
}

// forged sends answers as another site would.
func (s *site) forged(t *testing.T, ask func(string, string, ...func(*approval.Question)), over func(string)) {
	ask("f1", "kill_session")
	defer over("f1")
	r := newReviewer(t, "", &http.Transport{})
	r.open(s.h.link(t))
	var path, form string
	eventually(t, "the call is there", func() bool {
		_, page := r.get("/waiting?hold")
		found := regexp.MustCompile(`action="(/waiting/[0-9a-f]+)"><input type="hidden" name="token" value="([0-9a-f]+)"><input type="hidden" name="question" value="([0-9a-f]+)">`).FindStringSubmatch(page)
		if found != nil {
			path, form = found[1], "token="+found[2]+"&question="+found[3]+"&answer=deny"
		}
		return found != nil
	})
	for name, change := range map[string]func(*http.Request){
		"another site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"an origin":    func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"a host":       func(r *http.Request) { r.Host = "evil.example" },
		"a type":       func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"no cookie":    func(r *http.Request) { r.Header.Set("Cookie", "") },
	} {
		sender := r
		if name == "no cookie" {
			sender = newReviewer(t, r.base, &http.Transport{})
		}
		if status, page := sender.send("POST", path, form, change); status != http.StatusForbidden {
			t.Errorf("from %s: %d\n%s", name, status, page)
		}
	}
	if _, err := os.Stat(s.h.approvals() + "/f1.answer"); err == nil {
		t.Error("there is an answer")
	}
	if status, page := r.send("POST", path, form); status != http.StatusOK || !strings.Contains(page, "Denied") {
		t.Errorf("its own form: %d\n%s", status, page)
	}
}

// soon waits until an expression is true, also while the page loads again by
// itself.
func (tb *tab) soon(what, expression string) {
	tb.t.Helper()
	eventually(tb.t, what, func() bool {
		ctx, cancel := context.WithTimeout(tb.ctx, time.Minute)
		defer cancel()
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!!(`+expression+`)`, chromedp.EvalAwaitPromise))
		return err == nil && yes
	})
}

// forgive forgets that an answer of the page had a status that the browser
// reports as an error.
func (tb *tab) forgive(status string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.wrongs = slices.DeleteFunc(tb.wrongs, func(s string) bool { return strings.Contains(s, status) })
}

// lookAt checks a page on a screen and a phone, in light and dark mode.
func (s *site) lookAt(tb *tab, path string, want ...string) {
	tb.t.Helper()
	script, err := os.ReadFile(dev.Fetched(tb.t, "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		tb.t.Fatal(err)
	}
	tb.open(path)
	text := strings.Join(strings.Fields(eval[string](tb, "document.body.textContent")), " ")
	for _, want := range want {
		if !strings.Contains(text, want) {
			tb.t.Errorf("%s does not say %q", path, want)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			tb.show(width, scheme)
			if wide := tb.wide(); len(wide) > 0 {
				tb.t.Errorf("%s at %d pixels is wider than the window: %q", path, width, wide)
			}
		}
		for _, problem := range tb.axe(string(script)) {
			tb.t.Errorf("%s, %s: %s", path, scheme, problem)
		}
	}
	tb.show(1280, "light")
}
