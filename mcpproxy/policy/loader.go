package policy

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"auditproxy/redact/names"
	"auditproxy/schemas/escape"
)

// Limits of a policy, so that a hostile file costs little.
const (
	maxName     = 256       // code points of a name
	maxPattern  = 4096      // bytes of a regular expression
	maxPrograms = 100_000   // instructions of all regular expressions
	maxLazy     = 1000      // instructions of one that is compiled at its first use: in 0.1 ms
	maxCount    = 1<<53 - 1 // beyond it a float64 is not exact
)

// A loader checks and compiles one policy.
type loader struct {
	name     string
	policy   *Policy
	problems []Problem
	programs int // instructions of regular expressions so far

	counters map[string]map[string]*counter // of Intercept's rules, by tool and name
	mixed    bool                           // reported

	conditions slab[conditionSpec]
	operands   slab[operand]
	names      slab[string]

	secrets *names.Classifier // made for the first condition
	folded  names.Folded
}

// A place is the path of a value, as messages have it. Only they need its text.
type place struct {
	in    *place // nil at the top
	name  string // of a member; "" for an element
	index int    // of an element
}

func (p *place) String() string { return string(p.append(nil)) }

func (p *place) append(dst []byte) []byte {
	if p.in != nil {
		dst = p.in.append(dst)
		if p.name != "" {
			dst = append(dst, '.')
		}
	}
	if p.name == "" {
		return append(strconv.AppendInt(append(dst, '['), int64(p.index), 10), ']')
	}
	return append(dst, p.name...)
}

// message is a problem or a warning about a value; where is nil where the text
// has the place itself.
func message(at *node, where *place, format string, args []any) Problem {
	p := at.problem(format, args...)
	if where != nil {
		p.Text = where.String() + ": " + p.Text
	}
	return *p
}

// problem adds a problem. Inlined at its sixty places, it would take 16 KB of the proxy.
//
//go:noinline
func (l *loader) problem(at *node, where *place, format string, args ...any) {
	l.problems = append(l.problems, message(at, where, format, args))
}

func (l *loader) warn(at *node, where *place, format string, args ...any) {
	l.policy.warnings = append(l.policy.warnings, message(at, where, format, args))
}

// shown is a value in a message.
func shown(n *node) string {
	switch n.kind {
	case text, number, boolean:
		return n.quote(n.text)
	}
	return n.kind.String()
}

// object reports whether n has members, and a problem if not.
func (l *loader) object(n *node, where *place) bool {
	if n.kind != object {
		l.problem(n, where, "want names and values, got %s", shown(n))
		return false
	}
	return true
}

// list is object for elements.
func (l *loader) list(n *node, where *place) bool {
	if n.kind != list {
		l.problem(n, where, "want a list, got %s", shown(n))
		return false
	}
	return true
}

// again reports a name that its object had before, whose value counts.
func (l *loader) again(key *node, where *place) bool {
	if key.again {
		l.problem(key, where, "duplicate key %q", short(key.text))
	}
	return key.again
}

// unknown reports a name that is none of the known ones.
func (l *loader) unknown(key *node, where *place, known ...string) {
	l.problem(key, where, "unknown key %q: %s", short(key.text), meant(key.text, slices.Sorted(slices.Values(known))))
}

// text reads a text that is not empty.
func (l *loader) text(n *node, where *place) string {
	switch {
	case n.kind != text:
		l.problem(n, where, "want text, got %s", shown(n))
	case strings.TrimSpace(n.text) == "":
		l.problem(n, nil, "%s must not be empty", where.String())
	default:
		return n.text
	}
	return ""
}

// label is text that names something.
func (l *loader) label(n *node, where *place) string {
	s := l.text(n, where)
	l.unseen(n, where)
	if cut(s, maxName) != s {
		l.problem(n, where, "the name has more than %d characters", maxName)
		return ""
	}
	return s
}

// word reads one of the known words; format gets the known ones and the value.
func (l *loader) word(n *node, where *place, format string, known ...string) (string, bool) {
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
	l.problem(n, where, format+"%s", listed(known), got, hint)
	return "", false
}

// unseen warns of white space and invisible characters, which make a name another one.
func (l *loader) unseen(n *node, where *place) {
	if strings.TrimSpace(n.text) != n.text || strings.ContainsFunc(n.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		l.warn(n, where, "the name %q has white space around it or characters that cannot be seen", short(n.text))
	}
}

// written checks a text that is compared with arguments.
func (l *loader) written(n *node, where *place) {
	for _, c := range n.text {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			l.problem(n, where, `the text has the control character %q, as "\b" gives in double quotes: write '\b' for one of a regex`, c)
			return
		}
	}
	if strings.HasSuffix(n.text, "\n") {
		l.warn(n, where, "the text ends in a line break, which arguments must have too: write |- instead of |")
	}
}

