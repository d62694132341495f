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
	l := &loader{name: name, policy: &Policy{Hash: hash(source), specs: map[string]*spec{}}}
	if root.kind != object {
		l.problem(root, nil, "the file has %s, want the names and values of a policy", root.kind)
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
	p.allow = rules // if default is missing
	known := []string{"version", "default", "hide", "tools", "auditproxy"}
	if rules {
		known = append(known, "description")
	}
	if !rules || l.mixed {
		known = append(known, "all_tools")
	}
	for i, key := range root.keys() {
		switch n := root.items()[i]; {
		case l.again(key, nil):
		case !slices.Contains(known, key.text):
			l.unknown(key, nil, known...)
		default:
			l.member(key.text, n)
		}
	}
	if root.get("version") == nil {
		l.problem(root, nil, `version is missing: version must be "1"`)
	}
	if !rules && root.get("default") == nil {
		l.problem(root, nil, `default is missing: write "default": "deny", or "allow"`)
	}
	if len(l.problems) == 0 {
		l.enter()
	}
}

// member reads a member of the file.
func (l *loader) member(name string, n *node) {
	switch name {
	case "version":
		l.version(n)
	case "default":
		if word, ok := l.word(n, nil, "default must be %s, got %q", "allow", "deny"); ok {
			l.policy.allow = word == "allow"
		}
	case "hide":
		l.policy.Hide = l.toolNames(n, &place{name: "hide"}, true)
	case "tools":
		l.tools(n)
	case "auditproxy":
		l.own(n)
	case "description":
		l.text(n, &place{name: "description"})
	case "all_tools":
		l.allTools(n)
	}
}

// detect chooses the dialect by the keys of all tools.
func (l *loader) detect(root *node) {
	var hosted, questions, rules, nameless *node
	for _, key := range root.keys() {
		if key.text == "all_tools" {
			hosted = key
		}
	}
	if tools := root.get("tools"); tools != nil {
		for _, tool := range tools.items() {
			for i, key := range tool.keys() {
				switch {
				case slices.Contains(hostedKeys, key.text):
					hosted = earlier(hosted, key)
				case slices.Contains(questionKeys, key.text):
					questions = earlier(questions, key)
				case slices.Contains(interceptKeys, key.text):
					rules = earlier(rules, key)
					for _, rule := range tool.items()[i].items() {
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
		l.problem(later(rules, other), nil, "mixed dialects: %q at line %d and %q at line %d cannot be in one file",
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
		l.problem(n, nil, `version must be "1", got %s%s`, shown(n), hint)
	}
}

// tools reads the members of tools: first the names of Intercept's counters,
// which conditions anywhere may use.
func (l *loader) tools(n *node) {
	where := &place{name: "tools"}
	if n.kind != object {
		l.problem(n, where, "want names of tools, got %s", shown(n))
		return
	}
	l.counters = map[string]map[string]*counter{}
	l.policy.mentions = slices.Grow(l.policy.mentions, len(n.keys()))
	for i, key := range n.keys() {
		if rules := n.items()[i].get("rules"); rules != nil && n.items()[i].kind == object {
			l.declare(key.text, rules)
		}
	}
	for i, key := range n.keys() {
		name := key.text
		at := &place{in: where, name: short(name)}
		switch {
		case strings.TrimSpace(name) == "":
			l.problem(key, where, "the name of a tool must not be empty")
		case cut(name, maxName) != name:
			l.problem(key, at, "the name has more than %d characters", maxName)
		case l.policy.specs[name] != nil:
			l.problem(key, where, "duplicate key %q", short(name))
		default:
			l.policy.specs[name] = &spec{node: key}
			l.unseen(key, at)
			l.mention(key, "tools")
			l.tool(n.items()[i], key, at)
		}
	}
}

// tool reads what the source has about one tool, in the dialect of its keys.
func (l *loader) tool(n, key *node, where *place) {
	s := l.policy.specs[key.text]
	if n.kind == null {
		l.problem(n, where, "want names and values, got null: write {} to allow the tool")
		return
	}
	rules := l.policy.Dialect == Intercept || l.policy.Dialect == Pages
	if l.mixed { // which is reported; the rest of the tool is still checked
		rules = n.get("rules") != nil
	}
	if !rules {
		if key.text == "*" {
			l.problem(key, where, `"*" is not the name of a tool here: use default, or all_tools for limits`)
		}
		l.hosted(n, key.text, where, s)
		return
	}
	if !l.object(n, where) {
		return
	}
	known := interceptKeys
	if l.mixed {
		known = slices.Concat(interceptKeys, hostedKeys, questionKeys)
	}
	for i, name := range n.keys() {
		switch {
		case l.again(name, where):
		case name.text == "rules":
			l.rules(n.items()[i], key.text, where, s)
		case !slices.Contains(known, name.text):
			l.unknown(name, where, known...)
		}
	}
}

// enter enters all names that the policy has.
func (l *loader) enter() {
	p := l.policy
	p.tools = make(map[string]*tool, len(p.specs))
	add := func(name string) {
		if name != "*" && p.tools[name] == nil {
			p.tools[name] = &tool{name: name}
		}
	}
	for name := range p.specs {
		add(name)
	}
	for _, names := range [][]string{p.Hide, p.denied, p.allowed} {
		for _, name := range names {
			add(name)
		}
	}
	p.other = new(tool)
}
