package risk

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// define returns a definition; annotations and schema are JSON, "" for none.
func define(name, description, annotations, schema string) []byte {
	d := map[string]any{"name": name, "description": description}
	if annotations != "" {
		d["annotations"] = json.RawMessage(annotations)
	}
	if schema != "" {
		d["inputSchema"] = json.RawMessage(schema)
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return b
}

func readText(t testing.TB, name string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestNames(t *testing.T) {
	a := newAssessor(t, Config{})
	want, n := "", 0
	check := func(name, description string) {
		n++
		if got := a.Tool(name, define(name, description, "", "")); got.Category.String() != want {
			t.Errorf("%s (%s) is %s by its %s, want %s", name, description, got.Category, got.Source, want)
		}
	}
	for _, line := range readText(t, "names.txt") {
		if line[0] == '[' {
			want = strings.Trim(line, "[]")
		} else if name, description, ok := strings.Cut(line, ": "); ok {
			check(name, description)
		} else {
			for name := range strings.FieldsSeq(line) {
				check(name, "")
			}
		}
	}
	if n < 500 {
		t.Errorf("%d names were read, want at least 500", n)
	}
}

func TestDescriptions(t *testing.T) {
	a := newAssessor(t, Config{})
	for _, line := range readText(t, "descriptions.txt") {
		parts := strings.SplitN(line, " | ", 3)
		if got := a.Tool(parts[1], define(parts[1], parts[2], "", "")); got.Category.String() != parts[0] {
			t.Errorf("%s (%s) is %s by its %s, want %s", parts[1], parts[2], got.Category, got.Source, parts[0])
		}
	}
}

// TestPatternsAreSmall has patterns that a server makes to be slow: each name of an argument
// would take milliseconds.
func TestPatternsAreSmall(t *testing.T) {
	a := newAssessor(t, Config{})
	for pattern, closed := range map[string]bool{"^x-[a-z_]{1,64}$": true, "^([a-z]?){900}x$": false, "^((a?|b){30}){30}x$": false} {
		definition := `{"inputSchema":{"properties":{},"patternProperties":{"` + pattern + `":{}}}}`
		if got := a.Tool("x", []byte(definition)).schema.closed; got != closed {
			t.Errorf("%s: closed %v, want %v", pattern, got, closed)
		}
	}
}
