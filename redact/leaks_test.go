package redact

import (
	"bytes"
	"fmt"
	"math/bits"
	"os"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"auditproxy/redact/lex"
)

// TestLeakSamples hides the secrets that the generators of gitleaks' rules make
// and leaves most of its benign texts alone.
func TestLeakSamples(t *testing.T) {
	r, err := New(Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	secrets, hidden, benign, touched := 0, 0, 0, 0
	for _, rule := range leakRules(t) {
		all, missed := 0, 0
		var miss string
		for _, sample := range rule.Positive {
			out := r.AppendWhole(nil, []byte(sample.Text))
			for _, secret := range slices.Compact(slices.Sorted(slices.Values(sample.Secrets))) {
				all++
				if strings.Contains(string(out), secret) {
					missed++
					miss = sample.Text
				}
			}
		}
		secrets, hidden = secrets+all, hidden+all-missed
		if missed > 0 {
			t.Logf("%s: %d of %d secrets are in clear: %.200q", rule.Rule, missed, all, miss)
		}
		if 2*missed > all {
			t.Errorf("%s: %d of %d secrets are in clear", rule.Rule, missed, all)
		}
		for _, text := range rule.Negative {
			benign++
			if string(r.AppendWhole(nil, []byte(text))) != text {
				touched++
				t.Logf("benign %s: %.200q", rule.Rule, text)
			}
		}
	}
	t.Logf("%d of %d secrets hidden, %d of %d benign texts touched", hidden, secrets, touched, benign)
	if 100*hidden < 97*secrets || 3*touched > benign {
		t.Errorf("%d of %d secrets hidden, %d of %d benign texts touched", hidden, secrets, touched, benign)
	}
}

// sample returns a text that the shape describes.
func (s shape) sample() string {
	var b []byte
	next := 0
	for _, p := range s {
		var chars []byte
		for c := byte(33); c < 127; c++ {
			if p.set.Has(c) && (lex.Classes[c]&lex.IsAlnum != 0 || bits.OnesCount64(p.set[0])+bits.OnesCount64(p.set[1]) < 3) {
				chars = append(chars, c)
			}
		}
		for range p.min {
			b = append(b, chars[next*7%len(chars)])
			next++
		}
	}
	return string(b)
}

// TestEveryFormat makes a sample of each of the project's own formats, of each
// alternative in them, and compares all formats with the golden list, so that
// none disappears unnoticed.
func TestEveryFormat(t *testing.T) {
	r, err := New(Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, rule := range leakRules(t) {
		if !slices.Contains(otherwise, rule.Rule) {
			fmt.Fprintln(&all, "gitleaks", rule.Rule)
		}
	}
	for _, rule := range ownFormats {
		fmt.Fprintln(&all, "own", rule.Rule, rule.Regexp)
	}
	const path = "testdata/formats.golden"
	if *tables {
		if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil || string(golden) != all.String() {
		t.Errorf("%s is not the list of formats (%v); they are\n%s", path, err, &all)
	}
	for line := range strings.Lines(string(golden)) {
		fields := strings.Fields(line)
		if fields[0] != "own" {
			continue
		}
		re, err := syntax.Parse(fields[2], syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range shapes(re) {
			text := s.sample()
			out := r.AppendText(nil, []byte("see "+text+" now"))
			if secret := text[len(text)-8:]; bytes.Contains(out, []byte(secret)) {
				t.Errorf("%s: %s", fields[1], out)
			}
		}
	}
}
