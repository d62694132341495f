package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"auditproxy/mcpproxy/policy/policytest"
)

// writePolicy writes the policy that commands with one name.
func (b *bench) writePolicy() error {
	if b.policy != "" {
		return nil
	}
	name := filepath.Join(b.dir, "policy.json")
	if err := os.WriteFile(name, []byte(policytest.ManyRules("")), 0o600); err != nil {
		return fmt.Errorf("writing the policy: %w", err)
	}
	b.policy = name
	return nil
}

// gate measures what a policy adds to a call, in one run with proxies that have
// none. Labels cannot be switched off, so the rows above have them; what they
// add shows against another build, which -before names.
func (b *bench) gate(ctx context.Context) error {
	if err := b.writePolicy(); err != nil {
		return err
	}
	between := []string{interval, withPolicy}
	if b.before != "" {
		between = append(between, before)
	}
	got, err := b.compare(ctx, b.rounds(31), sequential(sendKeys, 1000), between...)
	if err != nil {
		return err
	}
	with, without := got[withPolicy].wall*1e6, got[interval].wall*1e6
	b.ratio("policy of 200 rules, over none", "µs", without, with, 1.1)
	if b.before == "" {
		return nil
	}
	first := got[before].wall * 1e6
	b.ratio("send_keys, over -before", "µs", first, without, 1.05)
	b.ratio("the same with the policy", "µs", first, with, 1.1)
	piped, err := b.compare(ctx, b.rounds(31), pipelinedCalls, before, interval)
	if err != nil {
		return err
	}
	// The time of a call: 5 % fewer calls a second.
	b.ratio("pipelined calls, over -before", "µs", piped[before].wall*1e6, piped[interval].wall*1e6, 1.05)
	return nil
}

// startingWithPolicy measures what a policy adds to the start.
func (b *bench) startingWithPolicy(ctx context.Context) error {
	if err := b.writePolicy(); err != nil {
		return err
	}
	between := []string{interval, withPolicy}
	if b.before != "" {
		between = append(between, before)
	}
	got, err := b.starts(ctx, between...)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, row{
		Name: "start with the policy, over none", Unit: "ms", Relay: got[interval], Proxy: got[withPolicy],
		Compare: more, Value: got[withPolicy] - got[interval], Target: 1,
	})
	if b.before != "" {
		b.rows = append(b.rows, row{
			Name: "start, over -before", Unit: "ms", Relay: got[before], Proxy: got[interval],
			Compare: more, Value: got[interval] - got[before], Target: 0,
		})
	}
	return nil
}
