package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

// A remoteConfig is an entry as a client reads it.
type remoteConfig struct {
	Type, Command, URL string
	Args               []string
	Headers, Env       map[string]string
}

// entryOf decodes the entry at s by another way than the code under test.
func entryOf(t *testing.T, data []byte, s server) remoteConfig {
	t.Helper()
	first, last := s.entry.all[0], s.entry.all[len(s.entry.all)-1]
	object := "{" + string(data[first.Name.StartOffset:last.Value.EndOffset]) + "}"
	standard, err := hujson.Standardize([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	var c remoteConfig
	if err := json.Unmarshal(standard, &c); err != nil {
		t.Fatalf("%v in %s", err, standard)
	}
	return c
}

// checkRemoteRoundTrip is the promise of wrap --remote: a header's value is in
// the environment and in no argument, and unwrap gives back the bytes.
func checkRemoteRoundTrip(t *testing.T, in []byte) {
	t.Helper()
	before, err := parseServers(in, proxyPath)
	if err != nil {
		return // not a configuration
	}
	r := wrapRewrite(Config{Remote: true})
	wrapped, _, err := rewritten(in, r)
	if err != nil {
		t.Fatalf("wrapping %q: %v", in, err)
	}
	if _, edits, err := rewritten(wrapped, r); err != nil || len(edits) > 0 {
		t.Fatalf("wrapping a second time: %v, %d edits of %q", err, len(edits), wrapped)
	}
	after, err := parseServers(wrapped, proxyPath)
	if err != nil {
		t.Fatalf("wrapping %q gave %q: %v", in, wrapped, err)
	}
	for i, s := range before {
		if s.Problem != "" || !s.Remote || s.Wrapped || s.refusal != "" {
			continue
		}
		old, now := entryOf(t, in, s), entryOf(t, wrapped, after[i])
		url := text(s.entry.urls[0].Value)
		at := slices.Index(now.Args, RemotePackage)
		if at < 0 || at+1 >= len(now.Args) || now.Args[at+1] != url || now.Command != proxyPath || now.URL != "" {
			t.Fatalf("wrapping %q gave %+v", in, now)
		}
		got := make(map[string]string)
		for _, arg := range now.Args[:slices.Index(now.Args, "--")] {
			if flag, ok := strings.CutPrefix(arg, "--remote-header="); ok {
				name, variable, _ := strings.Cut(flag, "=")
				got[name] = now.Env[variable]
				delete(now.Env, variable)
			}
		}
		if d := cmp.Diff(old.Headers, got); d != "" && len(old.Headers)+len(got) > 0 {
			t.Fatalf("headers (-want +got)\n%s\nin %q", d, wrapped)
		}
		if d := cmp.Diff(old.Env, now.Env); d != "" && len(old.Env)+len(now.Env) > 0 {
			t.Fatalf("environment (-want +got)\n%s\nin %q", d, wrapped)
		}
		if len(now.Headers) > 0 {
			t.Fatalf("headers are left in %q", wrapped)
		}
	}
	for _, s := range before {
		if s.Wrapped {
			return // wrapping started from other bytes
		}
	}
	back, _, err := rewritten(wrapped, unwrapRewrite(Config{}))
	if err != nil || !bytes.Equal(back, in) {
		t.Fatalf("unwrapping: %v\nin      %q\nwrapped %q\nback    %q", err, in, wrapped, back)
	}
}

func TestURLRefusal(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"https://mcp.example.com/mcp", ""},
		{"HTTPS://mcp.example.com", ""},
		{"https://mcp.supabase.com/mcp?project_ref=abcdefghijklmnopqrst&read_only=true", ""},
		{"https://example.com/mcp?max_tokens=100&page=2", ""},
		{"${API_BASE_URL:-https://api.example.com}/mcp", ""},
		{"https://${input:host}/mcp", ""},
		{"http://localhost:8080/mcp", ""},
		{"http://127.0.0.2:8080/mcp", ""},
		{"http://[::1]:8080/mcp", ""},
		{"http://10.0.0.1/mcp", "http:// to another machine"},
		{"http://localhost.example.com/mcp", "http:// to another machine"},
		{"http://[::1].example.com/mcp", "http:// to another machine"},
		{"https://ann:pw@example.com/mcp", "password or user name"},
		{"https://token@example.com/mcp", "password or user name"},
		{"https://${TOKEN}@example.com/mcp", "password or user name"},
		{"https://example.com/mcp?api_key=abc", "holds a credential"},
		{"https://example.com/mcp?tavilyApiKey=abc", "holds a credential"},
		{"https://example.com/mcp?api%5Fkey=abc", "holds a credential"},
		{"https://example.com/mcp?KEY=abc", "holds a credential"},
		{"https://example.com/sse?code=abc==", "holds a credential"},
		{"https://example.com/mcp?a=1&token=%zz", "holds a credential"},
		{"https://example.com/mcp#access_token=abc", "holds a credential"},
		{"https://example.com/mcp#key=abc", "holds a credential"},
		{"https://example.com/mcp#a?key=abc", "holds a credential"},
		{"https://example.com/mcp/ghp_0123456789abcdefABCDEF0123456789abcd", "holds a credential"},
		{"https://example.com/mcp?x=${API_KEY}", "the client fills in"},
		{"https://example.com/${input:key}/mcp", "the client fills in"},
		{"unix:///run/mcp.sock", "not an http://"},
		{"ws://example.com", "not an http://"},
		{"--debug", "not an http://"},
		{"https://example.com/a b", "not an http://"},
		{"", "not an http://"},
	} {
		got := urlRefusal(tt.url)
		if tt.want == "" && got != "" || tt.want != "" && !strings.Contains(got, tt.want) {
			t.Errorf("urlRefusal(%q) = %q, want %q", tt.url, got, tt.want)
		}
		if strings.Contains(got, "abc") || strings.Contains(got, "pw") {
			t.Errorf("urlRefusal(%q) quotes the credential: %q", tt.url, got)
		}
	}
}

