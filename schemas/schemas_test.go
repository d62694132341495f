package schemas_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/tools/txtar"

	"auditproxy/schemas"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

var update = flag.Bool("update", false, "write the JSON Schema's members from their table")

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.RecordV1()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	const url = "urn:auditproxy:record:v1"
	if err := c.AddResource(url, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, line string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s.Validate(v)
}

// names returns the members of obj in order.
func names(t *testing.T, obj []byte) (list []string) {
	t.Helper()
	if err := jsontext.Members(obj, func(name, _ []byte) bool {
		list = append(list, string(name))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// full returns one record of each kind with all members that its kind has;
// package audit's tests see to it that none is missing.
func full(t *testing.T) (lines []string) {
	t.Helper()
	arch, err := txtar.ParseFile("audit/testdata/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range arch.Files {
		if bytes.HasPrefix(f.Data, []byte(`{"v":1,"kind":`)) && f.Name != "least" {
			lines = append(lines, string(f.Data))
		}
	}
	if len(lines) != 8 {
		t.Fatalf("%d records, want one for each of 8 kinds", len(lines))
	}
	return lines
}

// TestDeclared compares the schema, and the members that are written and their
// order, with the table of the record's members. -update writes the schema.
func TestDeclared(t *testing.T) {
	const file = "record.v1.schema.json"
	want := declared(t)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(want), string(schemas.RecordV1())); diff != "" {
		t.Errorf("%s differs from audit.RecordMembers; go test ./schemas -update writes it (-table +file):\n%s", file, diff)
	}
	written := make(map[string]bool)
	for _, line := range full(t) {
		inLine := names(t, []byte(strings.TrimSpace(line)))
		for _, name := range inLine {
			written[name] = true
		}
		var want []string
		for _, m := range audit.RecordMembers() {
			if slices.Contains(inLine, m.Name) {
				want = append(want, m.Name)
			}
		}
		if diff := cmp.Diff(want, inLine); diff != "" {
			t.Errorf("members (-table +record):\n%s", diff)
		}
	}
	for _, m := range audit.RecordMembers() {
		if !written[m.Name] {
			t.Errorf("the table has %q, which no record has: AppendRecord does not write it, or full in package audit's tests does not set it", m.Name)
		}
	}
}

// declared returns the schema with its properties as the table has them.
func declared(t *testing.T) []byte {
	t.Helper()
	doc := []byte{'{'}
	if err := jsontext.Members(schemas.RecordV1(), func(name, v []byte) bool {
		if len(doc) > 1 {
			doc = append(doc, ',')
		}
		doc = append(append(append(doc, '"'), name...), `":`...)
		if string(name) != "properties" {
			doc = append(doc, v...)
			return true
		}
		doc = append(doc, '{')
		for i, m := range audit.RecordMembers() {
			if i > 0 {
				doc = append(doc, ',')
			}
			doc = append(jsontext.AppendQuote(doc, m.Name), ':')
			var err error
			if doc, err = m.AppendSchema(doc); err != nil {
				t.Error(err)
			}
		}
		doc = append(doc, '}')
		return true
	}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, append(doc, '}'), "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

const head = `{"v":1,"kind":"call","record_id":"019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e","session_id":"019e8b1c-0000-7aaa-8bbb-0123456789ab",` +
	`"seq":1,"call_no":1,"ts":"2026-11-20T09:14:03.123456Z"`

func TestValid(t *testing.T) {
	s := compile(t)
	for _, line := range append(full(t),
		head+`,"method":"tools/call","tool":"","outcome":"ok","forwarded":true,"duration_ms":0,"crc":"00000000"}`,
		head+`,"outcome":"unknown","error_type":"ProxyDied","recovered":true,"crc":"00000000"}`,
		head+`,"outcome":"ok","new":[1],"crc":"00000000"}`,
		strings.Replace(head, "call", "session_end", 1)+`,"crc":"00000000"}`,
		strings.Replace(head, "call", "future", 1)+`,"new":{},"crc":"00000000"}`,
	) {
		if err := validate(t, s, line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestNotValid(t *testing.T) {
	s := compile(t)
	for name, line := range map[string]string{
		"it wants an outcome of a call":          head + `,"crc":"00000000"}`,
		"it wants a kind to be a word":           strings.Replace(head, "call", "a call", 1) + `,"crc":"00000000"}`,
		"it wants the checksum":                  head + `,"outcome":"ok"}`,
		"it knows the outcomes":                  head + `,"outcome":"fine","crc":"00000000"}`,
		"it wants the type of an error":          head + `,"outcome":"error","crc":"00000000"}`,
		"it knows what an error type is":         head + `,"outcome":"error","error_type":"no such pane","crc":"00000000"}`,
		"it wants text cut":                      head + `,"outcome":"ok","tool":"` + strings.Repeat("é", 257) + `","crc":"00000000"}`,
		"it wants digests":                       head + `,"outcome":"ok","error_digest":"no such pane","crc":"00000000"}`,
		"it wants one sum in a digest":           head + `,"outcome":"ok","error_digest":{"len":3},"crc":"00000000"}`,
		"it wants arguments to be an object":     head + `,"outcome":"ok","args":[],"crc":"00000000"}`,
		"it leaves out what is not":              head + `,"outcome":"ok","forwarded":false,"crc":"00000000"}`,
		"it wants microseconds":                  strings.Replace(head, ".123456Z", "Z", 1) + `,"outcome":"ok","crc":"00000000"}`,
		"it wants UUIDs of version 7":            strings.Replace(head, "-7aaa-", "-4aaa-", 1) + `,"outcome":"ok","crc":"00000000"}`,
		"it wants a gap's numbers":               strings.Replace(head, "call", "gap", 1) + `,"count":1,"crc":"00000000"}`,
		"it wants an anomaly's place":            strings.Replace(head, "call", "anomaly", 1) + `,"crc":"00000000"}`,
		"it wants a version":                     strings.Replace(head, `"v":1`, `"w":1`, 1) + `,"outcome":"ok","crc":"00000000"}`,
		"it wants a candidate's method":          head + `,"outcome":"ok","candidates":[{"tool":"a"}],"crc":"00000000"}`,
		"it wants labels to be strings":          head + `,"outcome":"ok","labels":{"a":1},"crc":"00000000"}`,
		"it wants a duration not to be negative": head + `,"outcome":"ok","duration_ms":-1,"crc":"00000000"}`,
	} {
		if validate(t, s, line) == nil {
			t.Errorf("%s: %s", name, line)
		}
	}
}
