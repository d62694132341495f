package policy

import (
	"slices"
)

// of returns what p has about a name, compiled.
func (p *Policy) of(name string) *tool {
	t := p.tools[name]
	if t == nil {
		t = p.other
	}
	t.once.Do(func() { p.compile(t) })
	return t
}

func (p *Policy) compile(t *tool) {
	s := p.specs[t.name]
	t.free, t.listed = slices.Contains(p.allowed, t.name), s != nil
	switch {
	case slices.Contains(p.Hide, t.name) || slices.Contains(p.Hide, "*"):
		t.hidden = true
		t.deny = &verdict{rule: "(hidden)", words: "is hidden by policy"}
	case slices.Contains(p.denied, t.name):
		t.deny = &verdict{rule: pointer("auditproxy", "denied_tools", t.name), words: "is denied by policy"}
	case s != nil && s.deny != nil:
		t.deny = s.deny
	}
	if !t.listed && !p.allow {
		t.closed = &verdict{rule: "(default deny)", words: "is not permitted by policy"}
		return
	}
	for _, s := range []*spec{s, p.specs["*"]} {
		if s != nil {
			t.add(s)
		}
	}
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
				c.condition.chars = c.condition.searched()
			}
			compiled.conditions = append(compiled.conditions, c.condition)
		}
		if len(compiled.conditions) == 1 && compiled.denyIf && !compiled.counted && compiled.conditions[0].code != opExists {
			c := &compiled.conditions[0]
			compiled.only, compiled.path, compiled.chars, compiled.fold = true, c.path, c.chars, c.fold()
			if c.chars != (charset{}) && !slices.Contains(t.searched, c.path) {
				t.searched = append(t.searched, c.path)
			}
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
