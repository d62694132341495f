package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/audit"
)

// TestRecords: what is measured is what a proxy writes, of the length that is
// said.
func TestRecords(t *testing.T) {
	const size = 1000
	s := newSession(size)
	kinds := map[string]int{}
	for i := range 100 {
		line := s.next(nil)
		if len(line) != size {
			t.Fatalf("record %d has %d bytes, want %d", i, len(line), size)
		}
		r, err := audit.Parse(line)
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if r.SessionID != s.id || r.Seq != uint64(i) {
			t.Errorf("record %d is number %d of session %q, want session %q", i, r.Seq, r.SessionID, s.id)
		}
		kinds[string(r.Outcome)]++
		kinds["operations"] += len(audit.Operations(&r))
	}
	// Every 20th record does two things, and every 50th fails.
	want := map[string]int{"ok": 98, "error": 2, "operations": 105}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	err := printTable(&b, []row{
		{name: "enough", unit: "/s", value: 100_000, compare: atLeast, target: 100_000},
		{name: "too few", unit: "/s", value: 99_999, compare: atLeast, target: 100_000},
		{name: "within", unit: "s", value: 1.04, compare: atMost, target: 2},
		{name: "too much", unit: "MiB", value: 301, compare: atMost, target: 300},
		{name: "told", unit: "/s", value: 5000},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"collector", "target"},
		{"enough", "100000", "/s", "≥", "100000", "pass"},
		{"too", "few", "99999", "/s", "≥", "100000", "MISSED"},
		{"within", "1.04", "s", "≤", "2.00", "pass"},
		{"too", "much", "301", "MiB", "≤", "300", "MISSED"},
		{"told", "5000", "/s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
