package wire

import (
	"bytes"
	"crypto/sha256"
	"math"
	"strconv"

	"auditproxy/schemas/jsontext"
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

const shortID = 64 // of an id's JSON text

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
	n, ok := jsontext.ParseNumber(raw)
	switch {
	case ok && m == ExactID:
		return appendNumberKey(append(dst, 'n'), n, raw)
	case ok:
		return appendFloatKey(dst, raw, n, m, answer)
	case raw[0] == '"' && m == FloatID:
		return appendReplacedKey(dst, raw)
	case m != ExactID:
		return dst
	case raw[0] == '"':
		return jsontext.AppendUnquote(append(dst, 's'), raw)
	default:
		return new(compacter).append(append(dst, 't'), raw)
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

// appendSmallKey appends the key of a small integer, as appendNumberKey would.
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

// appendNumberKey appends sign, digits and exponent, without zeros at either end.
func appendNumberKey(dst []byte, n jsontext.Number, raw []byte) []byte {
	if n.Exp == jsontext.MaxExp || n.Exp == -jsontext.MaxExp {
		return append(append(dst, 'x'), raw...) // too far out to count with
	}
	from := len(dst)
	if n.Negative {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst, exp := n.AppendDigits(dst)
	if len(dst) == start {
		return append(dst[:from], '0') // 0, -0, 0e5
	}
	return strconv.AppendInt(append(dst, 'e'), exp, 10)
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

// oddID reports whether an id is neither a string nor an integer that survives
// in a float64, written as digits: Python ignores a request with the id 2.0.
func oddID(raw []byte) bool {
	if raw[0] == '"' || smallInteger(raw) {
		return false
	}
	if jsontext.KindOf(raw) != jsontext.Integer {
		return true
	}
	n, _ := jsontext.ParseNumber(raw)
	switch {
	case len(n.Whole) <= 15:
		return false
	case len(n.Whole) > maxMagnitude:
		return true // no float64 is that large
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	return !survives(n, f)
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
	n, ok := jsontext.ParseNumber(raw)
	if !ok {
		return nil
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	if integral(n) && survives(n, f) {
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
