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
		for name, v := range s.vars {
			if old, ok := before[name]; ok && !old.equal(v) {
				before[name] = variable{from: old.from | v.from}
			} else if !ok {
				if before == nil {
					before = map[string]variable{}
				}
				before[name] = v
			}
		}
	}
	s.vars = before
	return out
}

// set assigns. In code that may not run, the variable may also keep what it had.
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
	} else if ok && s.branch > 0 && !old.equal(v) {
		v.known, v.values = false, nil
		v.from |= old.from
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
				return variable{}, false
			case n <= len(s.params):
				f := s.params[n-1]
				return variable{values: []string{f.Text}, known: !f.Unknown, from: f.From}, !f.Unknown
			}
			return variable{values: []string{value}, known: true}, true
		}
		return variable{}, false
	}
	return variable{values: []string{value}, known: true}, true
}

// ifs returns the characters that split.
func (s *Shell) ifs() string {
	if v, ok := s.vars["IFS"]; ok && v.known && len(v.values) == 1 {
		return v.values[0]
	}
	return " \t\n"
}
