package clients

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	toml "github.com/pelletier/go-toml/v2"
	"golang.org/x/tools/txtar"
)

// checkTOMLRoundTrip checks what checkRoundTrip does, in a file of TOML. Another
// reader of TOML than the code under test says what the files mean.
func checkTOMLRoundTrip(t *testing.T, in []byte) (wrapped int) {
	t.Helper()
	servers, err := parseTOML(in, proxyPath)
	if err != nil {
		return 0 // not a configuration
	}
	if toml.Unmarshal(bytes.TrimPrefix(in, []byte("\ufeff")), new(map[string]any)) != nil {
		return 0 // only its values are wrong, as a day 32
	}
	after, edits, err := rewrittenAs(parseTOML, in, wrapRewrite(Config{}))
	if err != nil {
		t.Fatalf("wrapping %q: %v", in, err)
	}
	want := decodeTOML(t, in)
	list, _ := want["mcp_servers"].(map[string]any)
	for _, s := range servers {
		if s.Problem != "" || s.Wrapped || s.Remote {
			continue
		}
		entry := list[s.Name].(map[string]any)
		args, _ := entry["args"].([]any)
		entry["args"] = append([]any{"--", entry["command"]}, args...)
		entry["command"] = proxyPath
		wrapped++
	}
	if d := cmp.Diff(want, decodeTOML(t, after)); d != "" {
		t.Fatalf("wrapping %q gave %q (-want +got)\n%s", in, after, d)
	}
	if !checkUnwraps(t, parseTOML, servers, in, after, edits) {
		return 0
	}
	return wrapped
}

func decodeTOML(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := toml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &m); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return m
}

func TestTOMLRoundTripGenerated(t *testing.T) {
	wrapped := 0
	for seed := range uint64(3000) {
		g := tomlGenerator{rand.New(rand.NewPCG(seed, 1))}
		wrapped += checkTOMLRoundTrip(t, []byte(g.file()))
	}
	if wrapped < 2000 {
		t.Errorf("only %d servers were wrapped", wrapped)
	}
}

func FuzzTOMLRoundTrip(f *testing.F) {
	golden, err := txtar.ParseFile("testdata/wrap/codex.txtar")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden.Files[0].Data)
	f.Add([]byte("\ufeff[mcp_servers.a]\r\ncommand='b'"))
	f.Add([]byte("[mcp_servers]\na={command=\"b\",env={'c.d'=\"\"\"e\n\"\"\"}}#"))
	f.Fuzz(func(t *testing.T, in []byte) { checkTOMLRoundTrip(t, in) })
}

// A tomlGenerator writes configurations with white space and comments wherever
// TOML has them.
type tomlGenerator struct{ *rand.Rand }

func (g tomlGenerator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g tomlGenerator) space() string { return g.pick("", "", " ", "\t") }

func (g tomlGenerator) text() string {
	return g.pick(`"a"`, `'b'`, `"--"`, `"\u002d-"`, `'C:\x'`, `"a#b"`, `"""m"""`, `"""`+"\nm\\\n  n#\n"+`"""`, `'''`+"\n'q''#[\n"+`'''`, `"é"`, `""""q""""`)
}

func (g tomlGenerator) value() string {
	return g.pick(g.text(), "1", "true", "1979-05-27 07:32:00", "-1.5e3", "{ a = [1, {b = 2}] }", "[[], [ 'x', ], # c\n]", "inf")
}

func (g tomlGenerator) list() string {
	var b strings.Builder
	b.WriteString("[")
	n := g.IntN(4)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(g.blank() + g.text() + g.blank())
	}
	if n > 0 {
		b.WriteString(g.pick("", ","))
	}
	return b.String() + g.blank() + "]"
}

func (g tomlGenerator) blank() string {
	return g.pick("", "", " ", "\n", "\n\t", " # c ]\n", "\r\n  ", "#\n#\n")
}

