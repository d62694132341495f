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
		{"\\$`\b\x7f", classMeta}, {"*?[=!", classFirst}, {"'\"", classQuote},
		{"{", classBrace}, {">", classOut}, {"<", classIn},
	} {
		for i := range len(k.bytes) {
			class[k.bytes[i]] = k.class
		}
	}
	return class, fold
}()

// maxTrigger is the length of the longest trigger word.
const maxTrigger = 16

// triggerTable is the set of the hashes of triggerWords, with open addressing.
var triggerTable = func() (table [2048]uint32) {
	for word := range strings.FieldsSeq(triggerWords) {
		h := uint32(2166136261)
		for i := range len(word) {
			h = (h ^ uint32(word[i])) * 16777619
		}
		at := h % uint32(len(table))
		for table[at] != 0 && table[at] != h {
			at = (at + 1) % uint32(len(table))
		}
		table[at] = h
	}
	return table
}()

// IsWordByte reports whether c belongs to a word.
func IsWordByte(c byte) bool { return classes[c] == classWord }

func isTrigger(h uint32) bool {
	at := h % uint32(len(triggerTable))
	for ; triggerTable[at] != 0; at = (at + 1) % uint32(len(triggerTable)) {
		if triggerTable[at] == h {
			return true
		}
	}
	return false
}
