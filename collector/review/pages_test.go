package review

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"auditproxy/collector/alert"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/net/html"
)

// A fakeStore has one record, one session and one of everything else, made of
// untrusted texts.
type fakeStore struct {
	noActivity error           // of Overview
	noSummary  error           // of Summary
	long       uint64          // that the session has; 0: two
	failed     []store.Failure // of Attention
	untimed    []store.Failure // of Overview
	text       string
	mu         sync.Mutex
	records    int             // that Calls has; guarded by mu
	window     store.Window    // of the last list; guarded by mu
	befores    []*store.Cursor // of the lists of Calls; guarded by mu
	after      any             // the place from which the last list of effects or alerts goes on
	err        error
	events     []store.AlertEvent

	verification *store.Verification // nil: tampered
	unverified   bool

	definitions []store.Definition // nil: two
}

var moment = time.Date(2026, 11, 21, 9, 14, 3, 123456000, time.UTC)

func (f *fakeStore) record() audit.Record {
	quoted, _ := json.Marshal(f.text)
	return audit.Record{
		Kind: audit.KindCall, RecordID: "019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e", SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab", Seq: 3, CallNo: 2, TS: moment,
		Method: "tools/call", Tool: f.text, Target: f.text, Outcome: audit.OutcomeError, ErrorType: "PaneNotFound", Duration: time.Second,
		Candidates: []audit.Candidate{{Method: f.text, Tool: f.text}}, ClientID: f.text, RequestID: f.text, RequestIDType: "string",
		Client: audit.Peer{Name: f.text, Version: f.text}, Server: audit.Peer{Name: f.text, Version: f.text}, ServerCommand: audit.Command{Command: f.text},
		Tier: f.text, Annotations: audit.JSON(`{"title":` + string(quoted) + `}`), ToolHash: strings.Repeat("0", 64),
		Args: audit.JSON(`{` + string(quoted) + `:` + string(quoted) + `,"keys":{"len":4,"hmac_sha256_prefix":"89abcdef01234567"},` +
			`"operations":[{"tool":` + string(quoted) + `,"arguments":{"output_path":` + string(quoted) + `}}]}`),
		Host: f.text, User: f.text, Labels: audit.JSON(`{"a":` + string(quoted) + `}`), Tenant: f.text, Anomalies: []string{f.text},
		Risk:       audit.Risk{Category: f.text, Level: "high", Source: f.text, Conflict: true}.JSON(),
		Detections: audit.DetectionsJSON([]audit.Detection{{Detector: f.text, At: f.text}}),
		Policy:     audit.Policy{Decision: audit.DecisionDeny, Rule: f.text, Reason: f.text, Counter: f.text, Count: 2, Max: 1, Window: f.text}.JSON(),
		Approval:   audit.Approval{Outcome: f.text, By: f.text}.JSON(),
	}
}

func (f *fakeStore) line() store.Line {
	r := f.record()
	ms := 1000.0
	return store.Line{
		TS: moment, RecordID: uuid.MustParse(r.RecordID), Hash: strings.Repeat("0", 32), Kind: "call", SessionID: r.SessionID, Seq: 3, CallNo: 2, Method: r.Method, Tool: r.Tool,
		Target: f.text, Outcome: "error", ErrorType: r.ErrorType, DurationMS: &ms, Tier: f.text, Host: f.text, User: f.text, ClientID: f.text, ClientName: f.text,
		ServerName: f.text, Args: string(r.Args), Ops: []string{f.text, f.text, f.text}, Anomalies: r.Anomalies, Raw: f.raw(),
		Category: f.text, Detections: []string{f.text}, Decision: "deny", Rule: f.text, Approval: f.text, ApprovalBy: f.text,
		Event: f.text, Mode: f.text, Source: f.text, Detail: f.text, PolicyHash: f.text,
	}
}

func (f *fakeStore) raw() string {
	r := f.record()
	return strings.TrimSuffix(string(audit.AppendRecord(nil, &r)), "\n")
}

func (f *fakeStore) session() store.Session {
	return store.Session{
		SessionID: f.record().SessionID, FirstTS: moment, LastTS: moment, LastIngested: moment, Host: f.text, User: f.text, ClientID: f.text, ClientName: f.text,
		ServerName: f.text, ServerCommand: f.text, Records: max(f.long, 2), Calls: 1, Missing: 2, Open: 1, Gaps: 1, Anomalies: 1,
	}
}

func (f *fakeStore) Overview(context.Context, store.Window) (store.Overview, error) {
	c := store.Count{Start: moment, OK: 5, Error: 1, Unknown: 1}
	return store.Overview{
		Window: store.Window{From: moment, To: moment.Add(day)}, Step: time.Hour, Series: []store.Count{c}, Total: c,
		Tools:   []store.ToolUse{{Operation: f.text, Operations: 8, Nested: 1, NotOK: 2, Latency: []float64{1, 2, 3}}},
		Servers: []store.PartyUse{{Name: f.text, Version: f.text, Count: c}}, Hosts: []store.PartyUse{{Name: f.text, Count: c}},
		Failed: f.untimed,
	}, errors.Join(f.noActivity, f.err)
}

func (f *fakeStore) Attention(context.Context, store.Window) (store.Attention, error) {
	return store.Attention{
		Failed: f.failed, Alerts: &store.Alerts{Critical: 2}, Sessions: store.SessionsState{Sessions: 1, Missing: 3, Holed: 1, Open: 2},
		Offsets: &store.Offsets{Missing: 5}, Letters: &store.Letters{Waiting: 6}, Decided: store.DecisionCount{Denied: 7}, Rewrites: store.Rewrites{Records: 8},
	}, f.err
}

func (f *fakeStore) Calls(_ context.Context, filter store.Filter, p store.Page) (store.Lines, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.window, f.befores = filter.Window, append(f.befores, p.Before)
	n := min(f.records, p.Limit)
	f.records -= n
	lines := make([]store.Line, n)
	for i := range lines {
		if lines[i] = f.line(); i == 1 {
			lines[i].Kind = "policy"
		}
	}
	return store.Lines{Lines: lines, Older: f.records > 0, Newer: p.Before != nil}, f.err
}

