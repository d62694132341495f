package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// declare notes the counters of a tool's rules. It reports nothing: the rules
// are read again.
func (l *loader) declare(tool string, rules *node) {
	found := map[string]*counter{}
	for i, r := range rules.items {
		name, window := "", ""
		if state := r.get("state"); state != nil {
			if c, w := state.get("counter"), state.get("window"); c != nil && w != nil {
				name, window = c.text, w.text
			}
		} else if rate := r.get("rate_limit"); rate != nil {
			_, window, _ = strings.Cut(rate.text, "/")
			name = rateCounter(window)
		}
		if name != "" && windows[window] != 0 && found[name] == nil {
			found[name] = &counter{i, windows[window]}
		}
	}
	l.counters[tool] = found
}

// rateCounter is the counter that Intercept makes for rate_limit.
func rateCounter(window string) string { return "_rate_" + window }

// rules reads the rules of a tool.
func (l *loader) rules(n *node, tool, where string, s *spec) {
	where += ".rules"
	if n.kind != list {
		l.problem(n, "%s: want a list, got %s", where, shown(n))
		return
	}
	first := map[string]int{} // rules by counter
	for i, item := range n.items {
		r := &interceptRule{loader: l, node: item, tool: tool, where: fmt.Sprintf("%s[%d]", where, i), index: i}
		if !r.read() {
			continue
		}
		if name := r.counter; name != "" {
			if j, twice := first[name]; twice {
				l.problem(item, "%s: duplicate state counter %q (also used by rules[%d])", r.where, short(name), j)
				continue
			}
			first[name] = i
		}
		r.compile(s)
	}
}

// An interceptRule is one rule.
type interceptRule struct {
	*loader
	node        *node
	tool, where string
	index       int

	name, action, reason, rateLimit, state *node
	conditions                             []conditionSpec
	conditionNodes                         *node

	counter   string // name
	window    int64
	increment int64
	from      path
	rate      int64 // of rate_limit
}

func (r *interceptRule) read() bool {
	ok := r.members(r.node, r.where, map[string]func(*node){
		"name":       func(n *node) { r.name = n },
		"action":     func(n *node) { r.action = n },
		"on_deny":    func(n *node) { r.reason = n },
		"reason":     func(n *node) { r.reason = n },
		"rate_limit": func(n *node) { r.rateLimit = n },
		"conditions": func(n *node) { r.conditionNodes = n },
		"state":      func(n *node) { r.state = n },
	})
	if !ok {
		return false
	}
	problems := len(r.problems)
	if r.node.get("on_deny") != nil && r.node.get("reason") != nil {
		r.problem(r.reason, "%s: on_deny and reason are the same: remove one", r.where)
	}
	if r.name != nil {
		if r.name.kind == text && strings.TrimSpace(r.name.text) == "" {
			r.problem(r.name, "%s: rule must have a name, or no member name", r.where)
		} else {
			r.text(r.name, r.where+".name")
		}
	}
	if r.reason != nil && (r.reason.kind != text || r.reason.text != "") {
		r.text(r.reason, r.where+".on_deny")
	}
	if c := r.conditionNodes; c != nil && c.kind != list {
		r.problem(c, "%s.conditions: want a list, got %s", r.where, shown(c))
	} else if c != nil {
		for j, item := range c.items {
			r.conditions = append(r.conditions, r.condition(item, fmt.Sprintf("%s.conditions[%d]", r.where, j), []string{"args.", "state."}))
		}
	}
	deny, known := false, true
	if r.action != nil {
		var word string
		word, known = r.word(r.action, r.where, r.where+": action must be %s, got %q", []string{"evaluate", "deny"})
		deny = word == "deny"
	}
	switch {
	case r.rateLimit != nil:
		r.readRate(deny)
	case deny && len(r.conditions) > 0:
		r.problem(r.conditionNodes, "%s: deny rules must not have conditions", r.where)
	case known && !deny && len(r.conditions) == 0:
		r.problem(r.node, "%s: evaluate rules must have at least one condition", r.where)
	}
	if r.state != nil {
		r.readState()
	}
	return len(r.problems) == problems
}

