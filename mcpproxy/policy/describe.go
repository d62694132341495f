package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"auditproxy/mcpproxy/policy/probe"
)

// A Seen is a tool that a server has.
type Seen struct {
	Name       string
	Category   string // word of mcpproxy/risk; "" if unknown
	Definition []byte // its entry in the answer to tools/list, nil if unknown

	// Without a definition: the arguments that its calls had, nil if unknown.
	Calls     int64
	Arguments Names
}

// Names are the paths of the arguments that recorded calls had: the names of
// members, each behind a NUL but the first. A path that ends with a NUL means that
// there are members whose names are not known.
type Names map[string]bool

// lacks returns the part of a path that no call had, nil if one may have had it
// all.
func (n Names) lacks(p path) path {
	at := ""
	for i, name := range p {
		if n[at+"\x00"] {
			return nil
		}
		if at += name; !n[at] {
			return p[:i+1]
		}
		at += "\x00"
	}
	return nil
}

// A Listing is what a policy says, for people.
type Listing struct {
	Dialect  Dialect       `json:"dialect"`
	Hash     string        `json:"hash"`
	Mode     Mode          `json:"mode,omitempty"`
	Approval Approval      `json:"approval,omitempty"`
	Default  string        `json:"default"` // allow or deny
	Tools    []ToolListing `json:"tools"`   // by name; "*" is what applies to all
	Open     []string      `json:"open"`    // what the policy allows without a rule
	Warnings []Problem     `json:"warnings"`
}

// A ToolListing is what a policy says about a tool.
type ToolListing struct {
	Name   string        `json:"name"`
	Action string        `json:"action"` // allow, ask, deny or hidden
	Rules  []RuleListing `json:"rules,omitempty"`
}

// A RuleListing is one rule or limit.
type RuleListing struct {
	Rule string `json:"rule"` // as decisions name it
	Text string `json:"text"`
}

// Describe lists what p says. seen are the tools of the servers that it is for,
// if they are known: names and paths that match none of them are warnings.
func (p *Policy) Describe(seen []Seen) Listing {
	l := Listing{Dialect: p.Dialect, Hash: p.Hash, Mode: p.Mode, Approval: p.Approval, Default: "deny", Tools: []ToolListing{}, Open: []string{}}
	if p.allow {
		l.Default = "allow"
	}
	l.Warnings = append([]Problem{}, p.warnings...)
	for _, name := range sorted(p.tools) {
		l.Tools = append(l.Tools, describeTool(name, p.of(name), p.specs[name]))
	}
	if all := p.specs["*"]; all != nil || slices.Contains(p.Hide, "*") {
		l.Tools = append(l.Tools, describeTool("*", p.of("*"), all))
	}
	for _, name := range sorted(p.specs) {
		l.unreachable(name, p.specs[name], p.of(name))
		p.probes(&l, p.specs[name])
	}
	p.contradictions(&l)
	if n := p.users(); n > MaxUser {
		l.Warnings = append(l.Warnings, Problem{1, 1, fmt.Sprintf("%d limits by user: at most %d count, and calls that need another one are denied", n, MaxUser)})
	}
	if len(seen) > 0 {
		p.compare(&l, seen)
	}
	p.closed(&l, seen)
	p.open(&l, seen)
	sortByPosition(l.Warnings)
	return l
}

func (l *Listing) warn(at *node, format string, args ...any) {
	l.Warnings = append(l.Warnings, *at.problem(format, args...))
}

func describeTool(name string, t *tool, s *spec) ToolListing {
	d := ToolListing{Name: name, Action: Allow.String()}
	switch {
	case t.hidden:
		d.Action = "hidden"
	case t.deny != nil || t.closed != nil:
		d.Action = Deny.String()
	case t.ask != nil && !t.free:
		d.Action = AskFirst.String()
	}
	if s == nil {
		return d
	}
	for i := range s.rules {
		r := &s.rules[i]
		d.Rules = append(d.Rules, RuleListing{r.name, r.String()})
		if r.denyIf && len(r.conditions) == 0 && !t.hidden {
			d.Action = Deny.String()
		}
	}
	for i := range s.limits {
		d.Rules = append(d.Rules, RuleListing{s.limits[i].rule, s.limits[i].String()})
	}
	return d
}

// String is the rule in words.
func (r *ruleSpec) String() string {
	if len(r.conditions) == 0 {
		if r.denyIf {
			return "deny always"
		}
		return "require nothing"
	}
	var parts []string
	for _, c := range r.conditions {
		parts = append(parts, c.String())
	}
	word := "require "
	if r.denyIf {
		word = "deny if "
	}
	return word + strings.Join(parts, " and ")
}

// String is the condition as it is written.
func (c *conditionSpec) String() string {
	value, shown := c.node.get("value"), concealed
	if !value.secret {
		written, _ := json.Marshal(value.any())
		shown = cut(string(written), 100)
	}
	return cut(c.node.get("path").text, 100) + " " + c.op + " " + shown
}

