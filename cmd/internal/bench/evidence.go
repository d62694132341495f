package main

import (
	"context"
	"errors"
)

// evidence measures what signing the records adds, in one run with proxies that do
// not sign.
func (b *bench) evidence(ctx context.Context) error {
	got, err := b.compare(ctx, b.rounds(31), sequential(sendKeys, 1000), unsigned, interval)
	if err != nil {
		return err
	}
	without, with := got[unsigned], got[interval]
	b.ratio("send_keys with evidence, over none", "µs", without.wall*1e6, with.wall*1e6, 1.03)
	b.rows = append(b.rows, row{
		Name: "CPU of a call with evidence, over none", Unit: "µs", Relay: without.cpu * 1e6, Proxy: with.cpu * 1e6,
		Compare: more, Value: (with.cpu - without.cpu) * 1e6, Target: 2,
	})
	const piped = "pipelined calls with evidence, over none"
	if err := errors.Join(b.pipedEvidence(piped)(ctx), b.onAll(piped+", all CPUs", b.pipedEvidence(piped+", all CPUs"))(ctx)); err != nil {
		return err
	}
	starts, err := b.starts(ctx, unsigned, interval)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, row{
		Name: "start with evidence, over none", Unit: "ms", Relay: starts[unsigned], Proxy: starts[interval],
		Compare: more, Value: starts[interval] - starts[unsigned], Target: 0.3,
	})
	return nil
}

// pipedEvidence measures the time of a call: 5 % fewer calls a second are its target. A
// goroutine of the proxy's own hashes the records, so that with a CPU to spare no call
// waits for it.
func (b *bench) pipedEvidence(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := b.compare(ctx, b.rounds(31), pipelinedCalls, unsigned, interval)
		if err != nil {
			return err
		}
		b.ratio(name, "µs", got[unsigned].wall*1e6, got[interval].wall*1e6, 1.05)
		return nil
	}
}
