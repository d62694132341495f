package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"auditproxy/mcpproxy/risk/detector"
)

// A Shell follows a text as a shell would run it, without running anything. One
// goroutine uses it, for one text at a time.
type Shell struct {
	Root bool // judging what a command runs with the rights of the administrator

	programs Programs
	own      []string // paths of this program, absolute or below ~
	above    above
	parser   *syntax.Parser
	reader   strings.Reader

	found     detector.Set
	vars      map[string]variable
	functions map[string]*function
	aliases   map[string]string
	files     map[string]Stream // what the text itself wrote, by path
	unpacked  map[string]Stream // what archives had, by the directory where they were unpacked
	params    []Field           // "$@"
	hasParams bool
	zero      string               // "$0", if a caller gave it
	stdin     Stream               // of the command whose words are expanded
	filling   bool                 // judging a command again, with unset variables as empty
	locals    map[string]*variable // what a function's local variables were before it; nil outside
	loops     int
	depth     int
	budget    int
	quiet     bool // an unknown parameter as command word is no finding: the function was not called
}

// Programs judge what a shell calls. They are called with the shell that is
// following a text, and may call its methods.
type Programs interface {
	// Call judges the program of a command and returns what it prints. The name is
	// the base name of the first word.
	Call(s *Shell, name string, words []Field, in Stream) Stream
	// Code judges a text in a language that an interpreter reads.
	Code(s *Shell, language, text string)
	// Line judges a line that no shell accepts, false if it is in no other
	// language either.
	Line(s *Shell, line string) bool
}

// above is what the lower files call of the upper ones: a substitution has
// statements, and a command can have a text.
type above interface {
	Run(text string, in Stream) Stream
	statements(list []*syntax.Stmt, in Stream) Stream
	Command(words []Field, in Stream) Stream
}

// forget drops what is left of a text, which could hold a secret.
func (s *Shell) forget() {
	*s = Shell{programs: s.programs, own: s.own, above: s.above, parser: s.parser}
}

// Spend takes n from the budget, false if there is none left: then the text is
// Opaque. A step costs about as much as the bytes that it looks at.
//
//go:noinline
func (s *Shell) Spend(n int) bool {
	if s.budget -= n; s.budget < 0 {
		s.Add(detector.Opaque)
		return false
	}
	return true
}

// Add adds to what the text does.
func (s *Shell) Add(d detector.Set) { s.found |= d }

// AsRoot calls f for what runs with the rights of the administrator, or without them.
func (s *Shell) AsRoot(root bool, f func() Stream) Stream {
	old := s.Root
	s.Root = root
	out := f()
	s.Root = old
	return out
}

// Enter goes into a text in the text, false if that is too deep: then the text is
// Opaque. Leave comes back.
func (s *Shell) Enter() bool {
	if s.depth >= maxDepth {
		s.Add(detector.Opaque)
		return false
	}
	s.depth++
	return true
}

// Leave comes back from where Enter went.
func (s *Shell) Leave() { s.depth-- }
