package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"auditproxy/mcpproxy/risk/detector"
)

// statements follows commands in sequence.
func (s *Shell) statements(list []*syntax.Stmt, in Stream) Stream {
	out := Stream{Kind: Empty}
	for _, st := range list {
		if s.budget < 0 {
			return Anything
		}
		out = out.FollowedBy(s.statement(st, in))
	}
	return out
}

// part returns commands as an alternative.
func (s *Shell) part(list []*syntax.Stmt, in Stream) func() Stream {
	return func() Stream { return s.statements(list, in) }
}

// A target is a file that a command's output goes to.
type target struct {
	path     Field
	fd       string
	truncate bool
}

func (s *Shell) statement(st *syntax.Stmt, in Stream) Stream {
	if st == nil || !s.Spend(commandCost) {
		return Anything
	}
	outer := s.stdin
	s.stdin = in
	var targets []target
	read := false
	for _, r := range st.Redirs {
		if !s.Spend(commandCost) {
			return Anything
		}
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
			if in.Kind == Text {
				in.Text += "\n"
			}
		case syntax.RdrIn:
			in, read = s.Open(s.joined(r.Word)), true
		case syntax.RdrInOut:
			f := s.joined(r.Word)
			targets = append(targets, target{path: f, fd: fd})
			in, read = s.Open(f), true
		case syntax.DplIn:
			if f := s.joined(r.Word); f.Text != "0" && f.Text != "-" {
				in = Anything
			}
		case syntax.DplOut:
			f := s.joined(r.Word)
			if !f.Unknown && strings.Trim(f.Text, "0123456789-") != "" {
				targets = append(targets, target{path: f, fd: fd, truncate: true})
			} else if f.Text == "2" && (fd == "" || fd == "1") {
				// Output that goes to standard error is not what a pipe reads.
				targets = append(targets, target{path: Field{Text: "/dev/stderr"}, fd: fd})
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
	var out Stream
	if st.Cmd == nil && read && len(targets) <= 1 {
		out = in // $(< file)
	} else if st.Background {
		out = s.inSubshell(false, func() Stream { return s.node(st.Cmd, in) })
	} else {
		out = s.node(st.Cmd, in)
	}
	for _, t := range targets {
		body := out
		if t.fd == "0" && t.truncate {
			body = Stream{Kind: Empty} // no program writes to its input
		} else if t.fd != "" && t.fd != "1" {
			body = Anything
		}
		if st.Cmd == nil {
			body = Stream{Kind: Empty}
			if read {
				body = in
			}
		}
		s.Write(t.path, body, t.truncate)
		if t.fd == "" || t.fd == "1" {
			out = Stream{Kind: Empty}
		}
	}
	s.stdin = outer
	return out
}

func (s *Shell) node(c syntax.Command, in Stream) Stream {
	if s.budget < 0 {
		return Anything
	}
	switch c := c.(type) {
	case nil:
		return Stream{Kind: Empty}
	case *syntax.CallExpr:
		return s.call(c, in)
	case *syntax.BinaryCmd:
		return s.binary(c, in)
	case *syntax.Block:
		return s.statements(c.Stmts, in)
	case *syntax.Subshell:
		return s.inSubshell(false, func() Stream { return s.statements(c.Stmts, in) })
	case *syntax.IfClause:
		return s.ifClause(c, in).OrUnknown()
	case *syntax.WhileClause:
		if isEndless(c) {
			s.Add(detector.ForkBomb)
		}
		return s.loop(func() Stream {
			return s.statements(c.Cond, in).FollowedBy(s.maybe(s.part(c.Do, in)))
		})
	case *syntax.ForClause:
		return s.forClause(c, in)
	case *syntax.CaseClause:
		s.joined(c.Word)
		return s.caseClause(c, in).OrUnknown()
	case *syntax.TimeClause:
		return s.statement(c.Stmt, in)
	case *syntax.CoprocClause:
		return s.inSubshell(false, func() Stream { return s.statement(c.Stmt, Anything) })
	case *syntax.FuncDecl:
		s.define(c)
		return Stream{Kind: Empty}
	case *syntax.DeclClause:
		ref := c.Variant.Value == "nameref"
		for _, a := range c.Args {
			if a.Naked && a.Value != nil {
				option := a.Value.Lit()
				ref = ref || strings.HasPrefix(option, "-") && strings.Contains(option, "n")
			}
			if a.Name != nil {
				s.local(c.Variant.Value, a.Name.Value)
			}
			s.assign(a)
			if ref && a.Name != nil {
				v := s.vars[a.Name.Value]
				v.ref = true
				s.bind(a.Name.Value, v)
			}
		}
		return Stream{Kind: Empty}
	default: // tests and arithmetic
		s.substitutions(c)
		return Stream{Kind: Empty}
	}
}

func (s *Shell) binary(c *syntax.BinaryCmd, in Stream) Stream {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		if !s.Spend(2 * commandCost) {
			return Anything
		}
		return s.inSubshell(true, func() Stream {
			out := s.statement(c.X, in)
			if out.Kind == None {
				out.Kind = Unknown
			}
			return s.statement(c.Y, out)
		})
	}
	second := func() Stream { return s.statement(c.Y, in) }
	if x, ok := c.X.Cmd.(*syntax.BinaryCmd); ok && c.Op == syntax.OrStmt && x.Op == syntax.AndStmt && assigns(x.Y) {
		// In a && x=1 || x=2 one of the two runs.
		out := s.statement(x.X, in)
		return out.FollowedBy(s.either(func() Stream { return s.statement(x.Y, in) }, second))
	}
	out := s.statement(c.X, in)
	if c.Op == syntax.AndStmt && assigns(c.X) {
		return out.FollowedBy(second())
	}
	return out.FollowedBy(s.maybe(second))
}

// assigns reports whether a statement only assigns words, which does not fail.
func assigns(st *syntax.Stmt) bool {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) > 0 || len(st.Redirs) > 0 || st.Negated || st.Background {
		return false
	}
	for _, a := range c.Assigns {
		if a.Value == nil || a.Value.Lit() == "" && !isQuoted(a.Value) {
			return false
		}
	}
	return true
}

