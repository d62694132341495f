package shell

import (
	"strings"
)

// Flags are the parsed arguments of a command.
type Flags struct {
	Names  []string // of the options, short and long, in order, without dashes and values
	Values []Option // of the options that take a value
	Args   []Field  // the operands
	Help   bool     // help or the version is asked for in front of the first operand
}

// An Option is an option that takes a value.
type Option struct {
	Name  string
	Value Field
}

// ParseFlags parses arguments as GNU getopt does: options may follow operands,
// until "--". Short lists the letters that take a value, long the names, both of
// which may be short of an option that does not matter.
func ParseFlags(f []Field, short, long string) Flags {
	var p Flags
	for i := 0; i < len(f); i++ {
		w := f[i]
		switch {
		case w.Text == "--" && !w.Unknown:
			p.Args = append(p.Args, f[i+1:]...)
			return p
		case len(w.Text) < 2 || w.Text[0] != '-':
			p.Args = append(p.Args, w)
		case w.Text[1] == '-':
			name, value, has := strings.Cut(w.Text[2:], "=")
			if (name == "help" || name == "version") && len(p.Args) == 0 {
				p.Help = true
			}
			p.Names = append(p.Names, name)
			if has {
				p.Values = append(p.Values, Option{name, Field{Text: value, Unknown: w.Unknown, Reads: w.Reads, From: w.From}})
			} else if i+1 < len(f) && Listed(long, name) {
				i++
				p.Values = append(p.Values, Option{name, f[i]})
			}
		default:
			for j := 1; j < len(w.Text); j++ {
				c := w.Text[j : j+1]
				p.Names = append(p.Names, c)
				if !strings.Contains(short, c) {
					continue
				}
				if j+1 < len(w.Text) {
					w.Text = w.Text[j+1:]
					p.Values = append(p.Values, Option{c, w})
				} else if i+1 < len(f) {
					i++
					p.Values = append(p.Values, Option{c, f[i]})
				}
				break
			}
		}
	}
	return p
}

// Listed reports whether the list of words has one that starts with name.
func Listed(list, name string) bool {
	for w := range strings.FieldsSeq(list) {
		if Abbreviates(name, w) {
			return true
		}
	}
	return false
}

// Abbreviates reports whether name is an abbreviation that programs accept.
//
//go:noinline
func Abbreviates(name, full string) bool {
	return name == full || len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name)
}

// Has reports whether one of the options was given.
//
//go:noinline
func (p *Flags) Has(names ...string) bool {
	for _, given := range p.Names {
		for _, name := range names {
			if Abbreviates(given, name) {
				return true
			}
		}
	}
	return false
}

// Dry reports whether the last word about the option says yes.
func (p *Flags) Dry(names ...string) bool {
	dry := false
	for _, given := range p.Names {
		for _, name := range names {
			switch {
			case given == name || len(given) > 2 && Abbreviates(given, name):
				dry = true
			case strings.TrimPrefix(given, "no-") == name:
				dry = false
			}
		}
	}
	return dry
}

// Value returns the last value of an option.
func (p *Flags) Value(names ...string) (Field, bool) {
	for i := len(p.Values) - 1; i >= 0; i-- {
		for _, name := range names {
			if Abbreviates(p.Values[i].Name, name) {
				return p.Values[i].Value, true
			}
		}
	}
	return Field{}, false
}

// Arg returns operand i or an empty field.
//
//go:noinline
func (p *Flags) Arg(i int) string {
	if i < len(p.Args) {
		return p.Args[i].Text
	}
	return ""
}

// Any reports whether one of the operands is one of the words.
func (p *Flags) Any(words ...string) bool {
	for _, a := range p.Args {
		if OneOf(a.Text, words...) {
			return true
		}
	}
	return false
}

// AfterOptions returns the arguments behind the options.
func AfterOptions(args []Field, short, long string) []Field {
	for len(args) > 0 {
		a := args[0].Text
		if len(a) < 2 || a[0] != '-' {
			return args
		}
		args = args[1:]
		if a == "--" {
			return args
		}
		if name, ok := strings.CutPrefix(a, "--"); ok {
			if !strings.Contains(name, "=") && Listed(long, name) && len(args) > 0 {
				args = args[1:]
			}
			continue
		}
		for j := 1; j < len(a); j++ {
			if strings.IndexByte(short, a[j]) >= 0 {
				if j+1 == len(a) && len(args) > 0 {
					args = args[1:]
				}
				break
			}
		}
	}
	return args
}
