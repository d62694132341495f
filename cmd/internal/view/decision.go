package view

import (
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
