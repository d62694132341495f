package risk

import (
	"bytes"
	"cmp"
	"strings"

	"auditproxy/mcpproxy/risk/command"
	"auditproxy/mcpproxy/risk/command/guard"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/risk/environment"
	"auditproxy/mcpproxy/risk/service"
	"auditproxy/mcpproxy/risk/target"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// required says which of the required arguments of a tool a call has.
type required [maxRequired / 64]uint64

// arguments looks at the arguments of a call of t, which start at b[i], and
// returns the index after them.
func (w *walk) arguments(t *Tool, i int) int {
	var has required
	if from := i; i < len(w.b) && w.b[i] == '{' {
		outer := w.interpreter
		w.interpreter = w.runsCode(t, from)
		i = w.object(i, t, 0, &has)
		if w.interpreter = outer; i < 0 {
			return -1
		}
		if t.special.Program != "" {
			w.runsProgram(t, from)
		}
		w.special(t, from)
		if t.special.Relays {
			w.relayed(from, t)
		}
	}
	for n, name := range t.schema.required {
		if has[n/64]>>(n%64)&1 == 0 && w.depth < maxLevels {
			w.push([]byte(name), 0)
			w.found(detector.MissingArgument)
			w.pop()
		}
	}
	return i
}

// The methods below look at one value and return the index after it, -1 if it
// cannot be read.

// object looks at the object at b[i], which is the value of an argument. has is
// not nil if its members are the arguments of t.
func (w *walk) object(i int, t *Tool, of argument, has *required) int {
	if w.depth == maxLevels {
		return w.opaque(i)
	}
	var parts argv // of {"command": "rm", "args": ["-rf", "/"]}
	i, more := w.b.First(i)
	for more {
		lit, value := w.b.Name(i)
		if value < 0 {
			return -1
		}
		w.push(lit.Inner, 0)
		name := w.decodedName(lit)
		arg := w.member(t, name, has)
		if len(name) > 1 && name[0] == '$' {
			w.found(operatorDoes(view(name)))
		}
		if of&variables != 0 && environment.Loaded(view(name)) {
			w.found(detector.EnvironmentName)
		}
		if i = w.value(value, t, arg|of&(commandLine|pathname|mounts|manifest)); i < 0 {
			return -1
		}
		// A manifest in one is a part of it, and was looked at.
		isOuter := arg&(mounts|manifest) != 0 && of&(mounts|manifest) == 0
		if (arg&hostRights != 0 || isOuter) && handsOverHost(arg, w.b[value:i]) {
			w.found(detector.PrivilegeEscalation)
		}
		if isOuter && arg&manifest != 0 && guard.ManifestGrants(view(w.b[value:i])) {
			w.found(detector.Persistence)
		}
		if v := w.b[value:i]; arg&(commandLine|program) != 0 && v[0] == '"' {
			parts.programs.add(w, v)
		} else if arg&operands != 0 {
			parts.args.add(w, v)
		}
		w.pop()
		i, more = w.b.Next(i, '}')
	}
	for _, program := range parts.programs.list[:parts.programs.n] {
		for _, args := range parts.args.list[:parts.args.n] {
			w.push(program.name, 0)
			w.joined(program.value, args.value)
			w.pop()
		}
	}
	return i
}

// handsOverHost reports whether a value gives a container, or a pod, its host: rights,
// a directory of it, or a manifest that does.
func handsOverHost(arg argument, value []byte) bool {
	switch {
	case arg&hostRights != 0:
		return string(value) == "true" || string(value) == `"true"`
	case arg&manifest != 0:
		return guard.ManifestHasHost(view(value))
	}
	found, name := false, ""
	var last jsontext.String
	b := jsontext.Lenient(value)
	b.Tokens(b.Start(0), func(structure byte, s jsontext.String, scalar []byte) {
		switch {
		case structure == ':':
			name = string(last.Append(nil))
			found = found || guard.HostDirectory(name, false) // {"/": "/host"}
		case structure != 0 || scalar != nil:
		default:
			last = s
			from, rest, ok := strings.Cut(string(s.Append(nil)), ":")
			switch strings.ToLower(name) {
			case "source", "src", "hostpath", "host_path", "host", "from", "path":
				ok = true
			}
			found = found || ok && guard.HostDirectory(from, strings.HasSuffix(rest, ":ro"))
		}
	})
	return found
}

// An argv has what could be programs and their arguments in one object.
type argv struct{ programs, args candidates }

type candidates struct {
	list [maxTools]candidate
	n    int
}

type candidate struct{ name, value []byte }

// add adds the value of the member at hand.
func (c *candidates) add(w *walk, value []byte) {
	if c.n == len(c.list) {
		w.found(detector.Opaque) // one of them could be hidden among the others
		return
	}
	c.list[c.n] = candidate{w.path[w.depth-1].name, value}
	c.n++
}

// member says how to look at the value of a name. has is not nil if it is that
// of an argument of t.
func (w *walk) member(t *Tool, name []byte, has *required) (arg argument) {
	if has == nil {
		arg = w.argumentOf(name)
	} else if p, ok := t.schema.declared[string(name)]; ok {
		if arg = p.argument; p.required > 0 {
			has[(p.required-1)/64] |= 1 << ((p.required - 1) % 64)
		}
	} else {
		arg = w.argumentOf(name)
		w.undeclared(t, name)
	}
	if t.configured != nil {
		arg |= t.configured[string(name)]
	}
	if bytes.IndexByte(name, 0) >= 0 {
		w.found(detector.NULByte)
	}
	return arg
}

// undeclared judges the name of an argument that the schema does not list.
func (w *walk) undeclared(t *Tool, name []byte) {
	const all = detector.UndeclaredArgument | detector.UnderscoreArgument | detector.More
	if !t.schema.closed || w.result.Found&all == all {
		return
	}
	for _, re := range t.schema.patterns {
		if len(name) <= maxPattern && re.Match(name) {
			return
		}
	}
	w.found(detector.UndeclaredArgument)
	if len(name) > 0 && name[0] == '_' {
		w.found(detector.UnderscoreArgument)
	}
}

// value looks at the value at b[i].
func (w *walk) value(i int, t *Tool, arg argument) int {
	switch w.b[i] {
	case '"':
		s, next := w.b.String(i)
		if next > 0 {
			w.text(w.decoded(s), t, arg)
		}
		return next
	case '{':
		return w.object(i, t, arg, nil)
	case '[':
		return w.list(i, t, arg)
	}
	if next := w.b.Scalar(i); next > i {
		return next
	}
	return -1
}

// list looks at the list at b[i].
func (w *walk) list(i int, t *Tool, arg argument) int {
	if w.depth == maxLevels {
		return w.opaque(i)
	}
	from, n := i, 0
	lists, strings := arg&list != 0, 0
	arg &^= list
	i, more := w.b.First(i)
	// The words of one command, or several commands.
	single := more && arg&commandLine != 0 && w.depth > 0 && !isPlural(w.path[w.depth-1].name) && w.isArgv(i)
	for ; more; n++ {
		w.push(nil, n)
		each := arg
		if w.b[i] == '"' {
			if strings++; single {
				each &^= commandLine | typed
			}
		}
		if lists && w.b[i] == '{' {
			i = w.item(i, t)
		} else {
			i = w.value(i, t, each)
		}
		if i < 0 {
			return -1
		}
		w.pop()
		i, more = w.b.Next(i, ']')
	}
	if i > 0 && arg&commandLine != 0 && strings > 1 && (single || i-from <= maxJoined) {
		w.joined(nil, w.b[from:i])
	}
	if i > 0 && lists && n > 1 && w.batches < maxBatches { // or its items were not read
		w.pieces(w.b[from:i], t)
	}
	return i
}

// opaque passes over the object or list at b[i], which is too deep to look at.
func (w *walk) opaque(i int) int {
	if _, more := w.b.First(i); more {
		w.found(detector.Opaque)
	}
	return w.b.Skip(i)
}

// isArgv reports whether the list whose first element is at b[i] is a command
// and its arguments, not a list of commands.
func (w *walk) isArgv(i int) bool {
	if w.b[i] != '"' {
		return false
	}
	s, next := w.b.String(i)
	if next < 0 || bytes.IndexByte(s.Inner, ' ') >= 0 {
		return false
	}
	next, more := w.b.Next(next, ']')
	return more && w.b[next] == '"'
}

func isPlural(name []byte) bool {
	return len(name) > 1 && name[len(name)-1]|0x20 == 's' && string(name) != "keys"
}

// joined judges a program and a list of its arguments, or a text, as one command.
func (w *walk) joined(program, args []byte) {
	// What is in lists in the list is passed over once for each list around it.
	if w.budget -= (len(program) + len(args)) / joinedBytes; w.budget <= 0 {
		w.found(detector.Opaque)
		return
	}
	w.argv = w.argv[:0]
	if program != nil {
		w.argv = jsontext.AppendUnquote(w.argv, program)
	}
	if args[0] == '"' {
		w.argv = jsontext.AppendUnquote(append(w.argv, ' '), args)
	}
	eachElement(args, func(value []byte) bool {
		if value[0] != '"' {
			return true
		}
		if len(w.argv) > 0 {
			w.argv = append(w.argv, ' ')
		}
		w.argv = append(w.argv, '\'')
		s, _ := jsontext.Lenient(value).String(0)
		for _, c := range w.decoded(s) {
			if c == '\'' {
				w.argv = append(w.argv, `'\'`...)
			}
			w.argv = append(w.argv, c)
		}
		w.argv = append(w.argv, '\'')
		return true
	})
	w.command(view(w.argv), maxJoined)
}

// item looks at the item at b[i] of a list of operations. If it names a tool it
// is a call of that tool.
func (w *walk) item(i int, t *Tool) int {
	if w.batches == maxBatches {
		w.found(detector.Opaque)
		return w.value(i, t, 0)
	}
	w.batches++
	defer func() { w.batches-- }()
	var names [maxTools][]byte
	named := 0
	end, more := w.b.First(i)
	for more {
		name, value := w.b.Name(end)
		if value < 0 {
			return -1
		}
		if end = w.b.Skip(value); end < 0 {
			return -1
		}
		if w.b[value] == '"' && isNamed(w.decodedName(name), "tool") {
			if named == maxTools {
				w.found(detector.Opaque)
				copy(names[:], names[1:])
				named--
			}
			names[named] = w.b[value:end]
			named++
		}
		end, more = w.b.Next(end, '}')
	}
	if named == 0 {
		return w.value(i, t, 0)
	}
	// An item is read once for each of its names. With several in each of the items
	// around it, that would be all combinations of them.
	if named > 1 && w.severalNames {
		w.found(detector.Opaque)
		names[0], named = names[named-1], 1
	} else if named > 1 {
		w.severalNames = true
		defer func() { w.severalNames = false }()
	}
	for _, name := range names[:named] {
		inner := w.toolOf(text(name))
		if r := &w.result; inner.Category.rank() > r.Category.rank() {
			r.Category, r.Source = inner.Category, inner.Source
		}
		w.result.Conflict = w.result.Conflict || inner.Conflict
		end = w.call(i, inner)
	}
	return end
}

// relayed looks at the arguments at b[from] of a tool that calls another one as at a call of
// that.
func (w *walk) relayed(from int, t *Tool) {
	if w.batches == maxBatches || w.severalNames {
		w.found(detector.Opaque)
		return
	}
	w.batches++
	defer func() { w.batches-- }()
	var names, values []int
	i, more := w.b.First(from)
	for more {
		name, value := w.b.Name(i)
		if value < 0 {
			return
		}
		switch decoded := view(w.decodedName(name)); {
		case w.b[value] == '"' && audit.IsToolName(decoded):
			names = append(names, value)
		case w.b[value] == '{' && audit.IsToolArguments(decoded):
			values = append(values, value)
		}
		if i = w.b.Skip(value); i < 0 {
			return
		}
		i, more = w.b.Next(i, '}')
	}
	if len(names) > 1 || len(values) > 1 {
		w.severalNames = true
		defer func() { w.severalNames = false }()
	}
	if len(names) > maxTools || len(values) > maxTools {
		w.found(detector.Opaque)
		names, values = names[max(len(names)-maxTools, 0):], values[max(len(values)-maxTools, 0):]
	}
	for _, at := range names {
		inner := w.toolOf(text(w.b[at:w.b.Skip(at)]))
		if r := &w.result; inner.Category.rank() > r.Category.rank() {
			r.Category, r.Source = inner.Category, inner.Source
		}
		for _, value := range values {
			w.push([]byte("arguments"), 0)
			w.arguments(inner, value)
			w.pop()
		}
	}
}

// call looks at the members of an item that calls t.
func (w *walk) call(i int, t *Tool) int {
	if w.depth == maxLevels {
		return w.opaque(i)
	}
	called := false
	i, more := w.b.First(i)
	for more {
		name, value := w.b.Name(i)
		if value < 0 {
			return -1
		}
		w.push(name.Inner, 0)
		switch decoded := w.decodedName(name); {
		case isNamed(decoded, "tool"):
			i = w.b.Skip(value)
		case isNamed(decoded, "arguments") && w.b[value] == '{':
			called = true
			i = w.arguments(t, value)
		default:
			i = w.value(value, t, argumentOf(decoded))
		}
		if i < 0 {
			return -1
		}
		w.pop()
		i, more = w.b.Next(i, '}')
	}
	if !called {
		w.push([]byte("arguments"), 0)
		w.arguments(t, len(w.b))
		w.pop()
	}
	return i
}

// text looks at a string.
func (w *walk) text(s []byte, t *Tool, arg argument) {
	if bytes.IndexByte(s, 0) >= 0 {
		w.found(detector.NULByte)
	}
	if len(s) == 0 {
		return
	}
	if arg&encoded != 0 && (s[0] == '{' || s[0] == '[') {
		w.json(s, t, arg)
		return
	}
	if s[0] == '[' && arg&(commandLine|pathname|address|variables) != 0 && len(s) <= maxList && jsontext.Valid(s) {
		s = bytes.Clone(s)
		w.json(s, t, arg) // a list as a string, as some servers read it
	}
	v := view(s)
	if arg&variables != 0 && environment.Assigned(v) || arg&variable != 0 && t.setsEnv && environment.Loaded(v) {
		w.found(detector.EnvironmentName)
	}
	isOption := arg&setting != 0 && t.setsOption // for a shell, or a hook of tmux, or a format
	line, isStatement := v, false                // behind comments of SQL, which are patterns of files for a shell
	queries := t.special.Database || t.special.Queries
	if arg&statement != 0 || arg&typed != 0 && queries {
		if rest, ok := service.Statement(v); ok {
			line, isStatement = rest, true
		}
	}
	isCommand := arg&(commandLine|program) != 0 || arg&typed != 0 && (t.executes || t.special.Graph || isStatement) || isOption
	if isCommand {
		runs := arg&(typed|commandLine) != 0 && t.executes && t.special.Code != ""
		if t.executes || arg&typed == 0 || !t.special.Graph && !t.special.Queries || t.special.Database {
			w.foreign = runs && w.interpreter != "" && !strings.HasPrefix(v, "%%") // a cell of bash
			w.command(line, len(v))
			if w.foreign {
				w.foreign = false
				w.shellLines(v)
			}
		}
		if arg&statement != 0 || arg&(typed|commandLine) != 0 && t.special.Database || isStatement {
			w.argv = appendQuoted(append(w.argv[:0], "psql -c"...), v)
			w.command(view(w.argv), len(w.argv))
		}
		if runs {
			w.code(cmp.Or(w.interpreter, t.special.Code), v)
		}
		if t.special.Graph {
			w.argv = appendQuoted(append(w.argv[:0], "cypher-shell"...), v)
			w.command(view(w.argv), len(w.argv))
		}
	}
	if arg&address != 0 {
		w.found(service.AddressDoes(v))
	}
	if i := bytes.IndexByte(s, '#'); i >= 0 && (isOption || !isCommand) {
		w.format(v[i:])
	}
	if (isOption || isCommand && t.setsOption) && command.Matters(v) {
		w.hook(v)
	}
	_, file := target.CutFile(v)
	if file || arg&pathname != 0 || arg&maybePath != 0 && target.IsPath(v) {
		w.budget -= pathCost
		d := w.a.place.Detect(v, &w.files)
		if t.Category >= Write && place.IsPipeline(v) {
			d |= detector.PathSensitive
		}
		if d != 0 {
			w.found(d)
		}
	}
	if !isCommand && (arg&address != 0 || strings.Contains(v[:min(len(v), 16)], ":")) && target.IsPrivateURL(v, arg&address != 0) {
		w.found(detector.PrivateAddress)
	}
}

// shellLines judges the lines of a notebook's code that its shell runs.
func (w *walk) shellLines(code string) {
	for line := range strings.Lines(code) {
		if line, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			w.command(line, len(line))
		}
	}
}

