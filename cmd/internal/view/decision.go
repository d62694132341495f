package view

import (
	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/audit"
)

// The words that --decision, --risk and --detector accept: the decision of the
// policy, or with its effect; the category of a call, or its level.
var (
	Decisions = []string{audit.DecisionAllow, audit.DecisionDeny, audit.DecisionAsk, wordDenied, wordWouldDeny, wordAsked, wordWouldAsk}
	Risks     = riskWords()
	Detectors = detector.All()
)

// The words for a decision with its effect.
const (
	wordDenied    = "denied"
	wordWouldDeny = "would_deny" // the policy observes: the call was forwarded
	wordAsked     = "asked"
	wordWouldAsk  = "would_ask"
)

func riskWords() (words []string) {
	for c := risk.Read; c <= risk.Financial; c++ {
		words = append(words, c.String())
	}
	for c := risk.Read; c <= risk.Destructive; c++ {
		words = append(words, c.Level())
	}
	return words
}

// effect returns the word for a decision with its effect, "" for a call that
// was allowed or that no policy decided.
func effect(p audit.Policy) string {
	switch {
	case p.Decision == audit.DecisionDeny && p.Applied:
		return wordDenied
	case p.Decision == audit.DecisionDeny:
		return wordWouldDeny
	case p.Decision == audit.DecisionAsk && p.Applied:
		return wordAsked
	case p.Decision == audit.DecisionAsk:
		return wordWouldAsk
	}
	return ""
}

// decisionOf reads the decision about a call. Its members were checked when the
// line was parsed.
func decisionOf(r *audit.Record) audit.Policy {
	p, _ := audit.ParsePolicy(r.Policy)
	return p
}

func riskOf(r *audit.Record) audit.Risk {
	k, _ := audit.ParseRisk(r.Risk)
	return k
}

func detectionsOf(r *audit.Record) []audit.Detection {
	list, _ := audit.ParseDetections(r.Detections)
	return list
}

func decisionStyle(word string) terminal.Style {
	switch word {
	case wordDenied:
		return terminal.Bad
	case wordWouldDeny, wordWouldAsk:
		return terminal.Warn
	case wordAsked:
		return terminal.Notice
	}
	return terminal.Good
}

func approvalStyle(outcome string) terminal.Style {
	if outcome == "approved" {
		return terminal.Good
	}
	return terminal.Bad
}

func riskStyle(level string) terminal.Style {
	switch level {
	case risk.Destructive.Level():
		return terminal.Bad
	case risk.Execute.Level():
		return terminal.Warn
	}
	return terminal.Plain
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

func riskText(k audit.Risk) string {
	if k.Category == "" || k.Level == "" {
		return k.Category + k.Level
	}
	return k.Category + "/" + k.Level
}

func detectionText(d audit.Detection) string {
	if d.At == "" {
		return word(d.Detector)
	}
	return word(d.Detector) + ":" + word(d.At)
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
