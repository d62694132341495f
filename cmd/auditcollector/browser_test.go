package main

import (
	"auditproxy/deploy/dev"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the screenshots that README.md shows")

// A tab is one tab of a browser, with the errors seen in it.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu     sync.Mutex
	wrongs []string
}

// startBrowser starts Chromium, which ends with the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path := dev.Command(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// newTab opens a tab at the page that b has open.
func newTab(t *testing.T, b context.Context, base string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b)
	t.Cleanup(cancel)
	tb := &tab{t: t, ctx: ctx, base: base}
	// Background tabs have the focus too: which tab is in front must not depend
	// on the browser's speed.
	focus := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})
	if err := chromedp.Do(ctx, focus); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, tb.note); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tb.calm)
	return tb
}

// note records events that a correct page never causes.
func (tb *tab) note(event any) {
	wrong := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		wrong = "it writes to the console"
	case *runtime.EventExceptionThrown:
		wrong = "a script fails: " + e.ExceptionDetails.Text
	case *cdplog.EventEntryAdded: // refusals of the Content-Security-Policy too
		wrong = string(e.Entry.Level) + ": " + e.Entry.Text
	case *page.EventJavascriptDialogOpening:
		wrong = "a dialog opens: " + e.Message
	default:
		return
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.wrongs = append(tb.wrongs, wrong)
}

// calm fails the test if note has recorded an event.
func (tb *tab) calm() {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, wrong := range tb.wrongs {
		tb.t.Errorf("in the browser: %s", wrong)
	}
	tb.wrongs = nil
}

// do fails the test if a step does not succeed within three minutes.
func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 3*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// open opens a path of the page.
func (tb *tab) open(path string) { tb.t.Helper(); tb.do(chromedp.Navigate(tb.base + path)) }

// load does steps that lead to another page, and waits until it is loaded.
func (tb *tab) load(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 3*time.Minute)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 3*time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("%.80s: %v", expression, err)
	}
	return v
}

// texts returns the texts of the elements that a selector finds.
func (tb *tab) texts(selector string) []string {
	tb.t.Helper()
	return eval[[]string](tb, `[...document.querySelectorAll(`+strconv.Quote(selector)+`)].map(e => e.textContent.trim())`)
}

