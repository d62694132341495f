package clients

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestYAML reads servers in YAML.
func TestYAML(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		".config/goose/config.yaml": `GOOSE_MODEL: m
extensions:
  developer: {type: builtin, name: developer, enabled: true}
  git:
    type: stdio
    cmd: uvx
    args: [mcp-server-git]
    envs: {TOKEN: t, "N": 1}
  recorded: {type: stdio, cmd: /bin/auditproxy, args: [--drain, 1s, --, uvx, x]}
  bare: {type: stdio, cmd: auditproxy, args: [x]}
  far: {type: streamable_http, uri: "https://example.com/mcp"}
  odd: {type: stdio, cmd: [x]}
`,
		".continue/config.yaml":           "name: c\nmcpServers:\n  - name: files\n    command: npx\n    args: [-y, files]\n  - name: far\n    url: https://example.com/mcp\n",
		".continue/mcpServers/other.yaml": "mcpServers: {}\n",
		".continue/mcpServers/more.json":  `{"mcpServers":{"a":{"command":"a"}}}`,
		".continue/mcpServers/readme.md":  "no servers",
	} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	got := map[string][]Server{}
	for _, c := range Scan(getenv) {
		if c.Err != nil {
			t.Errorf("%s: %v", c.Path, c.Err)
		}
		name, _ := filepath.Rel(home, c.Path)
		got[c.Client+" "+name] = c.Servers
	}
	want := map[string][]Server{
		"goose .config/goose/config.yaml": {
			{Name: "git", Env: []string{"TOKEN=t", "N=1"}},
			{Name: "recorded", Wrapped: true, Command: "/bin/auditproxy", Flags: []string{"--drain", "1s"}},
			{Name: "bare", Problem: `it runs auditproxy without "--" and a command after it`},
			{Name: "far", Remote: true},
			{Name: "odd", Problem: `its "command" is not a non-empty string`},
		},
		"Continue .continue/config.yaml":           {{Name: "files"}, {Name: "far", Remote: true}},
		"Continue .continue/mcpServers/other.yaml": nil,
		"Continue .continue/mcpServers/more.json":  {{Name: "a"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	for _, text := range []string{"extensions: [", "extensions: {a: *b}", strings.Repeat("[", 100_000), "extensions: {a: {<<: &x {cmd: c}, args: *x}}"} {
		if servers, err := parseYAML([]byte(text), "self"); err == nil && (len(servers) != 1 || servers[0].Problem == "") {
			t.Errorf("%.40q: %+v, %v", text, servers, err)
		}
	}
}

// TestYAMLByHand has entries that are left alone, since a change of the text at their place
// would change more, or less.
func TestYAMLByHand(t *testing.T) {
	for _, entry := range []string{
		"{cmd: &c a}", "{cmd: *b}", "{cmd: !!str a}", "{cmd: !x a, args: [b]}", "\n    cmd: |\n      a", "\n    cmd: >-\n      a\n    args: []", "*whole", "{<<: *whole}", "{cmd: a, args: *list}",
		"{cmd: a, args: [&x b, c], env: {d: *x}}", "{cmd: auditproxy, args: [--, a, &x b], c: *x}", "\n    cmd: a,b\n    args: [c]",
		"\n    cmd: a\n    args:", "\n    cmd: a\n    args: # c\n    - # d\n      b", "\n    ? cmd\n    : a", "\n    cmd: auditproxy\n    args: # c\n      - --\n      - a",
	} {
		text := "b: &b b\nlist: &list [b]\nwhole: &whole {cmd: a}\nextensions:\n  s: " + entry + "\n"
		servers, err := parseYAML([]byte(text), proxyPath)
		if err != nil || len(servers) != 1 || servers[0].Problem == "" {
			t.Errorf("%q: %+v, %v", text, servers, err)
		}
	}
}

// TestYAMLShowsNoVariables wraps an entry whose variables are texts of several lines.
func TestYAMLShowsNoVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "extensions:\n  s:\n    cmd: a\n    envs:\n      A: |\n        secret1\n        secret2\n      B: 'secret3\n        secret4'\n      C: secret5\n    args:\n      - b\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	clean := func(b []byte) []byte { return b }
	if err := Wrap(Config{Stdout: &out, Stderr: &out, Getenv: os.Getenv, Clean: clean, DryRun: true}, []string{path}); err != nil {
		t.Fatal(err)
	}
	want := `
     envs:
       A: "[redacted]"
       B: "[redacted]"
       C: "[redacted]"
     args:
+      - "--"
+      - a
       - b
`
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("the change is shown as\n%s\nwant at its end%s", got, want)
	}
}

