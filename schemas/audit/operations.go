package audit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// An Operation is one thing that a call did, or that some server read in it.
type Operation struct {
	Method string
	Tool   string
	Target string
	Args   JSON // the operation's own redacted arguments
	// Path is "" for the call itself, else the operation's location, as in
	// "operations[3].arguments.operations[0]". The client chooses the names in it: of a
	// long one it is the end, behind an ellipsis, and two operations can have the same.
	Path      string
	Candidate bool // another reading of the same bytes, see Record.Candidates
}

// Operations lists the operations of r's call: the call itself, every item of
// an `operations` list in its arguments that has a string `tool` in it, at any
// depth, and the same for every candidate. A candidate without arguments of its
// own has the call's. It is empty for a record that is not about a call.
//
// An item with duplicate `tool` members is one operation for each: most servers
// run the last, the others are candidates.
func Operations(r *Record) []Operation {
	if r.Kind != KindCall && r.Kind != KindOpen && (r.Kind != "" || r.CallNo == 0) {
		return nil
	}
	ops := []Operation{{Method: r.Method, Tool: r.Tool, Target: r.Target, Args: r.Args}}
	ops = appendInner(ops, r.Args, r.Method)
	for _, c := range r.Candidates {
		op := Operation{Method: c.Method, Tool: c.Tool, Target: c.Target, Args: c.Args, Candidate: true}
		from := len(ops) + 1
		if c.Args == "" {
			op.Args = r.Args // whose operations are there already
		}
		ops = appendInner(append(ops, op), c.Args, c.Method)
		for i := range ops[from:] {
			ops[from+i].Candidate = true
		}
	}
	return ops
}

// InnerOperations lists the operations that some server reads in the arguments of a
// call: also behind names in another case or fold, as in Go, and in texts that are
// JSON, as Python's FastMCP decodes them. They may alias args, and have no Path. ok is
// false if not all are listed: there are more than most, or a text that may have some is no strict
// JSON.
func InnerOperations(args JSON, most int) (ops []Operation, ok bool) {
	w := operationWalk{b: jsontext.Strict(args), most: most, every: true}
	w.value(w.b.Start(), 0, false)
	return w.ops, !w.missed
}

