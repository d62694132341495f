package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/jsontext"
)

// An outline is what a reader found in text: where each value begins and ends,
// to the members of a message's members, every name, and the first byte that it
// could not read.
type outline struct {
	events []string
	failed bool
	flags  Anomaly // of strings: invalid UTF-8 and lone surrogates
}

func (o *outline) add(format string, args ...any) {
	o.events = append(o.events, fmt.Sprintf(format, args...))
}

// outliner is a visitor that makes an outline.
type outliner struct{ outline }

func (o *outliner) begin(r role, off int64, first byte) role {
	o.add("begin %d %c", off, first)
	switch {
	case first != '{' && first != '[':
		return roleNone
	case r == roleTop && first == '[':
		return roleTop
	case r == roleTop:
		return roleMessage
	case r == roleMessage:
		return roleInner
	case r == roleInner:
		return roleInner + 1
	}
	return roleNone
}

func (o *outliner) end(r role, off int64)              { o.add("end %d", off) }
func (o *outliner) name(r role, off int64, lit []byte) { o.add("name %d %q", off, lit) }
func (o *outliner) fail(off int64)                     { o.failed = true }

// scanned is the outline by the scanner, which reads text in pieces that end at
// the cuts. A line feed ends a piece too.
func scanned(text []byte, quick bool, cuts ...int) outline {
	var o outliner
	left := maxChunks
	s := scanner{w: &window{buf: text}, v: &o, maxDepth: MaxDepth, quick: quick}
	s.outer.left = &left
	s.restart()
	for i, c := range text {
		if c == '\n' || c == '\r' && !quick {
			cuts = append(cuts, i, i+1)
		}
	}
	cuts = append(cuts, len(text))
	slices.Sort(cuts)
	from := 0
	for _, to := range cuts {
		switch piece := text[from:to]; {
		case o.failed:
		case string(piece) == "\n":
			s.lineFeed(int64(from))
		case string(piece) == "\r" && !quick:
			s.carriageReturn(int64(from))
		default:
			s.run(piece, int64(from))
		}
		from = to
	}
	s.lineFeed(int64(len(text))) // it ends a number
	o.failed = o.failed || s.st != atTop
	o.flags = s.flags & (InvalidUTF8 | LoneSurrogate)
	return o.outline
}

// walked is the outline by jsontext.Lenient.
func walked(text []byte) outline {
	w := walker{b: text}
	for i := w.b.Start(0); i < len(w.b) && !w.failed; {
		if i = w.value(i, 0, true); i >= 0 {
			i = w.b.Start(i)
		}
	}
	return w.outline
}

type walker struct {
	outline
	b jsontext.Lenient
}

// value walks the value at b[i], of which the outline has the parts that the
// visitor above asks for.
func (w *walker) value(i, level int, top bool) (next int) {
	first := w.b[i]
	if !strings.ContainsRune("\"{[", rune(first)) && w.b.Scalar(i) == i {
		return w.fail()
	}
	w.add("begin %d %c", i, first)
	switch {
	case first != '{' && first != '[' || level == 3:
		next = w.b.Tokens(i, func(_ byte, s jsontext.String, _ []byte) {
			w.flags |= anomalyOf(s.Defects) & (InvalidUTF8 | LoneSurrogate)
		})
	default:
		next = w.container(i, level, top && first == '[')
	}
	if next < 0 {
		return w.fail()
	}
	w.add("end %d", next)
	return next
}

func (w *walker) container(i, level int, top bool) int {
	object := w.b[i] == '{'
	closing := w.b[i] + 2
	if !top {
		level++
	}
	i, more := w.b.First(i)
	for more {
		if object {
			name, value := w.b.Name(i)
			if value < 0 {
				return w.fail()
			}
			w.flags |= anomalyOf(name.Defects) & (InvalidUTF8 | LoneSurrogate)
			lit := w.b[i : i+len(name.Inner)+2]
			w.add("name %d %q", i+len(lit), []byte(lit))
			i = value
		}
		if i = w.value(i, level, top); i < 0 {
			return -1
		}
		i, more = w.b.Next(i, closing)
	}
	if i < 0 {
		return w.fail()
	}
	return i
}

func (w *walker) fail() int {
	w.failed = true
	return -1
}