// show emulates a screen or a phone, light or dark.
func (tb *tab) show(width int64, scheme string) {
	tb.t.Helper()
	resize := chromedp.EmulateViewport(width, 900)
	if width < 600 {
		resize = chromedp.EmulateViewport(width, 844, chromedp.EmulateMobile)
	}
	tb.do(resize, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// shoot writes a picture of the tab if -update is given.
func (tb *tab) shoot(name string) {
	tb.t.Helper()
	if !*update {
		return
	}
	shot, err := chromedp.Run(tb.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		shot, err = paletted(shot)
	}
	if err != nil {
		tb.t.Fatal(err)
	}
	if len(shot) > 150_000 {
		tb.t.Errorf("the picture %s has %d bytes, too many for a repository", name, len(shot))
	}
	if err := os.WriteFile(filepath.Join("testdata", "screenshots", name+".png"), shot, 0o644); err != nil {
		tb.t.Fatal(err)
	}
}

// wide returns what overflows the right edge of the tab.
func (tb *tab) wide() []string {
	tb.t.Helper()
	return eval[[]string](tb, `(() => {
		const edge = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= edge) return [];
		return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > edge + 1).map(e => e.tagName + "." + e.className);
	})()`)
}

// broken returns the short words in tables that have a line end in them.
func (tb *tab) broken() []string {
	tb.t.Helper()
	return eval[[]string](tb, `(() => {
		const found = [], range = document.createRange();
		for (const cell of document.querySelectorAll("table th, table td")) {
			const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
			for (let text; text = texts.nextNode();) {
				for (const word of text.data.matchAll(/[\w.…]{2,24}/g)) {
					range.setStart(text, word.index);
					range.setEnd(text, word.index + word[0].length);
					if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) found.push(word[0]);
				}
			}
		}
		return found;
	})()`)
}

// axe returns the accessibility problems of the page.
func (tb *tab) axe(script string) []string {
	tb.t.Helper()
	eval[bool](tb, script+"; true")
	return eval[[]string](tb, `axe.run(document, {resultTypes: ["violations"]}).then(r =>
		r.violations.map(v => v.id + " (" + v.help + "): " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")))`)
}

// A site is the page over the stories, in a browser that has access.
type site struct {
	h       home
	browser context.Context
	base    string
	calls   int
}

// approvals is the directory in which calls wait.
func (h home) approvals() string { return filepath.Join(h.dir, "approvals") }

// TestBrowser opens the page in a real browser: over a collector and its engine,
// the shipped rules, four stories and some hostile records.
func TestBrowser(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	want, calls := 0, 0
	for _, s := range stories {
		w := h.writer(t)
		want += w.tell(s)
		calls += len(s.steps) * s.rounds
		// The collector writes the end of a session whose proxy died without
		// writing one: one record more than the story has.
		if s.unfinished {
			defer w.stop()
		} else {
			w.stop()
		}
	}
	if err := os.Mkdir(h.approvals(), 0o700); err != nil {
		t.Fatal(err)
	}
	p := h.collect(t, "--batch-wait", "20ms", "--review-listen", "127.0.0.1:0", "--review-approvals", h.approvals(), "--alert-allowed-paths", filepath.Dir(pipedTo))
	eventually(t, "the records are there", h.counts(t, distinct, want))
	eventually(t, "the pipe in the batch raised an alert", func() bool {
		return h.number("SELECT count() FROM audit.open_alerts WHERE rule = 'pipe-pane-sensitive'") == 1
	})
	s := site{h: h, browser: startBrowser(t), calls: calls}
	t.Run("link", s.testLink)
	t.Run("pages", s.testPages)
	t.Run("filters", s.testFilters)
	t.Run("decisions", s.testDecisions)
	t.Run("paging", s.testPaging)
	t.Run("export", s.testExport)
	t.Run("keyboard", s.testKeyboard)
	t.Run("acknowledge", s.testAcknowledge)
	t.Run("hostile", s.testHostile)
	t.Run("waiting", s.testWaiting)
	t.Run("sign out", s.testSignOut)
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// testLink checks that a link opens the overview with one key press, and that
// going back from there sends nothing again.
func (s *site) testLink(t *testing.T) {
	link := s.h.link(t)
	s.base = link[:strings.Index(link, "/login")]
	tb := newTab(t, s.browser, s.base)
	tb.show(1280, "light")
	tb.do(chromedp.Navigate(link))
	// The button gets the focus with the first frame, which may be later than
	// the page is loaded.
	eval[bool](tb, `new Promise(yes => { const look = () => document.activeElement.tagName === "BUTTON" ? yes(true) : setTimeout(look, 10); look(); })`)
	tb.load(chromedp.KeyEvent(kb.Enter))
	if got := tb.texts("h1"); !slices.Equal(got, []string{"Overview"}) {
		t.Fatalf("the button leads to %q", got)
	}
	if cookie := eval[string](tb, "document.cookie"); cookie != "" {
		t.Errorf("scripts can read the cookie: %q", cookie)
	}
	tb.do(chromedp.NavigateBack())
	if url := eval[string](tb, "location.pathname"); url != "/login" {
		t.Errorf("back leads to %s", url)
	}
}

// testPages checks every page on a screen and a phone, light and dark.
func (s *site) testPages(t *testing.T) {
	script, err := os.ReadFile(dev.Fetched(t, "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	one := func(sql string) string {
		t.Helper()
		words := s.h.ask(t, sql)
		if len(words) != 1 {
			t.Fatalf("%s = %q", sql, words)
		}
		return words[0]
	}
	batch := one("SELECT record_id FROM audit.events WHERE tool = 'call_mutating_tools_batch'")
	session := one("SELECT session_id FROM audit.events WHERE tool = 'call_mutating_tools_batch'")
	denied := one("SELECT record_id FROM audit.events WHERE policy_decision = 'deny' AND policy_applied")
	alert := one("SELECT alert_id FROM audit.open_alerts WHERE rule = 'pipe-pane-sensitive'")
	tb := newTab(t, s.browser, s.base)
	for _, tt := range []struct {
		name, path string
		want       []string // on the page
	}{
		{"overview", "/", []string{"capture_pane", "ws-ann", "alert", "call denied", "calls that would be asked for"}},
		{"calls", "/calls", []string{"wait_for_text", "PaneNotFound", "bob", "denied", "recursive_delete"}},
		{"decisions", "/decisions", []string{"/tools/kill_pane", "Somebody may be working there.", "would be asked for", "ann", "ws-bob", "recursive_delete", "execute"}},
		{"denied", "/calls/" + denied, []string{"denied by rule", "/tools/kill_pane", "Somebody may be working there.", "category destructive"}},
		{"call", "/calls/" + batch, []string{"split_window", pipedOut, "libtmux-mcp"}},
		{"sessions", "/sessions", []string{"claude-code", "nightly", "inspector"}},
		{"session", "/sessions/" + session, []string{pipedOut, pipedTo, "DB_PASSWORD", "PaneNotFound", "policy came into force", "recursive_delete", "would be denied"}},
		{"destinations", "/destinations", []string{pipedOut, pipedTo}},
		{"environment", "/environment", []string{"API_TOKEN", "DB_PASSWORD"}},
		{"tools", "/tools", []string{"kill_pane", "destructive", "readOnly"}},
		{"alerts", "/alerts", []string{"critical", "pipe-pane-sensitive"}},
		{"alert", "/alerts/" + alert, []string{pipedOut, "operations[1]"}},
		{"link", "/login?code=x", []string{"Open the review page"}},
		{"nowhere", "/nowhere", []string{"There is no such page"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tb.t = t
			defer tb.calm()
			tb.show(1200, "light")
			tb.open(tt.path)
			text := eval[string](tb, "document.body.textContent")
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if tt.name != "nowhere" && tt.name != "link" {
				tb.shoot(tt.name)
			}
			for _, scheme := range []string{"light", "dark"} {
				for _, width := range []int64{1280, 390} {
					tb.show(width, scheme)
					if wide := tb.wide(); len(wide) > 0 {
						t.Errorf("at %d pixels it is wider than the window: %q", width, wide)
					}
					if broken := tb.broken(); len(broken) > 0 && width == 1280 {
						t.Errorf("words with a line end in them: %q", broken)
					}
					if width == 390 && scheme == "dark" && tt.name == "session" {
						tb.shoot("phone")
					}
				}
				tb.show(1280, scheme)
				for _, problem := range tb.axe(string(script)) {
					t.Errorf("%s: %s", scheme, problem)
				}
			}
			if unnamed := eval[[]string](tb, `[...document.querySelectorAll("table")].filter(e => !e.ariaLabel && !document.getElementById(e.getAttribute("aria-labelledby"))).map(e => e.innerText.slice(0, 80))`); len(unnamed) > 0 {
				t.Errorf("tables without a name: %q", unnamed)
			}
			ground := eval[string](tb, `getComputedStyle(document.body).backgroundColor`)
			if got := brightness(t, ground); got > 60 {
				t.Errorf("in the dark the ground is %s", ground)
			}
			if tt.name == "nowhere" { // reported by the browser itself
				tb.forgive("404")
			}
		})
	}
	tb.t = t
	s.forced(tb)
	s.printed(tb)
}

// emulate emulates a medium with a feature of the user's.
func (tb *tab) emulate(medium, feature, value string) {
	tb.t.Helper()
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: medium, Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
		})
		return err
	}))
}

