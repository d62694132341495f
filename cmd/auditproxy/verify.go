package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/cmd/internal/view"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
)

const verifyLong = `Check that nothing is damaged and nothing is missing: the checksum of every line,
that seq and call_no have no holes, and that every call of a session that is
over has an intent and exactly one record. Where retention has removed the first
files of a session, its numbers count from what is there.

The exit code is 0 if all is well, 1 if there is a bad checksum, a hole or a
dead session that has not been recovered, and 2 if that cannot be told. A
session that is alive and calls with the outcome "unknown" are in order.

A checksum finds accidents, not tampering: who can write the files can write
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
	var total int64
	for _, e := range entries {
		total += e.Bytes
	}
	p := terminal.StartReading(a.stderr, total)
	reports := verifySessions(ctx, cfg.spoolDir, entries, p)
	p.Finish()
	if ctx.Err() != nil {
		return cli.ExitError{Code: cli.ExitUnclear, Err: errors.New("verifying: interrupted")}
	}
	if asJSON {
		err = writeReportsJSON(a.stdout, reports)
	} else {
		err = a.writeReports(reports)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return verdict(reports)
}

// verdict is the exit code: what was found is certain, whatever else could not
// be read.
func verdict(reports []sessionReport) error {
	code := 0
	for _, r := range reports {
		switch {
		case len(r.Problems) > 0:
			return cli.ExitError{Code: cli.ExitFound}
		case r.Error != "":
			code = cli.ExitUnclear
		}
	}
	if code != 0 {
		return cli.ExitError{Code: code}
	}
	return nil
}

// verifySessions reads sessions on as many processors as there are.
func verifySessions(ctx context.Context, dir string, entries []spool.Entry, p *terminal.Progress) []sessionReport {
	reports := make([]sessionReport, len(entries))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				c := newSessionCheck(entries[i])
				c.run(dir, p, func() bool { return ctx.Err() != nil }, func() (spool.State, error) { return stateOf(dir, entries[i].ID) })
				reports[i] = c.report
			}
		})
	}
	for i := range entries {
		next <- i
	}
	close(next)
	wait.Wait()
	return reports
}

// stateOf looks again what became of a session.
func stateOf(dir, id string) (spool.State, error) {
	e, there := spool.Look(dir, id)
	if !there {
		return 0, errors.New("session was removed while it was being read")
	}
	return e.State, e.Err
}

func writeReportsJSON(w io.Writer, reports []sessionReport) error {
	for i := range reports {
		if err := terminal.PrintJSON(w, &reports[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeReports writes a line for each session and one for each problem.
func (a *app) writeReports(reports []sessionReport) error {
	colour := a.colours(a.stdout)
	var out []byte
	l := terminal.Line{Colour: colour}
	l.Column(terminal.Bold, "SESSION", 36)
	l.Column(terminal.Bold, "STATE", 5)
	for _, name := range []string{"LINES", "RECORDS", "CALLS", "UNKNOWN"} {
		l.Right(terminal.Bold, name, 8)
	}
	l.Put(terminal.Bold, " RESULT")
	out = append(out, l.End()...)
	var sum sessionReport
	wrong, unread := 0, 0
	for i := range reports {
		r := &reports[i]
		out = appendReport(out, r, colour)
		sum.Records += r.Records
		sum.Calls += r.Calls
		switch {
		case len(r.Problems) > 0:
			wrong++
		case r.Error != "":
			unread++
		}
	}
	text, s := "all in order", terminal.Good
	switch {
	case wrong > 0:
		text, s = fmt.Sprintf("%d with problems", wrong), terminal.Bad
	case unread > 0:
		text, s = fmt.Sprintf("%d could not be read", unread), terminal.Warn
	}
	l = terminal.Line{Colour: colour}
	l.Put(terminal.Plain, fmt.Sprintf("%s, %s, %s: ", terminal.Count(len(reports), "session"), terminal.Count(int(sum.Records), "record"), terminal.Count(int(sum.Calls), "call")))
	l.Put(s, text)
	_, err := a.stdout.Write(append(out, l.End()...))
	return err
}

func appendReport(out []byte, r *sessionReport, colour bool) []byte {
	l := terminal.Line{Colour: colour}
	l.Column(terminal.Plain, r.SessionID, 36)
	l.Column(terminal.Plain, r.State, 5)
	for _, n := range []int64{r.Lines, r.Records, r.Calls, r.Unknown} {
		l.Right(terminal.Plain, strconv.FormatInt(n, 10), 8)
	}
	switch {
	case len(r.Problems) > 0:
		l.Put(terminal.Bad, " "+terminal.Count(len(r.Problems)+r.NotShown, "problem"))
	case r.Error != "":
		l.Put(terminal.Warn, " not read")
	default:
		l.Put(terminal.Good, " ok")
	}
	out = append(out, l.End()...)
	row := func(s terminal.Style, where, text string) {
		l := terminal.Line{Colour: colour}
		l.PutSafe(terminal.Plain, "  ")
		if where != "" {
			l.Column(terminal.Faint, where, 24)
		}
		l.Put(s, text)
		out = append(out, l.End()...)
	}
	for _, p := range r.Problems {
		row(terminal.Bad, spool.Position{Segment: p.Segment, Offset: p.Offset}.Place(), p.Text)
	}
	if r.NotShown > 0 {
		row(terminal.Bad, "", fmt.Sprintf("and %d more", r.NotShown))
	}
	if r.Error != "" {
		row(terminal.Warn, "", r.Error)
	}
	if r.FirstSegment > 1 {
		row(terminal.Faint, "", fmt.Sprintf("checked from %08d.jsonl on: retention has removed what was before it", r.FirstSegment))
	}
	if r.Running > 0 && r.State == spool.Live.String() {
		row(terminal.Faint, "", terminal.Count(r.Running, "call")+" running")
	}
	if r.Unrecorded > 0 {
		row(terminal.Warn, "", terminal.Count(int(r.Unrecorded), "call")+" could not be recorded when they were made, see auditproxy log --kind gap")
	}
	for _, name := range r.SetAside {
		row(terminal.Faint, "", "recovery set a torn tail aside: "+escape.Text(name))
	}
	return out
}