func (f *fakeStore) Record(context.Context, uuid.UUID) ([]store.Stored, error) {
	r := f.record()
	st := store.Stored{Raw: f.raw(), Topic: f.text, TS: moment, SessionID: r.SessionID, Seq: 3, CallNo: 2}
	odd := st
	odd.Raw = f.text
	return []store.Stored{st, odd}, f.err
}

func (f *fakeStore) Neighbours(context.Context, store.Session, store.Stored) ([]store.Line, error) {
	return []store.Line{f.line()}, f.err
}

func (f *fakeStore) Verifications(context.Context, []string) (map[string]store.Verification, error) {
	quoted, _ := json.Marshal(f.text)
	switch {
	case f.unverified:
		return nil, f.err
	case f.verification != nil:
		return map[string]store.Verification{f.record().SessionID: *f.verification}, f.err
	}
	return map[string]store.Verification{f.record().SessionID: {State: "tampered", At: moment, Records: 2, Verified: 1, Tampered: moment, Findings: `[{"what":"edited","detail":` + string(quoted) + `}]`}}, f.err
}

func (f *fakeStore) Sessions(_ context.Context, filter store.SessionFilter, limit int) ([]store.Session, error) {
	f.window = filter.Window
	return slices.Repeat([]store.Session{f.session()}, max(1, min(f.records, limit))), f.err
}

func (f *fakeStore) Session(context.Context, string) (store.Session, error) {
	return f.session(), f.err
}

func (f *fakeStore) Timeline(context.Context, store.Session, uint64, int) ([]store.Line, error) {
	return []store.Line{f.line()}, f.err
}

func (f *fakeStore) Summary(_ context.Context, _ store.Session, seq uint64, n int) (store.Summary, error) {
	if f.noSummary != nil {
		return store.Summary{}, f.noSummary
	}
	list := []store.NameCount{{Name: f.text, N: 2}, {N: 3, Refused: 1}, {Name: f.text, N: 4, Refused: 4}, {Name: f.text, N: 1, Refused: 1}}
	return store.Summary{Last: seq + uint64(n) - 1, More: seq+uint64(n) < f.long, Operations: list, Panes: list, Pipes: list, Variables: list, Errors: list}, f.err
}

func (f *fakeStore) Decisions(context.Context, store.DecisionFilter) (store.Decisions, error) {
	c := store.DecisionCount{Denied: 1, WouldDeny: 2, Asked: 3, WouldAsk: 4}
	use := []store.DecisionUse{{Name: f.text, Host: f.text, Reasons: []string{f.text, f.text}, DecisionCount: c, Last: moment}, {DecisionCount: c}}
	risk := []store.RiskUse{{Name: f.text, Calls: 2, Sessions: 1}}
	return store.Decisions{Window: store.Window{From: moment, To: moment}, Total: c, First: moment, Last: moment, Rules: use, Tools: use, Users: use, Categories: risk, Detectors: risk}, f.err
}

func (f *fakeStore) SessionDecisions(context.Context, store.Session) (store.DecisionCount, error) {
	return store.DecisionCount{Denied: 1, WouldAsk: 2}, f.err
}

func (f *fakeStore) Effects(_ context.Context, filter store.EffectFilter, _ int) ([]store.Effect, error) {
	f.after = filter.After
	e := store.Effect{Name: f.text, Scope: f.text, Tools: []string{f.text}, Who: []string{f.text}, Clients: []string{f.text}, LastTS: moment, Hash: 7}
	return slices.Repeat([]store.Effect{e}, max(1, f.records)), f.err
}

func (f *fakeStore) Definitions(context.Context) ([]store.Definition, bool, error) {
	if f.definitions != nil {
		return f.definitions, false, f.err
	}
	return []store.Definition{{Server: f.text, Version: "1", Tool: f.text, Hash: "aa", Tier: f.text, Annotations: `{"readOnlyHint":true}`, Called: true}, {Server: f.text, Version: "1", Tool: f.text, Hash: "bb"}}, f.records > 1, f.err
}

func (f *fakeStore) alert() store.Alert {
	a := alert.Alert{
		ID: "a1", Rule: f.text, Severity: alert.Severity(f.text), Title: f.text, Reason: f.text, Host: f.text, User: f.text, SessionID: f.text,
		Operation: f.text, Path: f.text, TS: moment, Details: f.text,
	}
	return store.Alert{Alert: a, State: "open"}
}

func (f *fakeStore) Alerts(_ context.Context, filter store.AlertFilter, limit int) ([]store.Alert, error) {
	f.after = filter.Before
	return slices.Repeat([]store.Alert{f.alert()}, min(limit, max(1, f.records))), f.err
}

func (f *fakeStore) Alert(context.Context, string) (store.Alert, []store.AlertEvent, error) {
	return f.alert(), []store.AlertEvent{{AlertID: "a1", At: moment, Action: f.text, Who: f.text, Comment: f.text}}, f.err
}

func (f *fakeStore) AddAlertEvent(_ context.Context, _ alert.Alert, e store.AlertEvent) error {
	f.events = append(f.events, e)
	return f.err
}

