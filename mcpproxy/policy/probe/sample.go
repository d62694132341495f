package probe

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// A sampler makes a text that a pattern matches.
type sampler struct {
	any  rune   // for a dot
	many string // for what may be repeated of a dot or of a class that leaves characters out

	plain  bool // there is nothing but letters and what may be missing
	lines  bool // ^ or $ match at lines
	spans  bool // a dot that matches no line break is repeated
	dots   bool // there is a single dot
	dotted bool // there is a dot that is meant as one, or looks like that
}

// longest bounds a sample.
const longest = 4096

func (s *sampler) of(re *syntax.Regexp) string {
	s.plain = true
	var b strings.Builder
	s.append(&b, re)
	return b.String()
}

func (s *sampler) append(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > longest {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 {
				r = unicode.ToLower(r)
			}
			s.dotted = s.dotted || r == '.'
			b.WriteRune(r)
		}
	case syntax.OpCharClass:
		s.plain = false
		b.WriteRune(oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		s.plain, s.dots, s.dotted = false, true, true
		b.WriteRune(s.any)
	case syntax.OpBeginLine, syntax.OpEndLine:
		s.lines = true
	case syntax.OpCapture:
		s.append(b, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			s.append(b, sub)
		}
	case syntax.OpAlternate:
		s.append(b, re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		s.repeat(b, re)
	}
}

func (s *sampler) repeat(b *strings.Builder, re *syntax.Regexp) {
	sub := re.Sub[0]
	isDot := sub.Op == syntax.OpAnyCharNotNL
	isMany := isDot || sub.Op == syntax.OpAnyChar || sub.Op == syntax.OpCharClass && leavesOut(sub.Rune)
	unbounded := re.Op != syntax.OpQuest && (re.Op != syntax.OpRepeat || re.Max < 0 || re.Max > len(s.many))
	s.spans = s.spans || isDot && unbounded
	if isMany && unbounded && s.many != "" {
		b.WriteString(s.many)
		return
	}
	least := 0
	switch re.Op {
	case syntax.OpPlus:
		least = 1
	case syntax.OpRepeat:
		least = re.Min
	}
	dots := s.dots
	for range least {
		s.append(b, sub)
	}
	s.dots = dots // a dot that is repeated is meant as any character
}

// leavesOut reports whether a class is one such as [^/].
func leavesOut(ranges []rune) bool {
	return len(ranges) > 1 && ranges[len(ranges)-1] >= 0xffff
}

// oneOf returns a character of a class, a small letter if there is one.
func oneOf(ranges []rune) rune {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= 'a' && 'a' <= ranges[i+1] {
			return 'a'
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1] > ' ' {
			return max(ranges[i], '!')
		}
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'a'
}
