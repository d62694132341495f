package main

import (
	"errors"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"

	"github.com/spf13/cobra"
)

const showLong = `Show one record for a person: every member, the arguments as a tree with digests
marked as such, what the call did one by one, its location in the spool, and
the other lines of the same call. The beginning of a record's id is enough where
no other record's starts like it. The exit code is 1 if there is no such record.`

func newShowCmd(a *app) *cobra.Command {
	var asJSON, colour, noColour, utc bool
	cmd := &cobra.Command{
		Use:     "show RECORD_ID",
		Short:   "show one record",
		Long:    showLong,
		Example: "  auditproxy show 019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e\n  auditproxy show 019e8b1c-5a2f --json | jq .args",
		Args:    oneRecord,
		RunE: func(cmd *cobra.Command, args []string) error {
			if colour && noColour {
				return errors.New("--color and --no-color are both set")
			}
			return a.show(cmd, view.ShowConfig{ID: args[0], JSON: asJSON, UTC: utc, Colour: colour || a.colours(a.stdout) && !noColour})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print the line as stored in the spool")
	f.BoolVar(&utc, "utc", false, "show times in UTC")
	f.BoolVar(&colour, "color", false, "print colours even if the output is not a terminal")
	f.BoolVar(&noColour, "no-color", false, "no colours")
	return cmd
}

func (a *app) show(cmd *cobra.Command, sc view.ShowConfig) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	sc.Dir, sc.Location, sc.Terminal = cfg.spoolDir, a.location(), terminal.IsTerminal(a.stdout)
	sc.Stdout, sc.Stderr, sc.Say = a.stdout, a.stderr, a.say
	return view.Show(ctx, sc)
}
