package trigger

import (
	"strings"
)

// The classes of bytes, as Scan sees them.
const (
	classOther uint8 = iota
	classSkip
	classBreak // ends a command
	classSpace
	classWord
	classMeta  // builds words anywhere
	classFirst // builds words, or has a meaning, in the first word of a command
	classQuote
	classBrace
	classOut
	classIn
)

// classes has the class of each byte, folds the bit that makes a letter lower case.
var classes, folds = func() (class, fold [256]uint8) {
	for c := range 256 {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c >= 0x80:
			class[c] = classWord
		case c >= 'A' && c <= 'Z':
			class[c], fold[c] = classWord, 0x20
		}
	}
	for _, k := range [...]struct {
		bytes string
		class uint8
	}{
		{"\x00", classSkip}, {" \t", classSpace}, {"\n\r;|&()", classBreak},
		{"\\$`\x01\x02\x03\x04\x05\x06\x07\b\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f", classMeta}, {"*?[=!^", classFirst}, {"'\"", classQuote},
		{"{", classBrace}, {">", classOut}, {"<", classIn},
	} {
		for i := range len(k.bytes) {
			class[k.bytes[i]] = k.class
		}
	}
	return class, fold
}()

// maxTrigger is the length of the longest trigger word.
const maxTrigger = 32

// A table is a set of hashes of words, with open addressing.
type table [2048]uint32

var triggerTable, firstTable, weakTable = tableOf(triggerWords), tableOf(firstWords), tableOf(weakWords)

func tableOf(words string) *table {
	t := new(table)
	for word := range strings.FieldsSeq(words) {
		h := hash(word)
		at := h % uint32(len(t))
		for t[at] != 0 && t[at] != h {
			at = (at + 1) % uint32(len(t))
		}
		t[at] = h
	}
	return t
}

func (t *table) has(h uint32) bool {
	at := h % uint32(len(t))
	for ; t[at] != 0; at = (at + 1) % uint32(len(t)) {
		if t[at] == h {
			return true
		}
	}
	return false
}

// The hash is FNV-1a of the word in lower case.
const basis, prime = 2166136261, 16777619

func hash(word string) uint32 {
	h := uint32(basis)
	for i := range len(word) {
		h = (h ^ uint32(word[i]|folds[word[i]])) * prime
	}
	return h
}

// IsWordByte reports whether c belongs to a word.
func IsWordByte(c byte) bool { return classes[c] == classWord }
