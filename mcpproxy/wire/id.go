package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"strconv"

	"auditproxy/schemas/jsontext"
)

// An IDMatch is a way to compare an answer's id with a request's. Servers read
// ids as exact numbers, as float64 or as int64 and echo the value they read
// (go-sdk answers 1.5 with 1), so a proxy tries each in turn. They also differ
// in how many U+FFFD they put for bytes that are not UTF-8.
type IDMatch uint8

// The comparisons, strictest first.
const (
	ExactID IDMatch = iota // by JSON value: decoded string, or digits and exponent
	FloatID                // numbers by float64, strings with each run of U+FFFD as one
	IntID                  // numbers as Go converts a float64 to int64
)

// AppendIDKey appends a key for the id with the JSON text raw: two ids match
// under m if their keys are equal. Keys of different comparisons and of
// different JSON types never are. Booleans, lists and objects compare by their
// compact text. raw may be what KeepID returned. It returns dst unchanged where
// m matches no more than the stricter ones for a *request's* id: for all except
// numbers and strings with U+FFFD, and for integers that survive in a float64.
// It never expands a number: 1e999999999 is short. For an answer's id pass
// answer = true: every number then has all three keys.
//
// A key is at most maxIDKey bytes long. A longer one is replaced by its
// SHA-256, for which a client cannot choose colliding ids.
func AppendIDKey(dst, raw []byte, m IDMatch, answer bool) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return dst
	}
	if smallInteger(raw) && (m == ExactID || !answer) {
		return appendSmallKey(dst, raw, m)
	}
	if len(raw) <= shortID {
		from := len(dst)
		dst = appendIDKey(dst, raw, m, answer)
		return append(dst[:from], digestKey(dst[from:])...)
	}
	if kept, ok := keptKey(raw, m, answer); ok {
		return append(dst, kept...)
	}
	var k idKeys
	k.write(raw)
	k.end()
	return k.appendKey(dst, m, answer)
}

const (
	shortID  = 64 // of an id's JSON text
	maxIDKey = 64
)

// digestKey returns key, or its digest if it is long. No other key starts with
// a zero byte.
func digestKey(key []byte) []byte {
	if len(key) <= maxIDKey {
		return key
	}
	sum := sha256.Sum256(key)
	return append([]byte{0}, sum[:]...)
}

func appendIDKey(dst, raw []byte, m IDMatch, answer bool) []byte {
	n, ok := parseNumber(raw)
	switch {
	case ok && m == ExactID:
		return n.appendKey(append(dst, 'n'), raw)
	case ok:
		return appendFloatKey(dst, raw, n, m, answer)
	case raw[0] == '"' && m == FloatID:
		return appendReplacedKey(dst, raw)
	case m != ExactID:
		return dst
	case raw[0] == '"':
		return jsontext.AppendUnquote(append(dst, 's'), raw)
	default:
		return appendCompact(append(dst, 't'), raw)
	}
}

