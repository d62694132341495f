// Package nearest finds the word that a mistyped one was meant to be.
package nearest

import "strings"

// maxWord is the longest word that is compared, in code points. Longer ones are
// like no other.
const maxWord = 64

// Word returns the first of the known words that least changes make word of, in
// any case: at most that many. "" if there is none. A change inserts, removes or
// replaces a character, or swaps two neighbours.
func Word(word string, known []string, most int) string {
	best := ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < most || d == most && best == "" {
			best, most = k, d
		}
	}
	return best
}

func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > maxWord || len(t) > maxWord {
		return max(len(s), len(t))
	}
	var before, last, row [maxWord + 1]int
	for j := range t {
		last[j+1] = j + 1
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			change := 1
			if s[i] == t[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(t)]
}
