package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// proxyPath is where clients find the proxy in these tests.
const proxyPath = "/opt/bin/auditproxy"

// A parser is parseServers, parseTOML or parseYAML.
type parser func(data []byte, self string) ([]server, error)

// rewritten applies one rewrite to a configuration. It changes nothing if the
// configuration cannot be read.
func rewritten(data []byte, r *rewrite) ([]byte, []udiff.Edit, error) {
	return rewrittenAs(parseServers, data, r)
}

func rewrittenAs(parse parser, data []byte, r *rewrite) ([]byte, []udiff.Edit, error) {
	servers, err := parse(data, proxyPath)
	if err != nil {
		return nil, nil, err
	}
	var edits []udiff.Edit
	for _, s := range servers {
		if s.Problem == "" && r.concerns(s) {
			edits = append(edits, r.edits(data, s, proxyPath)...)
		}
	}
	after, err := udiff.ApplyBytes(data, edits)
	return after, edits, err
}

// checkUnwraps checks that wrapping what edits made of in changes nothing more, and that unwrapping
// it gives in back. It returns false where a server was wrapped before.
func checkUnwraps(t *testing.T, parse parser, servers []server, in, after []byte, edits []udiff.Edit) bool {
	t.Helper()
	if again, edits, err := rewrittenAs(parse, after, wrapRewrite(Config{})); err != nil || len(edits) > 0 {
		t.Fatalf("wrapping %q a second time: %v, %q", after, err, again)
	}
	if slices.ContainsFunc(servers, func(s server) bool { return s.Wrapped }) {
		return false // wrapping started from other bytes
	}
	back, _, err := rewrittenAs(parse, after, unwrapRewrite(Config{}))
	if err != nil || !bytes.Equal(back, in) {
		t.Fatalf("unwrapping: %v\nin      %q\nwrapped %q\nback    %q\n%v", err, in, after, back, edits)
	}
	return true
}

func TestWrapGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/wrap/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			golden, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in, parse := golden.Files[0].Data, parser(parseServers)
			switch filepath.Base(file) {
			case "codex.txtar":
				parse = parseTOML
			case "goose.txtar", "continue.txtar":
				parse = parseYAML
			}
			servers, err := parse(in, proxyPath)
			if err != nil {
				t.Fatal(err)
			}
			r := wrapRewrite(Config{Remote: strings.HasPrefix(filepath.Base(file), "remote")})
			var remarks strings.Builder
			for _, s := range servers {
				if s.Problem != "" || !r.concerns(s) {
					fmt.Fprintf(&remarks, "%s %s\n", s.Label(), r.remark(s))
				}
			}
			wrapped, _, err := rewrittenAs(parse, in, r)
			if err != nil {
				t.Fatal(err)
			}
			if back, _, err := rewrittenAs(parse, wrapped, unwrapRewrite(Config{})); err != nil || !bytes.Equal(back, in) && !bytes.Contains(in, []byte("auditproxy")) {
				t.Errorf("unwrapped, it is %q, %v", back, err)
			}
			diff, err := unified("in", "wrapped", in, wrapped)
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: golden.Comment, Files: []txtar.File{
				{Name: "in", Data: in},
				{Name: "wrapped", Data: wrapped},
				{Name: "diff", Data: []byte(diff)},
				{Name: "not wrapped", Data: []byte(remarks.String())},
			}}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(txtar.Format(golden)), string(txtar.Format(got))); d != "" {
				t.Errorf("(-want +got; go test -update rewrites)\n%s", d)
			}
		})
	}
}

