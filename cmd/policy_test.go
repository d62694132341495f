package cmd

import (
	"testing"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/risk/detector"

	"github.com/google/go-cmp/cmp"
)

// TestPoliciesNameWhatRiskFinds compares the words that policies may use with
// those that calls get. The two packages must not import each other.
func TestPoliciesNameWhatRiskFinds(t *testing.T) {
	categories, detectors := policy.Words()
	if diff := cmp.Diff(detector.All(), detectors); diff != "" {
		t.Errorf("detectors (-risk +policy):\n%s", diff)
	}
	for i, word := range categories {
		if c, ok := risk.ParseCategory(word); !ok || c != risk.Category(i+1) {
			t.Errorf("%q is no category", word)
		}
	}
	if _, ok := risk.ParseCategory(risk.Category(len(categories)).String()); !ok || len(categories) != int(risk.Financial) {
		t.Errorf("policies know the categories %q, want those up to %s", categories, risk.Financial)
	}
}
