package risk

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// A Tool is a compiled definition. It is immutable.
type Tool struct {
	Name     string // as the server has it
	Category Category
	Source   Source
	Conflict bool // the definition contradicts itself

	executes   bool // what it is given is typed or run
	setsEnv    bool // it sets environment variables
	setsOption bool // it sets options, whose values can be commands
	schema     schema
	configured map[string]argument // by the operator
}

// A schema is what a tool's inputSchema says about its arguments.
type schema struct {
	declared map[string]property
	required []string
	patterns []*regexp.Regexp // of names that are also allowed
	closed   bool             // no other names are
}

// A property is a declared argument.
type property struct {
	argument
	required int // its place in schema.required, from 1; 0 if it is not
}

// An argument says how to look at the value of a name. The zero value is that
// of an ordinary one.
type argument uint16

const (
	command   argument = 1 << iota // a shell or an interpreter runs it
	typed                          // a command if the tool executes
	pathname                       // a path
	maybePath                      // a path if it looks like one
	address                        // a URL or a host
	variables                      // an object of environment variables
	variable                       // the name of one, if the tool sets them
	list                           // operations: each item is a call
	encoded                        // a string may hold JSON that the server reads
	setting                        // a command if the tool sets options
)

// maxSchema bounds the names that are kept of a schema: one with more is taken
// to allow any.
const maxSchema = 1024

// Tool compiles the definition of the tool called name: its entry in the answer
// to tools/list, JSON that the server controls; nil if there is none.
func (a *Assessor) Tool(name string, definition []byte) *Tool {
	t := &Tool{Name: name}
	split := words(name)
	first := sentence(descriptionOf(definition))
	readOnly := onlyReads(first)
	t.schema = readSchema(memberOf(definition, "inputSchema"))
	t.configured = a.configured(name)

	hints := readHints(memberOf(definition, "annotations"))
	called, described := ofName(split, readOnly), ofDescription(first, readOnly)
	switch { // a noun that could be a verb: group, "Log label exploration"
	case called.weak && described.category == Read:
		called.category = Read
	case described.weak && called.category == Read:
		described.category = Read
	}
	inputs := [...]struct {
		category Category
		source   Source
	}{
		{hints.category, SourceAnnotation},
		{called.category, SourceName},
		{described.category, SourceDescription},
		{t.schema.shape(), SourceSchema},
		{tierOf(memberOf(definition, "_meta")), SourceTier},
	}
	lowest, unknown := Category(0), true
	for _, in := range inputs {
		c := in.category
		if c == 0 {
			continue
		}
		unknown = unknown && in.source == SourceAnnotation
		if t.executes = t.executes || c == Execute; c.rank() > t.Category.rank() {
			t.Category, t.Source = c, in.source
		}
		if lowest == 0 || c.rank() < lowest {
			lowest = c.rank()
		}
		t.Conflict = t.Conflict || hints.readOnly && in.source != SourceSchema && c >= Write
	}
	t.Conflict = t.Conflict || t.Category.rank() >= lowest+2 && lowest > 0
	if unknown {
		// An annotation alone does not make the tool known: without it the result
		// would be execute, and an annotation never lowers.
		if t.executes = true; t.Category < Execute {
			t.Category, t.Source = Execute, SourceDefault
		}
	}
	for _, w := range split {
		switch w.word {
		case "buffer", "clipboard", "stdin", "tty", "pty":
			t.executes = true // what is put there is pasted later
		case "environment", "env", "variable", "envvar", "environ":
			t.setsEnv = true
		case "option", "options", "hook", "setting":
			t.setsOption = true
		}
	}
	if c, ok := a.overrides[name]; ok {
		t.Category, t.Source, t.Conflict = c, SourceOverride, false
	}
	return t
}

// descriptionOf returns the description, cut to what a first sentence can be.
func descriptionOf(definition []byte) string {
	const longest = 16 << 10 // bytes of the literal
	lit := memberOf(definition, "description")
	if len(lit) > longest {
		lit = lit[:longest]
	}
	return text(lit)
}

type hints struct {
	category Category
	readOnly bool
}

// readHints reads what the annotations state. What they leave out has default
// values by the specification (MCP 2025-06-18, ToolAnnotations), but a server
// that leaves it out has stated nothing.
func readHints(annotations []byte) (h hints) {
	h.readOnly = string(memberOf(annotations, "readOnlyHint")) == "true"
	switch {
	case string(memberOf(annotations, "destructiveHint")) == "true":
		h.category = Destructive
	case h.readOnly:
		h.category = Read
	case string(memberOf(annotations, "readOnlyHint")) == "false":
		h.category = Write
	}
	return h
}