// appendInner appends the operations in args.
func appendInner(ops []Operation, args JSON, method string) []Operation {
	// Only an escape can hide the name from the first look.
	if !strings.Contains(string(args), "operations") && !strings.Contains(string(args), `\`) {
		return ops
	}
	w := operationWalk{b: jsontext.Strict(args), method: method, ops: ops}
	w.value(w.b.Start(), 0, false)
	return w.ops
}

// An operationWalk reads its value once, at any depth: a walk for each level
// would be quadratic, and the client chooses the depth.
type operationWalk struct {
	b      jsontext.Strict
	method string
	path   []byte // of the value at hand
	ops    []Operation
	every  bool // those that any server reads
	most   int  // of ops, with every
	missed bool // there are others
	texts  int  // around b
}

const (
	maxTexts = 4       // texts in texts that are decoded
	maxPath  = 4 << 10 // bytes of a path: thousands of operations can have a long one
)

// value walks the value at b[i] and returns the index after it, or -1. listed
// means that it is the value of a member named `operations`.
func (w *operationWalk) value(i, depth int, listed bool) int {
	switch {
	case i == len(w.b):
		return -1
	case w.every && w.b[i] == '"':
		end := w.b.Skip(i, depth)
		if end > 0 {
			w.text(string(w.b[i:end]), listed)
		}
		return end
	case depth >= MaxDepth || w.b[i] != '{' && w.b[i] != '[':
		return w.b.Skip(i, depth)
	case w.b[i] == '{':
		return w.object(i, depth, false)
	}
	return w.list(i, depth, listed)
}

// text walks a string whose text is JSON.
func (w *operationWalk) text(lit string, listed bool) {
	t := strings.TrimLeft(lit[1:], " ")
	if t[0] != '[' && t[0] != '{' && t[0] != '\\' {
		return
	}
	t = strings.TrimSpace(jsontext.Unquote(lit))
	if t == "" || t[0] != '[' && t[0] != '{' {
		return
	}
	inner := operationWalk{b: jsontext.Strict(t), every: true, most: w.most - len(w.ops), texts: w.texts + 1}
	if inner.texts <= maxTexts && inner.value(0, 0, listed) == len(t) {
		w.ops = append(w.ops, inner.ops...)
		w.missed = w.missed || inner.missed
		return
	}
	lower := strings.ToLower(t)
	w.missed = w.missed || inner.missed || strings.Contains(lower, "tool") && (listed || strings.Contains(lower, "operations"))
}

// is reports whether a name is that of a member. For servers in C it ends at a NUL.
func (w *operationWalk) is(name []byte, member string) bool {
	if w.every {
		name, _, _ = bytes.Cut(name, []byte{0})
		return bytes.EqualFold(name, []byte(member))
	}
	return string(name) == member
}

func (w *operationWalk) list(i, depth int, listed bool) int {
	stem := len(w.path)
	defer func() { w.path = w.path[:stem] }()
	i, more := w.b.First(i)
	for n := int64(0); more; n++ {
		w.path = strconv.AppendInt(append(w.path[:stem], '['), n, 10)
		w.path = append(w.path, ']')
		if listed && i < len(w.b) && w.b[i] == '{' {
			i = w.object(i, depth+1, true)
		} else {
			i = w.value(i, depth+1, false)
		}
		if i < 0 {
			return -1
		}
		i, more = w.b.Next(i, ']')
	}
	return i
}

// object walks an object; item means that it is one of `operations`. Then its
// operations precede those inside it.
func (w *operationWalk) object(i, depth int, item bool) int {
	var (
		stem  = len(w.path)
		at    = len(w.ops)
		tools []Operation
		args  = []JSON{""}
	)
	i, more := w.b.First(i)
	for more {
		end, from := w.b.Name(i)
		if from < 0 {
			return -1
		}
		nameFrom := stem
		if w.path = w.path[:stem]; stem > 0 {
			w.path = append(w.path, '.')
			nameFrom++
		}
		w.path = jsontext.AppendUnquote(w.path, string(w.b[i:end]))
		name := w.path[nameFrom:]
		isTool, isArgs := item && w.is(name, "tool"), item && w.is(name, "arguments")
		if i = w.value(from, depth+1, w.is(name, "operations")); i < 0 {
			return -1
		}
		switch {
		case isTool && w.b[from] == '"':
			tool, _ := text(string(w.b[from:i]))
			tools = append(tools, Operation{Method: w.method, Tool: tool})
			if before, _, cut := strings.Cut(tool, "\x00"); cut && w.every {
				tools = append(tools, Operation{Method: w.method, Tool: before})
			}
		case isArgs && (args[0] == "" || !w.every):
			args[0] = JSON(w.b[from:i])
		case isArgs:
			args = append(args, JSON(w.b[from:i]))
		}
		i, more = w.b.Next(i, '}')
	}
	if i < 0 {
		return -1
	}
	if w.every && len(w.ops)+len(tools)*len(args) > w.most {
		w.missed = true
		return -1
	}
	w.path = w.path[:stem]
	where := ""
	if len(tools) > 0 {
		where = w.where()
	}
	for n := range tools {
		tools[n].Path, tools[n].Args = where, args[0]
		tools[n].Candidate = n < len(tools)-1
	}
	w.ops = slices.Insert(w.ops, at, tools...)
	for _, other := range args[1:] {
		for n := range tools {
			tools[n].Args = other
		}
		w.ops = append(w.ops, tools...)
	}
	return i
}

// where returns the Path of operations at the path of the value at hand.
func (w *operationWalk) where() string {
	if w.every {
		return ""
	}
	if len(w.path) <= maxPath {
		return string(w.path)
	}
	end := w.path[len(w.path)-maxPath+len("…"):]
	for len(end) > 0 && !utf8.RuneStart(end[0]) {
		end = end[1:]
	}
	return "…" + string(end)
}
