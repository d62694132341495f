package risk

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

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

// maxSchema bounds the names that are kept of a schema: one with more is taken
// to allow any.
const maxSchema = 1024

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
	scanned    int // bytes, to find what references name
}

// Bounds of what is read. A schema with more is taken to allow any name.
const (
	maxSteps    = 64      // subschemas, and references
	maxScanned  = 1 << 20 // bytes that are read to find what references name
	maxPatterns = 4
	maxPattern  = 256 // bytes of one, and of a name that it is compared with
	maxProgram  = 512 // instructions of a compiled one: matching takes a time for each of them
	maxRequired = 256 // arguments that are looked for
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
				if len(r.s.patterns) < maxPatterns && isSmall(name) {
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
			if r.steps++; r.steps > maxSteps {
				r.known = false
				return false
			}
			if target := r.target(text(value)); target != nil {
				r.read(target, depth+1, required)
			} else {
				r.known = false
			}
		case "then", "else", "dependentSchemas":
			r.known = false
		}
		return r.steps <= maxSteps
	})
}

// isSmall reports whether a pattern is compiled to a small program: a server could make a
// short one that takes milliseconds for each name.
func isSmall(pattern string) bool {
	if len(pattern) > maxPattern {
		return false
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false
	}
	program, err := syntax.Compile(tree.Simplify())
	return err == nil && len(program.Inst) <= maxProgram
}

// target returns the subschema that a local reference names.
func (r *schemaReader) target(ref string) []byte {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.ContainsAny(path, "~%") {
		return nil
	}
	b := r.root
	for part := range strings.SplitSeq(path, "/") {
		if r.scanned += len(b); b == nil || r.scanned > maxScanned {
			return nil
		}
		b = memberOf(b, part)
	}
	return b
}
