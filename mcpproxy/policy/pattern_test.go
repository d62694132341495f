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
		for _, tt := range []struct {
			c    condition
			want bool
		}{
			{condition{code: opRegex, pattern: p}, re.Match(text)},
			{condition{code: opContains, want: []operand{{kind: kindOf([]byte(`""`)), text: expr}}}, strings.Contains(string(text), expr)},
		} {
			tt.c.chars = tt.c.searched()
			if got := tt.c.of(&argument{value: []byte(`""`), text: text}); got != truthOf(tt.want) {
				t.Errorf("%q in %q, by operator %s: got %v, want %v", expr, text, operators[tt.c.code], got, tt.want)
			}
		}
	})
}
