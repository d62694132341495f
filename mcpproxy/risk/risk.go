// Package risk says what a tool call could do, and what its arguments do. It
// performs no I/O.
//
// An Assessor has the operator's configuration. Tool compiles the definition of
// a tool, an element of the server's answer to tools/list. Assess reads the clear
// arguments of one call. Its result has words of fixed lists and the paths of
// arguments, never a part of a value.
package risk

import "errors"

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
	// redact.Redactor.AppendText does. Where it is nil, such names are left out.
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
type Assessor struct{ config Config }

// New returns an Assessor, or an error that names every problem of c.
func New(c Config) (*Assessor, error) {
	return &Assessor{config: c}, errors.Join()
}

// In returns an Assessor for another place; the rest is shared.
func (a *Assessor) In(home, cwd string) *Assessor {
	b := *a
	b.config.Home, b.config.Cwd = home, cwd
	return &b
}

// A Tool is a compiled definition. It is immutable.
type Tool struct {
	Category Category
	Source   Source
	Conflict bool // the definition contradicts itself
}

// Tool compiles the definition of the tool called name: its entry in the answer
// to tools/list, JSON that the server controls; nil if there is none.
func (a *Assessor) Tool(name string, definition []byte) *Tool {
	return &Tool{Category: Execute, Source: SourceDefault}
}

// A Detection is something that arguments do.
type Detection struct {
	Detector string // of AllDetectors
	At       string // where, as in "args.operations[0].arguments.keys"; redacted
}

// MaxDetections is the number of detections in a Result; the last may be "more".
const MaxDetections = 32

// A Result is the risk of one call.
type Result struct {
	Category   Category
	Source     Source
	Conflict   bool
	Found      Detectors // of all detections, including those for which there was no room
	Detections []Detection
}

// Assess returns the risk of a call of t with arguments, JSON as on the wire or
// nil. Of duplicate names the last counts for what the call does not declare, and
// the value of each is looked at. Items of operations lists are calls of
// their own: tool returns their tools, nil for unknown ones, and may be nil. The
// time is linear in the arguments.
func (a *Assessor) Assess(t *Tool, arguments []byte, tool func(name string) *Tool) Result {
	return Result{Category: t.Category, Source: t.Source, Conflict: t.Conflict}
}
