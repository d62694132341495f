package audit

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"auditproxy/schemas/jsontext"
)

// An Operation is one thing that a call did, or that some server read in it.
type Operation struct {
	Method string
	Tool   string
	Target string
	Args   JSON // the operation's own redacted arguments
	// Path is "" for the call itself, else the operation's location, as in
	// "operations[3].arguments.operations[0]"; of one that a tool relays, that of its
	// name, as in "name". The client chooses the names in it, so that two operations can
	// have the same; beyond maxPath its middle is left out.
	Path      string
	Candidate bool // another reading of the same bytes, see Record.Candidates
}

// Bounds of what is listed for one record. A client chooses how often one text of
// its arguments is listed, and could make gigabytes of one call.
const (
	maxPath     = 256       // bytes
	maxLateArgs = 4 << 20   // bytes, of all late candidates
	maxWhole    = 256 << 20 // bytes of paths, of WholeOperations
	keptLists   = 4         // inside each other: candidates in more are late
	keptReading = 16        // candidates of a record without arguments of their own: others are late
)

// Operations lists the operations of r's call: the call itself, every item of
// an `operations` list in its arguments that has a string `tool` in it, at any
// depth, what these relay, and the same for every candidate. A candidate without
// arguments of its own has the call's. It is empty for a record that is not about a call.
//
// An item with duplicate `tool` members is one operation for each: most servers
// run the last, the others are candidates.
//
// Late candidates have arguments while there is room for them: those that no server is
// known to run, so that an agent cannot hide others behind them. They are between the
// first and the last tool of an item, in more than keptLists lists, or, in a record that
// no proxy writes, after its first keptReading readings of the same arguments.
func Operations(r *Record) []Operation {
	return listOperations(r, &room{path: maxPath, args: maxLateArgs, paths: math.MaxInt, readings: maxReadings})
}

// WholeOperations is Operations as older versions listed them: paths and arguments of
// any length, up to what no database stored, and nothing that a tool relays.
func WholeOperations(r *Record) []Operation {
	return listOperations(r, &room{path: math.MaxInt, args: math.MaxInt, paths: maxWhole, readings: -1})
}

// room is what operations may still take, in bytes.
type room struct {
	path  int // each path
	paths int // all of them
	args  int // the arguments of late candidates

	readings int // how many, of calls that are relayed; -1: these are not listed
}

func listOperations(r *Record, left *room) []Operation {
	if r.Kind != KindCall && r.Kind != KindOpen && (r.Kind != "" || r.CallNo == 0) {
		return nil
	}
	ops := []Operation{{Method: r.Method, Tool: r.Tool, Target: r.Target, Args: r.Args}}
	ops = left.appendRelayed(ops, ops[0], "", false, 0)
	ops = appendInner(ops, r.Args, r.Method, false, left)
	for n, c := range r.Candidates {
		op := Operation{Method: c.Method, Tool: c.Tool, Target: c.Target, Args: c.Args, Candidate: true}
		from := len(ops) + 1
		if c.Args == "" { // whose operations are there already
			op.Args = left.late(n >= keptReading, r.Args)
		}
		ops = left.appendRelayed(append(ops, op), op, "", true, 0)
		ops = appendInner(ops, c.Args, c.Method, true, left)
		for i := range ops[from:] {
			ops[from+i].Candidate = true
		}
	}
	return ops
}

// late returns the arguments of a candidate, none if it is a late one and there is no room.
func (left *room) late(is bool, args JSON) JSON {
	if is {
		if left.args -= len(args); left.args < 0 {
			return ""
		}
	}
	return args
}

// InnerOperations lists the operations that some server reads in the arguments of a
// call: also behind names in another case or fold, as in Go, and in texts that are
// JSON, as Python's FastMCP decodes them. They may alias args, and have no Path. ok is
// false if not all are listed: there are more than most, or a text that may have some is
// no strict JSON.
func InnerOperations(args JSON, most int) (ops []Operation, ok bool) {
	w := operationWalk{b: jsontext.Strict(args), most: most, every: true}
	w.value(w.b.Start(), 0, false)
	return w.ops, !w.missed
}

