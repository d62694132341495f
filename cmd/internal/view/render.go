package view

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
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

func (r *renderer) line(ts time.Time) terminal.Line {
	l := terminal.Line{Colour: r.colour, Limit: r.limit}
	layout := "2006-01-02 15:04:05.000"
	if r.loc == time.UTC {
		layout += "Z"
	}
	stamp := strings.Repeat(" ", len(layout))
	if !ts.IsZero() {
		stamp = ts.In(r.loc).Format(layout)
	}
	l.Column(terminal.Faint, stamp, len(stamp))
	return l
}

// record writes r. outcome is the record's, or one of the words above.
func (r *renderer) record(rec *audit.Record, outcome string) []byte {
	l := r.line(rec.TS)
	switch rec.Kind {
	case audit.KindGap:
		l.Column(terminal.Alarm, "gap", outcomeCells)
		l.Put(terminal.Bad, fmt.Sprintf("%s not recorded, %d refused, until %s", terminal.Count(int(rec.Count), "call"),
			rec.Denied, rec.To.In(r.loc).Format("15:04:05.000")))
	case audit.KindAnomaly:
		l.Column(terminal.Warn, "anomaly", outcomeCells)
		r.anomaly(&l, rec)
	case audit.KindSessionStart:
		l.Column(terminal.Faint, "start", outcomeCells)
		l.Column(terminal.Bold, path.Base(rec.ServerCommand.Command), toolCells)
		l.Put(terminal.Faint, "session "+rec.SessionID)
	case audit.KindSessionEnd:
		l.Column(terminal.Faint, "end", outcomeCells)
		l.Column(terminal.Plain, "", toolCells)
		l.Put(terminal.Faint, "session "+rec.SessionID)
		if rec.Recovered {
			l.Put(terminal.Warn, " !recovered")
		}
	case audit.KindCheckpoint:
		l.Column(terminal.Faint, "checkpoint", outcomeCells)
		l.Put(terminal.Faint, fmt.Sprintf("of %s", terminal.Count(int(rec.Seq), "record")))
		if rec.Recovered {
			l.Put(terminal.Warn, " !recovered")
		}
	case audit.KindPolicy:
		r.policyChange(&l, rec)
	case audit.KindCall, audit.KindOpen, "":
		r.call(&l, rec, outcome)
	default:
		l.Column(terminal.Notice, string(rec.Kind), outcomeCells)
		l.ColumnSafe(terminal.Plain, escape.Name(rec.Tool), toolCells)
		l.Put(terminal.Faint, "kind not known to this version: auditproxy show "+rec.RecordID)
	}
	if r.wide {
		r.details(&l, rec)
	}
	return l.End()
}

func (r *renderer) anomaly(l *terminal.Line, rec *audit.Record) {
	l.Put(terminal.Warn, strings.Join(rec.Anomalies, ","))
	if rec.CallNo != 0 {
		l.Put(terminal.Plain, " call "+strconv.FormatUint(rec.CallNo, 10))
	}
	l.Put(terminal.Plain, " ")
	r.bytes(l, rec)
}

// bytes describes the bytes of the stream that rec is about.
func (r *renderer) bytes(l *terminal.Line, rec *audit.Record) {
	l.Put(terminal.Plain, fmt.Sprintf("%s at %d", terminal.Count(int(rec.Bytes), "byte"), rec.At))
	if d := readShape([]byte(rec.Digest + " ")); d.ok {
		l.PutSafe(terminal.Faint, " "+d.text(r.hex()))
	}
}

func (r *renderer) call(l *terminal.Line, rec *audit.Record, outcome string) {
	l.Column(outcomeStyle(outcome), outcome, outcomeCells)
	what, rest := rec.Tool, rec.Target
	if rec.Method != "tools/call" || what == "" {
		what = rec.Method
	}
	if what == "" {
		what = "unreadable" // no reader here found a method
	}
	l.ColumnSafe(terminal.Bold, escape.Name(what), toolCells)
	l.Right(terminal.Plain, duration(rec.Duration), durationCells)
	l.Column(tierStyle(rec.Tier), rec.Tier, tierCells)
	r.decision(l, rec)
	r.flags(l, rec)
	if rec.ErrorType != "" {
		text := rec.ErrorType
		if rec.ErrorCode != nil {
			text += "(" + strconv.FormatInt(*rec.ErrorCode, 10) + ")"
		}
		l.Put(outcomeStyle(outcome), text+" ")
	}
	if rest != "" {
		l.PutSafe(terminal.Plain, word(rest)+" ")
	}
	if rec.Args != "" {
		l.PutSafe(terminal.Plain, r.summarizer().arguments(rec.Args)+" ")
	}
	if rec.Bytes > 0 {
		r.bytes(l, rec)
	}
}