// TestSameYAML compares files in which more changed than a server's command and arguments.
func TestSameYAML(t *testing.T) {
	const text = "a: &x [1, {b: c}]\nextensions:\n  r: {cmd: y, args: [z]}\n  s: {cmd: a, enabled: true, args: [b]}\n"
	for _, tt := range []struct {
		old, new string
		want     bool
	}{
		{"cmd: a", "cmd: b", true}, {"args: [b]", "args: [c, d]", true}, {", args: [b]", "", true}, {"enabled: true", "args: [c], enabled: true", true},
		{"cmd: y", "cmd: a", false}, {"[z]", "[]", false}, {"true", "false", false}, {"true", `"true"`, false}, {"b: c", "b: [c]", false}, {"&x", "&y", false}, {"1, ", "", false}, {"  s:", "  t:", false},
	} {
		f, err := readYAML([]byte(text), proxyPath)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := readYAML([]byte(strings.Replace(text, tt.old, tt.new, 1)), proxyPath)
		if err != nil {
			t.Fatal(err)
		}
		if got := sameYAML(&f.root, &changed.root, f.entries[1]); got != tt.want {
			t.Errorf("with %q for %q: %v, want %v", tt.new, tt.old, got, tt.want)
		}
	}
}

// TestYAMLLines wraps behind each end of a line that YAML has.
func TestYAMLLines(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029"} {
		text := "# é" + end + "'é': x" + end + "extensions: {s: {cmd: a}}"
		if got, _, err := rewrittenAs(parseYAML, []byte(text), wrapRewrite(Config{})); err != nil || string(got) != strings.ReplaceAll(text, "cmd: a", `cmd: "/opt/bin/auditproxy", args: ["--", a]`) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}

// TestYAMLIsTried reads a configuration that is larger than what is read for trial.
func TestYAMLIsTried(t *testing.T) {
	text := "extensions:\n  a: {cmd: a}\n  b: {cmd: b}\n" + strings.Repeat("#", maxTried/2) + "\n"
	servers, err := parseYAML([]byte(text), proxyPath)
	if err != nil || len(servers) != 2 || servers[0].Problem == "" && servers[1].Problem == "" {
		t.Errorf("%+v, %v", servers, err)
	}
}

// checkYAMLRoundTrip checks what checkRoundTrip does, in a file of YAML.
func checkYAMLRoundTrip(t *testing.T, in []byte) (wrapped int) {
	t.Helper()
	servers, err := parseYAML(in, proxyPath)
	if err != nil || yaml.Unmarshal(in, new(map[string]any)) != nil {
		return 0 // not a configuration
	}
	after, edits, err := rewrittenAs(parseYAML, in, wrapRewrite(Config{}))
	if err != nil {
		t.Fatalf("wrapping %q: %v", in, err)
	}
	want := decodeYAML(t, in)
	for _, s := range servers {
		if s.Problem != "" || s.Wrapped || s.Remote {
			continue
		}
		entry, command := yamlEntryOf(want, s.Name)
		if entry == nil {
			return 0 // the name is a number, or another's too
		}
		args, _ := entry["args"].([]any)
		entry["args"] = append([]any{"--", entry[command]}, args...)
		entry[command] = proxyPath
		wrapped++
	}
	if d := cmp.Diff(want, decodeYAML(t, after)); d != "" {
		t.Fatalf("wrapping %q gave %q (-want +got)\n%s", in, after, d)
	}
	if !checkUnwraps(t, parseYAML, servers, in, after, edits) {
		return 0
	}
	return wrapped
}

func decodeYAML(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return m
}

