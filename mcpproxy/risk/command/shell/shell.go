package shell

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"auditproxy/mcpproxy/risk/command/lineedit"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// New returns a shell in which the programs p can be called. Beside the usual ones, the
// paths own, and what is below them, are this program's.
func New(p Programs, own ...string) *Shell {
	s := &Shell{programs: p, own: own, parser: syntax.NewParser()}
	s.above = s
	return s
}

// Judge returns what the text does, and what is left of a budget, at most Budget.
// It is less than zero, by what the last steps would have taken, if the text was
// too much; then the text is Opaque.
func (s *Shell) Judge(text string, budget int) (found detector.Set, left int) {
	s.forget()
	s.budget = budget
	s.RunTyped(text)
	// A function that was only defined is called by a later text.
	s.quiet = true
	s.params, s.hasParams = nil, false
	for more := true; more; {
		more = false // calling one can define another
		for _, name := range slices.Sorted(maps.Keys(s.functions)) {
			if f := s.functions[name]; !f.called {
				more = true
				s.callFunction(f, nil, Stream{})
			}
		}
	}
	found, left = s.found, s.budget
	s.forget()
	return found, left
}

// RunTyped follows a text that is typed into a terminal, as its line editor leaves it.
func (s *Shell) RunTyped(text string) {
	edited, moved, unsure := lineedit.Edit(text, max(s.budget, 0)*movedBytes)
	if !s.Spend((moved + movedBytes - 1) / movedBytes) {
		return
	}
	if trigger.Scan(unsure) != 0 {
		s.Add(detector.Opaque)
	}
	s.Run(edited, Stream{})
}

// Run follows a text that a shell reads from in.
func (s *Shell) Run(text string, in Stream) Stream {
	if !s.Enter() {
		return Anything
	}
	defer s.Leave()
	if cost, tooMuch := weigh(text); !tooMuch {
		if stmts, ok := s.parse(text, cost); ok {
			return s.statements(stmts, in)
		}
	} else if trigger.Scan(text) != 0 {
		s.Add(detector.Opaque)
		return Anything
	}
	s.unparsed(text, in)
	return Anything
}