func newTestServer(t *testing.T, f *fakeStore) *Server {
	t.Helper()
	s, err := newServer(Config{Tenant: f.text, Now: func() time.Time { return moment.Add(time.Hour) }}, sources{f, f, f, f, f, f, f, f, f})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func do(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const recordPath = "/calls/019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e"

var pagePaths = []string{
	"/", "/calls", recordPath, "/sessions", "/sessions/019e8b1c-0000-7aaa-8bbb-0123456789ab", "/decisions", "/destinations", "/environment", "/tools", "/alerts", "/alerts/a1", "/nosuch",
}

var hostile = map[string]string{
	"markup":     `<img src=x onerror=alert(1)>`,
	"end":        `</script></title></textarea>--><svg onload=alert(1)>`,
	"attribute":  `" onmouseover="alert(1)" x='`,
	"scheme":     `javascript:alert(1)//`,
	"path":       `//evil.example/../..`,
	"template":   `{{.}}{{template "head"}}`,
	"direction":  "abc\u202etxt.exe\u2066\u200f\u061c",
	"controls":   "\x1b[31m\x00\x07\r\n\t\u009b\u2028",
	"unseen":     "a\u200bb\u00ad\ufeff\U000e0041",
	"no text":    "\xff\xfe\xc3",
	"long":       strings.Repeat("long", 1<<18),
	"longdirect": strings.Repeat("\u202e", 1<<12),
}

// elements are the HTML elements of the pages.
const elements = " a article blockquote body br button circle code dd defs desc details div dl dt figcaption figure footer form h1 h2 h3 head header html input label legend li line link main meta nav ol option p path pattern pre q rect section select span strong summary svg table tbody td text textarea th thead time title tr ul "

// TestHostile makes every page of hostile texts, and reads it as a browser does.
func TestHostile(t *testing.T) {
	for name, text := range hostile {
		for _, path := range pagePaths {
			if name == "long" && testing.Short() {
				continue
			}
			w := do(newTestServer(t, &fakeStore{text: text, records: 2}), httptest.NewRequest("GET", path, nil))
			if want := map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[path == "/nosuch"]; w.Code != want {
				t.Errorf("%s %s: code %d, want %d: %.300s", name, path, w.Code, want, w.Body)
				continue
			}
			doc, err := html.Parse(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			for n := range doc.Descendants() {
				checkNode(t, name+" "+path, n)
			}
		}
		for _, query := range []string{"outcome=" + url.QueryEscape(text), url.QueryEscape(text) + "=x"} {
			w := do(newTestServer(t, &fakeStore{}), httptest.NewRequest("GET", "/calls?"+query, nil))
			doc, err := html.Parse(w.Body)
			if err != nil || w.Code != http.StatusBadRequest {
				t.Fatalf("%s: code %d, %v, want 400", name, w.Code, err)
			}
			for n := range doc.Descendants() {
				checkNode(t, name+" "+query[:7], n)
			}
		}
	}
}

func checkNode(t *testing.T, where string, n *html.Node) {
	t.Helper()
	if n.Type == html.TextNode && !utf8.ValidString(n.Data) || strings.ContainsFunc(n.Data, acts) {
		t.Errorf("%s: a text acts: %.100q", where, n.Data)
	}
	if n.Type != html.ElementNode {
		return
	}
	if !strings.Contains(elements, " "+n.Data+" ") {
		t.Errorf("%s: element %q", where, n.Data)
	}
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
			t.Errorf("%s: %s has an attribute %s", where, n.Data, a.Key)
		case a.Key == "href" || a.Key == "src" || a.Key == "action":
			u, err := url.Parse(a.Val)
			if err != nil || u.Scheme != "" || u.Host != "" || a.Val != "" && a.Val[0] != '/' && a.Val[0] != '#' {
				t.Errorf("%s: %s leads to %.100q", where, n.Data, a.Val)
			}
		}
	}
}

// TestLimits checks that a question which needs too much is answered so: the store
// is not at fault, and there may be something.
func TestLimits(t *testing.T) {
	for limit, code := range map[error]int{store.ErrTooMuch: http.StatusUnprocessableEntity, store.ErrBusy: http.StatusServiceUnavailable} {
		limit := fmt.Errorf("reading: %w", limit)
		for _, path := range pagePaths[:len(pagePaths)-1] {
			w := do(newTestServer(t, &fakeStore{text: "x", err: limit}), httptest.NewRequest("GET", path, nil))
			if body := w.Body.String(); w.Code != code || !strings.Contains(body, "This does not mean that there is nothing") || !strings.Contains(body, limit.Error()) {
				t.Errorf("%s: code %d: %s", path, w.Code, body)
			}
		}
		// Of a session, the records are shown without what they did together.
		w := do(newTestServer(t, &fakeStore{text: "x", noSummary: limit}), httptest.NewRequest("GET", pagePaths[4], nil))
		if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "Not read: effects") || !strings.Contains(body, "Timeline") || strings.Contains(body, "Files piped to") {
			t.Errorf("a session: code %d: %s", w.Code, body)
		}
	}
}

// TestLongSession checks that a session of any length says whose effects it shows,
// and leads to the others.
func TestLongSession(t *testing.T) {
	const records = 250_000
	path := pagePaths[4]
	show := func(f *fakeStore, path string) string {
		return do(newTestServer(t, f), httptest.NewRequest("GET", path, nil)).Body.String()
	}
	for query, want := range map[string]string{
		"": `#0 to #99999. <a href="` + path + `?seq=100000">`, "?seq=7": `#7 to #100006. <a href="` + path + `?seq=100007">`, "?seq=200000": "#200000 to #299999.</p>",
	} {
		if body := show(&fakeStore{text: "x", long: records}, path+query); !strings.Contains(body, "Only of the records "+want) || !strings.Contains(body, "Files piped to") {
			t.Errorf("%s lacks %q: %s", query, want, body)
		}
		if body := show(&fakeStore{text: "x"}, path+query); strings.Contains(body, "Only of the records") {
			t.Errorf("%s of a short session: %s", query, body)
		}
	}
}

