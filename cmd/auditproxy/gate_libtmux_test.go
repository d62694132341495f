package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/deploy/policies"
	"auditproxy/schemas/audit"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestLibtmuxReadonly makes the calls of the side-by-side session under the preset
// libtmux-readonly, and batches of every tool in every tool that accepts batches.
// The server's own log has all calls of tools that it tags as reading, and no
// other. Then the policy hides a tool: only that tool leaves the listing.
func TestLibtmuxReadonly(t *testing.T) {
	t.Parallel()
	proxy := build(t, "./cmd/auditproxy")
	for _, tt := range []struct{ release, allTools, looks, batch string }{
		{"0.1.0a20", "LIBTMUX_SAFETY=destructive", "readonly", "call_readonly_tools_batch"},
		{"0.1.0a22", "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown", "inspect", "call_read_tools_batch"},
	} {
		t.Run(tt.release, func(t *testing.T) {
			t.Parallel()
			s := newTmuxSession(t, tt.release, tt.allTools)
			file := filepath.Join(s.dir, "policy.yaml")
			source, err := policies.Preset("libtmux-readonly")
			if err != nil {
				t.Fatal(err)
			}
			replace(t, file, source)
			spool := filepath.Join(s.dir, "spool")
			c := s.connect(t, proxy, "--policy-file", file, "--spool-dir", spool, "--redact-profile", "libtmux", "--")
			tools := c.listing(t)
			looks := map[string]bool{}
			for name, definition := range tools {
				looks[name] = strings.Contains(string(definition), `"`+tt.looks+`"`)
			}
			if n := len(slices.DeleteFunc(slices.Collect(maps.Keys(looks)), func(name string) bool { return !looks[name] })); n < 18 || n > 25 {
				t.Fatalf("%d tools are tagged %s", n, tt.looks)
			}
			want := c.callAll(t, s, looks)
			want = append(want, c.batchAll(t, tt.batch, looks)...)
			c.hide(t, file, source, "list_windows")
			c.refuseBatch(t)
			if err := c.stdin.Close(); err != nil {
				t.Error(err)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("the proxy: %v\n%s", err, &c.log)
			}
			var got []string
			for _, l := range s.auditLog(t) {
				if !looks[l.Tool] {
					t.Errorf("the server executed %s, request %s", l.Tool, l.RequestID)
				}
				got = append(got, l.Tool)
			}
			for _, name := range want {
				i := slices.Index(got, name)
				if i < 0 {
					t.Errorf("a call of %s did not reach the server", name)
					continue
				}
				got = slices.Delete(got, i, i+1)
			}
			for _, r := range records(t, spool) {
				if r.Kind == audit.KindCall && r.Forwarded != looks[r.Tool] && r.ErrorType != audit.ErrPolicyDenied {
					t.Errorf("%s: forwarded %t, %s", r.Tool, r.Forwarded, r.ErrorType)
				}
			}
		})
	}
}

// replace writes a file as editors do: another takes its place.
func replace(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// A tapped is a client of the Go SDK whose input can be read twice.
type tapped struct {
	*mcp.ClientSession
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   bytes.Buffer

	mu   sync.Mutex
	seen bytes.Buffer // guarded by mu: all that the client read
}

// Write implements io.Writer for what the client reads.
func (c *tapped) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.Write(b)
}

func (c *tapped) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Split(c.seen.String(), "\n")
}

func (s *tmuxSession) connect(t *testing.T, prefix ...string) *tapped {
	t.Helper()
	argv := slices.Concat(prefix, s.server)
	c := &tapped{cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...)}
	c.cmd.Env, c.cmd.Stderr = s.env, &c.log
	stdin, stdout := pipes(t, c.cmd)
	c.stdin = stdin
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "readonly", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(io.TeeReader(stdout, c)), Writer: stdin}, nil)
	if err != nil {
		t.Fatalf("connecting: %v\n%s", err, &c.log)
	}
	c.ClientSession = session
	return c
}

// raw is an answer to tools/list, by its bytes.
type raw struct {
	Result struct{ Tools []json.RawMessage }
}

// listing lists the tools and returns their definitions as the client got them.
func (c *tapped) listing(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	_, list := c.listed(t)
	tools := map[string]json.RawMessage{}
	for _, definition := range list.Result.Tools {
		var tool struct{ Name string }
		if err := json.Unmarshal(definition, &tool); err != nil {
			t.Fatal(err)
		}
		tools[tool.Name] = definition
	}
	return tools
}

// listed lists the tools and returns the answer's line, from its result on.
func (c *tapped) listed(t *testing.T) (line string, list raw) {
	t.Helper()
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatalf("listing tools: %v", err)
	}
	for _, l := range slices.Backward(c.lines()) {
		if json.Unmarshal([]byte(l), &list) == nil && len(list.Result.Tools) > 0 {
			return l[strings.Index(l, `"result"`):], list
		}
	}
	t.Fatal("no answer has tools")
	return "", list
}

