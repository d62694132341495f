package credential

import (
	"slices"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
	"auditproxy/redact/printed"
	"auditproxy/redact/setting"
	"auditproxy/redact/shell"
	"auditproxy/redact/sql"
	"auditproxy/redact/table"
)

// A Scanner finds credentials in one text after the other, in memory that it
// keeps. One goroutine owns it.
type Scanner struct {
	Names   *names.Classifier // required
	Given   []lex.Span        // of the next text, known to be credentials by their position
	Program argv.Command      // whose arguments the next text is, zero for none
	Message bool              // of this program's own: a name and a colon do not mark a secret
	Open    bool              // for tests: no gate skips anything

	text     []byte
	values   literal.Reader // of the same text
	found    []lex.Span
	from     int       // where the undecided text starts: behind the last span or mark
	password lex.Span  // the password of the URL that is being read
	at       lex.Ahead // the next "@"
	end      lex.Ahead // the next end of a URL
	token    int       // the end of the token of JWT letters last seen
	aws      bool
	name     names.Folded // the name that is being read
	under    lex.Span     // the lines under a plural name
	assigns  byte         // the separator in them
	pair     int          // up to here a member may hold the secret that an earlier one names
	element  int          // the same for elements of XML in one with that name
	known    formats.Finder
	tables   table.Finder
	shell    shell.Finder
	sql      sql.Finder
	settings setting.Finder
	printed  printed.Finder
	windows  []lex.Span // where credentials of known formats may be
	unwrap   *unwrapper
	inward   int // bytes of strings in strings that may still be read
	// unordered reports whether a span was added before or behind others.
	unordered bool
}

// Kept returns the number of credentials that the memory has room for.
func (s *Scanner) Kept() int { return cap(s.found) }

// merge puts the spans in order and joins those that overlap.
func (s *Scanner) merge() {
	slices.SortFunc(s.found, func(a, b lex.Span) int { return a.From - b.From })
	kept := s.found[:0]
	for _, c := range s.found {
		if n := len(kept); n > 0 && c.From < kept[n-1].To {
			kept[n-1].To = max(kept[n-1].To, c.To)
			continue
		}
		kept = append(kept, c)
	}
	s.found = kept
}

// sensitiveName reports whether name is sensitive, and leaves it in s.name.
func (s *Scanner) sensitiveName(name []byte, more names.Sections) bool {
	return s.values.IsSensitive(&s.name, name, more)
}

// sensitive is sensitiveName for a name without escapes.
func (s *Scanner) sensitive(name []byte, more names.Sections) bool {
	s.name.Fold(name)
	return s.Names.Sensitive(&s.name, more|names.Keyed(name))
}

// unwrapper scans decoded text. It is allocated on first use.
type unwrapper struct {
	inner Scanner
	text  []byte
	at    []int32 // by byte of text: where it is in the text with escapes
}

// maxPair is the largest distance in bytes from a name to its value.
const maxPair = 256

// maxOther limits an argument that is no string, in bytes.
const maxOther = 64

// maxGap limits the white space, in bytes, between a name and the quotation
// that it describes.
const maxGap = 16