func (r *interceptRule) readRate(deny bool) {
	if len(r.conditions) > 0 || r.state != nil {
		r.problem(r.rateLimit, "%s: rate_limit cannot be combined with conditions or state: write two rules", r.where)
	}
	if deny {
		r.problem(r.rateLimit, `%s: rate_limit cannot be used with action "deny"`, r.where)
	}
	count, window, ok := strings.Cut(r.rateLimit.text, "/")
	if r.rateLimit.kind != text || !ok {
		r.problem(r.rateLimit, `%s: rate_limit must be in the format "N/window", as in "5/hour", got %s`, r.where, shown(r.rateLimit))
		return
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n <= 0 {
		r.problem(r.rateLimit, "%s: rate_limit count must be a positive integer, got %q", r.where, short(count))
	}
	if r.rate, r.window = n, windows[window]; r.window == 0 {
		r.problem(r.rateLimit, "%s: rate_limit window must be %s, got %q", r.where, listed([]string{"minute", "hour", "day"}), short(window))
	}
	r.counter, r.increment = rateCounter(window), 1
}

func (r *interceptRule) readState() {
	where := r.where + ".state"
	r.increment = 1
	ok := r.members(r.state, where, map[string]func(*node){
		"counter": func(n *node) {
			if n.kind != text || strings.TrimSpace(n.text) == "" {
				r.problem(n, "%s: counter must not be empty", where)
				return
			}
			r.counter = r.label(n, where+".counter")
		},
		"window": func(n *node) { r.window = r.loader.window(n, where, false) },
		"increment": func(n *node) {
			if n.kind != number || !n.whole || n.number < 0 || n.number > maxCount {
				r.problem(n, "%s: increment must be a whole number, at least 0, got %s", where, shown(n))
				return
			}
			r.increment = max(int64(n.number), 1)
		},
		"increment_from": func(n *node) {
			p, ok := strings.CutPrefix(n.text, "args.")
			if n.kind != text || !ok || slices.Contains(strings.Split(p, "."), "") {
				r.problem(n, `%s: increment_from must start with "args." and name an argument, got %s`, where, shown(n))
				return
			}
			r.from = strings.Split(p, ".")
		},
	})
	for _, need := range []string{"counter", "window"} {
		if ok && r.state.get(need) == nil {
			r.problem(r.state, "%s: %s is missing: %s must not be empty", where, need, need)
		}
	}
	if from := r.state.get("increment_from"); ok && from != nil && r.state.get("increment") != nil {
		r.warn(from, "%s: increment means nothing next to increment_from", where)
	}
}

// compile appends the rule and its limit to s.
func (r *interceptRule) compile(s *spec) {
	id := pointer("tools", r.tool, "rules", strconv.Itoa(r.index))
	shownName := id
	if r.name != nil {
		id = oneLine(r.name.text)
		shownName = r.name.text
	}
	reason := ""
	if r.reason != nil {
		reason = oneLine(r.reason.text)
	}
	if r.rateLimit != nil && reason == "" {
		_, window, _ := strings.Cut(r.rateLimit.text, "/")
		reason = limitReason(r.rate, window)
	}
	compiled := ruleSpec{node: r.node, conditions: r.conditions}
	compiled.name, compiled.reason = id, reason
	compiled.denyIf = r.action != nil && r.action.text == "deny"
	if reason == "" {
		compiled.reason = oneLine(fmt.Sprintf("Denied by rule %q", cut(shownName, 150)))
	}
	if r.rateLimit == nil { // whose condition is the limit itself
		s.rules = append(s.rules, compiled)
	}
	if r.counter == "" {
		return
	}
	ls := limitSpec{node: r.node, counter: *interceptCounter(r.tool, r.counter, r.window), from: r.from}
	ls.rule, ls.reason, ls.amount = id, reason, r.increment
	ls.name, ls.window = r.counter, windowWord(r.window)
	if reason == "" {
		ls.reason = oneLine(fmt.Sprintf("Rate limit exceeded for %s", cut(shownName, 150)))
	}
	ls.max, ls.bounded = r.rate, r.rateLimit != nil
	if !ls.bounded {
		ls.max, ls.bounded = r.bound(ls.counter.Key)
	}
	s.limits = append(s.limits, ls)
}

// bound is the limit that the rule sets for its own counter, by the first
// condition that compares it with lt or lte. A counter without one is still
// counted, for conditions of other rules; Intercept does not count it.
func (r *interceptRule) bound(key string) (most int64, ok bool) {
	for _, c := range r.conditions {
		if c.counter == nil || c.counter.Key != key {
			continue
		}
		whole := int64(math.Trunc(max(min(c.want[0].number, maxCount), -maxCount)))
		switch c.op {
		case "lt":
			return whole - 1, true
		case "lte":
			return whole, true
		}
	}
	return 0, false
}
