package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/proof"
	"auditproxy/collector/store"
	"auditproxy/schemas/evidence/verify"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

const verifyLong = `Check by the evidence of the records in ClickHouse that none was changed, deleted
or inserted, and that no session is missing. Columns are compared with the bytes of
the record. What retention removed and what was erased is proved by what is kept of
it.

Trusted keys are in a trust file, with a line "host KEY" for each host, "log KEY"
for each central log and "witness KEY" for its witnesses. Keep it, and checkpoints to
compare with, where a writer of the tables cannot write. Without a trust file the
keys that were found are listed as unknown.
--trust-on-first-use keeps them in the trust file, or in auditcollector/trust in
your configuration directory; a host that has another key later is unknown.

With --log it compares the records with a central log too, and the log with kept
checkpoints of it. Without --log it does if this collector's own log is here. Unless
the trust file has a line "log KEY", the key next to that log is trusted.

The exit code is 0 if all was verified, or all but the last records of running
sessions. It is 1 if records were changed, and 2 if that could not be determined:
they are not signed, by an unknown key, or cannot be read.`

// verifyOptions are the flags of verify.
type verifyOptions struct {
	session, since, trust, log, format string
	firstUse                           bool
	checkpoints                        []string
}

func newVerifyCmd(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "check that no record was changed",
		Long:  verifyLong,
		Example: `  auditcollector verify --trust trusted-keys
  auditcollector verify --trust trusted-keys --since 24h
  auditcollector verify --trust trusted-keys --log https://audit.example.org/log --checkpoint kept.txt
  auditcollector verify --session 019e8b1c-0000-7aaa-8bbb-0123456789ab --trust-on-first-use`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckFormat(o.format); err != nil {
				return err
			}
			if _, err := uuid.Parse(o.session); o.session != "" && err != nil {
				return fmt.Errorf("--session is %q, want the whole id of a session", o.session)
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error { return a.verify(ctx, cfg, s, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "only the session with this `ID`")
	f.StringVar(&o.since, "since", "", "only sessions that started, or of which a record arrived, in this `TIME`, such as 24h or 7d")
	f.StringVar(&o.trust, "trust", "", "`FILE` with the keys to trust")
	f.BoolVar(&o.firstUse, "trust-on-first-use", false, "trust the keys that are found, and keep them")
	f.StringVar(&o.log, "log", "", "compare with the central log in this `DIR` or at this address")
	f.StringArrayVar(&o.checkpoints, "checkpoint", nil, "compare with the signed checkpoints in `FILE`, of sessions or of the log; may be repeated")
	cli.AddFormat(cmd, &o.format)
	cmd.RegisterFlagCompletionFunc("session", cobra.NoFileCompletions)
	return cmd
}

func (a *app) verify(ctx context.Context, cfg config, s *store.Store, o verifyOptions) error {
	now := time.Now()
	selection := proof.Selection{ID: o.session}
	compare := verify.Config{Session: o.session, Now: now, Until: now.Add(-proof.OnTheWay)}
	if o.since != "" {
		d, err := cli.ParseDuration(o.since)
		if err != nil || d <= 0 {
			return fmt.Errorf("--since is %q, want a time such as 24h or 7d", o.since)
		}
		selection.Since = now.Add(-d)
		compare.Since = selection.Since
	}
	known, err := a.compareWith(ctx, cfg, o)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	compare.Hosts, compare.Checkpoints, compare.Starts = known.trust.Hosts, known.Checkpoints, known.Starts
	checker := verify.New(compare)
	src := proof.NewSource(s.DB())
	progress, err := a.startCounting(ctx, src, selection)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	err = src.Check(ctx, proof.Check{Selection: selection, Now: now, Progress: func(rows int) { progress.Add(int64(rows)) }}, checker)
	progress.Finish()
	if err != nil {
		return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("verifying: %w", err)}
	}
	if o.firstUse {
		if err := a.keepKeys(o.trust, checker); err != nil {
			return fmt.Errorf("verifying: %w", err)
		}
	}
	return a.printReport(checker.Finish(), known, o.format == "json")
}

// startCounting shows progress if the number of records to read is known.
func (a *app) startCounting(ctx context.Context, src *proof.Source, selection proof.Selection) (*terminal.Progress, error) {
	if selection.ID != "" || !selection.Since.IsZero() || !terminal.IsTerminal(a.stderr) {
		return nil, nil
	}
	n, err := src.Count(ctx)
	return terminal.StartProgress(a.stderr, n, "verifying", terminal.Count(int(n), "record")), err
}

func (a *app) keepKeys(file string, checker *verify.Checker) error {
	file, err := evidencereport.KeysFile(file, cli.ConfigHome(a.env), "auditcollector")
	if err != nil {
		return err
	}
	hosts, said, err := evidencereport.Keep(file, checker.Unknown())
	for _, text := range said {
		fmt.Fprintln(a.stderr, terminal.EscapeMessage("auditcollector: "+text))
	}
	checker.Trust(hosts...)
	return err
}

func (a *app) printReport(r verify.Report, known known, json bool) error {
	exit := r.Exit
	var more [][]byte
	p := evidencereport.Printer{Out: a.stdout, Colour: terminal.Colours(a.stdout, a.getenv)}
	for _, text := range known.rolledBack {
		exit = verify.ExitTampered
		more = append(more, p.Line(string(verify.Tampered), "", text))
	}
	if len(r.Results) == 0 && exit == verify.ExitUnclear {
		fmt.Fprintln(a.stderr, "auditcollector: there is no record to verify")
	}
	var err error
	if json {
		for _, text := range known.rolledBack {
			r.Results = append(r.Results, verify.Result{State: verify.Tampered, Findings: []verify.Finding{{What: verify.RolledBack, Detail: text}}})
		}
		err = p.JSON(r, known.log, "", exit, func(r *verify.Result) any { return r })
	} else {
		err = p.Text(r, known.log, exit, more...)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if exit != verify.ExitVerified {
		return cli.ExitError{Code: exit}
	}
	return nil
}

// compareWith reads what records are compared with.
func (a *app) compareWith(ctx context.Context, cfg config, o verifyOptions) (known, error) {
	k := known{}
	var err error
	if !o.firstUse || o.trust != "" {
		if k.trust, err = evidencereport.ReadTrust(o.trust); err != nil && !o.firstUse {
			return k, err
		}
	}
	place := o.log
	if own := cfg.ownLog(); place == "" && own != "" {
		place = own
		k.trust.Logs, _ = logKeys(k.trust, own) // without any, the log says so
	}
	sessions, ofLog, err := evidencereport.ReadAllCheckpoints(o.checkpoints)
	if err != nil {
		return k, err
	}
	switch {
	case place == "" && len(ofLog) > 0:
		return k, errors.New("a checkpoint is of a log: name the log with --log")
	case place == "" && k.trust.Quorum > 0:
		return k, fmt.Errorf("the trust file has quorum %d, and there is no log that witnesses have signed: name the log with --log", k.trust.Quorum)
	case place == "" && len(k.trust.Logs) > 0: // who removed it would be right in all
		return k, errors.New("the trust file has the key of a log, and there is no log to compare with: name the log with --log")
	}
	if place != "" {
		err = k.readLog(ctx, place, part{}, ofLog, func(session string) bool { return o.session == "" || session == o.session })
	}
	k.Checkpoints = append(k.Checkpoints, sessions...)
	return k, err
}