// forced checks that what only a colour shows is seen where the user's own colours
// are the only ones: which entry is chosen, and the key of the chart.
func (s *site) forced(tb *tab) {
	tb.t.Helper()
	tb.emulate("", "forced-colors", "active")
	for path, lists := range map[string][]string{"/": {".top nav", ".spans"}, "/sessions": {".top nav", ".pills"}, "/alerts": {".pills"}} {
		tb.open(path)
		for _, list := range lists {
			if looks := eval[[]string](tb, `["[aria-current]", ":not([aria-current])"].map(which => (s => s.borderBottomColor + s.backgroundColor)(getComputedStyle(document.querySelector(`+strconv.Quote(list+" a")+` + which))))`); looks[0] == looks[1] {
				tb.t.Errorf("%s: the chosen entry of %s looks like the others: %q", path, list, looks)
			}
		}
	}
	tb.open("/")
	if keys := eval[[]string](tb, `[...document.querySelectorAll(".key")].map(e => (s => s.backgroundColor + s.backgroundImage)(getComputedStyle(e)))`); len(keys) != 3 || keys[0] == keys[1] || keys[1] == keys[2] {
		tb.t.Errorf("the chart's keys are %q", keys)
	}
}

// printed checks that a print says which time and which conditions it is about.
func (s *site) printed(tb *tab) {
	tb.t.Helper()
	tb.emulate("print", "prefers-color-scheme", "light")
	for path, want := range map[string][]string{
		"/calls?user=ann": {"#span"}, "/sessions?host=ws-ann&problem=errors": {"#span", "#host", ".pills [aria-current]"}, "/alerts?rule=x": {"#rule", ".pills [aria-current]"},
		"/": {".spans [aria-current]"}, "/decisions?from=2026-01-01": {"#from"},
	} {
		tb.open(path)
		for _, selector := range want {
			if seen := eval[bool](tb, `document.querySelector(`+strconv.Quote(selector)+`).checkVisibility()`); !seen {
				tb.t.Errorf("a print of %s is without %s", path, selector)
			}
		}
	}
	tb.emulate("", "prefers-color-scheme", "light")
}

