package risk

import (
	"errors"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The limits of one text. Each keeps the time linear in the length of the text;
// a text beyond them is Opaque.
const (
	shellBudget  = 2 * maxCommand // bytes parsed and commands judged
	parseCost    = 250            // of one parse, next to its bytes
	commandCost  = 24             // of one command
	maxDepth     = 24             // texts in texts, calls in calls
	maxOpeners   = 1500           // brackets and words that nest; the parser recurses on them
	maxOperators = 6000
	maxSpaces    = 12000
	maxItems     = 16 // words of a loop that are tried one by one
	maxExpanded  = 64 // words that one brace expansion makes
	maxValue     = 4096
)

// A shell follows a text as a shell would run it, without running anything. One
// goroutine uses it, for one text at a time.
type shell struct {
	parser *syntax.Parser
	reader strings.Reader

	found     Detectors
	vars      map[string]shellVar
	functions map[string]*function
	aliases   map[string]string
	files     map[string]stream // what the text itself wrote, by path
	params    []field           // "$@"
	hasParams bool
	zero      string // "$0", if a caller gave it
	stdin     stream // of the command whose words are expanded
	filling   bool   // judging a command again, with unset variables as empty
	branch    int    // above zero in code that may not run
	loops     int
	depth     int
	budget    int
	quiet     bool // an unknown parameter as command word is no finding: the function was not called
}

// A shellVar is what is known of a variable of the text.
type shellVar struct {
	values []string // more than one for an array
	known  bool
	from   Detectors // what running its value would be
}

type function struct {
	body   *syntax.Stmt
	called bool
	active bool
}

// A stream is what is known of the output or input of a command.
type stream struct {
	kind streamKind
	text string    // of textStream; of fileStream, the path
	alt  string    // the text if the shell's echo reads escapes; "" if it is the same
	from Detectors // what running it would be
}

type streamKind uint8

const (
	noStream streamKind = iota // the terminal
	emptyStream
	textStream
	fileStream
	unknownStream
)

var unknown = stream{kind: unknownStream}

func textOf(s string) stream {
	if s == "" {
		return stream{kind: emptyStream}
	}
	return stream{kind: textStream, text: s}
}

// followedBy returns the stream that has t behind s.
func (s stream) followedBy(t stream) stream {
	switch {
	case s.kind == emptyStream || s.kind == noStream:
		t.from |= s.from &^ generated
		return t
	case t.kind == emptyStream || t.kind == noStream:
		s.from |= t.from &^ generated
		return s
	case s.from&t.from&generated == 0:
		s.from &^= generated
		t.from &^= generated
	}
	switch {
	case s.kind == textStream && t.kind == textStream && len(s.text)+len(t.text) <= maxCommand:
		both := stream{kind: textStream, text: s.text + t.text, from: s.from | t.from}
		if s.alt != "" || t.alt != "" {
			both.alt = s.escaped() + t.escaped()
		}
		return both
	}
	return stream{kind: unknownStream, from: s.from | t.from}
}

// judge returns what the text does.
func (s *shell) judge(text string) Detectors {
	s.forget()
	s.budget = shellBudget
	s.run(asTyped(text), stream{})
	// A function that was only defined is called by a later text.
	s.quiet = true
	s.params, s.hasParams = nil, false
	for _, f := range s.functions {
		if !f.called {
			s.callFunction(f, nil, stream{})
		}
	}
	return s.found
}

// escaped returns the text as a shell prints it whose echo reads escapes.
func (s stream) escaped() string {
	if s.alt != "" {
		return s.alt
	}
	return s.text
}

// forget drops what is left of a text, which could hold a secret.
func (s *shell) forget() {
	*s = shell{parser: s.parser}
}

// asTyped returns the text as the shell behind a terminal reads it: without NUL, a
// carriage return as end of line, erased characters gone.
func asTyped(text string) string {
	if !strings.ContainsAny(text, "\x00\r\x08\x7f\x03\x15") {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; c {
		case 0:
		case '\r', 0x03:
			if i+1 == len(text) || text[i+1] != '\n' {
				b = append(b, '\n')
			}
		case 0x08, 0x7f:
			if len(b) > 0 && b[len(b)-1] != '\n' {
				b = b[:len(b)-1]
			}
		case 0x15: // the line is erased
			for len(b) > 0 && b[len(b)-1] != '\n' {
				b = b[:len(b)-1]
			}
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// spend takes n from the budget. Without any left the text is Opaque.
func (s *shell) spend(n int) bool {
	if s.budget -= n; s.budget < 0 {
		s.found |= Opaque
		return false
	}
	return true
}

// run follows a text that a shell reads from in.
func (s *shell) run(text string, in stream) stream {
	if s.depth >= maxDepth {
		s.found |= Opaque
		return unknown
	}
	s.depth++
	defer func() { s.depth-- }()
	if !nests(text) {
		if stmts, ok := s.parse(text); ok {
			return s.stmts(stmts, in)
		}
	} else if scanGate(text) != 0 {
		s.found |= Opaque
		return unknown
	}
	s.unparsed(text, in)
	return unknown
}

// parse parses the text as the first dialect that it is correct in.
func (s *shell) parse(text string) ([]*syntax.Stmt, bool) {
	for _, dialect := range [...]syntax.LangVariant{syntax.LangBash, syntax.LangMirBSDKorn, syntax.LangPOSIX} {
		if !s.spend(parseCost + len(text)) {
			return nil, false
		}
		syntax.Variant(dialect)(s.parser)
		s.reader.Reset(text)
		f, err := s.parser.Parse(&s.reader, "")
		if err == nil {
			return f.Stmts, true
		}
		// A shell ends a here-document at the end of the text.
		var problem syntax.ParseError
		if errors.As(err, &problem) && strings.HasPrefix(problem.Text, "unclosed here-document") && s.spend(parseCost+len(text)) {
			if _, rest, ok := strings.Cut(problem.Text, "`"); ok {
				s.reader.Reset(text + "\n" + strings.TrimSuffix(rest, "`") + "\n")
				if f, err := s.parser.Parse(&s.reader, ""); err == nil {
					return f.Stmts, true
				}
			}
		}
		if len(text) > maxDialects {
			break
		}
	}
	return nil, false
}

// nests reports whether the text could nest so deep, or is made of so many
// operators, that parsing it would take too long.
func nests(text string) bool {
	if len(text) < maxOpeners {
		return false
	}
	openers, operators, spaces := 0, 0, 0
	start := 0
	for i := range len(text) {
		switch c := text[i]; c {
		case '(', '{', '[', '`', '!', '+', '-':
			if c != '-' && c != '+' || i > 0 && text[i-1] == c {
				openers++
			}
		case '|', '&', ';', '<', '>', '$', '\n':
			operators++
		case ' ', '\t':
			spaces++
		}
		if gateClass[text[i]] == classWord {
			continue
		}
		switch text[start:i] {
		case "if", "while", "until", "for", "case", "select", "time", "coproc", "function", "do", "then", "else", "elif":
			openers++
		}
		start = i + 1
	}
	return openers > maxOpeners || operators > maxOperators || spaces > maxSpaces
}

// unparsed judges a text that no dialect accepts: line by line, and by its words
// where a line is not accepted either.
func (s *shell) unparsed(text string, in stream) {
	if scanGate(text) == 0 {
		return
	}
	if isBomb(text) {
		s.found |= ForkBomb
	}
	if len(text) > maxDialects {
		s.found |= Opaque
		return
	}
	s.branch++
	defer func() { s.branch-- }()
	if strings.Contains(text, "((") {
		// What the parser takes for arithmetic is a subshell in a substitution.
		if stmts, ok := s.parse(strings.ReplaceAll(text, "((", "( (")); ok {
			s.stmts(stmts, in)
			return
		}
	}
	text = strings.ReplaceAll(text, "\\\n", "")
	if !strings.Contains(strings.TrimSpace(text), "\n") {
		s.words(text)
		return
	}
	for line := range strings.Lines(text) {
		if stmts, ok := s.parse(line); ok {
			s.stmts(stmts, in)
		} else {
			s.words(line)
		}
	}
}

// words judges a line that does not parse by its words. It is Opaque if one of
// them is a trigger.
func (s *shell) words(line string) {
	if isSQL(line) {
		s.sql(line)
		return
	}
	plain := unquote(line)
	if scanGate(plain)&gateWord == 0 && !strings.Contains(plain, "$") {
		return
	}
	for w := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r > 0x7f || gateClass[r] != classWord }) {
		if isTriggerWord(w) && !weak(w) {
			s.found |= Opaque
			break
		}
	}
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";|&(){}\n`", r) }) {
		var fields []field
		for w := range strings.FieldsSeq(unquote(part)) {
			if strings.ContainsAny(w, "$`") {
				fields = append(fields, field{s: hole, unknown: true})
			} else {
				fields = append(fields, field{s: w})
			}
		}
		s.command(fields, unknown)
	}
}

