package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/exportfile"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/alert"
	"auditproxy/collector/export/ocsf"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/store"

	"github.com/spf13/cobra"
)

const exportLong = `Write stored records to standard output or to a file, in the order in which they
arrived: all that arrived before, for which it waits up to ten seconds while a
collector stores them. The formats are:

  ndjson   each record as it was written; auditproxy verify --file checks whole
           sessions
  ocsf     an OCSF event for each record; records of kind checkpoint have none
  csv      the columns of audit.events without raw, with a header
  parquet  the columns of audit.events

With --output FILE a file FILE.mark says how far the export has come. After a crash,
or to add what arrived since, --resume continues there: no record is missing and
none is there twice. --since is for the beginning only.

--since, --until and --when can leave out records of a session, which auditproxy
verify then reports as deleted: a file does not tell why it lacks them. To verify,
export all, or one session: --when 'record.session_id == "ID"'. auditcollector verify
--since checks what is stored.

In csv, a text that a spreadsheet would calculate, or that begins with an
apostrophe, has an apostrophe before it. Import it with the comma as separator.

A large Parquet export has several files, of about a gigabyte of records each:
FILE.parquet, FILE.2.parquet and so on; --resume begins another one.

The exit code is 1 if the format cannot have some records, or if some are not what
was stored any more; they are named, and the others are written.`

const exportExample = `  auditcollector export > records.ndjson
  auditcollector export --when 'record.session_id == "019e8b1c-0000-7aaa-8bbb-0123456789ab"' > session.ndjson
  auditcollector export --format ocsf --follow | vector --config siem.yaml
  auditcollector export --format csv --since 2026-11-01 --until 2026-12-01 --output november.csv
  auditcollector export --format ocsf --when 'record.outcome == "error"' --output errors.json
  auditcollector export --format parquet --output records.parquet --resume`

// exportOptions are the flags of export.
type exportOptions struct {
	format, since, until, when, output string
	follow, resume                     bool
}

