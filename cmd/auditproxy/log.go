package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const logLong = `Show the records of this machine, one line for each call, newest last: when it
started, how it ended, the tool, how long it took, its tier, what to look out
for, and its arguments with digests in place of secrets. Lines stand in the
order in which calls ended, as -f shows them. At a terminal the last 50 are
shown, else all.

Calls without a record are shown too: "running" in a session that is alive,
"lost" in one that died and has not been recovered. Damaged lines, torn tails
and gaps are shown whatever is asked for; with --output json, which prints the
lines as they were written, they are told on standard error.

A tool, method, tier, outcome or kind may have * and ? in it; several are
separated by commas. --tool looks into batches and at what other servers would
have read. --since and --until take "2026-11-21 10:00", RFC 3339, 10:00, -1h,
"10 minutes ago", today, yesterday.`

const logExample = `  auditproxy log -f
  auditproxy log --since today --tool 'pipe_pane,set_*'
  auditproxy log --outcome error,unknown --tier destructive -n 0
  auditproxy log --since -1h -o json | jq .tool`

// logOptions are the flags of log as they were written.
type logOptions struct {
	lines                             int
	linesSet                          bool
	follow, utc, noColour, colour     bool
	since, until, session, grep       string
	tool, method, tier, outcome, kind []string
	output                            string
}

// What the flags take.
var (
	outputs  = []string{"short", "wide", "json"}
	outcomes = []string{"ok", "error", "unknown", outcomeOpen, outcomeRunning, outcomeLost}
	kinds    = []string{"call", "open", "session_start", "session_end", "anomaly", "gap"}
)

// shownAtTerminal is how many lines a terminal gets where nobody says.
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
	f.BoolVarP(&o.follow, "follow", "f", false, "go on showing lines as they are written")
	f.StringVar(&o.since, "since", "", "calls that started at or after `TIME`")
	f.StringVar(&o.until, "until", "", "calls that started at or before `TIME`")
	f.StringSliceVar(&o.tool, "tool", nil, "calls that did this, in a batch too: `NAMES`")
	f.StringSliceVar(&o.method, "method", nil, "calls of these JSON-RPC `METHODS`")
	f.StringSliceVar(&o.outcome, "outcome", nil, "`OUTCOMES`: ok, error, unknown, open, running, lost")
	f.StringSliceVar(&o.tier, "tier", nil, "`TIERS` of tools")
	f.StringSliceVar(&o.kind, "kind", nil, "`KINDS` of records: call, open, session_start, session_end, anomaly, gap")
	f.StringVar(&o.session, "session", "", "sessions whose id starts with `ID`")
	f.StringVar(&o.grep, "grep", "", "records in whose line `REGEXP` (RE2) matches")
	f.StringVarP(&o.output, "output", "o", "short", "`FORM`: short, wide, json")
	f.BoolVar(&asJSON, "json", false, "the same as --output json")
	f.BoolVar(&o.utc, "utc", false, "show times in UTC")
	f.BoolVar(&o.colour, "color", false, "colours even if this is no terminal")
	f.BoolVar(&o.noColour, "no-color", false, "no colours")
	for name, words := range map[string][]string{"outcome": outcomes, "kind": kinds, "output": outputs} {
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
	v, err := a.newView(cfg.spoolDir, o, time.Now())
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	entries, err := v.sessions()
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	var total int64
	for _, e := range entries {
		total += e.Bytes
	}
	n := o.lines
	if !o.linesSet && !v.terminal && !o.follow {
		n = 0
	}
	if n == 0 { // the end is read at once
		v.progress = terminal.StartReading(a.stderr, total)
	}
	defer v.progress.Finish()
	ends := make(map[string]spool.Position)
	if n > 0 || o.follow {
		err = v.last(ctx, slices.Clone(entries), n, ends)
	} else {
		err = v.all(ctx, entries)
	}
	err = errors.Join(err, v.out.Flush())
	v.progress.Finish()
	if err == nil && o.follow {
		err = v.follow(ctx, entries, ends)
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, syscall.EPIPE):
		return nil // interrupted, or nobody reads on
	case err != nil:
		return fmt.Errorf("reading the log: %w", err)
	}
	v.tellWarnings()
	if v.terminal && !v.wrote && !o.follow {
		a.say(errors.New("nothing to show: no record matches"))
	}
	if v.warned {
		return cli.ExitError{Code: cli.ExitUnclear}
	}
	return nil
}

// newView checks the flags; it reports all that is wrong with them.
func (a *app) newView(dir string, o logOptions, now time.Time) (*view, error) {
	loc := a.location()
	if o.utc {
		loc = time.UTC
	}
	now = now.In(loc)
	v := &view{
		dir:      dir,
		session:  o.session,
		terminal: terminal.IsTerminal(a.stdout),
		json:     o.output == "json",
		follows:  o.follow,
		stderr:   a.stderr,
		out:      bufio.NewWriterSize(a.stdout, 64<<10),
		renderer: renderer{loc: loc, wide: o.output == "wide", colour: o.colour || a.colours(a.stdout) && !o.noColour},
	}
	if v.terminal && !v.renderer.wide {
		v.renderer.limit, _, _ = term.GetSize(int(a.stdout.(*os.File).Fd()))
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
		us         *int64
	}{{"since", o.since, &v.filter.since}, {"until", o.until, &v.filter.until}} {
		if t.text == "" {
			continue
		}
		at, err := terminal.ParseTime(t.text, now)
		if err != nil {
			problem("--%s: %w", t.flag, err)
		}
		*t.us = at.UnixMicro()
	}
	for _, w := range []struct {
		flag  string
		words []string
		known []string
	}{
		{"outcome", o.outcome, outcomes},
		{"kind", o.kind, kinds},
	} {
		for _, word := range w.words {
			if p := newPattern([]string{word}, ""); !slices.ContainsFunc(w.known, p.match) {
				problem("--%s is %q, want %s", w.flag, word, strings.Join(w.known, ", "))
			}
		}
	}
	v.filter.tool = newPattern(o.tool, "")
	v.filter.method = newPattern(o.method, "")
	v.filter.tier = newPattern(o.tier, `"tier":`)
	v.filter.kind = newPattern(o.kind, `"kind":`)
	v.filter.outcome = newPattern(o.outcome, `"outcome":`)
	if slices.ContainsFunc(o.outcome, func(w string) bool { return newPattern([]string{w}, "").match(string(audit.KindOpen)) }) {
		v.filter.outcome.needles = nil // it does not stand there as an outcome
	}
	if o.grep != "" {
		var err error
		if v.filter.grep, err = regexp.Compile(o.grep); err != nil {
			problem("--grep: %w", err)
		}
	}
	return v, errors.Join(errs...)
}

// location is where a's environment says that we are. The program's own TZ is
// the same one, but for tests.
func (a *app) location() *time.Location {
	if name := a.getenv("TZ"); name != "" {
		if loc, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return loc
		}
	}
	return time.Local
}
