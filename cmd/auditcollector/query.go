package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/query"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"
)

const queryLong = `Runs one SQL statement that reads, at the configured ClickHouse or else through
the local engine of a collector that is running. audit.events has a column for
each member of a record; audit.operations has a row for each thing that a call
did, also inside batches. A record that was stored twice counts once.

A table is for people: what would steer a terminal is escaped, and NULL is a
value that is not there. json is one object a line, csv begins with the names.
Both have the values as they are: of agents' texts, a spreadsheet may calculate
some. The csv of auditcollector export and of the review page marks these.`

const queryExample = `  auditcollector query 'SELECT ts, tool, outcome FROM events ORDER BY ts DESC LIMIT 10'
  auditcollector query --format json 'SELECT * FROM pipe_destinations'`

func newQueryCmd(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "query SQL",
		Short:   "ask ClickHouse with the rights of a reader",
		Long:    queryLong,
		Example: queryExample,
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			out := bufio.NewWriter(a.stdout)
			rows, ok := query.NewWriter(format, out, terminal.IsTerminal(a.stdout))
			if !ok {
				return fmt.Errorf("--format is %q, want table, json or csv", format)
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			ctx, cancel := cli.Interruptible(cmd.Context())
			defer cancel()
			err = a.query(ctx, cfg, args[0], rows)
			if err != nil && ctx.Err() != nil {
				err = errors.New("interrupted before the answer was whole")
			}
			if flushErr := query.IgnoreClosed(out.Flush()); err == nil {
				err = flushErr
			}
			return err
		},
	}
	cli.AddFormats(cmd, &format, "table", "json", "csv")
	return cmd
}

// query runs sql and writes its rows to w as they arrive.
func (a *app) query(ctx context.Context, cfg config, sql string, w query.Writer) error {
	cc, err := cfg.clickhouse(chdb.Reader)
	if err != nil {
		return err
	}
	db, err := clickhouse.OpenReader(cc)
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	defer db.Close()
	return query.Run(ctx, db, sql, w, cfg.explain)
}

// explain adds the remedy to an error, and reduces the engine's own to its
// message.
func (c config) explain(err error) error {
	var exception *driver.Exception
	switch {
	case errors.As(err, &exception):
		return fmt.Errorf("ClickHouse answers: %s", exception.Message)
	case c.local() && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)):
		return fmt.Errorf("no collector with a local engine is running in %q: start auditcollector run, or set clickhouse.addr", c.localDir)
	default:
		return fmt.Errorf("asking %s: %w", c.storeName(), clickhouse.Explain(err))
	}
}
