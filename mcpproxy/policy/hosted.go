package policy

import (
	"slices"
	"sort"
	"strconv"

	"auditproxy/mcpproxy/risk/detector"
)

// Keys of a tool by dialect.
var (
	hostedKeys    = []string{"require", "deny_if", "limits"}
	questionKeys  = []string{"action", "reason", "rate_limit"}
	interceptKeys = []string{"rules"}
)

// actions are the words of Questions' action.
var actions = []string{"allow", "deny", "require_approval"}

// hosted reads a tool of Hosted and Questions.
func (l *loader) hosted(n *node, name string, where *place, s *spec) {
	if !l.object(n, where) {
		return
	}
	var action, reason, limit *node
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		switch n := n.items()[i]; key.text {
		case "require", "deny_if":
			s.rules = l.predicates(s.rules, n, name, key.text, where)
		case "limits":
			s.limits = append(s.limits, l.limits(n, where, "tools", name)...)
		case "action":
			action = n
		case "reason":
			reason = n
		case "rate_limit":
			limit = n
		default:
			l.unknown(key, where, slices.Concat(hostedKeys, questionKeys)...)
		}
	}
	// The order of decisions is not that of the keys.
	// Not slices.SortStableFunc: its code for rules has 8 KB.
	sort.SliceStable(s.rules, func(i, j int) bool { return !s.rules[i].denyIf && s.rules[j].denyIf })
	words := ""
	if reason != nil {
		words = oneLine(l.text(reason, &place{in: where, name: "reason"}))
	}
	if action != nil {
		word, _ := l.word(action, where, "action must be %s, got %q", actions...)
		v := &verdict{rule: pointer("tools", name, "action"), reason: words}
		switch word {
		case "deny":
			v.words = "is denied by policy"
			s.deny = v
		case "require_approval":
			if words == "" {
				v.reason = "Approval is required for this tool"
			}
			s.ask = v
		}
	}
	if limit != nil {
		if ls, ok := l.rateLimit(limit, name, &place{in: where, name: "rate_limit"}, words); ok {
			s.limits = append(s.limits, ls)
		}
	}
	if reason != nil && action == nil && limit == nil {
		l.warn(reason, where, "a reason without an action is never shown")
	}
}

// rateLimit reads Questions' rate_limit: so many calls in so many seconds of an
// agent's session.
func (l *loader) rateLimit(n *node, name string, where *place, reason string) (s limitSpec, ok bool) {
	s.node = n
	if !l.object(n, where) {
		return s, false
	}
	var window int64
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		switch n := n.items()[i]; key.text {
		case "max":
			s.max = l.maximum(n, where)
		case "window":
			window = l.window(n, where, true)
		default:
			l.unknown(key, where, "max", "window")
		}
	}
	for _, need := range []string{"max", "window"} {
		if n.get(need) == nil {
			l.problem(n, where, `%s is missing: write {"max": 10, "window": 60}`, need)
		}
	}
	if s.max == 0 || window == 0 {
		return s, false
	}
	s.rule = pointer("tools", name, "rate_limit")
	s.reason = reason
	s.finish("rate_limit", window, Session)
	return s, true
}

// finish completes a limit whose rule, reason and maximum are set. One call
// counts one.
func (s *limitSpec) finish(name string, window int64, scope Scope) {
	s.name, s.window, s.bounded, s.amount = cut(name, maxName), windowWord(window), true, 1
	if s.reason == "" {
		s.reason = limitReason(s.max, s.window)
	}
	s.counter = Counter{Scope: scope, Key: s.rule + "@" + strconv.FormatInt(window, 10), Window: window}
}

// predicates appends the items of the member require or deny_if.
func (l *loader) predicates(rules []ruleSpec, n *node, tool, member string, parent *place) []ruleSpec {
	where := &place{in: parent, name: member}
	if !l.list(n, where) {
		return rules
	}
	prefix := pointer("tools", tool, member) + "/"
	var named nameSet // by their condition
	rules = slices.Grow(rules, len(n.items()))
	for i, item := range n.items() {
		r := ruleSpec{node: item, rule: rule{denyIf: member == "deny_if"}}
		if name := l.predicate(&r, item, &place{in: where, index: i}); name != "" && named.add(name) {
			r.name = prefix + name
		} else {
			r.name = prefix + strconv.Itoa(i)
		}
		rules = append(rules, r)
	}
	return rules
}

// predicate reads a rule. A rule of one condition has its name, as PolicyLayer's
// logs have it, if no rule before it has. predicate returns it, escaped, "" for
// others.
func (l *loader) predicate(r *ruleSpec, n *node, where *place) (name string) {
	if !l.object(n, where) {
		return ""
	}
	var conditions *node
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		switch n := n.items()[i]; key.text {
		case "conditions":
			conditions = n
			r.conditions = l.conditionsOf(n, &place{in: where, name: "conditions"}, "args.")
			for i := range r.conditions {
				r.conditions[i].convert = true
			}
		case "on_deny":
			r.reason = oneLine(l.text(n, &place{in: where, name: "on_deny"}))
		default:
			l.unknown(key, where, "conditions", "on_deny")
		}
	}
	if conditions == nil {
		l.problem(n, where, "conditions is missing: write [] for a rule that always applies")
	}
	if len(r.conditions) == 1 && r.conditions[0].path != nil {
		return escaped(conditions.items()[0].get("path").text) + "-" + r.conditions[0].op
	}
	return ""
}

// limits reads a list of limits. parents are the names that lead to its member.
func (l *loader) limits(n *node, parent *place, parents ...string) (limits []limitSpec) {
	where := &place{in: parent, name: "limits"}
	if !l.list(n, where) {
		return nil
	}
	var seen nameSet
	for i, item := range n.items() {
		if s, ok := l.limit(item, &place{in: where, index: i}, &seen, parents); ok {
			limits = append(limits, s)
		}
	}
	return limits
}

