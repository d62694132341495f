package clients

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestYAML reads servers in YAML, which wrap and unwrap name and leave alone.
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
			{Name: "git", Env: []string{"N=1", "TOKEN=t"}, Problem: yamlRemedy},
			{Name: "recorded", Wrapped: true, Command: "/bin/auditproxy", Flags: []string{"--drain", "1s"}, Problem: yamlRemedy},
			{Name: "bare", Problem: yamlRemedy},
			{Name: "far", Remote: true, Problem: yamlRemedy},
			{Name: "odd", Problem: "its entry cannot be read: yaml: unmarshal errors:\n  line 12: cannot unmarshal !!seq into string"},
		},
		"Continue .continue/config.yaml":           {{Name: "files", Problem: yamlRemedy}, {Name: "far", Remote: true, Problem: yamlRemedy}},
		"Continue .continue/mcpServers/other.yaml": nil,
		"Continue .continue/mcpServers/more.json":  {{Name: "a"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	path := filepath.Join(home, ".config/goose/config.yaml")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for verb, run := range map[string]func(Config, []string) error{"wrapped": Wrap, "unwrapped": Unwrap} {
		var out bytes.Buffer
		err := run(Config{Stdout: &out, Stderr: &out, Getenv: getenv, Say: func(err error) { t.Error(err) }, Yes: true}, []string{path})
		if err == nil || !strings.Contains(out.String(), `"git" is not `+verb+": its file is YAML") || !strings.Contains(out.String(), "nothing to ") {
			t.Errorf("%s: %v\n%s", verb, err, &out)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: %v, the file is\n%s", verb, err, after)
		}
	}
	for _, text := range []string{"extensions: [", "extensions: {a: *b}", strings.Repeat("[", 100_000), "extensions: {a: {<<: &x {cmd: c}, args: *x}}"} {
		if servers, err := parseYAML([]byte(text), "self"); err == nil && (len(servers) != 1 || servers[0].Problem == "") {
			t.Errorf("%.40q: %+v, %v", text, servers, err)
		}
	}
}
