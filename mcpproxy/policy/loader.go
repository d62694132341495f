package policy

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Limits of a policy, so that a hostile file costs little.
const (
	maxName     = 256       // code points of a name
	maxPattern  = 4096      // bytes of a regular expression
	maxPrograms = 100_000   // instructions of all regular expressions
	maxCount    = 1<<53 - 1 // beyond it a float64 is not exact
	maxWindow   = 366 * 86400
)

// A loader checks and compiles one policy.
type loader struct {
	name     string
	policy   *Policy
	problems []Problem
	programs int // instructions of regular expressions so far

	counters map[string]map[string]*counter // of Intercept's rules, by tool and name
	mixed    bool                           // reported
}

func (l *loader) problem(at *node, format string, args ...any) {
	l.problems = append(l.problems, Problem{at.line, at.column, fmt.Sprintf(format, args...)})
}

func (l *loader) warn(at *node, format string, args ...any) {
	w := Problem{at.line, at.column, fmt.Sprintf(format, args...)}
	l.policy.warnings = append(l.policy.warnings, w)
}

// shown is a value in a message.
func shown(n *node) string {
	if n.kind == text {
		return fmt.Sprintf("%q", short(n.text))
	}
	if n.kind == number || n.kind == boolean {
		return short(n.text)
	}
	return n.kind.String()
}

// members calls the function for each member of n, and reports unknown and
// duplicate ones. where is the path of n.
func (l *loader) members(n *node, where string, members map[string]func(*node)) bool {
	if n.kind != object {
		l.problem(n, "%swant names and values, got %s", prefix(where), shown(n))
		return false
	}
	seen := map[string]bool{}
	for i, key := range n.keys {
		take, known := members[key.text]
		switch {
		case seen[key.text]:
			l.problem(key, "%sduplicate key %q", prefix(where), short(key.text))
		case !known:
			l.problem(key, "%sunknown key %q: %s", prefix(where), short(key.text), meant(key.text, sorted(members)))
		default:
			take(n.items[i])
		}
		seen[key.text] = true
	}
	return true
}

func prefix(where string) string {
	if where == "" {
		return ""
	}
	return where + ": "
}

// text reads a text that is not empty.
func (l *loader) text(n *node, where string) string {
	switch {
	case n.kind != text:
		l.problem(n, "%s: want text, got %s", where, shown(n))
	case strings.TrimSpace(n.text) == "":
		l.problem(n, "%s must not be empty", where)
	default:
		return n.text
	}
	return ""
}

// label is text that names something.
func (l *loader) label(n *node, where string) string {
	s := l.text(n, where)
	if cut(s, maxName) != s {
		l.problem(n, "%s: the name has more than %d characters", where, maxName)
		return ""
	}
	return s
}

// word reads one of the known words; format gets the known ones and the value.
func (l *loader) word(n *node, where, format string, known []string) (string, bool) {
	if n.kind == text && slices.Contains(known, n.text) {
		return n.text, true
	}
	got, hint := n.kind.String(), ""
	if n.kind != object && n.kind != list && n.kind != null {
		got = short(n.text)
		if m := meant(n.text, known); strings.HasPrefix(m, "did") {
			hint = ": " + m
		}
	}
	l.problem(n, format+"%s", listed(known), got, hint)
	return "", false
}

