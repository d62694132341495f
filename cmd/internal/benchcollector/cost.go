package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"auditproxy/cmd/internal/process"
)

// waiting is the topic in which records wait.
const waiting = "waiting"

// discarding runs do with a collector whose ClickHouse costs nothing.
func (b *bench) discarding(ctx context.Context, refuses bool, do func(*instance, *front) error, env ...string) error {
	engine, err := b.engine(ctx)
	if err != nil {
		return err
	}
	f, err := newFront(filepath.Join(b.dir, "local"))
	if err != nil {
		return errors.Join(err, engine.end())
	}
	f.refuses.Store(refuses)
	p, err := b.collect(true, waiting, append(env, "AUDITCOLLECTOR_CLICKHOUSE_ADDR="+f.addr, "AUDITCOLLECTOR_CLICKHOUSE_PROTOCOL=http")...)
	if err == nil {
		err = errors.Join(do(p, f), p.end())
	}
	f.close()
	return errors.Join(err, engine.end())
}

// perRecord returns the seconds of processor time that the collector uses for
// each of the first n records with some alert rules, while its ClickHouse costs
// nothing.
func (b *bench) perRecord(ctx context.Context, rules string, n int) (seconds float64, err error) {
	err = b.discarding(ctx, false, func(p *instance, _ *front) error {
		var at [2]struct{ records, seconds float64 }
		began := time.Now()
		for i, stored := range []int{n / 10, n * 19 / 20} {
			if err := p.until(ctx, float64(stored)); err != nil {
				return err
			}
			if i == 0 {
				began = time.Now()
			}
			used, err := process.CPUTime(p.cmd.Process.Pid)
			if err != nil {
				return err
			}
			at[i].records, at[i].seconds = p.metric(ctx, recordsStored), used.Seconds()
		}
		records := at[1].records - at[0].records
		fmt.Fprintf(b.progress, "benchcollector: by the clock %.0f records/s\n", records/time.Since(began).Seconds())
		seconds = (at[1].seconds - at[0].seconds) / records
		return nil
	}, "AUDITCOLLECTOR_ALERT_RULES="+rules)
	return seconds, err
}
