package risk

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A field is one word of a command after expansion.
type field struct {
	s       string    // with hole in place of each part that is not known
	unknown bool      // it has such a part
	split   bool      // such a part is unquoted: it may be no word or several
	glob    bool      // an unquoted wildcard is in it
	quoted  bool      // quoting is in it
	from    Detectors // what running it would be
	reads   *stream   // of a process substitution: what a reader of the file gets
}

// hole stands for what is not known.
const hole = "\x00"

// stream returns what a reader of the field's text reads.
func (f field) stream() stream {
	if f.unknown {
		return stream{kind: unknownStream, from: f.from}
	}
	st := textOf(f.s)
	st.from = f.from
	return st
}

// An expansion collects the fields of a word.
type expansion struct {
	out   []field
	cur   field
	b     []byte
	some  bool // cur is a field even if it is empty
	whole bool // no splitting: an assignment, a redirection
}

func (e *expansion) end() {
	if e.some || len(e.b) > 0 {
		e.cur.s = string(e.b)
		e.out = append(e.out, e.cur)
	}
	e.cur, e.b, e.some = field{}, e.b[:0], false
}

// value adds an expanded value, which is split where it is not quoted.
func (e *expansion) value(v, ifs string, quoted bool) {
	if quoted || e.whole {
		e.b = append(e.b, v...)
		e.some = e.some || quoted
		e.cur.quoted = e.cur.quoted || quoted
		return
	}
	for i := range len(v) {
		if strings.IndexByte(ifs, v[i]) >= 0 {
			e.end()
			continue
		}
		if strings.IndexByte("*?[", v[i]) >= 0 {
			e.cur.glob = true
		}
		e.b = append(e.b, v[i])
	}
}

func (e *expansion) unknown(from Detectors, quoted bool) {
	e.b = append(e.b, hole...)
	e.cur.unknown, e.some = true, true
	e.cur.split = e.cur.split || !quoted
	e.cur.from |= from
}

// fields expands words as those of a command are.
func (s *shell) fields(words []*syntax.Word) []field {
	if len(words) == 0 {
		return nil
	}
	e := expansion{out: make([]field, 0, len(words)+2)}
	for _, w := range words {
		if len(w.Parts) == 1 {
			if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\{*?[") {
				e.out = append(e.out, field{s: lit.Value})
				continue
			}
		}
		if syntax.SplitBraces(w) {
			n := maxExpanded
			for _, parts := range braces(w.Parts, &n) {
				s.parts(&e, parts, false)
				e.end()
			}
			if n < 0 {
				s.found |= Opaque
			}
			continue
		}
		s.parts(&e, w.Parts, false)
		e.end()
	}
	return e.out
}

// joined expands a word that stays one, as in an assignment.
func (s *shell) joined(w *syntax.Word) field {
	if w == nil {
		return field{}
	}
	e := expansion{whole: true}
	s.parts(&e, w.Parts, false)
	e.some = true
	e.end()
	return e.out[0]
}

// document returns the stream of a here-document.
func (s *shell) document(r *syntax.Redirect) stream {
	if r.Hdoc == nil {
		return stream{kind: emptyStream}
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
	if f.unknown && f.from == 0 {
		// The lines around what is not known still run.
		return stream{kind: textStream, text: strings.ReplaceAll(f.s, hole, "${_}")}
	}
	return f.stream()
}

// braces returns the words that brace expansion makes of one, at most *n.
func braces(parts []syntax.WordPart, n *int) [][]syntax.WordPart {
	for i, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		elems := b.Elems
		if b.Sequence {
			elems = sequence(b)
		}
		var out [][]syntax.WordPart
		for _, elem := range elems {
			if *n < 0 {
				break
			}
			word := append(append(append([]syntax.WordPart(nil), parts[:i]...), elem.Parts...), parts[i+1:]...)
			out = append(out, braces(word, n)...)
		}
		return out
	}
	*n--
	return [][]syntax.WordPart{parts}
}

// sequence returns the first words of {a..z} or {1..9}.
func sequence(b *syntax.BraceExp) []*syntax.Word {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	x, errX := strconv.Atoi(from)
	y, errY := strconv.Atoi(to)
	letters := errX != nil || errY != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return b.Elems
		}
		x, y = int(from[0]), int(to[0])
	}
	step := 1
	if y < x {
		step = -1
	}
	var out []*syntax.Word
	for v := x; len(out) < 8 || letters; v += step {
		text := strconv.Itoa(v)
		if letters {
			text = string(rune(v))
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}})
		if v == y {
			break
		}
	}
	return out
}

