package jsontext_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/jsontext"
)

// lenient are texts at the border of the lenient grammar.
var lenient = []struct {
	in string
	ok bool
}{
	{`NaN`, true}, {`-Infinity`, true}, {`+1`, true}, {`.5`, true}, {`1.`, true}, {`0x1F`, true}, {`undefined`, true},
	{`1_0`, false}, {`'a'`, false}, {`é`, false}, {`/**/1`, false}, {"\x7f", false}, {`1"x"`, false}, {`"x"1`, false}, {`1[2]`, false},
	{`[1,]`, true}, {`{"a":1,}`, true}, {`[,]`, false}, {`[1,,]`, false}, {`[,1]`, false}, {`[1 2]`, false}, {`{"a":1 "b":2}`, false}, {`{,}`, false},
	{`{"a" 1}`, false}, {`{"a"::1}`, false}, {`{"a"}`, false}, {`{"a":}`, false}, {`{"a":,}`, false}, {`{1:1}`, false}, {`{a:1}`, false}, {`[1:2]`, false},
	{`[}`, false}, {`{]`, false}, {`[1}`, false}, {`{"a":[1}]`, false}, {`]`, false}, {`[1`, false}, {`{"a":1`, false}, {`{"a"`, false}, {`{`, false}, {``, false}, {` `, false},
	{"\u00a0[\u00851\u2028,\u20292\ufeff]\x00\x1f\v", true}, {"[1\u2003]", false}, {"[1\u3000]", false}, {"[\xC2]", false}, {"[\xE2\x80]", false}, {"[\xE2\x80\xAA]", false}, {"\xEF\xBB", false},
	{`"\x"`, true}, {`"\u12"`, true}, {`"\ud800"`, true}, {"\"\xff\"", true}, {"\"\t\x00\"", true}, {"\"\\\x01\"", true}, {`"\`, false}, {`"\"`, false},
	{"\"a\nb\"", false}, {"\"\\\n\"", false}, {"\"\\u0\n\"", false}, {"[\n1\r]", true},
	{strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16), true}, {strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16-1) + "}", false},
	{strings.Repeat(`{"a":[`, 99) + strings.Repeat("]}", 99), true}, {strings.Repeat(`{"a":[`, 99) + strings.Repeat("}]", 99), false},
}

func TestLenient(t *testing.T) {
	for _, tt := range lenient {
		b := jsontext.Lenient(tt.in)
		end := -1
		if i := b.Start(0); i < len(b) {
			end = b.Skip(i)
		}
		if ok := end >= 0 && b.Start(end) == len(b); ok != tt.ok {
			t.Errorf("Skip(%.40q) = %d, want that it reads all: %t", tt.in, end, tt.ok)
		}
		n := 0
		for v := range jsontext.Lenient("[0," + tt.in + "]").Elements() {
			n += len(v)
		}
		inner := len(bytes.Trim(b, "\u00a0\ufeff \x00\x1f\v"))
		if tt.ok && n != 1+inner {
			t.Errorf("Elements yields %d bytes of %.40q, want %d", n, tt.in, 1+inner)
		}
	}
}

