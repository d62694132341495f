package policy

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// FuzzPattern checks that looking for the needed text first changes no match.
func FuzzPattern(f *testing.F) {
	for _, re := range []string{`(?i)drop\s+table`, `^ls$`, `rm -rf`, `a(b|c)d+e`, `(?i)(kiss)+`, `x{2,3}y`, `(?i:A)b`, `(?i)ß`, `[aA]b*`, ``, "\ufffd", `(?s).*\n`, `\Qa.b\E`, `(?i)` + strings.Repeat("ab", 40)} {
		for _, text := range []string{"", "ls", "\ufffd", "DROP\tTable x", "sudo rm -rf /", "abddde", "KISS", "\u212aiſS", "\u212aiſs kiss", "xxy", "aB", "\xff", "ẞ", strings.Repeat("aB", 41)} {
			f.Add(re, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, expr string, text []byte) {
		re, err := regexp.Compile(expr)
		if err != nil {
			return
		}
		parsed, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		need, fold := needed(parsed.Simplify())
		p := pattern{func() *regexp.Regexp { return re }, need, fold && need != ""}
		if got, want := p.match(text), re.Match(text); got != want {
			t.Errorf("%q in %q, needed %q: got %v, want %v", expr, text, need, got, want)
		}
	})
}
