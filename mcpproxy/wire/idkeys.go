package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"
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

// A keyText is a key as it grows, or the SHA-256 of one beyond maxIDKey.
type keyText struct {
	short [maxIDKey]byte
	n     int
	long  hash.Hash // nil while short has it all
}

func (k *keyText) write(b ...byte) {
	if k.long == nil && k.n+len(b) <= maxIDKey {
		k.n += copy(k.short[k.n:], b)
		return
	}
	if k.long == nil {
		k.long = sha256.New()
		k.long.Write(k.short[:k.n])
	}
	k.long.Write(b)
}

// bytes returns the key. Only that of a long text starts with a zero byte.
func (k *keyText) bytes() []byte {
	if k.long == nil {
		return k.short[:k.n]
	}
	return k.long.Sum([]byte{0})
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

// maxDigits is how many digits of a number can matter to its float64, apart
// from whether all others are zero: at most 768 decide which of two neighbours
// is closer.
const maxDigits = 800

// A digitReader reads a number as jsontext.ParseNumber does, piece by piece: an
// id of 2 GiB is read as it passes.
type digitReader struct {
	at  numberPart
	neg bool

	whole, frac int64  // digits before and after the point
	lead        byte   // the first digit
	zeros       int64  // that end the digits so far
	count       int64  // of the digits from the first that is not zero on, without those zeros
	kept        []byte // the first maxDigits of them
	more        bool   // others are not zero

	expNeg    bool
	exp       int64 // at most jsontext.MaxExp
	expDigits int64

	short     []byte // after end: a short number with the same float64, nil if there is none
	countable bool   // after end: the exact key is complete
}

type numberPart uint8

const (
	inSign numberPart = iota
	inWhole
	inFrac
	inExpSign
	inExp
	inNoNumber
)

// write reads the next bytes and writes the digits that count to key.
func (d *digitReader) write(key *keyText, b []byte) {
	for len(b) > 0 && d.at != inNoNumber {
		if run := b[:jsontext.Digits(b, 0)]; len(run) > 0 && d.at <= inFrac {
			if d.at == inFrac {
				d.frac += int64(len(run))
			} else {
				if d.whole == 0 {
					d.lead = run[0]
				}
				d.at = inWhole
				d.whole += int64(len(run))
			}
			d.digits(key, run)
			b = b[len(run):]
			continue
		}
		c := b[0]
		b = b[1:]
		digit := '0' <= c && c <= '9'
		switch {
		case d.at == inSign && c == '-' && !d.neg:
			d.neg = true
		case d.at == inWhole && c == '.':
			d.at = inFrac
		case (d.at == inWhole || d.at == inFrac && d.frac > 0) && c|0x20 == 'e':
			d.at = inExpSign
		case d.at == inExpSign && (c == '+' || c == '-'):
			d.at, d.expNeg = inExp, c == '-'
		case d.at >= inExpSign && d.at <= inExp && digit:
			d.at = inExp
			d.expDigits++
			d.exp = min(d.exp*10+int64(c-'0'), jsontext.MaxExp)
		default:
			d.at = inNoNumber
		}
	}
}

// digits adds digits of the whole part or of the fraction.
func (d *digitReader) digits(key *keyText, run []byte) {
	if d.count == 0 {
		if run = bytes.TrimLeft(run, "0"); len(run) == 0 {
			return
		}
		if d.neg {
			key.write('-')
		}
	}
	counted := bytes.TrimRight(run, "0")
	zeros := int64(len(run) - len(counted)) // that end the digits, as far as is known
	if len(counted) == 0 {
		d.zeros += zeros
		return
	}
	d.count += d.zeros + int64(len(counted))
	for d.zeros > 0 {
		some := noughts[:min(d.zeros, int64(len(noughts)))]
		key.write(some...)
		d.keep(some)
		d.zeros -= int64(len(some))
	}
	key.write(counted...)
	d.more = d.keep(counted) || d.more
	d.zeros = zeros
}

var noughts = bytes.Repeat([]byte{'0'}, 512)

// keep keeps the first maxDigits, and reports whether there are more.
func (d *digitReader) keep(run []byte) (more bool) {
	n := min(len(run), maxDigits-len(d.kept))
	d.kept = append(d.kept, run[:n]...)
	return n < len(run)
}

// end completes key, if the text is a number whose exponent can be counted
// with.
func (d *digitReader) end(key *keyText) {
	switch {
	case d.at == inSign, d.at == inNoNumber, d.at == inExpSign, d.at == inExp && d.expDigits == 0:
		return
	case d.at == inFrac && d.frac == 0, d.whole > 1 && d.lead == '0':
		return
	}
	d.countable = d.exp < jsontext.MaxExp
	exp := d.exp
	if d.expNeg {
		exp = -exp
	}
	exp += d.zeros - d.frac
	if d.count == 0 {
		key.write('0')
		d.short = []byte{'0'}
		return
	}
	key.write(strconv.AppendInt([]byte{'e'}, exp, 10)...)
	if d.neg {
		d.short = append(d.short, '-')
	}
	d.short = append(d.short, d.kept...)
	exp += d.count - int64(len(d.kept))
	if d.more {
		d.short = append(d.short, '1')
		exp--
	}
	d.short = strconv.AppendInt(append(d.short, 'e'), exp, 10)
}

// KeepID returns id, or the kept form of an id that is longer than limit: its
// first bytes, for IDText, and its results of AppendIDKey and OddEchoes. A kept
// form ends in a zero byte, as no JSON value does.
func KeepID(id []byte, limit int) []byte {
	if len(id) <= limit || isKept(id) {
		return id
	}
	var k idKeys
	k.write(id)
	return k.keep(id[:limit])
}

// IDText returns the text of an id, or the kept part of it.
func IDText(id []byte) []byte {
	if isKept(id) {
		id = id[:len(id)-keptTrailer]
	}
	return id
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
