package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"auditproxy/mcpproxy/risk/command/shell/expand"
	"auditproxy/mcpproxy/risk/detector"
)

// substitutions follows the substitutions in a node that is not evaluated itself.
func (s *Shell) substitutions(n syntax.Node) {
	if n == nil || !s.Spend(commandCost) {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s.inSubshell(false, func() Stream { return s.above.statements(n.Stmts, s.stdin) })
			return false
		case *syntax.ProcSubst:
			s.inSubshell(false, func() Stream { return s.above.statements(n.Stmts, Anything) })
			return false
		}
		return true
	})
}

// fields expands words as those of a command are.
func (s *Shell) fields(words []*syntax.Word) []Field {
	if len(words) == 0 {
		return nil
	}
	e := expansion{out: make([]Field, 0, len(words)+2)}
	for _, w := range words {
		if len(w.Parts) == 1 {
			if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\{*?[") {
				e.out = append(e.out, Field{Text: lit.Value})
				continue
			}
		}
		if n := expand.OpenBraces(w); s.Spend(min(n*n/pairsOfBraces, Budget)) && syntax.SplitBraces(w) {
			n := maxExpanded
			for _, parts := range s.braces(w.Parts, &n) {
				s.parts(&e, parts, false)
				e.end()
			}
			if n < 0 {
				s.Add(detector.Opaque)
			}
			continue
		}
		s.parts(&e, w.Parts, false)
		e.end()
	}
	return e.out
}

// braces returns the words that brace expansion makes of one, at most *n.
func (s *Shell) braces(parts []syntax.WordPart, n *int) [][]syntax.WordPart {
	for i, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		elems := b.Elems
		if b.Sequence {
			elems = expand.Sequence(b)
		}
		var out [][]syntax.WordPart
		for _, elem := range elems {
			if *n < 0 || !s.Spend(len(parts)/copiedParts) {
				break
			}
			word := append(append(append([]syntax.WordPart(nil), parts[:i]...), elem.Parts...), parts[i+1:]...)
			out = append(out, s.braces(word, n)...)
		}
		return out
	}
	*n--
	return [][]syntax.WordPart{parts}
}

// joined expands a word that stays one, as in an assignment.
func (s *Shell) joined(w *syntax.Word) Field {
	if w == nil {
		return Field{}
	}
	e := expansion{whole: true}
	s.parts(&e, w.Parts, false)
	e.some = true
	e.end()
	s.Spend(costOfLong(e.out))
	return e.out[0]
}

// document returns the stream of a here-document.
func (s *Shell) document(r *syntax.Redirect) Stream {
	if r.Hdoc == nil {
		return Stream{Kind: Empty}
	}
	if !s.Spend(int(r.Hdoc.End().Offset()-r.Hdoc.Pos().Offset()) / documentBytes) {
		return Anything
	}
	for _, p := range r.Word.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, "\\") {
			// A quoted delimiter: the body is literal.
			var b strings.Builder
			for _, p := range r.Hdoc.Parts {
				if lit, ok := p.(*syntax.Lit); ok {
					b.WriteString(lit.Value)
				}
			}
			return textOf(b.String())
		}
	}
	e := expansion{whole: true}
	s.parts(&e, r.Hdoc.Parts, true)
	e.some = true
	e.end()
	f := e.out[0]
	if f.Unknown && f.From&^Local == 0 {
		// The lines around what is not known still run.
		return Stream{Kind: Text, Text: strings.ReplaceAll(f.Text, Hole, "${_}")}
	}
	return f.stream()
}

// parts expands the parts of a word.
func (s *Shell) parts(e *expansion, parts []syntax.WordPart, quoted bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			e.literal(p.Value, quoted)
		case *syntax.SglQuoted:
			e.some, e.cur.quoted = true, true
			if p.Dollar {
				e.b = expand.AppendANSI(e.b, p.Value)
			} else {
				e.b = append(e.b, p.Value...)
			}
		case *syntax.DblQuoted:
			if !s.onlyParams(p) {
				e.some = true
			}
			e.cur.quoted = true
			s.parts(e, p.Parts, true)
		case *syntax.ParamExp:
			s.param(e, p, quoted)
		case *syntax.CmdSubst:
			s.substitute(e, p, quoted)
		case *syntax.ArithmExp:
			s.substitutions(p.X)
			if w, ok := p.X.(*syntax.Word); ok && w.Lit() != "" {
				e.b = append(e.b, w.Lit()...)
				e.some = true
			} else {
				e.unknown(0, true)
			}
		case *syntax.ProcSubst:
			in := s.stdin
			if in.Kind == None {
				in = Anything
			}
			out := s.inSubshell(false, func() Stream { return s.above.statements(p.Stmts, in) })
			e.b = append(e.b, "/dev/fd/63"...)
			if p.Op == syntax.CmdIn || p.Op == syntax.CmdInTemp {
				e.cur.Reads = &out
				e.cur.From |= out.From
			}
		case *syntax.ExtGlob:
			e.b = append(append(append(e.b, p.Op.String()...), p.Pattern.Value...), ')')
			e.cur.Glob = true
		}
	}
}

// onlyParams reports whether a quoted "$@" may be no word at all.
func (s *Shell) onlyParams(q *syntax.DblQuoted) bool {
	if len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && p.Param.Value == "@" && (s.hasParams && len(s.params) == 0)
}

