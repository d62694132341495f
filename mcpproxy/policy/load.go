package policy

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Words that policies use. categories are those of mcpproxy/risk, which this
// package must not import; a test in cmd compares them.
var (
	windows    = map[string]int64{"minute": 60, "hour": 3600, "day": 86400}
	categories = []string{"read", "write", "execute", "destructive", "financial"}
)

// Limits of a policy, so that a hostile file costs little.
const (
	maxName     = 256       // code points of a name
	maxPattern  = 4096      // bytes of a regular expression
	maxPrograms = 100_000   // instructions of all regular expressions
	maxCount    = 1<<53 - 1 // beyond it a float64 is not exact
	maxWindow   = 366 * 86400
)

// Load compiles a policy. name is that of its file. It is in errors, and its
// suffix decides what nothing else can: whether the default of a file without
// keys of any dialect may be missing. It may, as in Intercept, if the name ends in
// .yaml or .yml. The error is an *Error with all problems.
func Load(source []byte, name string) (*Policy, error) {
	root, problem := read(source, name)
	if problem != nil {
		return nil, newError(name, []Problem{*problem})
	}
	l := &loader{name: name, policy: &Policy{Hash: hash(source), tools: map[string]*tool{}, specs: map[string]*spec{}}}
	if root.kind != object {
		l.problem(root, "the file has %s, want the names and values of a policy", root.kind)
		return nil, newError(name, l.problems)
	}
	l.load(root)
	if len(l.problems) > 0 {
		return nil, newError(name, l.problems)
	}
	return l.policy, nil
}

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

// A spec is what the source has about one tool, or about all tools.
type spec struct {
	node   *node
	deny   *verdict
	ask    *verdict
	rules  []ruleSpec
	limits []limitSpec
}

type ruleSpec struct {
	rule
	node       *node
	conditions []conditionSpec
}

// A conditionSpec is a condition about a path or a counter.
type conditionSpec struct {
	condition
	node    *node
	path    path
	counter *Counter
}

// A limitSpec is a limit, its counter and the argument that it adds.
type limitSpec struct {
	limit
	node    *node
	counter Counter
	from    path
}

func (l *loader) load(root *node) {
	l.detect(root)
	p := l.policy
	rules := p.Dialect == Intercept || p.Dialect == Pages
	members := map[string]func(*node){
		"version": l.version,
		"default": func(n *node) {
			if word, ok := l.word(n, "default", "default must be %s, got %q", []string{"allow", "deny"}); ok {
				l.policy.allow = word == "allow"
			}
		},
		"hide":       func(n *node) { p.Hide = l.toolNames(n, "hide", true) },
		"tools":      l.tools,
		"auditproxy": l.own,
	}
	if rules {
		l.policy.allow = true // if default is missing
		members["description"] = func(n *node) { l.text(n, "description") }
	}
	if !rules || l.mixed {
		members["all_tools"] = l.allTools
	}
	l.members(root, "", members)
	if root.get("version") == nil {
		l.problem(root, `version is missing: version must be "1"`)
	}
	if !rules && root.get("default") == nil {
		l.problem(root, `default is missing: write "default": "deny", or "allow"`)
	}
	if len(l.problems) == 0 {
		l.compile()
	}
}

// Keys of a tool by dialect.
var (
	hostedKeys    = []string{"require", "deny_if", "limits"}
	questionKeys  = []string{"action", "reason", "rate_limit"}
	interceptKeys = []string{"rules"}
)

// detect chooses the dialect by the keys of all tools.
func (l *loader) detect(root *node) {
	var hosted, questions, rules, nameless *node
	if all := root.get("all_tools"); all != nil {
		hosted = all
	}
	if tools := root.get("tools"); tools != nil {
		for _, tool := range tools.items {
			for i, key := range tool.keys {
				switch {
				case slices.Contains(hostedKeys, key.text):
					hosted = earlier(hosted, key)
				case slices.Contains(questionKeys, key.text):
					questions = earlier(questions, key)
				case slices.Contains(interceptKeys, key.text):
					rules = earlier(rules, key)
					for _, rule := range tool.items[i].items {
						if rule.kind == object && rule.get("name") == nil {
							nameless = earlier(nameless, rule)
						}
					}
				}
			}
		}
	}
	lower := strings.ToLower(l.name)
	isYAML := strings.HasSuffix(lower, ".yaml") || strings.HasSuffix(lower, ".yml")
	switch d := &l.policy.Dialect; {
	case rules != nil && (hosted != nil || questions != nil):
		l.mixed = true
		*d = Intercept
		other := hosted
		if other == nil {
			other = questions
		}
		l.problem(later(rules, other), "mixed dialects: %q at line %d and %q at line %d cannot be in one file",
			rules.text, rules.line, cut(other.text, maxName), other.line)
	case nameless != nil:
		*d = Pages
	case rules != nil:
		*d = Intercept
	case hosted != nil:
		*d = Hosted
	case questions != nil:
		*d = Questions
	case isYAML && (root.get("auditproxy") == nil || root.get("default") == nil):
		*d = Intercept
	default:
		*d = Hosted
	}
}

func earlier(a, b *node) *node {
	if a == nil {
		return b
	}
	return a
}

func later(a, b *node) *node {
	if b.line > a.line || b.line == a.line && b.column > a.column {
		return b
	}
	return a
}

