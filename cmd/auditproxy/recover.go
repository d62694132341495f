package main

import (
	"context"
	"fmt"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
)

const recoverLong = `End the sessions whose proxy died: each call that was open gets a record with
the outcome unknown, a torn tail is set aside, and the session gets its end. The
next proxy does the same, and so do auditproxy ship and an auditcollector that
reads this spool, so there is seldom a reason to do it by hand.

A session that another machine wrote is left alone, because its lock does not
tell here whether its proxy is alive. --force takes it for dead: for when that
machine is gone, as a container is that had this spool.

The exit code is 0 when no dead session is left, and 2 when one is.`

func newRecoverCmd(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "recover",
		Short:   "end the sessions whose proxy died",
		Long:    recoverLong,
		Example: "  auditproxy recover\n  auditproxy recover --force",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.recover(cmd.Context(), force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "also sessions of other machines, and those whose lock file is gone")
	return cmd
}

func (a *app) recover(ctx context.Context, force bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if _, err := view.List(cfg.spoolDir, ""); err != nil {
		return fmt.Errorf("recovering: %w", err)
	}
	ctx, stop := cli.Interruptible(ctx)
	defer stop()
	done, skipped, err := spool.Recover(ctx, spool.RecoverConfig{Dir: cfg.spoolDir, KeyFile: cfg.evidenceKeyFile, Force: force})
	for _, r := range done {
		fmt.Fprintf(a.stdout, "session %s: recovered, %s unknown%s\n", escape.Text(r.Session), terminal.Count(r.Unknown, "call"), recoveredDetails(r))
		if r.Unsigned != nil {
			a.say(fmt.Errorf("session %q: its last records are not signed; once the key can be used, auditproxy recover signs them: %w", r.Session, r.Unsigned))
		}
	}
	for _, s := range skipped {
		a.say(fmt.Errorf("session %q not recovered: %w", s.Session, s.Err))
	}
	switch {
	case err != nil:
		return fmt.Errorf("recovering: %w", err)
	case len(skipped) > 0:
		return cli.ExitError{Code: cli.ExitUnclear}
	case len(done) == 0:
		fmt.Fprintln(a.stdout, "no session is dead")
	}
	return nil
}

// recoveredDetails holds further facts about a session that has its end now.
func recoveredDetails(r spool.Recovered) string {
	var details string
	if r.Damaged > 0 {
		details += ", " + terminal.Count(r.Damaged, "damaged place") + " left as found"
	}
	if len(r.Torn) > 0 {
		details += ", bad tails kept as " + escape.Text(strings.Join(r.Torn, " "))
	}
	return details
}
