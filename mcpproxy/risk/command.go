package risk

import (
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A commandConfig is the operator's part of the detection of commands. It is
// immutable; copies share the pool, which guards itself.
type commandConfig struct {
	Patterns []*regexp.Regexp // of CommandPattern

	shells *sync.Pool // of *shell; nil if they are not kept
}

const (
	// maxCommand is the longest text that is parsed, in bytes.
	maxCommand = 64 << 10
	// maxDialects is the longest text that is parsed again as another dialect or line by line.
	maxDialects = 8 << 10
)

// detectCommand returns what the text does if a shell runs it. It never returns
// zero for a text that it could not read and that has a word that matters.
func detectCommand(text string, c *commandConfig) (found Detectors) {
	for _, p := range c.Patterns {
		if p.MatchString(text) {
			found |= CommandPattern
			break
		}
	}
	if scanGate(text) == 0 {
		return found
	}
	if len(text) > maxCommand {
		return found | Opaque
	}
	var sh *shell
	if c.shells != nil {
		sh, _ = c.shells.Get().(*shell)
	}
	if sh == nil {
		sh = &shell{parser: syntax.NewParser()}
	}
	// The text is hostile and the parser is large: a panic in it must not end the
	// proxy. The shell that panicked is not used again.
	defer func() {
		if recover() != nil {
			found |= Opaque
		}
	}()
	found |= sh.judge(text)
	if c.shells != nil {
		sh.forget()
		c.shells.Put(sh)
	}
	return found
}

// A gate says why a text is worth parsing.
type gate uint8

const (
	gateWord gate = 1 << iota // it has a trigger word
	gateMeta                  // it has syntax that can build any word
)

// scanGate returns whether the text has anything that a rule could see. It
// reads each byte once and allocates nothing.
func scanGate(text string) (g gate) {
	const basis, prime = 2166136261, 16777619
	h, n := uint32(basis), 0
	first, token := true, false // in the first word of a command; in or behind a word
	slash := false              // in a word that is a path
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch k := gateClass[c]; k {
		case classWord:
			h = (h ^ uint32(c|gateFold[c])) * prime
			n++
			token = true
			continue
		case classSkip:
			continue // shells drop NUL
		default:
			if n > 0 {
				if n <= maxTrigger && isTrigger(h) {
					g |= gateWord
				}
				h, n = basis, 0
			}
			switch k {
			case classSpace:
				first = first && !token
				slash = false
				continue
			case classBreak:
				if c == '(' && i+1 < len(text) && text[i+1] == ')' {
					g |= gateMeta // a function
				}
				first, token, slash = true, false, false
				continue
			case classMeta:
				g |= gateMeta
			case classFirst:
				if first || slash && c != '=' && c != '!' {
					g |= gateMeta
				}
			case classQuote:
				if first || i > 0 && gateClass[text[i-1]] == classWord && i+1 < len(text) && gateClass[text[i+1]] > classSpace {
					g |= gateMeta
				}
			case classBrace:
				if i+1 < len(text) && gateClass[text[i+1]] != classSpace {
					g |= gateMeta
				}
				first, token = true, false
				continue
			case classOut:
				if rest := text[i+1:]; !strings.HasPrefix(rest, "&") && !isNullDevice(strings.TrimLeft(rest, "> ")) {
					g |= gateMeta
				}
			case classIn:
				if i+1 < len(text) && (text[i+1] == '<' || text[i+1] == '(') {
					g |= gateMeta
				}
			}
			token = true
			slash = slash || c == '/'
		}
	}
	if n > 0 && n <= maxTrigger && isTrigger(h) {
		g |= gateWord
	}
	return g
}

// isNullDevice reports whether s begins with the path of the null device and nothing longer.
func isNullDevice(s string) bool {
	rest, ok := strings.CutPrefix(s, "/dev/null")
	return ok && (rest == "" || gateClass[rest[0]] == classSpace || gateClass[rest[0]] == classBreak)
}

// The classes of bytes, as the gate sees them.
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

// gateClass has the class of each byte, gateFold the bit that makes a letter lower case.
var gateClass, gateFold = func() (class, fold [256]uint8) {
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

func isTrigger(h uint32) bool {
	at := h % uint32(len(triggerTable))
	for ; triggerTable[at] != 0; at = (at + 1) % uint32(len(triggerTable)) {
		if triggerTable[at] == h {
			return true
		}
	}
	return false
}
