package main

import (
	"crypto/sha256"
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
)

// testHostile checks that hostile texts in records are plain text on every page.
func (s *site) testHostile(t *testing.T) {
	session, ids := s.harm(t)
	tb := newTab(t, s.browser, s.base)
	paths := []string{"/", "/calls?kind=any", "/sessions", "/sessions/" + session, "/destinations", "/environment", "/tools", "/alerts?state=all", "/decisions", "/calls?decision=any"}
	for i, id := range ids {
		paths = append(paths, "/calls/"+id)
		if i < 2 {
			text := queryEscape(hostile[i])
			paths = append(paths, "/calls?op="+text, "/alerts?rule="+text, "/destinations?name="+text, "/decisions?rule="+text+"&tool="+text, "/calls?detector="+text+"&kind=any")
		}
	}
	for _, path := range paths {
		tb.harmless(path)
	}
	s.directions(tb, session)
	tb.open("/calls?span=1h")
	if rows := strings.Join(tb.texts("td.what"), "\n"); !strings.Contains(rows, hostile[0]) {
		t.Errorf("the calls do not show %q as it is:\n%.2000s", hostile[0], rows)
	}
	s.sheet(t)
}

// harmless checks that a page with hostile texts shows them as text.
func (tb *tab) harmless(path string) {
	tb.t.Helper()
	tb.show(1280, "light")
	tb.open(path)
	// Injected markup would be among these, and the browser would have refused it.
	if found := eval[[]string](tb, `[...document.querySelectorAll("script, img, iframe, object, embed, base, style, [style], [onerror], [onload], [onmouseover], a[href^='javascript' i]")].map(e => e.outerHTML.slice(0, 200))`); len(found) > 0 {
		tb.t.Errorf("%s has %q", path, found)
	}
	if title := eval[string](tb, "document.title"); title == "pwned" {
		tb.t.Errorf("%s ran what a record says", path)
	}
	if steers := eval[bool](tb, `/[\u202e\u2066\u200b\x1b\x07]/.test(document.body.textContent)`); steers {
		tb.t.Errorf("%s has what steers or hides", path)
	}
	if left := eval[bool](tb, `document.body.textContent.includes("Not read")`); left {
		tb.t.Errorf("%s leaves a part out: %.2000s", path, eval[string](tb, "document.body.innerText"))
	}
	for _, width := range []int64{1280, 640, 390, 320} {
		tb.show(width, "light")
		if wide := tb.wide(); len(wide) > 0 {
			tb.t.Errorf("%s at %d pixels is wider than the window: %q", path, width, wide)
		}
	}
}

// directions checks that names which run from right to left stay in their places. A
// hostile client could otherwise make a reviewer take the client for the server.
func (s *site) directions(tb *tab, session string) {
	tb.t.Helper()
	tb.show(1280, "light")
	for _, path := range []string{"/sessions", "/sessions/" + session, "/calls?kind=any", "/destinations"} {
		tb.open(path)
		// Neighbours in one line, one of them such a name, the second left of the first.
		swapped := eval[[]string](tb, `(() => {
			const places = [], walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
			for (let n; n = walk.nextNode();) for (const m of n.data.matchAll(/[\u0590-\u05ff]+|[A-Za-z0-9]+/g)) {
				const r = document.createRange();
				r.setStart(n, m.index), r.setEnd(n, m.index + m[0].length);
				places.push([m[0], n.parentElement.closest("p, td, th, li, dd, h1"), r.getBoundingClientRect()]);
			}
			return places.slice(1).map((b, i) => [places[i], b]).filter(([a, b]) => /[\u0590-\u05ff]/.test(a[0] + b[0]) && a[1] && a[1] === b[1] && Math.abs(a[2].top - b[2].top) < 3 && b[2].width && b[2].left < a[2].left)
				.map(([a, b]) => a[0] + " is behind " + b[0] + " in " + a[1].outerHTML.slice(0, 300));
		})()`)
		if len(swapped) > 0 {
			tb.t.Errorf("%s: %q", path, swapped)
		}
	}
}

// sheet reads the export of the hostile records as a spreadsheet does.
func (s *site) sheet(t *testing.T) {
	r := newReviewer(t, "", &http.Transport{})
	r.open(s.h.link(t))
	_, text := r.get("/calls.csv?span=1h")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a spreadsheet takes %.80q for a formula", cell)
			}
		}
	}
}

// harm stores records with hostile texts in every member that a client or server
// chooses.
func (s *site) harm(t *testing.T) (session string, ids []string) {
	t.Helper()
	store, err := store.Open(clickhouse.Config{
		Addrs: []string{"localhost:0"}, HTTP: true, Database: "audit", Uncompressed: true, Dial: chdb.Dialer(s.h.dir+"/local", chdb.Writer),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	session = audit.NewID(time.Now())
	var rows []ingest.Row
	for i, text := range hostile {
		tool := text
		if i == 0 {
			tool += strings.Repeat("A", 1<<20)
		}
		quoted := string(jsontext.AppendQuote(nil, text))
		r := audit.Record{
			Kind: audit.KindCall, RecordID: audit.NewID(time.Now()), SessionID: session, Seq: uint64(i), CallNo: uint64(i + 1), TS: time.Now().Add(-time.Duration(i) * time.Second),
			Method: "tools/call", Tool: tool, Target: text, Outcome: audit.OutcomeError, ErrorType: text, Duration: time.Millisecond,
			ClientID: text, RequestID: text, RequestIDType: "string", Client: audit.Peer{Name: text, Version: text}, Server: audit.Peer{Name: text, Version: text},
			ServerCommand: audit.Command{Command: text}, Tier: text, Annotations: audit.JSON(`{"title":` + quoted + `}`), ToolHash: strings.Repeat("ab", 32),
			Args: audit.JSON(`{"operations":[{"tool":"pipe_pane","arguments":{"output_path":` + quoted + `,` + quoted + `:1}},` +
				`{"tool":"set_environment","arguments":{"name":` + quoted + `}}]}`),
			Host: text, User: text, Labels: audit.JSON(`{` + quoted + `:` + quoted + `}`), Anomalies: []string{text},
			Risk:       audit.Risk{Category: text, Level: text, Source: text, Conflict: true}.JSON(),
			Detections: audit.DetectionsJSON([]audit.Detection{{Detector: text, At: text}, {Detector: text}}),
			Policy: audit.Policy{Hash: text, Mode: text, Decision: audit.DecisionDeny, Applied: i%2 == 0, Rule: text, Reason: text, Counter: text, Count: 1, Max: 1, Window: text,
				Event: text, Detail: text}.JSON(),
			Approval: audit.Approval{Outcome: text, By: text, Scope: text}.JSON(),
		}
		if i == len(hostile)-1 {
			r.Kind, r.CallNo = audit.KindPolicy, 0
		}
		line := audit.AppendRecord(nil, &r)
		raw := string(line[:len(line)-1])
		sum := sha256.Sum256([]byte(raw))
		row := ingest.Row{Record: r, Operations: audit.Operations(&r), Raw: raw, Source: ingest.Source{Topic: "spool", Offset: uint64(1<<40 + i)}}
		copy(row.Hash[:], sum[:])
		rows, ids = append(rows, row), append(ids, r.RecordID)
	}
	if err := store.InsertRows(t.Context(), rows, time.Now()); err != nil {
		t.Fatal(err)
	}
	return session, ids
}