// brightness is the mean of the parts of a CSS colour.
func brightness(t *testing.T, colour string) int {
	t.Helper()
	sum := 0
	parts := regexp.MustCompile(`\d+`).FindAllString(colour, 3)
	for _, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if len(parts) != 3 {
		t.Fatalf("%q is no colour", colour)
	}
	return sum / 3
}

// testFilters checks that a form selects calls, and that its URL holds the
// selection.
func (s *site) testFilters(t *testing.T) {
	tb := newTab(t, s.browser, s.base)
	tb.open("/calls")
	tb.load(chromedp.SetValue(chromedp.CSS("#outcome"), "error"), chromedp.SendKeys(chromedp.CSS("#op"), "capture_pane"+kb.Enter))
	url := eval[string](tb, "location.search")
	for range 2 { // and once more, from the URL alone
		if rows := tb.texts("table.calls tbody tr"); len(rows) != 1 || !strings.Contains(rows[0], "PaneNotFound") {
			t.Errorf("the failed capture_pane: %q", rows)
		}
		if outcome := eval[string](tb, `document.querySelector("#outcome").value`); outcome != "error" {
			t.Errorf("the form forgot that the outcome is %q", outcome)
		}
		tb.open("/calls" + url)
	}
	// A call inside a batch is found by its own name and by words in arguments.
	for _, path := range []string{"/calls?op=pipe_pane", "/calls?text=authorized_keys"} {
		tb.open(path)
		if rows := strings.Join(tb.texts("table.calls tbody tr"), "\n"); !strings.Contains(rows, "call_mutating_tools_batch") {
			t.Errorf("%s finds %q", path, rows)
		}
	}
	// SQL stays a word that no record has.
	r := newReviewer(t, "", &http.Transport{})
	r.open(s.h.link(t))
	for _, text := range []string{"' OR 1=1 --", `{x:String}`, "\\') UNION ALL SELECT", "a\x00b"} {
		for _, name := range []string{"text", "op", "host", "user", "session", "server", "tier", "error", "method"} {
			if status, page := r.get("/calls?" + name + "=" + queryEscape(text)); status >= 500 || strings.Contains(page, `class="what"`) {
				t.Errorf("%s=%q: %d\n%s", name, text, status, page)
			}
		}
	}
}

