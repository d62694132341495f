package audit

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// AppendFolded appends name with each character as the least of those that fold
// to it: two names that encoding/json treats as one become the same.
func AppendFolded(dst, name []byte) []byte {
	for len(name) > 0 {
		c, n := utf8.DecodeRune(name)
		if c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
		} else {
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				if f < c {
					c = f
					break
				}
			}
		}
		dst = utf8.AppendRune(dst, c)
		name = name[n:]
	}
	return dst
}

// KnownName returns the name that is looked for in arguments, by Operations and
// by the shipped views, and that name is in another case or fold: servers that
// compare names as Go's encoding/json does read it as that one. "" for none.
func KnownName(name []byte) string {
	for _, known := range [...]string{
		"operations", "tool", "arguments",
		"output_path", "environment", "name", "pane_id", "session_id", "session_name",
	} {
		if len(known) <= len(name) && len(name) <= utf8.UTFMax*len(known) && bytes.EqualFold(name, []byte(known)) {
			return known
		}
	}
	return ""
}