func (g tomlGenerator) members(inside bool) []string {
	set := func(name, value string) string { return name + g.space() + "=" + g.space() + value }
	m := []string{set(g.pick("command", `"command"`, "'command'"), g.text())}
	if g.IntN(2) == 0 {
		args := g.list()
		for inside && strings.Contains(args, "\n") {
			args = g.list()
		}
		m = append(m, set("args", args))
	}
	if g.IntN(3) == 0 {
		m = append(m, set("env", `{ A = "1", "B" = '}' }`))
	} else if g.IntN(3) == 0 {
		m = append(m, set("env"+g.space()+".A", `"1"`))
	}
	if g.IntN(3) == 0 {
		m = append(m, set("other", g.value()))
	}
	g.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
	return m
}

func (g tomlGenerator) file() string {
	eol := g.pick("\n", "\n", "\r\n")
	end := func() string { return g.space() + g.pick("", "", "# c [mcp_servers.x]") + eol }
	var b strings.Builder
	b.WriteString(g.pick("", "\ufeff") + g.pick("", "model = 'x'"+eol, eol+"# c"+eol))
	if g.IntN(3) == 0 {
		fmt.Fprintf(&b, "mcp_servers.top%s.%scommand = %s%s", g.space(), g.space(), g.text(), end())
	}
	if g.IntN(3) == 0 {
		b.WriteString("[other]" + end() + "x = " + g.value() + end())
	}
	for i := range g.IntN(4) {
		name := fmt.Sprintf("s%d", i)
		switch g.IntN(3) {
		case 0:
			fmt.Fprintf(&b, "%s[mcp_servers%s.%s%q]%s", g.space(), g.space(), g.space(), name, end())
			for _, m := range g.members(false) {
				b.WriteString(g.space() + m + end())
			}
			if g.IntN(3) == 0 {
				fmt.Fprintf(&b, "[mcp_servers.%s.tools.x]%scommand = 'no'%s", name, end(), end())
			}
		case 1:
			fmt.Fprintf(&b, "[mcp_servers.%s]%s", name, end())
			fmt.Fprintf(&b, "[[list%d]]%scommand = 'no'%s", i, end(), end())
		case 2:
			fmt.Fprintf(&b, "[mcp_servers.%s]%s%s%s", name, end(), strings.Join(g.members(false), end()), end())
		}
	}
	if g.IntN(3) == 0 {
		return strings.TrimSuffix(b.String(), eol)
	}
	if g.IntN(2) == 0 && !strings.Contains(b.String(), "mcp_servers") {
		b.WriteString("mcp_servers" + g.space() + "= {" + g.space() + "in = {" + g.space() + strings.Join(g.members(true), ",") + g.space() + "}, dot." + strings.Join(g.members(true)[:1], "") + "}")
	}
	return b.String()
}

func TestTOMLErrors(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a second value", "[mcp_servers.a]\ncommand = 'a'\ncommand = 'b'\n", `duplicate "mcp_servers.a.command"`},
		{"a second table", "[mcp_servers.a]\n[mcp_servers.a]\n", `duplicate "mcp_servers.a"`},
		{"no value", "[mcp_servers.a]\ncommand = \n", "line 2, column "},
		{"an open string", "a = \"b\n", "line 1, column "},
		{"deep", "a = " + strings.Repeat("[", 1<<20), "nested more than"},
		{"deep in braces", "a = " + strings.Repeat("{a=", 1<<20), "nested more than"},
		{"JSON", `{"mcpServers": {}}`, "line 1, column 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseTOML([]byte(tt.in), proxyPath); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("parseTOML = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTOMLSize reads files that take minutes if each name is compared with all
// others. wrap and doctor read such a file where an agent's project has one.
func TestTOMLSize(t *testing.T) {
	const names = 1 << 18
	var lines, members strings.Builder
	for i := range names {
		fmt.Fprintf(&lines, "k%x=1\n", i)
		fmt.Fprintf(&members, "k%x=1,", i)
	}
	for name, data := range map[string]string{
		"names":     "[mcp_servers.a]\n" + lines.String(),
		"others":    lines.String(),
		"in braces": "mcp_servers.a={" + members.String() + "b=1}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseTOML([]byte(data), proxyPath); err != nil {
				t.Error(err)
			}
		})
	}
}
