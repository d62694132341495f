// Package replay decides by a policy about recorded calls: to compare the
// decisions with what was done, and to propose a policy.
//
// A Replay takes calls in the order of their times and makes a Report. A Walk
// reads them from a spool, and a Proposal makes a policy of them.
//
// The files, from the top: command, inventory, propose, records, walk, replay,
// report.
package replay

import (
	"cmp"
	"slices"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
)

// Bounds of what is kept, since agents choose the names of tools.
const (
	maxRows       = 4096  // of a report; what does not fit is in one row for each decision
	maxCategories = 4096  // of tools, for each session
	maxHistories  = 16384 // of users, before idle ones are dropped
)

// A Config is what calls are decided by.
type Config struct {
	Policy *policy.Policy
	Risk   *risk.Assessor // with what the policy configures
}

// A Replay decides about calls. One goroutine uses it.
type Replay struct {
	cfg       Config
	overrides map[string]string
	rows      map[rowKey]*Row
	users     map[userKey]*policy.History
	known     time.Time // calls of all users are known since; zero: all are
	report    Report
	calls     []policy.Recorded
	decisions []policy.Replayed
}

// userKey is who shares counters.
type userKey struct{ tenant, host, user, command, args string }

// New returns a Replay.
func New(c Config) *Replay {
	r := &Replay{cfg: c, overrides: map[string]string{}, rows: map[rowKey]*Row{}, users: map[userKey]*policy.History{}}
	for _, o := range c.Policy.Risk {
		r.overrides[o.Tool] = o.Category
	}
	return r
}

// A Session is what a Replay keeps of one.
type Session struct {
	counters   policy.History
	categories map[string]string // of tools that were called directly
}

// Forget marks the calls of a session before a time as not known. They may have
// been of its user, too.
func (r *Replay) Forget(s *Session, before time.Time) {
	if before.After(s.counters.From) {
		s.counters.From = before
	}
	if before.After(r.known) {
		r.known = before
		for _, h := range r.users {
			h.From = before
		}
	}
}

// A Call is one that was decided. It is complete when its end is known.
type Call struct {
	decision policy.Replayed
	tool     string // of the operation that decides
	id       string
	counted  bool
}

// Call decides about a call at its time. counted calls are in the report; the
// others only count for limits.
func (r *Replay) Call(s *Session, rec *audit.Record, counted bool) *Call {
	c := &Call{id: rec.RecordID, counted: counted}
	r.operations(s, rec)
	counters := policy.Histories{Session: &s.counters, User: r.user(rec)}
	r.decisions = slices.Grow(r.decisions[:0], len(r.calls))[:len(r.calls)]
	i := r.cfg.Policy.Replay(r.calls, rec.TS, counters, r.decisions)
	c.decision, c.tool = r.decisions[i], r.calls[i].Tool
	r.special(c, rec)
	if counted {
		r.report.Calls++
		if r.report.From.IsZero() || rec.TS.Before(r.report.From) {
			r.report.From = rec.TS
		}
		if rec.TS.After(r.report.To) {
			r.report.To = rec.TS
		}
	}
	return c
}

// user returns the counters that all sessions of a user with a server share.
func (r *Replay) user(rec *audit.Record) *policy.History {
	k := userKey{rec.Tenant, rec.Host, rec.User, rec.ServerCommand.Command, string(rec.ServerCommand.ArgsDigest)}
	h := r.users[k]
	if h == nil {
		if len(r.users) >= maxHistories {
			for k, h := range r.users {
				if h.Idle(rec.TS) {
					delete(r.users, k)
				}
			}
		}
		h = &policy.History{From: r.known}
		r.users[k] = h
	}
	return h
}

// The rules of calls that no policy can decide, as the gate names them.
const (
	ruleUnreadable = "(unreadable)"
	ruleOversize   = "(oversize)"
	ruleAmbiguous  = "(ambiguous)"
)

// ambiguous are the anomalies with which no decision holds for every server.
var ambiguous = []string{"duplicate_member", "case_variant_member", "not_json", "not_rpc", "bare_cr", "nan", "control_character",
	"invalid_utf8", "lone_surrogate", "bom", "multi_value", "multi_line", "depth"}