// labels reads a list of names that differ.
func (l *loader) labels(n *node, where *place) (names []string) {
	if !l.list(n, where) {
		return nil
	}
	for i, item := range n.items() {
		at := &place{in: where, index: i}
		if item.kind == text && strings.TrimSpace(item.text) == "" {
			l.problem(item, at, "entry must not be empty")
			continue
		}
		name := l.label(item, at)
		if name != "" && slices.Contains(names, name) {
			l.problem(item, where, "duplicate entry %q", short(name))
			continue
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// toolNames reads a list of names of tools.
func (l *loader) toolNames(n *node, where *place, star bool) []string {
	names := l.labels(n, where)
	for _, item := range n.items() {
		if item.kind == text && item.text == "*" && !star {
			l.problem(item, where, `"*" is not the name of a tool: list the names`)
		}
		l.mention(item, where.String())
	}
	return names
}

// passes reports whether a name is that of a method that passes, whatever a policy
// says, and hardly that of a tool; a call of a tool is decided by the tool's name.
func passes(name string) bool {
	switch name {
	case "tools/call", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list", "tasks/get", "logging/setLevel", "server/discover":
		return true
	}
	return strings.HasPrefix(name, "notifications/")
}

// mention notes the name of a tool, to be compared with the tools of servers.
func (l *loader) mention(n *node, where string) {
	if n.text != "*" {
		if passes(n.text) {
			l.policy.warnings = append(l.policy.warnings, *n.problem("%s: a rule for the method %q has no effect", where, n.text))
		}
		if strings.ContainsAny(n.text, "*?") {
			l.policy.warnings = append(l.policy.warnings, *n.problem("%s: names are compared as they are: %q is no pattern", where, short(n.text)))
		}
		if escape.IsMixed(n.text) {
			l.policy.warnings = append(l.policy.warnings, *n.problem("%s: %s has letters that look like others", where, strconv.QuoteToASCII(short(n.text))))
		}
		l.policy.mentions = append(l.policy.mentions, mention{n, where})
	}
}

// pattern checks a regular expression. The sum of their sizes is bounded, since
// a few characters can compile to thousands of instructions.
func (l *loader) pattern(n *node, where *place) (p pattern) {
	if n.kind != text {
		l.problem(n, where, "regex value must be a string, got %s", shown(n))
		return p
	}
	if len(n.text) > maxPattern {
		l.problem(n, where, "the regex has %d bytes, want at most %d", len(n.text), maxPattern)
		return p
	}
	l.written(n, where)
	parsed, err := syntax.Parse(n.text, syntax.Perl)
	if err != nil {
		if e := new(syntax.Error); n.secret && errors.As(err, &e) {
			err = errors.New(string(e.Code)) // without a part of the text
		}
		l.problem(n, where, "invalid regex %s: %s", shown(n), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
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
		l.problem(n, where, "the regular expressions of this file are too large: use smaller repetitions")
		return p
	}
	expr := n.text
	p.re = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) }) // which compiles: program is made of the same
	if len(program.Inst) > maxLazy {
		p.re() // no call should wait for it
	}
	p.need, p.fold = needed(parsed)
	p.fold = p.fold && p.need != ""
	return p
}

// conditionsOf reads the conditions of a rule. roots are what their paths may
// start with.
func (l *loader) conditionsOf(n *node, where *place, roots ...string) []conditionSpec {
	if !l.list(n, where) {
		return nil
	}
	conditions := l.conditions.take(len(n.items()))
	for i, item := range n.items() {
		l.condition(&conditions[i], item, &place{in: where, index: i}, roots)
	}
	return conditions
}

func (l *loader) condition(c *conditionSpec, n *node, where *place, roots []string) {
	c.node = n
	c.condition.path, c.condition.counter = -1, -1
	if !l.object(n, where) {
		return
	}
	var path, op, value *node
	for i, key := range n.keys() {
		if l.again(key, where) {
			continue
		}
		switch n := n.items()[i]; key.text {
		case "path":
			path = n
			c.path, c.counter = l.path(n, where, roots)
		case "op":
			op = n
		case "value":
			value = n
		default:
			l.unknown(key, where, "path", "op", "value")
		}
	}
	if path == nil {
		l.problem(n, where, "path is missing: path must start with %s", listed(roots))
	}
	switch {
	case op == nil:
		l.problem(n, where, "op is missing: want %s", listed(operators))
	case op.kind != text || !slices.Contains(operators, op.text):
		l.problem(op, where, "unknown operator %s: %s", shown(op), meant(op.text, operators))
	case value == nil:
		l.problem(n, where, "value is missing")
	default:
		written := c.path
		if path != nil && written == nil && c.counter == nil { // it does not start as a path does
			written = strings.Split(path.text, ".")
		}
		if l.isSecret(written) {
			value.conceal()
		}
		c.op, c.code = op.text, opcode(slices.Index(operators, op.text))
		l.operand(value, where, &c.condition)
	}
}

// isSecret reports whether arguments at p are secrets by a name. Those that are secrets by
// what people type into them, such as keys, are not: a pattern for them is none.
func (l *loader) isSecret(p path) bool {
	if l.secrets == nil {
		l.secrets = names.Strict(nil, nil)
	}
	return slices.ContainsFunc(p, func(name string) bool {
		l.folded.Fold([]byte(name))
		return l.secrets.Sensitive(&l.folded, names.NoWhole|names.Keyed([]byte(name)))
	})
}

// operand checks the value of a condition by its operator.
func (l *loader) operand(n *node, where *place, c *condition) {
	l.doubt(n, where)
	values := []*node{n}
	switch c.op {
	case "in", "not_in":
		if n.kind != list {
			l.problem(n, where, "operator %q requires a list value, got %s", c.op, shown(n))
			return
		}
		values = n.items()
	case "lt", "lte", "gt", "gte":
		if n.kind != number {
			l.problem(n, where, "operator %q requires a numeric value, got %s", c.op, shown(n))
		}
	case "exists":
		if n.kind != boolean {
			l.problem(n, where, "operator %q requires a boolean value, got %s", c.op, shown(n))
		}
		c.exists = n.text == "true"
	case "regex":
		c.pattern = l.pattern(n, where)
	case "contains":
		if n.kind == number {
			l.warn(n, where, "a number is looked for in lists only: put %s in quotes for texts", shown(n))
		}
	}
	if c.op == "in" && len(values) == 0 {
		l.warn(n, where, "nothing is in an empty list")
	}
	c.want = l.operands.take(len(values))
	for i, value := range values {
		if value.kind == text && c.op != "regex" { // which pattern has checked
			l.written(value, where)
		}
		c.want[i] = operandOf(value)
	}
}

// doubt warns of values that other readers of YAML take for something else, and
// of duplicate keys inside values.
func (l *loader) doubt(n *node, where *place) {
	if n.doubt != none {
		l.warn(n, where, "readers of YAML 1.1 take %s for %s: put it in quotes", n.bare(n.text), n.doubt)
	}
	if n.kind == number && n.whole && math.Abs(n.number()) > maxCount {
		l.warn(n, where, "numbers are compared as float64, which is not exact for %s", shown(n))
	}
	for _, key := range n.keys() {
		l.again(key, where)
	}
	for _, item := range n.items() {
		l.doubt(item, where)
	}
}

// path reads the path of a condition: an argument's, or a counter's.
func (l *loader) path(n *node, where *place, roots []string) (path, *Counter) {
	s := ""
	if n.kind == text {
		s = n.text
	}
	if rest, ok := strings.CutPrefix(s, "args."); ok {
		if p := l.argument(rest); p != nil {
			if l.unseen(n, where); strings.ContainsRune(rest, '[') {
				l.warn(n, where, "path %q has %q in a name: paths lead through objects only", short(s), "[")
			}
			return p, nil
		}
		l.problem(n, where, "path %q has an empty name", short(s))
		return nil, nil
	}
	if rest, ok := strings.CutPrefix(s, "state."); ok && slices.Contains(roots, "state.") {
		return nil, l.stateCounter(n, where, rest)
	}
	l.problem(n, where, "path must start with %s, got %s", listed(roots), shown(n))
	return nil, nil
}

// argument splits the names that lead to an argument, nil if one is empty.
func (l *loader) argument(dotted string) path {
	p := l.names.take(strings.Count(dotted, ".") + 1)
	for i := range p {
		if p[i], dotted, _ = strings.Cut(dotted, "."); p[i] == "" {
			return nil
		}
	}
	return p
}

// window reads the window of a limit: a word, or seconds where they are allowed.
func (l *loader) window(n *node, where *place, seconds bool) int64 {
	if n.kind == text && windows[n.text] != 0 {
		return windows[n.text]
	}
	if n.kind == number && seconds {
		if f := n.number(); n.whole && 1 <= f && f <= maxWindow {
			return int64(f)
		}
		l.problem(n, where, "window must be whole seconds from 1 to %d, got %s", maxWindow, shown(n))
		return 0
	}
	known := []string{"minute", "hour", "day"}
	hint := ""
	if m := meant(n.text, known); n.kind == text && strings.HasPrefix(m, "did") {
		hint = ": " + m
	}
	l.problem(n, where, "window must be %s, got %s%s", listed(known), shown(n), hint)
	return 0
}

// maximum reads the maximum of a limit.
func (l *loader) maximum(n *node, where *place) int64 {
	if n.kind != number || !n.whole || n.number() < 1 || n.number() > maxCount {
		l.problem(n, where, "max must be a positive whole number, got %s", shown(n))
		return 0
	}
	return int64(n.number())
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
func (l *loader) stateCounter(n *node, where *place, rest string) *Counter {
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
				l.problem(n, where, "path %q names two counters: rename one", short("state."+rest))
				return nil
			}
			found = interceptCounter(tool, name, c.window)
		}
	}
	if found == nil {
		l.problem(n, where, "condition references state.%s but no matching state block found", short(rest))
	}
	return found
}

// global is what paths call the counters of the rules of all tools.
const global = "_global"

func interceptCounter(tool, name string, window int64) *Counter {
	key := pointer("tools", tool, "state", name) + "@" + strconv.FormatInt(window, 10)
	return &Counter{Scope: User, Key: key, Window: window, refund: true}
}