// WithRelayed returns the operations of InnerOperations, and those that the call of a
// tool and these relay, as call_tool does with {"name": "kill_server", "arguments": {}}:
// each name with each value that some server could take. ok is false if not all are
// listed, of which there are at most most. They may alias args, and have no Path.
func WithRelayed(ops []Operation, ok bool, tool string, args JSON, most int) ([]Operation, bool) {
	relayed, all := relayedOperations(nil, tool, args, 0)
	ok = ok && all
	for _, op := range ops {
		if ok = ok && len(ops)+len(relayed) <= most; !ok {
			break
		}
		more, all := relayedOperations(nil, op.Tool, op.Args, 0)
		relayed, ok = append(relayed, more...), all
	}
	return append(ops, relayed...), ok
}

func relayedOperations(ops []Operation, tool string, args JSON, depth int) (_ []Operation, ok bool) {
	if !Relays(tool) {
		return ops, true
	}
	tools, values, ok := relayed(args)
	if !ok || depth == maxRelays || len(tools)*len(values) > maxReadings-len(ops) {
		return ops, false
	}
	for _, t := range tools {
		for _, value := range values {
			ops = append(ops, Operation{Tool: t.text, Args: JSON(value.text)})
			var all bool
			ops, all = relayedOperations(ops, t.text, JSON(value.text), depth+1)
			ok = ok && all
		}
	}
	return ops, ok
}

// appendRelayed appends what the call of op relays, and what that relays. base is where
// its arguments are. isLate: their arguments are listed while there is room.
func (left *room) appendRelayed(ops []Operation, op Operation, base string, isLate bool, depth int) []Operation {
	if left.readings < 0 || depth == maxRelays || !Relays(op.Tool) {
		return ops
	}
	tools, values, _ := relayed(op.Args)
	if len(tools) == 0 {
		return ops
	}
	if n := len(tools) * len(values); n > 1 {
		if n > left.readings { // the last ones are what most servers read
			tools, values, n = tools[len(tools)-1:], values[len(values)-1:], 1
		}
		left.readings = max(left.readings-n, 0)
	}
	for i, t := range tools {
		for j, value := range values {
			is := Operation{Method: op.Method, Tool: t.text, Path: base + t.name}
			is.Candidate = op.Candidate || i < len(tools)-1 || j < len(values)-1
			is.Args = left.late(isLate || is.Candidate, JSON(value.text))
			ops = left.appendRelayed(append(ops, is), is, base+value.name+".", isLate || is.Candidate, depth+1)
		}
	}
	return ops
}

// appendInner appends the operations in args, of a candidate or of the call.
func appendInner(ops []Operation, args JSON, method string, candidate bool, left *room) []Operation {
	// Only an escape can hide the name from the first look.
	if !strings.Contains(string(args), "operations") && !strings.Contains(string(args), `\`) {
		return ops
	}
	w := operationWalk{b: jsontext.Strict(args), method: method, ops: ops, candidate: candidate, left: left}
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
	lists  int  // of operations, around the value at hand
	every  bool // those that any server reads
	most   int  // of ops, with every
	missed bool // there are others
	texts  int  // around b

	candidate bool  // the arguments are of one
	left      *room // unless every
}

// maxTexts is how many texts in texts are decoded.
const maxTexts = 4

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
			w.lists++
			i = w.object(i, depth+1, true)
			w.lists--
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
		isLast := n == len(tools)-1
		tools[n].Path, tools[n].Args, tools[n].Candidate = where, args[0], !isLast
		if isLate := n > 0 && !isLast || w.lists > keptLists && (w.candidate || !isLast); !w.every {
			tools[n].Args = w.left.late(isLate, args[0])
		}
	}
	w.ops = slices.Insert(w.ops, at, tools...)
	for n := range tools {
		if !w.every {
			w.ops = w.left.appendRelayed(w.ops, tools[n], where+".arguments.", w.lists > keptLists || tools[n].Candidate, 0)
		}
	}
	for _, other := range args[1:] {
		for n := range tools {
			tools[n].Args = other
		}
		w.ops = append(w.ops, tools...)
	}
	return i
}

// where returns the Path of operations at the path of the value at hand. The end of a
// long one tells the items of a list apart.
func (w *operationWalk) where() string {
	const head, tail = maxPath*3/4 - len("…"), maxPath / 4
	n := len(w.path)
	if w.every {
		return ""
	}
	if n <= maxPath || n <= w.left.path && n <= w.left.paths {
		w.left.paths -= n
		return string(w.path)
	}
	return strings.ToValidUTF8(string(w.path[:head]), "") + "…" + strings.ToValidUTF8(string(w.path[n-tail:]), "")
}
