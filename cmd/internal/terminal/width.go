package terminal

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Cells returns how many columns of a terminal text fills.
func Cells(text string) (n int) {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		n += runeCells(r)
		i += size
	}
	return n
}

// runeCells returns how many columns of a terminal r fills.
func runeCells(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
