package policy

import (
	"fmt"
	"slices"
	"strconv"

	"auditproxy/mcpproxy/risk/detector"
)

// actions are the words of Questions' action.
var actions = []string{"allow", "deny", "require_approval"}

// hosted reads a tool of Hosted and Questions.
func (l *loader) hosted(n *node, name, where string, s *spec) {
	var action, reason, limit *node
	ok := l.members(n, where, map[string]func(*node){
		"require": func(n *node) { s.rules = append(s.rules, l.predicates(n, name, "require", where, false)...) },
		"deny_if": func(n *node) { s.rules = append(s.rules, l.predicates(n, name, "deny_if", where, true)...) },
		"limits":  func(n *node) { s.limits = append(s.limits, l.limits(n, where, "tools", name)...) },

		"action":     func(n *node) { action = n },
		"reason":     func(n *node) { reason = n },
		"rate_limit": func(n *node) { limit = n },
	})
	if !ok {
		return
	}
	// The order of decisions is not that of the keys.
	slices.SortStableFunc(s.rules, func(a, b ruleSpec) int { return bit(a.denyIf) - bit(b.denyIf) })
	words := ""
	if reason != nil {
		words = oneLine(l.text(reason, where+".reason"))
	}
	if action != nil {
		word, _ := l.word(action, where, where+": action must be %s, got %q", actions)
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
		if ls, ok := l.rateLimit(limit, name, where+".rate_limit", words); ok {
			s.limits = append(s.limits, ls)
		}
	}
	if reason != nil && action == nil && limit == nil {
		l.warn(reason, "%s: a reason without an action is never shown", where)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rateLimit reads Questions' rate_limit: so many calls in so many seconds of an
// agent's session.
func (l *loader) rateLimit(n *node, name, where, reason string) (s limitSpec, ok bool) {
	s.node = n
	var window int64
	good := l.members(n, where, map[string]func(*node){
		"max":    func(n *node) { s.max = l.maximum(n, where) },
		"window": func(n *node) { window = l.window(n, where, true) },
	})
	for _, need := range []string{"max", "window"} {
		if good && n.get(need) == nil {
			l.problem(n, `%s: %s is missing: write {"max": 10, "window": 60}`, where, need)
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

// predicates reads the items of require or deny_if.
func (l *loader) predicates(n *node, tool, member, where string, denyIf bool) (rules []ruleSpec) {
	where += "." + member
	if n.kind != list {
		l.problem(n, "%s: want a list, got %s", where, shown(n))
		return nil
	}
	seen := map[string]bool{}
	rules = make([]ruleSpec, 0, len(n.items))
	for i, item := range n.items {
		at := where + "[" + strconv.Itoa(i) + "]"
		r := ruleSpec{node: item, rule: rule{denyIf: denyIf}}
		ok := l.members(item, at, map[string]func(*node){
			"conditions": func(n *node) {
				if n.kind != list {
					l.problem(n, "%s.conditions: want a list, got %s", at, shown(n))
					return
				}
				for j, c := range n.items {
					r.conditions = append(r.conditions, l.condition(c, at+".conditions["+strconv.Itoa(j)+"]", []string{"args."}))
				}
			},
			"on_deny": func(n *node) { r.reason = oneLine(l.text(n, at+".on_deny")) },
		})
		if ok && item.get("conditions") == nil {
			l.problem(item, "%s: conditions is missing: write [] for a rule that always applies", at)
		}
		// A rule of one condition has its name, as PolicyLayer's logs have it, if
		// no rule before it has.
		id := strconv.Itoa(i)
		if len(r.conditions) == 1 && r.conditions[0].path != nil {
			c := item.get("conditions").items[0]
			if name := c.get("path").text + "-" + r.conditions[0].op; !seen[name] {
				id = name
				seen[name] = true
			}
		}
		r.name = pointer("tools", tool, member, id)
		if r.reason == "" {
			r.reason = fmt.Sprintf("Denied by rule %q", cut(r.name, 150))
		}
		rules = append(rules, r)
	}
	return rules
}

// limits reads a list of limits. parents are the names that lead to its member.
func (l *loader) limits(n *node, where string, parents ...string) (limits []limitSpec) {
	where += ".limits"
	if n.kind != list {
		l.problem(n, "%s: want a list, got %s", where, shown(n))
		return nil
	}
	seen := map[string]bool{}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", where, i)
		s := limitSpec{node: item}
		var name string
		var window int64
		var scope Scope
		ok := l.members(item, at, map[string]func(*node){
			"counter": func(n *node) {
				if name = l.label(n, at+".counter"); name != "" && seen[name] {
					l.problem(n, "%s: duplicate counter %q", at, short(name))
				}
				seen[name] = true
			},
			"window": func(n *node) { window = l.window(n, at, true) },
			"max":    func(n *node) { s.max = l.maximum(n, at) },
			"scope":  func(n *node) { scope = l.scope(n, at) },
		})
		for _, need := range []string{"counter", "window", "max", "scope"} {
			if ok && item.get(need) == nil {
				l.problem(item, `%s: %s is missing: write {"counter": "calls", "window": "minute", "max": 10, "scope": "session"}`, at, need)
			}
		}
		if name == "" || window == 0 || s.max == 0 || scope == "" {
			continue
		}
		s.rule = pointer(append(slices.Clone(parents), "limits", name)...)
		s.finish(name, window, scope)
		limits = append(limits, s)
	}
	return limits
}

func (l *loader) scope(n *node, where string) Scope {
	word, ok := l.word(n, where, where+": scope must be %s, got %q", []string{"session", "user", "grant"})
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
	s := &spec{node: n}
	l.members(n, "all_tools", map[string]func(*node){
		"limits": func(n *node) { s.limits = l.limits(n, "all_tools", "all_tools") },
	})
	if !l.mixed {
		l.policy.specs["*"] = s
	}
}

// own reads auditproxy's member, which other programs ignore.
func (l *loader) own(n *node) {
	const where = "auditproxy"
	p := l.policy
	words := func(n *node, member string, known []string) []string {
		names := l.labels(n, where+"."+member)
		for _, item := range n.items {
			if item.kind == text && item.text != "" && !slices.Contains(known, item.text) {
				l.problem(item, "%s.%s: unknown detector %q: %s", where, member, short(item.text), meant(item.text, known))
			}
		}
		return names
	}
	l.members(n, where, map[string]func(*node){
		"mode": func(n *node) {
			word, _ := l.word(n, where, where+".mode must be %s, got %q", []string{string(Enforce), string(Observe)})
			p.Mode = Mode(word)
		},
		"approval": func(n *node) {
			word, _ := l.word(n, where, where+".approval must be %s, got %q", []string{string(Auto), string(AskForDangerous), string(AskForWrites), string(Ask)})
			p.Approval = Approval(word)
		},
		"allowed_tools":   func(n *node) { p.allowed = l.toolNames(n, where+".allowed_tools", false) },
		"denied_tools":    func(n *node) { p.denied = l.toolNames(n, where+".denied_tools", false) },
		"deny_detections": func(n *node) { p.denyDetections = words(n, "deny_detections", detector.All()) },
		"ask_detections":  func(n *node) { p.askDetections = words(n, "ask_detections", detector.All()) },
		"risk":            func(n *node) { p.Risk = l.risk(n) },
		"commands":        func(n *node) { p.Commands = l.arguments(n, where+".commands", "patterns") },
		"paths":           func(n *node) { p.Paths = l.arguments(n, where+".paths", "sensitive") },
	})
}

func (l *loader) risk(n *node) (overrides []Override) {
	const where = "auditproxy.risk"
	if n.kind != list {
		l.problem(n, "%s: want a list, got %s", where, shown(n))
		return nil
	}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", where, i)
		var o Override
		ok := l.members(item, at, map[string]func(*node){
			"tool": func(n *node) {
				o.Tool = l.label(n, at+".tool")
				l.mention(n, where)
				if slices.ContainsFunc(overrides, func(other Override) bool { return other.Tool == o.Tool && o.Tool != "" }) {
					l.problem(n, "%s: duplicate tool %q", at, short(o.Tool))
				}
			},
			"category": func(n *node) { o.Category, _ = l.word(n, at, at+": category must be %s, got %q", categories) },
		})
		for _, need := range []string{"tool", "category"} {
			if ok && item.get(need) == nil {
				l.problem(item, `%s: %s is missing: write {"tool": "name", "category": "execute"}`, at, need)
			}
		}
		overrides = append(overrides, o)
	}
	return overrides
}

// arguments reads names of arguments, and patterns under a name.
func (l *loader) arguments(n *node, where, patterns string) (a Arguments) {
	l.members(n, where, map[string]func(*node){
		"arguments": func(n *node) { a.Names = l.labels(n, where+".arguments") },
		patterns: func(n *node) {
			at := where + "." + patterns
			if n.kind != list {
				l.problem(n, "%s: want a list, got %s", at, shown(n))
				return
			}
			for i, item := range n.items {
				if patterns == "patterns" {
					l.pattern(item, fmt.Sprintf("%s[%d]", at, i))
				}
				a.Patterns = append(a.Patterns, l.text(item, fmt.Sprintf("%s[%d]", at, i)))
			}
		},
	})
	return a
}