// smallInteger reports whether raw is one of the integers that nearly all ids
// are: no sign, no form but digits, and exact in a float64.
func smallInteger(raw []byte) bool {
	if len(raw) > 15 || raw[0] == '0' && len(raw) > 1 {
		return false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// appendSmallKey appends the key of a small integer, as appendKey would.
func appendSmallKey(dst, raw []byte, m IDMatch) []byte {
	switch {
	case m != ExactID:
		return dst
	case raw[0] == '0':
		return append(dst, "n0"...)
	}
	digits := bytes.TrimRight(raw, "0")
	dst = append(append(dst, 'n'), digits...)
	return strconv.AppendInt(append(dst, 'e'), int64(len(raw)-len(digits)), 10)
}

// appendKey appends sign, digits and exponent, without zeros at either end.
func (n number) appendKey(dst, raw []byte) []byte {
	if n.exp == maxExp || n.exp == -maxExp {
		return append(append(dst, 'x'), raw...) // too far out to count with
	}
	from := len(dst)
	if n.neg {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst, exp := n.appendDecimal(dst)
	if len(dst) == start {
		return append(dst[:from], '0') // 0, -0, 0e5
	}
	return strconv.AppendInt(append(dst, 'e'), exp, 10)
}

func appendFloatKey(dst, raw []byte, n number, m IDMatch, answer bool) []byte {
	f, _ := strconv.ParseFloat(string(raw), 64) // ±Inf when out of range
	if f == 0 {
		f = 0 // -0 is 0
	}
	fits := f >= math.MinInt64 && f < -math.MinInt64
	if !answer && n.integral() && (m == FloatID || fits) && n.survives(f) {
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

// appendReplacedKey appends the key of a string with U+FFFD in it, nothing if it
// has none. For the start of a character go-sdk puts one for each byte, others
// put a single one.
func appendReplacedKey(dst, raw []byte) []byte {
	mark, marks := []byte("\uFFFD"), []byte("\uFFFD\uFFFD")
	key := jsontext.AppendUnquote(append(dst, 'u'), raw)
	text := key[len(dst)+1:]
	if !bytes.Contains(text, mark) {
		return dst
	}
	for bytes.Contains(text, marks) {
		text = bytes.ReplaceAll(text, marks, mark)
	}
	return append(key[:len(dst)+1], text...)
}

// integral reports whether n has no fraction, in any form.
func (n number) integral() bool {
	var buf [32]byte
	d, exp := n.appendDecimal(buf[:0])
	return len(d) == 0 || exp >= 0
}

// survives reports whether all servers that read n, which is integral, as f
// write n again: f is exactly n, and so is the shortest number that is read as
// f.
func (n number) survives(f float64) bool {
	var a, b [32]byte
	d, exp := n.appendDecimal(a[:0])
	if int64(len(d))+exp <= 15 || len(d) == 0 {
		return true
	}
	if math.IsInf(f, 0) {
		return false
	}
	for _, precision := range [...]int{0, -1} {
		m, _ := parseNumber(strconv.AppendFloat(nil, math.Abs(f), 'f', precision, 64))
		if e, exp2 := m.appendDecimal(b[:0]); exp != exp2 || !bytes.Equal(d, e) {
			return false
		}
	}
	return true
}

// oddID reports whether an id is neither a string nor an integer that survives
// in a float64, written as digits: Python ignores a request with the id 2.0.
func oddID(raw []byte) bool {
	if raw[0] == '"' || smallInteger(raw) {
		return false
	}
	n, ok := parseNumber(raw)
	switch d, _ := digits(bytes.TrimPrefix(raw, []byte{'-'})); {
	case !ok || len(d) != len(bytes.TrimPrefix(raw, []byte{'-'})):
		return true
	case len(d) <= 15:
		return false
	case len(d) > maxMagnitude:
		return true // no float64 is that large
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	return !n.survives(f)
}

// OddEchoes returns the ids with which inexact servers answer a number that
// does not survive them: its float64 and its int64. nil for all others.
func OddEchoes(raw []byte) [][]byte {
	raw = bytes.TrimSpace(raw)
	if isKept(raw) {
		raw = keptNumber(raw)
	}
	if len(raw) == 0 || raw[0] == '"' || smallInteger(raw) {
		return nil
	}
	n, ok := parseNumber(raw)
	if !ok {
		return nil
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	if n.integral() && n.survives(f) {
		return nil
	}
	i := int64(math.MinInt64)
	if f >= math.MinInt64 && f < -math.MinInt64 {
		i = int64(f)
	}
	echoes := [][]byte{strconv.AppendInt(nil, i, 10)}
	if !math.IsInf(f, 0) {
		echoes = append(echoes, strconv.AppendFloat(nil, f, 'g', -1, 64))
	}
	return echoes
}

// appendCompact appends b without the white space between its tokens.
func appendCompact(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		switch b[i] {
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			end := skipLiteral(b, i)
			dst = append(dst, b[i:end]...)
			i = end
		default:
			dst = append(dst, b[i])
			i++
		}
	}
	return dst
}

// Member returns the value of the first level member with this name in the
// JSON object obj, the last one if there are several, nil if there is none. It
// reads the same superset of JSON as Requests.
func Member(obj []byte, name string) (found []byte) {
	for lit, v := range members(obj) {
		if isName(lit, name) {
			found = v
		}
	}
	return found
}

// members yields the first level members of the JSON object obj: the literals
// of their names and their values.
func members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(lit, v []byte) bool) {
		i := bytes.IndexByte(obj, '{') + 1
		if i == 0 {
			return
		}
		for i < len(obj) && obj[i] != '}' {
			if obj[i] != '"' {
				i++
				continue
			}
			end := skipLiteral(obj, i)
			lit := obj[i:end]
			for i = end; i < len(obj) && obj[i] != ':'; {
				i++
			}
			for i++; i < len(obj) && !startsValue(obj[i]); {
				i++
			}
			if i >= len(obj) {
				return
			}
			end = skipValue(obj, i)
			if !yield(lit, obj[i:end:end]) {
				return
			}
			i = end
		}
	}
}

// startsValue distinguishes a value from white space, odd white space included.
func startsValue(c byte) bool {
	return c == '"' || c == '{' || c == '[' || jsontext.IsScalar(c) || c == '}'
}

func isName(lit []byte, name string) bool {
	if len(lit) == len(name)+2 && string(lit[1:len(lit)-1]) == name {
		return true
	}
	if bytes.IndexByte(lit, '\\') < 0 {
		return false
	}
	return string(jsontext.AppendUnquote(nil, lit)) == name
}

// skipLiteral returns the index after the string that starts at b[i].
func skipLiteral(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

// skipValue returns the index after the value that starts at b[i].
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			i = skipLiteral(b, i)
		case c == '{' || c == '[':
			depth++
			i++
			continue
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case jsontext.IsScalar(c):
			for i < len(b) && jsontext.IsScalar(b[i]) {
				i++
			}
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(b)
}
