// Package risk says what a tool call could do, and what its arguments do. It
// performs no I/O.
//
// An Assessor has the operator's configuration. Tool compiles the definition of
// a tool, an element of the server's answer to tools/list, once; where there is
// none, the name alone. Assess reads the clear arguments of a call.
//
// The category of a tool is an override, or else the maximum of its explicit
// annotations, the verbs of its name, those of the first sentence of its
// description, the shape of its schema, and a known tier. If none of these but
// an annotation says anything, it is Execute at least: an annotation is the
// server's word about itself, and never lowers.
//
// Arguments are judged by the name that holds them, at any depth, in any case:
// as commands, paths, addresses or environment variables. The schema and the
// configuration can add to that. Operations lists are calls of their own, see
// audit.Operations; strings that some servers read as JSON are read too. What is
// too deep, too large or cannot be read is Opaque, never clean.
//
// A Result has words of fixed lists and the paths of arguments, never a part of
// a value. detectors.md is the list of detectors.
package risk

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
)

// A Config is what an operator decides, and the place where the server runs.
// The zero value is safe.
type Config struct {
	Risk     []Override
	Commands Commands
	Paths    Paths

	Home string   // of the server's user: expands ~; "" if unknown
	Cwd  string   // of the server: base of relative paths; "" if unknown
	Own  []string // absolute paths of this program's spool and configuration; they are sensitive

	// Readlink returns the target of a symbolic link, false for anything else.
	// It is nil where the server has another file system: then paths are only
	// compared as texts. It is called for each component of an absolute path.
	Readlink func(name string) (target string, ok bool)

	// Text appends a name that the agent chose, without secrets, as
	// redact.Redactor.AppendText does. If it is nil, such names are left out.
	Text func(dst, text []byte) []byte
}

// An Override is the category of a tool by decision of the operator. It also
// lowers.
type Override struct {
	Tool     string // exact name
	Category string // word of a Category
}

// Commands selects what is judged as a command.
type Commands struct {
	Arguments []string // "argument", or "tool.argument"
	Patterns  []string // RE2, see CommandPattern
}

// Paths selects what is judged as a path.
type Paths struct {
	Arguments []string // "argument", or "tool.argument"
	Sensitive []string // absolute, below ~, or names that count in any directory; see PathSensitive
}

// An Assessor assesses calls. It is immutable; its methods may be used
// concurrently.
type Assessor struct {
	overrides    map[string]Category
	commands     commandConfig
	commandNames []string
	pathNames    []string
	place        place
	text         func(dst, text []byte) []byte
	walks        *sync.Pool // of *walk
}

// New returns an Assessor, or an error that names every problem of c.
func New(c Config) (*Assessor, error) {
	var problems []error
	a := &Assessor{
		overrides:    make(map[string]Category, len(c.Risk)),
		commandNames: c.Commands.Arguments,
		pathNames:    c.Paths.Arguments,
		text:         c.Text,
		walks:        &sync.Pool{New: func() any { return new(walk) }},
		commands:     commandConfig{shells: new(sync.Pool)},
	}
	for i, o := range c.Risk {
		category, ok := ParseCategory(o.Category)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("risk[%d]: category %q is unknown: use read, write, execute, destructive or financial", i, o.Category))
		case o.Tool == "":
			problems = append(problems, fmt.Errorf("risk[%d]: the tool has no name", i))
		case a.overrides[o.Tool] != 0:
			problems = append(problems, fmt.Errorf("risk[%d]: tool %q is listed twice", i, o.Tool))
		}
		a.overrides[o.Tool] = category
	}
	for i, name := range c.Commands.Arguments {
		if name == "" {
			problems = append(problems, fmt.Errorf("commands.arguments[%d] is empty", i))
		}
	}
	for i, name := range c.Paths.Arguments {
		if name == "" {
			problems = append(problems, fmt.Errorf("paths.arguments[%d] is empty", i))
		}
	}
	for i, pattern := range c.Commands.Patterns {
		re, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("commands.patterns[%d]: reading %q: %w", i, pattern, err))
		case re.MatchString(""):
			problems = append(problems, fmt.Errorf("commands.patterns[%d]: %q matches every command", i, pattern))
		default:
			a.commands.Patterns = append(a.commands.Patterns, re)
		}
	}
	for i, s := range c.Paths.Sensitive {
		entry, err := readSensitive(s)
		if err != nil {
			problems = append(problems, fmt.Errorf("paths.sensitive[%d]: %w", i, err))
		}
		a.place.sensitive = append(a.place.sensitive, entry)
	}
	for _, own := range c.Own {
		if !strings.HasPrefix(own, "/") {
			problems = append(problems, fmt.Errorf("path %q of this program is not absolute", own))
			continue
		}
		clean, _, _ := join(nil, components(nil, own))
		a.place.own = append(a.place.own, system(folded(nil, clean)))
	}
	a.place.readlink = c.Readlink
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return a.In(c.Home, c.Cwd), nil
}

// readSensitive reads an operator's entry.
func readSensitive(s string) (entry sensitivePath, err error) {
	if entry.absolute = strings.HasPrefix(s, "/"); !entry.absolute {
		if rest, ok := strings.CutPrefix(s, "~/"); ok {
			entry.home, s = true, rest
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			return entry, fmt.Errorf("path %q has a part \"..\": write it without", s)
		}
		if _, err := path.Match(part, ""); err != nil {
			return entry, fmt.Errorf("reading %q: %w", s, err)
		}
		entry.parts = append(entry.parts, strings.ToLower(part))
	}
	if len(entry.parts) == 0 {
		return entry, fmt.Errorf("path %q covers everything: name a file or directory", s)
	}
	return entry, nil
}

// In returns an Assessor for a server with another home or working directory,
// "" if unknown; the rest is shared.
func (a *Assessor) In(home, cwd string) *Assessor {
	b := *a
	b.place.home, b.place.cwd = directory(home), directory(cwd)
	return &b
}

// directory returns the components of an absolute path, nil for anything else.
func directory(s string) []string {
	if !strings.HasPrefix(s, "/") {
		return nil
	}
	clean, _, _ := join([]string{}, components(nil, s))
	return clean
}

// configured returns the arguments of a tool that the operator calls commands or
// paths, nil if there are none.
func (a *Assessor) configured(tool string) (of map[string]argument) {
	add := func(names []string, arg argument) {
		for _, name := range names {
			if of == nil {
				of = make(map[string]argument)
			}
			of[name] |= arg // a name can contain dots
			if rest, ok := strings.CutPrefix(name, tool+"."); ok {
				of[rest] |= arg
			}
		}
	}
	add(a.commandNames, command)
	add(a.pathNames, pathname)
	return of
}
