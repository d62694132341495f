package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/jsontext"
)

func TestMembers(t *testing.T) {
	obj := []byte(" { \"a\" : 1 ,\n\"\\u0062\":[{}, \"]\"],\"a\":{\"x\":null} } ")
	var got []string
	err := jsontext.Members(obj, func(name, value []byte) bool {
		got = append(got, string(name)+"="+string(value))
		return true
	})
	want := []string{"a=1", `\u0062=[{}, "]"]`, `a={"x":null}`}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Members: %v (-want +got):\n%s", err, diff)
	}
	n := 0
	if err := jsontext.Members(obj, func(_, _ []byte) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("Members went on to member %d, %v after being told to stop at 2", n, err)
	}
}

func TestElements(t *testing.T) {
	var got []string
	err := jsontext.Elements([]byte(` [ 1 , "a,]" ,[ ], {"b":2}]`), func(value []byte) bool {
		got = append(got, string(value))
		return len(got) < 4
	})
	if diff := cmp.Diff([]string{"1", `"a,]"`, "[ ]", `{"b":2}`}, got); diff != "" || err != nil {
		t.Errorf("Elements: %v (-want +got):\n%s", err, diff)
	}
}

func nested(levels int, inner string) string {
	return strings.Repeat("[", levels) + inner + strings.Repeat("]", levels)
}

// values are at the border of strict JSON.
var values = []struct {
	in string
	ok bool
}{
	{`0`, true}, {`-0`, true}, {`-0.5e+7`, true}, {`1E-2`, true}, {`9007199254740993`, true}, {`1e999999`, true},
	{`01`, false}, {`-`, false}, {`+1`, false}, {`.5`, false}, {`1.`, false}, {`1e`, false}, {`1e+`, false}, {`0x1`, false},
	{`NaN`, false}, {`Infinity`, false}, {`-Infinity`, false}, {`1_0`, false},
	{`true`, true}, {`false`, true}, {`null`, true}, {`True`, false}, {`tru`, false}, {`nulll`, false},
	{`""`, true}, {`"\u00e9\/"`, true}, {`"\ud800"`, true}, {`"\x"`, false}, {`"\u12g4"`, false}, {`"`, false}, {`"\"`, false},
	{"\"\t\"", false}, {"\"\x7f\"", true}, {"\"\xff\"", false}, {"\"\xed\xa0\x80\"", false}, {"\"\uFFFD\"", true}, {`'a'`, false},
	{`[]`, true}, {`[1,]`, false}, {`[,1]`, false}, {`[1 2]`, false}, {`[1`, false}, {`[1}`, false}, {`]`, false},
	{`{}`, true}, {`{"a":1}`, true}, {`{"a":1,}`, false}, {`{a:1}`, false}, {`{"a"}`, false}, {`{"a":}`, false}, {`{"a" 1}`, false},
	{`{"a":1]`, false}, {`{1:1}`, false}, {`{"a":1`, false}, {`{"a":1,"a":2}`, true},
	{` [ 1 , { "a" : 2 } ] `, true}, {"\xef\xbb\xbf1", false}, {"\v1", false}, {"/**/1", false}, {`1 2`, false}, {``, false}, {` `, false},
	{nested(jsontext.MaxDepth-1, ""), true}, {nested(jsontext.MaxDepth-1, "1"), true},
}

func TestStrict(t *testing.T) {
	all := func(_, _ []byte) bool { return true }
	for _, tt := range values {
		if got := jsontext.Valid([]byte(tt.in)); got != tt.ok {
			t.Errorf("Valid(%q) = %v", tt.in, got)
		}
		for _, around := range []string{`{"x":%}`, `{"x":1,"y":%}`} {
			obj := strings.Replace(around, "%", tt.in, 1)
			if err := jsontext.Members([]byte(obj), all); (err == nil) != tt.ok {
				t.Errorf("Members(%q): %v", obj, err)
			}
		}
		arr := "[1," + tt.in + "]"
		if err := jsontext.Elements([]byte(arr), func([]byte) bool { return true }); (err == nil) != tt.ok {
			t.Errorf("Elements(%q): %v", arr, err)
		}
	}
	for _, in := range []string{"", "1", `"a"`, "[]", "{} {}", `{"a":1}x`, "{", "{}}"} {
		if jsontext.Members([]byte(in), all) == nil && in != "{}" {
			t.Errorf("Members takes %q for an object", in)
		}
	}
	for _, in := range []string{"", "1", "{}", "[] []", "[1]x", "[", "[1"} {
		if jsontext.Elements([]byte(in), func([]byte) bool { return true }) == nil {
			t.Errorf("Elements takes %q for an array", in)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, tt := range []struct {
		in string
		ok bool
	}{
		{nested(jsontext.MaxDepth, ""), true},
		{nested(jsontext.MaxDepth, "1"), true},
		{nested(jsontext.MaxDepth+1, ""), false},
		{nested(jsontext.MaxDepth+1, "1"), false},
		{nested(1<<20, ""), false},
	} {
		if got := jsontext.Valid([]byte(tt.in)); got != tt.ok {
			t.Errorf("Valid(%d bytes) = %v", len(tt.in), got)
		}
		err := jsontext.Elements([]byte(tt.in), func([]byte) bool { return true })
		if (err == nil) != tt.ok {
			t.Errorf("Elements(%d bytes): %v", len(tt.in), err)
		}
	}
}

// levels is the nesting of a JSON text, brackets in strings not counted.
func levels(b []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			level++
			deepest = max(deepest, level)
		case !quoted && (c == '}' || c == ']'):
			level--
		}
	}
	return deepest
}

func FuzzValid(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(v.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want := json.Valid(b) && utf8.Valid(b) && levels(b) <= jsontext.MaxDepth
		if got := jsontext.Valid(b); got != want {
			t.Fatalf("Valid(%q) = %v, want %v", b, got, want)
		}
		var rest []byte
		if err := jsontext.Members(b, func(_, v []byte) bool { rest = v; return true }); err == nil {
			if !want || len(rest) > 0 && !jsontext.Valid(rest) {
				t.Fatalf("Members accepts %q", b)
			}
		} else if want && strings.HasPrefix(strings.TrimLeft(string(b), " \t\r\n"), "{") {
			t.Fatalf("Members refuses %q", b)
		}
	})
}
