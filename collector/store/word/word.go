// Package word cuts texts into words as the index on the arguments of records does, and
// says how a word may look there.
package word

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Of cuts text as the index on args does: splitByNonAlpha ends a word at
// every ASCII character other than a letter or digit, after lower().
func Of(text string) []string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool {
		return r < utf8.RuneSelf && !('0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z')
	})
	for i, w := range words {
		words[i] = strings.Map(func(r rune) rune { // ClickHouse's lower(), which changes ASCII only
			if 'A' <= r && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, w)
	}
	return words
}

// escapes are the letters of JSON's escapes for white space and the like.
const escapes = "bfnrt"

// Glued returns the words of the index that may end with word.
func Glued(word string) []string {
	words := []string{word}
	for _, letter := range escapes {
		words = append(words, string(letter)+word)
	}
	return words
}

// AfterEscape returns a pattern of JSON in which word follows an escape.
func AfterEscape(word string) string {
	return `(?i)(^|[^\\])(\\\\)*\\[` + escapes + `]` + regexp.QuoteMeta(word) + `([\x00-/:-@\[-\x60{-\x7f]|$)`
}