// acts reports whether a terminal or a browser does something on r, or hides it.
func acts(r rune) bool {
	return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func TestHeaders(t *testing.T) {
	for _, path := range append([]string{"/static/style.css", "/calls.csv", "/calls.ndjson"}, pagePaths...) {
		h := do(newTestServer(t, &fakeStore{text: "x", records: 1}), httptest.NewRequest("GET", path, nil)).Header()
		csp := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(path, "/static") && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

// TestUnreadable checks that a page which cannot read the store reports that, and
// does not look empty.
func TestUnreadable(t *testing.T) {
	for _, path := range pagePaths[:len(pagePaths)-1] {
		w := do(newTestServer(t, &fakeStore{text: "x", err: context.DeadlineExceeded}), httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "cannot be read") {
			t.Errorf("%s: code %d: %s", path, w.Code, w.Body)
		}
	}
	for path, want := range map[string]string{"/calls": "No records match these filters", "/": "Needs attention", recordPath: "2 versions", "/tools": "changed"} {
		if w := do(newTestServer(t, &fakeStore{text: "x"}), httptest.NewRequest("GET", path, nil)); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}

// TestUnreadParts has parts of the overview fail: each is named, nothing claims to
// have checked it, and what could be read is shown.
func TestUnreadParts(t *testing.T) {
	parts := []string{store.PartSessions, store.PartAlerts, store.PartOffsets, store.PartLetters, store.PartDecisions, store.PartRewrites, store.PartArrival}
	claims := map[string][]string{
		store.PartSessions: {"records missing", "calls still open"}, store.PartAlerts: {"open critical alerts"}, store.PartDecisions: {"calls denied"},
		store.PartRewrites: {"records in two versions"}, store.PartOffsets: {"offsets never"}, store.PartLetters: {"dead letters"},
	}
	var failed []store.Failure
	whole := do(newTestServer(t, &fakeStore{text: "x"}), httptest.NewRequest("GET", "/", nil)).Body.String()
	for _, part := range parts {
		body := do(newTestServer(t, &fakeStore{text: "x", failed: []store.Failure{{Part: part, Err: context.DeadlineExceeded}}}), httptest.NewRequest("GET", "/", nil)).Body.String()
		_, rest, named := strings.Cut(body, "Not read: "+part+".</strong>")
		if !named || !strings.Contains(rest, "Calls over time") || strings.Contains(body, "Nothing needs attention") {
			t.Errorf("without %s the page is\n%s", part, body)
		}
		for _, claim := range claims[part] {
			if strings.Contains(rest, claim) || !strings.Contains(whole, claim) {
				t.Errorf("only with %s the page speaks of %q: without it\n%s\nwith it\n%s", part, claim, rest, whole)
			}
		}
		failed = append(failed, store.Failure{Part: part, Err: context.DeadlineExceeded})
	}
	body := do(newTestServer(t, &fakeStore{text: "x", untimed: []store.Failure{{Part: store.PartLatency, Err: context.DeadlineExceeded}}}), httptest.NewRequest("GET", "/", nil)).Body.String()
	for _, want := range []string{"Not read: latency of tools.</strong>", "Latency was not read.", "Calls over time", ">Tools<"} {
		if !strings.Contains(body, want) {
			t.Errorf("without the latency of tools the page lacks %q:\n%s", want, body)
		}
	}
	w := do(newTestServer(t, &fakeStore{text: "x", failed: failed, noActivity: context.DeadlineExceeded}), httptest.NewRequest("GET", "/", nil))
	if body := w.Body.String(); w.Code != http.StatusOK || strings.Count(body, "not read</dd>") != 5 || strings.Contains(body, "Calls over time") || !strings.Contains(body, "Not read: calls over time.") {
		t.Errorf("without anything: code %d\n%s", w.Code, body)
	}
}

func TestMistakes(t *testing.T) {
	for _, path := range []string{
		"/calls?before=x", "/calls?after=1.2.3", "/calls?from=yesterday", "/calls?from=2026-11-21&to=2026-11-20", "/?span=9y",
		"/calls?text=" + strings.Repeat("x", maxValue+1), "/sessions/x?seq=-1", "/destinations?after=-1", "/environment?after=1.x", "/destinations?from=200", "/alerts?before=x",
		"/calls?host=%zz", "/calls.csv?host=a;tool=b", "/calls.ndjson?host=a&host=b", "/alerts?state=open&state=closed",
		// Each of these would list more than was asked for, or nothing.
		"/calls?tool=pipe_pane", "/calls.csv?tool=pipe_pane", "/calls.ndjson?until=2026-11-21", "/calls.csv?before=1.2.3", "/calls?anomalous=true", "/calls.csv?outcome=failed",
		"/calls?decision=refused", "/decisions?op=x", "/decisions?decision=deny", "/sessions?problem=gap", "/sessions?session=x", "/alerts?state=opened", "/alerts?severity=high",
		"/alerts?host=x", "/calls?text=" + strings.Repeat("x+", store.MaxWords+1), "/destinations?path=x", "/environment?variable=x", "/?host=x",
		"/tools?new=24h", "/tools?span=9y", "/sessions?shown=span",
	} {
		if w := do(newTestServer(t, &fakeStore{text: "x"}), httptest.NewRequest("GET", path, nil)); w.Code != http.StatusBadRequest {
			t.Errorf("%.60s: code %d, want 400", path, w.Code)
		}
	}
}

// TestRefusedEffects checks that the page of a session does not count what the
// proxy refused as done, and that what has no name has a word in its place.
func TestRefusedEffects(t *testing.T) {
	body := do(newTestServer(t, &fakeStore{text: "x"}), httptest.NewRequest("GET", pagePaths[4], nil)).Body.String()
	for _, want := range []string{">×2</span>", `>not named</span> <span class="aside">×3, 1 refused</span>`, ">×4, all refused</span>", ">×1, refused</span>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %s:\n%s", want, body)
		}
	}
	for _, path := range []string{"/destinations", "/environment"} {
		if body := do(newTestServer(t, &fakeStore{}), httptest.NewRequest("GET", path, nil)).Body.String(); !strings.Contains(body, ">not named<") {
			t.Errorf("%s does not say that a name is missing:\n%s", path, body)
		}
	}
}

// TestAnswers checks that lists say who answered the question about a call, and
// what happened to a policy.
func TestAnswers(t *testing.T) {
	const by, policy = `<span class="aside">ann</span> <span class="aside">by ann</span>`, `, ann: <code>ann</code> <code>ann</code> <span class="aside">ann</span>`
	for path, want := range map[string][]string{"/calls": {by, "policy: ", policy}, "/decisions": {by}, pagePaths[4]: {by}} {
		body := do(newTestServer(t, &fakeStore{text: "ann", records: 2}), httptest.NewRequest("GET", path, nil)).Body.String()
		for _, want := range want {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s:\n%s", path, want, body)
			}
		}
	}
	rows, err := csv.NewReader(do(newTestServer(t, &fakeStore{text: "ann", records: 1}), httptest.NewRequest("GET", "/calls.csv", nil)).Body).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) {
		t.Fatalf("rows %q, %v, want two of one length", rows, err)
	}
	for _, name := range []string{"approval", "approval_by", "policy_event", "policy_mode", "policy_source", "policy_detail", "policy_hash"} {
		if i := slices.Index(rows[0], name); i < 0 || rows[1][i] != "ann" {
			t.Errorf("the column %s is not as recorded in %q", name, rows)
		}
	}
}

