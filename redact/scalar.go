package redact

import (
	"bytes"
	"math"
	"strconv"

	"auditproxy/redact/lex"
	"auditproxy/schemas/jsontext"
)

// A kind is a value's type in Python, whose words shapes use.
type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	nonFinite // NaN, Infinity, or a float beyond float64
	odd       // not JSON: no server is known to read it
	text
	list
	object
)

// maxDigits is the longest integer that Python reads (sys.int_info).
const maxDigits = 4300

func (k kind) String() string {
	switch k {
	case boolean:
		return "bool"
	case integer:
		return "int"
	case float:
		return "float"
	case text:
		return "str"
	case list:
		return "list"
	case object:
		return "dict"
	case odd:
		return "unknown"
	}
	return "NoneType" // NaN too: the server's JSON layer has made it null
}

func classify(token []byte) kind {
	switch jsontext.KindOf(token) {
	case jsontext.Null:
		return null
	case jsontext.Bool:
		return boolean
	case jsontext.Integer:
		return integer
	case jsontext.NaN:
		return nonFinite
	case jsontext.Float:
		if math.IsInf(parseFloat(token), 0) {
			return nonFinite
		}
		return float
	}
	return odd
}

// parseFloat returns the nearest float64 to token, which has a float's form.
func parseFloat(token []byte) float64 {
	f, _ := strconv.ParseFloat(lex.View(token), 64) // beyond float64 is an infinity
	return f
}

// appendScalar appends token as records have it: strict JSON, numbers in
// Python's form. Anything but a JSON scalar stays unchanged, and may only be
// digested.
func appendScalar(dst, token []byte) []byte {
	switch classify(token) {
	case integer:
		if string(token) == "-0" {
			token = token[1:]
		}
	case float:
		return appendFloat(dst, parseFloat(token))
	case nonFinite:
		return append(dst, "null"...)
	}
	return append(dst, token...)
}

// appendFloat appends f as Python's repr does: the shortest digits that read
// back as f, in fixed form for decimal exponents from -4 to 15.
func appendFloat(dst []byte, f float64) []byte {
	if f != 0 && (math.Abs(f) < 1e-4 || math.Abs(f) >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, '.', '0')
	}
	return dst
}