// tierOf is the category of the highest tier among the tags: those of libtmux-mcp
// up to 0.1.0a20 and since 0.1.0a22.
func tierOf(meta []byte) (c Category) {
	for _, member := range [...]string{"fastmcp", "_fastmcp"} {
		eachElement(memberOf(memberOf(meta, member), "tags"), func(tag []byte) bool {
			switch text(tag) {
			case "readonly", "inspect":
				c = higher(c, Read)
			case "mutating", "manage":
				c = higher(c, Write)
			case "execute":
				c = higher(c, Execute)
			case "destructive", "teardown":
				c = higher(c, Destructive)
			}
			return true
		})
	}
	return c
}

// shape returns Execute if the arguments are those of a tool that runs what it is
// given.
func (s *schema) shape() Category {
	target := false
	for name := range s.declared {
		switch name {
		case "command", "cmd", "keys", "code", "script", "sql", "shell":
			return Execute
		case "pane", "pane_id", "paneId", "instance", "instance_id", "instanceId", "terminal", "terminal_id", "terminalId",
			"session", "session_id", "sessionId", "window_id", "windowId", "target_pane", "tty":
			target = true
		}
	}
	for _, name := range [...]string{"text", "input", "keystrokes", "prompt"} {
		if _, ok := s.declared[name]; ok && target {
			return Execute
		}
	}
	return 0
}

// readSchema reads an inputSchema (JSON Schema 2020-12): the properties of the
// object itself, of the subschemas that are combined with it, and of local
// references.
func readSchema(root []byte) (s schema) {
	r := schemaReader{root: root, s: &s, known: true}
	if len(root) == 0 || root[0] != '{' {
		return s
	}
	r.read(root, 0, true)
	if !r.known || !r.properties && !r.refused || len(s.declared) > maxSchema {
		s.closed = false // whatever it allows was not understood
	} else {
		s.closed = !r.allowed
	}
	for i, name := range s.required {
		// A required argument that is not declared is not undeclared either.
		p, ok := s.declared[name]
		if !ok {
			if s.declared == nil {
				s.declared = make(map[string]property)
			}
			p.argument = argumentOf([]byte(name))
		}
		p.required = i + 1
		s.declared[name] = p
	}
	return s
}

type schemaReader struct {
	root       []byte
	s          *schema
	properties bool // there is a list of them
	refused    bool // additionalProperties is false
	allowed    bool // additionalProperties is anything else
	known      bool // everything was understood
	steps      int
}

// Bounds of what is read. A schema with more is taken to allow any name.
const (
	maxSteps    = 64 // subschemas
	maxPatterns = 4
	maxPattern  = 256 // bytes of one
)

var errPattern = errors.New("too many patterns, or too long")

func (r *schemaReader) read(b []byte, depth int, required bool) {
	if r.steps++; depth > 8 || r.steps > maxSteps {
		r.known = false
		return
	}
	eachMember(b, func(name string, value []byte) bool {
		switch name {
		case "properties":
			r.properties = true
			eachMember(value, func(name string, sub []byte) bool {
				if r.s.declared == nil {
					r.s.declared = make(map[string]property)
				}
				if len(r.s.declared) <= maxSchema {
					p := r.s.declared[name]
					p.argument |= argumentOf([]byte(name)) | argumentBy(sub)
					r.s.declared[name] = p
				}
				return true
			})
		case "required":
			if required {
				eachElement(value, func(v []byte) bool {
					if n := text(v); n != "" && len(r.s.required) < maxRequired && !slices.Contains(r.s.required, n) {
						r.s.required = append(r.s.required, n)
					}
					return true
				})
			}
		case "additionalProperties", "unevaluatedProperties":
			if string(value) == "false" {
				r.refused = true
			} else {
				r.allowed = true
			}
		case "patternProperties":
			eachMember(value, func(name string, _ []byte) bool {
				var re *regexp.Regexp
				err := errPattern
				if len(name) <= maxPattern && len(r.s.patterns) < maxPatterns {
					re, err = regexp.Compile(name)
				}
				if err != nil {
					r.known = false
					return false
				}
				r.s.patterns = append(r.s.patterns, re)
				return true
			})
		case "allOf", "anyOf", "oneOf":
			eachElement(value, func(sub []byte) bool {
				r.read(sub, depth+1, required && name == "allOf")
				return true
			})
		case "$ref":
			if target := r.target(text(value)); target != nil {
				r.read(target, depth+1, required)
			} else {
				r.known = false
			}
		case "then", "else", "dependentSchemas":
			r.known = false
		}
		return true
	})
}

