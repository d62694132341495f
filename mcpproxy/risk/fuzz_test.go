package risk

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/redact"
)

// seeds are arguments for fuzzing and for the canary.
var seeds = []string{
	`{}`, `null`, `[]`, `""`, `{"keys":"ls -la","pane_id":"%1","enter":true}`,
	`{"path":"~/.ssh/id_rsa","url":"http://localhost/","environment":{"PATH":"x"},"_x":"\u0000"}`,
	`{"operations":[{"tool":"send_keys","arguments":{"keys":"rm -rf /"}},{"tool":"read_file","arguments":{"path":"/etc/shadow"}}]}`,
	`{"operations":"[{\"tool\":\"x\",\"arguments\":\"{\\\"path\\\":\\\"/proc\\\"}\"}]"}`,
	`{"command":"rm","args":["-rf","/"],"cmd":["bash","-c","rm -rf /"],"commands":["ls","rm -rf /"]}`,
	`{"title":"#(rm -rf /)","a":[[[{"b":"file:///etc/shadow"}]]],"text":"x","input":"y","content":"z"}`,
	`{"a":1,"a":{"a":[1,"2",null,true,NaN]}`, `{"path":"..\\..\\x","paths":["$HOME","~u"],"name":"LD_PRELOAD"}`,
}

var definitions = []string{
	``, `{}`, `{"description":"Delete the user. And more."}`, `{"description":"List (or delete) x","annotations":{"readOnlyHint":true}}`,
	`{"inputSchema":{"properties":{"keys":{"type":"string"},"path":{}},"required":["keys"],"additionalProperties":false},"_meta":{"fastmcp":{"tags":["mutating"]}}}`,
	`{"inputSchema":{"$ref":"#/a","a":{"allOf":[{"$ref":"#/a"},{"patternProperties":{"(":1}}]}}}`,
}

var names = []string{"", "send_keys", "read_file", "set_environment", "getAndDeleteUser", "x", "call_readonly_tools_batch", "kill"}

func FuzzAssess(f *testing.F) {
	for i, arguments := range seeds {
		f.Add(names[i%len(names)], definitions[i%len(definitions)], arguments)
	}
	a := newAssessor(f, Config{Home: "/home/u", Cwd: "/home/u/x", Readlink: func(name string) (string, bool) { return "../../etc", strings.HasSuffix(name, "link") }})
	f.Fuzz(func(t *testing.T, name, definition, arguments string) {
		tool := a.compile(name, []byte(definition))
		r := a.assessed(tool, []byte(arguments))
		if again := a.assessed(a.Tool(name, []byte(definition)), []byte(arguments)); !cmp.Equal(r, again) {
			t.Fatalf("two results differ:\n%s", cmp.Diff(r, again))
		}
		if r.Category.rank() < tool.Category.rank() || len(r.Detections) > MaxDetections {
			t.Fatalf("%+v is below %s, or too long", r, tool.Category)
		}
		for _, d := range r.Detections {
			if len([]rune(d.At)) > maxAt {
				t.Fatalf("%q is longer than %d", d.At, maxAt)
			}
		}
		annotated(t, a, name, definition)
		removed(t, a, tool, arguments, r)
	})
}

// assessed is Assess, but panics.
func (a *Assessor) assessed(t *Tool, arguments []byte) Result {
	budget := Budget
	return a.assess(&budget, t, arguments, nil)
}

// annotated checks that an added annotation never lowers the category.
func annotated(t *testing.T, a *Assessor, name, definition string) {
	t.Helper()
	var d map[string]json.RawMessage
	if json.Unmarshal([]byte(definition), &d) != nil || d == nil {
		return
	}
	delete(d, "annotations")
	b, _ := json.Marshal(d)
	plain := a.Tool(name, b)
	for _, annotations := range []string{`{"readOnlyHint":true}`, `{"readOnlyHint":false,"destructiveHint":false}`, `{"destructiveHint":false}`, `{"destructiveHint":true}`} {
		d["annotations"] = json.RawMessage(annotations)
		b, _ := json.Marshal(d)
		if got := a.Tool(name, b); got.Category.rank() < plain.Category.rank() {
			t.Fatalf("%s lowers %q from %s to %s", annotations, name, plain.Category, got.Category)
		}
	}
}

