package alert_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"auditproxy/collector/alert"
	"auditproxy/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMistakes loads rules with mistakes and compares the messages. The published
// schema must refuse the same files, except those whose mistake is in an
// expression or a name, which start with "beyond".
func TestMistakes(t *testing.T) {
	schema := compile(t)
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in, want := &arch.Files[0], &arch.Files[1]
			_, err = alert.Load([]alert.File{{Name: in.Name, Text: in.Data}}, alert.Paths{})
			if err == nil {
				t.Fatal("loads")
			}
			got := err.Error() + "\n"
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(arch), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
			beyond := strings.HasPrefix(filepath.Base(file), "beyond")
			if err := validate(t, schema, in.Data); (err == nil) != beyond {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

// TestShippedMeetsTheSchema validates the shipped rules against the published
// schema.
func TestShippedMeetsTheSchema(t *testing.T) {
	schema := compile(t)
	files, err := alert.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := validate(t, schema, f.Text); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.AlertRulesV1()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	const url = "urn:auditproxy:alert-rules:v1"
	if err := c.AddResource(url, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate reads YAML as JSON. What is not even YAML breaks every schema.
func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// placed is how a message begins, after the file's name or with it.
var placed = regexp.MustCompile(`^(fuzz\.yaml:)?\d+:\d+: `)

// FuzzLoad checks that loaded rules can be applied, and that a refusal names a
// place.
func FuzzLoad(f *testing.F) {
	files, err := alert.Shipped()
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(file.Text)
	}
	f.Add([]byte("rules: [{name: a, title: b, severity: info, reason: c, operations: [x], when: 'op.args.a.b[0] == 1'}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := alert.Load([]alert.File{{Name: "fuzz.yaml", Text: text}}, paths)
		if err != nil {
			for _, line := range bytes.Split([]byte(err.Error()), []byte("\nfuzz.yaml:")) {
				if !placed.Match(line) {
					t.Fatalf("%q has no place", line)
				}
			}
			return
		}
		for _, tt := range []struct{ tool, args string }{{"pipe_pane", `{"output_path":"/x"}`}, {"x", `{"a":{"b":[1]}}`}, {"", ""}} {
			row := call(1, tt.tool, tt.args)
			rules.Match(&row)
		}
	})
}