// target returns the subschema that a local reference names.
func (r *schemaReader) target(ref string) []byte {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.ContainsAny(path, "~%") {
		return nil
	}
	b := r.root
	for _, part := range strings.Split(path, "/") {
		b = memberOf(b, part)
	}
	return b
}

// argumentBy says how to look at the values of a property by its schema.
func argumentBy(sub []byte) (arg argument) {
	switch text(memberOf(sub, "format")) {
	case "uri", "url", "uri-reference", "hostname":
		arg |= address
	case "path", "file-path", "directory-path":
		arg |= pathname
	}
	lit := memberOf(sub, "description")
	const longest = 1 << 10
	if len(lit) > longest {
		lit = lit[:longest]
	}
	description := strings.ToLower(text(lit))
	for _, phrase := range [...]string{"shell command", "command to run", "command to execute", "command line", "bash command",
		"sql query", "sql statement", "sql to ", "script to run", "script to execute", "code to run", "code to execute", "code to evaluate",
		"terminal command", "shell script", "commands to run", "commands to execute"} {
		if strings.Contains(description, phrase) {
			arg |= command
		}
	}
	for _, phrase := range [...]string{"file path", "path to ", "path of ", "absolute path", "directory to ", "filesystem path", "path on disk"} {
		if strings.Contains(description, phrase) {
			arg |= maybePath
		}
	}
	return arg
}

// maxName is the longest name that is looked at; of a longer one it is the end.
const maxName = 64

// argumentOf says how to look at the values of a name, in any case: servers in
// Go ignore it. It allocates nothing.
func argumentOf(name []byte) (arg argument) {
	for len(name) > 1 && (name[len(name)-1] == '_' || '0' <= name[len(name)-1] && name[len(name)-1] <= '9') {
		name = name[:len(name)-1] // global_, path2
	}
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var buf [maxName]byte
	lower := appendLower(buf[:0], name)
	switch string(lower) {
	case "operations":
		return list | encoded
	case "arguments", "params", "tool_input", "toolinput", "tool_arguments":
		return encoded
	case "path", "paths", "file", "files", "filename", "filenames", "directory", "directories", "dir", "dirs", "folder", "folders",
		"cwd", "workdir", "filepath", "dirname":
		return pathname
	case "source", "destination", "src", "dest", "dst", "target", "from", "to", "base", "root", "location", "output", "input_file",
		"save_to", "where", "old", "new", "resource":
		return maybePath
	case "uri", "uris", "url", "urls", "endpoint", "host", "hostname", "hosts", "base_url", "baseurl", "href", "webhook", "origin",
		"proxy", "link":
		return address
	case "environment", "env", "envs", "environ":
		return variables | encoded
	case "name", "variable", "key", "var":
		return variable
	case "value":
		return setting
	case "keys", "command", "cmd", "shell", "script", "code", "sql", "commands", "cmds", "scripts", "keystrokes", "argv", "cmdline", "exec":
		return command
	case "text", "input", "content", "contents", "data", "stdin", "query", "statement":
		return typed
	}
	// The last word of a longer name: outputPath, base-url, shell_command.
	from := len(name)
	for from > 0 {
		c := name[from-1]
		if c == '_' || c == '-' || c == '.' || c == ' ' {
			break
		}
		if from--; 'A' <= c && c <= 'Z' && from > 0 && !('A' <= name[from-1] && name[from-1] <= 'Z') {
			break
		}
	}
	if from == 0 {
		return 0
	}
	last := appendLower(buf[:0], name[from:])
	switch string(last) {
	case "path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder", "cwd":
		return pathname
	case "url", "urls", "uri", "uris", "host", "hostname", "endpoint", "webhook":
		return address
	case "command", "commands", "cmd", "cmds", "script", "scripts", "shell", "sql", "keystrokes", "bash", "cmdline":
		return command
	case "vars", "env", "variables", "environment":
		return variables | encoded
	case "text", "input", "code", "query", "stdin":
		return typed
	}
	return 0
}

// appendLower appends name in lower case, where it is or folds to ASCII.
func appendLower(dst, name []byte) []byte {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			dst = append(dst, c|0x20)
		case c == 0xc5 && i+1 < len(name) && name[i+1] == 0xbf: // long s
			dst = append(dst, 's')
			i++
		case c == 0xe2 && i+2 < len(name) && name[i+1] == 0x84 && name[i+2] == 0xaa: // Kelvin
			dst = append(dst, 'k')
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
