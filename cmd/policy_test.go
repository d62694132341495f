package cmd

import (
	"fmt"
	"testing"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
)

// TestPoliciesNameCategories checks that a policy can name each category that a
// call can have. The two packages must not import each other.
func TestPoliciesNameCategories(t *testing.T) {
	for c := risk.Read; c <= risk.Financial; c++ {
		source := fmt.Sprintf(`{"version":"1","default":"allow","auditproxy":{"risk":[{"tool":"x","category":%q}]}}`, c)
		if _, err := policy.Load([]byte(source), "p.json"); err != nil {
			t.Errorf("a policy cannot name %s: %v", c, err)
		}
	}
	if _, ok := risk.ParseCategory("reed"); ok {
		t.Error("reed is a category")
	}
}
