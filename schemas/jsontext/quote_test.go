package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// replaced is s with U+FFFD for each maximal subpart that is not UTF-8. It
// lists every beginning of a code point, where the package under test has a
// table of ranges.
func replaced(s string, beginnings map[string]bool) string {
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			for n < len(s) && beginnings[s[:n+1]] {
				n++
			}
			b.WriteRune(r)
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// beginnings holds every true prefix of the encoding of a code point.
func beginnings() map[string]bool {
	all := make(map[string]bool)
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			for s := string(r); len(s) > 1; {
				s = s[:len(s)-1]
				all[s] = true
			}
		}
	}
	return all
}

// edges are the bytes around which well-formed sequences begin and end.
var edges = []byte{'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef,
	0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff}

func TestNotUTF8(t *testing.T) {
	known := beginnings()
	var s [4]byte
	for i := range len(edges) * len(edges) * len(edges) * len(edges) {
		for j := range s {
			s[j] = edges[i%len(edges)]
			i /= len(edges)
		}
		want := replaced(string(s[:]), known)
		if got := string(jsontext.AppendUnquote(nil, s[:])); got != want {
			t.Fatalf("AppendUnquote(%q) = %q, want %q", s, got, want)
		}
		want = `"` + strings.ReplaceAll(want, "\x7f", `\u007f`) + `"`
		if got := string(jsontext.AppendQuote(nil, string(s[:]))); got != want {
			t.Fatalf("AppendQuote(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{``, ""},
		{`"`, ""},
		{`""`, ""},
		{`a`, "a"},
		{`"a"`, "a"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0041\u00e9\u20AC"`, "Aé€"},
		{`"\ud83d\ude00"`, "😀"},
		{`"\ud83d"`, "\uFFFD"},
		{`"\ude00\ud83d"`, "\uFFFD\uFFFD"},
		{`"\ud83d\u0041"`, "\uFFFDA"},
		{`"\ud83d\ud83d\ude00"`, "\uFFFD😀"},
		{`"\u12"`, "u12"},
		{`"\x41"`, "x41"},
		{`"\é"`, "é"},
		{"\"\\\xff\"", "\uFFFD"},
		{`"\`, ""},
		{"\"a\tb\"", "a\tb"},
	} {
		if got := string(jsontext.AppendUnquote([]byte("-"), []byte(tt.in))); got != "-"+tt.want {
			t.Errorf("AppendUnquote(%s) = %q, want %q", tt.in, got[1:], tt.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\x1b[31m\x7f\u2028\u2029\"\\\n\r\t")
	f.Add("\xf0\x9f\x98\xed\xa0\x80\xff")
	known := beginnings()
	f.Fuzz(func(t *testing.T, s string) {
		lit := jsontext.AppendQuote(nil, s)
		if !utf8.Valid(lit) || strings.ContainsFunc(string(lit), func(r rune) bool {
			return r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029
		}) {
			t.Fatalf("AppendQuote(%q) = %q", s, lit)
		}
		want := replaced(s, known)
		var got string
		if err := json.Unmarshal(lit, &got); err != nil || got != want {
			t.Fatalf("encoding/json reads %s as %q, %v, want %q", lit, got, err, want)
		}
		if got := string(jsontext.AppendUnquote(nil, lit)); got != want {
			t.Fatalf("AppendUnquote(%s) = %q, want %q", lit, got, want)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	f.Add([]byte(`"\ud83d\ude00\n\u0041"`))
	f.Add([]byte(`"\ud83d\u12"`))
	f.Add([]byte("\"\\\xc3\""))
	f.Fuzz(func(t *testing.T, lit []byte) {
		got := jsontext.AppendUnquote(nil, lit)
		if !utf8.Valid(got) {
			t.Fatalf("AppendUnquote(%q) = %q is not UTF-8", lit, got)
		}
		if len(lit) == 0 || lit[0] != '"' || !utf8.Valid(lit) {
			return
		}
		var want string
		if json.Unmarshal(lit, &want) == nil && strings.HasSuffix(string(lit), `"`) && string(got) != want {
			t.Fatalf("AppendUnquote(%q) = %q, encoding/json says %q", lit, got, want)
		}
	})
}