// yamlEntryOf returns the entry of a server, and the name of its command.
func yamlEntryOf(file map[string]any, name string) (entry map[string]any, command string) {
	if of, ok := file["extensions"].(map[string]any); ok {
		entry, _ = of[name].(map[string]any)
	}
	list, _ := file["mcpServers"].([]any)
	for _, e := range list {
		if e, ok := e.(map[string]any); ok && e["name"] == name {
			if entry != nil {
				return nil, ""
			}
			entry = e
		}
	}
	if _, ok := entry["cmd"]; ok {
		return entry, "cmd"
	}
	return entry, "command"
}

func TestYAMLRoundTripGenerated(t *testing.T) {
	wrapped, servers := 0, 0
	for seed := range uint64(1000) {
		g := yamlGenerator{rand.New(rand.NewPCG(seed, 1))}
		text, n := g.file()
		servers += n
		wrapped += checkYAMLRoundTrip(t, []byte(text))
	}
	if wrapped < servers*9/10 {
		t.Errorf("only %d of %d servers were wrapped", wrapped, servers)
	}
}

func FuzzYAMLRoundTrip(f *testing.F) {
	for seed := range uint64(20) {
		text, _ := yamlGenerator{rand.New(rand.NewPCG(seed, 2))}.file()
		f.Add([]byte(text))
	}
	f.Add([]byte("!0 mcpServers: \n  - x: 0\n    command: 0\r    name: A"))
	f.Add([]byte("extensions:\n s:\r   cmd:"))
	f.Add([]byte("extensions:\n s:\n   cmd: \"\n\""))
	f.Add([]byte("extensions:\n  0:\n    args:\n    - \"b\"#c\n  s: {cmd: !0 00,x: y}"))
	f.Fuzz(func(t *testing.T, in []byte) { checkYAMLRoundTrip(t, in) })
}

// A yamlGenerator writes configurations of goose and Continue as people and programs do.
type yamlGenerator struct{ *rand.Rand }

func (g yamlGenerator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g yamlGenerator) text() string {
	return g.pick("a", "npx", "-y", `"b c"`, `'it''s'`, `"q\"\u002d"`, "é/ü", `"C:\\x"`, `"@scope/p@1.2"`, "8080", `"# no comment"`)
}

func (g yamlGenerator) list(indent string) string {
	n := g.IntN(4)
	if n == 0 || g.IntN(2) == 0 {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = g.text()
		}
		return " [" + g.pick("", " ") + strings.Join(texts, g.pick(",", ", ", ",\n"+indent+"  ")) + "]"
	}
	var b strings.Builder
	lead := "\n" + indent + g.pick("", "  ") + "- "
	for range n {
		b.WriteString(lead + g.text() + g.pick("", " # c"))
	}
	return b.String()
}

// entry writes the members of a server.
func (g yamlGenerator) entry(command, indent string) string {
	parts := []string{command + ": " + g.text() + g.pick("", "", "  # é c"), "enabled: true", "type: stdio"}
	if g.IntN(3) > 0 {
		parts = append(parts, "args:"+g.list(indent))
	}
	if g.IntN(3) == 0 {
		parts = append(parts, "env:\n"+indent+"  KEY: "+g.pick("v", "|\n"+indent+"    l1\n"+indent+"    l2", "&anchor x"))
	}
	g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n"+indent)
}

func (g yamlGenerator) file() (text string, servers int) {
	var b strings.Builder
	b.WriteString(g.pick("", "\ufeff", "# é\n", "---\n", "A: {b: [c]}\n"))
	servers = 1 + g.IntN(3)
	if g.IntN(2) == 0 {
		b.WriteString("extensions:\n  developer: {type: builtin}\n")
		for i := range servers {
			if g.IntN(3) == 0 {
				fmt.Fprintf(&b, "  s%d: {cmd: %s, type: stdio}\n", i, g.text())
			} else {
				fmt.Fprintf(&b, "  s%d:\n    %s\n", i, g.entry("cmd", "    "))
			}
		}
	} else {
		b.WriteString("mcpServers:\n")
		for i := range servers {
			fmt.Fprintf(&b, "  - %s\n    name: s%d\n", g.entry("command", "    "), i)
		}
	}
	b.WriteString(g.pick("", "last: x\n", "# end"))
	text = b.String()
	if g.IntN(4) == 0 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text, servers
}