func newExportCmd(a *app) *cobra.Command {
	var o exportOptions
	limits := []string{"since", "until", "when", "output"}
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "write stored records to a file",
		Long:    exportLong,
		Example: exportExample,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.exportConfig(o, time.Now())
			if err := errors.Join(cli.CheckEmpty(cmd, limits...), err); err != nil {
				return err
			}
			return a.configured(cmd.Context(), func(ctx context.Context, cfg config) error {
				if o.when != "" {
					filter, err := alert.NewFilter(o.when, alert.Paths{Allowed: cfg.allowedPaths, Own: cfg.ownPaths()})
					if err != nil {
						return fmt.Errorf("--when is not a condition: %w", err)
					}
					c.When, c.Match = o.when, func(r *receiver.Record) bool { return filter.Match(&r.Row) }
				}
				return a.withStore(ctx, cfg, func(s *store.Store) error {
					c.Source = exportfile.Stored{Source: source.Source{DB: s.DB()}}
					return a.export(ctx, c)
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "ndjson", "`form` of the output: "+strings.Join(exportfile.Names(), ", "))
	f.StringVar(&o.since, "since", "", "records that arrived at or after `TIME`, such as 7d or \"2026-11-21 10:00\"")
	f.StringVar(&o.until, "until", "", "records that arrived at or before `TIME`")
	f.StringVar(&o.when, "when", "", "records that meet `CONDITION`, in the language of alert rules")
	f.BoolVar(&o.follow, "follow", false, "go on with records as they arrive")
	f.StringVar(&o.output, "output", "", "write to `FILE`, which must not exist; - and the default are standard output")
	f.BoolVar(&o.resume, "resume", false, "continue FILE where its mark says, if it was begun")
	cli.MayBeEmpty(cmd, limits...)
	for _, name := range []string{"since", "until", "when"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportfile.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// exportConfig reads the flags. It returns all problems with them.
func (a *app) exportConfig(o exportOptions, now time.Time) (exportfile.Config, error) {
	if o.output == "-" {
		o.output = ""
	}
	c := exportfile.Config{Follow: o.follow, File: o.output, Resume: o.resume, Out: a.stdout, Terminal: terminal.IsTerminal(a.stdout)}
	var problems []error
	events := ocsf.New(ocsf.Config{Version: cli.Version()})
	var err error
	c.Format, err = exportfile.NewFormat(o.format, func(dst []byte, r *receiver.Record) ([]byte, error) {
		b, err := events.Append(dst, r)
		if errors.Is(err, ocsf.ErrNoEvent) {
			return dst, nil
		}
		return b, err
	})
	problems = append(problems, err)
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"since", o.since, &c.Since}, {"until", o.until, &c.Until}} {
		if t.text == "" {
			continue
		}
		if *t.at, err = terminal.ParseTime(t.text, now); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", t.flag, err))
		}
	}
	if !c.Since.IsZero() && !c.Until.IsZero() && c.Until.Before(c.Since) {
		problems = append(problems, errors.New("--until is before --since"))
	}
	if o.resume && o.output == "" {
		problems = append(problems, errors.New("--resume needs --output and a file"))
	}
	if o.format == "parquet" {
		if o.follow {
			problems = append(problems, errors.New("--follow is not for --format parquet: a file is complete only at its end; repeat the export with --resume"))
		}
		if o.output == "" && c.Terminal {
			problems = append(problems, errors.New("--format parquet is not for a terminal: name a file with --output"))
		}
	}
	return c, errors.Join(problems...)
}

// refusedShown is how many refused records are named.
const refusedShown = 10

func (a *app) export(ctx context.Context, c exportfile.Config) error {
	say := func(format string, args ...any) {
		fmt.Fprintln(a.stderr, terminal.EscapeMessage("auditcollector: "+fmt.Sprintf(format, args...)))
	}
	if limits := limitsOf(c); len(limits) > 0 && c.Format.String() == "ndjson" {
		say("%s can leave out records of a session: auditproxy verify --file may report these as deleted", strings.Join(limits, " and "))
	}
	var progress *terminal.Progress
	if !c.Follow && terminal.IsTerminal(a.stderr) && !(c.Terminal && c.File == "") {
		c.Start = func(n uint64) {
			progress = terminal.StartProgress(a.stderr, int64(n), "exporting", terminal.Count(int(n), "record"))
		}
		c.Progress = func(n int) { progress.Add(int64(n)) }
	}
	refused := 0
	c.Refused = func(id string, err error) {
		if refused++; refused <= refusedShown {
			say("record %q cannot be exported: %v", id, err)
		}
	}
	waiting := ""
	c.Waiting = func(err error) {
		if text := err.Error(); text != waiting {
			waiting = text
			say("waiting for the store: %v", err)
		}
	}
	res, err := exportfile.Run(ctx, c)
	progress.Finish()
	if err != nil && !(c.File == "" && errors.Is(err, syscall.EPIPE)) { // as under head
		if ctx.Err() != nil {
			err = errors.New("interrupted before all was exported")
			if c.File != "" {
				err = fmt.Errorf("%w; continue with --resume", err)
			}
		}
		return cli.ExitError{Code: cli.ExitUnclear, Err: err}
	}
	if c.File != "" {
		text := terminal.Count(int(res.Written), "record")
		if res.Without > 0 {
			text += fmt.Sprintf(", %d without an event", res.Without)
		}
		fmt.Fprintf(a.stderr, "exported %s to %s\n", text, terminal.EscapeMessage(cmp.Or(strings.Join(res.Files, ", "), c.File)))
	}
	if !res.Upto.IsZero() {
		say("records that arrived after %s are left out: a collector that died or is late can still add to them; export them in some minutes", res.Upto.UTC().Format(time.RFC3339))
	}
	if res.Refused > 0 {
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("%s cannot be exported as %s", terminal.Count(int(res.Refused), "record"), c.Format)}
	}
	return nil
}

// limitsOf returns the flags that leave records out.
func limitsOf(c exportfile.Config) (flags []string) {
	if !c.Since.IsZero() {
		flags = append(flags, "--since")
	}
	if !c.Until.IsZero() {
		flags = append(flags, "--until")
	}
	if c.When != "" {
		flags = append(flags, "--when")
	}
	return flags
}
