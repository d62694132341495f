package replay

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/deploy/policies"

	"github.com/spf13/cobra"
)

// Flags are the flags that select calls, as they were written.
type Flags struct{ since, until, session string }

// Add adds the flags to a command.
func (o *Flags) Add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "calls that started at or after `TIME`, such as 7d or \"2026-11-21 10:00\"")
	f.StringVar(&o.until, "until", "", "calls that started at or before `TIME`")
	f.StringVar(&o.session, "session", "", "sessions whose id starts with `ID`")
	for _, name := range []string{"since", "until", "session"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// Selection reads the flags; it reports all problems with them. now is in the
// location of the times.
func (o *Flags) Selection(now time.Time) (Selection, error) {
	s := Selection{Session: o.session}
	var errs []error
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"since", o.since, &s.Since}, {"until", o.until, &s.Until}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.at, err = terminal.ParseTime(t.text, now); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", t.flag, err))
		}
	}
	if len(errs) == 0 && !s.Since.IsZero() && !s.Until.IsZero() && s.Until.Before(s.Since) {
		errs = append(errs, errors.New("--until is before --since"))
	}
	return s, errors.Join(errs...)
}

// OnePolicy is the Args of a command about a policy.
func OnePolicy(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("policy %s needs the policy: %s FILE, or preset:NAME", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

// CompletePolicy completes the one file or preset that such a command takes.
func CompletePolicy(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range policies.Names() {
		if name = policies.Prefix + name; strings.HasPrefix(name, word) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// Write writes the report to w. Its error is a cli.ExitError without a text for
// what the report has: a finding, or what is not clear.
func (r *Report) Write(w io.Writer, asJSON, colour bool, loc *time.Location) error {
	var err error
	if asJSON {
		err = terminal.PrintJSON(w, r)
	} else {
		err = r.Print(w, colour, loc)
	}
	switch {
	case err != nil:
		return fmt.Errorf("replaying: printing: %w", err)
	case r.Found():
		return cli.ExitError{Code: cli.ExitFound}
	case r.Unclear():
		return cli.ExitError{Code: cli.ExitUnclear}
	}
	return nil
}
