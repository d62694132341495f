package main

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
)

// Words that stand in the outcome's place where there is no outcome yet.
const (
	outcomeOpen    = "open"    // 60 s without an answer
	outcomeRunning = "running" // no answer yet, and the session is alive
	outcomeLost    = "lost"    // no answer, and the session is dead and not recovered
)

// A renderer writes one line for each thing in a log.
type renderer struct {
	loc    *time.Location
	colour bool
	wide   bool // everything, however long
	limit  int  // cells of a line, 0 for none
}

// The columns, in cells.
const (
	outcomeCells  = 7
	toolCells     = 24
	durationCells = 7
	tierCells     = 11
)

func (r *renderer) line(ts time.Time) styledLine {
	l := styledLine{colour: r.colour, limit: r.limit}
	layout := "2006-01-02 15:04:05.000"
	if r.loc == time.UTC {
		layout += "Z"
	}
	stamp := strings.Repeat(" ", len(layout))
	if !ts.IsZero() {
		stamp = ts.In(r.loc).Format(layout)
	}
	l.column(faint, stamp, len(stamp))
	return l
}

// record writes r. outcome is the record's, or one of the words above.
func (r *renderer) record(rec *audit.Record, outcome string) []byte {
	l := r.line(rec.TS)
	switch rec.Kind {
	case audit.KindGap:
		l.column(alarm, "gap", outcomeCells)
		l.put(bad, fmt.Sprintf("%s not recorded, %d refused, until %s", count(int(rec.Count), "call"),
			rec.Denied, rec.To.In(r.loc).Format("15:04:05.000")))
	case audit.KindAnomaly:
		l.column(warn, "anomaly", outcomeCells)
		r.anomaly(&l, rec)
	case audit.KindSessionStart:
		l.column(faint, "start", outcomeCells)
		l.column(bold, path.Base(rec.ServerCommand.Command), toolCells)
		l.put(faint, "session "+rec.SessionID)
	case audit.KindSessionEnd:
		l.column(faint, "end", outcomeCells)
		l.column(plain, "", toolCells)
		l.put(faint, "session "+rec.SessionID)
		if rec.Recovered {
			l.put(warn, " !recovered")
		}
	case audit.KindCall, audit.KindOpen, "":
		r.call(&l, rec, outcome)
	default:
		l.column(notice, string(rec.Kind), outcomeCells)
		l.column(plain, rec.Tool, toolCells)
		l.put(faint, "kind not known to this version: auditproxy show "+rec.RecordID)
	}
	if r.wide {
		r.details(&l, rec)
	}
	return l.end()
}

func (r *renderer) anomaly(l *styledLine, rec *audit.Record) {
	l.put(warn, strings.Join(rec.Anomalies, ","))
	if rec.CallNo != 0 {
		l.put(plain, " call "+strconv.FormatUint(rec.CallNo, 10))
	}
	l.put(plain, " ")
	r.bytes(l, rec)
}

// bytes says which bytes of the stream rec is about.
func (r *renderer) bytes(l *styledLine, rec *audit.Record) {
	l.put(plain, fmt.Sprintf("%s at %d", count(int(rec.Bytes), "byte"), rec.At))
	if d := readShape([]byte(rec.Digest + " ")); d.ok {
		l.putSafe(faint, " "+d.text(r.hex()))
	}
}

func (r *renderer) call(l *styledLine, rec *audit.Record, outcome string) {
	l.column(outcomeStyle(outcome), outcome, outcomeCells)
	what, rest := rec.Tool, rec.Target
	if rec.Method != "tools/call" || what == "" {
		what = rec.Method
	}
	if what == "" {
		what = "unreadable" // no reader here found a method
	}
	l.column(bold, what, toolCells)
	l.right(plain, duration(rec.Duration), durationCells)
	l.column(tierStyle(rec.Tier), rec.Tier, tierCells)
	r.flags(l, rec)
	if rec.ErrorType != "" {
		text := rec.ErrorType
		if rec.ErrorCode != nil {
			text += "(" + strconv.FormatInt(*rec.ErrorCode, 10) + ")"
		}
		l.put(outcomeStyle(outcome), text+" ")
	}
	if rest != "" {
		l.putSafe(plain, word(rest)+" ")
	}
	if rec.Args != "" {
		l.putSafe(plain, r.summarizer().arguments(rec.Args)+" ")
	}
	if rec.Bytes > 0 {
		r.bytes(l, rec)
	}
}

