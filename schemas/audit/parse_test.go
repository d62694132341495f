package audit_test

import (
	"bytes"
	"regexp"
	"testing"

	"auditproxy/schemas/audit"
)

// TestIdentifiers has every byte in a text that is written without escaping.
func TestIdentifiers(t *testing.T) {
	ids := regexp.MustCompile(`\A[A-Za-z0-9_-]\z`)
	for c := range 256 {
		line := []byte(`{"v":1,"trace_id":"0?f"}`)
		line[bytes.IndexByte(line, '?')] = byte(c)
		_, r, err := audit.ParseLine(line)
		want := ""
		if ids.Match([]byte{byte(c)}) {
			want = "0" + string(rune(c)) + "f"
		}
		if (err == nil) != (want != "") || err == nil && r.TraceID != want {
			t.Errorf("%s gives %q, %v", line, r.TraceID, err)
		}
	}
	if _, r, err := audit.ParseLine([]byte(`{"v":1,"trace_id":"é"}`)); err == nil {
		t.Errorf("a letter that is not ASCII gives %q", r.TraceID)
	}
}
