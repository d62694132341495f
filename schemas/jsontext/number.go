package jsontext

import "bytes"

// A Kind is what a number or a word is.
type Kind uint8

// The kinds. A number that no float64 holds is not one of its own: servers
// differ in how they read it.
const (
	Odd Kind = iota // no server is known to read it
	Null
	Bool
	Integer // without fraction and exponent
	Float
	NaN // NaN, Infinity or -Infinity: not JSON, but many servers read them
)

// KindOf returns the kind of a number or a word.
func KindOf(b []byte) Kind {
	if len(b) == 0 {
		return Odd
	}
	if c := b[0]; c != '-' && (c < '0' || c > '9') {
		switch string(b) {
		case "null":
			return Null
		case "true", "false":
			return Bool
		case "NaN", "Infinity":
			return NaN
		}
		return Odd
	}
	switch whole, _, end := number(b, 0); {
	case string(b) == "-Infinity":
		return NaN
	case end != len(b):
		return Odd
	case whole == end:
		return Integer
	}
	return Float
}

// number returns the indexes after the parts of the number of RFC 8259, section
// 6, at b[i]: after the digits before the point, after the fraction, and after
// all of it. end is -1 if there is no number.
func number[T Text](b T, i int) (whole, frac, end int) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		whole = i + 1
	} else if whole = Digits(b, i); whole == i {
		return 0, 0, -1
	}
	frac = whole
	if frac < len(b) && b[frac] == '.' {
		if frac = Digits(b, whole+1); frac == whole+1 {
			return 0, 0, -1
		}
	}
	if end = frac; end == len(b) || b[end]|0x20 != 'e' {
		return whole, frac, end
	}
	end++
	if end < len(b) && (b[end] == '+' || b[end] == '-') {
		end++
	}
	from := end
	if end = Digits(b, from); end == from {
		return 0, 0, -1
	}
	return whole, frac, end
}

// Digits returns the index after the digits at b[i].
func Digits[T Text](b T, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// A Number is a JSON number in its parts. It is never expanded.
type Number struct {
	Negative    bool
	Whole, Frac []byte // digits before and after the point
	Exp         int64  // ±MaxExp if beyond
}

// MaxExp limits the exponent of a Number.
const MaxExp = 1e15

// ParseNumber reads a number of RFC 8259. ok is false if b is anything else.
func ParseNumber(b []byte) (n Number, ok bool) {
	whole, frac, end := number(b, 0)
	if end != len(b) {
		return n, false
	}
	from := 0
	if n.Negative = b[0] == '-'; n.Negative {
		from = 1
	}
	n.Whole = b[from:whole]
	if frac > whole {
		n.Frac = b[whole+1 : frac]
	}
	if frac == end {
		return n, true
	}
	exp := bytes.TrimLeft(b[frac+1:], "+-")
	for _, c := range exp {
		n.Exp = min(n.Exp*10+int64(c-'0'), MaxExp)
	}
	if b[frac+1] == '-' {
		n.Exp = -n.Exp
	}
	return n, true
}

// AppendDigits appends n's digits without leading and trailing zeros and
// returns the power of ten they count in. It appends none for zero.
func (n Number) AppendDigits(dst []byte) (_ []byte, exp int64) {
	from := len(dst)
	dst = append(append(dst, n.Whole...), n.Frac...)
	d := bytes.TrimLeft(dst[from:], "0")
	dst = append(dst[:from], d...)
	exp = n.Exp - int64(len(n.Frac))
	for len(dst) > from && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
		exp++
	}
	return dst, exp
}

// Magnitude is the m with 10^(m-1) <= |n| < 10^m, and false for zero.
func (n Number) Magnitude() (m int64, ok bool) {
	if n.Whole[0] != '0' {
		return n.Exp + int64(len(n.Whole)), true
	}
	zeros := len(n.Frac) - len(bytes.TrimLeft(n.Frac, "0"))
	return n.Exp - int64(zeros), zeros < len(n.Frac)
}