// flags writes what a reviewer must not miss, before the columns that may be
// cut off.
func (r *renderer) flags(l *terminal.Line, rec *audit.Record) {
	for _, c := range rec.Candidates {
		name := c.Tool
		if name == "" {
			name = c.Method
		}
		name = escape.Name(name)
		if c.Target != "" {
			name += " " + escape.Text(c.Target)
		}
		l.PutSafe(terminal.Bad, "!or:"+name+" ")
		if c.Args != "" {
			l.PutSafe(terminal.Bad, "with "+r.summarizer().arguments(c.Args)+" ")
		}
	}
	for _, a := range rec.Anomalies {
		l.Put(terminal.Warn, "!"+a+" ")
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
			l.Put(terminal.Warn, f.word)
		}
	}
	if rec.ResultType != "" {
		l.Put(terminal.Notice, rec.ResultType+" ")
	}
}

// details writes what the wide form adds to the short one.
func (r *renderer) details(l *terminal.Line, rec *audit.Record) {
	decision := decisionOf(rec)
	answer, _ := audit.ParseApproval(rec.Approval)
	l.PutSafe(terminal.Faint, " ·")
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
		{"risk", riskText(riskOf(rec))},
		{"decision", decision.Decision},
		{"rule", decision.Rule},
		{"reason", decision.Reason},
		{"scope", answer.Scope},
		{"by", answer.By},
		{"by_user", answer.User},
		{"channel", answer.Channel},
		{"policy", decision.Hash},
	} {
		if d.value != "" {
			l.PutSafe(terminal.Faint, " "+d.name+"="+word(d.value))
		}
	}
	if rec.Labels != "" {
		l.PutSafe(terminal.Faint, " "+r.summarizer().arguments(rec.Labels))
	}
}

func (r *renderer) summarizer() summarizer {
	if r.wide {
		return summarizer{depth: 8}
	}
	return summarizer{depth: 2, hex: 8}
}

func (r *renderer) hex() int { return r.summarizer().hex }

// damage writes a replacement for a line that is missing or unreadable.
func (r *renderer) damage(ts time.Time, session, text string) []byte {
	l := r.line(ts)
	l.Column(terminal.Alarm, "damaged", outcomeCells)
	l.Put(terminal.Bad, text+" ")
	l.Put(terminal.Faint, "session "+session)
	return l.End()
}

// damageText describes the damage: its kind, place and size.
func damageText(d spool.Item) string {
	if d.Damage == spool.Missing {
		return fmt.Sprintf("%v: %d from %08d.jsonl", d.Damage, d.Length, d.Pos.Segment)
	}
	return fmt.Sprintf("%v: %s at %s", d.Damage, terminal.Count(int(d.Length), "byte"), d.Pos.Place())
}

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

// recordOutcome is the word in the outcome's place of a record.
func recordOutcome(r *audit.Record) string {
	if r.Kind == audit.KindOpen {
		return outcomeOpen
	}
	return string(r.Outcome)
}

// appendRaw appends a line as written in the spool, escaping what would steer a
// terminal.
func appendRaw(dst, line []byte, terminal bool) []byte {
	if terminal {
		dst = escape.AppendJSON(dst, line)
	} else {
		dst = append(dst, line...)
	}
	return append(dst, '\n')
}

// decision writes the decision about a call and what was found in it.
func (r *renderer) decision(l *terminal.Line, rec *audit.Record) {
	p := decisionOf(rec)
	if w := effect(p); w != "" {
		text := "!" + w
		if p.Rule != "" {
			text += ":" + word(p.Rule)
		}
		l.PutSafe(decisionStyle(w), text+" ")
	}
	if a, _ := audit.ParseApproval(rec.Approval); a.Outcome != "" {
		l.PutSafe(approvalStyle(a.Outcome), "approval:"+word(a.Outcome)+" ")
	}
	k := riskOf(rec)
	if k.Level == risk.Destructive.Level() {
		l.PutSafe(riskStyle(k.Level), "risk:"+word(k.Category)+" ")
	}
	if k.Conflict {
		l.Put(terminal.Warn, "!risk_conflict ")
	}
	for _, d := range detectionsOf(rec) {
		l.PutSafe(terminal.Warn, "!"+detectionText(d)+" ")
	}
}

// policyChange writes a record about the policy itself.
func (r *renderer) policyChange(l *terminal.Line, rec *audit.Record) {
	p := decisionOf(rec)
	style := terminal.Warn
	switch p.Event {
	case "loaded":
		style = terminal.Notice
	case "reload_failed":
		style = terminal.Alarm
	}
	l.Column(style, "policy", outcomeCells)
	l.Column(terminal.Bold, p.Event, toolCells)
	for _, text := range []string{p.Mode, p.Source} {
		if text != "" {
			l.PutSafe(terminal.Plain, word(text)+" ")
		}
	}
	if p.Detail != "" {
		l.PutSafe(style, quoted(p.Detail)+" ")
	}
	if p.Hash != "" {
		l.Put(terminal.Faint, "#"+cutHash(p.Hash, r.hex()))
	}
}

// cutHash returns the first n characters of a hash, 0 for all.
func cutHash(hash string, n int) string {
	if n == 0 || len(hash) <= n {
		return hash
	}
	return hash[:n]
}