// format judges the commands in a format of tmux, which expands #(command) in
// many arguments: names, titles, directories.
func (w *walk) format(s string) {
	from := strings.Index(s, "#(")
	if from < 0 {
		return
	}
	s = s[from+2:]
	if end := strings.LastIndexByte(s, ')'); end >= 0 {
		s = s[:end]
	}
	w.command(s, len(s))
}

// hook judges a text as the commands of a hook of tmux. They end as those of a shell
// do, where "\;" stands for that in the arguments of the program tmux.
func (w *walk) hook(s string) {
	if name, command, ok := strings.Cut(s, "="); ok && !strings.ContainsAny(name, " \"'#") {
		s = command // of an alias
	}
	w.argv = append(w.argv[:0], "tmux "...)
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(s):
			w.argv = append(w.argv, c)
			i++
			c = s[i]
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && (c == ';' || c == '\n'):
			w.argv = append(w.argv, ` \; `...)
			continue
		}
		w.argv = append(w.argv, c)
	}
	w.command(view(w.argv), len(w.argv))
}

// json looks at the value in a string that the server reads as JSON.
func (w *walk) json(s []byte, t *Tool, arg argument) {
	if w.encoded == maxEncoded {
		w.found(detector.Opaque)
		return
	}
	w.encoded++
	outer := w.b
	w.b = bytes.Clone(s) // decoding reuses s
	depth := w.depth
	if i := w.value(0, t, arg); i < 0 && w.depth > depth {
		w.depth = depth // it is no JSON, and nobody reads it
	}
	w.b = outer
	w.encoded--
}
