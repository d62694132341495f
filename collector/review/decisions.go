package review

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"auditproxy/collector/store"
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

// A decisionRow is a line of a table with its links. A link is "" if it would be
// too long or select nothing.
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

func (s *Server) decisions(r *http.Request) (page, error) {
	q := r.URL.Query()
	if err := cmp.Or(known(q, slices.Concat(timeNames, decisionNames)...), bounded(q, decisionNames),
		oneOf(q, "decision", store.AnyDecision, store.Denied, store.WouldDeny, store.Asked, store.WouldAsk)); err != nil {
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
	// Read only the time that has decisions.
	lines, err := s.data.Calls(r.Context(), store.Filter{
		Window: store.Window{From: d.First, To: d.Last.Add(time.Microsecond)}, Decision: calls.Get("decision"),
		Rule: f.Rule, Operation: f.Tool, Host: f.Host, User: f.User, Risk: f.Category,
	}, store.Page{Limit: lastDecisions})
	body.Lines = lines.Lines
	return page{Template: "decisions", Title: "Decisions", Section: "decisions", Body: body}, err
}