// parts expands the parts of a word.
func (s *shell) parts(e *expansion, parts []syntax.WordPart, quoted bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			e.literal(p.Value, quoted)
		case *syntax.SglQuoted:
			e.some, e.cur.quoted = true, true
			if p.Dollar {
				e.b = appendANSI(e.b, p.Value)
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
			if in.kind == noStream {
				in = unknown
			}
			out := s.inSubshell(false, func() stream { return s.stmts(p.Stmts, in) })
			e.b = append(e.b, "/dev/fd/63"...)
			if p.Op == syntax.CmdIn || p.Op == syntax.CmdInTemp {
				e.cur.reads = &out
				e.cur.from |= out.from
			}
		case *syntax.ExtGlob:
			e.b = append(append(append(e.b, p.Op.String()...), p.Pattern.Value...), ')')
			e.cur.glob = true
		}
	}
}

// onlyParams reports whether a quoted "$@" may be no word at all.
func (s *shell) onlyParams(q *syntax.DblQuoted) bool {
	if len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && p.Param.Value == "@" && (s.hasParams && len(s.params) == 0)
}

// literal adds unquoted or double-quoted text, whose backslashes quote.
func (e *expansion) literal(v string, quoted bool) {
	e.some = e.some || quoted
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c == '\\' && i+1 < len(v) {
			next := v[i+1]
			if !quoted || strings.IndexByte("$`\"\\\n", next) >= 0 {
				i++
				e.cur.quoted = true
				if next != '\n' {
					e.b = append(e.b, next)
				}
				continue
			}
		}
		if !quoted && (c == '*' || c == '?' || c == '[') {
			e.cur.glob = true
		}
		e.b = append(e.b, c)
	}
}

// appendANSI decodes what is between $' and '.
func appendANSI(b []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b = append(b, v[i])
			continue
		}
		i++
		c := v[i]
		switch c {
		case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v':
			b = append(b, "\a\b\x1b\x1b\f\n\r\t\v"[strings.IndexByte("abeEfnrtv", c)])
		case 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7':
			base, width, from := 16, 2, i+1
			switch c {
			case 'u':
				width = 4
			case 'U':
				width = 8
			case 'x':
			default:
				base, width, from = 8, 3, i
			}
			braced := c == 'x' && from < len(v) && v[from] == '{'
			if braced {
				from, width = from+1, 8
			}
			to := from
			for to < len(v) && to-from < width && isDigit(v[to], base) {
				to++
			}
			n, err := strconv.ParseUint(v[from:to], base, 32)
			if err != nil {
				b = append(b, '\\', c)
				continue
			}
			if braced && to < len(v) && v[to] == '}' {
				to++
			}
			switch {
			case n == 0:
				return b // the word ends at a NUL
			case c == 'u' || c == 'U':
				b = utf8.AppendRune(b, rune(n))
			default:
				b = append(b, byte(n))
			}
			i = to - 1
		case 'c':
			if i++; i < len(v) {
				b = append(b, v[i]&0x1f)
			}
		case '\\', '\'', '"', '?':
			b = append(b, c)
		default:
			b = append(b, '\\', c)
		}
	}
	return b
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// substitute adds what a command substitution prints, if that is known.
func (s *shell) substitute(e *expansion, c *syntax.CmdSubst, quoted bool) {
	out := s.inSubshell(false, func() stream { return s.stmts(c.Stmts, s.stdin) })
	e.cur.from |= out.from
	switch out.kind {
	case textStream:
		e.value(strings.TrimRight(out.text, "\n"), s.ifs(), quoted)
	case emptyStream:
		e.some = e.some || quoted
	case fileStream:
		if f, ok := s.files[out.text]; ok && f.kind == textStream {
			e.value(strings.TrimRight(f.text, "\n"), s.ifs(), quoted)
			return
		}
		e.unknown(0, quoted)
	default:
		e.unknown(out.from, quoted)
	}
}

