// Package lex holds what the packages of redact share to read a text: classes of
// bytes, spans, marks of what is redacted, and sets and automata of words.
//
// The files, from the top: lex, decode.
package lex

import (
	"bytes"
	"strings"
	"unsafe"
)

// A Span is the bytes of one credential in a text.
type Span struct{ From, To int }

// The classes of bytes.
const (
	IsAlnum   = 1 << iota // ASCII letter or digit
	IsName                // part of a name, or of most tokens
	IsEnd                 // ends a credential: white space, quote, ; & | )
	IsTrigger             // may show a credential that has no known format
	IsQuote
	IsHint  // makes an encoding, a name or an option likely
	isBreak // between the words of a command line
	IsToken // part of a name, a path or a token
)

// Classes are the classes of each byte.
var Classes = func() (t [256]byte) {
	for c := range t {
		switch c := byte(c); {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z':
			t[c] = IsAlnum | IsName
		case c <= ' ' || c == 0x7F:
			t[c] = IsEnd | isBreak
		case c >= 0x80:
			t[c] = IsName
		}
	}
	for _, class := range [...]struct {
		class byte
		chars string
	}{
		{IsName, "_-.%$"},
		{IsEnd, ";&|)"},
		{IsQuote, "\"'`"},
		{isBreak, "\"'`,()[]{};|&<>\x7f"},
		{IsTrigger, "-IJ =:[{\t\n,>(\xEF"},
		{IsHint, "\x00\x1b,>=: %\\-\t\n\"'(&\xC2\xE2\xEF"},
	} {
		for i := range len(class.chars) {
			t[class.chars[i]] |= class.class
		}
	}
	for c := range t {
		switch {
		case strings.IndexByte("\"'`", byte(c)) >= 0:
			t[c] |= IsEnd
		case t[c]&IsName != 0 || strings.IndexByte("/+~@", byte(c)) >= 0:
			t[c] |= IsToken
		}
	}
	return t
}()

// View is b as a string, for calls that do not keep it.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// HasFoldSuffix reports whether b ends in word, in any case.
func HasFoldSuffix(b []byte, word string) bool {
	from := len(b) - len(word)
	return from >= 0 && bytes.EqualFold(b[from:], []byte(word))
}

// CountDigits returns the number of decimal digits that b starts with.
func CountDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || '9' < c {
			return i
		}
	}
	return len(b)
}

// IsWordBreak reports whether c is between the words of a command line, of a list
// of them in a text, or in strings in strings.
func IsWordBreak(c byte) bool { return Classes[c]&isBreak != 0 }

// IsContraction reports whether the apostrophe at i is one of English: "can't", "it's".
func IsContraction(t []byte, i int) bool {
	if t[i] != '\'' || i == 0 || Classes[t[i-1]]&IsAlnum == 0 {
		return false
	}
	for _, end := range [...]string{"t", "s", "ll", "re", "ve", "d", "m"} {
		to := i + 1 + len(end)
		if to <= len(t) && string(t[i+1:to]) == end && (to == len(t) || t[to] == ' ' || t[to] == '\n' || t[to] == ',' || t[to] == '.') {
			return true
		}
	}
	return false
}

// Backslashes returns the index behind the backslashes at i.
func Backslashes(t []byte, i int) int {
	for i < len(t) && t[i] == '\\' {
		i++
	}
	return i
}

// The prefix of the mark for a credential, and for the rest of a long name.
const (
	RedactedMark = "[redacted "
	CutMark      = "…["
)

// maxMark is more than the length of any mark.
const maxMark = 64

// MarkLen is the length of the redaction mark that b starts with, or 0.
// Redacted text is not redacted again.
func MarkLen(b []byte) int {
	n := 0
	switch {
	case len(b) == 0 || b[0] != '[' && b[0] != CutMark[0]:
		return 0
	case bytes.HasPrefix(b, []byte(RedactedMark)):
		n = len(RedactedMark)
	case bytes.HasPrefix(b, []byte(CutMark)):
		n = len(CutMark)
	default:
		return 0
	}
	n = After(b, n, "len=")
	digits := CountDigits(b[n:])
	if n == 0 || digits == 0 || digits > 10 {
		return 0
	}
	n += digits
	length := 16
	if m := After(b, n, " hmac="); m > 0 {
		n = m
	} else if m = After(b, n, " sha256="); m > 0 {
		n, length = m, 12
	} else {
		return 0
	}
	if len(b) < n+length+1 || b[n+length] != ']' {
		return 0
	}
	for _, c := range b[n : n+length] {
		if Unhex[c] > 15 || c < 'a' && c > '9' {
			return 0
		}
	}
	return n + length + 1
}