func TestLenientMembers(t *testing.T) {
	b := jsontext.Lenient("\ufeff{\"a\":1,\"\\u0061\":[2,],\"b\\ud83d\\ude00\":NaN\u00a0,\"\xff\":{}} x")
	var got []string
	for name, v := range b.Members() {
		got = append(got, string(name.Append(nil))+"="+string(v))
	}
	if diff := cmp.Diff([]string{"a=1", "a=[2,]", "b😀=NaN", "\uFFFD={}"}, got); diff != "" {
		t.Errorf("Members (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"a": "[2,]", "b😀": "NaN", "\uFFFD": "{}", "c": ""} {
		if got := string(b.Member(name)); got != want {
			t.Errorf("Member(%q) = %q, want %q", name, got, want)
		}
	}
	for name := range b.Members() {
		if !name.Is("a") {
			t.Errorf("the first name is %q", name.Inner)
		}
		break
	}
	for _, in := range []string{`[1]`, `1`, ``, `{`, `{"a":1]`} {
		for name, v := range jsontext.Lenient(in).Members() {
			if in != `{"a":1]` {
				t.Errorf("Members of %s yields %s, %s", in, name.Inner, v)
			}
		}
	}
}

func TestStringDefects(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want jsontext.Defects
	}{
		{`"abc"`, 0}, {`"é\n\u00e9"`, 0}, {`"\ud83d\ude00"`, 0}, {`"\ud83d\ude00\ud83d\ude00"`, 0},
		{`"\x"`, jsontext.Syntax}, {`"\u12"`, jsontext.Syntax}, {`"\é"`, jsontext.Syntax}, {"\"\\\x01\"", jsontext.Syntax | jsontext.Control},
		{"\"\x01\"", jsontext.Control}, {"\"\x7f\"", 0}, {"\"\xff\"", jsontext.BadUTF8}, {"\"\xC3\"", jsontext.BadUTF8}, {"\"\xC3\\n\xA9\"", jsontext.BadUTF8},
		{`"\ud83d"`, jsontext.LoneSurrogate}, {`"\ude00"`, jsontext.LoneSurrogate}, {`"\ud83dx\ude00"`, jsontext.LoneSurrogate}, {`"\ud83d\n\ude00"`, jsontext.LoneSurrogate},
		{`"\ud83d\ud83d\ude00"`, jsontext.LoneSurrogate}, {`"\ud83d\u00e9"`, jsontext.LoneSurrogate}, {`"\ud83d\u12"`, jsontext.LoneSurrogate | jsontext.Syntax},
	} {
		in := strings.Repeat("x", 40)
		for _, in := range []string{tt.in, `"` + in + tt.in[1:], tt.in[:len(tt.in)-1] + in + `"`} {
			if s, next := jsontext.Lenient(in).String(0); s.Defects != tt.want || next != len(in) {
				t.Errorf("String(%q) has defects %b up to %d, want %b up to %d", in, s.Defects, next, tt.want, len(in))
			}
			for cut := 1; cut < len(in); cut++ {
				var s jsontext.StringScanner
				if n, ended := s.Scan([]byte(in[:cut]), 1); n != cut || ended {
					t.Fatalf("%q ends at %d", in[:cut], n)
				}
				if n, ended := s.Scan([]byte(in[cut:]), 0); n != len(in)-cut || !ended || s.Defects != tt.want {
					t.Errorf("%q, cut at %d: ends %t at %d with defects %b, want %b", in, cut, ended, n, s.Defects, tt.want)
				}
			}
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		want jsontext.Kind
		in   string
	}{
		{jsontext.Null, "null"}, {jsontext.Bool, "true false"}, {jsontext.NaN, "NaN Infinity -Infinity"},
		{jsontext.Integer, "0 -0 1 123456789012345678901234567890"}, {jsontext.Float, "0.0 1e5 1E-5 -1.5e+7 1e999999999"},
		{jsontext.Odd, "01 -01 1. .5 + - -- 1e 1e+ 1.e5 +1 0x1 True nul nulll -NaN +Infinity -infinity inf nan 1a"},
	} {
		for in := range strings.FieldsSeq(tt.in) {
			if got := jsontext.KindOf([]byte(in)); got != tt.want {
				t.Errorf("KindOf(%s) = %d, want %d", in, got, tt.want)
			}
			number := tt.want == jsontext.Integer || tt.want == jsontext.Float
			if _, ok := jsontext.ParseNumber([]byte(in)); ok != number {
				t.Errorf("ParseNumber(%s) is %t", in, ok)
			}
		}
	}
	if got := jsontext.KindOf(nil); got != jsontext.Odd {
		t.Errorf("KindOf of nothing is %d", got)
	}
}

// FuzzLenient checks that the lenient grammar contains the strict one, and that
// it reads strict text as encoding/json does. Of any other text, the functions
// that read its parts agree.
func FuzzLenient(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(v.in))
	}
	for _, v := range lenient {
		if len(v.in) < 1000 {
			f.Add([]byte(v.in))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := jsontext.Lenient(b)
		i := l.Start(0)
		if i == len(b) {
			return
		}
		var tokens []string
		end := l.Tokens(i, func(structure byte, s jsontext.String, scalar []byte) {
			switch {
			case structure == ',' || structure == ':':
			case structure != 0:
				tokens = append(tokens, string(structure))
			case scalar != nil:
				tokens = append(tokens, string(scalar))
			default:
				tokens = append(tokens, fmt.Sprintf("%q", s.Append(nil)))
			}
		})
		if end != l.Skip(i) || end > len(b) {
			t.Fatalf("Tokens(%q) ends at %d, Skip at %d", b, end, l.Skip(i))
		}
		if end < 0 || l.Start(end) < len(b) {
			if jsontext.Valid(b) {
				t.Fatalf("strict text %q is read to %d", b, end)
			}
			return
		}
		if !jsontext.Valid(b) {
			return
		}
		var want []string
		for d := decoder(b); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			switch v := token.(type) {
			case json.Delim:
				want = append(want, v.String())
			case string:
				want = append(want, fmt.Sprintf("%q", v))
			case nil:
				want = append(want, "null")
			default:
				want = append(want, fmt.Sprint(v))
			}
		}
		if diff := cmp.Diff(want, tokens); diff != "" {
			t.Fatalf("tokens of %q (-encoding/json +Lenient):\n%s", b, diff)
		}
	})
}

func decoder(b []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d
}