// weak reports whether the word is one of weakWords.
func weak(w string) bool {
	for v := range strings.FieldsSeq(weakWords) {
		if strings.EqualFold(v, w) {
			return true
		}
	}
	return false
}

var quotes = strings.NewReplacer("'", "", "\"", "", "\\", "")

func unquote(s string) string { return quotes.Replace(s) }

// stmts follows commands in sequence.
func (s *shell) stmts(list []*syntax.Stmt, in stream) stream {
	out := stream{kind: emptyStream}
	for _, st := range list {
		out = out.followedBy(s.stmt(st, in))
	}
	return out
}

// maybe follows commands that may not run.
func (s *shell) maybe(list []*syntax.Stmt, in stream) stream {
	s.branch++
	defer func() { s.branch-- }()
	return s.stmts(list, in)
}

// inSubshell calls f, whose assignments do not last. Where they could, because a shell
// runs the last command of a pipe itself, both values are possible.
func (s *shell) inSubshell(lasts bool, f func() stream) stream {
	if !s.spend(len(s.vars)) {
		return unknown
	}
	before := maps.Clone(s.vars)
	out := f()
	if lasts {
		for name, v := range s.vars {
			if old, ok := before[name]; ok && !old.equal(v) {
				before[name] = shellVar{from: old.from | v.from}
			} else if !ok {
				if before == nil {
					before = map[string]shellVar{}
				}
				before[name] = v
			}
		}
	}
	s.vars = before
	return out
}

