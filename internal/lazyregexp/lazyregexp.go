// Package lazyregexp has regular expressions that are compiled when they are
// first used, so that no start of a program waits for those that it may not
// need.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression, compiled once. It may be used concurrently.
// Use panics if the expression does not compile.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns the expression of a text, which it does not read.
func New(text string) Regexp {
	return Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString is that of regexp.Regexp, as are the others.
func (r Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindAllStringIndex returns where r matches, n times at most.
func (r Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

// FindStringSubmatch returns the first match and its groups.
func (r Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }
