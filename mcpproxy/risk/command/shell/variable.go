package shell

import (
	"maps"
	"strconv"
)

// inSubshell calls f, whose assignments do not last. Where they could, because a shell
// runs the last command of a pipe itself, both values are possible.
func (s *Shell) inSubshell(lasts bool, f func() Stream) Stream {
	if !s.Spend(len(s.vars)) {
		return Anything
	}
	before := maps.Clone(s.vars)
	out := f()
	if lasts {
		s.join(before)
	} else {
		s.vars = before
	}
	return out
}

// either follows alternatives, of which one runs, and nil does nothing. Afterwards a
// variable may be what any of them made of it.
func (s *Shell) either(parts ...func() Stream) Stream {
	before, out := s.vars, Stream{Kind: Empty}
	var after map[string]variable
	for i, part := range parts {
		if !s.Spend(len(before)) {
			return Anything
		}
		s.vars = maps.Clone(before)
		if part != nil {
			out = out.FollowedBy(part())
		}
		if i > 0 {
			s.join(after)
		}
		after = s.vars
	}
	return out
}

// maybe follows what may not run.
func (s *Shell) maybe(f func() Stream) Stream { return s.either(nil, f) }

// orOutside is v, or what the name is in other.
func (s *Shell) orOutside(name string, v variable, other map[string]variable) variable {
	old, ok := other[name]
	if !ok {
		old = s.before(name)
	}
	if !ok && !old.known {
		v.assumed = true
		return v
	}
	return v.or(old)
}

// join makes each variable one that is as it is, or as in other. What only one of the two
// has may be what an earlier text or the environment made it.
func (s *Shell) join(other map[string]variable) {
	if !s.Spend(len(other)) {
		return
	}
	for name, v := range s.vars {
		s.vars[name] = s.orOutside(name, v, other)
	}
	for name, v := range other {
		if _, ok := s.vars[name]; !ok {
			s.bind(name, s.orOutside(name, v, nil))
		}
	}
}

// local keeps what a variable is outside of the function that declares it.
func (s *Shell) local(builtin, name string) {
	if _, ok := s.locals[name]; ok || s.locals == nil || builtin == "export" || builtin == "readonly" {
		return
	}
	s.locals[name] = nil
	if v, ok := s.vars[name]; ok {
		s.locals[name] = &v
	}
}

// set assigns.
func (s *Shell) set(name string, v variable, add bool) {
	name = s.meant(name)
	old, ok := s.vars[name]
	if add && ok {
		v.known = v.known && old.known
		v.from |= old.from
		if len(v.values) == 1 && len(old.values) == 1 {
			v.values = []string{old.values[0] + v.values[0]}
		} else {
			v.values = append(append([]string(nil), old.values...), v.values...)
		}
	} else if add {
		v.known, v.values = false, nil
	}
	size := 0
	for _, value := range v.values {
		size += len(value)
	}
	if size > MaxValue || !s.Spend(size/valueBytes) {
		v.known, v.values = false, nil
	}
	s.bind(name, v)
}

// bind makes v what is known of a variable.
func (s *Shell) bind(name string, v variable) {
	if s.vars == nil {
		s.vars = map[string]variable{}
	}
	s.vars[name] = v
}

// meant returns the name that a reference of declare -n leads to.
func (s *Shell) meant(name string) string {
	const most = 8 // references in a row; they may form a circle
	for range most {
		v := s.vars[name]
		if !v.ref || !v.known || len(v.values) != 1 {
			break
		}
		name = v.values[0]
	}
	return name
}

// lookup returns the value of a variable, and whether it is known.
func (s *Shell) lookup(name string) (variable, bool) {
	name = s.meant(name)
	if v, ok := s.vars[name]; ok {
		return v, v.known
	}
	v := s.before(name)
	return v, v.known
}

// before returns what a variable is that the text does not set.
func (s *Shell) before(name string) variable {
	value := ""
	switch name {
	case "SHELL", "BASH":
		value = "/bin/sh"
	case "HOME":
		value = "~"
	case "IFS":
		value = " \t\n"
	case "PWD":
		value = "."
	default:
		if n, err := strconv.Atoi(name); err == nil {
			switch {
			case n == 0 && s.zero != "":
				value = s.zero
			case n == 0:
				value = "sh"
			case !s.hasParams:
				return variable{}
			case n <= len(s.params):
				f := s.params[n-1]
				return variable{values: []string{f.Text}, known: !f.Unknown, from: f.From}
			}
			break
		}
		return variable{}
	}
	return variable{values: []string{value}, known: true}
}

// ifs returns the characters that split.
func (s *Shell) ifs() string {
	if v, ok := s.vars["IFS"]; ok && v.known && len(v.values) == 1 {
		return v.values[0]
	}
	return " \t\n"
}
