package replay

import (
	"slices"
	"testing"

	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/wire"
)

// TestAmbiguousAnomalies: the calls that the gate refuses in any case are those
// with anomalies of ambiguity, except those of batches and missing ids.
func TestAmbiguousAnomalies(t *testing.T) {
	want := (wire.Ambiguous &^ (wire.Batch | wire.NoID)).Append(nil)
	for _, word := range want {
		if !slices.Contains(ambiguous, word) {
			t.Errorf("%q is not among the words", word)
		}
	}
	if len(ambiguous) != len(want) {
		t.Errorf("got %q, want %q", ambiguous, want)
	}
}

func TestDetectorWords(t *testing.T) {
	for _, word := range []string{"more", "command_pattern", "path_unresolved"} {
		if !slices.Contains(detector.All(), word) {
			t.Errorf("%q is no detector", word)
		}
	}
}
