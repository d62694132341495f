package audit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestKnownName compares with encoding/json, which decodes a field from any
// name it treats as equal.
func TestKnownName(t *testing.T) {
	for _, name := range []string{
		"output_path", "Output_Path", "OUTPUT_PATH", "output_path\u017f", "output_pat", "outputPath", "",
		"operation\u017f", "tool", "TOOL", "name", "Name", "environment", "ENVIRONMENT\u0130", "\u017fession_name",
	} {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Operations, Tool, Arguments, Environment, Name int
			OutputPath                                     int `json:"output_path"`
			SessionName                                    int `json:"session_name"`
		}
		if err := json.Unmarshal([]byte(`{`+string(quoted)+`:1}`), &v); err != nil {
			t.Fatal(err)
		}
		want := ""
		for known, n := range map[string]int{"operations": v.Operations, "tool": v.Tool, "arguments": v.Arguments, "output_path": v.OutputPath,
			"environment": v.Environment, "name": v.Name, "session_name": v.SessionName} {
			if n > 0 {
				want = known
			}
		}
		if got := audit.KnownName([]byte(name)); got != want {
			t.Errorf("KnownName(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestFolded compares with strings.EqualFold, by which decoders find a field: redaction and
// arguments take names that fold to the same for one.
func TestFolded(t *testing.T) {
	fold := func(name string) string { return string(audit.AppendFolded(nil, []byte(name))) }
	for _, names := range [][2]string{
		{"api_key", "API_KEY"}, {"api_key", "apikey"}, {"password", "pa\u017fsword"}, {"PASSWORD", "pa\u017f\u017fword"}, {"key", "\u212aey"},
		{"ÄRGER", "ärger"}, {"Å", "\u212b"}, {"i", "\u0130"}, {"i", "ı"}, {"ß", "ss"}, {"Σ", "ς"}, {"σ", "ς"}, {"z", "Z"}, {"a", "A"}, {"[", "{"}, {"@", "`"},
	} {
		one := strings.EqualFold(names[0], names[1])
		if got := fold(names[0]) == fold(names[1]); got != one {
			t.Errorf("%q and %q fold to %q and %q, want the same: %t", names[0], names[1], fold(names[0]), fold(names[1]), one)
		}
	}
}
