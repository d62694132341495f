package table

import (
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// A Finder finds the secrets of the tables in one text after the other.
type Finder struct {
	Names *names.Classifier // required

	name   names.Folded // the name that is being read
	header header
	cells  [maxColumns]lex.Span // of the line that is being read
}

// Limits of a table.
const (
	maxColumns = 64
	maxHeader  = 1 << 10 // bytes of the line
)

// aligned is the separator of a table whose columns only start at the same place.
const aligned = ' '

// A columnKind is what a column has, by its name.
type columnKind uint8

const (
	otherColumn  columnKind = iota
	secretColumn            // secrets
	tokenColumn             // secrets, or numbers and remarks
	nameColumn              // names of the values in valueColumn
	valueColumn
)

// A header is the first line of a table.
type header struct {
	separator byte
	columns   int
	kinds     [maxColumns]columnKind
	starts    [maxColumns]int // if aligned: of the columns, in code points
	named     int             // the nameColumn
	body      int             // where the lines below start
}
