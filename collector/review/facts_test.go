package review

import (
	"strings"
	"testing"
	"time"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"

	"golang.org/x/tools/txtar"
)

// TestFacts checks that a page has every member of a record, in the group and under
// the label of its declaration, and unknown members of a newer proxy.
func TestFacts(t *testing.T) {
	arch, err := txtar.ParseFile("../../schemas/audit/testdata/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	lines := map[string]string{}
	for _, f := range arch.Files {
		raw := strings.TrimSpace(string(f.Data))
		if !strings.HasPrefix(raw, `{"v":1,"kind":`) {
			continue
		}
		raw = raw[:strings.LastIndex(raw, `,"crc"`)] + `,"weather":{"level":"high"},"note":"new\u0021","crc":"00000000"}`
		for _, g := range facts(store.Stored{Raw: raw}) {
			for _, one := range g.Facts {
				shown[g.Name+": "+one.Name] = true
				lines[g.Name+": "+one.Name+" = "+one.Value+" "+one.Link] = f.Name
			}
		}
	}
	for _, m := range audit.RecordMembers() {
		label := m.Label
		if label == "" {
			label = strings.ReplaceAll(m.Name, "_", " ")
		}
		if m.Group != "" && !shown[string(m.Group)+": "+label] {
			t.Errorf("no page shows %q as %q in group %q", m.Name, label, m.Group)
		}
	}
	for _, want := range []string{
		"What: kind = call ",
		"What: error code = -32602 ",
		"What: anomalies = batch, duplicate_member ",
		"What: not durable when forwarded = yes ",
		`What: error digest = {"len":18,"hmac_sha256_prefix":"fedcba9876543210"} `,
		"What: calls not recorded = 12 ",
		"When: duration = 1.23 s ",
		"When: arguments = 42 bytes ",
		"Who: client = claude-code 2.1.0 /calls?client=claude-code",
		"Server: server = libtmux 0.1.0a22 /calls?server=libtmux",
		"Who: host = build-7 /calls?host=build-7",
		"Server: command = libtmux-mcp ",
		`Server: args digest = {"len":3,"hmac_sha256_prefix":"0123456789abcdef"} `,
		"Place: record of the session = #7 ",
		"Place: session = 019e8b1c-0000-7aaa-8bbb-0123456789ab /sessions/019e8b1c-0000-7aaa-8bbb-0123456789ab",
		`Other: weather = {"level":"high"} `,
		"Decision: risk = category execute, level high, source schema ",
		"Decision: detections = recursive_delete at args.keys ",
		"Decision: approval = outcome approved, scope once, by ann, user ann, channel files, request 01, wait ms 1500 ",
		"Other: note = new! ",
	} {
		if lines[want] == "" {
			t.Errorf("no page has %q", want)
		}
	}
	if t.Failed() {
		for line := range lines {
			t.Log(line)
		}
	}
}

func TestTimesInWords(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		since time.Duration
		want  string
	}{
		{-time.Second, "just now"}, {999 * time.Millisecond, "just now"}, {time.Second, "1 second ago"}, {59 * time.Minute, "59 minutes ago"}, {90 * time.Minute, "1 hour ago"}, {49 * time.Hour, "2 days ago"},
	} {
		if got := ago(now, now.Add(-tt.since)); got != tt.want {
			t.Errorf("ago(%v) = %q, want %q", tt.since, got, tt.want)
		}
	}
	if got := ago(now, time.Time{}); got != "never" {
		t.Errorf("ago of nothing = %q", got)
	}
	half := 0.5
	for want, v := range map[string]any{"0.50 ms": &half, "12.3 ms": 12.34, "1.00 s": 1000.0, "1.50 min": 90_000.0, "–": (*float64)(nil)} {
		if got := millis(v); got != want {
			t.Errorf("millis = %q, want %q", got, want)
		}
	}
}