func (v shellVar) equal(w shellVar) bool {
	return v.known && w.known && len(v.values) == 1 && len(w.values) == 1 && v.values[0] == w.values[0]
}

// A target is a file that a command's output goes to.
type target struct {
	path     field
	fd       string
	truncate bool
}

func (s *shell) stmt(st *syntax.Stmt, in stream) stream {
	if st == nil || !s.spend(commandCost) {
		return unknown
	}
	outer := s.stdin
	s.stdin = in
	var targets []target
	read := false
	for _, r := range st.Redirs {
		fd, before := "", in
		if r.N != nil {
			fd = r.N.Value
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			in, read = s.document(r), true
		case syntax.WordHdoc:
			f := s.joined(r.Word)
			in, read = f.stream(), true
			if in.kind == textStream {
				in.text += "\n"
			}
		case syntax.RdrIn:
			in, read = s.open(s.joined(r.Word)), true
		case syntax.RdrInOut:
			f := s.joined(r.Word)
			targets = append(targets, target{path: f, fd: fd})
			in, read = s.open(f), true
		case syntax.DplIn:
			if f := s.joined(r.Word); f.s != "0" && f.s != "-" {
				in = unknown
			}
		case syntax.DplOut:
			f := s.joined(r.Word)
			if !f.unknown && strings.Trim(f.s, "0123456789-") != "" {
				targets = append(targets, target{path: f, fd: fd, truncate: true})
			} else if f.s == "2" && (fd == "" || fd == "1") {
				// Output that goes to standard error is not what a pipe reads.
				targets = append(targets, target{path: field{s: "/dev/stderr"}, fd: fd})
			}
		case syntax.AppOut, syntax.AppAll:
			targets = append(targets, target{path: s.joined(r.Word), fd: fd})
		default:
			targets = append(targets, target{path: s.joined(r.Word), fd: fd, truncate: true})
		}
		if fd != "" && fd != "0" {
			in = before // another file descriptor is not standard input
		}
	}
	s.stdin = in
	var out stream
	if st.Cmd == nil && read && len(targets) <= 1 {
		out = in // $(< file)
	} else if st.Background {
		out = s.inSubshell(false, func() stream { return s.cmd(st.Cmd, in) })
	} else {
		out = s.cmd(st.Cmd, in)
	}
	for _, t := range targets {
		body := out
		if t.fd != "" && t.fd != "1" {
			body = unknown
		}
		if st.Cmd == nil {
			body = stream{kind: emptyStream}
			if read {
				body = in
			}
		}
		s.write(t.path, body, t.truncate)
		if t.fd == "" || t.fd == "1" {
			out = stream{kind: emptyStream}
		}
	}
	s.stdin = outer
	return out
}

