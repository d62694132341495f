package main

import (
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/policy/policytest"
)

// TestPolicyAllowsTheCalls checks that the policy is measured, not a refusal.
func TestPolicyAllowsTheCalls(t *testing.T) {
	p, err := policy.Load([]byte(policytest.ManyRules("")), "policy.json")
	if err != nil {
		t.Fatal(err)
	}
	calls := []policy.Call{
		{Tool: sendKeys.tool, Arguments: []byte(sendKeys.args), Category: "execute"},
		{Tool: "capture_pane", Arguments: []byte(capture(1).args), Category: "read"},
	}
	decisions := make([]policy.Decision, len(calls))
	if err := p.Decide(calls, time.Unix(0, 0), new(policy.Memory), decisions); err != nil {
		t.Fatal(err)
	}
	for i, d := range decisions {
		if d.Action != policy.Allow {
			t.Errorf("%s: %v by %q, want allow", calls[i].Tool, d.Action, d.Rule)
		}
	}
}
