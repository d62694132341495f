package policy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
)

// A vector is a policy with calls at given times, and what becomes of them.
type vector struct {
	ID, Dialect, Why string
	Policy           json.RawMessage
	Calls            []struct {
		Tool      string
		Arguments json.RawMessage
		AtMs      int64 `json:"at_ms"`
		Upstream  string
		RespAtMs  *int64 `json:"resp_at_ms"`
	}
	Expected []struct {
		Decision string
		Rule     *string
		Message  *string
	}
	ExpectedError string `json:"expected_error"`
}

// TestVectors runs policies that were run through Intercept or are printed in
// documents.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Log(v.Why)
			v.run(t)
		})
	}
}

func (v *vector) run(t *testing.T) {
	name := "policy.json"
	if v.Dialect == "intercept" {
		name = "policy.yaml"
	}
	p, err := policy.Load(v.Policy, name)
	if v.ExpectedError != "" {
		if err == nil || !strings.Contains(err.Error(), v.ExpectedError) {
			t.Fatalf("got error %v, want one with %q", err, v.ExpectedError)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	type refund struct {
		at       int64
		counters []policy.Counter
	}
	var counters policy.Memory
	var refunds []refund
	for i, c := range v.Calls {
		refunds = slices.DeleteFunc(refunds, func(r refund) bool {
			if r.at > c.AtMs {
				return false
			}
			counters.Release(r.counters)
			return true
		})
		calls := []policy.Call{{Tool: c.Tool, Arguments: c.Arguments}}
		decisions := make([]policy.Decision, 1)
		if err := p.Decide(calls, time.UnixMilli(c.AtMs), &counters, decisions); err != nil {
			t.Fatal(err)
		}
		d, want := decisions[0], v.Expected[i]
		got := d.Action.String()
		if got == "ask" { // without a channel
			got = "deny"
		}
		if got != want.Decision || want.Rule != nil && *want.Rule != d.Rule || want.Message != nil && *want.Message != d.Reason {
			t.Errorf("call %d: got %s %q %q, want %+v", i, d.Action, d.Rule, d.Reason, want)
		}
		if c.Upstream == "rpc_error" {
			at := c.AtMs
			if c.RespAtMs != nil {
				at = *c.RespAtMs
			}
			refunds = append(refunds, refund{at, d.Refunds()})
		}
	}
}
