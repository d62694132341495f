package review

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
)

// lastDecisions is how many calls the page of decisions lists; the page of calls
// has the rest.
const lastDecisions = 20

type decisionsPage struct {
	When      when
	Filter    store.DecisionFilter
	Chosen    []chip
	Decisions store.Decisions
	Groups    []decisionGroup
	Lines     []store.Line
	All       string // link to the calls

	// Links for the risks, before the name.
	risks url.Values
}

// A decisionGroup is one of the page's tables.
type decisionGroup struct {
	ID, Title, Column string
	Rows              []decisionRow
}

// A decisionRow is a line of a table with its links, "" where one would be too
// long or has nothing to choose by.
type decisionRow struct {
	store.DecisionUse
	Only  string // this page, of this row only
	Calls string // the calls
}

// Risk returns the link to the calls with a category or a detection.
func (p decisionsPage) Risk(name, value string) string {
	if len(value) > maxLinked {
		return ""
	}
	return with("/calls", p.risks, name, value)
}

// decisionNames are the parameters that select decisions.
var decisionNames = []string{"decision", "rule", "tool", "host", "user", "risk"}

type decisionReader interface {
	Decisions(ctx context.Context, f store.DecisionFilter) (store.Decisions, error)
	SessionDecisions(ctx context.Context, se store.Session) (store.DecisionCount, error)
}

func (s *Server) decisions(r *http.Request) (page, error) {
	q := r.URL.Query()
	if err := bounded(q, decisionNames); err != nil {
		return page{}, err
	}
	w, err := s.when(q, "7d")
	if err != nil {
		return page{}, err
	}
	f := store.DecisionFilter{Window: w.Window, Decision: q.Get("decision"), Rule: q.Get("rule"), Tool: q.Get("tool"), Host: q.Get("host"), User: q.Get("user"), Category: q.Get("risk")}
	d, err := s.data.Decisions(r.Context(), f)
	if err != nil {
		return page{}, err
	}
	body := decisionsPage{When: w, Filter: f, Chosen: chips("/decisions", q, decisionNames), Decisions: d, risks: w.values()}
	if f.Host != "" {
		body.risks.Set("host", f.Host)
	}
	here, calls := given(q, decisionNames), w.values()
	for name, v := range map[string]string{"decision": f.Decision, "rule": f.Rule, "op": f.Tool, "host": f.Host, "user": f.User, "risk": f.Category} {
		if v != "" {
			calls.Set(name, v)
		}
	}
	if f.Decision == "" {
		calls.Set("decision", store.AnyDecision)
	}
	body.All = with("/calls", calls)
	for _, g := range []struct {
		decisionGroup
		uses      []store.DecisionUse
		name, own string // of the parameter of the page of calls, and of this page
	}{
		{decisionGroup{ID: "rules", Title: "By rule", Column: "Rule"}, d.Rules, "rule", "rule"},
		{decisionGroup{ID: "tools", Title: "By tool", Column: "Tool"}, d.Tools, "op", "tool"},
		{decisionGroup{ID: "users", Title: "By user", Column: "User"}, d.Users, "user", "user"},
	} {
		for _, use := range g.uses {
			row := decisionRow{DecisionUse: use}
			if use.Name != "" && len(use.Name)+len(use.Host) <= maxLinked {
				row.Only, row.Calls = with("/decisions", here, g.own, use.Name), with("/calls", calls, g.name, use.Name)
				if g.own == "user" {
					row.Only, row.Calls = with("/decisions", here, "user", use.Name, "host", use.Host), with("/calls", calls, "user", use.Name, "host", use.Host)
				}
			}
			g.Rows = append(g.Rows, row)
		}
		body.Groups = append(body.Groups, g.decisionGroup)
	}
	if d.Total.Calls() == 0 {
		return page{Template: "decisions", Title: "Decisions", Section: "decisions", Body: body}, nil
	}
	// Only the time in which there are decisions is read.
	lines, err := s.data.Calls(r.Context(), store.Filter{
		Window: store.Window{From: d.First, To: d.Last.Add(time.Microsecond)}, Decision: calls.Get("decision"),
		Rule: f.Rule, Operation: f.Tool, Host: f.Host, User: f.User, Risk: f.Category,
	}, store.Page{Limit: lastDecisions})
	body.Lines = lines.Lines
	return page{Template: "decisions", Title: "Decisions", Section: "decisions", Body: body}, err
}

// effectMark shows a decision with its effect.
func effectMark(effect string) mark {
	switch effect {
	case store.Denied:
		return mark{"⊘", "denied", "bad"}
	case store.WouldDeny:
		return mark{"⊘", "would be denied", "warn"}
	case store.Asked:
		return mark{"◇", "asked", "warn"}
	case store.WouldAsk:
		return mark{"◇", "would be asked", "faint"}
	}
	return mark{"·", clip(24, effect), "faint"}
}

// dangerous reports whether a category of risk ranks highest.
func dangerous(category string) bool { return category == "destructive" || category == "financial" }

// A verdict is the decision about a call, in words.
type verdict struct {
	Mark       mark
	Rule       string
	Reason     string
	Limit      string // of a limit: the counter with its numbers
	Observed   bool   // the decision was not applied
	Approval   string // how the question was answered
	By         string
	Detections []audit.Detection
}

// newVerdict returns the decision about a call, nil where nothing was decided
// against it and nothing was found in it. Its parts were checked when the record
// was parsed.
func newVerdict(r audit.Record) *verdict {
	if r.Kind == audit.KindPolicy {
		return nil
	}
	p, _ := audit.ParsePolicy(r.Policy)
	a, _ := audit.ParseApproval(r.Approval)
	v := verdict{Rule: p.Rule, Reason: p.Reason, Observed: !p.Applied, Approval: a.Outcome, By: a.By}
	v.Detections, _ = audit.ParseDetections(r.Detections)
	if effect := (store.Line{Decision: p.Decision, Applied: p.Applied}).Effect(); effect != "" {
		v.Mark = effectMark(effect)
	}
	if p.Counter != "" {
		v.Limit = p.Counter + ": " + count(p.Count) + " of " + count(p.Max)
		if p.Window != "" {
			v.Limit += " in this " + p.Window
		}
	}
	if v.Mark.Word == "" && v.Approval == "" && len(v.Detections) == 0 {
		return nil
	}
	return &v
}

// policyEvents are what happened to a policy, in words.
var policyEvents = map[string]string{
	"loaded":         "policy came into force",
	"none":           "no policy is in force",
	"reload_failed":  "changed policy does not load; the old one stays in force",
	"always_added":   "tool is always allowed from now on",
	"always_removed": "tool is no longer always allowed",
}

// narratePolicy describes a record about a policy.
func narratePolicy(event string) sentence {
	if words, ok := policyEvents[event]; ok {
		return say(words)
	}
	return say("policy: ", strings.TrimSpace(event))
}
