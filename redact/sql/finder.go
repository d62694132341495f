package sql

import (
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
)

// A Finder finds the secrets of statements in one text after the other.
type Finder struct {
	values *literal.Reader
	name   names.Folded // the name that is being read
	tuples int          // what is before has been read for columns and values
}

// Read starts with the text of r.
func (f *Finder) Read(r *literal.Reader) { f.values, f.tuples = r, 0 }

// Limits of what is looked at, in bytes.
const (
	maxGap    = 16 // of white space
	maxClause = 96
	maxString = 256 // of a string that is compared
	maxOther  = 64  // of an argument that is no string
)
