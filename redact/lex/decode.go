package lex

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unhex is the value of a hexadecimal digit, 255 for other bytes.
var Unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range "0123456789" {
		t[c] = byte(i)
	}
	for i, c := range "abcdef" {
		t[c], t[c-32] = byte(10+i), byte(10+i)
	}
	return t
}()

// IsEscape reports whether b starts with %41, \u0041, \x41 or \101.
func IsEscape(b []byte) bool {
	switch {
	case len(b) < 3:
		return false
	case b[0] == '%':
		return Unhex[b[1]] < 16 && Unhex[b[2]] < 16
	case b[1] == 'u':
		return true
	}
	_, n := octet(b)
	return n > 0
}

// octet returns the byte that b starts with as C and shells write it, \x41 or \101, and
// its length, 0 for none.
func octet(b []byte) (c byte, n int) {
	if len(b) < 4 {
		return 0, 0
	}
	switch hi, lo := Unhex[b[2]], Unhex[b[3]]; {
	case b[1] == 'x' && hi < 16 && lo < 16:
		return hi<<4 | lo, 4
	case '0' <= b[1] && b[1] <= '3' && hi < 8 && lo < 8:
		return (b[1]-'0')<<6 | hi<<3 | lo, 4
	}
	return 0, 0
}

// AppendOctets appends b without those.
func AppendOctets(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		if b[i] == '\\' {
			if c, n := octet(b[i:]); n > 0 {
				dst, i = append(dst, c), i+n
				continue
			}
			dst, i = append(dst, b[i]), i+1 // and what it escapes
		}
		if i < len(b) {
			dst, i = append(dst, b[i]), i+1
		}
	}
	return dst
}

// AppendBase64 appends b decoded from base64, standard or URL-safe (RFC 4648),
// up to the first byte that is neither.
func AppendBase64(dst, b []byte) []byte {
	for len(b) >= 4 {
		v0, v1, v2, v3 := base64Values[b[0]], base64Values[b[1]], base64Values[b[2]], base64Values[b[3]]
		if v0|v1|v2|v3 > 63 {
			break
		}
		dst = append(dst, v0<<2|v1>>4, v1<<4|v2>>2, v2<<6|v3)
		b = b[4:]
	}
	var bits, n uint
	for _, c := range b {
		v := base64Values[c]
		if v > 63 {
			break
		}
		bits, n = bits<<6|uint(v), n+6
		if n >= 8 {
			n -= 8
			dst = append(dst, byte(bits>>n))
		}
	}
	return dst
}

// IsBase64 reports whether c is a digit of base64, standard or URL-safe, or its padding.
func IsBase64(c byte) bool { return base64Values[c] < 64 || c == '=' }

// Base64End returns where the run of base64 at i ends.
func Base64End(t []byte, i int) int {
	for i < len(t) && IsBase64(t[i]) {
		i++
	}
	return i
}

// Narrowed returns b without the zeros of UTF-16, in b's memory, if it is ASCII in that:
// as PowerShell's -EncodedCommand has it.
func Narrowed(b []byte) []byte {
	zero := 1
	if len(b) > 0 && b[0] == 0 {
		zero = 0
	}
	if len(b) < 8 || b[zero] != 0 || b[zero+2] != 0 || b[zero+4] != 0 {
		return b
	}
	n := 0
	for i := 1 - zero; i < len(b); i += 2 {
		b[n] = b[i]
		n++
	}
	return b[:n]
}

// base64Values is the value of a digit of base64, 255 for other bytes.
var base64Values = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for _, digits := range []string{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_"} {
		for i, c := range digits {
			t[c] = byte(64 - len(digits) + i)
		}
	}
	return t
}()

// AppendUnhex appends b decoded from hexadecimal, up to the first byte that is
// not hexadecimal.
func AppendUnhex(dst, b []byte) []byte {
	for len(b) >= 2 && Unhex[b[0]] < 16 && Unhex[b[1]] < 16 {
		dst = append(dst, Unhex[b[0]]<<4|Unhex[b[1]])
		b = b[2:]
	}
	return dst
}

// AppendDumped appends the bytes that a line of a dump shows in hexadecimal, in groups behind
// its offset, as xxd, hexdump -C, od -tx1 and tcpdump -X print it: nothing of another line.
func AppendDumped(dst, line []byte) []byte {
	const most = 16 // bytes of a line
	i := len(line) - len(bytes.TrimLeft(line, " \t"))
	if bytes.HasPrefix(line[i:], []byte("0x")) {
		i += len("0x")
	}
	from := i
	for i < len(line) && Unhex[line[i]] < 16 {
		i++
	}
	colon := i < len(line) && line[i] == ':'
	if n := i - from; n < 4 || n > 8 || n < 7 && !colon {
		return dst
	}
	if colon {
		i++
	}
	for base := len(dst); i < len(line) && len(dst)-base < most; {
		gap := len(line[i:]) - len(bytes.TrimLeft(line[i:], " "))
		from = i + gap
		for i = from; i < len(line) && Unhex[line[i]] < 16; {
			i++
		}
		if n := i - from; gap == 0 || gap > 2 || n == 0 || n%2 != 0 || n > 8 || i < len(line) && line[i] > ' ' {
			break // the text
		}
		dst = AppendUnhex(dst, line[from:i])
	}
	return dst
}