// Later edits are kept: a rotated token goes back into the headers, and an
// added variable stays in the environment.
func TestUnwrapEditedRemote(t *testing.T) {
	const args = `"args":["--remote=url:http","--remote-header=X-Key=MCP_HEADER_X_KEY","--","npx","-y","mcp-remote@0.15.1","https://example.com/new","--debug"]`
	for _, tt := range []struct{ name, in, want string }{
		{"another URL and value", `"type":"stdio","command":"auditproxy",` + args + `,"env":{"MCP_HEADER_X_KEY":"new"}`,
			`"type":"http","url":"https://example.com/new","headers":{"X-Key":"new"}`},
		{"another order", args + `,"env":{"MCP_HEADER_X_KEY":"v"},"command":"auditproxy"`, `"headers":{"X-Key":"v"},"url":"https://example.com/new"`},
		{"a variable more", `"command":"auditproxy",` + args + `,"env":{"HTTPS_PROXY":"p","MCP_HEADER_X_KEY":"v"}`,
			`"url":"https://example.com/new","headers": {"X-Key": "v"}, "env": {"HTTPS_PROXY": "p"}`},
		{"no variable left", `"command":"auditproxy",` + args + `,"env":{}`, `"url":"https://example.com/new","env":{}`},
		{"no environment left", `"command":"auditproxy",` + args, `"url":"https://example.com/new"`},
		{"headers beside it", `"command":"auditproxy",` + args + `,"env":{"A":"1","MCP_HEADER_X_KEY":"v"},"headers":{}`,
			`"url":"https://example.com/new","env": {"A": "1"},"headers":{"X-Key": "v"}`},
		{"members that it never had", `"disabled":true,"command":"auditproxy",` + args, `"disabled":true,"url":"https://example.com/new"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := rewritten([]byte(`{"servers":{"s":{`+tt.in+`}}}`), unwrapRewrite(Config{}))
			if want := `{"servers":{"s":{` + tt.want + `}}}`; err != nil || string(got) != want {
				t.Errorf("unwrapping: %v\ngot  %s\nwant %s", err, got, want)
			}
		})
	}
}

// A repository can contain an entry that only looks as wrap --remote left it.
// Unwrapping must only restore what wrap could have started from.
func TestUnwrapForgedRemote(t *testing.T) {
	for _, flags := range []string{`"--remote=command"`, `"--remote=url:stdio"`, `"--remote=url","--remote-header=a b=X"`, `"--remote=url","--remote-header=A"`} {
		in := `{"servers":{"s":{"command":"auditproxy","args":[` + flags + `,"--","npx","mcp-remote","https://example.com"],"env":{"X":"1"}}}}`
		got, _, err := rewritten([]byte(in), unwrapRewrite(Config{}))
		if err != nil || string(got) != in {
			t.Errorf("unwrapping: %v, got %s from %s", err, got, in)
		}
	}
}

func TestCheckNpx(t *testing.T) {
	err := checkNpx(func(string) (string, error) { return "", errors.New("not there") })
	if err == nil || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("checkNpx without npx = %v, want a remedy", err)
	}
}