// callAll makes the calls of the side-by-side session. It returns the tools of
// those that must reach the server.
func (c *tapped) callAll(t *testing.T, s *tmuxSession, looks map[string]bool) (want []string) {
	t.Helper()
	vars := map[string]string{"dir": s.dir, "long": strings.Repeat("äß☃𝄞", 60)}
	for _, call := range s.calls(t) {
		inner := strings.Contains(string(call.Arguments), `"tool":"send_keys"`)
		if result, denied := c.call(t, call.params(vars)); denied != (!looks[call.Tool] || inner) {
			t.Errorf("%s with %s: denied is %t: %v", call.Tool, call.Arguments, denied, result)
		} else if !denied {
			want = append(want, call.Tool)
			remember(vars, result)
		}
	}
	return want
}

// batchAll has each tool be called by the tools that take batches, alone and
// behind another.
func (c *tapped) batchAll(t *testing.T, allowed string, looks map[string]bool) (want []string) {
	t.Helper()
	for name := range looks {
		for _, batch := range []string{"call_readonly_tools_batch", "call_read_tools_batch", "call_mutating_tools_batch", "call_destructive_tools_batch"} {
			if _, known := looks[batch]; !known || batch == allowed && looks[name] {
				continue // the server itself decides about a batch in a batch
			}
			for _, before := range []string{"", `{"tool":"list_sessions","arguments":{}},`} {
				arguments := fmt.Sprintf(`{"operations":[%s{"tool":%q,"arguments":{}}],"on_error":"continue"}`, before, name)
				if result, denied := c.call(t, &mcp.CallToolParams{Name: batch, Arguments: json.RawMessage(arguments)}); !denied {
					t.Errorf("%s with %s was not denied: %v", batch, arguments, result)
				}
			}
		}
	}
	const all = `{"operations":[{"tool":"list_sessions","arguments":{}},{"tool":"get_server_info","arguments":{}}],"on_error":"continue"}`
	if _, denied := c.call(t, &mcp.CallToolParams{Name: allowed, Arguments: json.RawMessage(all)}); denied {
		t.Errorf("%s with %s was denied", allowed, all)
	}
	return []string{allowed, "list_sessions", "get_server_info"}
}

func (c *tapped) call(t *testing.T, p *mcp.CallToolParams) (result *mcp.CallToolResult, denied bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatalf("calling %s: %v\n%s", p.Name, err, &c.log)
	}
	if len(result.Content) == 1 {
		text, _ := result.Content[0].(*mcp.TextContent)
		denied = text != nil && result.IsError && strings.HasPrefix(text.Text, "[POLICY DENIED] ")
	}
	return result, denied
}

// hide has the policy hide a tool, and compares the listings before and after.
func (c *tapped) hide(t *testing.T, file string, source []byte, name string) {
	t.Helper()
	before, list := c.listed(t)
	definition := string(c.listing(t)[name])
	want := strings.Replace(before, ","+definition, "", 1)
	if string(list.Result.Tools[0]) == definition {
		want = strings.Replace(before, definition+",", "", 1)
	}
	replace(t, file, append(slices.Clone(source), "hide: ["+name+"]\n"...))
	after := before
	for end := time.Now().Add(patience); after == before && time.Now().Before(end); after, _ = c.listed(t) {
	}
	if after != want {
		t.Errorf("%d bytes are listed after %d, want %d; the first difference is at byte %d", len(after), len(before), len(want), differ([]byte(after), []byte(want)))
	}
	if result, denied := c.call(t, &mcp.CallToolParams{Name: name, Arguments: map[string]any{}}); !denied {
		t.Errorf("the hidden tool was not denied: %v", result)
	}
}

// refuseBatch sends a JSON-RPC batch, which the SDK's client does not make. The
// client is not used after it.
func (c *tapped) refuseBatch(t *testing.T) {
	t.Helper()
	const one = `{"jsonrpc":"2.0","id":"batch %d","method":"tools/call","params":{"name":"%s","arguments":{}}}`
	if _, err := io.WriteString(c.stdin, "["+fmt.Sprintf(one, 1, "list_sessions")+","+fmt.Sprintf(one, 2, "kill_server")+"]\n"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		i := slices.IndexFunc(c.lines(), func(l string) bool { return strings.HasPrefix(l, `[{`) })
		if i >= 0 {
			if l := c.lines()[i]; strings.Count(l, "[POLICY DENIED]") != 2 || !strings.Contains(l, `"batch 1"`) || !strings.Contains(l, `"batch 2"`) {
				t.Errorf("the batch was answered with %s", l)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("the batch is not answered")
		}
	}
}