// TestRefusedAlert checks that an alert about a call that the server did not get
// says so in the list and on its page.
func TestRefusedAlert(t *testing.T) {
	for path, want := range map[string]string{"/alerts": "refused: PolicyDenied", "/alerts/a1": "refused this call (PolicyDenied)"} {
		for text, refused := range map[string]bool{`{"refused":"PolicyDenied"}`: true, `{"name":"refused"}`: false} {
			body := do(newTestServer(t, &fakeStore{text: text}), httptest.NewRequest("GET", path, nil)).Body.String()
			if strings.Contains(body, want) != refused {
				t.Errorf("%s with details %s says %q: %t", path, text, want, !refused)
			}
		}
	}
}

// TestSessionLinks checks that the lists of a session's calls begin with it, however
// old it is.
func TestSessionLinks(t *testing.T) {
	body := do(newTestServer(t, &fakeStore{text: "x"}), httptest.NewRequest("GET", pagePaths[4], nil)).Body.String()
	from := url.Values{"from": {moment.Format("2006-01-02T15:04:05.000000Z")}, "session": {(&fakeStore{}).record().SessionID}}
	for _, decision := range []string{"", "deny", "ask"} {
		if from.Del("decision"); decision != "" {
			from.Set("decision", decision)
		}
		link := "/calls?" + from.Encode()
		if !strings.Contains(body, `"`+strings.ReplaceAll(link, "&", "&amp;")+`"`) {
			t.Errorf("no link to %s in\n%s", link, body)
		}
		f := &fakeStore{text: "x"}
		if w := do(newTestServer(t, f), httptest.NewRequest("GET", link, nil)); w.Code != http.StatusOK || f.window.From.After(moment) {
			t.Errorf("%s: code %d, begins at %s, want %s", link, w.Code, f.window.From, moment)
		}
	}
}

// TestOptions checks that each choice of a filter has a name: a screen reader has
// nothing else of it.
func TestOptions(t *testing.T) {
	for _, path := range pagePaths {
		if body := do(newTestServer(t, &fakeStore{text: "x"}), httptest.NewRequest("GET", path, nil)).Body.String(); strings.Contains(body, "></option>") {
			t.Errorf("%s has a choice without a name", path)
		}
	}
}

// TestClockAhead checks that a list of the last time has the records of clocks
// that are ahead, and one that names its end has not.
func TestClockAhead(t *testing.T) {
	now := moment.Add(time.Hour) // as newTestServer has it
	for path, want := range map[string]bool{
		"/calls": true, "/calls?session=x&span=400d": true, "/calls.csv?span=1h": true, "/calls.ndjson": true, "/sessions": true, "/calls?from=2020-01-01": true,
		"/calls?to=" + now.Format("2006-01-02T15:04:05"): false,
	} {
		f := &fakeStore{text: "x"}
		if do(newTestServer(t, f), httptest.NewRequest("GET", path, nil)); f.window.To.Before(now.Add(day)) == want {
			t.Errorf("%s at %s lists until %s", path, now, f.window.To)
		}
	}
}

// TestNoBeginning checks that a list which names only its end begins with what was kept
// longest, however long that is.
func TestNoBeginning(t *testing.T) {
	for _, path := range []string{"/calls?to=", "/calls.csv?session=x&to=", "/calls.ndjson?to=", "/sessions?to="} {
		f := &fakeStore{text: "x"}
		if w := do(newTestServer(t, f), httptest.NewRequest("GET", path+"2015-01-01", nil)); w.Code != http.StatusOK || f.window.From.Unix() != 0 {
			t.Errorf("%s: code %d, and lists from %s", path, w.Code, f.window.From)
		}
	}
}

