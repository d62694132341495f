package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/cmd/internal/verify"
	"auditproxy/cmd/internal/view"
	"auditproxy/schemas/evidence"
	engine "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
)

const verifyLong = `Check that no record was changed, and that nothing is damaged or missing.

Changes are found by the records' evidence: the signed checkpoints of each session
and the chain of a host's sessions. Trusted keys are in a trust file, with a line
"host KEY" for each host; auditproxy evidence key prints the key of this one. Keep
it, and checkpoints to compare with, where a writer of the records cannot write.
Without a trust file the keys that were found are listed as unknown.
--trust-on-first-use keeps them in the trust file, or in auditproxy/trust in your
configuration directory; a host that has another key later is unknown.

The records are those of the spool, or of an exported file with one record on each
line as it was written: values of Kafka messages, or raw of ClickHouse. A file must
have whole sessions: what a filter left out is reported as deleted.

In a spool the checksum of every line is checked too, and that seq and call_no have
no holes, and that every call of a session that is over has an intent and exactly one
record. Where retention has removed the first files of a session, its numbers count
from what is there. --damage-only checks only this: a checksum shows accidents, not
changes.

The exit code is 0 if all was verified, or all but the last records of running
sessions. It is 1 if records were changed or damaged, and 2 if that could not be
determined: they are not signed, by an unknown key, or cannot be read.`

// verifyOptions are the flags of verify.
type verifyOptions struct {
	session, trust, file, format string
	firstUse, damageOnly, json   bool
	checkpoints                  []string
}

func newVerifyCmd(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "check that no record was changed, damaged or lost",
		Long:  verifyLong,
		Example: `  auditproxy verify --trust trusted-keys
  auditproxy verify --trust trusted-keys --file export.ndjson --checkpoint kept.txt
  auditproxy verify --trust-on-first-use
  auditproxy verify --damage-only
  auditproxy verify --trust trusted-keys --format json | jq 'select(.state == "tampered")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.verify(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.trust, "trust", "", "`FILE` with the keys to trust")
	f.BoolVar(&o.firstUse, "trust-on-first-use", false, "trust the keys that are found, and keep them")
	f.StringVar(&o.file, "file", "", "check the records in `FILE` (- for standard input), one on each line, instead of the spool's")
	f.StringArrayVar(&o.checkpoints, "checkpoint", nil, "compare with the signed checkpoints in `FILE`; may be repeated")
	f.StringVar(&o.session, "session", "", "only sessions whose id starts with `ID`")
	f.BoolVar(&o.damageOnly, "damage-only", false, "check for damage and missing records, not for changes")
	cli.AddFormat(cmd, &o.format)
	cmd.RegisterFlagCompletionFunc("session", cobra.NoFileCompletions)
	return cmd
}

func (o *verifyOptions) check() error {
	err := cli.CheckFormat(o.format)
	o.json = o.format == "json"
	switch {
	case o.damageOnly && (o.trust != "" || o.firstUse || o.file != "" || len(o.checkpoints) > 0):
		return errors.New("--damage-only checks no evidence: it cannot be combined with --trust, --trust-on-first-use, --file or --checkpoint")
	case o.file != "" && o.session != "":
		return errors.New("--file and --session cannot be combined")
	}
	return err
}

func (a *app) verify(cmd *cobra.Command, o verifyOptions) error {
	var cfg config
	var err error
	if o.file == "" { // which needs neither a spool nor a home directory
		if cfg, err = a.load(); err != nil {
			return err
		}
	}
	vc := verify.Config{Dir: cfg.spoolDir, JSON: o.json, DamageOnly: o.damageOnly, Colour: a.colours(a.stdout), Stdout: a.stdout, Stderr: a.stderr}
	if vc.Evidence, err = a.compareWith(o); err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if o.firstUse {
		vc.Keep, err = a.keepKeys(o.trust)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if o.file != "" {
		return verify.RunFile(cmd.Context(), vc, o.file)
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	return a.verifySpool(ctx, cfg, o, vc)
}

// compareWith reads what records are compared with.
func (a *app) compareWith(o verifyOptions) (engine.Config, error) {
	var trust evidence.Trust
	var err error
	if !o.firstUse { // which reads the file later, or makes it
		trust, err = evidencereport.ReadTrust(o.trust)
	}
	known, errKnown := evidencereport.ReadCheckpoints(o.checkpoints)
	return engine.Config{Hosts: trust.Hosts, Checkpoints: known, Partial: o.session != "", Now: time.Now()}, errors.Join(err, errKnown)
}

// keepKeys returns what trusts keys on first use, and keeps them in a file.
func (a *app) keepKeys(file string) (func([]string) ([]string, error), error) {
	file, err := evidencereport.KeysFile(file, cli.ConfigHome(a.env), "auditproxy")
	if err != nil {
		return nil, err
	}
	return func(found []string) ([]string, error) {
		hosts, said, err := evidencereport.Keep(file, found)
		for _, text := range said {
			a.say(errors.New(text))
		}
		return hosts, err
	}, nil
}

func (a *app) verifySpool(ctx context.Context, cfg config, o verifyOptions, vc verify.Config) error {
	entries, err := view.List(cfg.spoolDir, o.session)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if len(entries) == 0 && !o.damageOnly {
		return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("verifying: there is no session in %q", cfg.spoolDir)}
	}
	vc.Retained = cfg.retained
	return verify.Run(ctx, vc, entries, func() ([]string, error) {
		ids, err := spool.Names(cfg.spoolDir)
		return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, o.session) }), err
	})
}

// retained returns since when the spool must be complete: by its settings retention
// cannot have removed a session that began later.
func (c config) retained(entries []spool.Entry) time.Time {
	since := time.Now().Add(-c.retainAge)
	if c.retainAge <= 0 {
		since = time.Unix(0, 0)
	}
	if c.consumer == "none" || c.retainBytes <= 0 {
		return since
	}
	var bytes int64
	oldest := time.Now() // end of those that retention could remove
	for _, e := range entries {
		bytes += e.Bytes
		if e.Finished() && e.Modified.Before(oldest) {
			oldest = e.Modified
		}
	}
	// It removes the oldest ones until the rest fits.
	if bytes > c.retainBytes/2 && oldest.After(since) {
		since = oldest
	}
	return since
}
