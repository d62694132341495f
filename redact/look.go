package redact

import "bytes"

// The findings of look in a text.
const (
	lookPlain   = 1 << iota // there may be an unencoded one
	lookFormat              // there may be one of a known format
	lookEncoded             // there may be one that is encoded
	lookEscaped             // there are escapes as in a string in a string
	lookCommand             // a program may have one among its arguments
	lookSaid                // prose may contain one
)

// Classes of bytes, for look and scan.
const (
	isAlnum   = 1 << iota // ASCII letter or digit
	isName                // part of a name, or of most tokens
	isEnd                 // ends a credential: white space, quote, ; & | )
	isTrigger             // scan checks it closely
	isQuote
	isHint  // look checks it closely
	isBreak // between the words of a command line
	isToken // part of a name, a path or a token
)

var classes = func() (t [256]byte) {
	for c := range t {
		switch c := byte(c); {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z':
			t[c] = isAlnum | isName
		case c <= ' ' || c == 0x7F:
			t[c] = isEnd | isBreak
		case c >= 0x80:
			t[c] = isName
		}
	}
	for class, chars := range map[byte]string{
		isName:    "_-.%$",
		isEnd:     ";&|)",
		isQuote:   "\"'`",
		isBreak:   "\"'`,()[]{};|&<>\x7f",
		isTrigger: "-IJ =:[\t\n,>(",
		isHint:    ",>=: %\\-\t\n\"'(",
	} {
		for _, c := range chars {
			t[c] |= class
		}
	}
	for c := range t {
		switch {
		case bytes.IndexByte([]byte("\"'`"), byte(c)) >= 0:
			t[c] |= isEnd
		case t[c]&isName != 0 || bytes.IndexByte([]byte("/+~@"), byte(c)) >= 0:
			t[c] |= isToken
		}
	}
	return t
}()

// Shorter texts and tokens hold no credential without a name.
const (
	minToken   = 15
	minEncoded = 20
	minMixed   = 12 // with the "/" and "+" of base64 in them
	minFormat  = 16 // of nothing but small letters and "_"
)

// look reports what may be in text, and notes where credentials of known
// formats may be. For most texts it is the whole cost.
func (s *scanner) look(text []byte) (hint int) {
	s.windows = s.windows[:0]
	if s.open {
		s.windows = append(s.windows, span{0, len(text)})
		return lookPlain | lookFormat | lookEncoded | lookEscaped | lookCommand | lookSaid
	}
	token, path := 0, 0 // where the current runs start
	var kinds programs
	option := false
	for i := 0; ; i++ {
		run := i
		for i < len(text) && classes[text[i]]&isAlnum != 0 {
			i++
		}
		if n := i - run; n >= minEncoded {
			hint |= lookPlain | lookEncoded
		} else if n > 1 && wordStarts.has(text[run:i]) {
			kinds |= wordAt(text, run)
		}
		c := byte('\n')
		if i < len(text) {
			c = text[i]
		}
		class := classes[c]
		if class&isName == 0 {
			if i-token >= minToken {
				hint |= lookPlain
			}
			token = i + 1
			if class&isToken == 0 {
				if i-path >= minMixed && hasToken(text[path:i]) {
					hint |= lookFormat
					s.window(path, min(i+afterRun, len(text)))
				}
				path = i + 1
			}
		}
		if i == len(text) {
			break
		}
		if class&isHint == 0 {
			continue
		}
		switch c {
		case '=', ':', ',', '>':
			hint |= lookPlain
		case '%', '\\':
			if isEscape(text[i:]) {
				hint |= lookPlain | lookEncoded
			} else if c == '\\' {
				hint |= lookEscaped
			}
		case '-':
			if i+1 < len(text) && (i == 0 || classes[text[i-1]]&isAlnum == 0) {
				hint |= lookPlain
				option = true
			}
		case '"', '\'': // PASSWORD 'SECRET'
			if i > 1 && text[i-1] <= ' ' && (classes[text[i-2]]&isName != 0 || text[i-2] <= ' ' || text[i-2] == '|' || text[i-2] == '?') {
				hint |= lookPlain
			}
		case '(': // password("SECRET")
			if i+1 < len(text) && classes[text[i+1]]&isQuote != 0 || i+2 < len(text) && classes[text[i+2]]&isQuote != 0 {
				hint |= lookPlain
			}
		default: // "Bearer ", "Basic "
			if i > 4 && (text[i-1]|0x20 == 'r' || text[i-1]|0x20 == 'c') {
				hint |= lookPlain
			}
		}
	}
	if kinds != 0 {
		if kinds.want(option) {
			hint |= lookCommand
		}
		if kinds&passWord != 0 {
			hint |= lookSaid
		}
	}
	return hint
}