// removed checks that a removed argument adds no detection of a kept one.
func removed(t *testing.T, a *Assessor, tool *Tool, arguments string, whole Result) {
	t.Helper()
	var members map[string]json.RawMessage
	if whole.Found&(detector.More|detector.Opaque) != 0 || json.Unmarshal([]byte(arguments), &members) != nil || len(members) > 8 {
		return
	}
	b, _ := json.Marshal(members)
	whole = a.assessed(tool, b)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		rest := maps.Clone(members)
		delete(rest, name)
		b, _ := json.Marshal(rest)
		for _, d := range a.assessed(tool, b).Detections {
			if d.Detector != "missing_argument" && !slices.Contains(whole.Detections, d) {
				t.Fatalf("without %q, %s has %v; with it %v", name, arguments, d, whole.Detections)
			}
		}
	}
}

// TestNoValueInResults puts a canary into every string of the seeds, and checks
// that no result has a part of it.
func TestNoValueInResults(t *testing.T) {
	a := newAssessor(t, Config{Home: "/home/u", Cwd: "/home/u/x"})
	const canary = "CaNaRy7391"
	for _, prefix := range []string{"", "/etc/", "~/.ssh/", "http://localhost/", "rm -rf /", "PATH=", "#(", "\x00", "$"} {
		for _, seed := range seeds {
			var value any
			if json.Unmarshal([]byte(seed), &value) != nil {
				continue
			}
			b, _ := json.Marshal(filled(value, prefix+canary))
			for _, name := range names {
				for _, definition := range definitions {
					r := a.Assess(a.Tool(name, []byte(definition)), b, nil)
					for _, d := range r.Detections {
						if strings.Contains(d.At, canary[:6]) || strings.Contains(d.Detector, canary[:6]) {
							t.Fatalf("%s gives %v", b, d)
						}
					}
				}
			}
		}
	}
}

// filled replaces the strings in v that are values.
func filled(v any, text string) any {
	switch v := v.(type) {
	case string:
		return text
	case []any:
		for i := range v {
			v[i] = filled(v[i], text)
		}
	case map[string]any:
		for name := range v {
			v[name] = filled(v[name], text)
		}
	}
	return v
}

// TestSecretsInNames checks that a name passes the rules of redaction before it
// is cut.
func TestSecretsInNames(t *testing.T) {
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	a := newAssessor(t, Config{Text: red.AppendText})
	for _, secret := range []string{"ghp_" + strings.Repeat("aB3dE6", 6), "AKIA" + "QYLPMN5HFIQR7XYA", "password=hunter2hunter2"} {
		for _, name := range []string{secret, "x " + secret, strings.Repeat("n", 50) + " " + secret, strings.Repeat("n", 230) + " " + secret} {
			b, _ := json.Marshal(map[string]any{name: map[string]string{"path": "/etc/shadow"}})
			r := a.Assess(a.Tool("x", nil), b, nil)
			if len(r.Detections) != 1 || strings.Contains(r.Detections[0].At, secret[5:10]) {
				t.Errorf("%s gives %q", name, r.Detections)
			}
		}
	}
}

// TestOrdinaryCallsAllocateNothing covers calls in which nothing is detected.
func TestOrdinaryCallsAllocateNothing(t *testing.T) {
	a := newAssessor(t, Config{Home: "/home/u", Cwd: "/home/u/x"})
	for _, arguments := range ordinary {
		tool := sendKeys(a)
		b := []byte(arguments)
		if n := testing.AllocsPerRun(100, func() { a.Assess(tool, b, nil) }); n >= 1 {
			t.Errorf("%.60s allocates %v times", arguments, n)
		}
	}
}

var ordinary = []string{
	`{"keys":"ls -la","pane_id":"%1","enter":true}`,
	`{"keys":"git status\n","pane_id":"%1","session_name":null,"enter":true,"literal":false,"suppress_history":false}`,
	`{"keys":"` + strings.Repeat("echo hello world; ", 100) + `"}`,
}

func sendKeys(a *Assessor) *Tool {
	return a.Tool("send_keys", define("send_keys", "Send keys (commands or text) to a pane.", `{"readOnlyHint":false}`,
		`{"properties":{"keys":{},"pane_id":{},"session_name":{},"session_id":{},"window_id":{},"enter":{},"literal":{},"suppress_history":{},"socket_name":{}},"required":["keys"],"additionalProperties":false}`))
}

