// Package escape shows text that strangers chose so that nothing in it acts.
package escape

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendText appends what Text returns.
func appendText(dst []byte, text string) []byte {
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if ' ' <= c && c < 0x7f && c != '\\' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if visible(r) && c != '\\' && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		dst = append(dst, text[from:i]...)
		switch {
		case c == '\\':
			dst = append(dst, `\\`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case n == 1:
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		case r <= 0xFFFF:
			dst = appendHex(append(dst, `\u`...), r, 4)
		default:
			dst = appendHex(append(dst, `\U`...), r, 8)
		}
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}

// Text returns text so that a terminal or a page shows it and does nothing else:
// control characters and escape sequences, characters that change the direction
// of the text around them, invisible characters, and bytes that are not UTF-8
// become \n, \x1b, \u202e and the like. A backslash is doubled, so that the
// result is unambiguous.
func Text(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '\\' {
			return string(appendText(nil, text))
		}
	}
	return text
}

// Name is Text for a name. In one that IsMixed, letters and signs that are not of ASCII
// become escapes too: a person would read another name.
func Name(name string) string {
	if !IsMixed(name) {
		return Text(name)
	}
	var dst []byte
	from := 0
	for i, r := range name {
		if r < utf8.RuneSelf || !unicode.IsLetter(r) && !isStrange(r) {
			continue
		}
		dst = appendText(dst, name[from:i])
		if r <= 0xFFFF {
			dst = appendHex(append(dst, `\u`...), r, 4)
		} else {
			dst = appendHex(append(dst, `\U`...), r, 8)
		}
		from = i + utf8.RuneLen(r)
	}
	return string(appendText(dst, name[from:]))
}

// IsMixed reports whether a name can be read as another one: next to letters of ASCII it
// has what no Latin alphabet has, or each of its letters looks like one of ASCII.
func IsMixed(name string) bool {
	ascii, strange, like, other := false, false, false, false
	for _, r := range name {
		switch {
		case r < utf8.RuneSelf:
			ascii = ascii || 'a' <= r|0x20 && r|0x20 <= 'z'
		case strings.ContainsRune(lookAlikes, r):
			strange, like = true, true
		default:
			strange = strange || isStrange(r)
			other = other || unicode.IsLetter(r)
		}
	}
	return strange && ascii || like && !other
}

// isStrange reports whether a character beyond ASCII is none of a name in Latin letters: a
// letter of another script or of phonetics, a sign that combines with the one before, as a
// line below "_" does, or a digit, a hyphen or a line that is wider.
func isStrange(r rune) bool {
	switch {
	case unicode.Is(unicode.Latin, r):
		return r > 0x24F && (r < 0x1E00 || 0x1EFF < r)
	case unicode.IsLetter(r):
		return true
	case r == '…': // of a name that was cut
		return false
	}
	return unicode.In(r, unicode.M, unicode.P, unicode.N, unicode.Sm, unicode.Sk)
}

// lookAlikes are letters of Greek and Cyrillic with the shape of one of ASCII.
const lookAlikes = "\u03b1\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7" +
	"\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0475\u04af\u04bb\u04cf\u0501\u051b\u051d" +
	"\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u04ae\u04c0\u050c\u051a\u051c"

// AppendJSON is Text for JSON on one line, which stays the same JSON:
// characters that must not reach a terminal are inside strings there, and
// become their escapes. Bytes that are not UTF-8 become U+FFFD.
func AppendJSON(dst, doc []byte) []byte {
	from := 0
	for i := 0; i < len(doc); {
		if c := doc[i]; ' ' <= c && c < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(doc[i:])
		if visible(r) && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		dst = append(dst, doc[from:i]...)
		if r <= 0xFFFF {
			dst = appendHex(append(dst, `\u`...), r, 4)
		} else {
			high, low := utf16.EncodeRune(r)
			dst = appendHex(append(dst, `\u`...), high, 4)
			dst = appendHex(append(dst, `\u`...), low, 4)
		}
		i += n
		from = i
	}
	return append(dst, doc[from:]...)
}

// visible reports whether r shows and changes nothing around it. IsPrint
// leaves out control and format characters, bidirectional ones among them, and
// all spaces but U+0020; some letters and marks are made not to be seen.
func visible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

func appendHex(dst []byte, r rune, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[r>>shift&15])
	}
	return dst
}
