package risk

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/mcpproxy/risk/detector"
)

// readLines reads a file of testdata, a JSON value on each line.
func readLines[T any](t testing.TB, name string) (list []T) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v: %s", name, err, lines.Text())
		}
		list = append(list, one)
	}
	if err := lines.Err(); err != nil || len(list) == 0 {
		t.Fatalf("reading %s: %d lines, %v", name, len(list), err)
	}
	return list
}

func newAssessor(t testing.TB, c Config) *Assessor {
	t.Helper()
	if c.Text == nil {
		c.Text = func(dst, text []byte) []byte { return append(dst, text...) }
	}
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestToolVectors(t *testing.T) {
	type vector struct {
		ID, Name    string
		Description string
		Annotations json.RawMessage
		Expected    struct{ Category, Level string }
		Why         string
	}
	a := newAssessor(t, Config{})
	for _, v := range readLines[vector](t, "vectors_tools.jsonl") {
		definition, _ := json.Marshal(map[string]any{"name": v.Name, "description": v.Description, "annotations": v.Annotations})
		got := a.Tool(v.Name, definition)
		if got.Category.String() != v.Expected.Category || got.Category.Level() != v.Expected.Level {
			t.Errorf("%s: %s (%s) is %s, %s by its %s, want %s: %s", v.ID, v.Name, v.Description, got.Category, got.Category.Level(),
				got.Source, v.Expected.Category, v.Why)
		}
	}
}

func TestPathVectors(t *testing.T) {
	type vector struct {
		ID, Path, Cwd, Home string
		Links               map[string]string
		Verdict, Why        string
	}
	for _, v := range readLines[vector](t, "vectors_paths.jsonl") {
		a := newAssessor(t, Config{Home: v.Home, Cwd: v.Cwd, Readlink: func(name string) (string, bool) {
			for from, to := range v.Links {
				if name == filepath.Join(v.Cwd, from) {
					return to, true
				}
			}
			return "", false
		}})
		args, _ := json.Marshal(map[string]string{"path": v.Path})
		r := a.Assess(a.Tool("write_file", nil), args, nil)
		want := map[string]detector.Set{"blocked": detector.PathBlocked, "sensitive": detector.PathSensitive}[v.Verdict]
		if got := r.Found &^ (detector.NULByte | detector.PathTraversal); got != want {
			t.Errorf("%s: %q: %q, want %s: %s", v.ID, v.Path, got.Words(), v.Verdict, v.Why)
		}
	}
}