// sameTokens compares the scanner, with any cut, to jsontext.Lenient. Where
// text cannot be read, they may differ in how much they report before that.
func sameTokens(t *testing.T, text []byte, cuts ...int) {
	t.Helper()
	want := walked(text)
	for _, quick := range []bool{false, true} {
		if quick && bytes.ContainsRune(text, '\n') {
			continue // each line by itself
		}
		got := scanned(text, quick, cuts...)
		if got.failed != want.failed {
			t.Fatalf("%q, cut at %d, quick %t: the scanner fails: %t; Lenient: %t", text, cuts, quick, got.failed, want.failed)
		}
		if quick {
			got.flags = want.flags // it does not look
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(outline{})); diff != "" && !got.failed {
			t.Fatalf("%q, cut at %d, quick %t (-Lenient +scanner):\n%s", text, cuts, quick, diff)
		}
	}
}

// grammars are texts at the border of the lenient grammar.
var grammars = []string{
	`{"a":[1,{"b":"x"}],"c":{"d":{"e":{"f":[]}}}}`, `[{"a":1},[{"b":2}],3]`, `1 2 "x"{}[]`, `{}{"a":1}`, ``, ` `, `"a`, `{"a":1`, `[1`,
	"\u00a0{\u0085\"a\"\u2028:\u2029[\ufeff1\x00,\x1f2]}\x01", "{\"a\":1\u2003}", "\xC2", "\xE2\x80", "\xEF\xBB", "\xE2\x80\xAA", "\xEF\xBB\xBE", "1\xC2\xA0", "1\xC2", "[1\xC3\xA0]", "\x7f",
	`[1,]`, `{"a":1,}`, `[,]`, `[1,,2]`, `{,}`, `{"a":1,,}`, `[1 2]`, `{"a":1 "b":2}`, `{"a" 1}`, `{"a"::1}`, `{"a":,}`, `{"a"}`, `{"a":}`, `{1:2}`, `{a:1}`, `[1:2]`, `:`, `,`,
	`[}`, `{]`, `[1}`, `{"a":1]`, `]`, `{"a":{"b":[{"c":[1}]}}`, `{"a":{"b":{"c":{"d":1]}}}}`, `{"a":{"b":{"c":{"d" "e"}}}}`,
	`NaN`, `[-Infinity,1e5,-0,01,+1,.5,1.,0x1F,True,undefined]`, `[1_0]`, `['x']`, `[1"x"]`, `["x"1]`, `[tru"e"]`, `{"a":1{}}`, `[1[2]]`, `/**/1`, `#`, `\u0041`,
	`"\u0041\n\"\\\/\x"`, `"\u12"`, `"\u12\"x"`, `"\u1`, `"\`, "\"\\\xC3\xA9\"", `"\ud83d\ude00\ud83d"`, `"\ude00"`, `"\ud83dx"`, `"\ud83d\n"`, `"\uD83D\u0041"`, `"\ud83d\ud83d\ude00"`,
	"\"\xC3\"", "\"\xC3\xA9\"", "\"\xE2\x82\"", "\"\xE2\x82\xAC\"", "\"\xF0\x9F\x98\x80\"", "\"\xED\xA0\x80\"", "\"\xC3x\xC3\xA9\"", "\"\x01\t\x1f\x7f\"", "\"\\\x01\"",
	"\"a\nb\"", "\"a\\\nb\"", "\"a\\u1\nb\"", "[1\n,\n2]", "{\"a\"\n:\r\n1\r}", "\"a\rb\"", "\"\\\rb\"", "\"\\u1\rb\"", "\"\\ud83d\r\\ude00\"", "\"\xC3\r\xA9\"", "1\r2", "\xC2\r\xA0", "\xC2\n\xA0",
	`"` + strings.Repeat("x", 70) + "\xC3\xA9" + strings.Repeat("y", 70) + `\n"`, strings.Repeat("[", 130) + strings.Repeat("]", 130), strings.Repeat(`{"a":[`, 65) + strings.Repeat("]}", 65), strings.Repeat("[", 66) + "}",
}

// TestGrammar holds the scanner, which can stop at any byte, to the grammar of
// jsontext.Lenient: the same tokens for the same bytes, at every cut.
func TestGrammar(t *testing.T) {
	for _, text := range grammars {
		for _, around := range []string{"%", `{"a":%}`, `{"a":{"b":[%,2]}}`, `{"a":{"b":{"c":{"d":%}}}}`, `{%:1}`} {
			text := []byte(strings.Replace(around, "%", text, 1))
			for cut := range len(text) + 1 {
				sameTokens(t, text, cut)
			}
			all := make([]int, len(text))
			for i := range all {
				all[i] = i
			}
			sameTokens(t, text, all...)
		}
	}
}

func FuzzGrammar(f *testing.F) {
	for _, text := range grammars {
		f.Add([]byte(text), uint16(len(text)/2), uint16(len(text)/3))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut, cut2 uint16) {
		sameTokens(t, text, min(int(cut), len(text)), min(int(cut2), len(text)))
	})
}
