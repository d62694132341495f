package main

import (
	"fmt"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/verify"
	"auditproxy/cmd/internal/view"

	"github.com/spf13/cobra"
)

const verifyLong = `Check that nothing is damaged and nothing is missing: the checksum of every line,
that seq and call_no have no holes, and that every call of a session that is
over has an intent and exactly one record. Where retention has removed the first
files of a session, its numbers count from what is there.

The exit code is 0 if there is no problem, 1 if there is a bad checksum, a hole
or a dead session that has not been recovered, and 2 if that cannot be checked.
A session that is alive and calls with the outcome "unknown" are not problems.

A checksum detects accidents, not tampering: who can write the files can write
checksums too.`

func newVerifyCmd(a *app) *cobra.Command {
	var session string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "verify",
		Short:   "check that no record is damaged or missing",
		Long:    verifyLong,
		Example: "  auditproxy verify\n  auditproxy verify --json | jq 'select(.problems)'",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.verify(cmd, session, asJSON) },
	}
	cmd.Flags().StringVar(&session, "session", "", "only sessions whose id starts with `ID`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object for each session")
	return cmd
}

func (a *app) verify(cmd *cobra.Command, session string, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	entries, err := view.List(cfg.spoolDir, session)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return verify.Run(ctx, verify.Config{Dir: cfg.spoolDir, JSON: asJSON, Colour: a.colours(a.stdout), Stdout: a.stdout, Stderr: a.stderr}, entries)
}
