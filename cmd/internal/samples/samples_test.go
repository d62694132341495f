package samples

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/audit"
)

// TestRecords checks that the measured records are those of a proxy, of the
// stated length.
func TestRecords(t *testing.T) {
	const size = 1000
	s := New(size)
	kinds, definitions := map[string]int{}, map[string]string{}
	for i := range 100 {
		line := s.Next(nil)
		if len(line) != size {
			t.Fatalf("record %d has %d bytes, want %d", i, len(line), size)
		}
		r, err := audit.Parse(line)
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if r.SessionID != s.ID || r.Seq != uint64(i) {
			t.Errorf("record %d is number %d of session %q, want session %q", i, r.Seq, r.SessionID, s.ID)
		}
		if was := definitions[r.Tool]; was != "" && was != r.ToolHash {
			t.Errorf("record %d: the definition of %s is %s, before %s: a tool that changes with each call raises an alert each time", i, r.Tool, r.ToolHash, was)
		}
		definitions[r.Tool] = r.ToolHash
		kinds[string(r.Outcome)]++
		kinds["operations"] += len(audit.Operations(&r))
	}
	// Every 20th record does two things, and every 50th fails.
	want := map[string]int{"ok": 98, "error": 2, "operations": 105}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
