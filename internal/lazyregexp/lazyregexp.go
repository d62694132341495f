// Package lazyregexp has regular expressions that are compiled when they are
// first used, so that no start of a program waits for those that it may not
// need.
package lazyregexp

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Regexp is a regular expression, compiled once. It may be used concurrently.
// Use panics if the expression does not compile.
type Regexp struct {
	compiled func() *regexp.Regexp
	needs    func() []string
}

// New returns the expression of a text, which it does not read.
func New(text string) Regexp {
	return Regexp{
		compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) }),
		needs: sync.OnceValue(func() []string {
			parsed, err := syntax.Parse(text, syntax.Perl)
			if err != nil {
				return nil // compiled panics
			}
			return needs(parsed.Simplify())
		}),
	}
}

// Needs returns texts in lower case of which each match of r has at least one, in
// any case; nil if no such texts are known. Looking for them takes a hundredth of
// the time of matching.
func (r Regexp) Needs() []string { return r.needs() }

// needs returns the rarest texts that it finds, as Needs.
func needs(re *syntax.Regexp) (list []string) {
	if list = exact(re); list != nil {
		return usable(list)
	}
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0])
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			l := needs(sub)
			if l == nil {
				return nil
			}
			list = append(list, l...)
		}
		slices.Sort(list)
		list = slices.Compact(list)
	case syntax.OpConcat:
		run := []string{""} // the texts of the parts since the last one that is not exact
		for _, sub := range re.Sub {
			more := exact(sub)
			if more == nil {
				list, run = rarer(list, needs(sub)), []string{""}
				continue
			}
			if run = joined(run, more); run == nil {
				run = more
			}
			list = rarer(list, usable(run))
		}
	}
	return list
}

// exact returns all texts that re matches, in lower case, nil if there are too
// many.
func exact(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return []string{""}
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpQuest:
		if l := exact(re.Sub[0]); l != nil {
			return append([]string{""}, l...)
		}
	case syntax.OpAlternate:
		var list []string
		for _, sub := range re.Sub {
			l := exact(sub)
			if l == nil || len(list)+len(l) > maxExact {
				return nil
			}
			list = append(list, l...)
		}
		return list
	case syntax.OpConcat:
		list := []string{""}
		for _, sub := range re.Sub {
			l := exact(sub)
			if l == nil {
				return nil
			}
			if list = joined(list, l); list == nil {
				return nil
			}
		}
		return list
	}
	return nil
}

// maxExact bounds the texts of one part.
const maxExact = 64

// joined returns each of a with each of b behind it, nil if these are too many.
func joined(a, b []string) (list []string) {
	if len(a)*len(b) > maxExact {
		return nil
	}
	for _, x := range a {
		for _, y := range b {
			list = append(list, x+y)
		}
	}
	return list
}

// usable returns the list if every text can be looked for.
func usable(list []string) []string {
	for _, text := range list {
		if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return nil
		}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// rarer returns the list that is found less often in text, as far as lengths tell.
func rarer(a, b []string) []string {
	often := func(list []string) (sum float64) {
		for _, text := range list {
			sum += math.Pow(20, -float64(len(text)))
		}
		return sum
	}
	if b == nil || a != nil && often(a) <= often(b) {
		return a
	}
	return b
}

// MatchString is that of regexp.Regexp, as are the others.
func (r Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindAllStringIndex returns where r matches, n times at most.
func (r Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

// FindString returns the first match, or "".
func (r Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// ReplaceAllLiteralString returns s with each match replaced by repl.
func (r Regexp) ReplaceAllLiteralString(s, repl string) string {
	return r.compiled().ReplaceAllLiteralString(s, repl)
}

// FindStringSubmatch returns the first match and its groups.
func (r Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }
