package risk

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy/risk/detector"
)

// TestCommandArguments checks which arguments are judged as commands. What is in
// them is tested with the detector.
func TestCommandArguments(t *testing.T) {
	for _, tt := range []struct {
		name, tool, description, schema, arguments string
		at                                         []string
	}{
		{"keys", "send_keys", "", "", `{"keys":"rm -rf /srv/x"}`, []string{"args.keys"}},
		{"escaped", "send_keys", "", "", `{"keys":"r\u006d -rf \/srv/x\n"}`, []string{"args.keys"}},
		{"in another case", "x", "", "", `{"Command":"rm -rf /srv/x","SHELL":"rm -rf /srv/x"}`, []string{"args.Command", "args.SHELL"}},
		{"with folds", "x", "", "", `{"\u017fcript":"rm -rf /srv/x"}`, []string{"args.ſcript"}},
		{"longer names", "x", "", "", `{"shellCommand":"rm -rf /srv/x","pre_script":"rm -rf /srv/x"}`, []string{"args.pre_script", "args.shellCommand"}},
		{"duplicates", "x", "", "", `{"command":"rm -rf /srv/x","command":"ls"}`, []string{"args.command"}},
		{"nested", "x", "", "", `{"steps":[{"run":{"command":"rm -rf /srv/x"}}]}`, []string{"args.steps[0].run.command"}},
		{"commands", "x", "", "", `{"commands":["ls","rm -rf /srv/x"]}`, []string{"args.commands[1]"}},
		{"words", "x", "", "", `{"command":["rm","-rf","/srv/x"]}`, []string{"args.command"}},
		{"words for a shell", "x", "", "", `{"cmd":["bash","-c","rm -rf /srv/x"]}`, []string{"args.cmd"}},
		{"words with a text", "x", "", "", `{"command":["git","commit","-m","rm -rf /srv/x"]}`, nil},
		{"one element", "x", "", "", `{"command":["rm -rf /srv/x"]}`, []string{"args.command[0]"}},
		{"program and arguments", "x", "", "", `{"command":"rm","args":["-rf","/srv/x"]}`, []string{"args.command"}},
		{"arguments first", "x", "", "", `{"args":["-rf","/srv/x"],"command":"rm"}`, []string{"args.command"}},
		{"arguments as a text", "x", "", "", `{"command":"rm","args":"-rf /srv/x"}`, []string{"args.command"}},
		{"a decoy program", "x", "", "", `{"command":"rm","args":["-rf","/srv/x"],"cmd":"ls"}`, []string{"args.command"}},
		{"decoy arguments", "x", "", "", `{"command":"rm","args":["-rf","/srv/x"],"args":["-i"]}`, []string{"args.command"}},
		{"arguments in another case", "x", "", "", `{"command":"rm","Args":["-rf","/srv/x"]}`, []string{"args.command"}},
		{"an executable and its parameters", "x", "", "", `{"executable":"rm","params":"-rf /srv/x"}`, []string{"args.executable"}},
		{"a program and arguments", "x", "", "", `{"Program":"/bin/rm","arguments":["-rf","/srv/x"]}`, []string{"args.Program"}},
		{"a program with arguments", "x", "", "", `{"program":"rm -rf /srv/x"}`, []string{"args.program"}},
		{"a harmless program", "x", "", "", `{"program":"ls","args":["-rf","/srv/x"]}`, nil},
		{"quoted arguments", "x", "", "", `{"command":"echo","args":["$(rm -rf /srv/x)","'; rm -rf /srv/x '"]}`, nil},
		{"text that is typed", "paste_text", "", "", `{"text":"rm -rf /srv/x"}`, []string{"args.text"}},
		{"input that is typed", "tmux_send_input", "", "", `{"input":"rm -rf /srv/x"}`, []string{"args.input"}},
		{"content that is pasted later", "load_buffer", "", "", `{"content":"rm -rf /srv/x"}`, []string{"args.content"}},
		{"content of an unknown tool", "x", "", "", `{"content":"rm -rf /srv/x"}`, []string{"args.content"}},
		{"a source that is run", "run_code", "", "", `{"language":"bash","source":"rm -rf /srv/x"}`, []string{"args.source"}},
		{"a language that the tool does not have", "run_code", "", `{"properties":{"code":{}}}`, `{"language":"python","code":"delete (a; b)"}`, []string{"args.code"}},
		{"a language that the tool has", "run_code", "", `{"properties":{"code":{},"language":{}}}`, `{"language":"python","code":"delete (a; b)"}`, nil},
		{"steps that are run", "run_workflow", "", "", `{"steps":[{"run":"rm -rf /srv/x"}]}`, []string{"args.steps[0].run"}},
		{"a source that is copied", "move_file", "Move a file", "", `{"source":"rm -rf x","destination":"y"}`, nil},
		{"content of a file", "write_file", "Write a file", "", `{"path":"/tmp/x","content":"rm -rf /srv/x"}`, nil},
		{"a pattern", "search_files", "Search", "", `{"pattern":"rm -rf /srv/x","text":"rm -rf /srv/x"}`, nil},
		{"by schema", "get_x", "", `{"properties":{"what":{"description":"The shell command to use"}}}`, `{"what":"rm -rf /srv/x"}`, []string{"args.what"}},
		{"a hook", "set_option", "", "", `{"option":"default-command","value":"rm -rf /srv/x"}`, []string{"args.value"}},
		{"a format of an option", "set_option", "", "", `{"option":"status-right","value":"#(rm -rf /srv/x)"}`, []string{"args.value"}},
		{"a hook of tmux", "set_option", "", "", `{"option":"after-new-window","value":"run-shell \"rm -rf /srv/x\""}`, []string{"args.value"}},
		{"a later command of a hook", "set_option", "", "", `{"option":"after-new-window","value":"display 'a; b' ; run 'cd /;rm -rf /srv/x'"}`, []string{"args.value"}},
		{"a condition in a hook", "set_option", "", "", `{"option":"pane-died","value":"if -F 1 { run-shell 'rm -rf /srv/x' }"}`, []string{"args.value"}},
		{"a hook that types", "set_option", "", "", `{"option":"pane-died","value":"display x\nsend-keys 'rm -rf /srv/x' Enter"}`, []string{"args.value"}},
		{"a hook that kills", "set_option", "", "", `{"option":"pane-died","value":"kill-server"}`, []string{"args.value"}},
		{"a hook's command", "set_hook", "", "", `{"hook":"pane-died","command":"run-shell 'rm -rf /srv/x'"}`, []string{"args.command"}},
		{"a hook's harmless command", "set_hook", "", "", `{"hook":"pane-died","command":"display 'do not rm -rf /srv/x'"}`, nil},
		{"a status line", "set_option", "", "", `{"option":"status-left","value":"it's [#S] (#{session_name}; "}`, nil},
		{"a harmless hook", "set_option", "", "", `{"option":"pane-died","value":"display 'do not rm -rf /srv/x' ; run 'git status'"}`, nil},
		{"a value", "set_key", "", "", `{"value":"rm -rf /srv/x"}`, nil},
		{"a format", "rename_session", "", "", `{"new_name":"a#(rm -rf /srv/x)b"}`, []string{"args.new_name"}},
		{"a format of #{}", "rename_session", "", "", `{"new_name":"a#{session_name} rm -rf /srv/x"}`, nil},
		{"JavaScript", "evaluate", "", "", `{"script":"require('fs').rmSync('/srv/x',{recursive:true})"}`, []string{"args.script"}},
		{"harmless JavaScript", "evaluate", "", "", `{"script":"document.querySelector('a').click()"}`, nil},
		{"SQL", "run_query", "", "", `{"query":"DROP TABLE users"}`, []string{"args.query"}},
		{"a search", "search", "", "", `{"query":"DROP TABLE users"}`, nil},
		{"in a batch", "call_tools", "", "", `{"operations":[{"tool":"send_keys","arguments":{"keys":"ls"}},{"tool":"send_keys","arguments":{"keys":"rm -rf /srv/x"}}]}`,
			[]string{"args.operations[1].arguments.keys"}},
		{"in a list of keys", "send_keys_batch", "", "", `{"operations":[{"keys":"rm -rf /srv/x","pane_id":"%1"}]}`, []string{"args.operations[0].keys"}},
		{"in a batch as a string", "call_tools", "", "", `{"operations":"[{\"tool\":\"send_keys\",\"arguments\":{\"keys\":\"rm -rf /srv/x\"}}]"}`,
			[]string{"args.operations[0].arguments.keys"}},
		{"a list as a string", "x", "", "", `{"commands":"[\"ls\",\"rm -rf /srv/x\"]"}`, []string{"args.commands[1]"}},
		{"keys of tmux", "send_keys", "", "", `{"keys":"C-c"}`, nil},
		{"not an object", "x", "", "", `["rm -rf /srv/x"]`, []string{"args[0]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAssessor(t, Config{})
			r := a.Assess(a.Tool(tt.tool, define(tt.tool, tt.description, "", tt.schema)), []byte(tt.arguments), nil)
			var at []string
			for _, d := range summary(r) {
				if word, path, _ := strings.Cut(d, " "); word != "undeclared_argument" {
					at = append(at, path)
				}
			}
			slices.Sort(at)
			at = slices.Compact(at)
			if diff := cmp.Diff(tt.at, at); diff != "" {
				t.Errorf("%s detects %q (-want +got):\n%s", tt.arguments, summary(r), diff)
			}
			if want := len(tt.at) > 0; (r.Category == Destructive) != want {
				t.Errorf("%s is %s", tt.arguments, r.Category)
			}
		})
	}
}