// String is the limit in words.
func (s *limitSpec) String() string {
	amount := fmt.Sprintf("%d", s.amount)
	if s.from != nil {
		amount = "args." + strings.Join(s.from, ".")
	}
	if !s.bounded {
		return fmt.Sprintf("add %s to counter %s, per %s by %s", amount, s.name, s.window, s.counter.Scope)
	}
	if s.from == nil && s.amount == 1 {
		return fmt.Sprintf("at most %d calls per %s by %s", s.max, s.window, s.counter.Scope)
	}
	return fmt.Sprintf("add %s, at most %d per %s by %s", amount, s.max, s.window, s.counter.Scope)
}

// unreachable warns of rules behind one that always denies, and of limits that
// allow nothing.
func (l *Listing) unreachable(name string, s *spec, t *tool) {
	for i := range s.limits {
		if ls := &s.limits[i]; ls.bounded && ls.max < max(ls.amount, 1) && ls.from == nil || ls.bounded && ls.max <= 0 {
			l.warn(ls.node, "%s: a limit of %d denies every call", ls.rule, ls.max)
		}
	}
	rest := len(s.rules) + len(s.limits)
	if name != "*" && t.deny != nil && rest > 0 {
		l.warn(s.node, "tools.%s: %s always denies, so the rules of this tool are never reached", short(name), t.deny.rule)
		return
	}
	for i := range s.rules {
		if r := &s.rules[i]; len(r.conditions) == 0 && r.denyIf {
			if rest > 1 {
				l.behind(s, i)
			}
			return
		} else if len(r.conditions) == 0 {
			l.warn(r.node, "%s: a rule without conditions requires nothing", r.name)
		}
		rest--
	}
}

// behind warns of what follows the rule i, which always denies.
func (l *Listing) behind(s *spec, i int) {
	for _, r := range s.rules[i+1:] {
		l.warn(r.node, "%s: never reached, since %s always denies", r.name, s.rules[i].name)
	}
	for _, ls := range s.limits {
		if ls.node != s.rules[i].node {
			l.warn(ls.node, "%s: never reached, since %s always denies", ls.rule, s.rules[i].name)
		}
	}
}

// probes warns of conditions that compare some texts otherwise than their writer may mean.
func (p *Policy) probes(l *Listing, s *spec) {
	seen := func(word string) bool {
		return word != "" && (slices.Contains(p.denyDetections, word) || slices.Contains(p.askDetections, word))
	}
	for _, r := range s.rules {
		for i := range r.conditions {
			c := &r.conditions[i]
			value := c.node.get("value")
			switch {
			case c.counter != nil:
			case !r.denyIf && (c.code == opRegex || c.code == opContains):
				required := probe.Required
				if c.code == opContains {
					required = probe.Contained
				}
				for _, t := range required(c.path[len(c.path)-1], value.text) {
					if !seen(t.Detector) && !s.denies(c.path, t.Value) {
						l.warn(value, "%s: also matches %s: %s", r.name, value.quote(t.Value), t.Remedy)
						break
					}
				}
			case !r.denyIf && (c.code == opNeq || c.code == opNotIn):
				l.spelled(&r, c, value)
			case r.denyIf && len(r.conditions) == 1 && (c.code == opRegex || c.code == opEq || c.code == opContains || c.code == opIn):
				values := []*node{value}
				if c.code == opIn {
					values = value.items()
				}
				for _, v := range values {
					for _, t := range probe.Denied(c.path[len(c.path)-1], v.text, c.code == opRegex) {
						if v.kind == text && !seen(t.Detector) && !s.denies(c.path, t.Value) {
							l.warn(v, "%s: does not deny %s: %s", r.name, v.quote(t.Value), t.Remedy)
							break
						}
					}
				}
			}
		}
	}
}

// spelled warns of a rule that requires any text but some: another spelling of them passes.
func (l *Listing) spelled(r *ruleSpec, c *conditionSpec, value *node) {
	values := []*node{value}
	if c.code == opNotIn {
		values = value.items()
	}
	for _, v := range values {
		other := strings.ToUpper(v.text)
		if other == v.text {
			other = strings.ToLower(v.text)
		}
		written, _ := json.Marshal(other)
		a := argumentOf(written)
		if v.kind == text && other != v.text && c.in(false, &a) == yes {
			l.warn(v, "%s: does not deny %s: use in, with the values that are allowed", r.name, v.quote(other))
			return
		}
	}
}

// denies reports whether a condition of a rule alone denies a text of an argument.
func (s *spec) denies(at path, value string) bool {
	written, _ := json.Marshal(value)
	a := argumentOf(written)
	return slices.ContainsFunc(s.rules, func(r ruleSpec) bool {
		return r.denyIf && len(r.conditions) == 1 && r.conditions[0].counter == nil && slices.Equal(r.conditions[0].path, at) && r.conditions[0].in(true, &a) != no
	})
}

// contradictions warns of lists that do not fit together.
func (p *Policy) contradictions(l *Listing) {
	for _, m := range p.mentions {
		name := m.node.text
		if m.where != "auditproxy.allowed_tools" {
			continue
		}
		t := p.of(name)
		switch {
		case t.deny != nil:
			l.warn(m.node, "allowed_tools: %q is denied by %s", short(name), t.deny.rule)
		case t.closed != nil:
			l.warn(m.node, "allowed_tools: %q is not in tools, so the default denies it", short(name))
		case t.ask != nil:
			l.warn(m.node, "allowed_tools: %q is never asked about, against %s", short(name), t.ask.rule)
		}
	}
}