// special decides where the rules of the policy do not: a call that the gate
// refuses in any case, one whose decision by this policy is recorded, one of a
// batch. What was counted stays within the bounds of counters.
func (r *Replay) special(c *Call, rec *audit.Record) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(rec.Anomalies, func(a string) bool { return slices.Contains(words, a) })
	}
	var rule string
	switch known, _ := audit.ParsePolicy(rec.Policy); {
	case known.Hash == r.cfg.Policy.Hash && known.Decision != "":
		c.decision.Action, c.decision.Rule, c.decision.Unknown = action(known.Decision), known.Rule, ""
		return
	case rec.Opaque() || rec.Method == "":
		rule = ruleUnreadable
	case has("oversize"):
		rule = ruleOversize
	case has(ambiguous...):
		rule = ruleAmbiguous
	}
	if rule != "" {
		c.decision.Action, c.decision.Rule, c.decision.Unknown = policy.Deny, rule, ""
		c.tool = Name(rec)
		return
	}
	if has("batch") && (c.decision.Unknown != "" || c.decision.Action != policy.Deny) {
		c.decision.Unknown = cmp.Or(c.decision.Unknown, policy.UnknownFrame)
	}
}

func action(word string) policy.Action {
	for _, a := range []policy.Action{policy.Allow, policy.AskFirst} {
		if a.String() == word {
			return a
		}
	}
	return policy.Deny
}

// Name is the name by which a policy decides about a call: that of its tool, or
// of its method.
func Name(rec *audit.Record) string {
	if rec.Method != "tools/call" {
		return rec.Method
	}
	return rec.Tool
}

// operations sets r.calls, as the gate decides about a call.
func (r *Replay) operations(s *Session, rec *audit.Record) {
	found, _ := audit.ParseRisk(rec.Risk) // both were checked with the line
	detections, _ := audit.ParseDetections(rec.Detections)
	known, _ := audit.ParsePolicy(rec.Policy)
	name := Name(rec)
	cut := slices.Contains(rec.Anomalies, "args_cut") || slices.Contains(rec.Anomalies, "redaction_failed")
	one := policy.Recorded{Call: policy.Call{Tool: name, Arguments: []byte(rec.Args)}, Cut: cut || rec.Method != "tools/call"}
	for _, d := range detections {
		switch d.Detector {
		case "more":
			one.Unseen = true
		case "command_pattern": // by the configuration of that time
		default:
			one.Detections = append(one.Detections, d.Detector)
		}
	}
	ops := audit.Operations(rec)
	one.Least, one.Most = found.Category, found.Category
	switch override := r.overrides[name]; {
	case override != "":
		one.Least = override
		if one.Most = override; len(detections) > 0 || len(ops) > 1 || found.Category == "" {
			one.Most = most
		}
	case found.Category == "", found.Source == risk.SourceOverride.String():
		one.Least, one.Most = least, most
	case found.Source == risk.SourceDetection.String() && known.Hash != "":
		one.Most = most // a policy may have lowered the category of the tool
	case found.Source != risk.SourceDetection.String() && len(ops) == 1 && len(s.categories) < maxCategories:
		if s.categories == nil {
			s.categories = map[string]string{}
		}
		s.categories[name] = found.Category
	}
	one.Unseen = one.Unseen || found.Category == ""
	r.configured(&one)
	r.calls = append(r.calls[:0], one)
	for i := 1; i < len(ops); i++ {
		inner := policy.Recorded{Call: policy.Call{Tool: ops[i].Tool, Arguments: []byte(ops[i].Args), Inner: true}, Cut: cut, Most: one.Most}
		inner.Least, inner.Most = r.inner(s, ops[i].Tool, one.Most)
		r.calls = append(r.calls, inner)
	}
}

// The bounds of what any call can do.
var (
	least = risk.Read.String()
	most  = risk.Financial.String()
)