// After returns the index behind word at b[i:], 0 if it is not there.
func After(b []byte, i int, word string) int {
	if i > len(b) || !bytes.HasPrefix(b[i:], []byte(word)) {
		return 0
	}
	return i + len(word)
}

// CredentialEnd returns the end of a credential at i.
func CredentialEnd(t []byte, i int) int {
	for i < len(t) && Classes[t[i]]&IsEnd == 0 {
		if t[i] == '\\' {
			next := Backslashes(t, i)
			if next < len(t) && Classes[t[next]]&IsQuote != 0 {
				break // the quote of a string in a string
			}
			if next < len(t) && t[next] == ' ' && (next-i)%2 == 1 {
				next++ // of a shell: it ends no word
			}
			i = next
			continue
		}
		if MarkLen(t[i:]) > 0 {
			break
		}
		i++
	}
	return i
}

// ElementEnd is CredentialEnd for a credential that may be in an element of XML: SECRET</token>.
func ElementEnd(t []byte, i int) int {
	for n := 4 * maxMark; ; n *= 2 { // not all of a long text for each token that an element ends
		piece := t[:min(len(t), i+n)]
		at := bytes.Index(piece[i:], []byte("</"))
		if at >= 0 {
			piece = piece[:i+at]
		}
		if end := CredentialEnd(piece, i); end < len(piece)-maxMark || at >= 0 || len(piece) == len(t) {
			return end
		}
	}
}

// A ByteSet is a set of ASCII characters.
type ByteSet [2]uint64

// Has reports whether c is in b.
func (b *ByteSet) Has(c byte) bool { return c < 128 && b[c>>6]>>(c&63)&1 != 0 }

// Ahead caches the position of the next matching byte, so that repeated lookups
// stay linear.
type Ahead struct{ From, To int }

// Next returns the index of the next byte from i on for which is holds; i does
// not go back.
func (a *Ahead) Next(t []byte, i int, is func(byte) bool) int {
	if a.From <= i && i <= a.To && a.To > 0 {
		return a.To
	}
	a.From, a.To = i, i
	for a.To < len(t) && !is(t[a.To]) {
		a.To++
	}
	return a.To
}

// An Automaton finds words in a text in one pass (Aho and Corasick, 1975). Its
// tables are written by TestTables of package redact.
type Automaton struct {
	Root  *[256]uint16 // where a byte leads from the start
	First []uint16     // by state: its first edge; one more at the end
	Some  []uint32     // by state: the lower five bits of its edges' bytes
	Label string       // by edge: its byte
	Next  []uint16     // by edge: the state it leads to
	Fail  []uint16     // by state: the longest suffix that is a state
	Out   []uint16     // by state: 1 + the word that ends here, or 0
	Also  []uint16     // by state: the longest suffix at which a word ends
}

// Step returns the state after c. Over a text it needs constant time per byte,
// as no state fails to a deeper one.
func (a *Automaton) Step(state uint16, c byte) uint16 {
	for state != 0 {
		if a.Some[state]>>(c&31)&1 != 0 {
			for e := a.First[state]; e < a.First[state+1]; e++ {
				if a.Label[e] == c {
					return a.Next[e]
				}
			}
		}
		state = a.Fail[state]
	}
	return a.Root[c]
}

// A WordSet is a set of hashes of words of two bytes or more.
type WordSet [1 << 14 / 64]uint64

// HashWord hashes a word of n bytes by three of them, which are letters in any
// case or others.
func HashWord(first, second, last byte, n int) uint32 {
	return (uint32(first)<<24 | uint32(second)<<16 | uint32(last)<<8 | uint32(n)&0xFF) * 0x9E3779B1 >> 18
}

// Add adds a word.
func (w *WordSet) Add(word string) {
	h := HashWord(word[0], word[1], word[len(word)-1], len(word))
	w[h/64] |= 1 << (h % 64)
}

// Has reports whether a word that looks like b may be in w.
func (w *WordSet) Has(b []byte) bool {
	h := HashWord(b[0], b[1], b[len(b)-1], len(b))
	return w[h/64]>>(h%64)&1 != 0
}

