package wire

import (
	"bytes"
	"strconv"
)

// A number is a parsed JSON number; it is never expanded.
type number struct {
	neg         bool
	whole, frac []byte // digits before and after the point
	exp         int64  // ±maxExp if beyond
}

const maxExp = 1e15

// parseNumber reads a number of RFC 8259, section 6.
func parseNumber(b []byte) (n number, ok bool) {
	if len(b) > 0 && b[0] == '-' {
		n.neg = true
		b = b[1:]
	}
	n.whole, b = digits(b)
	if len(n.whole) == 0 || len(n.whole) > 1 && n.whole[0] == '0' {
		return n, false
	}
	if len(b) > 0 && b[0] == '.' {
		n.frac, b = digits(b[1:])
		if len(n.frac) == 0 {
			return n, false
		}
	}
	if len(b) > 0 && b[0]|0x20 == 'e' {
		b = b[1:]
		neg := false
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			neg = b[0] == '-'
			b = b[1:]
		}
		var e []byte
		if e, b = digits(b); len(e) == 0 {
			return n, false
		}
		for _, c := range e {
			n.exp = min(n.exp*10+int64(c-'0'), maxExp)
		}
		if neg {
			n.exp = -n.exp
		}
	}
	return n, len(b) == 0
}

func digits(b []byte) (d, rest []byte) {
	i := 0
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return b[:i], b[i:]
}

// appendDecimal appends n's digits without leading and trailing zeros and
// returns the power of ten they count in. It appends none for zero.
func (n number) appendDecimal(dst []byte) (_ []byte, exp int64) {
	from := len(dst)
	dst = append(append(dst, n.whole...), n.frac...)
	d := bytes.TrimLeft(dst[from:], "0")
	dst = append(dst[:from], d...)
	exp = n.exp - int64(len(n.frac))
	for len(dst) > from && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
		exp++
	}
	return dst, exp
}

// magnitude is the m with 10^(m-1) <= |n| < 10^m, and false for zero.
func (n number) magnitude() (m int64, ok bool) {
	if n.whole[0] != '0' {
		return n.exp + int64(len(n.whole)), true
	}
	zeros := len(n.frac) - len(bytes.TrimLeft(n.frac, "0"))
	return n.exp - int64(zeros), zeros < len(n.frac)
}

// maxMagnitude is the magnitude of the largest float64.
const maxMagnitude = 309

// scalarAnomaly returns the anomaly of a number or word.
func scalarAnomaly(b []byte) Anomaly {
	if len(b) <= 15 && b[0] != '0' {
		if d, _ := digits(b); len(d) == len(b) {
			return 0
		}
	}
	switch string(b) {
	case "true", "false", "null":
		return 0
	case "NaN", "Infinity", "-Infinity":
		return NaN
	}
	n, ok := parseNumber(b)
	if !ok {
		return NotJSON
	}
	m, _ := n.magnitude()
	if m == maxMagnitude {
		if _, err := strconv.ParseFloat(string(b), 64); err != nil {
			m++
		}
	}
	if m > maxMagnitude {
		return NaN
	}
	return 0
}