// TestLinksKeepTheConditions checks that the next page, and the calls of decisions, are
// those of the conditions that were chosen, and go on behind the last entry.
func TestLinksKeepTheConditions(t *testing.T) {
	places := map[string]any{
		"/destinations": &store.EffectPlace{LastTS: moment, Hash: 7}, "/environment": &store.EffectPlace{LastTS: moment, Hash: 7}, "/alerts": &store.AlertPlace{TS: moment, ID: "a1"},
	}
	for path, want := range map[string][]string{
		"/calls?host=h&user=u&op=pipe_pane&risk=high":                     {"before="},
		"/calls?from=2026-01-01T00:00:00&to=2026-11-01T00:00:00&kind=any": {"before="},
		"/sessions?host=h&user=u&problem=missing&span=90d":                {"after="},
		"/decisions?host=h&user=u&rule=r&decision=denied&span=24h":        nil,
		"/destinations?host=h&user=u&name=n":                              {fmt.Sprintf("after=%d.7", moment.UnixMicro())},
		"/environment?host=h&user=u&name=n":                               {"after="},
		"/alerts?state=closed&severity=critical&rule=r":                   {"before="},
	} {
		f := &fakeStore{text: "x", records: effectsSize + 1}
		s := newTestServer(t, f)
		body := do(s, httptest.NewRequest("GET", path, nil)).Body.String()
		found := regexp.MustCompile(`href="([^"]*)"[^>]*>(?:Older →|Further →|All of these calls)</a>`).FindStringSubmatch(body)
		if found == nil {
			t.Errorf("%s has no link to more", path)
			continue
		}
		link, err := url.Parse(html.UnescapeString(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		page, conditions, _ := strings.Cut(path, "?")
		if w := do(s, httptest.NewRequest("GET", link.String(), nil)); w.Code != http.StatusOK {
			t.Errorf("%s goes on at %s, which has code %d", path, link, w.Code)
		} else if place, ok := places[page]; ok {
			if diff := cmp.Diff(place, f.after); diff != "" {
				t.Errorf("%s goes on at %s, a place (-want +got):\n%s", path, link, diff)
			}
		}
		for _, one := range append(strings.Split(conditions, "&"), want...) {
			name, value, _ := strings.Cut(one, "=")
			if got := link.Query().Get(name); got == "" || value != "" && got != value {
				t.Errorf("%s goes on at %s, want %s in it", path, link, one)
			}
		}
	}
}

// TestNewTools lists tools that are new in a time, with all of their definitions.
func TestNewTools(t *testing.T) {
	at := func(hours int) time.Time { return moment.Add(time.Duration(hours) * time.Hour) }
	f := &fakeStore{definitions: []store.Definition{
		{Server: "a", Version: "1", Tool: "changed", Hash: "aa", FirstTS: at(-50)},
		{Server: "a", Version: "1", Tool: "changed", Hash: "bb", FirstTS: at(-3)},
		{Server: "a", Version: "1", Tool: "new", Hash: "aa", FirstTS: at(-2)},
		{Server: "a", Version: "1", Tool: "of before", Hash: "aa", FirstTS: at(-50)},
		{Server: "a", Version: "2", Tool: "of before", Hash: "aa", FirstTS: at(-3)},
		{Server: "b", Version: "1", Tool: "old", Hash: "", FirstTS: at(-50)},
		{Server: "c", Version: "1", Tool: "unlisted", Hash: "", FirstTS: at(-1)},
	}}
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"", []string{"changed", "new", "of before", "old", "unlisted"}},
		{"?span=24h", []string{"changed", "new", "unlisted"}},
		{"?to=" + at(-10).Format("2006-01-02T15:04"), []string{"changed", "of before", "old"}},
		{"?from=" + at(-2).Format("2006-01-02T15:04:05"), []string{"new", "unlisted"}},
		{"?to=" + at(-60).Format("2006-01-02T15:04"), nil},
		// What a form sends: the time that was typed beside a span, and a span that was chosen
		// where a time was shown.
		{"?span=24h&from=" + at(-2).Format("2006-01-02T15:04:05"), []string{"new", "unlisted"}},
		{"?shown=range&span=24h&from=" + at(-2).Format("2006-01-02T15:04:05"), []string{"changed", "new", "unlisted"}},
		{"?shown=range&span=&from=" + at(-2).Format("2006-01-02T15:04:05"), []string{"new", "unlisted"}},
	} {
		body := do(newTestServer(t, f), httptest.NewRequest("GET", "/tools"+tt.query, nil)).Body.String()
		var got []string
		for _, found := range regexp.MustCompile(`<a class="mono" href="[^"]*">([^<]*)</a>`).FindAllStringSubmatch(body, -1) {
			got = append(got, found[1])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
		isRange := strings.Contains(body, `<option value="" selected>from … to</option>`)
		if sends := strings.Contains(body, `name="shown" value="range"`); sends != isRange {
			t.Errorf("%s: the form sends shown: %v, and shows a time: %v", tt.query, sends, isRange)
		}
		if strings.Contains(body, ">bb<") != slices.Contains(tt.want, "changed") || strings.Contains(body, "No tool is new") != (tt.want == nil) {
			t.Errorf("%s:\n%s", tt.query, body)
		}
	}
}

func TestCSV(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"=1+1", "'=1+1"}, {"+1", "'+1"}, {"-1", "'-1"}, {"@SUM(A1)", "'@SUM(A1)"}, {"\t=1", `'\t=1`}, {"\r=1", `'\r=1`}, {"\n=1", `'\n=1`},
		{"|cmd", "'|cmd"}, {"%x", "'%x"}, {"plain", "plain"}, {"a=b", "a=b"}, {"", ""}, {"\x1b[31m", `\x1b[31m`}, {"a\u202eb", `a\u202eb`},
		{" =1", "' =1"}, {"＝1", "'＝1"}, {"＠SUM(A1)", "'＠SUM(A1)"}, {"a;=1;b", "a;'=1;b"}, {`a;"=1"`, `a;'"=1"`}, {"a;b; -1", "a;b;' -1"},
	} {
		if got := cell(tt.in); got != tt.want {
			t.Errorf("cell(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if testing.Short() {
		return // one request in one goroutine
	}
	// More than one part, all of it, and nothing that a spreadsheet runs.
	f := &fakeStore{text: "=cmd|' /C calc'!A0\r\n,\"", records: exportPart + 3}
	w := do(newTestServer(t, f), httptest.NewRequest("GET", "/calls.csv", nil))
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) != exportPart+4 {
		t.Fatalf("%d rows, %v, want %d", len(rows), err, exportPart+4)
	}
	if last := f.line(); len(f.befores) != 2 || f.befores[0] != nil || f.befores[1] == nil || *f.befores[1] != last.Cursor() {
		t.Errorf("parts before %v, want the second to be older than the first", f.befores)
	}
	for _, row := range rows[1:] {
		for i, v := range row {
			if v != "" && strings.ContainsRune("=+-@", rune(v[0])) || strings.ContainsFunc(v, unicode.IsControl) {
				t.Fatalf("column %s: %q", rows[0][i], v)
			}
		}
	}
}

func TestNDJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("one request in one goroutine")
	}
	f := &fakeStore{text: "x\u202e\u2028\x1b", records: exportPart + 3}
	w := do(newTestServer(t, f), httptest.NewRequest("GET", "/calls.ndjson", nil))
	n := 0
	for line := range strings.Lines(w.Body.String()) {
		var got struct{ Tool string }
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Tool != f.text || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), acts) {
			t.Fatalf("line %q: %v", line, err)
		}
		n++
	}
	if n != exportPart+3 {
		t.Errorf("%d lines, want %d", n, exportPart+3)
	}
}

// TestExportBreaks checks that an export that breaks off does not look complete.
func TestExportBreaks(t *testing.T) {
	f := &fakeStore{text: "x", records: 1, err: context.DeadlineExceeded}
	if w := do(newTestServer(t, f), httptest.NewRequest("GET", "/calls.csv", nil)); w.Code != http.StatusBadGateway {
		t.Errorf("before the first part: code %d, want %d", w.Code, http.StatusBadGateway)
	}
	s := newTestServer(t, &fakeStore{text: "x", records: exportPart + 1})
	s.data.callReader = &breaking{callReader: s.data}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("after the first part: %v, want %v", got, http.ErrAbortHandler)
		}
	}()
	do(s, httptest.NewRequest("GET", "/calls.ndjson", nil))
}

