package risk

import "strings"

// Flags are the parsed arguments of a command.
type flags struct {
	names []string // of the options, short and long, in order, without dashes and values
	vals  []option // of the options that take a value
	args  []field  // the operands
	help  bool     // help or the version is asked for in front of the first operand
}

type option struct {
	name  string
	value field
}

// parseFlags parses arguments as GNU getopt does: options may follow operands,
// until "--". Short lists the letters that take a value, long the names, both of
// which may be short of an option that does not matter.
func parseFlags(f []field, short, long string) flags {
	var p flags
	for i := 0; i < len(f); i++ {
		w := f[i]
		switch {
		case w.s == "--" && !w.unknown:
			p.args = append(p.args, f[i+1:]...)
			return p
		case len(w.s) < 2 || w.s[0] != '-':
			p.args = append(p.args, w)
		case w.s[1] == '-':
			name, value, has := strings.Cut(w.s[2:], "=")
			if (name == "help" || name == "version") && len(p.args) == 0 {
				p.help = true
			}
			p.names = append(p.names, name)
			if has {
				p.vals = append(p.vals, option{name, field{s: value, unknown: w.unknown, reads: w.reads, from: w.from}})
			} else if i+1 < len(f) && listed(long, name) {
				i++
				p.vals = append(p.vals, option{name, f[i]})
			}
		default:
			for j := 1; j < len(w.s); j++ {
				c := w.s[j : j+1]
				p.names = append(p.names, c)
				if !strings.Contains(short, c) {
					continue
				}
				if j+1 < len(w.s) {
					w.s = w.s[j+1:]
					p.vals = append(p.vals, option{c, w})
				} else if i+1 < len(f) {
					i++
					p.vals = append(p.vals, option{c, f[i]})
				}
				break
			}
		}
	}
	return p
}

// listed reports whether the list of words has one that starts with name.
func listed(list, name string) bool {
	for w := range strings.FieldsSeq(list) {
		if abbreviates(name, w) {
			return true
		}
	}
	return false
}

// abbreviates reports whether name is an abbreviation that programs accept.
func abbreviates(name, full string) bool {
	return name == full || len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name)
}

// has reports whether one of the options was given.
func (p *flags) has(names ...string) bool {
	for _, given := range p.names {
		for _, name := range names {
			if abbreviates(given, name) {
				return true
			}
		}
	}
	return false
}

// dry reports whether the last word about the option says yes.
func (p *flags) dry(names ...string) bool {
	dry := false
	for _, given := range p.names {
		for _, name := range names {
			switch {
			case given == name || len(given) > 2 && abbreviates(given, name):
				dry = true
			case strings.TrimPrefix(given, "no-") == name:
				dry = false
			}
		}
	}
	return dry
}

// value returns the last value of an option.
func (p *flags) value(names ...string) (field, bool) {
	for i := len(p.vals) - 1; i >= 0; i-- {
		for _, name := range names {
			if abbreviates(p.vals[i].name, name) {
				return p.vals[i].value, true
			}
		}
	}
	return field{}, false
}

// arg returns operand i or an empty field.
func (p *flags) arg(i int) string {
	if i < len(p.args) {
		return p.args[i].s
	}
	return ""
}

// any reports whether one of the operands is one of the words.
func (p *flags) any(words ...string) bool {
	for _, a := range p.args {
		if oneOf(a.s, words...) {
			return true
		}
	}
	return false
}

func oneOf(s string, words ...string) bool {
	for _, w := range words {
		if s == w {
			return true
		}
	}
	return false
}

// joinFields returns the fields as one text, with a space between them, in which a
// shell reads what is not known as a variable.
func joinFields(f []field) string {
	var b strings.Builder
	for i, w := range f {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.code())
	}
	return b.String()
}

// code returns the field as text for a shell.
func (f field) code() string { return strings.ReplaceAll(f.s, hole, "${_}") }

// baseName returns the last component of a path, which is the command's name.
func baseName(s string) string {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	if i := strings.LastIndexByte(s, '\\'); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > 4 && strings.EqualFold(s[len(s)-4:], ".exe") {
		s = s[:len(s)-4]
	}
	return s
}
