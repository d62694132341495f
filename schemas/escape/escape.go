// Package escape shows text that strangers chose so that nothing in it acts.
package escape

import (
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

// Name is Text for a name. In one that IsMixed, letters that are not of ASCII become
// escapes too: a person would read another name.
func Name(name string) string {
	if !IsMixed(name) {
		return Text(name)
	}
	var dst []byte
	from := 0
	for i, r := range name {
		if r < utf8.RuneSelf || !unicode.IsLetter(r) {
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

// IsMixed reports whether a name has letters of ASCII and of another script than the Latin
// one: some look like others.
func IsMixed(name string) bool {
	ascii, other := false, false
	for _, r := range name {
		if r < utf8.RuneSelf {
			ascii = ascii || 'a' <= r|0x20 && r|0x20 <= 'z'
		} else {
			other = other || unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r)
		}
	}
	return ascii && other
}

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
