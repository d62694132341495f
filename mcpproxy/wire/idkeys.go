package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// An idKeys makes the keys of one id, those of AppendIDKey, while its JSON text
// is read, in constant memory. The zero value is before the text.
type idKeys struct {
	first byte // of the text, 0 before it

	// main is the exact key of a string or of a number. other is a string's key
	// under FloatID, and the exact key of anything that is neither.
	main, other keyText
	digits      digitReader

	carry   []byte // the end of a string's text, whose meaning depends on what follows
	scratch []byte
	over    bool // the string's closing quote was there
	marks   bool // the string has U+FFFD
	mark    bool // and ends in it so far

	compacter // of a list or of an object
}

// keyPiece is how much of an id is looked at at a time.
const keyPiece = 4 << 10

// write adds the next bytes of the text.
func (k *idKeys) write(b []byte) {
	if k.first == 0 && len(b) > 0 {
		k.first = b[0]
		if k.first == '"' {
			k.main.write('s')
			k.other.write('u')
			b = b[1:]
		} else {
			k.main.write('n')
			k.other.write('t')
		}
	}
	for len(b) > 0 {
		piece := b[:min(len(b), keyPiece)]
		b = b[len(piece):]
		switch k.first {
		case '"':
			k.string(piece)
		case '{', '[':
			k.scratch = k.compacter.append(k.scratch[:0], piece)
			k.other.write(k.scratch...)
		default:
			k.digits.write(&k.main, piece)
			k.other.write(piece...)
		}
	}
}

func (k *idKeys) string(b []byte) {
	k.carry = append(k.carry, b...)
	n := k.settled()
	k.decode(k.carry[:n])
	k.carry = append(k.carry[:0], k.carry[n:]...)
}

// settled is how much of carry does not depend on what follows it.
func (k *idKeys) settled() (n int) {
	for b := k.carry; len(b) > 0 && !k.over; b = k.carry[n:] {
		switch c := b[0]; {
		case c == '"':
			k.over = true
		case c == '\\':
			if len(b) < len(`\ud800\udc00`) {
				return n
			}
			n += jsontext.EscapeLen(b)
		case c >= 0xC0:
			if len(b) < utf8.UTFMax {
				return n
			}
			// No character and no part of one that is replaced is longer.
			size := 1
			for size < utf8.UTFMax && b[size]&0xC0 == 0x80 {
				size++
			}
			n += size
		default:
			n++
		}
	}
	return n
}

// decode adds text of a string that no other text continues.
func (k *idKeys) decode(b []byte) {
	if len(b) == 0 {
		return
	}
	k.scratch = jsontext.AppendUnquote(k.scratch[:0], b)
	k.main.write(k.scratch...)
	for text := k.scratch; len(text) > 0; {
		if bytes.HasPrefix(text, replacement) {
			if !k.mark {
				k.other.write(replacement...)
			}
			k.mark, k.marks = true, true
			text = text[len(replacement):]
			continue
		}
		n := bytes.Index(text, replacement)
		if n < 0 {
			n = len(text)
		}
		k.other.write(text[:n]...)
		k.mark = false
		text = text[n:]
	}
}

var replacement = []byte("\uFFFD")

// A compacter removes the white space between the tokens of a list or an
// object, which may come in pieces.
type compacter struct{ quoted, escaped bool } // in a string; behind its backslash

func (c *compacter) append(dst, b []byte) []byte {
	for _, d := range b {
		switch {
		case c.escaped:
			c.escaped = false
		case d == '"':
			c.quoted = !c.quoted
		case c.quoted:
			c.escaped = d == '\\'
		case jsontext.IsSpace(d):
			continue
		}
		dst = append(dst, d)
	}
	return dst
}

// end is called when the text is complete.
func (k *idKeys) end() {
	switch k.first {
	case '{', '[':
	case '"':
		k.decode(bytes.TrimSuffix(k.carry, []byte{'"'}))
		k.carry = nil
	default:
		k.digits.end(&k.main)
	}
}

// appendKey appends the key under m, after end.
func (k *idKeys) appendKey(dst []byte, m IDMatch, answer bool) []byte {
	switch d := &k.digits; {
	case k.first == '"' && m == ExactID, d.countable && m == ExactID:
		return append(dst, k.main.bytes()...)
	case k.first == '"' && m == FloatID && k.marks, k.first != '"' && m == ExactID:
		return append(dst, k.other.bytes()...)
	case d.short != nil && m != ExactID:
		n, _ := jsontext.ParseNumber(d.short)
		return appendFloatKey(dst, d.short, n, m, answer)
	}
	return dst
}

// The kept form of an id ends in fields: a key for each comparison, and the
// short number that its float64 is read from.
const (
	keyField    = 1 + maxIDKey
	numberField = 2 + maxDigits + 28
	keptKeys    = 5
	keptTrailer = numberField + keptKeys*keyField + 1
)

func isKept(id []byte) bool { return len(id) > keptTrailer && id[len(id)-1] == 0 }

func fieldOf(m IDMatch, answer bool) int {
	if m != ExactID && answer {
		return 2 * int(m)
	}
	return max(2*int(m)-1, 0)
}

// keep ends the text and returns its kept form, in new memory.
func (k *idKeys) keep(head []byte) []byte {
	k.end()
	kept := make([]byte, len(head)+keptTrailer)
	trailer := kept[copy(kept, head):]
	binary.BigEndian.PutUint16(trailer, uint16(copy(trailer[2:], k.digits.short)))
	for m := ExactID; m <= IntID; m++ {
		for _, answer := range [...]bool{false, true} {
			field := trailer[numberField+fieldOf(m, answer)*keyField:]
			field[0] = byte(copy(field[1:keyField], k.appendKey(nil, m, answer)))
		}
	}
	return kept
}

// keptKey is AppendIDKey for the kept form of an id.
func keptKey(id []byte, m IDMatch, answer bool) (key []byte, ok bool) {
	if !isKept(id) {
		return nil, false
	}
	field := id[len(id)-keptTrailer+numberField+fieldOf(m, answer)*keyField:]
	return field[1 : 1+field[0]], true
}

// keptNumber is the short number in the kept form of an id, empty for none.
func keptNumber(id []byte) []byte {
	trailer := id[len(id)-keptTrailer:]
	return trailer[2 : 2+binary.BigEndian.Uint16(trailer)]
}