// ifs returns the characters that split.
func (s *shell) ifs() string {
	if v, ok := s.vars["IFS"]; ok && v.known && len(v.values) == 1 {
		return v.values[0]
	}
	return " \t\n"
}

// param adds the value of a parameter.
func (s *shell) param(e *expansion, p *syntax.ParamExp, quoted bool) {
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
			e.cur.from |= v.from
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
		from |= arg.from
		_, given := s.vars[name]
		value, ok = alter(p.Exp.Op, value, ok, given || strings.Trim(name, "0123456789") == "" && s.hasParams, arg)
		if ok && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
			s.set(name, shellVar{values: []string{value}, known: true, from: from}, false)
		}
	case p.Repl != nil:
		orig, with := s.joined(p.Repl.Orig), s.joined(p.Repl.With)
		from |= with.from
		ok = ok && !orig.unknown && !orig.glob && !with.unknown && orig.s != "" && !strings.ContainsAny(orig.s[:1], "#%")
		if ok {
			n := 1
			if p.Repl.All {
				n = -1
			}
			value = strings.Replace(value, orig.s, with.s, n)
		}
	case p.Slice != nil:
		value, ok = slice(value, ok, name, p.Slice)
	}
	if !ok && len(v.values) == 1 && (p.Exp == nil || value != "" && value == v.values[0]) && p.Repl == nil && p.Slice == nil && strings.Trim(value, hole) != "" && len(value) <= maxValue {
		// A part of it is known.
		e.cur.from |= from
		e.cur.unknown, e.cur.split = true, e.cur.split || !quoted
		e.value(value, s.ifs(), quoted)
		e.cur.unknown = true
		return
	}
	if !ok || len(value) > maxValue {
		if s.quiet && name >= "0" && name <= "9~" {
			from |= More
		}
		e.unknown(from, quoted)
		return
	}
	e.cur.from |= from
	e.value(value, s.ifs(), quoted)
}

// positional adds "$@" or "$*".
func (s *shell) positional(e *expansion, p *syntax.ParamExp, quoted bool) {
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
			from := Detectors(0)
			if s.quiet {
				from = More
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
		if f.unknown {
			e.b = append(e.b, f.s...)
			e.cur.unknown, e.cur.split, e.some = true, f.split, true
		} else {
			e.value(f.s, s.ifs(), quoted)
		}
		e.cur.from |= f.from
	}
}

// lookup returns the value of a variable, and whether it is known.
func (s *shell) lookup(name string) (shellVar, bool) {
	if v, ok := s.vars[name]; ok {
		return v, v.known
	}
	value := ""
	switch name {
	case "SHELL", "BASH":
		value = "/bin/sh"
	case "HOME":
		value = "~"
	case "IFS":
		value = " \t\n"
	case "PWD":
		value = "."
	default:
		if n, err := strconv.Atoi(name); err == nil {
			switch {
			case n == 0 && s.zero != "":
				value = s.zero
			case n == 0:
				value = "sh"
			case !s.hasParams:
				return shellVar{}, false
			case n <= len(s.params):
				f := s.params[n-1]
				return shellVar{values: []string{f.s}, known: !f.unknown, from: f.from}, !f.unknown
			}
			return shellVar{values: []string{value}, known: true}, true
		}
		return shellVar{}, false
	}
	return shellVar{values: []string{value}, known: true}, true
}