// testDecisions goes from the overview to a denied call, and from there to what
// else its rule decided.
func (s *site) testDecisions(t *testing.T) {
	tb := newTab(t, s.browser, s.base)
	tb.open("/")
	tb.load(chromedp.Click(chromedp.CSS(`.findings a[href*="decision=denied"]`)))
	if totals := strings.Join(tb.texts(".totals dd"), " "); totals != "1 0 0 0" {
		t.Errorf("denied, would be denied, asked for, would be asked for: %s", totals)
	}
	if got := tb.texts("#rules + table tbody th"); len(got) != 1 || !strings.Contains(got[0], "/tools/kill_pane") {
		t.Errorf("the rules are %q", got)
	}
	tb.load(chromedp.SetValue(chromedp.CSS("#decision"), ""), chromedp.SendKeys(chromedp.CSS("#user"), "ann"+kb.Enter))
	if totals := strings.Join(tb.texts(".totals dd"), " "); totals != "1 1 0 8" {
		t.Errorf("of ann: %s", totals)
	}
	if who := tb.texts("#users + table tbody th"); !slices.Equal(who, []string{"ann@ws-ann"}) {
		t.Errorf("the users are %q", who)
	}
	tb.load(chromedp.Click(chromedp.CSS(`#tools + table a[href^="/decisions?"][href*="kill_pane"]`)))
	tb.load(chromedp.Click(chromedp.CSS(`#rules + table td a`)))
	if rows := tb.texts("table.calls tbody tr"); len(rows) != 1 || !strings.Contains(rows[0], "kill_pane") {
		t.Errorf("the calls of that rule: %q", rows)
	}
	for path, want := range map[string]int{
		"/calls?detector=recursive_delete": 1, "/calls?detector=path_sensitive": 1, "/calls?risk=destructive": 2, "/calls?decision=any&user=bob": 3,
		"/calls?decision=would_deny": 1, "/calls?rule=%2Ftools%2Fkill_pane": 1, "/calls?kind=policy": 4,
	} {
		tb.open(path)
		if rows := tb.texts("table.calls tbody tr"); len(rows) != want {
			t.Errorf("%s has %d rows, want %d: %q", path, len(rows), want, rows)
		}
	}
}

func queryEscape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// testPaging checks that every call is on one page, and that going back visits
// the same pages.
func (s *site) testPaging(t *testing.T) {
	tb := newTab(t, s.browser, s.base)
	tb.open("/calls")
	ids := func() []string {
		return eval[[]string](tb, `[...document.querySelectorAll("td.time a")].map(a => a.getAttribute("href"))`)
	}
	pages := [][]string{ids()}
	for len(tb.texts(`a[rel="next"]`)) == 1 && len(pages) < 20 {
		tb.load(chromedp.Click(chromedp.CSS(`a[rel="next"]`)))
		pages = append(pages, ids())
	}
	all := slices.Concat(pages...)
	if got := len(slices.Compact(slices.Sorted(slices.Values(all)))); got != s.calls || len(all) != s.calls {
		t.Errorf("%d pages show %d calls, %d different ones, want %d", len(pages), len(all), got, s.calls)
	}
	for i := len(pages) - 2; i >= 0; i-- {
		tb.load(chromedp.Click(chromedp.CSS(`a[rel="prev"]`)))
		if diff := cmp.Diff(pages[i], ids()); diff != "" {
			t.Errorf("page %d on the way back (-there +back):\n%s", i+1, diff)
		}
	}
}

