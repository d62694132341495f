package risk

import (
	"auditproxy/mcpproxy/risk/service"
	"auditproxy/schemas/audit"
)

// A Tool is a compiled definition. It is immutable.
type Tool struct {
	Name     string // as the server has it
	Category Category
	Source   Source
	Conflict bool // the definition contradicts itself

	failed     bool // a defect kept the definition from being read
	executes   bool // what it is given is typed or run
	setsEnv    bool // it sets environment variables
	setsOption bool // it sets options, whose values can be commands
	schema     schema
	special    service.Tool
	configured map[string]argument // by the operator
}

// Tool compiles the definition of the tool called name: its entry in the answer
// to tools/list, JSON that the server controls; nil if there is none.
func (a *Assessor) Tool(name string, definition []byte) (t *Tool) {
	defer func() {
		if recover() != nil {
			// The server chose the text: a defect here must neither end the session
			// nor make the tool look harmless.
			t = &Tool{Name: name, Category: Destructive, Source: SourceDefault, failed: true, executes: true, setsEnv: true, setsOption: true}
		}
	}()
	return a.compile(name, definition)
}

func (a *Assessor) compile(name string, definition []byte) *Tool {
	t := &Tool{Name: name}
	split := words(name)
	first := sentence(descriptionOf(definition))
	readOnly := onlyReads(first)
	t.schema = readSchema(memberOf(definition, "inputSchema"))
	t.configured = a.configured(name)

	hints := readHints(memberOf(definition, "annotations"))
	called, described := ofName(split, readOnly), ofDescription(first, readOnly)
	if isReadingMethod(name) {
		called = meaning{category: Read}
	}
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
	t.special = specialOf(split, called.category)
	t.special.Relays = audit.Relays(name)
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

// isReadingMethod reports whether a method of MCP only reads, which its words do not
// say.
func isReadingMethod(name string) bool {
	return name == "completion/complete" || name == "tasks/result" || name == "resources/unsubscribe"
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
