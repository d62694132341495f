package audit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/audit"
)

// TestDecisions reads what was decided of a call as it was written.
func TestDecisions(t *testing.T) {
	for _, want := range []audit.Policy{
		{},
		{Hash: "0a", Mode: "enforce", Decision: audit.DecisionDeny, Applied: true, Rule: "/tools/send_keys/limits/0", Reason: `"too many"`, Counter: "send_keys/minute", Count: 11, Max: 10, Window: "1m"},
		{Dialect: "hosted", Source: "policy.yaml", Event: "changed", Detail: "a\nb"},
	} {
		got, err := audit.ParsePolicy(want.JSON())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("ParsePolicy(%s): %v (-want +got)\n%s", want.JSON(), err, diff)
		}
	}
	risk := audit.Risk{Category: "execute", Level: "high", Source: "name", Conflict: true}
	if got, err := audit.ParseRisk(risk.JSON()); got != risk || err != nil {
		t.Errorf("ParseRisk(%s) = %+v, %v", risk.JSON(), got, err)
	}
	approval := audit.Approval{Outcome: "approved", Scope: "once", By: "ann", User: "bob", Channel: "files", Request: "01", WaitMS: 1234567890123}
	if got, err := audit.ParseApproval(approval.JSON()); got != approval || err != nil {
		t.Errorf("ParseApproval(%s) = %+v, %v", approval.JSON(), got, err)
	}
	found := []audit.Detection{{Detector: "kill", At: "/keys"}, {Detector: "opaque"}}
	got, err := audit.ParseDetections(audit.DetectionsJSON(found))
	if diff := cmp.Diff(found, got); diff != "" || err != nil {
		t.Errorf("ParseDetections: %v (-want +got)\n%s", err, diff)
	}
}

// TestBadDecisions has what no proxy writes, and what only a newer one does.
func TestBadDecisions(t *testing.T) {
	for _, tt := range []struct {
		policy audit.JSON
		want   string
	}{
		{"", ""},
		{`{"newer":[1],"rule":"a"}`, ""},
		{`{"count":-1}`, `member "count": is negative`},
		{`{"count":1.5}`, `member "count": `},
		{`{"applied":1}`, `member "applied": `},
		{`{"rule":1,"mode":"a"}`, `member "rule": `},
		{audit.JSON(`{"reason":"` + strings.Repeat("x", 1<<20) + `"}`), `member "reason": `},
	} {
		_, err := audit.ParsePolicy(tt.policy)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("ParsePolicy(%.50s) = %v, want %q", tt.policy, err, tt.want)
		}
	}
	one := `{"detector":"kill"}`
	for n, ok := range map[int]bool{1: true, 32: true, 33: false} {
		list := audit.JSON("[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]")
		if _, err := audit.ParseDetections(list); (err == nil) != ok {
			t.Errorf("ParseDetections of %d: %v", n, err)
		}
	}
}