func BenchmarkOrdinaryCall(b *testing.B) {
	a := newAssessor(b, Config{Home: "/home/u", Cwd: "/home/u/x"})
	tool := sendKeys(a)
	for i, name := range []string{"short", "usual", "long"} {
		b.Run(name, func(b *testing.B) {
			arguments := []byte(ordinary[i])
			b.ReportAllocs()
			for b.Loop() {
				a.Assess(tool, arguments, nil)
			}
		})
	}
	b.Run("path", func(b *testing.B) {
		read := a.Tool("read_file", nil)
		arguments := []byte(`{"path":"/home/u/project/src/main.go"}`)
		b.ReportAllocs()
		for b.Loop() {
			a.Assess(read, arguments, nil)
		}
	})
}

// BenchmarkHostileArguments has 64 KiB of what takes longest.
func BenchmarkHostileArguments(b *testing.B) {
	const size = 64 << 10
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (size-len(head)-len(tail))/len(part)) + tail
	}
	a := newAssessor(b, Config{Home: "/home/u", Cwd: "/home/u/x", Paths: Paths{Sensitive: []string{"~/a", "b/c*", "/d"}}})
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		b.Fatal(err)
	}
	a.text = red.AppendText
	for _, tt := range []struct{ name, arguments string }{
		{"brackets", fill(`{"a":`, "[", "")},
		{"objects", fill("", `{"a":`, "")},
		{"members", fill(`{`, `"a":1,`, `"b":1}`)},
		{"undeclared", fill(`{`, `"_a":1,`, `"b":1}`)},
		{"escapes", fill(`{"keys":"`, `\u0061`, `"}`)},
		{"backslashes", fill(`{"keys":"`, `\\`, `"}`)},
		{"quotes", fill(`{"keys":"`, `\"`, ``)},
		{"path", fill(`{"path":"`, `a/../`, `"}`)},
		{"paths", fill(`{"paths":[`, `"/etc/x",`, `""]}`)},
		{"long paths", fill(`{"paths":[`, `"/`+strings.Repeat("a/", 200)+`x",`, `""]}`)},
		{"short paths", fill(`{"paths":[`, `";\\\n",`, `""]}`)},
		{"addresses with breaks", fill(`{"paths":[`, `"http://\né\\",`, `""]}`)},
		{"paths with commands", fill(`{"paths":[`, `"#(\\",`, `""]}`)},
		{"dots", fill(`{"path":"/`, `./`, `"}`)},
		{"URLs", fill(`{"urls":[`, `"http://127.1",`, `""]}`)},
		{"formats", fill(`{"title":"`, `#(`, `)"}`)},
		{"items", fill(`{"operations":[`, `{"tool":"a"},`, `{}]}`)},
		{"items in items", fill(``, `{"operations":[{"tool":"a","arguments":`, ``)},
		{"lists in lists", fill(strings.Repeat(`{"operations":[{"tool":"a"},`, 250), `{"tool":"a"},`, `{}`+strings.Repeat(`]}`, 250))},
		{"JSON", fill(`{"environment":"`, `[`, `"}`)},
		{"variables", fill(`{"environment":{`, `"PATH":1,`, `"a":1}}`)},
		{"names", fill(`{`, `"`+strings.Repeat("nested_name_", 20)+`":{"path":"/etc/x"},`, `"a":1}`)},
		{"deep names", strings.Repeat(`{"AKIAQYLPMN5HFIQR7XYA":`, 250) + fill("{", `"path":"/etc/x",`, `"a":1}`)},
		{"keys", fill(`{"keys":"`, `a `, `"}`)},
		{"commands", fill(`{"commands":[`, `"rm x",`, `"a"]}`)},
		{"programs", fill(`{"command":"rm","cmd":"git","shell":"sh","args":["x"],"args":["y"],"args":[`, `"-c",`, `"a"]}`)},
		{"steps", fill(`{"a":[`, `{"command":"rm","args":["x"]},`, `{}]}`)},
		{"commands in formats", fill(`{"a":[`, `"#(rm x)",`, `""]}`)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			tool := sendKeys(a)
			arguments := []byte(tt.arguments)
			for b.Loop() {
				a.Assess(tool, arguments, nil)
			}
			if ms := float64(b.Elapsed().Microseconds()) / float64(b.N) / 1000; ms > 5 {
				b.Logf("%s took %.1f ms, want at most 5", tt.name, ms)
			}
		})
	}
}

// BenchmarkTool compiles a definition.
func BenchmarkTool(b *testing.B) {
	a := newAssessor(b, Config{})
	for b.Loop() {
		sendKeys(a)
	}
}