// element returns the element of an array, or all.
func (v shellVar) element(index syntax.ArithmExpr) (shellVar, bool) {
	w, ok := index.(*syntax.Word)
	if !ok {
		return shellVar{from: v.from}, false
	}
	switch lit := w.Lit(); lit {
	case "@", "*":
		return v, true
	default:
		n, err := strconv.Atoi(lit)
		if err != nil {
			return shellVar{from: v.from}, false
		}
		if n < 0 {
			n += len(v.values)
		}
		if n < 0 || n >= len(v.values) {
			return shellVar{values: []string{""}, known: true, from: v.from}, true
		}
		return shellVar{values: v.values[n : n+1], known: true, from: v.from}, true
	}
}

// slice returns ${value:offset:length}. The first character of some variables is
// known, although they are not.
func slice(value string, ok bool, name string, sl *syntax.Slice) (string, bool) {
	offset, okOffset := integer(sl.Offset)
	length, okLength := integer(sl.Length)
	if sl.Length == nil {
		length, okLength = len(value), true
	}
	if !okOffset || !okLength {
		return "", false
	}
	if (name == "PATH" || name == "HOME" || name == "PWD") && offset == 0 && length == 1 {
		return "/", true
	}
	if !ok {
		return "", false
	}
	if offset < 0 {
		offset = max(offset+len(value), 0)
	}
	offset = min(offset, len(value))
	end := offset + length
	if length < 0 {
		end = len(value) + length
	}
	end = min(max(end, offset), len(value))
	return value[offset:end], true
}

func integer(x syntax.ArithmExpr) (int, bool) {
	switch x := x.(type) {
	case *syntax.Word:
		n, err := strconv.Atoi(x.Lit())
		return n, err == nil
	case *syntax.UnaryArithm:
		n, ok := integer(x.X)
		return -n, ok && x.Op == syntax.Minus
	case *syntax.ParenArithm:
		return integer(x.X)
	}
	return 0, false
}

// alter applies an operator such as :- or %%.
// Given says that the variable is set, even if its value is not known.
func alter(op syntax.ParExpOperator, value string, ok, given bool, arg field) (string, bool) {
	switch op {
	case syntax.DefaultUnset, syntax.AssignUnset:
		if ok || given {
			return value, ok
		}
		return arg.s, !arg.unknown
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull:
		if ok && value != "" || !ok && given {
			return value, ok
		}
		return arg.s, !arg.unknown
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if ok && value == "" && op == syntax.AlternateUnsetOrNull {
			return "", true
		}
		return arg.s, !arg.unknown
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return value, ok
	}
	if !ok {
		return "", false
	}
	switch op {
	case syntax.UpperAll:
		return strings.ToUpper(value), arg.s == ""
	case syntax.LowerAll:
		return strings.ToLower(value), arg.s == ""
	case syntax.UpperFirst:
		if value != "" {
			value = strings.ToUpper(value[:1]) + value[1:]
		}
		return value, arg.s == ""
	case syntax.LowerFirst:
		if value != "" {
			value = strings.ToLower(value[:1]) + value[1:]
		}
		return value, arg.s == ""
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if arg.unknown || len(value) > 256 || len(arg.s) > 64 {
			return "", false
		}
		return remove(op, value, arg.s), true
	}
	return "", false
}

// remove returns value without what the pattern matches at one end.
func remove(op syntax.ParExpOperator, value, pattern string) string {
	// The slash is not special here, as it is for path.Match.
	v, pattern := strings.ReplaceAll(value, "/", "\x01"), strings.ReplaceAll(pattern, "/", "\x01")
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	small := op == syntax.RemSmallPrefix || op == syntax.RemSmallSuffix
	for i := 0; i <= len(v); i++ {
		n := i // the length that is removed
		if !small {
			n = len(v) - i
		}
		if prefix {
			if ok, _ := path.Match(pattern, v[:n]); ok {
				return value[n:]
			}
		} else if ok, _ := path.Match(pattern, v[len(v)-n:]); ok {
			return value[:len(v)-n]
		}
	}
	return value
}