// substitute adds what a command substitution prints, if that is known.
func (s *Shell) substitute(e *expansion, c *syntax.CmdSubst, quoted bool) {
	out := s.inSubshell(false, func() Stream { return s.above.statements(c.Stmts, s.stdin) })
	e.cur.From |= out.From
	switch out.Kind {
	case Text:
		e.value(strings.TrimRight(out.Text, "\n"), s.ifs(), quoted)
	case Empty:
		e.some = e.some || quoted
	case File:
		if f, ok := s.files[out.Text]; ok && f.Kind == Text {
			e.value(strings.TrimRight(f.Text, "\n"), s.ifs(), quoted)
			return
		}
		e.unknown(Local, quoted)
	default:
		e.unknown(out.From, quoted)
	}
}

// param adds the value of a parameter.
func (s *Shell) param(e *expansion, p *syntax.ParamExp, quoted bool) {
	if p.Index != nil {
		s.substitutions(p.Index)
	}
	if p.Slice != nil {
		s.substitutions(p.Slice.Offset)
		s.substitutions(p.Slice.Length)
	}
	if p.Param == nil || p.Length || p.Width || p.Flags != nil || p.IsSet || p.NestedParam != nil {
		if p.NestedParam != nil {
			s.substitutions(p.NestedParam)
		}
		e.unknown(0, quoted)
		return
	}
	name := p.Param.Value
	if name == "@" || name == "*" {
		s.positional(e, p, quoted)
		return
	}
	v, ok := s.lookup(name)
	if p.Excl {
		if !ok || p.Names != 0 || p.Index != nil || len(v.values) != 1 {
			e.unknown(v.from, quoted)
			return
		}
		v, ok = s.lookup(v.values[0])
	}
	if p.Index != nil && ok {
		v, ok = v.element(p.Index)
		if len(v.values) > 1 || ok && len(v.values) == 0 {
			if p.Slice != nil || p.Repl != nil || p.Exp != nil {
				e.unknown(v.from, quoted)
				return
			}
			for i, value := range v.values {
				if i > 0 && !e.whole {
					e.end()
				} else if i > 0 {
					e.b = append(e.b, ' ')
				}
				e.value(value, s.ifs(), quoted)
			}
			e.cur.From |= v.from
			return
		}
	}
	value := ""
	if ok && len(v.values) > 0 || len(v.values) == 1 {
		value = v.values[0]
	}
	from := v.from
	switch {
	case p.Exp != nil:
		arg := s.joined(p.Exp.Word)
		from |= arg.From
		_, given := s.vars[name]
		number := strings.Trim(name, "0123456789") == ""
		assumed := !ok && !given && !number && OneOf(p.Exp.Op.String(), "-", ":-", "=", ":=")
		value, ok = expand.Alter(p.Exp.Op, value, ok, given || number && s.hasParams, arg.Text, !arg.Unknown)
		if ok && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
			s.set(name, variable{values: []string{value}, known: true, assumed: assumed, from: from}, false)
		}
		if v.assumed = v.assumed || assumed; v.others != nil {
			v.others = expand.Defaults(p.Exp.Op, v.others, arg.Text, !arg.Unknown)
		}
	case p.Repl != nil:
		orig, with := s.joined(p.Repl.Orig), s.joined(p.Repl.With)
		from |= with.From
		ok = ok && !orig.Unknown && !orig.Glob && !with.Unknown && orig.Text != "" && !strings.ContainsAny(orig.Text[:1], "#%")
		if ok {
			n := 1
			if p.Repl.All {
				n = -1
			}
			size := min(len(value)+strings.Count(value, orig.Text)*len(with.Text), MaxText)
			if ok = s.Spend(size/wordBytes) && size < MaxText; ok {
				value = strings.Replace(value, orig.Text, with.Text, n)
			}
		}
	case p.Slice != nil:
		value, ok = expand.Slice(value, ok, name, p.Slice)
	}
	if !ok && len(v.values) == 1 && (p.Exp == nil || value != "" && value == v.values[0]) && p.Repl == nil && p.Slice == nil && strings.Trim(value, Hole) != "" && len(value) <= MaxValue {
		// A part of it is known.
		e.cur.From |= from
		e.cur.assumed = e.cur.assumed || v.assumed
		e.cur.Unknown, e.cur.Split = true, e.cur.Split || !quoted
		e.value(value, s.ifs(), quoted)
		e.cur.Unknown = true
		return
	}
	if !ok || len(value) > MaxValue {
		if s.quiet && name >= "0" && name <= "9~" {
			from |= detector.More
		}
		e.unknown(from, quoted)
		e.cur.False = strings.EqualFold(name, "false")
		if p.Repl == nil && p.Slice == nil && p.Index == nil {
			e.cur.others, e.cur.assumed = v.others, e.cur.assumed || v.assumed
		}
		return
	}
	e.cur.From |= from
	e.cur.assumed = e.cur.assumed || v.assumed
	e.value(value, s.ifs(), quoted)
}

// positional adds "$@" or "$*".
func (s *Shell) positional(e *expansion, p *syntax.ParamExp, quoted bool) {
	if p.Slice != nil || p.Repl != nil || p.Exp != nil {
		if p.Exp != nil {
			s.joined(p.Exp.Word)
		}
		e.unknown(0, quoted)
		return
	}
	if !s.hasParams {
		// A text that is typed has no parameters, one that is a script has.
		if len(e.b) == 0 {
			from := detector.Set(0)
			if s.quiet {
				from = detector.More
			}
			e.unknown(from, false)
		}
		return
	}
	for i, f := range s.params {
		switch {
		case i > 0 && e.whole:
			e.b = append(e.b, ' ')
		case i > 0:
			e.end()
		}
		if f.Unknown {
			e.b = append(e.b, f.Text...)
			e.cur.Unknown, e.cur.Split, e.some = true, f.Split, true
		} else {
			e.value(f.Text, s.ifs(), quoted)
		}
		e.cur.From |= f.From
	}
}
