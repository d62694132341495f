package policy

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"time"
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
			a := argument{value: []byte(`""`), text: text}
			a.count()
			if got := tt.c.of(&a); got != truthOf(tt.want) {
				t.Errorf("%q in %q, by operator %s: got %v, want %v", expr, text, operators[tt.c.code], got, tt.want)
			}
		}
	})
}

// TestSkippedRulesPass checks that no rule is skipped that would deny.
func TestSkippedRulesPass(t *testing.T) {
	var conditions []string
	for _, c := range []string{`"eq","value":"rm"`, `"neq","value":"rm"`, `"in","value":["rm",1]`, `"not_in","value":["rm"]`, `"lt","value":2`, `"gte","value":2`,
		`"regex","value":"(?i)RM\\s+-"`, `"regex","value":"rm -"`, `"regex","value":"^$"`, `"regex","value":"ſ|k"`, `"regex","value":"(?i)k"`, `"contains","value":"rm"`, `"contains","value":"é"`,
		`"contains","value":1`, `"contains","value":""`, `"exists","value":true`, `"exists","value":false`} {
		for _, path := range []string{"args.a", "args.b.c"} {
			conditions = append(conditions, `{"conditions":[{"path":"`+path+`","op":`+c+`}]}`)
		}
	}
	p, err := Load([]byte(`{"version":"1","default":"allow","tools":{"x":{"deny_if":[`+strings.Join(conditions, ",")+`]}}}`), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	x := p.of("x")
	skipped, denied := 0, 0
	for _, v := range []string{``, `null`, `1`, `"1"`, `"rm"`, `"RM -rf"`, `"rm -rf"`, `"ls"`, `""`, `["rm"]`, `[]`, `{}`, `"é"`, `"\u212a"`, `"K"`, `"r\u006d -"`, `true`, `"` + strings.Repeat("rm - ", 2000) + `"`} {
		arguments := `{"a":` + v + `,"b":{"c":` + v + `}}`
		if v == "" {
			arguments = `{}`
		}
		found := make([]argument, len(x.paths))
		if !values([]byte(arguments), x.paths, found) {
			t.Fatalf("%s cannot be read", arguments)
		}
		for _, i := range x.searched {
			found[i].count()
		}
		for i := range x.rules {
			r := &x.rules[i]
			denies := r.fails(found, true)
			if r.skips(found) {
				skipped++
				if denies {
					t.Errorf("%.60s: rule %s is skipped, though it denies", arguments, conditions[i])
				}
			}
			plain := *r
			for n := range found {
				found[n].counted = false // no search is left out
			}
			if got := plain.fails(found, true); got != denies {
				t.Errorf("%.60s: rule %s denies: %v, without looking at characters %v", arguments, conditions[i], denies, got)
			}
			for _, n := range x.searched {
				found[n].counted = true
			}
			if denies {
				denied++
			}
		}
	}
	if skipped < 50 || denied < 100 {
		t.Errorf("%d rules are skipped and %d deny", skipped, denied)
	}
}

// Every letter is found in any case; other characters are themselves.
func TestContainsFold(t *testing.T) {
	for c := byte('A'); c <= 'Z'; c++ {
		lowerCase := string(rune(c + 'a' - 'A'))
		for _, text := range []string{"x" + string(rune(c)) + string(rune(c)), "x" + lowerCase + string(rune(c))} {
			if !containsFold([]byte(text), lowerCase+lowerCase) {
				t.Errorf("%q has no %q", text, lowerCase+lowerCase)
			}
		}
	}
	for text, need := range map[string]string{"a@": "a`", "a[": "a{", "@a": "`a", "ab": "ba", "a": "ab"} {
		if containsFold([]byte(text), need) {
			t.Errorf("%q has %q", text, need)
		}
	}
}

// All names of a long list are told apart, and found again.
func TestNameSet(t *testing.T) {
	var s nameSet
	for round := range 2 {
		for i := range 100 {
			if name := strings.Repeat("n", i+1); s.add(name) != (round == 0) {
				t.Errorf("round %d: name %d of 100: added %v", round, i, round != 0)
			}
		}
	}
}

// What a call added is given back in the window that it was added in, or the one
// after it.
func TestCountLess(t *testing.T) {
	c := Count{Start: 120, Value: 5, Before: 7}
	for start, want := range map[int64]Count{
		120: {Start: 120, Value: 2, Before: 7}, 60: {Start: 120, Value: 5, Before: 4}, 0: c, 180: c,
	} {
		if got := c.Less(start, 60, 3); got != want {
			t.Errorf("without 3 of the window from %d: %+v, want %+v", start, got, want)
		}
	}
	if got := c.Less(60, 60, 9); got.Before != 0 {
		t.Errorf("without more than there was: %+v, want 0 before", got)
	}
}

// A sum that no number can hold is the largest one: it gives no quota back.
func TestCountOverflow(t *testing.T) {
	c := Count{Start: 60}.Add(60, 1<<62).Add(60, 1<<62)
	if c.Value != math.MaxInt64 {
		t.Errorf("the sum of two large amounts is %d", c.Value)
	}
}

// A call that was held up until the next window has begun finds the count of its own.
func TestCountBefore(t *testing.T) {
	count, _, _, err := Count{Start: 60, Value: 5}.At(time.Unix(120, 0), 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, start, value, err := count.At(time.Unix(119, 0), 60); start != 60 || value != 5 || err != nil {
		t.Errorf("the window from %d has %d, %v, want 5 from 60", start, value, err)
	}
	if _, _, _, err := (Count{Start: 4}).At(time.Unix(2, 0), 1); err != ErrClock {
		t.Errorf("two windows back: %v", err)
	}
}