// PrefixLen returns the length of the prefix of the string that b starts with:
// b"SECRET", N'SECRET', r#"SECRET"#.
func PrefixLen(b []byte) int {
	n := 0
	if len(b) > 1 && b[0] == 'x' { // [ x"$PASSWORD" = x"SECRET" ]
		n = 1
		b = b[:2]
	} else if bytes.HasPrefix(b, []byte("u8")) {
		n = len("u8")
	}
	for n < len(b) && n < 2 && strings.IndexByte("bBrRfFuUNEL$@", b[n]) >= 0 {
		n++
	}
	for raw := n; n > 0 && b[raw-1] == 'r' && n < len(b) && n < raw+3 && b[n] == '#'; { // of Rust
		n++
	}
	if n == 0 || n == len(b) || b[n] != '"' && b[n] != '\'' {
		return 0
	}
	return n
}

// IsWords reports whether b is a name of letters, such as that of a function.
func IsWords(b []byte) bool {
	for _, c := range b {
		if c != '.' && c != '_' && (c|0x20 < 'a' || 'z' < c|0x20) {
			return false
		}
	}
	return true
}

// IsOption reports whether b is an option of a program, such as --dry-run.
func IsOption(b []byte) bool {
	b, ok := bytes.CutPrefix(b, []byte("--"))
	for _, c := range b {
		if (c < 'a' || 'z' < c) && c != '-' {
			return false
		}
	}
	return ok && len(b) > 1 && b[0] != '-'
}

// IsFlag reports whether b is an option with one dash: -noout, -e.
func IsFlag(b []byte) bool {
	return len(b) > 1 && b[0] == '-' && (IsWords(b[1:]) && bytes.Equal(b, bytes.ToLower(b)) || len(b) == 2 && Classes[b[1]]&IsAlnum != 0 && !IsDigit(b[1]))
}

// IsType reports whether b is a type of text in a declaration.
func IsType(b []byte) bool {
	if n := len(b); n > 0 && (b[n-1] == '?' || b[n-1] == ']') {
		b = bytes.TrimRight(b, "?[]")
	}
	switch string(b) {
	case "string", "String", "str", "char", "text", "varchar", "byte", "bytes", "any", "Any", "object", "Object", "NSString", "SecretStr", "SecureString", "cstring", "u8", "wchar_t":
		return true
	}
	return false
}

// IsDirective reports whether w is before a string of an assembler.
func IsDirective(w []byte) bool {
	switch string(w) {
	case ".asciz", ".ascii", ".string", ".byte", ".db", "EQU", "equ", "DB", "db", "DC", "dc.b", "DC.B", "defb", "DEFB", "defm", "DEFM", "fcc", "FCC":
		return true
	}
	return false
}

// IsWide reports whether b starts with the colon or the equals sign of Asia, wide or small,
// of three bytes.
func IsWide(b []byte) bool {
	return len(b) > 2 && b[0] == 0xEF && (b[1] == 0xBC && (b[2] == 0x9A || b[2] == 0x9D) || b[1] == 0xB9 && (b[2] == 0x95 || b[2] == 0xA6))
}

// Pieces are strings that a program joins: "a" + "b", "a".concat("b").
type Pieces struct {
	Plain  bool // white space is enough between them
	called bool // they are the arguments of a method
}

// Next returns the index of the quote that opens the next one, where the one before ends
// at i. It is 0 if there is none.
func (p *Pieces) Next(t []byte, i int) int {
	joined := p.Plain
	for k := i + 1; k < len(t) && k-i < maxPiece; k++ {
		switch c := t[k]; {
		case c <= ' ', c == '\\':
		case (c == '.' || c == '%') && callLen(t[k:]) > 0:
			k += callLen(t[k:]) - 1
			p.called = true
		case strings.IndexByte("+.&|>-~_%", c) >= 0:
			joined = true
		case p.called && (c == ',' || c == '[' || c == ')' || c == ']'):
			p.called = c != ')'
		case Classes[c]&IsQuote != 0 && (p.called || joined && c == t[i] && k > i+1):
			return k
		default:
			return 0
		}
	}
	return 0
}

// maxPiece limits what is between two of them, in bytes.
const maxPiece = 64

// callLen returns the length of what b starts with if that calls a method which joins
// its string with others, 0 if not.
func callLen(b []byte) int {
	for _, call := range [...]string{".concat(", ".format(", ".append(", ".join(", ".replace(", ".plus(", "% ("} {
		if bytes.HasPrefix(b, []byte(call)) {
			return len(call)
		}
	}
	return 0
}

// IsCompound reports whether the word at i is the last of a compound: "password" in
// "wifi-password".
func IsCompound(t []byte, i int) bool {
	return i > 1 && t[i-1] == '-' && Classes[t[i-2]]&IsAlnum != 0
}