// flags writes what a reviewer must not miss, before what may be cut off.
func (r *renderer) flags(l *styledLine, rec *audit.Record) {
	for _, c := range rec.Candidates {
		name := c.Tool
		if name == "" {
			name = c.Method
		}
		l.put(bad, "!or:"+name+" ")
		if c.Args != "" {
			l.putSafe(bad, "with "+r.summarizer().arguments(c.Args)+" ")
		}
	}
	for _, a := range rec.Anomalies {
		l.put(warn, "!"+a+" ")
	}
	for _, f := range []struct {
		set  bool
		word string
	}{
		{rec.Recovered, "!recovered "},
		{rec.NotDurable, "!not_durable "},
		{rec.CancelRequested, "cancelled "},
	} {
		if f.set {
			l.put(warn, f.word)
		}
	}
	if rec.ResultType != "" {
		l.put(notice, rec.ResultType+" ")
	}
}

// details writes what a line of the wide form says beside the short one's.
func (r *renderer) details(l *styledLine, rec *audit.Record) {
	l.putSafe(faint, " ·")
	for _, d := range []struct{ name, value string }{
		{"record", rec.RecordID},
		{"session", rec.SessionID},
		{"call", number(int64(rec.CallNo))},
		{"request", rec.RequestID},
		{"agent", rec.ClientID},
		{"client", peerText(rec.Client)},
		{"server", peerText(rec.Server)},
		{"sent", number(rec.ArgsBytes)},
		{"got", number(rec.ResultBytes)},
		{"trace", rec.TraceID},
		{"user", rec.User},
		{"host", rec.Host},
		{"tenant", rec.Tenant},
	} {
		if d.value != "" {
			l.putSafe(faint, " "+d.name+"="+word(d.value))
		}
	}
	if rec.Labels != "" {
		l.putSafe(faint, " "+r.summarizer().arguments(rec.Labels))
	}
}

func (r *renderer) summarizer() summarizer {
	if r.wide {
		return summarizer{depth: 8}
	}
	return summarizer{depth: 2, hex: 8}
}

func (r *renderer) hex() int { return r.summarizer().hex }

// damage writes what stands where a line should.
func (r *renderer) damage(ts time.Time, session, text string) []byte {
	l := r.line(ts)
	l.column(alarm, "damaged", outcomeCells)
	l.put(bad, text+" ")
	l.put(faint, "session "+session)
	return l.end()
}

// damageText says what is wrong, where, and how much of it there is.
func damageText(d spool.Item) string {
	if d.Damage == spool.Missing {
		return fmt.Sprintf("%v: %d from %08d.jsonl", d.Damage, d.Length, d.Pos.Segment)
	}
	return fmt.Sprintf("%v: %s at %s", d.Damage, count(int(d.Length), "byte"), place(d.Pos))
}

// place names a byte of a session's files.
func place(p spool.Position) string { return fmt.Sprintf("%08d.jsonl:%d", p.Segment, p.Offset) }

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func peerText(p audit.Peer) string {
	if p.Version == "" {
		return p.Name
	}
	return p.Name + "/" + p.Version
}

// duration writes d with three digits; "" if it is not known.
func duration(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case d < 0:
		return ""
	case ms < 9.995:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 99.95:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0fms", ms)
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
}

func outcomeStyle(outcome string) style {
	switch outcome {
	case string(audit.OutcomeOK):
		return good
	case string(audit.OutcomeError):
		return bad
	case string(audit.OutcomeUnknown), outcomeLost:
		return alarm
	case outcomeRunning, outcomeOpen:
		return notice
	}
	return plain
}

// tierStyle knows the tiers of libtmux-mcp, old and new; others are plain.
func tierStyle(tier string) style {
	switch tier {
	case "destructive", "teardown", "execute":
		return bad
	case "mutating", "manage":
		return warn
	}
	return faint
}

// recordOutcome is what stands in the outcome's place of a record.
func recordOutcome(r *audit.Record) string {
	if r.Kind == audit.KindOpen {
		return outcomeOpen
	}
	return string(r.Outcome)
}

// appendRaw appends a line as it stands in the spool, but for what would do
// something to a terminal.
func appendRaw(dst, line []byte, terminal bool) []byte {
	if terminal {
		dst = escape.AppendJSON(dst, line)
	} else {
		dst = append(dst, line...)
	}
	return append(dst, '\n')
}