// TestPatternsAreDetected checks the operator's patterns.
func TestPatternsAreDetected(t *testing.T) {
	a := newAssessor(t, Config{Commands: Commands{Arguments: []string{"tool.note", "memo"}, Patterns: []string{`heroku.*--force`}}})
	for _, tt := range []struct {
		tool, name string
		want       detector.Set
	}{{"tool", "note", detector.CommandPattern}, {"other_reader", "note", 0}, {"other_reader", "memo", detector.CommandPattern}} {
		b, _ := json.Marshal(map[string]string{tt.name: "heroku apps:destroy --force"})
		if r := a.Assess(a.Tool(tt.tool, nil), b, nil); r.Found&detector.CommandPattern != tt.want {
			t.Errorf("%s.%s gives %q, want %q", tt.tool, tt.name, r.Found.Words(), tt.want.Words())
		}
	}
}

// TestManyCommands checks that a call with more commands than are parsed is not
// clean, and that harmless ones are not counted.
func TestManyCommands(t *testing.T) {
	a := newAssessor(t, Config{})
	for part, want := range map[string]detector.Set{`"ls -la",`: 0, `"rm x",`: detector.Opaque} {
		b := []byte(`{"commands":[` + strings.Repeat(part, 1000) + `"ls"]}`)
		if r := a.Assess(a.Tool("x", nil), b, nil); r.Found&detector.Opaque != want {
			t.Errorf("1000 of %s give %q", part, r.Found.Words())
		}
	}
}
