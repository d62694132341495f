package shell

import (
	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
)

// A Finder finds the secrets of the command lines in one text after the other. Each
// method adds them to found, in any order.
type Finder struct {
	values   *literal.Reader
	found    []lex.Span
	name     names.Folded // the name that is being read
	unquoted byte         // a quote that is not in the rest of the text
	written  int          // the end of the document last written to a file
}

// Read starts with the text of r.
func (f *Finder) Read(r *literal.Reader) {
	f.values, f.unquoted, f.written = r, 0, 0
}

// shellWord returns where the word at i ends that a shell would see.
func (f *Finder) shellWord(i int) int { return argv.WordEnd(f.values.Text, i, &f.unquoted) }

// Limits of what is looked at, in bytes.
const (
	maxWords  = 256     // of a command or of what it writes
	maxBefore = 96      // before a redirection
	maxGap    = 16      // of white space
	maxBlock  = 2 << 10 // of lines that write one value
)