func (s *shell) cmd(c syntax.Command, in stream) stream {
	if s.budget < 0 {
		return unknown
	}
	switch c := c.(type) {
	case nil:
		return stream{kind: emptyStream}
	case *syntax.CallExpr:
		return s.call(c, in)
	case *syntax.BinaryCmd:
		return s.binary(c, in)
	case *syntax.Block:
		return s.stmts(c.Stmts, in)
	case *syntax.Subshell:
		return s.inSubshell(false, func() stream { return s.stmts(c.Stmts, in) })
	case *syntax.IfClause:
		out := stream{kind: emptyStream}
		for ; c != nil; c = c.Else {
			out = out.followedBy(s.maybe(c.Cond, in)).followedBy(s.maybe(c.Then, in))
		}
		return out.orUnknown()
	case *syntax.WhileClause:
		if isEndless(c) {
			s.found |= ForkBomb
		}
		return s.loop(func() stream {
			out := s.maybe(c.Cond, in)
			return out.followedBy(s.maybe(c.Do, in))
		})
	case *syntax.ForClause:
		return s.forClause(c, in)
	case *syntax.CaseClause:
		s.joined(c.Word)
		out := stream{kind: emptyStream}
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				s.substitutions(p)
			}
			out = out.followedBy(s.maybe(item.Stmts, in))
		}
		return out.orUnknown()
	case *syntax.TimeClause:
		return s.stmt(c.Stmt, in)
	case *syntax.CoprocClause:
		return s.inSubshell(false, func() stream { return s.stmt(c.Stmt, unknown) })
	case *syntax.FuncDecl:
		s.define(c)
		return stream{kind: emptyStream}
	case *syntax.DeclClause:
		for _, a := range c.Args {
			s.assign(a)
		}
		return stream{kind: emptyStream}
	default: // tests and arithmetic
		s.substitutions(c)
		return stream{kind: emptyStream}
	}
}

// orUnknown returns what a command printed of which only a part ran.
func (s stream) orUnknown() stream {
	if s.kind == textStream || s.kind == fileStream {
		s.kind = unknownStream
	}
	return s
}

func (s *shell) binary(c *syntax.BinaryCmd, in stream) stream {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		return s.inSubshell(true, func() stream {
			out := s.stmt(c.X, in)
			if out.kind == noStream {
				out.kind = unknownStream
			}
			return s.stmt(c.Y, out)
		})
	}
	out := s.stmt(c.X, in)
	s.branch++
	defer func() { s.branch-- }()
	return out.followedBy(s.stmt(c.Y, in))
}

// loop follows a loop's body twice, because the second turn sees what the first one assigned.
func (s *shell) loop(body func() stream) stream {
	s.loops++
	defer func() { s.loops-- }()
	out := body()
	if s.loops <= 2 {
		body()
	}
	return out.orUnknown()
}

func (s *shell) forClause(c *syntax.ForClause, in stream) stream {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		s.substitutions(c.Loop)
		return s.loop(func() stream { return s.maybe(c.Do, in) })
	}
	items := s.params
	all := s.hasParams
	if iter.InPos.IsValid() {
		items, all = s.fields(iter.Items), true
	}
	for _, f := range items {
		all = all && !f.unknown && !f.glob && f.from == 0
	}
	if c.Select || !all || len(items) > maxItems {
		from := Detectors(0)
		for _, f := range items {
			from |= f.from
		}
		return s.loop(func() stream {
			s.bind(iter.Name.Value, shellVar{from: from})
			return s.maybe(c.Do, in)
		})
	}
	if len(items) == 0 {
		items = []field{{unknown: true}} // it may be called with others
	}
	s.loops++
	defer func() { s.loops-- }()
	out := stream{kind: emptyStream}
	for _, f := range items {
		s.bind(iter.Name.Value, shellVar{values: []string{f.s}, known: !f.unknown})
		out = out.followedBy(s.maybe(c.Do, in))
	}
	return out
}

// define keeps a function for its calls and looks for a fork bomb.
func (s *shell) define(c *syntax.FuncDecl) {
	names := c.Names
	if c.Name != nil {
		names = append(names, c.Name)
	}
	for _, name := range names {
		if s.functions == nil {
			s.functions = map[string]*function{}
		}
		if old := s.functions[name.Value]; old != nil && !old.called {
			old.called = true
			s.callFunction(old, nil, stream{})
		}
		s.functions[name.Value] = &function{body: c.Body}
		if forks(name.Value, c.Body) {
			s.found |= ForkBomb
		}
	}
}

// isEndless reports whether the loop does nothing but start processes for ever.
func isEndless(c *syntax.WhileClause) bool {
	if len(c.Cond) != 1 || len(c.Do) == 0 {
		return false
	}
	call, ok := c.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 || !oneOf(call.Args[0].Lit(), "true", ":", "false") || c.Until != (call.Args[0].Lit() == "false") {
		return false
	}
	for _, st := range c.Do {
		if !st.Background {
			return false
		}
	}
	return true
}

// isBomb reports whether the text is a fork bomb without the spaces that a shell
// needs, as it is often written.
func isBomb(text string) bool {
	if len(text) > 256 {
		return false
	}
	text = strings.Join(strings.Fields(text), "")
	name, rest, ok := strings.Cut(text, "(){")
	return ok && name != "" && strings.HasPrefix(rest, name+"|"+name+"&}")
}

