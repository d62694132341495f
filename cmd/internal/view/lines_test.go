package view

import (
	"testing"
	"time"

	"auditproxy/schemas/audit"
)

// TestFilterFindsAll compares the decision on the raw line with the decision on
// the record.
func TestFilterFindsAll(t *testing.T) {
	records := []audit.Record{
		{Kind: audit.KindCall, Method: "tools/call", Tool: "send_keys", Tier: "mutating", Outcome: audit.OutcomeOK},
		{Kind: audit.KindCall, Method: "tools/call", Tool: "a\"b\x1b", Tier: "manage", Outcome: audit.OutcomeError},
		{Kind: audit.KindCall, Method: "resources/read", Target: "x", Outcome: audit.OutcomeUnknown},
		{Kind: audit.KindCall, Method: "tools/call", Tool: "batch", Args: `{"oper\u0061tions":[{"tool":"p\u0069pe"},{"tool":"send_keys"}]}`},
		{Kind: audit.KindCall, Method: "ping", Candidates: []audit.Candidate{{Method: "tools/call", Tool: "pipe"}}},
		{Kind: audit.KindOpen, Method: "tools/call", Tool: "pipe"},
		{Kind: audit.KindGap}, {Kind: audit.KindAnomaly},
		{Kind: audit.KindCall, Tool: "send_keys", Risk: `{"category":"destructive","level":"critical"}`, Detections: `[{"detector":"opaque"},{"detector":"recursive_delete","at":"keys"}]`,
			Policy: `{"decision":"deny","applied":true}`},
		{Kind: audit.KindCall, Tool: "send_keys", Risk: `{"category":"e\u0078ecute","level":"high"}`, Detections: `[{"detector":"kil\u006c"}]`, Policy: `{"decision":"de\u006ey"}`},
		{Kind: audit.KindCall, Tool: "send_keys", Policy: `{"decision":"ask"}`}, {Kind: audit.KindPolicy, Policy: `{"event":"loaded"}`},
	}
	words := []string{"send_keys", "pipe", "p*", "a\"b\x1b", "?", "batch", "mutating", "manage", "ok", "error", "unknown", "open", "tools/call",
		"resources/*", "ping", "gap", "call", "session_start",
		"deny", "denied", "would_*", "ask", "would_ask", "destructive", "high", "crit*", "opaque", "kill", "recursive_delete", "policy"}
	matches := 0
	for _, r := range records {
		line := audit.AppendRecord(nil, &r)
		for _, w := range words {
			var c LogConfig
			for flag, list := range map[string]*[]string{"--tool": &c.Tool, "--method": &c.Method, "--tier": &c.Tier, "--outcome": &c.Outcome,
				"--kind": &c.Kind, "--decision": &c.Decision, "--risk": &c.Risk, "--detector": &c.Detector} {
				c = LogConfig{}
				*list = []string{w}
				f, _ := newFilter(c) // a word that is not an outcome still makes a filter
				if f.match(&r, recordOutcome(&r)) {
					matches++
					if !f.mayMatch(line) {
						t.Errorf("%s %q passes over %s", flag, w, line)
					}
				}
			}
		}
	}
	if matches < 40 {
		t.Errorf("only %d matches", matches)
	}
}

func FuzzLineTimes(f *testing.F) {
	f.Add(int64(1790000000123456), int64(1234567), "tool")
	f.Add(int64(0), int64(-1), `,"ts":"2026-01-01T00:00:00.000000Z","duration_ms":5,`)
	f.Fuzz(func(t *testing.T, us, duration int64, text string) {
		if us < 0 || us > 2e17 || duration > 1e15 {
			return
		}
		r := audit.Record{Kind: audit.KindCall, TS: time.UnixMicro(us), Tool: text, Duration: time.Duration(duration) * time.Microsecond,
			Args: `{"x":{"ts":"2026-01-01T00:00:00.000000Z","duration_ms":77}}`}
		line := audit.AppendRecord(nil, &r)
		if got, ok := lineTime(line); !ok || got != us {
			t.Fatalf("lineTime(%s) = %d, %v, want %d", line, got, ok, us)
		}
		if got := lineDuration(line); got != max(0, duration) {
			t.Fatalf("lineDuration(%s) = %d, want %d", line, got, duration)
		}
	})
}

func TestStartOf(t *testing.T) {
	for id, want := range map[string]int64{
		"019aa125-2a00-7000-8000-000000000000": 0x019aa1252a00 * 1000,
		"019e8b1c-5a2f-4c3e-9d41-6f0a2b8c4d5e": 0, // another version
		"s1":                                   0,
		"zzzzzzzz-5a2f-7c3e-9d41-6f0a2b8c4d5e": 0,
	} {
		if got := startOf(id); got != want {
			t.Errorf("startOf(%q) = %d, want %d", id, got, want)
		}
	}
}
