package policy

import (
	"slices"
	"strings"
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
