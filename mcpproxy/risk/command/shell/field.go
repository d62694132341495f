package shell

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// A Field is one word of a command after expansion.
type Field struct {
	Text    string       // with Hole in place of each part that is not known
	Unknown bool         // it has such a part
	Split   bool         // such a part is unquoted: it may be no word or several
	Glob    bool         // an unquoted wildcard is in it
	False   bool         // such a part is $false, which PowerShell knows
	quoted  bool         // quoting is in it
	From    detector.Set // what running it would be
	Reads   *Stream      // of a process substitution: what a reader of the file gets
}

// Hole stands for what is not known.
const Hole = "\x00"

// stream returns what a reader of the field's text reads.
func (f Field) stream() Stream {
	if f.Unknown {
		return Stream{Kind: Unknown, From: f.From}
	}
	st := textOf(f.Text)
	st.From = f.From
	return st
}

// OneOf reports whether s is one of the words.
func OneOf(s string, words ...string) bool {
	for _, w := range words {
		if s == w {
			return true
		}
	}
	return false
}

// Join returns the fields as one text, with a space between them, in which a
// shell reads what is not known as a variable.
func Join(f []Field) string {
	var b strings.Builder
	for i, w := range f {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Code())
	}
	return b.String()
}

// Code returns the field as text for a shell.
func (f Field) Code() string { return strings.ReplaceAll(f.Text, Hole, "${_}") }

// BaseName returns the last component of a path, which is the command's name.
func BaseName(s string) string {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	if i := strings.LastIndexByte(s, '\\'); i >= 0 {
		s = s[i+1:]
	}
	if n := len(s) - len(".exe"); n > 0 && (strings.EqualFold(s[n:], ".exe") || strings.EqualFold(s[n:], ".com")) {
		s = s[:n]
	}
	return s
}

// Quote returns the fields as words that a shell reads as the same fields.
func Quote(f []Field) string {
	var b strings.Builder
	for _, w := range f {
		if w.Unknown {
			b.WriteString(w.Code() + " ")
		} else {
			b.WriteString("'" + strings.ReplaceAll(w.Text, "'", `'\''`) + "' ")
		}
	}
	return b.String()
}

// IsAssignment reports whether a word has the form NAME=value.
func IsAssignment(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && !trigger.IsWordByte(c) {
			return false
		}
	}
	return true
}

// AsTyped returns the text as the shell behind a terminal reads it: without NUL, a
// carriage return as end of line, and as the line editor leaves it that runs there:
// with the effect of keys that move, erase and bring back.
func AsTyped(text string) string {
	if strings.IndexFunc(text, isEditing) < 0 {
		return text
	}
	e := lineEditor{left: make([]byte, 0, len(text))}
	for i := 0; i < len(text); i++ {
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
	return string(e.left)
}

func isEditing(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// escape returns the key that a sequence behind ESC stands for, zero if that changes
// nothing, and its length.
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
}

// end moves the cursor to the end of the line.
func (e *lineEditor) end() {
	for len(e.right) > 0 {
		e.move(true)
	}
}

// move moves the cursor by a byte.
func (e *lineEditor) move(forward bool) {
	switch {
	case forward && len(e.right) > 0:
		e.left = append(e.left, e.right[len(e.right)-1])
		e.right = e.right[:len(e.right)-1]
	case !forward && len(e.left) > e.start:
		e.right = append(e.right, e.left[len(e.left)-1])
		e.left = e.left[:len(e.left)-1]
	}
}

// key does what a key does.
func (e *lineEditor) key(c byte) {
	switch c {
	case 0, 0x07:
	case 0x01, 0x02:
		for e.move(false); c == 0x01 && len(e.left) > e.start; {
			e.move(false)
		}
	case 0x05:
		e.end()
	case 0x06:
		e.move(true)
	case 0x04:
		e.right = e.right[:max(len(e.right)-1, 0)]
	case 0x08, 0x7f:
		e.left = e.left[:max(len(e.left)-1, e.start)]
	case 0x0b: // the rest of the line
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
		if len(e.left)+len(e.killed) <= MaxText {
			e.left = append(e.left, e.killed...)
		}
	default:
		e.left = append(e.left, c)
	}
}

// kill takes what is from there to the cursor.
func (e *lineEditor) kill(from int) {
	e.killed = append(e.killed[:0], e.left[from:]...)
	e.left = e.left[:from]
}

var quotes = strings.NewReplacer("'", "", "\"", "", "\\", "")

// Unquote returns s without the characters that quote.
func Unquote(s string) string { return quotes.Replace(s) }

// costOfLong returns what the long words of a command cost: rules read them, and a
// loop can have them read many times. Each letter of short options is kept.
func costOfLong(f []Field) (n int) {
	for _, w := range f {
		if len(w.Text) <= longWord {
			continue
		}
		if n += len(w.Text) / wordBytes; w.Text[0] == '-' && w.Text[1] != '-' {
			n += len(w.Text)
		}
	}
	return n
}
