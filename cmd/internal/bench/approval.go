package main

import (
	"context"
	"fmt"
	"os"
)

// approval measures what a call costs when people can be asked about others, and
// while another call waits.
func (b *bench) approval(ctx context.Context) error {
	for between, action := range map[string]string{denies: "deny", asks: "require_approval", waits: "require_approval"} {
		text := fmt.Sprintf(`{"version":"1","default":"allow","tools":{"kill_session":{"action":%q}}}`, action)
		if err := os.WriteFile(b.rulePolicy(between), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the policy: %w", err)
		}
	}
	got, err := b.compare(ctx, b.rounds(31), sequential(sendKeys, 1000), denies, asks, waits)
	if err != nil {
		return err
	}
	none, one := got[denies].wall*1e6, got[asks].wall*1e6
	b.ratio("rule that asks, over one that denies", "µs", none, one, 1.02)
	b.ratio("a call waits, over none", "µs", one, got[waits].wall*1e6, 1.05)
	return nil
}