// testExport downloads the filtered records.
func (s *site) testExport(t *testing.T) {
	tb := newTab(t, s.browser, s.base)
	dir, yes := t.TempDir(), true
	if _, err := chromedp.CallBrowser(tb.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, EventsEnabled: &yes,
	}); err != nil {
		t.Fatal(err)
	}
	tb.open("/calls?user=ann")
	for _, name := range []string{"calls.csv", "calls.ndjson"} {
		ctx, cancel := context.WithTimeout(tb.ctx, 3*time.Minute)
		progress := chromedp.BrowserEvents(ctx, browser.DownloadProgress)
		tb.do(chromedp.Click(chromedp.CSS(`a[href^="/` + name + `"]`)))
		for p, err := range progress {
			if err != nil || p.State == browser.DownloadProgressStateCanceled {
				t.Fatalf("downloading %s: %v, %v", name, p.State, err)
			}
			if p.State == browser.DownloadProgressStateCompleted {
				break
			}
		}
		cancel()
	}
	text, err := os.ReadFile(filepath.Join(dir, "calls.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	want := len(stories[1].steps)*stories[1].rounds + len(deploy)
	if err != nil || len(rows) != want+1 || rows[0][0] != "ts" {
		t.Errorf("calls.csv has %d rows, %v, want %d", len(rows), err, want+1)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "calls.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(raw), "\n"); got != want {
		t.Errorf("calls.ndjson has %d lines, want %d", got, want)
	}
}

// testKeyboard checks that the first key skips the menu, and that everything a
// key reaches shows its focus.
func (s *site) testKeyboard(t *testing.T) {
	tb := newTab(t, s.browser, s.base)
	for _, path := range []string{"/", "/calls", "/decisions", "/alerts"} {
		tb.open(path)
		tb.do(chromedp.KeyEvent(kb.Tab))
		if first := eval[string](tb, `document.activeElement.getAttribute("href")`); first != "#main" {
			t.Errorf("%s: the first stop is %q", path, first)
		}
		stops := map[string]bool{}
		for range 12 {
			tb.do(chromedp.KeyEvent(kb.Tab))
			stop := eval[string](tb, `document.activeElement.outerHTML.slice(0, 120)`)
			stops[stop] = true
			if seen := eval[bool](tb, `(s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0)(getComputedStyle(document.activeElement))`); !seen {
				t.Errorf("%s: nobody sees that %s has the focus", path, stop)
			}
		}
		if len(stops) < 10 {
			t.Errorf("%s: 12 keys stop at %d places", path, len(stops))
		}
	}
}

// testAcknowledge acknowledges an alert with a comment and opens it again.
func (s *site) testAcknowledge(t *testing.T) {
	open := func() int64 { return s.h.number("SELECT count() FROM audit.open_alerts") }
	before := open()
	tb := newTab(t, s.browser, s.base)
	tb.open("/alerts?rule=pipe-pane-sensitive")
	tb.load(chromedp.Click(chromedp.CSS("tbody a")))
	tb.load(chromedp.SendKeys(chromedp.CSS("#comment"), "a <b>test</b>, removed by hand"), chromedp.Click(chromedp.CSS(`form.act button`)))
	if events := strings.Join(tb.texts(".events li"), "\n"); !strings.Contains(events, "by ann") || !strings.Contains(events, "a <b>test</b>, removed by hand") {
		t.Errorf("the page says: %q", events)
	}
	if now := open(); now != before-1 {
		t.Errorf("%d alerts are open, %d before", now, before)
	}
	tb.do(chromedp.Reload()) // sends nothing again
	tb.load(chromedp.SendKeys(chromedp.CSS("#comment"), "it is back"), chromedp.Click(chromedp.CSS(`form.act button`)))
	if events := tb.texts(".events li"); len(events) != 2 || !strings.Contains(events[1], "reopened") {
		t.Errorf("the page says: %q", events)
	}
	if now := open(); now != before {
		t.Errorf("%d alerts are open, %d before", now, before)
	}
}

// testSignOut checks that the browser loses its access.
func (s *site) testSignOut(t *testing.T) {
	tb := newTab(t, s.browser, s.base)
	tb.open("/calls")
	tb.load(chromedp.Click(chromedp.CSS(`form[action="/logout"] button`)))
	tb.open("/calls")
	if got := tb.texts("h1"); !slices.Equal(got, []string{"No access"}) {
		t.Errorf("after signing out: %q", got)
	}
	tb.forgive("403")
}