// users returns how many counters are of scope User.
func (p *Policy) users() int {
	keys := map[string]bool{}
	for name := range p.specs {
		for _, c := range p.of(name).counters {
			if c.Scope == User {
				keys[c.Key] = true
			}
		}
	}
	return len(keys)
}

// compare warns of names and paths that no tool has.
func (p *Policy) compare(l *Listing, seen []Seen) {
	arguments := map[string]*schema{}
	had := map[string]*Seen{}
	var names []string
	for i := range seen {
		s := &seen[i]
		names = append(names, s.Name)
		arguments[s.Name] = schemaOf(s.Definition)
		if s.Definition == nil && s.Calls > 0 && s.Arguments != nil {
			had[s.Name] = s
		}
	}
	for _, m := range p.mentions {
		if !slices.Contains(names, m.node.text) {
			hint := ""
			if near := meant(m.node.text, names); strings.HasPrefix(near, "did") {
				hint = ": " + near
			}
			l.warn(m.node, "%s: no tool that was seen is called %q%s", m.where, short(m.node.text), hint)
		}
	}
	check := func(tool string, at *node, p path) {
		if p == nil {
			return
		}
		if s := had[tool]; s != nil {
			if p := s.Arguments.lacks(p); p != nil {
				l.warn(at, "tools.%s: none of %d recorded calls has args.%s", short(tool), s.Calls, short(strings.Join(p, ".")))
			}
			return
		}
		for name, s := range arguments {
			if (tool == name || tool == "*") && s.has(p) {
				return
			}
		}
		if tool == "*" || arguments[tool] != nil {
			l.warn(at, "tools.%s: no argument args.%s", short(tool), short(strings.Join(p, ".")))
		}
	}
	for _, name := range sorted(p.specs) {
		s := p.specs[name]
		for _, r := range s.rules {
			for _, c := range r.conditions {
				check(name, c.node, c.path)
			}
		}
		for _, ls := range s.limits {
			check(name, ls.node, ls.from)
		}
	}
}

// closed warns of a policy that lets no call pass: of the tools that were seen, or else
// of those that it names and all others.
func (p *Policy) closed(l *Listing, seen []Seen) {
	names, text := append(sorted(p.tools), ""), "every call is denied: allow the tools that are needed"
	if len(seen) > 0 {
		names, text = nil, "every call of a tool that was seen is denied: allow the tools that are needed"
		for _, s := range seen {
			names = append(names, s.Name)
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool {
		action := describeTool(name, p.of(name), p.specs[name]).Action
		return action == Allow.String() || action == AskFirst.String()
	}) {
		l.Warnings = append(l.Warnings, Problem{1, 1, text})
	}
}

// A schema is the part of an inputSchema that tells which arguments there are.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	Additional json.RawMessage    `json:"additionalProperties"`
	open       bool               // anything may be in it
}

// schemaOf reads the schema of a definition. A schema that is not understood
// allows everything.
func schemaOf(definition []byte) *schema {
	var d struct {
		InputSchema *schema `json:"inputSchema"`
	}
	if err := json.Unmarshal(definition, &d); err != nil || d.InputSchema == nil {
		return &schema{open: true}
	}
	return d.InputSchema
}

func (s *schema) has(p path) bool {
	if len(p) == 0 || s.open {
		return true
	}
	member, known := s.Properties[p[0]]
	switch {
	case !known:
		return s.Properties == nil || len(s.Additional) > 0 && string(s.Additional) != "false"
	case member == nil || member.Properties == nil:
		return true
	}
	return member.has(p[1:])
}

// open lists what is allowed without a rule.
func (p *Policy) open(l *Listing, seen []Seen) {
	if p.Mode == Observe {
		l.Open = append(l.Open, "mode observe: denied calls are forwarded")
	}
	if other := p.of(""); other.deny == nil && other.closed == nil {
		l.Open = append(l.Open, "tools that the policy does not name are allowed"+conditional(other))
	}
	category := map[string]string{}
	for _, s := range seen {
		category[s.Name] = s.Category
	}
	for _, name := range sorted(p.tools) {
		t := p.of(name)
		if t.deny != nil || t.closed != nil || !t.listed {
			continue
		}
		asked := !t.free && (t.ask != nil || p.Approval.covers(category[name]) && category[name] != "")
		if c := category[name]; c == "read" || asked || len(t.limits) > 0 || len(t.rules) > 0 {
			continue
		} else if c == "" {
			l.Open = append(l.Open, fmt.Sprintf("%s: every call is allowed", short(name)))
		} else {
			l.Open = append(l.Open, fmt.Sprintf("%s (%s): every call is allowed: add limits or rules for its arguments", short(name), c))
		}
	}
}

func conditional(t *tool) string {
	if len(t.rules)+len(t.limits) > 0 {
		return ", under the rules for all tools"
	}
	return ""
}
