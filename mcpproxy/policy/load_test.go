package policy_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/mcpproxy/policy"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// maxSize is how long a source may be; see the text of the problem.
const maxSize = 512 << 10

// TestMistakes loads policies with mistakes and compares what is reported.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+1 < len(arch.Files); i += 2 {
				in, want := &arch.Files[i], &arch.Files[i+1]
				_, err = policy.Load(in.Data, in.Name)
				if err == nil {
					t.Fatalf("%s loads", in.Name)
				}
				got := err.Error() + "\n"
				if *update {
					want.Data = []byte(got)
				} else if diff := cmp.Diff(string(want.Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", in.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(arch), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestHostileFiles loads files that are made to cost much or to be read in two
// ways.
func TestHostileFiles(t *testing.T) {
	const head = "version: \"1\"\ndefault: deny\n"
	long := func(s string) string { return strings.Repeat(s, (maxSize-100)/len(s)) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 9))
	}
	regexes := ""
	for range 400 {
		regexes += "{conditions: [{path: args.x, op: regex, value: '(a{500}b{500}c{500}d{500}){2}'}]},\n"
	}
	for _, c := range []struct{ name, source, want string }{
		{"empty.yaml", "", "the file is empty: write a policy"},
		{"comment.yaml", "# nothing\n", "the file has no values: write a policy"},
		{"text.yaml", "root:x:0:0:root:/root:/bin/bash\n", "the file has text, want the names and values of a policy"},
		{"size.json", strings.Repeat(" ", maxSize) + "{}", "want at most 524288"},
		{"huge.yaml", strings.Repeat("a: b\n", 20<<20/5), "want at most 524288"},
		{"bomb.yaml", bomb, "anchors are not read"},
		{"alias.yaml", head + "tools: {a: *b}\n", "unknown anchor"},
		{"merge.yaml", head + "tools:\n  a: {}\n  <<: {b: {}}\n", "5:3: merge keys are not read"},
		{"tag.yaml", head + "tools: !!map {}\n", "3:8: tags are not read"},
		{"binary.yaml", head + "tools: {!!binary aGk=: {}}\n", "tags are not read"},
		{"two.yaml", head + "---\nversion: \"1\"\n", "want one YAML document"},
		{"deep.yaml", head + "tools: " + strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 40), "more than 32 levels"},
		{"deeper.yaml", long("["), "exceeded max depth"},
		{"deep.json", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), "more than 32 levels"},
		{"deeper.json", long("["), "more than 32 levels"},
		{"nan.yaml", head + "tools: {a: {limits: [{counter: c, window: minute, max: .nan, scope: user}]}}", "not a number that can be compared"},
		{"inf.yaml", head + "tools: {a: {limits: [{counter: c, window: minute, max: .inf, scope: user}]}}", "not a number that can be compared"},
		{"big.yaml", head + "tools: {a: {limits: [{counter: c, window: minute, max: 99999999999999999999, scope: user}]}}", "max must be a positive whole number"},
		{"exponent.yaml", head + "tools: {a: {limits: [{counter: c, window: minute, max: 1e400, scope: user}]}}", "not a number that can be compared"},
		{"exponent.json", `{"version":"1","default":"deny","tools":{"a":{"limits":[{"counter":"c","window":"minute","max":1e400,"scope":"user"}]}}}`, "out of range"},
		{"octal.yaml", head + "tools: {a: {limits: [{counter: c, window: minute, max: 0o17x, scope: user}]}}", "max must be a positive whole number"},
		{"latin1.yaml", head + "hide: [k\xe4se]\n", "3:9: byte 0xe4 is not UTF-8"},
		{"utf16.yaml", "\xff\xfev\x00e\x00", "1:1: byte 0xff is not UTF-8"},
		{"nul.json", "{\"version\":\"1\"\x00}", "1:15: byte 0x00"},
		{"truncated.json", `{"version":"1","default":`, "the JSON ends in the middle of a value"},
		{"trailing.json", `{"version":"1","default":"deny",}`, "reading JSON"},
		{"comment.json", "{\"version\":\"1\", // one\n\"default\":\"deny\"}", "reading JSON"},
		{"two.json", `{"version":"1","default":"deny"} {}`, "1:35: want one JSON value"},
		{"cut.json", `{"version":"1","default":"deny"}}`, "want one JSON value"},
		{"yaml.json", "version: \"1\"\n", "reading JSON"},
		{"regexes.yaml", head + "tools: {a: {deny_if: [" + regexes + "]}}", "regular expressions of this file are too large"},
		{"regex.yaml", head + "tools: {a: {deny_if: [{conditions: [{path: args.x, op: regex, value: '" + strings.Repeat("a", 5000) + "'}]}]}}", "the regex has 5000 bytes"},
		{"problems.yaml", head + long("tool: x\n"), "problems.yaml: "},
		{"quotes.yaml", head + "tools: {\"a\": " + long("{"), "exceeded max depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := policy.Load([]byte(c.source), c.name)
			var problems *policy.Error
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %.300v, want %q", err, c.want)
			}
			if n := len(err.Error()); n > 20_000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

