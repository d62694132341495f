package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzValues compares the arguments found at a path with those that a reader of
// JSON finds there.
func FuzzValues(f *testing.F) {
	for _, arguments := range []string{`{"a":1}`, `{"a":{"b":[1,{"c":"x"}]},"b":null}`, `{"a":{"b":1},"\u0061":{"b":2,"c":3}}`, `{"a":1,"a":{"b":{"c":0}}}`, `null`, ``, `[]`,
		`{"":{"":1}}`, `{"a":"\ud83d\ude00","b":1e5}`} {
		for _, p := range []string{"a", "a.b", "a.b.c", "b", "A"} {
			f.Add([]byte(arguments), p)
		}
	}
	f.Fuzz(func(t *testing.T, arguments []byte, dotted string) {
		p := path(strings.Split(dotted, "."))
		var found [1]argument
		ok := values(arguments, []path{p}, found[:])
		var whole any
		if err := json.Unmarshal(arguments, &whole); err != nil || !utf8.Valid(arguments) {
			if ok && len(arguments) > 0 {
				t.Fatalf("%q is read, though it is no JSON: %v", arguments, err)
			}
			return
		}
		object, _ := whole.(map[string]any)
		if !ok {
			return // no object, or too deep
		}
		var want any = object
		there := true
		for _, name := range p {
			inner, _ := want.(map[string]any)
			if want, there = inner[name]; !there {
				break
			}
		}
		if there != (found[0].value != nil) {
			t.Fatalf("%q at %q: got %q, want %v", arguments, dotted, found[0].value, want)
		}
		if !there {
			return
		}
		var got any
		if err := json.Unmarshal(found[0].value, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q at %q (-want +got):\n%s", arguments, dotted, diff)
		}
	})
}
