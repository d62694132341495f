// Package lineedit says what the line editor behind a terminal makes of keys and texts that
// are typed. It is pure.
package lineedit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLine limits the lines, in bytes, that what was killed comes back to.
const maxLine = 64 << 10

// Edit returns what a line editor makes of a text: without NUL, a carriage return as the
// end of a line, and with the effect of keys that move, erase and bring back. The cost is
// the bytes that these moved; Edit stops once that exceeds the limit.
func Edit(text string, limit int) (edited string, moved int) {
	if strings.IndexFunc(text, isEditing) < 0 {
		return text, 0
	}
	e := lineEditor{left: make([]byte, 0, len(text))}
	for i := 0; i < len(text) && e.moved <= limit; i++ {
		switch c := text[i]; c {
		case '\r', 0x03, '\n':
			if c == '\n' || i+1 == len(text) || text[i+1] != '\n' {
				e.end()
				e.left = append(e.left, '\n')
				e.start = len(e.left)
			}
		case 0x1b:
			n, key := escape(text[i+1:])
			e.key(key)
			i += n
		default:
			e.key(c)
		}
	}
	e.end()
	return string(e.left), e.moved
}

// isEditing reports whether a character is not one that the line editor inserts.
func isEditing(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// AppendKey appends what a terminal gets for a key, by its name in tmux (key-string.c),
// and reports whether it is the name of one. Keys that change no line have nothing.
func AppendKey(dst []byte, name string) (typed []byte, ok bool) {
	if len(name) > len("kpenter") {
		return dst, false
	}
	switch strings.ToLower(name) {
	case "enter", "c-m", "c-j", "kpenter":
		return append(dst, '\n'), true
	case "space":
		return append(dst, ' '), true
	case "tab", "c-i":
		return append(dst, '\t'), true
	case "bspace", "c-h":
		return append(dst, '\b'), true
	case "home":
		return append(dst, 0x01), true
	case "left":
		return append(dst, 0x02), true
	case "dc", "delete":
		return append(dst, 0x04), true
	case "end":
		return append(dst, 0x05), true
	case "right":
		return append(dst, 0x06), true
	case "escape", "up", "down", "ic", "insert", "c-z", "c-l", "c-p", "c-n", "c-r":
		return dst, true
	case "c-a", "c-b", "c-c", "c-d", "c-e", "c-f", "c-k", "c-u", "c-w", "c-y":
		return append(dst, name[2]&0x1f), true
	}
	return dst, false
}

// escape reads an escape sequence, without its ESC. It returns the length of the sequence
// and its key, 0 for a key that edits nothing.
func escape(s string) (n int, key byte) {
	if s == "" {
		return 0, 0
	}
	if s[0] != '[' && s[0] != 'O' {
		if s[0] == 0x7f || s[0] == 0x08 || s[0] == 'd' {
			return 1, 0x17
		}
		return 0, 0 // it ends a mode of vi
	}
	const longest = 16
	for n = 1; n < len(s) && n < longest && s[n] < '@'; n++ {
	}
	if n == len(s) || n == longest {
		return 0, 0
	}
	switch s[n] {
	case 'C':
		key = 0x06
	case 'D':
		key = 0x02
	case 'H':
		key = 0x01
	case 'F':
		key = 0x05
	case '~':
		switch s[1] {
		case '1', '7':
			key = 0x01
		case '3':
			key = 0x04
		case '4', '8':
			key = 0x05
		}
	}
	return n + 1, key
}

// A lineEditor has the text before the cursor, in which a line starts at start, and
// what is behind the cursor in its line, backwards.
type lineEditor struct {
	left, right, killed []byte
	start               int
	moved               int // bytes, from one of these to another
}

// end moves the cursor to the end of the line.
func (e *lineEditor) end() {
	e.moved += len(e.right)
	slices.Reverse(e.right)
	e.left = append(e.left, e.right...)
	e.right = e.right[:0]
}

// home moves the cursor to the start of the line.
func (e *lineEditor) home() {
	line := e.left[e.start:]
	e.moved += len(line)
	slices.Reverse(line)
	e.right = append(e.right, line...)
	e.left = e.left[:e.start]
}

// before returns the index of the character before the cursor.
func (e *lineEditor) before() int {
	at := len(e.left)
	for at > e.start {
		if at--; utf8.RuneStart(e.left[at]) {
			break
		}
	}
	return at
}

// after returns the index of the character behind the cursor.
func (e *lineEditor) after() int {
	at := len(e.right)
	for at > 0 {
		if at--; at == 0 || utf8.RuneStart(e.right[at-1]) {
			break
		}
	}
	return at
}

// key does what a key does.
func (e *lineEditor) key(c byte) {
	switch c {
	case 0, 0x07:
	case 0x01:
		e.home()
	case 0x02:
		at := e.before()
		for i := len(e.left) - 1; i >= at; i-- {
			e.right = append(e.right, e.left[i])
		}
		e.left = e.left[:at]
	case 0x05:
		e.end()
	case 0x06:
		at := e.after()
		for i := len(e.right) - 1; i >= at; i-- {
			e.left = append(e.left, e.right[i])
		}
		e.right = e.right[:at]
	case 0x04:
		e.right = e.right[:e.after()]
	case 0x08, 0x7f:
		e.left = e.left[:e.before()]
	case 0x0b: // the rest of the line
		e.moved += len(e.right)
		e.killed = append(e.killed[:0], e.right...)
		slices.Reverse(e.killed)
		e.right = e.right[:0]
	case 0x15: // all before the cursor
		e.kill(e.start)
	case 0x17: // a word
		at := len(e.left)
		for at > e.start && e.left[at-1] == ' ' {
			at--
		}
		for at > e.start && e.left[at-1] != ' ' {
			at--
		}
		e.kill(at)
	case 0x19:
		if len(e.left)+len(e.killed) <= maxLine {
			e.moved += len(e.killed)
			e.left = append(e.left, e.killed...)
		}
	default:
		e.left = append(e.left, c)
	}
}

// kill takes what is from there to the cursor.
func (e *lineEditor) kill(from int) {
	e.moved += len(e.left) - from
	e.killed = append(e.killed[:0], e.left[from:]...)
	e.left = e.left[:from]
}