func (l *loader) version(n *node) {
	// Intercept's reader takes the number for the text.
	asNumber := n.kind == number && n.text == "1" && (l.policy.Dialect == Intercept || l.policy.Dialect == Pages)
	if (n.kind != text || n.text != "1") && !asNumber {
		hint := ""
		if n.kind == number {
			hint = ": write it in quotes"
		}
		l.problem(n, `version must be "1", got %s%s`, shown(n), hint)
	}
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

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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

// tools reads the members of tools: first the names of Intercept's counters,
// which conditions anywhere may use.
func (l *loader) tools(n *node) {
	if n.kind != object {
		l.problem(n, "tools: want names of tools, got %s", shown(n))
		return
	}
	l.counters = map[string]map[string]*counter{}
	for i, key := range n.keys {
		if rules := n.items[i].get("rules"); rules != nil && n.items[i].kind == object {
			l.declare(key.text, rules)
		}
	}
	for i, key := range n.keys {
		name := key.text
		where := "tools." + short(name)
		switch {
		case strings.TrimSpace(name) == "":
			l.problem(key, "tools: the name of a tool must not be empty")
		case cut(name, maxName) != name:
			l.problem(key, "%s: the name has more than %d characters", where, maxName)
		case l.policy.specs[name] != nil:
			l.problem(key, "tools: duplicate key %q", short(name))
		default:
			l.policy.specs[name] = &spec{node: key}
			l.mention(key, "tools")
			l.tool(n.items[i], key, where)
		}
	}
}

// tool reads what the source has about one tool, in the dialect of its keys.
func (l *loader) tool(n, key *node, where string) {
	s := l.policy.specs[key.text]
	if n.kind == null {
		l.problem(n, "%s: want names and values, got null: write {} to allow the tool", where)
		return
	}
	rules := l.policy.Dialect == Intercept || l.policy.Dialect == Pages
	if l.mixed { // which is reported; the rest of the tool is still checked
		rules = n.get("rules") != nil
	}
	if rules {
		members := map[string]func(*node){"rules": func(n *node) { l.rules(n, key.text, where, s) }}
		if l.mixed {
			for _, name := range slices.Concat(hostedKeys, questionKeys) {
				members[name] = func(*node) {}
			}
		}
		l.members(n, where, members)
		return
	}
	if key.text == "*" {
		l.problem(key, `%s: "*" is not the name of a tool here: use default, or all_tools for limits`, where)
	}
	l.hosted(n, key.text, where, s)
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

func (l *loader) warn(at *node, format string, args ...any) {
	w := Problem{at.line, at.column, fmt.Sprintf(format, args...)}
	l.policy.warnings = append(l.policy.warnings, w)
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

// compile makes the tools.
func (l *loader) compile() {
	p := l.policy
	for name := range p.specs {
		p.tools[name] = p.compile(name)
	}
	for _, names := range [][]string{p.Hide, p.denied, p.allowed} {
		for _, name := range names {
			p.tools[name] = p.compile(name)
		}
	}
	delete(p.tools, "*")
	p.other = p.compile("")
}

// compile compiles what applies to the calls of a name; "" stands for all
// names that the policy does not have.
func (p *Policy) compile(name string) *tool {
	s := p.specs[name]
	t := &tool{free: slices.Contains(p.allowed, name), listed: s != nil}
	switch {
	case slices.Contains(p.Hide, name) || slices.Contains(p.Hide, "*"):
		t.hidden = true
		t.deny = &verdict{rule: "(hidden)", words: "is hidden by policy"}
	case slices.Contains(p.denied, name):
		t.deny = &verdict{rule: pointer("auditproxy", "denied_tools", name), words: "is denied by policy"}
	case s != nil && s.deny != nil:
		t.deny = s.deny
	}
	if !t.listed && !p.allow {
		t.closed = &verdict{rule: "(default deny)", words: "is not permitted by policy"}
		return t
	}
	for _, s := range []*spec{s, p.specs["*"]} {
		if s != nil {
			t.add(s)
		}
	}
	return t
}

// add compiles the rules and limits of s behind those that t has.
func (t *tool) add(s *spec) {
	if s.ask != nil {
		t.ask = s.ask
	}
	for _, r := range s.rules {
		compiled := r.rule
		for _, c := range r.conditions {
			if c.counter != nil {
				c.condition.counter = t.counter(*c.counter)
				compiled.counted = true
			} else {
				c.condition.path = t.path(c.path)
			}
			compiled.conditions = append(compiled.conditions, c.condition)
		}
		t.rules = append(t.rules, compiled)
	}
	for _, ls := range s.limits {
		compiled := ls.limit
		compiled.counter = t.counter(ls.counter)
		compiled.from = -1
		if ls.from != nil {
			compiled.from = t.path(ls.from)
		}
		t.limits = append(t.limits, compiled)
	}
}

func (t *tool) path(p path) int {
	for i := range t.paths {
		if slices.Equal(t.paths[i], p) {
			return i
		}
	}
	t.paths = append(t.paths, p)
	return len(t.paths) - 1
}

func (t *tool) counter(c Counter) int {
	for i := range t.counters {
		if t.counters[i].Scope == c.Scope && t.counters[i].Key == c.Key {
			return i
		}
	}
	t.counters = append(t.counters, c)
	return len(t.counters) - 1
}
