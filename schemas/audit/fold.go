package audit

import (
	"unicode"
	"unicode/utf8"
)

// AppendFolded appends name with each character as the least of those that fold
// to it: two names that encoding/json takes for one become the same.
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
