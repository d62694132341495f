// Package wordlist finds which of several lists a word is in. For lists of many words it
// needs a fraction of the code of a switch, which the compiler makes a tree of comparisons.
package wordlist

import "strings"

// A Table has the words of several lists. It is immutable.
type Table struct {
	lists []string
	slots []slot // with open addressing, at least half of them free
}

// A slot is where a word is in its list.
type slot struct {
	at         uint16
	size, list uint8 // list counts from 1; 0 is a free slot
}

// New returns a table of lists, of at most 64 KiB each, with spaces between their words.
// A word in two of them counts in the first.
func New(lists ...string) *Table {
	n := 0
	for _, list := range lists {
		n += strings.Count(list, " ") + 1
	}
	size := 4
	for size < 2*n {
		size *= 2
	}
	t := &Table{lists: lists, slots: make([]slot, size)}
	for i, list := range lists {
		for from := 0; from < len(list); {
			to := from
			for to < len(list) && list[to] != ' ' {
				to++
			}
			if word := list[from:to]; word != "" && t.List(word) == 0 {
				*t.slot(word) = slot{uint16(from), uint8(len(word)), uint8(i + 1)}
			}
			from = to + 1
		}
	}
	return t
}

// List returns the number of the list that has the word, from 1 on, or 0.
func (t *Table) List(word string) int { return int(t.slot(word).list) }

// slot returns the slot that has the word, or the free one where it would be.
func (t *Table) slot(word string) *slot {
	h := uint32(2166136261) // FNV-1a
	for i := range len(word) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	for {
		s := &t.slots[int(h)&(len(t.slots)-1)]
		if s.list == 0 || int(s.size) == len(word) && t.lists[s.list-1][s.at:int(s.at)+len(word)] == word {
			return s
		}
		h++
	}
}

// Has reports whether list, with spaces between its words, has a word. It reads the list,
// so it is for words that are seldom looked for.
func Has(list, word string) bool {
	for from := 0; word != ""; {
		i := strings.Index(list[from:], word)
		if i < 0 {
			break
		}
		at := from + i
		from = at + len(word)
		if (at == 0 || list[at-1] == ' ') && (from == len(list) || list[from] == ' ') {
			return !strings.Contains(word, " ")
		}
	}
	return false
}
