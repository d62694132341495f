package policies_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/deploy/policies"
	"auditproxy/mcpproxy/policy"

	"github.com/google/go-cmp/cmp"
)

var releases = []string{"0.1.0a20", "0.1.0a22"}

// A definition holds the tested members of an entry of tools/list.
type definition struct {
	Name string
	Meta struct {
		FastMCP struct{ Tags []string }
	} `json:"_meta"`
}

// tier returns the tag that is a tier.
func (d definition) tier() string {
	for _, tag := range d.Meta.FastMCP.Tags {
		if tag != "self-bounded" {
			return tag
		}
	}
	return ""
}

// recorded returns the recorded tools of a release, and their definitions.
func recorded(t *testing.T, release string) (defs []definition, seen []policy.Seen) {
	t.Helper()
	text, err := os.ReadFile("testdata/libtmux-mcp-" + release + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var d definition
		if err := json.Unmarshal(line, &d); err != nil {
			t.Fatal(err)
		}
		defs = append(defs, d)
		seen = append(seen, policy.Seen{Name: d.Name, Definition: line})
	}
	return defs, seen
}

func preset(t *testing.T, name string) *policy.Policy {
	t.Helper()
	source, err := policies.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(source, "preset:"+name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decide(t *testing.T, p *policy.Policy, c policy.Call) policy.Decision {
	t.Helper()
	d := make([]policy.Decision, 1)
	if err := p.Decide([]policy.Call{c}, time.Unix(0, 0), new(policy.Memory), d); err != nil {
		t.Fatal(err)
	}
	return d[0]
}

// TestPresetsFit loads each preset, which opens with its reason, and compares it
// with the tools of libtmux-mcp: it has no warnings.
func TestPresetsFit(t *testing.T) {
	var seen []policy.Seen
	for _, release := range releases {
		_, tools := recorded(t, release)
		seen = append(seen, tools...)
	}
	want := []string{"ask-for-dangerous", "ask-for-writes", "libtmux-mutating", "libtmux-readonly", "observe"}
	if diff := cmp.Diff(want, policies.Names()); diff != "" {
		t.Errorf("presets (-want +got):\n%s", diff)
	}
	for _, name := range policies.Names() {
		p := preset(t, name)
		if p.Dialect != policy.Hosted && p.Dialect != policy.Questions {
			t.Errorf("%s is of the dialect %s", name, p.Dialect)
		}
		if source, _ := policies.Preset(name); !bytes.HasPrefix(source, []byte("# ")) {
			t.Errorf("%s does not open with its reason", name)
		}
		for _, w := range p.Describe(seen).Warnings {
			t.Errorf("%s:%s", name, w.Error())
		}
	}
}

// TestUnknownPreset checks that the error lists the presets.
func TestUnknownPreset(t *testing.T) {
	for _, name := range []string{"readonly", "", "../policies", "observe.yaml"} {
		_, err := policies.Preset(name)
		if err == nil || !strings.Contains(err.Error(), "use one of ask-for-dangerous, ask-for-writes, libtmux-mutating, libtmux-readonly, observe") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// TestTiers compares the libtmux presets with the tags of each release.
func TestTiers(t *testing.T) {
	readonly, mutating := preset(t, "libtmux-readonly"), preset(t, "libtmux-mutating")
	for _, release := range releases {
		defs, _ := recorded(t, release)
		for _, d := range defs {
			read, change := policy.Deny, policy.Deny
			switch d.tier() {
			case "readonly", "inspect":
				read, change = policy.Allow, policy.Allow
			case "mutating", "manage", "execute":
				change = policy.Allow
			}
			if d.Name == "clear_pane" || d.Name == "delete_buffer" {
				change = policy.AskFirst
			}
			call := policy.Call{Tool: d.Name, Arguments: []byte(`{"format_string":"#{pane_id} #{?window_zoomed_flag,ZOOMED: Z,}"}`)}
			if got := decide(t, readonly, call).Action; got != read {
				t.Errorf("%s, tagged %s in %s: readonly says %s, want %s", d.Name, d.tier(), release, got, read)
			}
			if got := decide(t, mutating, call).Action; got != change {
				t.Errorf("%s, tagged %s in %s: mutating says %s, want %s", d.Name, d.tier(), release, got, change)
			}
		}
	}
	for _, p := range []*policy.Policy{readonly, mutating} {
		for _, name := range []string{"list_prompts", "capture_pane2", "Capture_pane", "capture_pane ", "", "*"} {
			if d := decide(t, p, policy.Call{Tool: name}); d.Rule != "(default deny)" {
				t.Errorf("%q, which has no tag: got %s %s", name, d.Action, d.Rule)
			}
		}
	}
	for _, format := range []string{"#(touch x)", "#{E:@a}", "#{T:@a}", "#{=5;E:@a}", "#{?1,#{E:@a},}", "#{s/a/b/;T;E:@a}"} {
		arguments, _ := json.Marshal(map[string]string{"format_string": format})
		if d := decide(t, readonly, policy.Call{Tool: "display_message", Arguments: arguments}); d.Action != policy.Deny {
			t.Errorf("the format %s: got %s", format, d.Action)
		}
	}
}

// TestModes checks what the general presets ask about.
func TestModes(t *testing.T) {
	dangerous, writes, observe := preset(t, "ask-for-dangerous"), preset(t, "ask-for-writes"), preset(t, "observe")
	for _, c := range []struct {
		category, detections string
		dangerous, writes    policy.Action
	}{
		{"read", "", policy.Allow, policy.Allow},
		{"write", "", policy.Allow, policy.AskFirst},
		{"execute", "", policy.Allow, policy.AskFirst},
		{"destructive", "", policy.AskFirst, policy.AskFirst},
		{"financial", "", policy.AskFirst, policy.AskFirst},
		{"", "", policy.AskFirst, policy.AskFirst},
		{"destructive", "recursive_delete", policy.AskFirst, policy.AskFirst},
		{"execute", "opaque", policy.AskFirst, policy.AskFirst},
		{"read", "path_sensitive", policy.AskFirst, policy.AskFirst},
		{"read", "path_blocked", policy.Deny, policy.Deny},
		{"destructive", "device_write fork_bomb", policy.Deny, policy.Deny},
		{"destructive", "audit_tampering", policy.Deny, policy.Deny},
		{"read", "nul_byte", policy.Deny, policy.Deny},
	} {
		call := policy.Call{Tool: "t", Category: c.category, Detections: strings.Fields(c.detections)}
		if got := decide(t, dangerous, call).Action; got != c.dangerous {
			t.Errorf("ask-for-dangerous: %s %s: got %s, want %s", c.category, c.detections, got, c.dangerous)
		}
		if got := decide(t, observe, call).Action; got != c.dangerous {
			t.Errorf("observe: %s %s: got %s, want %s", c.category, c.detections, got, c.dangerous)
		}
		if got := decide(t, writes, call).Action; got != c.writes {
			t.Errorf("ask-for-writes: %s %s: got %s, want %s", c.category, c.detections, got, c.writes)
		}
	}
	if dangerous.Mode != "" || writes.Mode != "" || observe.Mode != policy.Observe {
		t.Errorf("modes: %q, %q, %q", dangerous.Mode, writes.Mode, observe.Mode)
	}
}

// TestRecordedTools compares the recorded tools with those of the servers.
func TestRecordedTools(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, dev.Fetched(t, "libtmux-mcp-"+release, "bin", "python"), "-c", "import libtmux_mcp; libtmux_mcp.main()")
			cmd.Env = append(os.Environ(), "LIBTMUX_SOCKET=presets", "TMUX_TMPDIR="+t.TempDir(), "LIBTMUX_SAFETY=destructive")
			if release != "0.1.0a20" {
				cmd.Env[len(cmd.Env)-1] = "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown"
			}
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer stdin.Close()
			io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
			var got []definition
			answers := bufio.NewReader(stdout)
			for got == nil {
				line, err := answers.ReadBytes('\n')
				if err != nil {
					t.Fatalf("reading the answer to tools/list: %v", err)
				}
				var answer struct {
					ID     any
					Result struct{ Tools []definition }
				}
				if err := json.Unmarshal(line, &answer); err != nil {
					t.Fatal(err)
				}
				got = answer.Result.Tools
			}
			slices.SortFunc(got, func(a, b definition) int { return strings.Compare(a.Name, b.Name) })
			want, _ := recorded(t, release)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tools (-recorded +server):\n%s", diff)
			}
		})
	}
}
