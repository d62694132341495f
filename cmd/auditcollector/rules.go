package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/alert"
	"auditproxy/collector/alert/notify"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"

	"github.com/spf13/cobra"
)

const rulesLong = `Alert rules select the calls that a person should review. Those that come with this
program are in force unless alert.rules names others; write your own in a file
and name both:

  alert:
    rules: [shipped, /etc/auditcollector/rules.yaml]

In place of a FILE, "shipped" names the rules of this program.`

func newRulesCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "list, check and try alert rules",
		Long:  rulesLong,
	}
	cmd.AddCommand(newListRulesCmd(a), newCheckRulesCmd(a), newTestRulesCmd(a))
	return cmd
}

func newListRulesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the effective rules",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			rules, err := cfg.rules(cfg.ruleFiles)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RULE\tSEVERITY\tLOOKS AT\tTITLE")
			for _, r := range rules.All() {
				looks := "records"
				if r.Scheduled() {
					looks = "every " + strings.TrimSuffix(strings.TrimSuffix(r.Every.String(), "0s"), "0m")
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, r.Severity, looks, escape.Text(r.Title))
			}
			return w.Flush()
		},
	}
}

func newCheckRulesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "check rules without ClickHouse; the exit code is 1 if they are not valid",
		Long: `Check rules without ClickHouse. All that is wrong is printed, with file, line and
column, and the exit code is 1. What only ClickHouse can say of the SQL in a
rule, "auditcollector rules test" finds.`,
		Args: someRules,
		RunE: func(_ *cobra.Command, files []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			var list []alert.File
			for _, name := range files {
				more, err := readRules(name)
				if err != nil {
					return err
				}
				list = append(list, more...)
			}
			rules, err := alert.Load(list, alert.Paths{Allowed: cfg.allowedPaths, Own: cfg.ownPaths()})
			if err != nil {
				return cli.ExitError{Code: cli.ExitFound, Err: err}
			}
			fmt.Fprintf(a.stdout, "%d rules are valid\n", len(rules.All()))
			return nil
		},
	}
}

// someRules is the Args of a command that takes files with rules.
func someRules(cmd *cobra.Command, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("rules %s needs files with rules: %s FILE", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

func newTestRulesCmd(a *app) *cobra.Command {
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "show what rules would have found; stores and sends nothing",
		Long: `Show what rules would have found in the records that arrived since a time ago,
in the configured ClickHouse or the local engine. It stores and sends
nothing. The exit code is 1 if they find anything, 2 if a rule cannot be run.`,
		Example: "  auditcollector rules test /etc/auditcollector/rules.yaml --since 24h",
		Args:    someRules,
		RunE: func(cmd *cobra.Command, files []string) error {
			age, err := cli.ParseDuration(since)
			if err != nil || age == 0 {
				return fmt.Errorf("--since is %q, want a time such as 24h or 7d", since)
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			rules, err := cfg.rules(files)
			if err != nil {
				return err
			}
			ctx, cancel := cli.Interruptible(cmd.Context())
			defer cancel()
			return a.withStore(ctx, cfg, func(s *store.Store) error {
				reader, err := cfg.reader()
				if err != nil {
					return err
				}
				defer reader.Close()
				t := ruleTest{app: a, store: s, reader: reader, rules: rules, since: time.Now().Add(-age), asJSON: asJSON}
				return t.run(ctx)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "24h", "how long ago, such as 90m or 7d")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one alert a line, as a webhook gets it")
	return cmd
}

// A ruleTest runs rules on stored records.
type ruleTest struct {
	*app
	store  *store.Store
	reader *store.Reader
	rules  *alert.Rules
	since  time.Time
	asJSON bool
}

func (t *ruleTest) run(ctx context.Context) error {
	found := map[string]alert.Alert{}
	if err := t.stream(ctx, found); err != nil {
		return err
	}
	for _, r := range t.rules.All() {
		if !r.Scheduled() {
			continue
		}
		err := alert.Ask(ctx, t.reader, r, t.since, func(a alert.Alert) error {
			if !a.Ended() {
				found[a.ID] = a
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("rule %q: %w", r.Name, err)
		}
	}
	if err := t.print(slices.SortedFunc(maps.Values(found), func(a, b alert.Alert) int {
		return cmp.Or(a.TS.Compare(b.TS), cmp.Compare(a.ID, b.ID))
	})); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if len(found) > 0 {
		return cli.ExitError{Code: cli.ExitFound}
	}
	return nil
}

// stream runs the rules that check each record.
func (t *ruleTest) stream(ctx context.Context, found map[string]alert.Alert) error {
	upto := time.Now().Add(24 * time.Hour) // another collector's clock may be ahead
	total, err := t.store.CountArrived(ctx, t.since, upto)
	if err != nil {
		return err
	}
	progress := terminal.StartProgress(t.stderr, int64(total), "reading", fmt.Sprintf("%d records", total))
	defer progress.Finish()
	return t.store.Arrived(ctx, t.since, upto, func(rows []ingest.Row) error {
		for i := range rows {
			for _, a := range t.rules.Match(&rows[i]) {
				found[a.ID] = a
			}
		}
		progress.Add(int64(len(rows)))
		return nil
	})
}

func (t *ruleTest) print(list []alert.Alert) error {
	out := bufio.NewWriter(t.stdout)
	if t.asJSON {
		return t.printJSON(out, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "nothing found")
		return out.Flush()
	}
	counts := map[string]int{}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tSEVERITY\tRULE\tSESSION\tCALL\tOPERATION\tDETAILS")
	for _, a := range list {
		counts[a.Rule]++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", a.TS.UTC().Format(time.DateTime), a.Severity, a.Rule, escape.Text(a.SessionID), a.CallNo,
			terminal.Shorten(escape.Name(a.Operation)), terminal.Shorten(escape.Text(a.Details)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, rule := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%6d %s\n", counts[rule], rule)
	}
	return out.Flush()
}

func (t *ruleTest) printJSON(out *bufio.Writer, list []alert.Alert) error {
	for _, a := range list {
		if err := terminal.PrintJSON(out, notify.Message(a)); err != nil {
			return err
		}
	}
	return out.Flush()
}
