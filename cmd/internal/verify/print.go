package verify

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
)

// verdict is the exit code: a problem is certain, even if other sessions could
// not be read.
func verdict(reports []*report) (code int) {
	for _, r := range reports {
		switch {
		case r == nil:
		case len(r.Problems) > 0:
			return cli.ExitFound
		case r.Error != "":
			code = cli.ExitUnclear
		}
	}
	return code
}

func writeReportsJSON(w io.Writer, reports []*report) error {
	for _, r := range reports {
		if err := terminal.PrintJSON(w, r); err != nil {
			return err
		}
	}
	return nil
}

// writeReports writes a line for each session and one for each problem.
func writeReports(w io.Writer, reports []*report, colour bool) error {
	var out []byte
	l := terminal.Line{Colour: colour}
	l.Column(terminal.Bold, "SESSION", 36)
	l.Column(terminal.Bold, "STATE", 5)
	for _, name := range []string{"LINES", "RECORDS", "CALLS", "UNKNOWN"} {
		l.Right(terminal.Bold, name, 8)
	}
	l.Put(terminal.Bold, " RESULT")
	out = append(out, l.End()...)
	var sum report
	wrong, unread := 0, 0
	for _, r := range reports {
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
	text, s := "ok", terminal.Good
	switch {
	case wrong > 0:
		text, s = fmt.Sprintf("%d with problems", wrong), terminal.Bad
	case unread > 0:
		text, s = fmt.Sprintf("%d could not be read", unread), terminal.Warn
	}
	l = terminal.Line{Colour: colour}
	l.Put(terminal.Plain, fmt.Sprintf("%s, %s, %s: ", terminal.Count(len(reports), "session"), terminal.Count(int(sum.Records), "record"), terminal.Count(int(sum.Calls), "call")))
	l.Put(s, text)
	_, err := w.Write(append(out, l.End()...))
	return err
}

func appendReport(out []byte, r *report, colour bool) []byte {
	l := terminal.Line{Colour: colour}
	l.Column(terminal.Plain, r.SessionID, 36)
	l.Column(terminal.Plain, cmp.Or(r.State, "?"), 5)
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
		row(terminal.Warn, "", terminal.Count(int(r.Unrecorded), "call")+" not recorded at the time, see auditproxy log --kind gap")
	}
	for _, name := range r.SetAside {
		row(terminal.Faint, "", "recovery set a torn tail aside: "+escape.Text(name))
	}
	return out
}