// A breaking store answers one query.
type breaking struct {
	callReader
	asked bool
}

func (b *breaking) Calls(ctx context.Context, f store.Filter, p store.Page) (store.Lines, error) {
	if b.asked {
		return store.Lines{}, context.DeadlineExceeded
	}
	b.asked = true
	return b.callReader.Calls(ctx, f, p)
}

// TestAct sends the form of an alert as the page has it, and changed forms.
func TestAct(t *testing.T) {
	f := &fakeStore{text: "x"}
	s := newTestServer(t, f)
	who := "ann"
	s.c.Who = func(*http.Request) string { return who }
	doc, err := html.Parse(do(s, httptest.NewRequest("GET", "/alerts/a1", nil)).Body)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"comment": {" it is fine\n=1 "}}
	for n := range doc.Descendants() {
		if n.Data == "input" {
			attr := map[string]string{}
			for _, a := range n.Attr {
				attr[a.Key] = a.Val
			}
			form.Set(attr["name"], attr["value"])
		}
	}
	send := func(change func(url.Values)) int {
		v := url.Values{}
		for name, list := range form {
			v[name] = append([]string(nil), list...)
		}
		change(v)
		r := httptest.NewRequest("POST", "/alerts/a1", strings.NewReader(v.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return do(s, r).Code
	}
	for name, change := range map[string]func(url.Values){
		"no token":       func(v url.Values) { v.Del("token") },
		"wrong token":    func(v url.Values) { v.Set("token", strings.Repeat("0", 64)) },
		"other event":    func(v url.Values) { v.Set("event", uuid.NewString()) },
		"no comment":     func(v url.Values) { v.Set("comment", " \n") },
		"long comment":   func(v url.Values) { v.Set("comment", strings.Repeat("x", maxComment+1)) },
		"unknown action": func(v url.Values) { v.Set("action", "delete") },
	} {
		if code := send(change); code != http.StatusForbidden && code != http.StatusBadRequest {
			t.Errorf("%s: code %d", name, code)
		}
	}
	who = "bob"
	if code := send(func(url.Values) {}); code != http.StatusForbidden {
		t.Errorf("another's form: code %d, want 403", code)
	}
	who = "ann"
	if len(f.events) > 0 {
		t.Fatalf("events %+v, want none yet", f.events)
	}
	if code := send(func(url.Values) {}); code != http.StatusSeeOther {
		t.Errorf("code %d, want 303", code)
	}
	want := []store.AlertEvent{{ID: uuid.MustParse(form.Get("event")), AlertID: "a1", At: moment.Add(time.Hour), Action: store.Acknowledged, Who: "ann", Comment: "it is fine\n=1"}}
	if diff := cmp.Diff(want, f.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNewMark checks that no mark is only a colour, also for a kind that a newer
// proxy writes.
func TestNewMark(t *testing.T) {
	for _, tt := range []struct{ kind, outcome, want string }{
		{"call", "ok", "ok"},
		{"call", "unknown", "unknown"},
		{"", "error", "error"},
		{"checkpoint", "", "checkpoint"},
		{"policy\x1b", "ok", `policy\x1b`},
	} {
		if got := newMark(tt.kind, tt.outcome); got.Word != tt.want || got.Sign == "" {
			t.Errorf("newMark(%q, %q) = %+v, want %q", tt.kind, tt.outcome, got, tt.want)
		}
	}
}

func TestNarrate(t *testing.T) {
	digest := `{"len":31,"hmac_sha256_prefix":"89abcdef01234567"}`
	for _, tt := range []struct{ tool, args, want string }{
		{"send_keys", `{"keys":` + digest + `,"pane_id":"%1"}`, "typed [31 characters (digest 89abcdef01234567)] into [%1]"},
		{"send_keys", `{}`, "typed something"},
		{"pipe_pane", `{"pane_id":"%1","output_path":"/tmp/a"}`, "piped pane [%1] to [/tmp/a]"},
		{"pipe_pane", `{"output_path":"/a","output_path":"/b"}`, "piped to [/b]"},
		{"set_environment", `{"name":"A","value":` + digest + `}`, "set variable [A]"},
		{"create_session", `{"session_name":"s","environment":{"A":` + digest + `,"B":` + digest + `}}`, "created session [s] with variables [A, B]"},
		{"kill_server", `{}`, "killed the tmux server"},
		{"other", `{"a":1,"b":[1,2],"c":{"d":true},"e":2}`, "called [other] with [a 1], [b 2 elements], [c 1 member]"},
		{"other", `not JSON`, "called [other]"},
		{"other", ``, "called [other]"},
	} {
		var got strings.Builder
		for _, w := range narrate(audit.Operation{Tool: tt.tool, Args: audit.JSON(tt.args)}) {
			if w.Given {
				fmt.Fprintf(&got, "[%s]", w.Text)
			} else {
				got.WriteString(w.Text)
			}
		}
		if got.String() != tt.want {
			t.Errorf("narrate(%s %s) = %s, want %s", tt.tool, tt.args, got.String(), tt.want)
		}
	}
}

func TestTree(t *testing.T) {
	deep := strings.Repeat(`[`, 250) + strings.Repeat(`]`, 250)
	wide := "[" + strings.Repeat("1,", 2*maxNodes) + "1]"
	for _, tt := range []struct{ doc, kind string }{
		{`{"len":3,"hmac_sha256_prefix":"0123456789abcdef"}`, "digest"},
		{`{"len":3,"sha256_prefix":"0123456789ab"}`, "digest"},
		{`{"head":"abc","len":300,"hmac_sha256_prefix":"0123456789abcdef"}`, "cut"},
		{`{"len":3}`, "object"}, {`{"len":3,"hmac_sha256_prefix":"0","other":1}`, "object"},
		{`1e999999`, "number"}, {`"a"`, "string"}, {`null`, "literal"}, {deep, "list"}, {wide, "list"}, {`{"a":`, "string"},
	} {
		if got := newTree(tt.doc); got.Kind != tt.kind {
			t.Errorf("newTree(%.40s).Kind = %s, want %s", tt.doc, got.Kind, tt.kind)
		}
	}
	if n := newTree(wide); len(n.Children) > maxNodes || len(n.Children)+n.More != 2*maxNodes+1 {
		t.Errorf("a wide list: %d shown, %d more", len(n.Children), n.More)
	}
}

func TestEntries(t *testing.T) {
	var got []string
	for _, e := range entries([]store.Line{{Seq: 2, Kind: "call"}, {Seq: 3, Kind: "call"}, {Seq: 7, Kind: "call"}, {Seq: 9, Kind: "call"}}, 0) {
		got = append(got, e.Missing)
	}
	want := []string{"2 records missing: #0 to #1", "", "", "3 records missing: #4 to #6", "", "1 record missing: #8", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// TestVerdict checks how the page of a call describes a decision.
func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    audit.Record
		want *verdict
	}{
		{"it is silent about a call without a policy", audit.Record{Kind: audit.KindCall, Risk: `{"category":"read"}`}, nil},
		{"it is silent about an allowed call", audit.Record{Kind: audit.KindCall, Policy: `{"decision":"allow","applied":true}`}, nil},
		{"it is silent about a change of the policy", audit.Record{Kind: audit.KindPolicy, Policy: `{"event":"loaded"}`}, nil},
		{"it tells denied", audit.Record{Kind: audit.KindCall, Policy: `{"decision":"deny","applied":true,"rule":"/a","reason":"no","counter":"typing","count":31,"max":30,"window":"minute"}`},
			&verdict{Mark: effectMark(store.Denied), Rule: "/a", Reason: "no", Limit: "typing: 31 of 30 in this minute"}},
		{"from would have been denied", audit.Record{Kind: audit.KindCall, Policy: `{"decision":"deny"}`}, &verdict{Mark: effectMark(store.WouldDeny), Observed: true}},
		{"it has the answer to a question", audit.Record{Kind: audit.KindCall, Policy: `{"decision":"ask","applied":true}`, Approval: `{"outcome":"timeout","by":"ann"}`},
			&verdict{Mark: effectMark(store.Asked), Approval: "timeout", By: "ann"}},
		{"it has what was found without a policy", audit.Record{Kind: audit.KindCall, Detections: `[{"detector":"opaque","at":"args.keys"}]`},
			&verdict{Observed: true, Detections: []audit.Detection{{Detector: "opaque", At: "args.keys"}}}},
	} {
		if diff := cmp.Diff(tt.want, newVerdict(tt.r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestDecisionLinks checks that links of the page of decisions carry a name
// whole, and that a name too long for a request has none.
func TestDecisionLinks(t *testing.T) {
	name := `a&b="c"+/é`
	w := do(newTestServer(t, &fakeStore{text: name, records: 1}), httptest.NewRequest("GET", "/decisions?span=24h&decision=denied&host=h", nil))
	for _, want := range []url.Values{
		{"span": {"24h"}, "decision": {"denied"}, "host": {"h"}, "rule": {name}},
		{"span": {"24h"}, "decision": {"denied"}, "host": {"h"}, "tool": {name}},
		{"span": {"24h"}, "decision": {"denied"}, "host": {name}, "user": {name}},
	} {
		if link := `href="/decisions?` + strings.ReplaceAll(want.Encode(), "&", "&amp;") + `"`; !strings.Contains(w.Body.String(), link) {
			t.Errorf("no %s", link)
		}
		if want.Has("tool") {
			want["op"] = want["tool"]
			want.Del("tool")
		}
		if link := `href="/calls?` + strings.ReplaceAll(want.Encode(), "&", "&amp;") + `"`; !strings.Contains(w.Body.String(), link) {
			t.Errorf("no %s", link)
		}
	}
	long := do(newTestServer(t, &fakeStore{text: strings.Repeat("x", maxLinked+1)}), httptest.NewRequest("GET", "/decisions", nil)).Body.String()
	for _, link := range strings.Split(long, `href="`)[1:] {
		if link, _, _ = strings.Cut(link, `"`); len(link) > maxLinked {
			t.Errorf("a link has %d bytes: %.80s", len(link), link)
		}
	}
	if w := do(newTestServer(t, &fakeStore{}), httptest.NewRequest("GET", "/decisions?rule="+strings.Repeat("x", maxValue+1), nil)); w.Code != http.StatusBadRequest {
		t.Errorf("a rule of more than %d bytes: %d", maxValue, w.Code)
	}
}

// TestMixedNames checks that a tool's name with letters that look like others is shown with
// their escapes on each page that names it, and that an ordinary one in another script is not.
func TestMixedNames(t *testing.T) {
	const mixed, escaped, plain = "s\u0435nd_keys", `s\u0435nd_keys`, "поиск"
	for text, want := range map[string]string{mixed: escaped, plain: plain} {
		pages := 0
		for _, path := range pagePaths {
			w := do(newTestServer(t, &fakeStore{text: text, records: 2}), httptest.NewRequest("GET", path, nil))
			doc, err := html.Parse(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for n := range doc.Descendants() {
				if n.Type == html.TextNode && n.Parent.Data != "option" && strings.Contains(n.Data, want) {
					found = true
				}
				link := n.Type == html.TextNode && n.Parent.Data == "a" && strings.Contains(n.Parent.Parent.Data+" "+class(n.Parent), "mono name")
				if title := n.Type == html.TextNode && n.Parent.Data == "title" && !strings.HasPrefix(path, "/alerts/"); (title || link) && strings.Contains(n.Data, mixed) {
					t.Errorf("%s shows %q", path, n.Data)
				}
			}
			if found {
				pages++
			}
		}
		if pages < 7 {
			t.Errorf("%q is on %d pages", want, pages)
		}
	}
}

func class(n *html.Node) string {
	for _, a := range n.Attr {
		if a.Key == "class" {
			return a.Val
		}
	}
	return ""
}