// TestSameForms loads one policy in forms that mean the same.
func TestSameForms(t *testing.T) {
	const yaml = "version: \"1\"\ndefault: deny\ntools:\n  send: {}\n  on:\n    action: deny\n"
	for _, source := range []string{
		yaml,
		"\ufeff" + yaml,
		strings.ReplaceAll(yaml, "\n", "\r\n"),
		"%YAML 1.2\n---\n" + yaml + "...\n",
		`{"version": "1", "default": "deny", "tools": {"send": {}, "on": {"action": "deny"}}}`,
		"{version: '1', default: deny, tools: {send: {}, on: {action: deny}}}",
		"\t{\"version\":\"1\",\n\t\"default\":\"d\\u0065ny\",\"tools\":{\"send\":{},\"on\":{\"action\":\"deny\"}}}\n",
	} {
		p, err := policy.Load([]byte(source), "policy")
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		for _, c := range []struct{ tool, rule string }{{"send", ""}, {"on", "/tools/on/action"}, {"true", "(default deny)"}} {
			if d := decide(t, p, policy.Call{Tool: c.tool}); d.Rule != c.rule {
				t.Errorf("%q: %s: got rule %q, want %q", source, c.tool, d.Rule, c.rule)
			}
		}
	}
}

// TestDialect checks which dialect a file is of.
func TestDialect(t *testing.T) {
	const neither, allows = `{"version":"1","default":"deny","tools":{"a":{}}}`, `{"version":"1","tools":{"a":{}}}`
	for _, c := range []struct {
		name, source string
		want         policy.Dialect
	}{
		{"p.json", neither, policy.Hosted},
		{"p.yaml", neither, policy.Intercept},
		{"p.YML", neither, policy.Intercept},
		{"p", neither, policy.Hosted},
		{"p.yaml", allows, policy.Intercept},
		{"p.json", allows, ""},
		{"p", allows, ""},
		{"p.yaml", `{"version":"1","default":"deny","tools":{"a":{"limits":[]}}}`, policy.Hosted},
		{"p.yaml", `{"version":"1","tools":{"a":{"limits":[]}}}`, ""},
		{"p.yaml", `{"version":"1","default":"deny","all_tools":{"limits":[]}}`, policy.Hosted},
		{"p.yaml", `{"version":"1","default":"deny","tools":{"a":{"action":"deny"}}}`, policy.Questions},
		{"p.json", `{"version":"1","default":"deny","tools":{"a":{"action":"deny"},"b":{"require":[]}}}`, policy.Hosted},
		{"p.json", `{"version":"1","tools":{"a":{"rules":[]}}}`, policy.Intercept},
		{"p.json", `{"version":"1","tools":{"a":{"rules":[{"action":"deny","reason":"no"}]}}}`, policy.Pages},
		{"p.yaml", `{"version":"1","tools":{"a":{"rules":[]},"b":{"action":"deny"}}}`, ""},
		{"p.yaml", `{"version":"1","all_tools":{},"tools":{"a":{"rules":[]}}}`, ""},
		{"p.yaml", `{"version":"1","tools":{"a":{"rules":[],"limits":[]}}}`, ""},
	} {
		p, err := policy.Load([]byte(c.source), c.name)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s %s: loads as %s", c.name, c.source, p.Dialect)
			}
		} else if err != nil {
			t.Errorf("%s %s: %v", c.name, c.source, err)
		} else if p.Dialect != c.want {
			t.Errorf("%s %s: got %s, want %s", c.name, c.source, p.Dialect, c.want)
		}
	}
}

// FuzzLoad checks that no file causes a panic, that errors have positions, and
// that a policy that loads decides every call, twice the same.
func FuzzLoad(f *testing.F) {
	vectors, err := os.ReadFile("testdata/vectors.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(vectors) {
		f.Add(line, true, []byte(`{"a":1}`))
		if i := bytes.Index(line, []byte(`"policy": `)); i >= 0 {
			f.Add(line[i+len(`"policy": `):bytes.Index(line, []byte(`, "calls"`))], true, []byte(`{"a":1,"amount":2}`))
		}
	}
	f.Add([]byte("version: \"1\"\ndefault: deny\nhide: [a]\ntools:\n  t: {deny_if: [{conditions: [{path: args.a, op: regex, value: x}]}]}\n"), false, []byte(`{"a":"x"}`))
	f.Fuzz(func(t *testing.T, source []byte, isJSON bool, arguments []byte) {
		name := "policy.yaml"
		if isJSON {
			name = "policy.json"
		}
		p, err := policy.Load(source, name)
		again, err2 := policy.Load(source, name)
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%v, then %v", err, err2)
		}
		if err != nil {
			var problems *policy.Error
			if !errors.As(err, &problems) || len(problems.Problems) == 0 {
				t.Fatalf("%T without problems", err)
			}
			return
		}
		for _, tool := range append(p.Names(), "another") {
			for range 2 {
				call := policy.Call{Tool: tool, Arguments: arguments, Category: "execute", Detections: []string{"opaque"}}
				if d, d2 := decide(t, p, call), decide(t, again, call); d.Rule != d2.Rule || d.Action != d2.Action || d.Reason != d2.Reason {
					t.Fatalf("%+v, then %+v", d, d2)
				} else if (d.Action == policy.Allow) != (d.Rule == "") || len([]rune(d.Reason)) > 200 {
					t.Fatalf("%+v", d)
				}
			}
		}
		p.Describe(nil)
	})
}

// TestIncrementOfNothing checks that a rule of Intercept may add 0, which counts as 1.
func TestIncrementOfNothing(t *testing.T) {
	const source = "version: \"1\"\ndefault: allow\ntools:\n  a:\n    rules:\n      - {name: r, conditions: [{path: state.a.c, op: lte, value: 1}], state: {counter: c, window: minute, increment: %s}}\n"
	for increment, want := range map[string]bool{"0": true, "1": true, "-1": false, "0.5": false} {
		if _, err := policy.Load([]byte(fmt.Sprintf(source, increment)), "p.yaml"); (err == nil) != want {
			t.Errorf("an increment of %s: %v", increment, err)
		}
	}
}
