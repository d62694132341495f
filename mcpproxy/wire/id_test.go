package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestAppendIDKey(t *testing.T) {
	for _, tt := range []struct {
		request, answer string
		want            string // the comparison that matches first, "" for none
	}{
		{"1", "1", "exact"},
		{"1", `"1"`, ""},
		{"1", "2", ""},
		{"1e0", "1", "exact"},
		{"1.0", "1", "exact"},
		{"-0", "0", "exact"},
		{"0.1e1", "1", "exact"},
		{"120e-1", "12", "exact"},
		{"2.50", "2.5", "exact"},
		{"1e999999999", "1e999999999", "exact"},
		{"1e999999999", "10e999999998", "exact"},
		{"1e999999999", "1e999999998", "float"}, // both infinite
		{"1e99999999999999999999", "1e99999999999999999999", "exact"},
		{"9007199254740993", "9007199254740993", "exact"},
		{"9007199254740993", "9007199254740992", "float"},
		{"9007199254740992", "9007199254740993", ""},
		{"92233720368547808", "92233720368547800", "float"}, // the shortest digits of that float64
		{"92233720368547800", "92233720368547808", "float"},
		{"99999999999999999999", "100000000000000000000", "float"},
		{"1.5", "1", "int"},
		{"1e-1", "0", "int"},
		{"-1.5", "-1", "int"},
		{"1E30", "-9223372036854775808", "int"},
		{"9223372036854775808", "-9223372036854775808", "int"},
		{"1", "1.5", ""},
		{`"x\u0079"`, `"xy"`, "exact"},
		{"\"\xFF\"", `"` + "\uFFFD" + `"`, "exact"},
		{"\"\xFF\"", `"\ufffd"`, "exact"},
		{"\"a\xE2\x80\"", "\"a\uFFFD\"", "exact"},
		{"\"a\xE2\x80b\"", "\"a\uFFFD\uFFFDb\"", "float"},
		{"\"\xFF\"", "\"a\uFFFD\"", ""},
		{`"a"`, `"b"`, ""},
		{"true", "true", "exact"},
		{"true", `"true"`, ""},
		{`{"a":1}`, `{ "a" : 1 }`, "exact"},
		{`["a b"]`, `["ab"]`, ""},
		{"null", "null", "exact"},
	} {
		got := ""
		for m, name := range []string{"exact", "float", "int"} {
			request := AppendIDKey(nil, []byte(tt.request), IDMatch(m), false)
			if got == "" && request != nil && bytes.Equal(request, AppendIDKey(nil, []byte(tt.answer), IDMatch(m), true)) {
				got = name
			}
		}
		if got != tt.want {
			t.Errorf("request %s, answer %s: match %q, want %q", tt.request, tt.answer, got, tt.want)
		}
	}
}