// isQuoted reports whether a word is one of literal characters in quotes.
func isQuoted(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.SglQuoted:
		return true
	case *syntax.DblQuoted:
		return len(p.Parts) == 0 || len(p.Parts) == 1 && (&syntax.Word{Parts: p.Parts}).Lit() != ""
	}
	return false
}

func (s *Shell) ifClause(c *syntax.IfClause, in Stream) Stream {
	if c == nil {
		return Stream{Kind: Empty}
	}
	if !s.Enter() {
		return Anything
	}
	defer s.Leave()
	out := s.statements(c.Cond, in) // an else has none
	if len(c.Cond) == 0 {
		return out.FollowedBy(s.statements(c.Then, in))
	}
	return out.FollowedBy(s.either(s.part(c.Then, in), func() Stream { return s.ifClause(c.Else, in) }))
}

func (s *Shell) caseClause(c *syntax.CaseClause, in Stream) Stream {
	parts, falls, all := []func() Stream{nil}, false, false
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			s.substitutions(p)
			all = all || p.Lit() == "*"
		}
		falls = falls || item.Op != syntax.Break
		parts = append(parts, s.part(item.Stmts, in))
	}
	out := Stream{Kind: Empty}
	switch {
	case falls: // an item may also run behind another one
		for _, part := range parts[1:] {
			out = out.FollowedBy(s.maybe(part))
		}
	case all: // one of them runs
		out = s.either(parts[1:]...)
	default:
		out = s.either(parts...)
	}
	return out
}

// loop follows a loop's body twice, because the second turn sees what the first one assigned.
func (s *Shell) loop(body func() Stream) Stream {
	s.loops++
	defer func() { s.loops-- }()
	out := body()
	if s.loops <= 2 {
		body()
	}
	return out.OrUnknown()
}

