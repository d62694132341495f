package risk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/audit"
)

// summary is what a result detects, as "detector at".
func summary(r Result) (list []string) {
	for _, d := range r.Detections {
		list = append(list, d.Detector+" "+d.At)
	}
	slices.Sort(list)
	return list
}

func TestArguments(t *testing.T) {
	const closed = `{"properties":{"keys":{},"pane_id":{}},"required":["keys"],"additionalProperties":false}`
	for _, tt := range []struct {
		name, tool, schema, arguments string
		want                          []string
	}{
		{"ordinary", "send_keys", closed, `{"keys":"ls -la","pane_id":"%1"}`, nil},
		{"none", "send_keys", closed, ``, []string{"missing_argument args.keys"}},
		{"null", "send_keys", closed, `null`, []string{"missing_argument args.keys"}},
		{"empty", "send_keys", closed, ` { } `, []string{"missing_argument args.keys"}},
		{"null in other white space", "send_keys", closed, "\ufeff\u00a0null\u2029", []string{"missing_argument args.keys"}},
		{"null is an argument", "send_keys", closed, `{"keys":null}`, nil},
		{"undeclared", "send_keys", closed, `{"keys":"x","key":"y"}`, []string{"undeclared_argument args.key"}},
		{"underscore", "send_keys", closed, `{"keys":"x","_bypass":true}`, []string{"undeclared_argument args._bypass", "underscore_argument args._bypass"}},
		{"escaped name", "send_keys", closed, `{"k\u0065ys":"x","\u005fbypass":true}`, []string{"undeclared_argument args._bypass", "underscore_argument args._bypass"}},
		{"declared underscore", "x", `{"properties":{"_a":{}},"additionalProperties":false}`, `{"_a":1}`, nil},
		{"no schema", "x", ``, `{"_a":1}`, nil},
		{"schema without properties", "x", `{"type":"object"}`, `{"_a":1}`, nil},
		{"no arguments allowed", "x", `{"type":"object","properties":{}}`, `{"_a":1}`, []string{"undeclared_argument args._a", "underscore_argument args._a"}},
		{"none allowed, without a list", "x", `{"additionalProperties":false}`, `{"a":1}`, []string{"undeclared_argument args.a"}},
		{"silent about others", "x", `{"properties":{"b":{}}}`, `{"a":1}`, []string{"undeclared_argument args.a"}},
		{"others allowed", "x", `{"properties":{"b":{}},"additionalProperties":true}`, `{"a":1}`, nil},
		{"others allowed by a schema", "x", `{"properties":{"b":{}},"additionalProperties":{"type":"string"}}`, `{"a":1}`, nil},
		{"allowed by a pattern", "x", `{"properties":{},"patternProperties":{"^x-":{}}}`, `{"x-a":1,"y":2}`, []string{"undeclared_argument args.y"}},
		{"declared elsewhere", "x", `{"$ref":"#/$defs/A","$defs":{"A":{"properties":{"a":{}}}}}`, `{"a":1,"b":2}`, []string{"undeclared_argument args.b"}},
		{"declared in parts", "x", `{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"required":["b"]}]}`, `{"a":1,"c":2}`,
			[]string{"missing_argument args.b", "undeclared_argument args.c"}},
		{"one of several", "x", `{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, `{"a":1}`, nil},
		{"schema elsewhere", "x", `{"$ref":"https://example.com/s.json"}`, `{"a":1}`, nil},
		{"in nested objects", "x", `{"properties":{"a":{}}}`, `{"a":{"_b":1}}`, nil},

		{"NUL", "x", ``, `{"note":"a\u0000b"}`, []string{"nul_byte args.note"}},
		{"NUL in a list", "x", ``, `{"notes":["a",["b\u0000"]]}`, []string{"nul_byte args.notes[1][0]"}},
		{"NUL in a name", "x", ``, `{"a\u0000":1}`, []string{"nul_byte args.a\x00"}},
		{"NUL in a path", "x", ``, `{"path":"/tmp/a\u0000"}`, []string{"nul_byte args.path", "path_blocked args.path"}},

		{"path", "x", ``, `{"path":"/etc/shadow"}`, []string{"path_blocked args.path"}},
		{"escaped path", "x", ``, `{"path":"\/etc\/\u0073hadow"}`, []string{"path_blocked args.path"}},
		{"duplicate", "x", ``, `{"path":"/etc/shadow","path":"/tmp/x"}`, []string{"path_blocked args.path"}},
		{"paths", "x", ``, `{"paths":["/tmp/x","/etc/hosts"]}`, []string{"path_sensitive args.paths[1]"}},
		{"camel case", "x", ``, `{"outputPath":"/dev/sda"}`, []string{"path_blocked args.outputPath"}},
		{"start_directory", "create_session", ``, `{"start_directory":"/proc/1"}`, []string{"path_blocked args.start_directory"}},
		{"nested", "x", ``, `{"edits":[{"file_path":"/home/u/.ssh/config"}]}`, []string{"path_sensitive args.edits[0].file_path"}},
		{"objects below a path", "x", ``, `{"files":[{"name":"/etc/shadow"}]}`, []string{"path_blocked args.files[0].name"}},
		{"source and destination", "move_file", ``, `{"source":"/etc/passwd","destination":"/tmp/x"}`, []string{"path_blocked args.source"}},
		{"no path", "move", ``, `{"source":"%1","destination":"left","from":"a@example.com"}`, nil},
		{"file URI anywhere", "x", ``, `{"resource_id":"FILE:///etc/passwd"}`, []string{"path_blocked args.resource_id"}},
		{"by schema", "x", `{"properties":{"where":{"description":"Absolute path to the file"}}}`, `{"where":"/etc/shadow"}`, []string{"path_blocked args.where"}},
		{"text about a path", "x", ``, `{"title":"/etc/shadow"}`, nil},

		{"address", "x", ``, `{"url":"http://127.0.0.1/"}`, []string{"private_address args.url"}},
		{"address without scheme", "x", ``, `{"endpoint":"169.254.169.254/latest"}`, []string{"private_address args.endpoint"}},
		{"address elsewhere", "x", ``, `{"a":[{"b":"http://[::1]:80/"}]}`, []string{"private_address args.a[0].b"}},
		{"address in a text", "x", ``, `{"title":"see http://localhost/"}`, nil},
		{"address in a command", "send_keys", ``, `{"keys":"curl http://localhost:8080/health"}`, nil},
		{"public address", "x", ``, `{"url":"https://example.com/"}`, nil},

		{"variable", "set_environment", ``, `{"name":"LD_PRELOAD","value":"/tmp/x.so"}`, []string{"environment_name args.name"}},
		{"harmless variable", "set_environment", ``, `{"name":"LANG","value":"C"}`, nil},
		{"a name elsewhere", "create_user", ``, `{"name":"PATH"}`, nil},
		{"environment", "create_session", ``, `{"environment":{"LANG":"C","Path":"/x"}}`, []string{"environment_name args.environment.Path"}},
		{"environment as JSON", "create_session", ``, `{"environment":"{\"BASH_ENV\":\"/x\"}"}`, []string{"environment_name args.environment.BASH_ENV"}},
		{"environment as lines", "create_session", ``, `{"env":["A=1","NODE_OPTIONS=--require /x"]}`, []string{"environment_name args.env[1]"}},
		{"envVars", "x", ``, `{"envVars":{"AWS_PROFILE":"x"}}`, []string{"environment_name args.envVars.AWS_PROFILE"}},

		{"batch", "call_tools", ``, `{"operations":[{"tool":"read_file","arguments":{"path":"/tmp/x"}},{"tool":"read_file","arguments":{"path":"/etc/shadow"}}]}`,
			[]string{"path_blocked args.operations[1].arguments.path"}},
		{"batch as JSON", "call_tools", ``, `{"operations":"[{\"tool\":\"read_file\",\"arguments\":{\"path\":\"/etc/shadow\"}}]"}`,
			[]string{"path_blocked args.operations[0].arguments.path"}},
		{"arguments before the tool", "call_tools", ``, `{"operations":[{"arguments":{"name":"PATH"},"tool":"set_environment"}]}`,
			[]string{"environment_name args.operations[0].arguments.name"}},
		{"batch in a batch", "call_tools", ``, `{"operations":[{"tool":"call_tools","arguments":{"operations":[{"tool":"known","arguments":{"_x":1}}]}}]}`,
			[]string{"missing_argument args.operations[0].arguments.operations[0].arguments.keys", "undeclared_argument args.operations[0].arguments.operations[0].arguments._x",
				"underscore_argument args.operations[0].arguments.operations[0].arguments._x"}},
		{"two tools", "call_tools", ``, `{"operations":[{"tool":"known","tool":"other","arguments":{}}]}`, []string{"missing_argument args.operations[0].arguments.keys"}},
		{"item without arguments", "call_tools", ``, `{"operations":[{"tool":"known"}]}`, []string{"missing_argument args.operations[0].arguments.keys"}},
		{"items in another case", "call_tools", ``, `{"Operations":[{"Tool":"known"}]}`, []string{"missing_argument args.Operations[0].arguments.keys"}},
		{"an item without a tool", "send_keys_batch", ``, `{"operations":[{"keys":"x","start_directory":"/proc"}]}`, []string{"path_blocked args.operations[0].start_directory"}},

		{"a list as a string", "x", ``, `{"paths":"[\"/tmp/x\",\"/etc/shadow\"]"}`, []string{"path_blocked args.paths[1]"}},
		{"not an object", "x", ``, `[{"path":"/etc/shadow"}]`, []string{"path_blocked args[0].path"}},
		{"cut off", "x", ``, `{"path":"/etc/shadow"`, []string{"opaque args", "path_blocked args.path"}},
		{"other white space", "x", ``, "\ufeff{\v\u00a0\"a\"\u00a0:\u00a01,\u00a0\"path\"\u2028:\f\"/etc/shadow\"\u00a0}", []string{"path_blocked args.path"}},
		{"other white space in a batch", "call_tools", ``, "{\"operations\"\v:\u00a0[\f{\u0085\"arguments\"\u00a0:\u2028{\"path\"\u2029:\"/etc/shadow\"\u00a0},\"tool\"\u00a0:\"read_file\"}]\ufeff}",
			[]string{"path_blocked args.operations[0].arguments.path"}},
		{"other white space in a list", "x", ``, "{\"command\":\u00a0\"rm\"\u00a0,\"args\"\f:\v[\u2028\"-rf\"\u00a0,\u00a0\"/srv\"\u00a0]}", []string{"forced_delete args.command", "recursive_delete args.command"}},
		{"junk", "x", ``, `{"a":1,/**/"path":"/etc/shadow"}`, []string{"opaque args"}},
		{"no value", "x", ``, `{"path":}`, []string{"opaque args"}},
		{"NaN", "x", ``, `{"a":NaN,"path":"/etc/shadow",}`, []string{"path_blocked args.path"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAssessor(t, Config{Home: "/home/u", Cwd: "/home/u/proj"})
			known := a.Tool("known", define("known", "", "", closed))
			r := a.Assess(a.Tool(tt.tool, define(tt.tool, "", "", tt.schema)), []byte(tt.arguments), func(name string) *Tool {
				if name == "known" {
					return known
				}
				return nil
			})
			if diff := cmp.Diff(tt.want, summary(r)); diff != "" {
				t.Errorf("Assess(%s) (-want +got):\n%s", tt.arguments, diff)
			}
		})
	}
}

// TestItemsRaise checks that a batch is what its worst item is.
func TestItemsRaise(t *testing.T) {
	a := newAssessor(t, Config{Risk: []Override{{"list_x", "destructive"}}})
	batch := a.Tool("call_readonly_tools_batch", nil)
	if batch.Category != Read {
		t.Fatalf("the batch is %s, want read", batch.Category)
	}
	for arguments, want := range map[string]Category{
		`{"operations":[{"tool":"list_a"}]}`:                        Read,
		`{"operations":[{"tool":"list_a"},{"tool":"rename_a"}]}`:    Write,
		`{"operations":[{"tool":"kill_server"},{"tool":"list_a"}]}`: Destructive,
		`{"operations":[{"tool":"list_x"}]}`:                        Destructive,
		`{"operations":[{"tool":"kill_server","tool":"list_a"}]}`:   Destructive,
		`{"operations":[{"tool":"list_a","tool":"kill_server"}]}`:   Destructive,
	} {
		if r := a.Assess(batch, []byte(arguments), nil); r.Category != want {
			t.Errorf("%s is %s, want %s", arguments, r.Category, want)
		}
	}
}

func TestConfigured(t *testing.T) {
	a := newAssessor(t, Config{
		Home:     "/home/u",
		Paths:    Paths{Arguments: []string{"dest", "a.b.place"}, Sensitive: []string{"/srv/secret", "~/.config/x", "keys/*.pem", "Private"}},
		Own:      []string{"/var/lib/auditproxy/", "/home/u/rules/policy.yaml"},
		Commands: Commands{Patterns: []string{`heroku.*--force`}},
	})
	for _, tt := range []struct {
		tool, arguments string
		want            detector.Set
	}{
		{"x", `{"dest":"/etc/shadow"}`, detector.PathBlocked},
		{"a.b", `{"place":"/etc/shadow"}`, detector.PathBlocked},
		{"x", `{"place":"/etc/shadow"}`, 0},
		{"x", `{"path":"/srv/secret"}`, detector.PathSensitive},
		{"x", `{"path":"/srv/./secret/a"}`, detector.PathSensitive},
		{"x", `{"path":"/srv/secrets/a"}`, 0},
		{"x", `{"path":"/x/srv/secret"}`, 0},
		{"x", `{"path":"~/.config/x/y"}`, detector.PathSensitive},
		{"x", `{"path":"/home/u/.config/x"}`, detector.PathSensitive},
		{"x", `{"path":"/home/v/.config/x"}`, 0},
		{"x", `{"path":"/tmp/keys/a.pem"}`, detector.PathSensitive},
		{"x", `{"path":"/tmp/keys/a.txt"}`, 0},
		{"x", `{"path":"/tmp/private/x"}`, detector.PathSensitive},
		{"x", `{"path":"/tmp/privates/x"}`, 0},
		{"x", `{"path":"/var/lib/auditproxy/spool/1"}`, detector.PathSensitive},
		{"x", `{"path":"/var/lib/auditproxy2"}`, 0},
		{"x", `{"command":"tee ~/rules/policy.yaml < x"}`, detector.AuditTampering},
		{"x", `{"command":"tee /home/u/rules/policy.yaml < x"}`, detector.AuditTampering},
		{"x", `{"command":"tee ~/rules/policy.yaml.old < x"}`, 0},
	} {
		if r := a.Assess(a.Tool(tt.tool, nil), []byte(tt.arguments), nil); r.Found != tt.want {
			t.Errorf("%s%s: %q, want %q", tt.tool, tt.arguments, r.Found.Words(), tt.want.Words())
		}
	}
}

func TestNewReportsEveryProblem(t *testing.T) {
	_, err := New(Config{
		Risk:     []Override{{"a", "reed"}, {"", "read"}, {"b", "read"}, {"b", "write"}},
		Commands: Commands{Arguments: []string{""}, Patterns: []string{"(", "x*", "x"}},
		Paths:    Paths{Arguments: []string{""}, Sensitive: []string{"", "/", "a/../b", "[", "$HOME/x", "~root/x", "ok"}},
		Own:      []string{"spool"},
	})
	if err == nil {
		t.Fatal("New accepts everything")
	}
	got := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		`risk[0]: category "reed" is unknown`, `risk[1]: the tool has no name`, `risk[3]: tool "b" is listed twice`,
		`commands.arguments[0] is empty`, `paths.arguments[0] is empty`, `commands.patterns[0]: reading "(": `, `commands.patterns[1]: "x*" matches every command`,
		`paths.sensitive[0]: path "" covers everything`, `paths.sensitive[1]: path "/" covers everything`,
		`paths.sensitive[2]: path "a/../b" has a part ".."`, `paths.sensitive[3]: reading "["`,
		`paths.sensitive[4]: path "$HOME/x" is not expanded`, `paths.sensitive[5]: path "~root/x" is not expanded`, `path "spool" of this program is not absolute`,
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("problem %d of %q, want %q", i, got, want)
		}
	}
	if len(got) != 14 {
		t.Errorf("%d problems, want 14:\n%v", len(got), err)
	}
}

func TestOverrides(t *testing.T) {
	a := newAssessor(t, Config{Risk: []Override{{"delete_cache", "read"}, {"get_all", "financial"}}})
	d := define("delete_cache", "Delete", `{"destructiveHint":true}`, "")
	got := a.Tool("delete_cache", d)
	if got.Category != Read || got.Source != SourceOverride || got.Conflict {
		t.Errorf("delete_cache is %s by %s, want read by override", got.Category, got.Source)
	}
	if r := a.Assess(got, []byte(`{"path":"/etc/shadow"}`), nil); r.Category != Execute || r.Source != SourceDetection {
		t.Errorf("a call with a blocked path is %s by %s, want execute by detection", r.Category, r.Source)
	}
	if got := a.Tool("get_all", nil); got.Category != Financial || got.Category.Level() != "critical" {
		t.Errorf("get_all is %s, %s, want financial, critical", got.Category, got.Category.Level())
	}
}

func TestAnnotations(t *testing.T) {
	a := newAssessor(t, Config{})
	for _, tt := range []struct {
		name, annotations string
		want              Category
		source            Source
		conflict          bool
	}{
		{"get_x", ``, Read, SourceName, false},
		{"get_x", `null`, Read, SourceName, false},
		{"get_x", `{}`, Read, SourceName, false},
		{"get_x", `{"readOnlyHint":true}`, Read, SourceAnnotation, false},
		{"get_x", `{"readOnlyHint":"true"}`, Read, SourceName, false},
		{"get_x", `{"readOnlyHint":false}`, Write, SourceAnnotation, false},
		{"get_x", `{"readOnlyHint":false,"destructiveHint":true}`, Destructive, SourceAnnotation, true},
		{"get_x", `{"destructiveHint":true}`, Destructive, SourceAnnotation, true},
		{"get_x", `{"readOnlyHint":true,"destructiveHint":true}`, Destructive, SourceAnnotation, true},
		{"get_x", `{"destructiveHint":false}`, Read, SourceName, false},
		{"get_x", `{"readOnlyHint":true,"readOnlyHint":false}`, Write, SourceAnnotation, false},
		{"update_x", `{"readOnlyHint":true}`, Write, SourceName, true},
		{"update_x", `{"readOnlyHint":false,"destructiveHint":false}`, Write, SourceAnnotation, false},
		{"delete_x", `{"readOnlyHint":true}`, Destructive, SourceName, true},
		{"delete_x", `{"readOnlyHint":false,"destructiveHint":false}`, Destructive, SourceName, true},
		{"run_x", `{"readOnlyHint":false,"destructiveHint":false}`, Execute, SourceName, false},
		{"do_thing", `{"readOnlyHint":true}`, Execute, SourceDefault, false},
		{"do_thing", `{"readOnlyHint":false}`, Execute, SourceDefault, false},
		{"do_thing", `{"destructiveHint":true}`, Destructive, SourceAnnotation, false},
	} {
		got := a.Tool(tt.name, define(tt.name, "", tt.annotations, ""))
		if tt.annotations == `{"readOnlyHint":true,"readOnlyHint":false}` {
			got = a.Tool(tt.name, []byte(`{"annotations":`+tt.annotations+`}`))
		}
		if got.Category != tt.want || got.Source != tt.source || got.Conflict != tt.conflict {
			t.Errorf("%s with %s is %s by %s, conflict %v; want %s by %s, %v", tt.name, tt.annotations, got.Category, got.Source, got.Conflict,
				tt.want, tt.source, tt.conflict)
		}
	}
}

func TestSchemaShape(t *testing.T) {
	a := newAssessor(t, Config{})
	for schema, want := range map[string]Category{
		`{"properties":{"id":{}}}`:                                        Read,
		`{"properties":{"command":{}}}`:                                   Execute,
		`{"properties":{"keys":{},"id":{}}}`:                              Execute,
		`{"properties":{"sql":{}}}`:                                       Execute,
		`{"properties":{"text":{}}}`:                                      Read,
		`{"properties":{"text":{},"pane_id":{}}}`:                         Execute,
		`{"properties":{"text":{},"instanceId":{}}}`:                      Execute,
		`{"allOf":[{"properties":{"shell":{}}}]}`:                         Execute,
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"script":{}}}}}`: Execute,
	} {
		if got := a.Tool("get_x", define("get_x", "", "", schema)); got.Category != want {
			t.Errorf("get_x with %s is %s, want %s", schema, got.Category, want)
		}
	}
}

// TestLibtmux checks libtmux-mcp's tools. Since 0.1.0a22 all have the same
// annotations, which say that each may be destructive.
func TestLibtmux(t *testing.T) {
	type line struct {
		Version    string
		Definition map[string]any
	}
	want := map[string]string{
		"read": "call_readonly_tools_batch call_read_tools_batch list_sessions list_servers get_server_info list_windows get_session_info list_panes get_window_info " +
			"capture_pane capture_since get_pane_info find_pane_by_position search_panes wait_for_text snapshot_pane show_option show_environment " +
			"show_buffer show_hooks show_hook get_pane_info display_message@a22 get_caller_context",
		"write": "create_session@a20 create_window@a20 rename_session select_window rename_window select_layout resize_window move_window resize_pane set_pane_title " +
			"select_pane swap_pane enter_copy_mode exit_copy_mode set_option@a20 set_environment@a20 wait_for_channel signal_channel load_buffer",
		"execute": "call_mutating_tools_batch split_window send_keys send_keys_batch run_command respawn_pane pipe_pane paste_text paste_buffer " +
			"display_message@a20 create_session@a22 create_window@a22 set_option@a22 set_environment@a22",
		"destructive": "call_destructive_tools_batch kill_server kill_session kill_window kill_pane clear_pane delete_buffer",
	}
	of := map[string]string{}
	for category, names := range want {
		for name := range strings.FieldsSeq(names) {
			of[name] = category
		}
	}
	a := newAssessor(t, Config{})
	for _, l := range readLines[line](t, "libtmux.jsonl") {
		name, version := l.Definition["name"].(string), l.Version[len(l.Version)-3:]
		all, _ := json.Marshal(l.Definition)
		delete(l.Definition, "annotations")
		plain, _ := json.Marshal(l.Definition)
		category := of[name]
		if category == "" {
			category = of[name+"@"+version]
		}
		if got := a.Tool(name, plain); got.Category.String() != category {
			t.Errorf("%s of %s is %s by %s, want %q", name, version, got.Category, got.Source, category)
		}
		got := a.Tool(name, all)
		if version == "a22" && (got.Category != Destructive || category == "read" && !got.Conflict) {
			t.Errorf("%s of a22 with its annotations is %s, conflict %v", name, got.Category, got.Conflict)
		}
	}
}

// TestManyDetections checks that what a record has no room for is counted.
func TestManyDetections(t *testing.T) {
	a := newAssessor(t, Config{})
	tool := a.Tool("read", nil)
	for _, n := range []int{1, 31, 32, 33, 1000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"/etc/x%d"`, i)
		}
		r := a.Assess(tool, []byte(`{"paths":[`+b.String()[1:]+`],"url":"http://localhost"}`), nil)
		if n < 32 {
			if len(r.Detections) != n+1 || r.Found != detector.PathSensitive|detector.PrivateAddress {
				t.Errorf("%d paths give %d detections, %q", n, len(r.Detections), r.Found.Words())
			}
			continue
		}
		last := r.Detections[len(r.Detections)-1]
		if len(r.Detections) != MaxDetections || last != (audit.Detection{Detector: "more", At: "args"}) || r.Found != detector.PathSensitive|detector.PrivateAddress|detector.More {
			t.Errorf("%d paths give %d detections, the last is %v, found %q", n, len(r.Detections), last, r.Found.Words())
		}
	}
}

// TestEveryDetectorIsListed hides one effect behind many of another.
func TestEveryDetectorIsListed(t *testing.T) {
	a := newAssessor(t, Config{})
	deep := strings.Repeat(`[`, 9) + strings.Repeat(`[[[[["rm -r x"]]]]],`, 1000) + `[]` + strings.Repeat(`]`, 9) // one path for a record
	for name, paths := range map[string]string{
		"all but one": `[` + strings.Repeat(`"/etc/x",`, MaxDetections-1) + `"/x"]`,
		"all":         `[` + strings.Repeat(`"/etc/x",`, MaxDetections) + `"/x"]`,
		"more":        `[` + strings.Repeat(`"/etc/x",`, 100) + `"/x"]`,
		"one place":   `[],"commands":` + deep,
	} {
		r := a.Assess(a.Tool("send_keys", nil), []byte(`{"paths":`+paths+`,"deep":{"a":{"b":["/etc/1","/etc/2"]}},"url":"http://localhost","keys":"rm -rf /; shutdown now"}`), nil)
		for _, word := range r.Found.Words() {
			if !lists(r.Detections, word) {
				t.Errorf("%s: %s is not among %v", name, word, r.Detections)
			}
		}
		if last := r.Detections[len(r.Detections)-1]; len(r.Detections) > MaxDetections || last.Detector != "more" {
			t.Errorf("%s: %d detections, the last is %v", name, len(r.Detections), last)
		}
	}
}

// TestPathsAreBounded checks that the agent cannot fill a record with names.
func TestPathsAreBounded(t *testing.T) {
	a := newAssessor(t, Config{})
	long, deep := strings.Repeat("n", 200), strings.Repeat(`{"abc":`, 100)
	for _, arguments := range []string{
		`{"` + long + `":{"path":"/etc/shadow"}}`,
		`{"` + strings.Repeat("ä", 5000) + `":{"path":"/etc/shadow"}}`,
		strings.Repeat(`{"`+long+`":`, 9) + `{"path":"/etc/shadow"}` + strings.Repeat("}", 9),
		deep + `{"path":"/etc/shadow"}` + strings.Repeat("}", 100),
	} {
		r := a.Assess(a.Tool("x", nil), []byte(arguments), nil)
		if len(r.Detections) != 1 || len([]rune(r.Detections[0].At)) > maxAt || !strings.Contains(r.Detections[0].At, "…") {
			t.Errorf("%.40s gives %q", arguments, r.Detections)
		}
	}
}

// TestDepth checks that nothing hides below the deepest level that is read.
func TestDepth(t *testing.T) {
	a := newAssessor(t, Config{})
	for _, n := range []int{10, 250, 300, 100000} {
		for _, arguments := range []string{
			strings.Repeat(`{"a":`, n) + `{"path":"/etc/shadow"}` + strings.Repeat("}", n),
			`{"a":` + strings.Repeat(`[`, n) + `{"path":"/etc/shadow"}` + strings.Repeat("]", n) + `}`,
		} {
			want := detector.PathBlocked
			if n > 250 {
				want = detector.Opaque
			}
			if r := a.Assess(a.Tool("x", nil), []byte(arguments), nil); r.Found&want == 0 {
				t.Errorf("%d levels give %q, want %q", n, r.Found.Words(), want.Words())
			}
		}
	}
	nested := `{"path":"/tmp/x"}`
	for range 8 {
		nested = `{"operations":[{"tool":"x","arguments":` + nested + `}]}`
	}
	if r := a.Assess(a.Tool("x", nil), []byte(nested), nil); r.Found != detector.Opaque {
		t.Errorf("operations in each other give %q, want opaque", r.Found.Words())
	}
}

func TestResources(t *testing.T) {
	a := newAssessor(t, Config{Home: "/home/u"})
	read := a.Tool("resources/read", nil) // methods are judged like tools
	for uri, want := range map[string]detector.Set{
		"file:///etc/shadow":      detector.PathBlocked,
		"file:///home/u/.ssh/x":   detector.PathSensitive,
		"file:///tmp/x":           0,
		"tmux://panes/%1/content": 0,
		"http://169.254.169.254/": detector.PrivateAddress,
		"https://example.com/":    0,
		"x\x00y":                  detector.NULByte,
		"":                        0,
	} {
		b, _ := json.Marshal(map[string]string{"uri": uri})
		if r := a.Assess(read, b, nil); r.Found != want || r.Category.rank() < Read {
			t.Errorf("%q is %s, %q, want %q", uri, r.Category, r.Found.Words(), want.Words())
		}
	}
	r := a.Assess(read, []byte(`{"uri":"file:///etc/shadow"}`), nil)
	want := audit.Risk{Category: "execute", Level: "high", Source: "detection"}
	if r.Risk() != want || !slices.Equal(summary(r), []string{"path_blocked args.uri"}) {
		t.Errorf("the resource has %+v and %q", r.Risk(), summary(r))
	}
}

// TestDefectsAreOpaque checks that a panic is not a clean result.
func TestDefectsAreOpaque(t *testing.T) {
	a := newAssessor(t, Config{Readlink: func(string) (string, bool) { panic("a defect") }})
	r := a.Assess(a.Tool("get_x", nil), []byte(`{"path":"/tmp/x"}`), nil)
	if want := []audit.Detection{{Detector: "opaque", At: "args"}}; !reflect.DeepEqual(r.Detections, want) || r.Category != Destructive {
		t.Errorf("a panic gives %q, %s", r.Detections, r.Category)
	}
}

// TestNamesWithoutCleaner checks that the zero Config shows no name.
func TestNamesWithoutCleaner(t *testing.T) {
	a, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := a.Assess(a.Tool("x", nil), []byte(`{"secret":{"path":"/etc/shadow"}}`), nil)
	if len(r.Detections) != 1 || r.Detections[0].At != "args.….…" {
		t.Errorf("detections are %q", r.Detections)
	}
}

// TestDefectsInDefinitionsAreOpaque checks that a panic while a definition is
// read makes neither the tool nor its calls harmless.
func TestDefectsInDefinitionsAreOpaque(t *testing.T) {
	var broken *Assessor // every use of it panics
	tool := broken.Tool("get_x", []byte(`{"annotations":{"readOnlyHint":true}}`))
	if tool.Name != "get_x" || tool.Category != Destructive {
		t.Errorf("the tool is %q, %s", tool.Name, tool.Category)
	}
	if r := newAssessor(t, Config{}).Assess(tool, []byte(`{}`), nil); !r.Failed || r.Category != Destructive {
		t.Errorf("a call is %s, failed %v", r.Category, r.Failed)
	}
}

// TestPieces checks lines that several operations of one call type together.
func TestPieces(t *testing.T) {
	a := newAssessor(t, Config{})
	letters := func(text, rest string) string {
		var b strings.Builder
		for _, c := range text {
			fmt.Fprintf(&b, `{"keys":"%c","enter":false},`, c)
		}
		return b.String() + rest
	}
	for operations, want := range map[string]bool{
		`{"tool":"paste_text","arguments":{"text":"rm -rf "}},{"tool":"send_keys","arguments":{"keys":"/srv"}}`:                      true,
		`{"tool":"paste_text","arguments":{"text":"ls -la "}},{"tool":"send_keys","arguments":{"keys":"/srv"}}`:                      false,
		`{"pane_id":"%1","keys":"rm -rf ","enter":false},{"pane_id":"%1","keys":"/srv"}`:                                             true,
		letters("rm -rf /srv", `{"keys":"Enter","enter":false}`):                                                                     true,
		letters("rm -rf /srv", `{"keys":""}`):                                                                                        true,
		letters("rn", `{"keys":"BSpace","enter":false},{"keys":"m","enter":false},{"keys":"Space","enter":0},{"keys":"-rf /srv"}`):   true,
		`{"pane_id":"%1","keys":"r","enter":false},{"pane_id":"%2","keys":"ls"},{"pane_id":"%1","keys":"m -rf /srv"}`:                true,
		`{"pane_id":"%1","keys":"r","enter":"off"},{"session_name":"s","keys":"m -rf /srv"}`:                                         true,
		`{"tool":"send_keys","arguments":{"keys":"r","\u0065nter":false}},{"tool":"send_keys","arguments":{"keys":"m -rf /srv"}}`:    true,
		`{"pane_id":"%1","keys":"r"},{"pane_id":"%1","keys":"m -rf /srv"}`:                                                           false,
		`{"pane_id":"%1","keys":"echo ","enter":false},{"pane_id":"%1","keys":"ok"},{"pane_id":"%1","keys":"ls"}`:                    false,
		`{"pane_id":"%1","keys":"ls","enter":false},{"pane_id":"%1","keys":"Enter","enter":false},{"pane_id":"%1","keys":"pwd"}`:     false,
		`{"tool":"rename_window","arguments":{"text":"r","enter":false}},{"tool":"rename_window","arguments":{"text":"m -rf /srv"}}`: false,
		letters("git status", `{"keys":"Enter","enter":false}`):                                                                      false,
	} {
		args := []byte(`{"operations":[` + operations + `]}`)
		r := a.Assess(a.Tool("send_keys_batch", nil), args, nil)
		if got := r.Found&detector.RecursiveDelete != 0; got != want {
			t.Errorf("%s: recursive_delete is %v, want %v", operations, got, want)
		} else if want && r.Detections[0].At != "args.operations" {
			t.Errorf("%s: found at %s", operations, r.Detections[0].At)
		}
	}
}

// TestNestedPieces: lists are read for their pieces as deep as their items are, and not once
// more for each list around them.
func TestNestedPieces(t *testing.T) {
	a := newAssessor(t, Config{})
	for levels, want := range map[int]detector.Set{1: detector.RecursiveDelete, maxBatches: detector.RecursiveDelete, maxBatches + 1: detector.Opaque} {
		args := strings.Repeat(`{"operations":[{"a":1},`, levels-1) + `{"operations":[{"keys":"rm -rf ","enter":false},{"keys":"/srv"}]}` + strings.Repeat(`]}`, levels-1)
		r := a.Assess(a.Tool("send_keys_batch", nil), []byte(args), nil)
		if got := r.Found & (detector.RecursiveDelete | detector.Opaque); got != want {
			t.Errorf("in %d lists: %q, want %q", levels, got.Words(), want.Words())
		}
	}
}

// TestContainerArguments checks arguments that give a container its host.
func TestContainerArguments(t *testing.T) {
	a := newAssessor(t, Config{})
	for arguments, want := range map[string]string{
		`{"image":"a","privileged":true}`:                                                                   "args.privileged",
		`{"image":"a","volumes":["/:/host"]}`:                                                               "args.volumes",
		`{"image":"a","binds":{"/":"/host"}}`:                                                               "args.binds",
		`{"image":"a","Volumes":["d:/d","/var/run/docker.sock:/s"]}`:                                        "args.Volumes",
		`{"image":"a","mounts":[{"type":"bind","source":"/etc","target":"/e"}]}`:                            "args.mounts",
		`{"spec":{"hostPID":true}}`:                                                                         "args.spec.hostPID",
		`{"spec":{"volumes":[{"name":"h","hostPath":{"path":"/"}}]}}`:                                       "args.spec.volumes",
		`{"manifest":"kind: Pod\nspec:\n  hostPID: true\n"}`:                                                "args.manifest",
		`{"manifest":"spec:\n  volumes:\n  - hostPath:\n      path: /\n"}`:                                  "args.manifest",
		`{"manifest":{"spec":{"containers":[{"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}}}`: "args.manifest",
		`{"image":"a","privileged":false,"volumes":["./src:/src","data:/etc"]}`:                             "",
		`{"image":"a","mounts":[{"type":"volume","source":"d","target":"/etc"}]}`:                           "",
		`{"volumes":["/proc:/host/proc:ro"],"volume":5}`:                                                    "",
		`{"manifest":"kind: Pod\nspec:\n  containers:\n  - securityContext: {privileged: false}\n"}`:        "",
		`{"manifest":"- hostPath:\n    path: /srv/data\n"}`:                                                 "",
	} {
		r := a.Assess(a.Tool("run_container", nil), []byte(arguments), nil)
		got := ""
		for _, d := range r.Detections {
			if d.Detector == "privilege_escalation" && got == "" {
				got = d.At
			}
		}
		if got != want {
			t.Errorf("%s: found at %q, want %q", arguments, got, want)
		}
	}
}