// TestIDKeyOfPlainIDs lists ids for which a proxy needs only one key.
func TestIDKeyOfPlainIDs(t *testing.T) {
	for raw, want := range map[string]string{
		"1": "", "-5": "", "9007199254740992": "", "1e22": "int", "9007199254740993": "float int", "1.5": "float int", "1e23": "float int",
		"9223372036854775808": "float int", `"1"`: "", "true": "", "null": "", "{}": "", "01": "", "NaN": "", "\"\xFF\"": "float",
	} {
		var got []string
		for m, name := range []string{"exact", "float", "int"} {
			if k := AppendIDKey([]byte("x"), []byte(raw), IDMatch(m), false); len(k) > 1 && m > 0 {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has keys %q beside the exact one, want %q", raw, got, want)
		}
	}
}

func TestIDKeyIsShort(t *testing.T) {
	for m := range IntID + 1 {
		if k := AppendIDKey(nil, []byte("1e999999999"), m, true); len(k) > 32 {
			t.Errorf("comparison %d: a key of %d bytes", m, len(k))
		}
	}
}

func FuzzIDKey(f *testing.F) {
	for _, s := range []string{"1", "-0", "1.50e3", "9007199254740993", "1e400", `"x\u0079"`, "00", "1e-400", "123456789012345678901234567890e-10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key := func(s string, m IDMatch) string { return string(AppendIDKey(nil, []byte(s), m, true)) }
		var n json.Number
		if s == "" || strings.TrimSpace(s) != s || s[0] == '"' || json.Unmarshal([]byte(s), &n) != nil || n == "" {
			return
		}
		// A number is itself with its exponent moved, and no other number.
		if mantissa, exp, ok := strings.Cut(strings.ToLower(s), "e"); !ok {
			if key(s+"e0", ExactID) != key(s, ExactID) {
				t.Errorf("%s and %se0 differ", s, s)
			}
		} else if e, err := strconv.ParseInt(exp, 10, 32); err == nil && !strings.Contains(mantissa, ".") {
			if key(mantissa+"0e"+strconv.FormatInt(e-1, 10), ExactID) != key(s, ExactID) && strings.Trim(mantissa, "-0") != "" && mantissa != "" {
				t.Errorf("%s differs with its exponent moved", s)
			}
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			if back := strconv.FormatFloat(f, 'g', -1, 64); key(back, FloatID) != key(s, FloatID) {
				t.Errorf("%s and %s are one float64, their keys differ", s, back)
			}
			if i := int64(f); math.Abs(f) < 1<<62 && key(strconv.FormatInt(i, 10), IntID) != key(s, IntID) {
				t.Errorf("%s is %d as int64, their keys differ", s, i)
			}
		}
	})
}

func TestMember(t *testing.T) {
	for _, tt := range []struct{ obj, name, want string }{
		{`{"a":1}`, "a", "1"},
		{` { "a" : 1 , "b" : [ {"a":2}, "]" ] } `, "b", `[ {"a":2}, "]" ]`},
		{`{"b":{"a":1},"a":{"x":"}\""}}`, "a", `{"x":"}\""}`},
		{`{"a":1,"\u0061":"x"}`, "a", `"x"`},
		{`{"a":1,"A":2}`, "a", "1"},
		{`{"b":"a","c":["a",1]}`, "a", ""},
		{`{"a":-Infinity,}`, "a", "-Infinity"},
		{"{\"a\"\x0b:\uFEFF1}", "a", "1"},
		{`{}`, "a", ""},
		{`[{"b":1}]`, "a", ""},
		{`{"a":`, "a", ""},
		{`{"a`, "a", ""},
		{`null`, "a", ""},
		{``, "a", ""},
		{"\u00a0{\ufeff\"a\"\u2028:\x00[1,]\u0085}", "a", "[1,]"},
		{`{"a":1 "b":2}`, "b", ""}, // none of these is in a message
		{`{"a":[1},"b":2}`, "b", ""},
		{`{"a":1,,"b":2}`, "b", ""},
		{`x{"a":1}`, "a", ""},
	} {
		if got := string(Member([]byte(tt.obj), tt.name)); got != tt.want {
			t.Errorf("member %s of %s is %q, want %q", tt.name, tt.obj, got, tt.want)
		}
	}
}

// FuzzMember compares Member with encoding/json.
func FuzzMember(f *testing.F) {
	f.Add(`{"a":[1,{"b":2}],"b":"\"","a":null}`)
	f.Fuzz(func(t *testing.T, s string) {
		var m map[string]json.RawMessage
		valid := json.Unmarshal([]byte(s), &m) == nil && m != nil
		if !valid {
			Member([]byte(s), "a")
			return
		}
		for name, want := range m {
			if strings.Contains(name, "\uFFFD") {
				continue // each replaces other parts of invalid UTF-8
			}
			if got := Member([]byte(s), name); !bytes.Equal(got, want) {
				t.Errorf("member %q of %q is %q, want %q", name, s, got, want)
			}
		}
	})
}
