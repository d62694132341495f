package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/samples"
	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"

	"github.com/google/go-cmp/cmp"
)

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

// TestNoAlerts checks that the measured records are of ordinary use: an alert costs
// more than a record.
func TestNoAlerts(t *testing.T) {
	rules, err := alert.LoadShipped(alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	s, d := samples.New(1000), ingest.Decoder{Keep: time.Hour}
	for range 200 {
		var row ingest.Row
		if letter := d.Decode(&row, ingest.Message{Key: []byte(s.ID), Value: s.Next(nil)}); letter != nil {
			t.Fatal(letter.Error)
		}
		for _, a := range rules.Match(&row) {
			t.Errorf("rule %q finds %s", a.Rule, row.Raw)
		}
	}
}

// TestRules checks that the measured rules are as described, and that the
// program loads them.
func TestRules(t *testing.T) {
	path, err := writeRules(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := alert.Load([]alert.File{{Name: path, Text: text}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rules.All()); n != ruleCount {
		t.Errorf("%d rules, want %d", n, ruleCount)
	}
	for _, r := range rules.All() {
		if r.Scheduled() {
			t.Errorf("rule %q does not look at each record", r.Name)
		}
	}
}
