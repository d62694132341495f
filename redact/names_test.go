package redact_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"auditproxy/redact"

	"github.com/google/go-cmp/cmp"
)

// lines reads a file of testdata without its comments.
func lines(t testing.TB, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// TestOrdinaryArguments redacts arguments without a secret.
func TestOrdinaryArguments(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, in := range lines(t, "testdata/ordinary.txt") {
		if got, flags := r.AppendArgs(nil, []byte(in)); string(got) != in || flags != 0 {
			t.Errorf("AppendArgs(%s) = %s, flags %b", in, got, flags)
		}
	}
}

// TestEveryName tries each entry of the golden list, which is names.txt: an
// entry that disappears from the one must be removed from the other on purpose.
func TestEveryName(t *testing.T) {
	const path = "testdata/names.golden"
	names := lines(t, "names/names.txt")
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden := lines(t, path)
	if diff := cmp.Diff(golden, names); diff != "" {
		t.Errorf("names.txt (-%s +names.txt):\n%s", path, diff)
	}
	r := newRedactor(t, redact.Config{})
	check := func(name string, want bool) {
		t.Helper()
		got, _ := r.AppendArgs(nil, []byte(`{"`+name+`":"x"}`))
		if bytes.Contains(got, []byte(`"x"`)) == want {
			t.Errorf("%q: %s, want sensitive = %t", name, got, want)
		}
	}
	section := ""
	for _, name := range golden {
		if strings.HasPrefix(name, "[") {
			section = name
			continue
		}
		joined := strings.ReplaceAll(name, " ", "")
		snake := strings.ReplaceAll(name, " ", "_")
		switch section {
		case "[words]":
			for _, name := range []string{name, snake, joined, "my_" + snake, snake + "_value", "my-" + snake + "-2-value", strings.ToUpper(snake)} {
				check(name, true)
			}
			if len(joined) >= 6 {
				check("zz"+joined+"zz", true)
			}
		case "[suffix]":
			check("db"+joined, true)
			check("my_DB"+strings.ToUpper(joined)+"_1", true)
		case "[affix]":
			check("db"+joined, true)
			check(joined+"string", true)
		case "[whole]":
			check(name, true)
			check("my_"+snake, false)
		case "[key]":
			check("VENDOR_"+strings.ToUpper(snake), true)
			check("Vendor-"+snake, true)
			check("vendor_"+snake, false)
			check(snake, false)
		case "[clear]":
			check(snake, false)
			check(strings.ToUpper(snake), false)
			check(joined, false)
			check("my_"+snake+"_value", false)
			check(snake+"_password", true)
		case "[about]":
			check("password_"+snake, false)
			check("password_"+snake+"_value", true)
		case "[query]":
			if got := clean(r, "https://h/?a=1&"+snake+"=abc&b=2"); got != "https://h/?a=1&"+snake+"=[redacted len=3]&b=2" {
				t.Errorf("%s in a query: %s", name, got)
			}
		}
	}
}
