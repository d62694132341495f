package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/audit"
)

func TestReadings(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
		more bool
	}{
		{`{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}`, nil, false},
		{`null`, nil, false},
		{`"x"`, nil, false},
		{`{"a":1,"a":2}`, []string{`{"a":2}`, `{"a":1}`, `{"a":2}`}, false},
		{`{"a":1,"a":null}`, []string{`{"a":1}`, `{"a":1}`, `{"a":null}`}, false},
		{`{"output_path":"/ok","Output_Path":"/evil"}`, []string{`{"output_path":"/evil"}`, `{"output_path":"/ok"}`, `{"output_path":"/evil"}`}, false},
		{`{"keys":1,"\u212aeys":2,"key\u017f":3}`, []string{`{"key\u017f":3}`, `{"key\u017f":1}`, `{"key\u017f":2}`, `{"key\u017f":3}`}, false},
		{`{"a":{"x":1},"a":{"y":2}}`, []string{`{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`, `{"a":{"y":2}}`}, false},
		{`{"operations":[{"tool":"a"},{"tool":"b","Tool":"c"}]}`, []string{`{"operations":[{"tool":"a"},{"tool":"c"}]}`,
			`{"operations":[{"tool":"a"},{"tool":"b"}]}`, `{"operations":[{"tool":"a"},{"tool":"c"}]}`}, false},
		{`{"a":{"b":1,"b":2},"a":{"b":3}}`, []string{`{"a":{"b":3}}`, `{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"b":3}}`}, false},
		{`{"Output_Path":"/evil"}`, []string{`{"output_path":"/evil"}`}, false},
		{`{"x":{"Operations":[{"\u0054ool":"a","Key\u017f":1}]}}`, []string{`{"x":{"operations":[{"tool":"a","Key\u017f":1}]}}`}, false},
		{`{"outputPath":"/ok","FILE":1}`, nil, false},
		{`{"operations":" [{\"tool\":\"a\"}]","x":1}`, []string{`{"operations":[{"tool":"a"}],"x":1}`}, false},
		{`{"operations":"[{\"tool\":\"a\",\"operations\":\"[{\\\"tool\\\":\\\"b\\\"}]\"}]"}`, []string{`{"operations":[{"tool":"a","operations":[{"tool":"b"}]}]}`}, false},
		{`{"operations":"[{\"tool\":\"a\"}","x":"[1]"}`, nil, false},
		{`{"operations":"{}"}`, nil, false},
		{`{"a":1,"a":2,"a":3,"a":4,"a":5,"a":6}`, []string{`{"a":6}`, `{"a":1}`, `{"a":2}`, `{"a":3}`}, true},
	} {
		list, more := readingsOf(tt.in, 4)
		var got []string
		for _, b := range list {
			got = append(got, string(b))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || more != tt.more {
			t.Errorf("%s, more %v (-want +got):\n%s", tt.in, more, diff)
		}
	}
}

// readingsOf has budget for any test.
func readingsOf(in string, want int) (list [][]byte, more bool) {
	budget := 1 << 30
	return Readings([]byte(in), want, &budget)
}

func TestLongReadings(t *testing.T) {
	long := `"b":"` + strings.Repeat("x", readingBytes) + `"}`
	if list, more := readingsOf(`{"a":1,`+long, 4); list != nil || more {
		t.Errorf("%d readings of arguments that have each name once, more %v", len(list), more)
	}
	if list, more := readingsOf(`{"a":1,"A":2,`+long, 4); list != nil || !more {
		t.Errorf("%d readings of long arguments, more %v", len(list), more)
	}
	if list, more := readingsOf(`{"a":1,"A":2}`, 0); list != nil || !more {
		t.Errorf("%d readings where none is wanted, more %v", len(list), more)
	}
}