// TestWrapBytes covers what the golden files cannot hold.
func TestWrapBytes(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"keeps the line ends of Windows", "{\"servers\":{\"s\":{\r\n\t\"command\":\"a\"\r\n}}}", "{\"servers\":{\"s\":{\r\n\t\"command\":\"/opt/bin/auditproxy\",\r\n\t\"args\": [\"--\", \"a\"]\r\n}}}"},
		{"reads the settings of Zed", `{"context_servers":{"s":{"source":"custom","command":"a","env":{}}}}`, `{"context_servers":{"s":{"source":"custom","command":"/opt/bin/auditproxy", "args": ["--", "a"],"env":{}}}}`},
		{"reads past a byte order mark", "\ufeff{\"servers\":{\"s\":{\"command\":\"a\",\"args\":[\"b\"]}}}", "\ufeff{\"servers\":{\"s\":{\"command\":\"/opt/bin/auditproxy\",\"args\":[\"--\", \"a\", \"b\"]}}}"},
		{"reads a comment that ends the file", "{\"servers\":{\"s\":{\"command\":\"a\",\"args\":[]}}}//", "{\"servers\":{\"s\":{\"command\":\"/opt/bin/auditproxy\",\"args\":[ \"--\", \"a\"]}}}//"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := rewritten([]byte(tt.in), wrapRewrite(Config{}))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("wrapped\n%q\ngot  %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestUnwrapEdited(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"keeps an argument added at the end", `{"servers":{"s":{"command":"auditproxy","args":["--","a","b","c"]}}}`, `{"servers":{"s":{"command":"a","args":["b","c"]}}}`},
		{"drops the proxy's flags", `{"servers":{"s":{"command":"auditproxy","args":["--durability","os","--","a","b"]}}}`, `{"servers":{"s":{"command":"a","args":["b"]}}}`},
		{"drops flags where no argument is left", `{"servers":{"s":{"command":"auditproxy","args":["--on-audit-failure=allow","--","a"]}}}`, `{"servers":{"s":{"command":"a","args":[]}}}`},
		{"takes the first -- for its own", `{"servers":{"s":{"command":"auditproxy","args":["--","a","--","b"]}}}`, `{"servers":{"s":{"command":"a","args":["--","b"]}}}`},
		{"empties a list that was put on lines of its own", "{\"servers\":{\"s\":{\"args\":[\n \"--\",\n \"a\"\n],\"command\":\"auditproxy\"}}}", `{"servers":{"s":{"args":[],"command":"a"}}}`},
		{"leaves no comma alone", `{"servers":{"s":{"args":["--","a" /*c*/ ,],"command":"auditproxy"}}}`, `{"servers":{"s":{"args":[],"command":"a"}}}`},
		{"keeps a comment before the list", `{"servers":{"s":{"args":[/*c*/"--","a"],"command":"auditproxy"}}}`, `{"servers":{"s":{"args":[/*c*/],"command":"a"}}}`},
		{"moves escapes as they are", `{"servers":{"s":{"command":"auditproxy","args":["--","\u0061\/b"]}}}`, `{"servers":{"s":{"command":"\u0061\/b","args":[]}}}`},
		{"knows a proxy that has moved", `{"servers":{"s":{"command":"/elsewhere/auditproxy","args":["--","a","b"]}}}`, `{"servers":{"s":{"command":"a","args":["b"]}}}`},
		{"leaves a proxy without a command", `{"servers":{"s":{"command":"auditproxy","args":["log"]}}}`, `{"servers":{"s":{"command":"auditproxy","args":["log"]}}}`},
		{"finds what VS Code once had", `{"mcp":{"servers":{"s":{"command":"auditproxy","args":["--","a","b"]}}}}`, `{"mcp":{"servers":{"s":{"command":"a","args":["b"]}}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := rewritten([]byte(tt.in), unwrapRewrite(Config{}))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("unwrapped\n%s\ngot  %s\nwant %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestParseServersSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"a comma too few", "{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: invalid character '\"' after object value (expecting ',' or '}')"},
		{"an end too early", "{", "line 2, column 1: parsing value: unexpected EOF"},
		{"a comment without an end", "/* x", "line 1, column 1: parsing comment: unexpected EOF"},
		{"a list", "[]", "not a JSON object"},
		{"text after the end", "{} {}", "line 1, column 4: invalid character '{' after top-level value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseServers([]byte(tt.in), ""); err == nil || err.Error() != tt.want {
				t.Errorf("parseServers(%q) = %v, want %s", tt.in, err, tt.want)
			}
		})
	}
}

// TestBlankFile reads files as clients leave them that have no servers.
func TestBlankFile(t *testing.T) {
	for _, in := range []string{"", " \r\n\t", "\ufeff", "// none yet", "/* none */ \n// yet\n"} {
		if servers, err := parseServers([]byte(in), ""); servers != nil || err != nil {
			t.Errorf("parseServers(%q) = %v, %v, want no servers", in, servers, err)
		}
	}
}

// TestHostileFile has files that an agent's repository can contain, and which doctor
// and wrap read.
func TestHostileFile(t *testing.T) {
	dir := t.TempDir()
	deep := strings.Repeat("[", 1e6)
	for name, data := range map[string]string{
		"deep":    `{"mcpServers": {}, "a": ` + deep + strings.Repeat("]", 1e6) + "}",
		"open":    deep,
		"comment": "// don't \"\n/* \" */" + deep,
		"objects": strings.Repeat(`{"a\\":`, maxDepth+1),
	} {
		if _, err := parseServers([]byte(data), ""); err == nil || err.Error() != "its values are nested more than 10000 deep" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string]string{
		"in a string": `{"mcpServers": {}, "a": "` + deep + `\""}`,
		"in comments": `{"mcpServers": {} /*` + deep + `"*/} // "` + deep,
		"in a row":    `{"mcpServers": {}, "a": [` + strings.Repeat("[],", maxDepth) + `]}`,
		"deep enough": `{"mcpServers": {}, "a": ` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`,
	} {
		if servers, err := parseServers([]byte(data), ""); err != nil || servers == nil {
			t.Errorf("%s: %v, %v", name, servers, err)
		}
	}

	large := filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(large, ""); err == nil || !strings.HasSuffix(err.Error(), `large": it has more than 64 MiB`) {
		t.Errorf("a large file: %v", err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(loop, ""); err == nil || !strings.Contains(err.Error(), strconv.Quote(loop)) {
		t.Errorf("a loop of links: %v", err)
	}

	// The name of a link's target is the repository's too.
	link := filepath.Join(dir, "link.json")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a\x1b[2J\n.json"), []byte(`{"servers": {"a": {"command": "a", "env": {"HOME": "/"}}}}`), 0o600),
		os.Symlink("a\x1b[2J\n.json", link)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	clean := func(file []byte) []byte { return file }
	if err := Wrap(Config{Stdout: &out, Getenv: os.Getenv, Clean: clean, Yes: true}, []string{link}); err != nil || !strings.Contains(out.String(), `/a\x1b[2J\n.json.auditproxy-backup`) {
		t.Errorf("%v: %q", err, out.String())
	}
}

// checkRoundTrip is the promise: every server that can be wrapped runs through
// the proxy with its own command and arguments, wrapping again changes nothing,
// and unwrapping gives back the bytes.
func checkRoundTrip(t *testing.T, in []byte) {
	t.Helper()
	servers, err := parseServers(in, proxyPath)
	if err != nil {
		return // not a configuration
	}
	before := decodeServers(t, in, servers)
	wrapped, _, err := rewritten(in, wrapRewrite(Config{}))
	if err != nil {
		t.Fatalf("wrapping %q: %v", in, err)
	}
	again, edits, err := rewritten(wrapped, wrapRewrite(Config{}))
	if err != nil || len(edits) > 0 {
		t.Fatalf("wrapping a second time: %v, got %q from %q", err, again, wrapped)
	}
	now, err := parseServers(wrapped, proxyPath)
	if err != nil {
		t.Fatalf("wrapping %q gave %q: %v", in, wrapped, err)
	}
	for i, got := range decodeServers(t, wrapped, now) {
		want := before[i]
		if s := servers[i]; s.Problem == "" && !s.Wrapped && !s.Remote {
			want = append([]string{proxyPath, "--"}, want...)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("server %q (-want +got)\n%s\nin %q", now[i].Name, d, wrapped)
		}
	}
	for _, s := range servers {
		if s.Wrapped {
			return // wrapping started from other bytes
		}
	}
	back, _, err := rewritten(wrapped, unwrapRewrite(Config{}))
	if err != nil || !bytes.Equal(back, in) {
		t.Fatalf("unwrapping: %v\nin      %q\nwrapped %q\nback    %q", err, in, wrapped, back)
	}
}

// decodeServers reads the command lines by another way than the code under
// test: encoding/json, from the offsets that it found.
func decodeServers(t *testing.T, data []byte, servers []server) [][]string {
	t.Helper()
	var lines [][]string
	for _, s := range servers {
		if s.Problem != "" || s.Remote {
			lines = append(lines, nil)
			continue
		}
		var command string
		if err := json.Unmarshal(data[s.command.StartOffset:s.command.EndOffset], &command); err != nil {
			t.Fatal(err)
		}
		line := []string{command}
		if s.joined {
			line = nil // it is in the list
		}
		if s.args.Value != nil {
			list, err := hujson.Standardize(bytes.Clone(data[s.args.StartOffset:s.args.EndOffset]))
			if err != nil {
				t.Fatal(err)
			}
			var args []json.RawMessage
			if err := json.Unmarshal(list, &args); err != nil {
				t.Fatal(err)
			}
			for _, arg := range args {
				var text string
				if json.Unmarshal(arg, &text) != nil {
					text = "not a string: " + string(arg)
				}
				line = append(line, text)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func FuzzRoundTrip(f *testing.F) {
	files, err := filepath.Glob("testdata/wrap/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		golden, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(golden.Files[0].Data)
	}
	f.Add([]byte("\ufeff{\r\n \"servers\": {\r\n  \"s\": {\r\n   \"command\": \"a\",\r\n   \"args\": [\r\n    \"b\"\r\n   ]\r\n  }\r\n }\r\n}// end"))
	f.Fuzz(func(t *testing.T, in []byte) {
		checkRoundTrip(t, in)
		checkRemoteRoundTrip(t, in)
	})
}

// TestRoundTripGenerated generates configurations that random bytes hardly
// make.
func TestRoundTripGenerated(t *testing.T) {
	for seed := range uint64(4000) {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in := []byte(g.config())
			checkRoundTrip(t, in)
			checkRemoteRoundTrip(t, in)
		})
	}
}

// A generator writes configurations with white space and comments anywhere.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) space() string {
	return g.pick("", "", "", " ", "\n", "\n  ", "\r\n\t", "  \n", "/* c */", " // c\n", "/*\n*/  ", "\n/* c */ ")
}

func (g generator) list(open, end string, n int, member func() string) string {
	var b strings.Builder
	b.WriteString(open)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(g.space() + member() + g.space())
	}
	if n == 0 || g.IntN(3) == 0 {
		b.WriteString(g.pick("", strings.Repeat(",", min(n, 1))) + g.space())
	}
	return b.String() + end
}

func (g generator) member(name, value string) string {
	return `"` + name + `"` + g.space() + ":" + g.space() + value
}

func (g generator) text() string {
	return g.pick(`"a"`, `"--"`, `"\u002d-"`, `"a\/b"`, `"-y"`, `"\ud800"`, `"x y"`, `"`+"é\U0001f600"+`"`, `"${HOME}/x"`)
}

func (g generator) server() string {
	members := []string{g.member("command", g.text())}
	if g.IntN(4) == 0 { // as opencode has it
		members[0] = g.member("command", g.list("[", "]", 1+g.IntN(3), g.text))
	} else if g.IntN(3) > 0 {
		members = append(members, g.member("args", g.list("[", "]", g.IntN(4), g.text)))
	}
	for g.IntN(2) == 0 {
		members = append(members, g.pick(g.member("type", `"stdio"`), g.member("env", `{"command": "no"}`), g.member("url", `"https://example.com"`), g.member("args", g.pick("null", "[]"))))
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	next := 0
	return g.list("{", "}", len(members), func() string { next++; return members[next-1] })
}

// remote is a server with a URL, in ways that clients and people write it.
func (g generator) remote() string {
	members := []string{g.member(g.pick("url", "url", "serverUrl", "httpUrl"), g.pick(`"https://example.com/mcp"`, `"https:\/\/example.com"`, `"http://localhost:1/"`, `"https://u:p@example.com"`, `7`))}
	value := func() string { return g.pick(`"v"`, `"Bearer ${input:token}"`, `"\u0061"`, `""`) }
	names := []string{"Authorization", "X-A", "X_A", "x"}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if g.IntN(3) > 0 {
		next := 0
		members = append(members, g.member("headers", g.list("{", "}", g.IntN(4), func() string { next++; return g.member(names[next-1], value()) })))
	}
	for g.IntN(3) == 0 {
		members = append(members, g.pick(g.member("type", g.pick(`"http"`, `"sse"`, `"streamable-http"`, `"ws"`)), g.member("transport", `"http"`),
			g.member("env", g.list("{", "}", g.IntN(3), func() string { return g.member(g.pick("A", "MCP_HEADER_X_A", "MCP_HEADER_X_A_2"), value()) })),
			g.member("disabled", "false"), g.member("oauth", "{}"), g.member("headers", "null")))
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	next := 0
	return g.list("{", "}", len(members), func() string { next++; return members[next-1] })
}

func (g generator) servers() string {
	return g.list("{", "}", g.IntN(4), func() string {
		server := g.server
		if g.IntN(2) == 0 {
			server = g.remote
		}
		return g.member(g.pick("s", "t", `\u0073`), server())
	})
}

func (g generator) config() string {
	return g.pick("", "\ufeff") + g.space() + g.list("{", "}", g.IntN(4), func() string {
		switch g.IntN(4) {
		case 0:
			return g.pick(g.member("servers", g.servers()), g.member("mcp", g.servers()), g.member("mcp", g.list("{", "}", 1, func() string { return g.member("servers", g.servers()) })))
		case 1:
			return g.member("projects", g.list("{", "}", g.IntN(3), func() string {
				return g.member("/p", g.list("{", "}", 1, func() string { return g.member("mcpServers", g.servers()) }))
			}))
		case 2:
			return g.member("other", g.pick("1e999", "null", `[{"command": "no"}]`))
		}
		return g.member("mcpServers", g.servers())
	}) + g.space()
}

// TestReplace covers what the scripts do not show: links, modes, and files that
// change while the question waits.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.json"), filepath.Join(dir, "link.json")
	write := func(data string) {
		t.Helper()
		if err := os.WriteFile(target, []byte(data), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("{}")
	if err := os.Symlink("target.json", link); err != nil {
		t.Fatal(err)
	}
	c, err := readConfig(link, proxyPath)
	if err != nil {
		t.Fatal(err)
	}
	write(`{"new": 1}`)
	if _, err := c.replace([]byte("[]")); err == nil || !strings.Contains(err.Error(), "changed since") {
		t.Fatalf("replacing a file that has changed = %v", err)
	}
	if c, err = readConfig(link, proxyPath); err != nil {
		t.Fatal(err)
	}
	backup, err := c.replace([]byte("[]"))
	if err != nil {
		t.Fatal(err)
	}
	type file struct {
		Data string
		Mode string
	}
	got := make(map[string]file)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = file{string(data), info.Mode().String()[:4]}
	}
	want := map[string]file{
		"link.json":           {"[]", "Lrwx"},
		"target.json":         {"[]", "-rw-"},
		filepath.Base(backup): {`{"new": 1}`, "-rw-"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("target has mode %v, %v; want 0640", info.Mode(), err)
	}
}

func TestVisible(t *testing.T) {
	const in = "-// \x1b[2K\u202e\r\n+é\tx\n"
	if got, want := visible(in), "-// \\u001b[2K\\u202e\n+é\tx\n"; got != want {
		t.Errorf("visible(%q) = %q, want %q", in, got, want)
	}
}

func TestKnownConfigs(t *testing.T) {
	project := []string{".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json", ".zed/settings.json",
		".codex/config.toml", "opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc", ".amp/settings.json", ".amp/settings.jsonc",
		".roo/mcp.json", ".kiro/settings/mcp.json", ".amazonq/mcp.json", ".agents/mcp_config.json", ".junie/mcp/mcp.json", ".qwen/settings.json", ".qwen/settings.local.json",
		"crush.json", ".crush.json", ".crush/crush.json", ".factory/mcp.json", ".kilo/mcp.json", ".kilocode/mcp.json", "kilo.json", "kilo.jsonc"}
	user := []string{"/h/.claude.json", "/h/.cursor/mcp.json", "/h/.gemini/settings.json", "/h/.codeium/windsurf/mcp_config.json"}
	opencode := []string{"opencode/config.json", "opencode/opencode.json", "opencode/opencode.jsonc"}
	home := []string{"/h/.opencode/opencode.json", "/h/.opencode/opencode.jsonc"}
	amp := []string{"/h/.config/amp/settings.json", "/h/.config/amp/settings.jsonc"}
	other := []string{"/h/.kiro/settings/mcp.json", "/h/.aws/amazonq/mcp.json", "/h/.gemini/config/mcp_config.json", "/h/.gemini/antigravity/mcp_config.json",
		"/h/.gemini/antigravity-cli/mcp_config.json", "/h/.junie/mcp/mcp.json", "/h/.qwen/settings.json"}
	crush := []string{"/h/.local/share/crush/crush.json", "/h/.factory/mcp.json", "/h/.kilocode/mcp.json"}
	kilo := []string{"kilo/kilo.json", "kilo/kilo.jsonc"}
	lm := []string{"/h/.lmstudio/mcp.json", "/h/.cache/lm-studio/mcp.json"}
	yaml := []string{"goose/config.yaml"}
	cline := []string{"/h/.continue/config.yaml", "/h/.cline/data/settings/cline_mcp_settings.json"}
	const asCline, asKilo, asRoo = "saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "kilocode.kilo-code/settings/mcp_settings.json", "rooveterinaryinc.roo-cline/settings/mcp_settings.json"
	var data []string
	for _, editor := range []string{"Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf"} {
		data = append(data, editor+"/User/globalStorage/"+asCline, editor+"/User/globalStorage/"+asKilo, editor+"/User/globalStorage/"+asRoo)
	}
	data = append(data, "Claude/claude_desktop_config.json", "Code/User/mcp.json", "Code - Insiders/User/mcp.json")
	linux := []string{"/etc/claude-code/managed-mcp.json", "/etc/codex/config.toml", "/etc/codex/managed_config.toml", "/etc/crush/crush.json",
		"/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc", "/etc/ampcode/managed-settings.json"}
	mac := []string{"/Library/Application Support/ClaudeCode/managed-mcp.json", "/etc/codex/config.toml", "/etc/codex/managed_config.toml", "/etc/crush/crush.json",
		"/Library/Application Support/opencode/opencode.json", "/Library/Application Support/opencode/opencode.jsonc", "/Library/Application Support/ampcode/managed-settings.json"}
	for _, tt := range []struct {
		goos string
		env  map[string]string
		want []string
	}{
		{"linux", nil, slices.Concat(project, linux)},
		{"darwin", nil, slices.Concat(project, mac)},
		{"linux", map[string]string{"HOME": "/h"}, slices.Concat(project, user,
			[]string{"/h/.config/zed/settings.json", "/h/.copilot/mcp-config.json", "/h/.codex/config.toml"}, below("/h/.config/", opencode), home, amp, other, []string{"/h/.config/crush/crush.json"}, crush, below("/h/.config/", kilo), lm,
			below("/h/.config/", yaml), cline, below("/h/.config/", data), linux)},
		{"linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/c", "COPILOT_HOME": "/g", "CODEX_HOME": "/d",
			"OPENCODE_CONFIG_DIR": "/o", "OPENCODE_CONFIG": "/p/o.json", "AMP_SETTINGS_FILE": "/p/a.json", "CLINE_MCP_SETTINGS_PATH": "/p/c.json"}, slices.Concat(project,
			[]string{"/c/.claude.json"}, user, []string{"/x/zed/settings.json", "/g/mcp-config.json", "/h/.copilot/mcp-config.json", "/d/config.toml", "/h/.codex/config.toml"},
			below("/x/", opencode), home, []string{"/o/opencode.json", "/o/opencode.jsonc", "/p/o.json"}, amp, []string{"/p/a.json"}, other, []string{"/x/crush/crush.json"}, crush, below("/x/", kilo), lm,
			below("/x/", yaml), cline[:1], []string{"/p/c.json"}, cline[1:], below("/x/", data), linux)},
		{"darwin", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, slices.Concat(project, user,
			[]string{"/h/.config/zed/settings.json", "/h/.copilot/mcp-config.json", "/h/.codex/config.toml"}, below("/x/", opencode), home, amp, other, []string{"/x/crush/crush.json"}, crush, below("/x/", kilo), lm,
			below("/h/.config/", yaml), cline, below("/h/Library/Application Support/", data), mac)},
	} {
		var got []string
		for _, f := range knownConfigs(tt.goos, func(name string) string { return tt.env[name] }) {
			got = append(got, f.path)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s, %v (-want +got)\n%s", tt.goos, tt.env, d)
		}
	}
}

func below(dir string, names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, dir+name)
	}
	return paths
}

func TestScanClients(t *testing.T) {
	home := t.TempDir()
	for path, data := range map[string]string{
		".claude.json": `{"projects":{"/p":{"mcpServers":{"a":{"command":"auditproxy","args":["--drain","1s","--","a"],"env":{"HOME":"/h","N":1,"GONE":null}}}}}}`,
		".config/Code/User/profiles/5552b383/mcp.json": `{"servers":{"d":{"command":"d"}}}`,
		".cursor/mcp.json":                 `{"mcpServers":{"b":{"command":"b"},"c":{"url":"https://example.com"}}}`,
		".codex/review.config.toml":        "[mcp_servers.e]\ncommand = 'e'\nenv_vars = ['A', {name = 'B'}]\nenv.C = 'c'\n[mcp_servers.f]\nurl = 'https://example.com'",
		".config/opencode/opencode.jsonc":  `{"mcp":{"g":{"type":"local","command":["g"],"environment":{"D":"d"}},"h":{"type":"remote","url":"https://example.com"}}}`,
		".config/amp/settings.json":        `{"amp.mcpServers":{"i":{"command":"i"}}}`,
		".mcp.json":                        `{`,
		".kiro/agents/reviewer.json":       `{"name":"reviewer","mcpServers":{"j":{"command":"j"}}}`,
		".crush.json":                      `{"mcp":{"k":{"type":"stdio","command":"k","args":["x"]}}}`,
		".kiro/agents/reviewer.md":         "Review.",
		".aws/amazonq/agents/default.json": `{"name":"default","tools":["*"]}`,
		".vscode":                          ``, // no directory, so there is no configuration below it
	} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(home) // .cursor/mcp.json is the project's and the user's
	got := make(map[string][]Server)
	for _, c := range Scan(func(name string) string { return map[string]string{"HOME": home}[name] }) {
		if (c.Err != nil) != (c.Path == ".mcp.json") {
			t.Errorf("%s: %v", c.Path, c.Err)
		}
		got[c.Client+" "+c.Path] = c.Servers
	}
	want := map[string][]Server{
		"Claude Code .mcp.json": nil,
		"VS Code " + filepath.Join(home, ".config/Code/User/profiles/5552b383/mcp.json"): {{Name: "d"}},
		"Cursor .cursor/mcp.json": {{Name: "b"}, {Name: "c", Remote: true}},
		"Codex " + filepath.Join(home, ".codex/review.config.toml"): {
			{Name: "e", Env: []string{"C=c"}, Passed: append(slices.Clone(codexVariables), "A", "B")}, {Name: "f", Remote: true, Passed: codexVariables}},
		"opencode " + filepath.Join(home, ".config/opencode/opencode.jsonc"): {{Name: "g", Braces: true, Env: []string{"D=d"}}, {Name: "h", Remote: true}},
		"Amp " + filepath.Join(home, ".config/amp/settings.json"):            {{Name: "i"}},
		"Crush .crush.json":               {{Name: "k"}},
		"Kiro .kiro/agents/reviewer.json": {{Name: "j"}},
		"Amazon Q " + filepath.Join(home, ".aws/amazonq/agents/default.json"): nil,
		"Claude Code " + filepath.Join(home, ".claude.json"):                  {{Name: "a", Project: "/p", Wrapped: true, Command: "auditproxy", Flags: []string{"--drain", "1s"}, Env: []string{"HOME=/h", "N=1", "GONE="}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