// parse parses the text as the first dialect that it is correct in.
func (s *Shell) parse(text string, cost int) ([]*syntax.Stmt, bool) {
	for _, dialect := range [...]syntax.LangVariant{syntax.LangBash, syntax.LangMirBSDKorn, syntax.LangPOSIX} {
		if !s.Spend(cost) {
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
		if errors.As(err, &problem) && strings.HasPrefix(problem.Text, "unclosed here-document") && s.Spend(cost) {
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

// weigh returns what parsing the text costs, and whether it could nest so deep, or
// is made of so many operators, that it is not parsed at all. A here-document that
// is quoted has neither.
func weigh(text string) (cost int, tooMuch bool) {
	openers, operators, spaces, quotes := 0, 0, 0, 0
	start := 0
	from, to := quotedDocument(text)
	for i := 0; i < len(text); i++ {
		if i == from && from < to {
			i, start = to-1, to
			continue
		}
		k := weights[text[i]]
		if k == weightNone {
			continue
		}
		switch k {
		case weightOpener:
			openers++
		case weightSign:
			if i > 0 && text[i-1] == text[i] {
				openers++
			}
		case weightOperator:
			operators++
		case weightSpace:
			spaces++
		case weightQuote:
			quotes++
		}
		if i > start && i-start <= len("function") && opens(text[start:i]) {
			openers++
		}
		start = i + 1
	}
	cost = parseCost + len(text)/2 + 12*(openers+operators) + 4*spaces + 5*quotes
	return cost, len(text) >= maxOpeners && (openers > maxOpeners || operators > maxOperators || spaces > maxSpaces)
}

// quotedDocument returns where the body of a here-document is that the first line
// of the text begins, if its delimiter is quoted: no shell looks into it. It is
// found only behind plain words, where nothing can give its sign another meaning.
func quotedDocument(text string) (from, to int) {
	line, _, more := strings.Cut(text, "\n")
	before, after, ok := strings.Cut(line, "<<")
	if !more || !ok || !isPlain(before) || strings.Contains(before, "let") { // arithmetic
		return 0, 0
	}
	tabs := strings.HasPrefix(after, "-")
	after = strings.TrimLeft(strings.TrimPrefix(after, "-"), " \t")
	if after == "" || after[0] != '\'' && after[0] != '"' {
		return 0, 0
	}
	word, after, ok := strings.Cut(after[1:], after[:1])
	if !ok || word == "" || !isPlain(word) || !isPlain(after) {
		return 0, 0
	}
	from = len(line) + 1
	to = from
	for line := range strings.Lines(text[from:]) {
		end := strings.TrimSuffix(line, "\n")
		if tabs {
			end = strings.TrimLeft(end, "\t")
		}
		if end == word {
			break
		}
		to += len(line)
	}
	return from, to
}

// isPlain reports whether a part of a line has nothing but words, pipes, lists of
// commands, and redirections of output.
func isPlain(part string) bool {
	for i := range len(part) {
		if c := part[i]; !trigger.IsWordByte(c) && strings.IndexByte(" \t./-,:@%+~=|&;>", c) < 0 {
			return false
		}
	}
	return true
}

// opens reports whether a word of the shell's grammar opens a level.
func opens(word string) bool {
	switch word {
	case "if", "while", "until", "for", "case", "select", "time", "coproc", "function", "do", "then", "else", "elif":
		return true
	}
	return false
}

// The kinds of bytes, by what they cost the parser.
const (
	weightNone     uint8 = iota // it belongs to a word
	weightOther                 // it ends one
	weightOpener                // it opens a level
	weightSign                  // two of it do
	weightOperator              // it makes a node
	weightSpace
	weightQuote
)

var weights = func() (w [256]uint8) {
	for c := range w {
		if !trigger.IsWordByte(byte(c)) {
			w[c] = weightOther
		}
	}
	for _, k := range [...]struct {
		bytes string
		kind  uint8
	}{{"({[`!", weightOpener}, {"+-", weightSign}, {"|&;<>$\n", weightOperator}, {" \t", weightSpace}, {"'\"\\", weightQuote}} {
		for i := range len(k.bytes) {
			w[k.bytes[i]] = k.kind
		}
	}
	return w
}()

// unparsed judges a text that no dialect accepts: line by line, and by its words
// where a line is not accepted either.
func (s *Shell) unparsed(text string, in Stream) {
	if trigger.Scan(text) == 0 {
		return
	}
	if trigger.IsBomb(text) {
		s.Add(detector.ForkBomb)
	}
	if len(text) > maxDialects {
		s.Add(detector.Opaque)
		return
	}
	s.maybe(func() Stream {
		s.pieces(text, in)
		return Stream{}
	})
}

// pieces judges the parts of a text that can be parsed.
func (s *Shell) pieces(text string, in Stream) {
	if strings.Contains(text, "((") {
		// What the parser takes for arithmetic is a subshell in a substitution.
		spaced := strings.ReplaceAll(text, "((", "( (")
		cost, _ := weigh(spaced)
		if stmts, ok := s.parse(spaced, cost); ok {
			s.statements(stmts, in)
			return
		}
	}
	text = strings.ReplaceAll(text, "\\\n", "")
	if !strings.Contains(strings.TrimSpace(text), "\n") {
		s.words(text)
		return
	}
	for line := range strings.Lines(text) {
		cost, _ := weigh(line)
		if stmts, ok := s.parse(line, cost); ok {
			s.statements(stmts, in)
		} else {
			s.words(line)
		}
	}
}

// words judges a line that does not parse by its words. It is Opaque if one of
// them is a trigger.
func (s *Shell) words(line string) {
	if s.programs.Line(s, line) {
		return
	}
	plain := trigger.WithoutTypes(Unquote(line))
	if trigger.Scan(plain)&trigger.Word == 0 && !strings.Contains(plain, "$") {
		return
	}
	for w := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r > 0x7f || !trigger.IsWordByte(byte(r)) }) {
		if trigger.Has(w) && !trigger.IsWeak(w) {
			s.Add(detector.Opaque)
			break
		}
	}
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";|&(){}\n`", r) }) {
		var fields []Field
		for w := range strings.FieldsSeq(Unquote(part)) {
			if strings.ContainsAny(w, "$`") {
				fields = append(fields, Field{Text: Hole, Unknown: true})
			} else {
				fields = append(fields, Field{Text: w})
			}
		}
		s.Command(fields, Anything)
	}
}
