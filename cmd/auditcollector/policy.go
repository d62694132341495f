package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/replay"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/store"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/spf13/cobra"
)

func newPolicyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "try policies on stored calls",
		Long:    "Try policies on the calls in ClickHouse. auditproxy applies them; docs/policy.md\nexplains how to write one.",
		Example: "  auditcollector policy replay policy.yaml --since 7d",
	}
	cmd.AddCommand(newPolicyReplayCmd(a))
	return cmd
}

const policyReplayLong = `Print what a policy would have done to the calls in ClickHouse, by rule and tool,
next to what was done. "let through" are calls that reached the server, "stopped"
those that did not. auditproxy policy replay does the same with the calls in a
spool, and docs/policy.md explains which calls are undecidable.

Limits by user count over the sessions of a user with a server on a host. Without
ClickHouse configured, the local engine is asked; it is started if no collector
runs it.

The exit code is 1 if the policy would have denied or asked about calls that were
let through, else 2 if calls are undecidable or records cannot be read.`

const policyReplayExample = `  auditcollector policy replay policy.yaml --since 7d
  auditcollector policy replay preset:ask-for-dangerous --format json`

func newPolicyReplayCmd(a *app) *cobra.Command {
	var o replay.Flags
	var format string
	cmd := &cobra.Command{
		Use:     "replay FILE",
		Short:   "print what a policy would have done to stored calls",
		Long:    policyReplayLong,
		Example: policyReplayExample,
		Args:    replay.OnePolicy,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := o.Selection(time.Now())
			if err = errors.Join(cli.CheckFormat(format), err); err != nil {
				return err
			}
			l, err := gate.LoadNamed(args[0], risk.Config{Home: a.getenv("HOME")})
			if err != nil {
				return err
			}
			return a.configured(cmd.Context(), func(ctx context.Context, cfg config) error {
				r := replay.New(replay.Config{Policy: l.Policy, Risk: l.Risk})
				err := a.withStore(ctx, cfg, func(*store.Store) error { return a.replayStored(ctx, cfg, r, sel) })
				if err != nil {
					return err
				}
				report := r.Report()
				report.Policy = replay.Source{Source: args[0], Dialect: l.Policy.Dialect, Hash: l.Policy.Hash, Mode: l.Mode}
				return report.Write(a.stdout, format == "json", terminal.Colours(a.stdout, a.getenv), time.Local)
			})
		},
		ValidArgsFunction: replay.CompletePolicy,
	}
	o.Add(cmd)
	cli.AddFormat(cmd, &format)
	return cmd
}

// sortedAtOnce is how many calls ClickHouse sorts in memory at a time.
const sortedAtOnce = 50_000

// replayStored replays the calls of the store, with a reader's rights.
func (a *app) replayStored(ctx context.Context, cfg config, r *replay.Replay, sel replay.Selection) error {
	cc, err := cfg.clickhouse(chdb.Reader)
	if err != nil {
		return err
	}
	reader, err := store.OpenReader(cc)
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	defer reader.Close()
	records, from := r.Records(sel)
	until := sel.Until
	if until.IsZero() {
		until = time.Now().Add(24 * time.Hour) // the latest that a record may be
	}
	if from.Before(time.Unix(0, 0)) {
		from = time.Unix(0, 0)
	}
	end := until.Add(time.Microsecond)
	hours, err := reader.CallHours(ctx, store.Window{From: from, To: end})
	if err != nil {
		return interrupted(ctx, cfg.explain(err))
	}
	var total int64
	for _, h := range hours {
		total += int64(h.Calls)
	}
	progress := terminal.StartProgress(a.stderr, total, "replaying", terminal.Count(int(total), "call"))
	defer progress.Finish()
	damaged := 0
	for _, h := range hours {
		parts := int64(h.Calls/sortedAtOnce + 1)
		for i := range parts {
			w := store.Window{From: h.Start.Add(time.Hour * time.Duration(i) / time.Duration(parts)), To: h.Start.Add(time.Hour * time.Duration(i+1) / time.Duration(parts))}
			if w.From.Before(from) {
				w.From = from
			}
			if w.To.After(end) {
				w.To = end
			}
			if !w.From.Before(w.To) {
				continue
			}
			err := reader.EachCall(ctx, w, func(raw []byte) error {
				progress.Add(1)
				rec, err := audit.Parse(raw)
				if err != nil {
					damaged++
					return nil
				}
				records.Add(&rec)
				return nil
			})
			if err != nil {
				return interrupted(ctx, cfg.explain(err))
			}
		}
	}
	records.Close()
	if damaged > 0 {
		r.Problem(terminal.Count(damaged, "record") + " that this program cannot read")
	}
	return nil
}

func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("replaying: interrupted")
	}
	return fmt.Errorf("replaying: %w", err)
}
