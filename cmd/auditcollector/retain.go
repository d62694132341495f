package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/retention"
	"auditproxy/collector/store"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

const retainLong = `Remove what is older than retention.events, retention.tenants and
retention.dead_letters, and print it. "auditcollector run" does it every hour;
this is for a collector whose user may not delete, and to see what is due.
What is removed is written to the table retention_log before it is gone.

A time counts once it was configured for a day, and the clocks of this machine
and of ClickHouse agree: run it every hour, or beside "auditcollector run".`

func newRetainCmd(a *app) *cobra.Command {
	var dry bool
	var format string
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "remove what is kept long enough",
		Long:  retainLong,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.configured(cmd.Context(), func(ctx context.Context, cfg config) error {
				return a.withStore(ctx, cfg, func(s *store.Store) error {
					list, err := cfg.retentionJob(s, nil, cfg.logger(a).WithOptions(zap.IncreaseLevel(zap.WarnLevel))).Once(ctx, dry) // the list says what was removed
					if writeErr := writeRemovals(a.stdout, list, format); err == nil {
						err = writeErr
					}
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print what is due")
	cli.AddFormat(cmd, &format)
	return cmd
}

// retentionJob returns the job that removes what is too old. It does not connect.
func (c config) retentionJob(s *store.Store, r prometheus.Registerer, log *zap.Logger) *retention.Job {
	return retention.New(retention.Config{DB: s.DB(), Keep: c.retention(), Log: log, Metrics: r})
}

func writeRemovals(w io.Writer, list []retention.Removal, format string) error {
	return terminal.PrintList(w, list, format, "TABLE\tPARTITION\tTENANT\tBEFORE\tROWS\tRULE", func(r retention.Removal) []string {
		rows := fmt.Sprint(r.Rows)
		if r.Whole {
			rows += " (all)"
		}
		return []string{r.Table, r.Partition, r.Tenant, r.Cutoff.Format(time.DateOnly), rows, r.Rule}
	})
}
