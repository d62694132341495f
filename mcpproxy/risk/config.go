package risk

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"auditproxy/mcpproxy/risk/command"
	"auditproxy/mcpproxy/risk/target"
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
	commands     *command.Detector
	commandNames []string
	pathNames    []string
	place        target.Place
	text         func(dst, text []byte) []byte
	walks        *sync.Pool // of *walk
}

// New returns an Assessor, or an error that names every problem of c.
func New(c Config) (*Assessor, error) {
	var problems []error
	var patterns []*regexp.Regexp
	a := &Assessor{
		overrides:    make(map[string]Category, len(c.Risk)),
		commandNames: c.Commands.Arguments,
		pathNames:    c.Paths.Arguments,
		text:         c.Text,
		walks:        new(sync.Pool),
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
			patterns = append(patterns, re)
		}
	}
	for i, s := range c.Paths.Sensitive {
		entry, err := target.ParsePattern(s)
		if err != nil {
			problems = append(problems, fmt.Errorf("paths.sensitive[%d]: %w", i, err))
		}
		a.place.Sensitive = append(a.place.Sensitive, entry)
	}
	for _, own := range c.Own {
		if !strings.HasPrefix(own, "/") {
			problems = append(problems, fmt.Errorf("path %q of this program is not absolute", own))
			continue
		}
		a.place.Own = append(a.place.Own, target.Own(own))
	}
	a.place.Readlink = c.Readlink
	a.commands = command.New(patterns, inShell(c.Own, c.Home)...)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return a.In(c.Home, c.Cwd), nil
}

// inShell returns the paths as a shell's text may have them: also below ~.
func inShell(own []string, home string) (names []string) {
	for _, name := range own {
		name = path.Clean(name)
		names = append(names, name)
		if rest, ok := strings.CutPrefix(name, path.Clean(home)+"/"); ok && home != "" {
			names = append(names, "~/"+rest)
		}
	}
	return names
}

// In returns an Assessor for a server with another home or working directory,
// "" if unknown; the rest is shared.
func (a *Assessor) In(home, cwd string) *Assessor {
	b := *a
	b.place.Home, b.place.Cwd = target.Directory(home), target.Directory(cwd)
	return &b
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
	add(a.commandNames, commandLine)
	add(a.pathNames, pathname)
	return of
}