// inner returns the categories that a tool can have whose call is a part of
// another one, which has the category bound at most.
func (r *Replay) inner(s *Session, tool, bound string) (lower, upper string) {
	if c := r.overrides[tool]; c != "" {
		return c, c
	}
	if c := s.categories[tool]; c != "" {
		return c, c
	}
	if t := r.cfg.Risk.Tool(tool, nil); t.Source == risk.SourceName {
		return t.Category.String(), bound
	}
	return least, bound
}

// configured adds what the policy's own patterns and paths find. They need the
// arguments in clear. Paths are compared as texts: where links led at that time
// is not known.
func (r *Replay) configured(c *policy.Recorded) {
	p := r.cfg.Policy
	if len(p.Commands.Names)+len(p.Commands.Patterns)+len(p.Paths.Names)+len(p.Paths.Patterns) == 0 {
		return
	}
	if c.Cut || !policy.Complete(c.Arguments) {
		c.Unseen, c.Most = true, most
		return
	}
	result := r.cfg.Risk.Assess(r.cfg.Risk.Tool(c.Tool, nil), c.Arguments, nil)
	for _, d := range result.Detections {
		// The working directory of that time is not known either.
		if d.Detector != "path_unresolved" && !slices.Contains(c.Detections, d.Detector) {
			c.Detections = append(c.Detections, d.Detector)
		}
	}
	if len(result.Detections) > 0 {
		c.Most = most
	}
}

// End completes a call with its record, nil if it has none: it adds the call to
// the report, and takes back what an error gives back.
func (r *Replay) End(c *Call, rec *audit.Record) {
	if rec != nil && rec.ErrorType == audit.ErrJSONRPC && !slices.Contains(rec.Anomalies, "id_reused") { // as mcpproxy does
		c.decision.Refund()
	}
	if !c.counted {
		return
	}
	d := &c.decision
	k := rowKey{decision: d.Action.String(), rule: d.Rule, tool: c.tool, why: d.Unknown}
	if d.Unknown != "" {
		k.decision = undecidable
	}
	row := r.rows[k]
	if row == nil {
		if len(r.rows) >= maxRows {
			k = rowKey{decision: k.decision, rule: otherRules}
			row = r.rows[k]
		}
		if row == nil {
			row = &Row{Decision: k.decision, Rule: k.rule, Tool: k.tool, Why: k.why}
			r.rows[k] = row
		}
	}
	row.Calls++
	row.Example = c.id
	n := &r.report.Decisions
	switch *n.of(k.decision)++; Done(rec) {
	case LetThrough:
		row.LetThrough++
		if k.decision != policy.Allow.String() && !(k.decision == policy.AskFirst.String() && approved(rec)) {
			n.LetThrough.add(k.decision)
		}
	case Stopped:
		row.Stopped++
	default:
		row.Unknown++
	}
}

// approved reports whether a person was asked about a call, and approved it.
func approved(rec *audit.Record) bool {
	a, _ := audit.ParseApproval(rec.Approval)
	return a.Outcome == "approved"
}

// A Fate is what became of a call.
type Fate uint8

// The fates.
const (
	FateUnknown Fate = iota
	LetThrough       // it reached the server
	Stopped          // it did not
)

// Done returns what became of a call by its record, nil if it has none.
func Done(rec *audit.Record) Fate {
	switch {
	case rec == nil || rec.Outcome == audit.OutcomeUnknown:
		return FateUnknown
	case rec.Forwarded:
		return LetThrough
	}
	return Stopped
}

// Report returns the report.
func (r *Replay) Report() *Report {
	r.report.Rows = []*Row{}
	if r.report.Problems == nil {
		r.report.Problems = []string{}
	}
	for _, row := range r.rows {
		r.report.Rows = append(r.report.Rows, row)
	}
	slices.SortFunc(r.report.Rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Decision), slices.Index(order, b.Decision)), cmp.Compare(b.Calls, a.Calls),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Why, b.Why))
	})
	return &r.report
}

// Problem adds what could not be read to the report.
func (r *Replay) Problem(text string) { r.report.Problems = append(r.report.Problems, text) }
