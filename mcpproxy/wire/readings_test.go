package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{`{"a":1,"a":2,"a":3,"a":4,"a":5,"a":6}`, []string{`{"a":6}`, `{"a":1}`, `{"a":2}`, `{"a":3}`}, true},
	} {
		list, more := Readings([]byte(tt.in), 4)
		var got []string
		for _, b := range list {
			got = append(got, string(b))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || more != tt.more {
			t.Errorf("%s, more %v (-want +got):\n%s", tt.in, more, diff)
		}
	}
	if _, more := Readings([]byte(`{"a":"`+strings.Repeat("x", readingBytes)+`"}`), 4); !more {
		t.Error("long arguments have been read to their end")
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
		list, more := Readings(in, maxCandidates)
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
