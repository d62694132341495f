package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// declare notes the counters of a tool's rules. It reports nothing: the rules
// are read again.
func (l *loader) declare(tool string, rules *node) {
	found := map[string]*counter{}
	for i, r := range rules.items() {
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
func (l *loader) rules(n *node, tool string, parent *place, s *spec) {
	where := &place{in: parent, name: "rules"}
	if !l.list(n, where) {
		return
	}
	first := map[string]int{} // rules by counter
	for i, item := range n.items() {
		r := &interceptRule{loader: l, node: item, tool: tool, where: &place{in: where, index: i}, index: i}
		if !r.read() {
			continue
		}
		if name := r.counter; name != "" {
			if j, twice := first[name]; twice {
				l.problem(item, r.where, "duplicate state counter %q (also used by rules[%d])", short(name), j)
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
	node  *node
	tool  string
	where *place
	index int

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
	if !r.object(r.node, r.where) {
		return false
	}
	for i, key := range r.node.keys() {
		if r.again(key, r.where) {
			continue
		}
		switch n := r.node.items()[i]; key.text {
		case "name":
			r.name = n
		case "action":
			r.action = n
		case "on_deny", "reason":
			r.reason = n
		case "rate_limit":
			r.rateLimit = n
		case "conditions":
			r.conditionNodes = n
		case "state":
			r.state = n
		default:
			r.unknown(key, r.where, "name", "action", "on_deny", "reason", "rate_limit", "conditions", "state")
		}
	}
	problems := len(r.problems)
	if r.node.get("on_deny") != nil && r.node.get("reason") != nil {
		r.problem(r.reason, r.where, "on_deny and reason are the same: remove one")
	}
	if r.name != nil {
		if r.name.kind == text && strings.TrimSpace(r.name.text) == "" {
			r.problem(r.name, r.where, "rule must have a name, or no member name")
		} else {
			r.text(r.name, &place{in: r.where, name: "name"})
		}
	}
	if r.reason != nil && (r.reason.kind != text || r.reason.text != "") {
		r.text(r.reason, &place{in: r.where, name: "on_deny"})
	}
	if c := r.conditionNodes; c != nil {
		r.conditions = r.conditionsOf(c, &place{in: r.where, name: "conditions"}, "args.", "state.")
	}
	deny, known := false, true
	if r.action != nil {
		var word string
		word, known = r.word(r.action, r.where, "action must be %s, got %q", "evaluate", "deny")
		deny = word == "deny"
	}
	switch {
	case r.rateLimit != nil:
		r.readRate(deny)
	case deny && len(r.conditions) > 0:
		r.problem(r.conditionNodes, r.where, "deny rules must not have conditions")
	case known && !deny && len(r.conditions) == 0:
		r.problem(r.node, r.where, "evaluate rules must have at least one condition")
	}
	if r.state != nil {
		r.readState()
	}
	return len(r.problems) == problems
}

func (r *interceptRule) readRate(deny bool) {
	if len(r.conditions) > 0 || r.state != nil {
		r.problem(r.rateLimit, r.where, "rate_limit cannot be combined with conditions or state: write two rules")
	}
	if deny {
		r.problem(r.rateLimit, r.where, `rate_limit cannot be used with action "deny"`)
	}
	count, window, ok := strings.Cut(r.rateLimit.text, "/")
	if r.rateLimit.kind != text || !ok {
		r.problem(r.rateLimit, r.where, `rate_limit must be in the format "N/window", as in "5/hour", got %s`, shown(r.rateLimit))
		return
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n <= 0 {
		r.problem(r.rateLimit, r.where, "rate_limit count must be a positive integer, got %q", short(count))
	}
	if r.rate, r.window = n, windows[window]; r.window == 0 {
		r.problem(r.rateLimit, r.where, "rate_limit window must be %s, got %q", listed([]string{"minute", "hour", "day"}), short(window))
	}
	r.counter, r.increment = rateCounter(window), 1
}

func (r *interceptRule) readState() {
	where := &place{in: r.where, name: "state"}
	r.increment = 1
	if !r.object(r.state, where) {
		return
	}
	for i, key := range r.state.keys() {
		if r.again(key, where) {
			continue
		}
		switch n := r.state.items()[i]; key.text {
		case "counter":
			if n.kind != text || strings.TrimSpace(n.text) == "" {
				r.problem(n, where, "counter must not be empty")
				continue
			}
			r.counter = r.label(n, &place{in: where, name: "counter"})
		case "window":
			r.window = r.loader.window(n, where, false)
		case "increment":
			if n.kind != number || !n.whole || n.number() < 0 || n.number() > maxCount {
				r.problem(n, where, "increment must be a whole number, at least 0, got %s", shown(n))
				continue
			}
			r.increment = max(int64(n.number()), 1)
		case "increment_from":
			p, ok := strings.CutPrefix(n.text, "args.")
			if r.from = r.argument(p); n.kind != text || !ok || r.from == nil {
				r.problem(n, where, `increment_from must start with "args." and name an argument, got %s`, shown(n))
			}
		default:
			r.unknown(key, where, "counter", "window", "increment", "increment_from")
		}
	}
	for _, need := range []string{"counter", "window"} {
		if r.state.get(need) == nil {
			r.problem(r.state, where, "%s is missing: %s must not be empty", need, need)
		}
	}
	if from := r.state.get("increment_from"); from != nil && r.state.get("increment") != nil {
		r.warn(from, where, "increment means nothing next to increment_from")
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
