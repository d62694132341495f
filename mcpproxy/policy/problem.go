package policy

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"auditproxy/internal/nearest"
	"auditproxy/schemas/escape"
)

// maxReason is how many code points a reason may have.
const maxReason = 200

// maxProblems is how many problems of a file are reported.
const maxProblems = 50

// A Problem is a mistake in a policy and its position.
type Problem struct {
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // from 1, in characters
	Text   string `json:"text"`
}

func (p *Problem) Error() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text) }

// An Error is why a policy does not load. It quotes names and words of the
// policy, never the text of a file that is no policy.
type Error struct {
	Name     string    // of the source
	Problems []Problem // by position; at least one, at most maxProblems
	More     int       // problems beyond those
}

// Error lists the problems, one on each line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.Name, max(p.Line, 1), max(p.Column, 1), p.Text)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n%s: %d more", e.Name, e.More)
	}
	return b.String()
}

// sortByPosition has a third of the code of slices.SortStableFunc.
func sortByPosition(list []Problem) {
	sort.SliceStable(list, func(i, j int) bool {
		return cmp.Or(list[i].Line-list[j].Line, list[i].Column-list[j].Column) < 0
	})
}

// newError sorts and bounds problems.
func newError(name string, problems []Problem) *Error {
	sortByPosition(problems)
	e := &Error{Name: name, Problems: problems}
	if n := len(problems) - maxProblems; n > 0 {
		e.Problems, e.More = problems[:maxProblems], n
	}
	return e
}

// short is the beginning of a name or word, for a message.
func short(s string) string { return cut(s, 60) }

// cut returns at most n code points of s; the last one replaces the rest. Inlined at its fifty
// places, it would take 20 KB of the proxy.
//
//go:noinline
func cut(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n--; n == 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// oneLine is text of a policy as an agent and a reviewer are shown it: on one
// line, with visible characters, at most maxReason code points.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if shown := escape.Text(s); shown != strings.ReplaceAll(s, `\`, `\\`) {
		s = shown
	}
	return cut(s, maxReason)
}

// listed is words as an enumeration: "a", "b" or "c".
func listed(words []string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", w)
	}
	return b.String()
}

// meant names the nearest of the known words, or all if none is near.
func meant(word string, known []string) string {
	if best := nearest.Word(word, known, 1+len(word)/2); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "want " + listed(known)
}
