package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"

	"github.com/spf13/cobra"
)

const logLong = `Show the records of this machine, one line for each call, newest last: when it
started, how it ended, the tool, how long it took, its tier, what the policy
decided, what to look out for, and its arguments with digests in place of
secrets. Lines are in the order in which calls ended, as -f shows them. At a
terminal the last 50 are shown, else all.

"!denied:RULE" is a call that the policy refused, "!would_deny:RULE" one that it
would have refused if it were enforced; "!asked" and "!would_ask" are the same
for approvals. "!DETECTOR:ARGUMENT" is a detection.

Calls without a record are shown too: "running" in a session that is alive,
"lost" in one that died and has not been recovered. Damaged lines, torn tails
and gaps are shown whatever is asked for; with --output json, which prints the
lines as they were written, they are reported on standard error.

The words of these filters may have * and ? in them; several are separated by
commas. --tool looks into batches and at what other servers would
have read. --since and --until take "2026-11-21 10:00", RFC 3339, 10:00, -1h,
"10 minutes ago", today, yesterday.`

const logExample = `  auditproxy log -f
  auditproxy log --since today --tool 'pipe_pane,set_*'
  auditproxy log --decision 'deny,ask' --since -7d
  auditproxy log --outcome error,unknown --tier destructive -n 0
  auditproxy log --since -1h -o json | jq .tool`

// logOptions are the flags of log as they were written.
type logOptions struct {
	lines                             int
	linesSet                          bool
	follow, utc, noColour, colour     bool
	since, until, session, grep       string
	tool, method, tier, outcome, kind []string
	decision, risk, detector          []string
	output                            string
}

var outputs = []string{"short", "wide", "json"}

// shownAtTerminal is the default number of lines at a terminal.
const shownAtTerminal = 50

func newLogCmd(a *app) *cobra.Command {
	var o logOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "log",
		Short:   "show the records of this machine, newest last",
		Long:    logLong,
		Example: logExample,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.linesSet = cmd.Flags().Changed("lines")
			switch {
			case asJSON && cmd.Flags().Changed("output") && o.output != "json":
				return fmt.Errorf("--json and --output %s are both set", o.output)
			case asJSON:
				o.output = "json"
			}
			return a.log(cmd, o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVarP(&o.lines, "lines", "n", shownAtTerminal, "show the last `N` lines, 0 for all")
	f.BoolVarP(&o.follow, "follow", "f", false, "keep printing new lines")
	f.StringVar(&o.since, "since", "", "calls that started at or after `TIME`")
	f.StringVar(&o.until, "until", "", "calls that started at or before `TIME`")
	f.StringSliceVar(&o.tool, "tool", nil, "calls that did this, in a batch too: `NAMES`")
	f.StringSliceVar(&o.method, "method", nil, "calls of these JSON-RPC `METHODS`")
	f.StringSliceVar(&o.outcome, "outcome", nil, "`OUTCOMES`: ok, error, unknown, open, running, lost")
	f.StringSliceVar(&o.tier, "tier", nil, "`TIERS` of tools")
	f.StringSliceVar(&o.kind, "kind", nil, "`KINDS` of records: call, open, session_start, session_end, anomaly, gap, policy; checkpoint, which is left out otherwise")
	f.StringSliceVar(&o.decision, "decision", nil, "`DECISIONS` of the policy: allow, deny, ask; denied, would_deny, asked, would_ask")
	f.StringSliceVar(&o.risk, "risk", nil, "`RISKS`: read, write, execute, destructive, financial; low, medium, high, critical")
	f.StringSliceVar(&o.detector, "detector", nil, "calls in which one of these `DETECTORS` found something")
	f.StringVar(&o.session, "session", "", "sessions whose id starts with `ID`")
	f.StringVar(&o.grep, "grep", "", "records in whose line `REGEXP` (RE2) matches")
	f.StringVarP(&o.output, "output", "o", "short", "`FORM`: short, wide, json")
	f.BoolVar(&asJSON, "json", false, "the same as --output json")
	f.BoolVar(&o.utc, "utc", false, "show times in UTC")
	f.BoolVar(&o.colour, "color", false, "print colours even if the output is not a terminal")
	f.BoolVar(&o.noColour, "no-color", false, "no colours")
	for name, words := range map[string][]string{"outcome": view.Outcomes, "kind": view.Kinds, "output": outputs,
		"decision": view.Decisions, "risk": view.Risks, "detector": view.Detectors} {
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, name := range []string{"lines", "since", "until", "tool", "method", "tier", "session", "grep"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *app) log(cmd *cobra.Command, o logOptions) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	lc, err := a.logConfig(cfg.spoolDir, o, time.Now())
	l, problems := view.NewLog(lc)
	if err = errors.Join(err, problems); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	shown, err := l.Print(ctx)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	if lc.Terminal && shown.Nothing && !o.follow {
		a.say(errors.New("nothing to show: no record matches"))
	}
	if shown.Warned {
		return cli.ExitError{Code: cli.ExitUnclear}
	}
	return nil
}

// logConfig parses the flags; it reports all problems with them, except those
// that NewLog reports.
func (a *app) logConfig(dir string, o logOptions, now time.Time) (view.LogConfig, error) {
	c := view.LogConfig{
		Dir:      dir,
		Session:  o.session,
		Tool:     o.tool,
		Method:   o.method,
		Tier:     o.tier,
		Outcome:  o.outcome,
		Kind:     o.kind,
		Decision: o.decision,
		Risk:     o.risk,
		Detector: o.detector,
		Grep:     o.grep,
		Lines:    o.lines,
		Follow:   o.follow,
		JSON:     o.output == "json",
		Wide:     o.output == "wide",
		Colour:   o.colour || a.colours(a.stdout) && !o.noColour,
		Terminal: terminal.IsTerminal(a.stdout),
		Location: a.location(),
		Stdout:   a.stdout,
		Stderr:   a.stderr,
	}
	if o.utc {
		c.Location = time.UTC
	}
	if c.Terminal && !c.Wide {
		c.Cells = terminal.Width(a.stdout)
	}
	if !o.linesSet && !c.Terminal && !o.follow {
		c.Lines = 0
	}
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !slices.Contains(outputs, o.output) {
		problem("--output is %q, want short, wide or json", o.output)
	}
	if o.lines < 0 {
		problem("--lines is %d, want 0 for all or more", o.lines)
	}
	if o.colour && o.noColour {
		problem("--color and --no-color are both set")
	}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"since", o.since, &c.Since}, {"until", o.until, &c.Until}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.at, err = terminal.ParseTime(t.text, now.In(c.Location)); err != nil {
			problem("--%s: %w", t.flag, err)
		}
	}
	if len(errs) == 0 && !c.Since.IsZero() && !c.Until.IsZero() && c.Until.Before(c.Since) {
		problem("--until is before --since")
	}
	return c, errors.Join(errs...)
}