// IsRandom reports whether b has a run of letters and digits that a machine has
// chosen: neither words, nor a date, nor a UUID.
func IsRandom(b []byte) bool {
	const least, changes = 16, 4
	run, changed, digits := 0, 0, 0
	for i, c := range b {
		if Classes[c]&IsAlnum == 0 {
			run, changed, digits = 0, 0, 0
			continue
		}
		if run > 0 && IsDigit(c) != IsDigit(b[i-1]) {
			changed++
		}
		if IsDigit(c) {
			digits++
		}
		if run++; run >= least && changed >= changes && digits < run {
			return true
		}
	}
	return false
}

// HasRun reports whether b has n letters and digits in a row, as what is random has.
func HasRun(b []byte, n int) bool {
	for end := n - 1; end < len(b); end += n {
		from := end
		for from >= 0 && Classes[b[from]]&IsAlnum != 0 {
			if end-from == n-1 {
				return true
			}
			from--
		}
		end = from
	}
	return false
}

// IndentAt returns how many bytes of white space the line of t[i] starts with, 0
// if t[i] is not the first thing behind it.
func IndentAt(t []byte, i int) int {
	from := i
	for from > 0 && (t[from-1] == ' ' || t[from-1] == '\t') {
		from--
	}
	if from > 0 && t[from-1] != '\n' {
		return 0
	}
	return i - from
}

// StartsLine reports whether only white space is before i in its line.
func StartsLine(t []byte, i int) bool {
	for i > 0 && (t[i-1] == ' ' || t[i-1] == '\t') {
		i--
	}
	return i == 0 || t[i-1] == '\n' || Classes[t[i-1]]&IsQuote != 0
}

// IsURLEnd reports whether c ends a URL in a text.
func IsURLEnd(c byte) bool {
	return c <= ' ' || Classes[c]&IsQuote != 0 || c == '<' || c == '>'
}

// IsEndAfter reports whether a quotation that ends before i is not an element
// of a list or the name of a member.
func IsEndAfter(t []byte, i int) bool {
	for i < len(t) && t[i] == ' ' {
		i++
	}
	if i > 0 && i+1 < len(t) && t[i-1] == ' ' && t[i] == ':' && 'a' <= t[i+1] && t[i+1] <= 'z' {
		return true // the next name of a map of Clojure
	}
	return i >= len(t) || t[i] != ':' && t[i] != '='
}

// IsPort reports whether b is a number of five digits at most, as a port is.
func IsPort(b []byte) bool { return len(b) <= 5 && CountDigits(b) == len(b) }

// IsTokenByte reports whether c is a digit of URL-safe base64, as in a token.
func IsTokenByte(c byte) bool { return Classes[c]&IsAlnum != 0 || c == '-' || c == '_' }

// IsBasic reports whether b is the base64 of a user and a password (RFC 7617).
func IsBasic(b []byte) bool {
	var buf [96]byte
	return bytes.IndexByte(AppendBase64(buf[:0], b[:min(len(b), 128)]), ':') >= 0
}

// IsBearer distinguishes a token from the word that follows "bearer" in a
// sentence.
func IsBearer(b []byte) bool {
	if len(b) >= 16 {
		return true
	}
	for _, c := range b {
		if c < 'a' || 'z' < c {
			return len(b) >= 6
		}
	}
	return false
}

// LineMark returns the length of what is before the text of a line that t starts with: the sign
// of a diff, a comment or a quotation, a bullet, the number of the line, 0 if there is none.
func LineMark(t []byte) int {
	if len(t) < 2 {
		return 0
	}
	n := 0
	switch c := t[0]; {
	case c == '+' || c == '>':
		n = 1
	case c == '-' || c == '*' || c == ';':
		if n = 1; c == '-' && t[1] == '-' {
			n = 2
		}
		if c != '-' && t[n] != ' ' || n == 2 && (len(t) == 2 || t[2] != ' ') {
			return 0
		}
	case c == '#' || c == '/' && t[1] == '/':
		for n < len(t) && t[n] == c {
			n++
		}
	case c == ' ' || c == '\t' || IsDigit(c):
		for n < len(t) && n < maxLineMark && (t[n] == ' ' || t[n] == '\t') {
			n++
		}
		digits := CountDigits(t[n:min(len(t), n+maxLineMark)])
		if at := n + digits; digits > 0 && at < len(t) && (t[at] == '\t' || t[at] == ':' || t[at] == '|') {
			return at + 1
		} else if digits > 0 {
			return 0
		}
		return n
	}
	if n > 0 && n < len(t) && t[n] == ' ' && t[0] != '+' {
		n++
	}
	return n
}

// maxLineMark is the longest mark, in bytes.
const maxLineMark = 16