// AppendPercent appends b without its percent-encoding (RFC 3986, 2.1).
func AppendPercent(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] == '%' && i+2 < len(b) && Unhex[b[i+1]] < 16 && Unhex[b[i+2]] < 16 {
			dst = append(dst, Unhex[b[i+1]]<<4|Unhex[b[i+2]])
			i += 2
			continue
		}
		dst = append(dst, b[i])
	}
	return dst
}

// requotes are how a shell's text between apostrophes has one of them.
var requotes = [...]string{`'"'"'`, `'\''`}

// RequoteLen returns the length in bytes of the apostrophe of a shell's text that b
// starts with, 0 for none.
func RequoteLen(b []byte) int {
	for _, r := range &requotes {
		if len(b) >= len(r) && string(b[:len(r)]) == r {
			return len(r)
		}
	}
	return 0
}

// AppendRequoted appends b from i on with an apostrophe for each that RequoteLen finds,
// up to another one, and returns where that is. at gets, by byte, where in b it is, and
// the end.
func AppendRequoted(dst []byte, at []int32, b []byte, i int) ([]byte, []int32, int) {
	for i < len(b) {
		n := 1
		if b[i] == '\'' {
			if n = RequoteLen(b[i:]); n == 0 {
				break
			}
		}
		dst, at = append(dst, b[i]), append(at, int32(i))
		i += n
	}
	return dst, append(at, int32(i)), i
}

// entities are characters as HTML and XML write them.
var entities = [...]struct {
	name string
	char byte
}{{"&quot;", '"'}, {"&apos;", '\''}, {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&nbsp;", ' '}}

// Shown returns the length of what b starts with if a reader sees another character for
// it, char: HTML's &quot; and &#34;. A zero-width character, a soft hyphen, the zeros of
// UTF-16, a terminal's control sequence and what joins two strings show nothing, 0.
func Shown(b []byte) (char byte, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[0] {
	case 0:
		return 0, 1
	case 0x1B:
		return 0, controlLen(b)
	case '"', '\'':
		return 0, JoinLen(b)
	case 0xC2:
		if b[1] == 0xAD {
			return 0, 2
		}
	case 0xE2, 0xEF:
		for _, hidden := range [...]string{"\u200B", "\u200C", "\u200D", "\u2060", "\uFEFF"} {
			if bytes.HasPrefix(b, []byte(hidden)) {
				return 0, len(hidden)
			}
		}
	case '&':
		for _, e := range &entities {
			if bytes.HasPrefix(b, []byte(e.name)) {
				return e.char, len(e.name)
			}
		}
		if b[1] == '#' {
			return numbered(b)
		}
	}
	return 0, 0
}

// controlLen returns the length of the control sequence of a terminal that b starts with
// (ECMA-48, 5.4), as one that sets a colour, 0 for none.
func controlLen(b []byte) int {
	if b[1] != '[' {
		return 0
	}
	for i := 2; i < len(b) && i < maxControl; i++ {
		switch c := b[i]; {
		case '@' <= c && c <= '~':
			return i + 1
		case c < ' ' || c > '~':
			return 0
		}
	}
	return 0
}

// maxControl is the length of the longest control sequence, in bytes.
const maxControl = 48

// JoinLen returns the length of what b starts with if it ends a string and starts
// another one that a program joins to it: " + ", 0 for none.
func JoinLen(b []byte) int {
	operator := false
	for i := 1; i < len(b) && i < maxJoin; i++ {
		switch c := b[i]; {
		case c == b[0]:
			if operator {
				return i + 1
			}
			return 0
		case c <= ' ', c == '\\':
		case strings.IndexByte("+.&~|", c) >= 0:
			operator = true
		default:
			return 0
		}
	}
	return 0
}

// maxJoin limits what is between two strings, in bytes.
const maxJoin = 48

// numbered is Shown for a character of ASCII by its number: &#34; and &#x22;.
func numbered(b []byte) (char byte, n int) {
	digits, base := b[len("&#"):min(len(b), len("&#1234;"))], 10
	if len(digits) > 0 && digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	end := bytes.IndexByte(digits, ';')
	if end < 1 {
		return 0, 0
	}
	c, err := strconv.ParseUint(string(digits[:end]), base, 7)
	if err != nil {
		return 0, 0
	}
	return byte(c), bytes.IndexByte(b, ';') + 1
}

// IsText reports whether b is UTF-8, which may end within a letter.
func IsText(b []byte) bool {
	for cut := 0; cut < utf8.UTFMax && cut <= len(b); cut++ {
		if utf8.Valid(b[:len(b)-cut]) {
			return true
		}
	}
	return false
}

// HasText reports whether b may hold a credential: three characters of ASCII in
// a row, "pw=", or a separator behind the letters of another script.
func HasText(b []byte) bool {
	n := 0
	for i, c := range b {
		switch {
		case c >= utf8.RuneSelf || c < ' ' && c != '\t' && c != '\n' && c != '\r':
			n = 0
			continue
		case (c == '=' || c == ':') && i > 0 && (b[i-1] >= utf8.RuneSelf || b[i-1] <= ' '):
			return true
		}
		if n++; n == 3 {
			return true
		}
	}
	return false
}

// IsReadable reports whether b is UTF-8 without control characters but white space.
func IsReadable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return utf8.Valid(b)
}
