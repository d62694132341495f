package view

import (
	"bytes"
	"strings"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/schemas/jsontext"
	"auditproxy/sink/spool"
)

// A recordPage is one record, for a person to read.
type recordPage struct {
	colour bool
	loc    *time.Location
	utc    bool

	out []byte
}

// show returns the text for the lines of one call.
func (p *recordPage) show(id string, lines []placedLine) []byte {
	main := best(id, lines)
	kind, rec, err := audit.ParseLine(main.line)
	p.members(main.line)
	if ops := audit.Operations(&rec); err == nil && len(ops) > 1 {
		p.heading("what it did")
		for _, op := range ops {
			p.operation(op)
		}
	}
	p.heading("location")
	p.row("session", terminal.Plain, main.session)
	for _, l := range lines {
		s := terminal.Plain
		if l.conflict {
			s = terminal.Alarm
		}
		p.row(role(l), s, l.pos.Place())
	}
	if kind == audit.LineIntent {
		p.row("", terminal.Warn, "there is no final record: the call is running, or its session died and has not been recovered")
	}
	return p.out
}

// pageCells is the width of the names.
const pageCells = 18

func (p *recordPage) line() terminal.Line { return terminal.Line{Colour: p.colour} }

func (p *recordPage) heading(text string) {
	l := p.line()
	l.Put(terminal.Bold, text)
	p.out = append(append(p.out, '\n'), l.End()...)
}

func (p *recordPage) row(name string, s terminal.Style, value string) {
	p.rowSafe(name, s, escape.Text(value))
}

func (p *recordPage) rowSafe(name string, s terminal.Style, value string) {
	l := p.line()
	l.Column(terminal.Faint, name, pageCells)
	l.PutSafe(s, value)
	p.out = append(p.out, l.End()...)
}

func (p *recordPage) operation(op audit.Operation) {
	l := p.line()
	where := op.Path
	if where == "" {
		where = "the call"
	}
	if op.Candidate {
		where = strings.TrimSpace(op.Path + " for another server")
	}
	what := op.Tool
	if what == "" {
		what = op.Method
	}
	l.Column(terminal.Faint, where, pageCells)
	l.PutSafe(terminal.Bold, escape.Name(what)+" ")
	if (op.Path != "" || op.Candidate) && op.Args != "" {
		l.PutSafe(terminal.Plain, summarizer{depth: 1, hex: 8}.arguments(op.Args))
	}
	p.out = append(p.out, l.End()...)
}

// members writes every member of a line in its order, including those that this
// program does not know.
func (p *recordPage) members(line []byte) {
	err := jsontext.Members(line, func(name, v []byte) bool {
		n := jsontext.Unquote(name)
		switch {
		case p.decisionRows(n, v):
		case n == "ts" || n == "from" || n == "to":
			p.rowSafe(n, terminal.Plain, p.time(jsontext.Unquote(v)))
		case n == "outcome":
			p.row(n, outcomeStyle(jsontext.Unquote(v)), jsontext.Unquote(v))
		case n == "tier":
			p.row(n, tierStyle(jsontext.Unquote(v)), jsontext.Unquote(v))
		case n == "anomalies" || n == "candidates" || n == "durable":
			p.rowSafe(n, terminal.Warn, summarizer{depth: 3}.one(v))
		case n == "args" || n == "proxy":
			p.rowSafe(n, terminal.Plain, "")
			p.tree(v, 1)
		case n == "duration_ms":
			p.row(n, terminal.Plain, string(v)+" ms")
		case n == "tool" && v[0] == '"':
			p.rowSafe(n, terminal.Plain, escape.Name(jsontext.Unquote(v)))
		case v[0] == '"':
			p.row(n, terminal.Plain, jsontext.Unquote(v))
		default:
			p.rowSafe(n, terminal.Plain, summarizer{depth: 8}.one(v))
		}
		return true
	})
	if err != nil {
		p.row("", terminal.Alarm, "the line is not JSON: "+err.Error())
	}
}

func (p *recordPage) time(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || p.utc {
		return escape.Text(text)
	}
	return escape.Text(text) + "  (" + t.In(p.loc).Format("2006-01-02 15:04:05.000 MST") + ")"
}

// tree writes the members of an object or the elements of a list, each on a
// line of its own.
func (p *recordPage) tree(v []byte, level int) {
	one := func(name string, v []byte) {
		l := p.line()
		l.PutSafe(terminal.Plain, strings.Repeat("  ", level))
		l.PutSafe(terminal.Faint, name+" ")
		nested := (v[0] == '{' || v[0] == '[') && !readShape(v).ok && !empty(v)
		switch {
		case nested:
		case readShape(v).ok:
			l.PutSafe(terminal.Notice, summarizer{}.one(v))
		case v[0] == '"':
			l.PutSafe(terminal.Plain, quoted(jsontext.Unquote(v)))
		default:
			l.PutSafe(terminal.Plain, summarizer{}.one(v))
		}
		p.out = append(p.out, l.End()...)
		if nested {
			p.tree(v, level+1)
		}
	}
	if v[0] == '[' {
		_ = jsontext.Elements(v, func(v []byte) bool { one("-", v); return true })
		return
	}
	_ = jsontext.Members(v, func(name, v []byte) bool { one(word(jsontext.Unquote(name))+":", v); return true })
}

// A placedLine is a line and its position.
type placedLine struct {
	session  string
	pos      spool.Position
	line     []byte
	conflict bool
}

// best returns the line to show: the record rather than its intent.
func best(id string, lines []placedLine) (b placedLine) {
	for _, l := range lines {
		if string(spool.RecordID(l.line)) == id && (b.line == nil || !bytes.HasPrefix(l.line, []byte(`{"line":`))) {
			b = l
		}
	}
	return b
}

// role names the kind of a line.
func role(l placedLine) string {
	kind, rec, err := audit.ParseLine(l.line)
	switch {
	case err != nil:
		return "not a record: " + err.Error()
	case kind != audit.LineRecord:
		return kind
	case l.conflict:
		return string(rec.Kind) + ", contradicts an earlier line"
	case rec.Kind == audit.KindCall:
		return "final record"
	case rec.Kind == audit.KindAnomaly:
		return strings.ReplaceAll(strings.Join(rec.Anomalies, ", "), "_", " ")
	}
	return string(rec.Kind)
}

// decisionRows writes the members about risk and decision of one record, and
// reports whether name is one. v is its value as in the line.
func (p *recordPage) decisionRows(name string, v []byte) bool {
	switch name {
	case "risk":
		k, _ := audit.ParseRisk(audit.JSON(v))
		p.row(name, riskStyle(k.Level), riskText(k))
	case "detections":
		list, _ := audit.ParseDetections(audit.JSON(v))
		for _, d := range list {
			p.rowSafe(name, terminal.Warn, detectionText(d))
			name = ""
		}
		return true
	case "policy":
		d, _ := audit.ParsePolicy(audit.JSON(v))
		w := effect(d)
		switch {
		case d.Event != "":
			p.row(name, terminal.Bold, d.Event)
		case w == "":
			p.row(name, decisionStyle(w), d.Decision)
		default:
			p.row(name, decisionStyle(w), w)
		}
	case "approval":
		a, _ := audit.ParseApproval(audit.JSON(v))
		p.row(name, approvalStyle(a.Outcome), a.Outcome)
	default:
		return false
	}
	p.tree(v, 1)
	return true
}