// forks reports whether the function starts itself at least twice, or in the background.
func forks(name string, body *syntax.Stmt) bool {
	calls, found := 0, false
	isCall := func(st *syntax.Stmt) bool {
		call, ok := st.Cmd.(*syntax.CallExpr)
		return ok && len(call.Args) > 0 && call.Args[0].Lit() == name
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if isCall(n) {
				calls++
				found = found || n.Background
			}
		case *syntax.BinaryCmd:
			pipe := n.Op == syntax.Pipe || n.Op == syntax.PipeAll
			found = found || pipe && isCall(n.X) && isCall(n.Y)
		}
		return true
	})
	return found
}

func (s *shell) callFunction(f *function, args []field, in stream) stream {
	if f.active || s.depth >= maxDepth {
		return unknown
	}
	f.active, f.called = true, true
	s.depth++
	params, has := s.params, s.hasParams
	if !s.quiet {
		s.params, s.hasParams = args, true
	}
	out := s.stmt(f.body, in)
	s.params, s.hasParams = params, has
	s.depth--
	f.active = false
	return out
}

// substitutions follows the substitutions in a node that is not evaluated itself.
func (s *shell) substitutions(n syntax.Node) {
	if n == nil || !s.spend(commandCost) {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s.inSubshell(false, func() stream { return s.stmts(n.Stmts, s.stdin) })
			return false
		case *syntax.ProcSubst:
			s.inSubshell(false, func() stream { return s.stmts(n.Stmts, unknown) })
			return false
		}
		return true
	})
}

func (s *shell) call(c *syntax.CallExpr, in stream) stream {
	s.stdin = in
	fields := s.fields(c.Args)
	if len(fields) > 0 && len(c.Assigns) > 0 {
		// The assignments are the command's environment. One in front of eval lasts that long.
		before := make([]shellVar, len(c.Assigns))
		for i, a := range c.Assigns {
			if a.Name != nil {
				before[i] = s.vars[a.Name.Value]
			}
			s.assign(a)
		}
		out := s.command(fields, in)
		for i, a := range c.Assigns {
			if a.Name != nil {
				s.bind(a.Name.Value, before[i])
			}
		}
		return out
	}
	for _, a := range c.Assigns {
		s.assign(a)
	}
	return s.command(fields, in)
}

func (s *shell) assign(a *syntax.Assign) {
	if a.Name == nil {
		if a.Value != nil {
			// declare "x=y"
			f := s.joined(a.Value)
			if name, value, ok := strings.Cut(f.s, "="); ok && !f.unknown {
				s.set(name, shellVar{values: []string{value}, known: true}, false)
				s.assigned(name, value)
			}
		}
		return
	}
	if a.Index != nil {
		s.substitutions(a.Index)
	}
	v := shellVar{known: true}
	switch {
	case a.Array != nil:
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				s.substitutions(e.Index)
				v.known = false
			}
			if e.Value == nil {
				continue
			}
			for _, f := range s.fields([]*syntax.Word{e.Value}) {
				v.values = append(v.values, f.s)
				v.known = v.known && !f.unknown && !f.glob
				v.from |= f.from
			}
		}
	case a.Value != nil:
		f := s.joined(a.Value)
		v.values, v.known, v.from = []string{f.s}, !f.unknown, f.from
		s.assigned(a.Name.Value, f.s)
	case a.Naked:
		return
	default:
		v.values = []string{""}
	}
	if a.Index != nil {
		v.known = false
	}
	s.set(a.Name.Value, v, a.Append)
}

// set assigns. In code that may not run, the variable may also keep what it had.
func (s *shell) set(name string, v shellVar, add bool) {
	old, ok := s.vars[name]
	if add && ok {
		v.known = v.known && old.known
		v.from |= old.from
		if len(v.values) == 1 && len(old.values) == 1 {
			v.values = []string{old.values[0] + v.values[0]}
		} else {
			v.values = append(append([]string(nil), old.values...), v.values...)
		}
	} else if add {
		v.known, v.values = false, nil
	} else if ok && s.branch > 0 && !old.equal(v) {
		v.known, v.values = false, nil
		v.from |= old.from
	}
	size := 0
	for _, value := range v.values {
		size += len(value)
	}
	if size > maxValue {
		v.known, v.values = false, nil
	}
	s.bind(name, v)
}

// bind makes v what is known of a variable.
func (s *shell) bind(name string, v shellVar) {
	if s.vars == nil {
		s.vars = map[string]shellVar{}
	}
	s.vars[name] = v
}