func (s *Shell) forClause(c *syntax.ForClause, in Stream) Stream {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		s.substitutions(c.Loop)
		return s.loop(func() Stream { return s.maybe(s.part(c.Do, in)) })
	}
	items := s.params
	all := s.hasParams
	if iter.InPos.IsValid() {
		if items, all = s.fields(iter.Items), true; !s.Spend(costOfLong(items)) {
			return Anything
		}
	}
	for _, f := range items {
		all = all && !f.Unknown && !f.Glob && f.From == 0
	}
	if c.Select || !all || len(items) > maxItems {
		from := detector.Set(0)
		for _, f := range items {
			from |= f.From
		}
		return s.loop(func() Stream {
			s.bind(iter.Name.Value, variable{from: from})
			return s.maybe(s.part(c.Do, in))
		})
	}
	if len(items) == 0 {
		items = []Field{{Unknown: true}} // it may be called with others
	}
	s.loops++
	defer func() { s.loops-- }()
	out := Stream{Kind: Empty}
	for _, f := range items {
		s.bind(iter.Name.Value, variable{values: []string{f.Text}, known: !f.Unknown})
		out = out.FollowedBy(s.maybe(s.part(c.Do, in)))
	}
	return out
}

// define keeps a function for its calls and looks for a fork bomb.
func (s *Shell) define(c *syntax.FuncDecl) {
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
			s.callFunction(old, nil, Stream{})
		}
		s.functions[name.Value] = &function{body: []*syntax.Stmt{c.Body}}
		if forks(name.Value, c.Body) {
			s.Add(detector.ForkBomb)
		}
	}
}

// isEndless reports whether the loop does nothing but start processes for ever.
func isEndless(c *syntax.WhileClause) bool {
	if len(c.Cond) != 1 || len(c.Do) == 0 {
		return false
	}
	call, ok := c.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 || !OneOf(call.Args[0].Lit(), "true", ":", "false") || c.Until != (call.Args[0].Lit() == "false") {
		return false
	}
	for _, st := range c.Do {
		if !st.Background {
			return false
		}
	}
	return true
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

func (s *Shell) call(c *syntax.CallExpr, in Stream) Stream {
	s.stdin = in
	fields := s.fields(c.Args)
	if len(fields) > 2 && fields[0].Unknown && OneOf(fields[1].Text, "=", "+=") { // of PowerShell: $x = Get-Content file
		if p, ok := c.Args[0].Parts[0].(*syntax.ParamExp); ok && p.Param != nil {
			out := s.Command(fields, in)
			s.bind(p.Param.Value, variable{from: out.From})
			return out
		}
	}
	if len(fields) > 0 && len(c.Assigns) > 0 {
		// The assignments are the command's environment. One in front of eval lasts that long.
		before := make([]variable, len(c.Assigns))
		for i, a := range c.Assigns {
			if a.Name != nil {
				before[i] = s.vars[a.Name.Value]
			}
			s.assign(a)
		}
		out := s.Command(fields, in)
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
	return s.Command(fields, in)
}

func (s *Shell) assign(a *syntax.Assign) {
	if !s.Spend(wordCost) {
		return
	}
	if a.Name == nil {
		if a.Value != nil {
			// declare "x=y"
			f := s.joined(a.Value)
			if name, value, ok := strings.Cut(f.Text, "="); ok && !f.Unknown {
				s.set(name, variable{values: []string{value}, known: true}, false)
				s.Assigned(name, value)
			}
		}
		return
	}
	if a.Index != nil {
		s.substitutions(a.Index)
	}
	v := variable{known: true}
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
			fields := s.fields([]*syntax.Word{e.Value})
			if !s.Spend(costOfLong(fields)) {
				return
			}
			for _, f := range fields {
				v.values = append(v.values, f.Text)
				v.known = v.known && !f.Unknown && !f.Glob
				v.from |= f.From
			}
		}
	case a.Value != nil:
		f := s.joined(a.Value)
		v.values, v.known, v.from, v.assumed = []string{f.Text}, !f.Unknown, f.From, f.assumed
		v.others = f.others
		s.Assigned(a.Name.Value, f.Text)
	case a.Naked:
		return
	default:
		v.values = []string{""}
		s.Assigned(a.Name.Value, "")
	}
	if a.Index != nil {
		v.known = false
	}
	s.set(a.Name.Value, v, a.Append)
}
