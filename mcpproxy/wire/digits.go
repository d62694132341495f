package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"strconv"

	"auditproxy/schemas/jsontext"
)

const maxIDKey = 64

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

func appendFloatKey(dst, raw []byte, n jsontext.Number, m IDMatch, answer bool) []byte {
	f, _ := strconv.ParseFloat(string(raw), 64) // ±Inf when out of range
	if f == 0 {
		f = 0 // -0 is 0
	}
	fits := f >= math.MinInt64 && f < -math.MinInt64
	if !answer && integral(n) && (m == FloatID || fits) && survives(n, f) {
		return dst
	}
	if m == FloatID {
		return binary.BigEndian.AppendUint64(append(dst, 'f'), math.Float64bits(f))
	}
	i := int64(math.MinInt64) // the conversion's result on amd64
	if fits {
		i = int64(f)
	}
	return strconv.AppendInt(append(dst, 'i'), i, 10)
}

// integral reports whether n has no fraction, in any form.
func integral(n jsontext.Number) bool {
	var buf [32]byte
	d, exp := n.AppendDigits(buf[:0])
	return len(d) == 0 || exp >= 0
}

// survives reports whether all servers that read n, which is integral, as f
// write n again: f is exactly n, and so is the shortest number that is read as
// f.
func survives(n jsontext.Number, f float64) bool {
	var a, b [32]byte
	d, exp := n.AppendDigits(a[:0])
	if int64(len(d))+exp <= 15 || len(d) == 0 {
		return true
	}
	if math.IsInf(f, 0) {
		return false
	}
	for _, precision := range [...]int{0, -1} {
		m, _ := jsontext.ParseNumber(strconv.AppendFloat(nil, math.Abs(f), 'f', precision, 64))
		if e, exp2 := m.AppendDigits(b[:0]); exp != exp2 || !bytes.Equal(d, e) {
			return false
		}
	}
	return true
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