// TestReadingsCost counts the bytes scanned of hostile arguments: Readings ends
// when its budget is spent, and reports it.
func TestReadingsCost(t *testing.T) {
	const all = 4 << 20
	nested, lists := "1", "1"
	for i := range 3 * readingDepth {
		if i < 12 {
			nested = `{"a":` + nested + `,"A":` + nested + `}`
		}
		lists = `[{"a":1,"A":2,"b":` + lists + `}]`
	}
	var variants strings.Builder
	for variants.Len() < 1<<20 {
		for i := range 16 {
			name := []byte("abcd")
			for bit := range name {
				name[bit] ^= byte(i>>bit&1) << 5
			}
			fmt.Fprintf(&variants, `"%s":{"x":[{"a":1,"A":2}]},`, name)
		}
	}
	for _, tt := range []struct {
		name, in string
		least    int // of bytes scanned
	}{
		{"10 000 duplicates", `{` + strings.Repeat(`"a":1,`, 10_000) + `"a":1}`, 60_000},
		{"10 000 duplicates in a list", `{"x":[` + strings.Repeat(`{"a":1,"a":2},`, 10_000) + `1]}`, 140_000},
		{"duplicates 32 levels deep", strings.Repeat(`{"a":1,"a":`, 31) + `{"b":1,"b":2}` + strings.Repeat("}", 31), 300},
		{"duplicates 32 levels deep at the end", strings.Repeat(`{"a":`, 31) + `{"b":1` + strings.Repeat(`,"b":[{"c":1,"c":{}}]`, 10_000) + `}` + strings.Repeat("}", 31), 4 << 20 / 2},
		{"every level twice", nested, 60_000},
		{"deeper than is looked", `{"x":` + lists + `}`, 1000},
		{"1 MiB of variants", `{` + variants.String() + `"z":1}`, 1 << 20},
		{"256 KiB of variants", `{` + variants.String()[:strings.LastIndex(variants.String()[:readingBytes-8], ",")] + `}`, 1 << 20},
	} {
		if !json.Valid([]byte(tt.in)) {
			t.Fatalf("%s: no JSON", tt.name)
		}
		left := all
		var list [][]byte
		more := false
		for range 17 { // a call and its candidates
			l, m := Readings([]byte(tt.in), maxCandidates, &left)
			list, more = append(list, l...), m
		}
		scanned := all - left
		t.Logf("%s: %d bytes, %d scanned, %d readings, more %v", tt.name, len(tt.in), scanned, len(list), more)
		if scanned < tt.least || scanned > all {
			t.Errorf("%s: %d bytes scanned, want %d to %d", tt.name, scanned, tt.least, all)
		}
		if !more && len(list) < 2 {
			t.Errorf("%s: %d readings and no more", tt.name, len(list))
		}
		for _, b := range list {
			if !json.Valid(b) {
				t.Fatalf("%s: a reading is no JSON", tt.name)
			}
		}
	}
}

// TestReadingsOfGo decodes arguments into a struct: the result is that of the
// first reading, which has every name once.
func TestReadingsOfGo(t *testing.T) {
	type typed struct {
		Path  string `json:"output_path"`
		Keys  int    `json:"keys"`
		Inner struct {
			Keys string `json:"keys"`
			Mode string `json:"mode"`
		} `json:"inner"`
	}
	h := newHostile(4, 1)
	collisions := 0
	for range 20_000 {
		h.calm = 1
		var m []member
		for range 1 + h.IntN(6) {
			switch h.IntN(3) {
			case 0:
				m = append(m, member{h.name("output_path"), h.one(`"/ok"`, `"/evil"`, "null")})
			case 1:
				m = append(m, member{h.name("keys"), h.one("1", "2", "null")})
			default:
				m = append(m, member{h.name("inner"), h.object([]member{
					{h.name("keys"), h.one(`"a"`, `"b"`, "null")}, {h.name("mode"), h.one(`"c"`, "null")}, {h.name("mode"), `"d"`}})})
			}
		}
		in := []byte(h.object(m))
		var want, got typed
		if json.Unmarshal(in, &want) != nil {
			continue
		}
		list, more := readingsOf(string(in), maxCandidates)
		if len(list) == 0 {
			continue
		}
		collisions++
		if err := json.Unmarshal(list[0], &got); err != nil || more {
			t.Fatalf("%s: read as %s: %v, more %v", in, list[0], err, more)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: read as %s (-want +got):\n%s", in, list[0], diff)
		}
	}
	if collisions < 1000 {
		t.Errorf("only %d arguments had a name twice", collisions)
	}
}

// FuzzReadings checks that readings of JSON are JSON in which every object has
// each name once, and that other bytes do no harm. FuzzReadings checks that
// each reading is JSON in which no object has a name twice, and that together
// they have every string of the arguments.
func FuzzReadings(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"A":2,"a":{"b":[{"c":1,"C":null}]}}`, `{"Operations":[{"Tool":"a","tool":"b","Arguments":{"Output_Path":"/x"}}]}`,
		`{"a":1,"a":}`, `{"a`, `{"a":1,"a`, `{"a":1,"a":[}`, `{"a":1 2,"a":[1 2}]}`, `{"a":{"x":1},"A":{"y":2},"a":null}`, `{"\u017f":1,"s":2,"S":{"k":3,"\u212a":4}}`,
		strings.Repeat(`{"a":1,"a":`, 34) + `1` + strings.Repeat("}", 34), `{"a":"\ud800","a":NaN,"b":[,]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		budget := 1 << 20
		list, more := Readings(in, maxCandidates, &budget)
		if budget < 0 || len(list) > maxCandidates {
			t.Fatalf("%d readings, %d bytes of the budget left", len(list), budget)
		}
		if !json.Valid(in) {
			return
		}
		var have []string
		for _, b := range list {
			if !json.Valid(b) {
				t.Fatalf("%s: the reading %s is no JSON", in, b)
			}
			have = append(have, words(b)...)
			budget := 1 << 20
			if again, cut := Readings(b, 1, &budget); len(again) > 0 && !cut && !more {
				t.Fatalf("%s: the reading %s has readings: %s", in, b, again)
			}
		}
		if len(list) == 0 || more {
			return
		}
		for _, w := range words(in) {
			if fold := func(s string) string { return string(audit.AppendFolded(nil, []byte(s))) }; !slices.ContainsFunc(have, func(h string) bool { return fold(h) == fold(w) }) {
				t.Fatalf("%s: no reading has %q: %s", in, w, list)
			}
		}
	})
}