// labels reads a list of names that differ.
func (l *loader) labels(n *node, where string) (names []string) {
	if n.kind != list {
		l.problem(n, "%s: want a list, got %s", where, shown(n))
		return nil
	}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", where, i)
		if item.kind == text && strings.TrimSpace(item.text) == "" {
			l.problem(item, "%s: entry must not be empty", at)
			continue
		}
		name := l.label(item, at)
		if name != "" && slices.Contains(names, name) {
			l.problem(item, "%s: duplicate entry %q", where, short(name))
			continue
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// toolNames reads a list of names of tools.
func (l *loader) toolNames(n *node, where string, star bool) []string {
	names := l.labels(n, where)
	for _, item := range n.items {
		if item.kind == text && item.text == "*" && !star {
			l.problem(item, `%s: "*" is not the name of a tool: list the names`, where)
		}
		l.mention(item, where)
	}
	return names
}

// mention notes the name of a tool, to be compared with the tools of servers.
func (l *loader) mention(n *node, where string) {
	if n.text != "*" {
		l.policy.mentions = append(l.policy.mentions, mention{n, where})
	}
}

// pattern checks a regular expression. The sum of their sizes is bounded, since
// a few characters can stand for thousands of instructions.
func (l *loader) pattern(n *node, where string) (p pattern) {
	if n.kind != text {
		l.problem(n, "%s: regex value must be a string, got %s", where, shown(n))
		return p
	}
	if len(n.text) > maxPattern {
		l.problem(n, "%s: the regex has %d bytes, want at most %d", where, len(n.text), maxPattern)
		return p
	}
	parsed, err := syntax.Parse(n.text, syntax.Perl)
	if err != nil {
		l.problem(n, "%s: invalid regex %q: %s", where, short(n.text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return p
	}
	if l.programs > maxPrograms {
		return p // reported
	}
	parsed = parsed.Simplify()
	program, err := syntax.Compile(parsed)
	if err == nil {
		l.programs += len(program.Inst)
	}
	if err != nil || l.programs > maxPrograms {
		l.problem(n, "%s: the regular expressions of this file are too large: use smaller repetitions", where)
		return p
	}
	if p.re, err = regexp.Compile(n.text); err != nil {
		l.problem(n, "%s: invalid regex %q: %v", where, short(n.text), err)
	}
	p.need, p.fold = needed(parsed)
	p.fold = p.fold && p.need != ""
	return p
}

// condition reads a condition. roots are what its path may start with.
func (l *loader) condition(n *node, where string, roots []string) (c conditionSpec) {
	c.node = n
	c.condition.path, c.condition.counter = -1, -1
	var value, op *node
	ok := l.members(n, where, map[string]func(*node){
		"path":  func(n *node) { c.path, c.counter = l.path(n, where, roots) },
		"op":    func(n *node) { op = n },
		"value": func(n *node) { value = n },
	})
	if !ok {
		return c
	}
	if n.get("path") == nil {
		l.problem(n, "%s: path is missing: path must start with %s", where, listed(roots))
	}
	switch {
	case op == nil:
		l.problem(n, "%s: op is missing: want %s", where, listed(operators))
	case op.kind != text || !slices.Contains(operators, op.text):
		l.problem(op, "%s: unknown operator %s: %s", where, shown(op), meant(op.text, operators))
	case value == nil:
		l.problem(n, "%s: value is missing", where)
	default:
		c.op = op.text
		l.operand(value, where, &c.condition)
	}
	return c
}

// operand checks the value of a condition by its operator.
func (l *loader) operand(n *node, where string, c *condition) {
	l.doubt(n, where)
	switch c.op {
	case "in", "not_in":
		if n.kind != list {
			l.problem(n, "%s: operator %q requires a list value, got %s", where, c.op, shown(n))
			return
		}
		for _, item := range n.items {
			c.want = append(c.want, operandOf(item))
		}
		return
	case "lt", "lte", "gt", "gte":
		if n.kind != number {
			l.problem(n, "%s: operator %q requires a numeric value, got %s", where, c.op, shown(n))
		}
	case "exists":
		if n.kind != boolean {
			l.problem(n, "%s: operator %q requires a boolean value, got %s", where, c.op, shown(n))
		}
		c.exists = n.text == "true"
	case "regex":
		c.pattern = l.pattern(n, where)
	}
	c.want = []operand{operandOf(n)}
}

// doubt warns of values that other readers of YAML take for something else, and
// of duplicate keys inside values.
func (l *loader) doubt(n *node, where string) {
	if n.doubt != "" {
		l.warn(n, "%s: readers of YAML 1.1 take %s for %s: put it in quotes", where, short(n.text), n.doubt)
	}
	if n.kind == number && n.whole && math.Abs(n.number) > maxCount {
		l.warn(n, "%s: numbers are compared as float64, which is not exact for %s", where, short(n.text))
	}
	seen := map[string]bool{}
	for _, key := range n.keys {
		if seen[key.text] {
			l.problem(key, "%s: duplicate key %q", where, short(key.text))
		}
		seen[key.text] = true
	}
	for _, item := range n.items {
		l.doubt(item, where)
	}
}

// path reads the path of a condition: an argument's, or a counter's.
func (l *loader) path(n *node, where string, roots []string) (path, *Counter) {
	s := ""
	if n.kind == text {
		s = n.text
	}
	if rest, ok := strings.CutPrefix(s, "args."); ok {
		if p := strings.Split(rest, "."); !slices.Contains(p, "") {
			return p, nil
		}
		l.problem(n, "%s: path %q has an empty name", where, short(s))
		return nil, nil
	}
	if rest, ok := strings.CutPrefix(s, "state."); ok && slices.Contains(roots, "state.") {
		return nil, l.stateCounter(n, where, rest)
	}
	l.problem(n, "%s: path must start with %s, got %s", where, listed(roots), shown(n))
	return nil, nil
}

// window reads the window of a limit: a word, or seconds where they are allowed.
func (l *loader) window(n *node, where string, seconds bool) int64 {
	if n.kind == text && windows[n.text] != 0 {
		return windows[n.text]
	}
	if n.kind == number && seconds {
		if n.whole && 1 <= n.number && n.number <= maxWindow {
			return int64(n.number)
		}
		l.problem(n, "%s: window must be whole seconds from 1 to %d, got %s", where, maxWindow, shown(n))
		return 0
	}
	known := []string{"minute", "hour", "day"}
	hint := ""
	if m := meant(n.text, known); n.kind == text && strings.HasPrefix(m, "did") {
		hint = ": " + m
	}
	l.problem(n, "%s: window must be %s, got %s%s", where, listed(known), shown(n), hint)
	return 0
}

// maximum reads the maximum of a limit.
func (l *loader) maximum(n *node, where string) int64 {
	if n.kind != number || !n.whole || n.number < 1 || n.number > maxCount {
		l.problem(n, "%s: max must be a positive whole number, got %s", where, shown(n))
		return 0
	}
	return int64(n.number)
}

func limitReason(most int64, window string) string {
	return fmt.Sprintf("Rate limit of %d per %s reached. Try again later.", most, window)
}

// A counter is one of Intercept's, by the tool and the rule that declare it.
type counter struct {
	rule   int // index
	window int64
}

// stateCounter finds the counter of a path: the name of a tool and that of a
// counter, both of which may have dots.
func (l *loader) stateCounter(n *node, where, rest string) *Counter {
	var found *Counter
	for i := range rest {
		if rest[i] != '.' {
			continue
		}
		tool, name := rest[:i], rest[i+1:]
		if tool == global && l.counters["*"] != nil {
			tool = "*"
		} else if tool == "*" {
			continue
		}
		if c := l.counters[tool][name]; c != nil {
			if found != nil {
				l.problem(n, "%s: path %q names two counters: rename one", where, short("state."+rest))
				return nil
			}
			found = interceptCounter(tool, name, c.window)
		}
	}
	if found == nil {
		l.problem(n, "%s: condition references state.%s but no matching state block found", where, short(rest))
	}
	return found
}

// global is what paths call the counters of the rules of all tools.
const global = "_global"

func interceptCounter(tool, name string, window int64) *Counter {
	key := pointer("tools", tool, "state", name) + "@" + strconv.FormatInt(window, 10)
	return &Counter{Scope: User, Key: key, Window: window, refund: true}
}
