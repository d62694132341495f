package literal

import (
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// A Reader reads the values in one text after the other.
type Reader struct {
	Names *names.Classifier
	Text  []byte
	End   int // of the text, 0 once it was read too often: what is in it is not known then

	name    names.Folded // the name that is being read
	schemes int          // before the value that is being read
	decoded [2][]byte    // of Unescaped
	left    int          // bytes that may still be read to find where something ends
	quotes  lex.Ahead    // the next quote or line break
	choices []choice     // judged last
}

// A choice is a string that may be the value of an expression; an empty one is no secret.
type choice struct {
	quote int
	value lex.Span
}

// reads is how often the bytes of a text may be read to find where something ends. Of
// 42 000 files of people, and their lines, none was read four times so. Where nothing ends,
// each name in a text would have the rest of it read.
const reads = 8

// Read starts with a text.
func (r *Reader) Read(text []byte) {
	r.Text, r.left, r.End, r.quotes, r.choices = text, reads*len(text)+4<<10, len(text), lex.Ahead{}, r.choices[:0]
}

// spend counts n bytes that were read.
func (r *Reader) spend(n int) {
	if r.left -= n; r.left < 0 {
		r.End = 0
	}
}

// IsSpent reports whether the text was read too often.
func (r *Reader) IsSpent() bool { return r.left < 0 }

// Exhaust spends the reader.
func (r *Reader) Exhaust() { r.left, r.End = -1, 0 }

// SpendWith spends the reader if another one, of what the text says once decoded, is.
func (r *Reader) SpendWith(other *Reader) {
	if other.IsSpent() {
		r.Exhaust()
	}
}