// limit reads a limit whose counter is not in seen.
func (l *loader) limit(n *node, where *place, seen *nameSet, parents []string) (s limitSpec, ok bool) {
	s.node = n
	if !l.object(n, where) {
		return s, false
	}
	var name string
	var window int64
	var scope Scope
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		switch n := n.items()[i]; key.text {
		case "counter":
			if name = l.label(n, &place{in: where, name: "counter"}); name != "" && !seen.add(name) {
				l.problem(n, where, "duplicate counter %q", short(name))
			}
		case "window":
			window = l.window(n, where, true)
		case "max":
			s.max = l.maximum(n, where)
		case "scope":
			scope = l.scope(n, where)
		default:
			l.unknown(key, where, "counter", "window", "max", "scope")
		}
	}
	for _, need := range []string{"counter", "window", "max", "scope"} {
		if n.get(need) == nil {
			l.problem(n, where, `%s is missing: write {"counter": "calls", "window": "minute", "max": 10, "scope": "session"}`, need)
		}
	}
	if name == "" || window == 0 || s.max == 0 || scope == "" {
		return s, false
	}
	s.rule = pointer(slices.Concat(parents, []string{"limits", name})...)
	s.finish(name, window, scope)
	return s, true
}

func (l *loader) scope(n *node, where *place) Scope {
	word, ok := l.word(n, where, "scope must be %s, got %q", "session", "user", "grant")
	if !ok {
		return ""
	}
	if word == "session" {
		return Session
	}
	return User
}

// allTools reads the limits of all tools together.
func (l *loader) allTools(n *node) {
	where := &place{name: "all_tools"}
	s := &spec{node: n}
	if l.object(n, where) {
		for i, key := range n.keys() {
			switch {
			case l.again(key, where):
			case key.text == "limits":
				s.limits = l.limits(n.items()[i], where, "all_tools")
			default:
				l.unknown(key, where, "limits")
			}
		}
	}
	if !l.mixed {
		l.policy.specs["*"] = s
	}
}

// own reads auditproxy's member, which other programs ignore.
func (l *loader) own(n *node) {
	where := &place{name: "auditproxy"}
	if !l.object(n, where) {
		return
	}
	p := l.policy
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		at := &place{in: where, name: key.text}
		switch n := n.items()[i]; key.text {
		case "mode":
			word, _ := l.word(n, nil, "auditproxy.mode must be %s, got %q", string(Enforce), string(Observe))
			p.Mode = Mode(word)
		case "approval":
			word, _ := l.word(n, nil, "auditproxy.approval must be %s, got %q", string(Auto), string(AskForDangerous), string(AskForWrites), string(Ask))
			p.Approval = Approval(word)
		case "allowed_tools":
			p.allowed = l.toolNames(n, at, false)
		case "denied_tools":
			p.denied = l.toolNames(n, at, false)
		case "deny_detections":
			p.denyDetections = l.detections(n, at)
		case "ask_detections":
			p.askDetections = l.detections(n, at)
		case "risk":
			p.Risk = l.risk(n, at)
		case "commands":
			p.Commands = l.arguments(n, at, "patterns")
		case "paths":
			p.Paths = l.arguments(n, at, "sensitive")
		default:
			l.unknown(key, where, "mode", "approval", "allowed_tools", "denied_tools", "deny_detections", "ask_detections", "risk", "commands", "paths")
		}
	}
}

func (l *loader) detections(n *node, where *place) []string {
	known := detector.All()
	words := l.labels(n, where)
	for _, item := range n.items() {
		if item.kind == text && item.text != "" && !slices.Contains(known, item.text) {
			l.problem(item, where, "unknown detector %q: %s", short(item.text), meant(item.text, known))
		}
	}
	return words
}

func (l *loader) risk(n *node, where *place) (overrides []Override) {
	if !l.list(n, where) {
		return nil
	}
	for i, item := range n.items() {
		overrides = append(overrides, l.override(item, &place{in: where, index: i}, overrides))
	}
	return overrides
}

// override reads the category of a tool that is not in before.
func (l *loader) override(n *node, where *place, before []Override) (o Override) {
	if !l.object(n, where) {
		return o
	}
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		switch n := n.items()[i]; key.text {
		case "tool":
			o.Tool = l.label(n, &place{in: where, name: "tool"})
			l.mention(n, "auditproxy.risk")
			if slices.ContainsFunc(before, func(other Override) bool { return other.Tool == o.Tool && o.Tool != "" }) {
				l.problem(n, where, "duplicate tool %q", short(o.Tool))
			}
		case "category":
			o.Category, _ = l.word(n, where, "category must be %s, got %q", categories...)
		default:
			l.unknown(key, where, "tool", "category")
		}
	}
	for _, need := range []string{"tool", "category"} {
		if n.get(need) == nil {
			l.problem(n, where, `%s is missing: write {"tool": "name", "category": "execute"}`, need)
		}
	}
	return o
}

// arguments reads names of arguments, and patterns under a name.
func (l *loader) arguments(n *node, where *place, patterns string) (a Arguments) {
	if !l.object(n, where) {
		return a
	}
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		at := &place{in: where, name: key.text}
		switch n := n.items()[i]; key.text {
		case "arguments":
			a.Names = l.labels(n, at)
		case patterns:
			if !l.list(n, at) {
				continue
			}
			for i, item := range n.items() {
				at := &place{in: at, index: i}
				if patterns == "patterns" {
					l.pattern(item, at)
				}
				a.Patterns = append(a.Patterns, l.text(item, at))
			}
		default:
			l.unknown(key, where, "arguments", patterns)
		}
	}
	return a
}
