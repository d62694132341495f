// Package lineedit says what the line editor behind a terminal makes of keys and texts that
// are typed. It is pure.
package lineedit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLine limits the lines, in bytes, that what was killed comes back to.
const maxLine = 64 << 10

// Edit returns what a line editor makes of a text: without NUL, a carriage return as the
// end of a line, and with the effect of keys that move, erase and bring back. It has the
// keys of Emacs, as shells do. The cost is the bytes that these moved; Edit stops once that
// exceeds the limit. If there is a key whose effect is not followed, unsure is the text
// without any.
func Edit(text string, limit int) (edited string, moved int, unsure string) {
	if strings.IndexFunc(text, isEditing) < 0 {
		return text, 0, ""
	}
	e := lineEditor{left: make([]byte, 0, len(text)), colon: -1}
	for i := 0; i < len(text) && e.moved <= limit; i++ {
		c := text[i]
		switch {
		case e.quoting:
			if e.quoting = false; c != 0 {
				e.insert(c)
			}
		case c == '\r' || c == '\n' || c == 0x03 || c == 0x0f: // the last is operate-and-get-next
			e.unsure = e.unsure || c == 0x0f && e.back > 0 // the line after the one that was recalled follows
			if c != '\r' || i+1 == len(text) || text[i+1] != '\n' {
				e.accept()
			}
		case e.pasting && !strings.HasPrefix(text[i:], endPaste):
			e.unsure = e.unsure || isEditing(rune(c)) // it is inserted, unless the shell knows no such pastes
			e.insert(c)
		case c == 0x1b:
			i += e.escape(text[i+1:])
		case c == 0x16: // quoted-insert
			e.quoting = true
		default:
			e.key(c)
		}
	}
	e.end()
	if e.ex(); !e.unsure {
		e.typed = nil
	}
	return string(append(e.left, e.commands...)), e.moved, string(e.typed)
}

// endPaste is what a terminal sends behind a text that is pasted.
const endPaste = "\x1b[201~"

// isEditing reports whether a character is not one that the line editor inserts.
func isEditing(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// AppendKey appends what a terminal gets for a key, by its name in tmux (key-string.c),
// and reports whether it is the name of one.
func AppendKey(dst []byte, name string) (typed []byte, ok bool) {
	const longest = 16
	if len(name) > longest {
		return dst, false
	}
	rest, control, meta := name, false, false
	for len(rest) > 2 && rest[1] == '-' || len(rest) == 2 && rest[0] == '^' {
		switch prefix := rest[0] | 0x20; {
		case rest[0] == '^':
			control, rest = true, rest[1:]
			continue
		case prefix == 'c':
			control = true
		case prefix == 'm':
			meta = true
		case prefix != 's':
			return dst, false
		}
		rest = rest[2:]
	}
	key, plain := keyNamed(rest), rest == name
	named := key != ""
	if n, err := strconv.ParseUint(strings.TrimPrefix(rest, "0x"), 16, 21); err == nil && strings.HasPrefix(rest, "0x") {
		key = string(rune(n))
	}
	switch {
	case key == "" && (plain || utf8.RuneCountInString(rest) != 1):
		return dst, false
	case key == "":
		key = rest
	}
	switch {
	case named && !plain && key != " " && (control || !meta || len(key) > 1 || key < "\b"):
		return append(dst, held...), true
	case meta:
		dst = append(dst, 0x1b)
	}
	if control && len(key) == 1 {
		return append(dst, controlled(key[0])), true
	}
	return append(dst, key...), true
}

// held is what a terminal sends for a key that moves while others are held.
const held = "\x1b[1;5D"

// controlled returns what tmux sends for a character with Ctrl. Of some it depends on the
// version: they are as undo, whose effect is not followed.
func controlled(c byte) byte {
	switch {
	case c == 'j' || c == 'J' || c == 'm' || c == 'M':
		return '\n'
	case '@' <= c && c <= '~':
		return c & 0x1f
	case c == ' ' || c == '2':
		return 0
	case c == '?':
		return 0x7f
	case c == '6':
		return 0x1e
	}
	return 0x1f
}

// keyNamed returns what a key of a terminal sends, for some that do the same what another
// one does; for those that no line editor knows, what it ignores.
func keyNamed(name string) string {
	switch strings.ToLower(name) {
	case "enter", "kpenter":
		return "\n"
	case "space":
		return " "
	case "tab":
		return "\t"
	case "bspace":
		return "\b"
	case "home":
		return "\x01"
	case "left":
		return "\x02"
	case "dc", "delete":
		return "\x04"
	case "end":
		return "\x05"
	case "right":
		return "\x06"
	case "escape":
		return "\x1b"
	case "up":
		return "\x1b[A"
	case "down":
		return "\x1b[B"
	case "ic", "insert":
		return "\x1b[2~"
	case "ppage", "pageup", "pgup":
		return "\x1b[5~"
	case "npage", "pagedown", "pgdn":
		return "\x1b[6~"
	case "btab":
		return "\x1b[Z"
	case "f1", "f2", "f3", "f4":
		return "\x1bOP"
	case "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12":
		return "\x1b[15~"
	}
	return ""
}

// A lineEditor has the text before the cursor, in which a line starts at start, and
// what is behind the cursor in its line, backwards.
type lineEditor struct {
	left, right, killed []byte
	typed               []byte // all that was inserted, with spaces for keys
	start               int
	moved               int    // bytes, from one of these to another
	back                int    // lines that were recalled
	recalled, saved     []byte // the last one, and what was being typed
	colon               int    // where a command of vi starts in what was typed, or -1
	commands            []byte // these
	killing             bool   // the key before killed too: what both kill comes back together
	pasting             bool
	quoting             bool // the next key is inserted
	unsure              bool
}

// What sequences do that are bound to no other key.
const (
	toWord = 0x80 + iota
	overWord
	killWord
	quote
	paste
	pasted
	search
)

// sequences are those behind ESC that bash 5.2 binds, and Debian's inputrc, with the key that
// does the same.
var sequences = [...]struct {
	keys string
	does byte
}{
	{"[A", 0x10}, {"[B", 0x0e}, {"[C", 0x06}, {"[D", 0x02}, {"[F", 0x05}, {"[H", 0x01},
	{"OA", 0x10}, {"OB", 0x0e}, {"OC", 0x06}, {"OD", 0x02}, {"OF", 0x05}, {"OH", 0x01},
	{"[1~", 0x01}, {"[3~", 0x04}, {"[4~", 0x05}, {"[7~", 0x01}, {"[8~", 0x05},
	{"[2~", quote}, {"[5~", search}, {"[6~", search}, {"[200~", paste}, {"[201~", pasted},
	{"[1;3C", overWord}, {"[1;3D", toWord}, {"[1;5C", overWord}, {"[1;5D", toWord},
	{"[5C", overWord}, {"[5D", toWord}, {"\x1b[C", overWord}, {"\x1b[D", toWord}, {"[3;5~", killWord},
}

// escape reads an escape sequence, without its ESC, and does what it does. It returns the
// length of the sequence. Of one that is not bound the editor takes no more than up to the
// first byte that differs, and inserts the rest: ESC[30m is "m".
func (e *lineEditor) escape(s string) int {
	if s == "" || s[0] != '[' && s[0] != 'O' && s[0] != 0x1b {
		return e.meta(s)
	}
	n := 0
	for _, q := range sequences {
		same := 0
		for same < len(s) && same < len(q.keys) && s[same] == q.keys[same] {
			same++
		}
		if same == len(q.keys) {
			e.sequence(q.does)
			return same
		}
		n = max(n, same)
	}
	e.unsure = true
	e.typed = append(e.typed, ' ')
	if strings.HasPrefix(s, "\x1b:") {
		return 1 + e.meta(s[1:]) // vi in another mode already
	}
	if s[0] == 0x1b { // complete
		return 1
	}
	return min(n+1, len(s))
}

// sequence does what a sequence does.
func (e *lineEditor) sequence(does byte) {
	switch does {
	case toWord:
		e.meta("b")
	case overWord:
		e.meta("f")
	case killWord:
		e.meta("d")
	case paste, pasted:
		e.pasting = does == paste
	case quote, search:
		e.unsure, e.quoting = true, does == quote
	default:
		e.key(does)
	}
}

// meta does what the first key of s does with Meta, or behind ESC, and returns the length of
// that key. ESC also ends a mode of vi: then the key has another meaning.
func (e *lineEditor) meta(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case 0x7f, 0x08: // e.killing is as the key before left it
		e.kill(e.wordBefore(), false)
		return 1
	case ':':
		e.colon = len(e.typed)
		return 1
	}
	e.unsure = true
	e.typed = append(e.typed, ' ')
	switch s[0] {
	case 'b':
		for at := e.wordBefore(); len(e.left) > at; e.moved++ {
			e.key(0x02)
		}
	case 'f', 'd':
		at := len(e.left)
		for ; len(e.right) > 0 && !isAlnum(e.right[len(e.right)-1]); e.moved++ {
			e.key(0x06)
		}
		for ; len(e.right) > 0 && isAlnum(e.right[len(e.right)-1]); e.moved++ {
			e.key(0x06)
		}
		if s[0] == 'd' {
			e.kill(at, false)
		}
	case '\\': // the spaces around the cursor
		e.left = append(e.left[:e.start], bytes.TrimRight(e.left[e.start:], " \t")...)
		e.right = bytes.TrimRight(e.right, " \t")
	}
	return 1
}

func isAlnum(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf
}

// wordBefore returns where the word before the cursor starts, of letters and digits.
func (e *lineEditor) wordBefore() int {
	at := len(e.left)
	for at > e.start && !isAlnum(e.left[at-1]) {
		at--
	}
	for at > e.start && isAlnum(e.left[at-1]) {
		at--
	}
	return at
}

// accept ends a line.
func (e *lineEditor) accept() {
	e.end()
	e.ex()
	e.insert('\n')
	e.start, e.back, e.killing = len(e.left), 0, false
}

// ex keeps what is behind ESC and a colon: in vi these start a command, in a shell they do
// nothing.
func (e *lineEditor) ex() {
	if command := e.typed[min(max(e.colon, 0), len(e.typed)):]; e.colon >= 0 && len(e.commands)+len(command) <= maxLine {
		e.moved += len(command)
		e.commands = append(append(e.commands, "\n:"...), command...)
	}
	e.colon = -1
}

// recall makes the line one that was typed before, or, where there is none behind it, the one
// that was being typed.
func (e *lineEditor) recall(back int) {
	to := e.start
	for n := back; n > 0 && to > 0; { // empty lines are not kept
		end := to - 1
		to = bytes.LastIndexByte(e.left[:end], '\n') + 1
		if e.moved++; to < end {
			n--
		}
		if to == 0 && n > 0 {
			back = -1
		}
	}
	e.moved += len(e.left) - to + len(e.saved)
	if back < 0 || e.start == 0 { // a line of an earlier call, or none
		e.unsure = true
		return
	}
	e.end()
	switch line := e.left[e.start:]; {
	case e.back == 0:
		e.saved = append(e.saved[:0], line...)
	case !bytes.Equal(line, e.recalled):
		e.unsure = true // the shell keeps what was changed
	}
	if e.recalled = append(e.recalled[:0], e.saved...); back > 0 {
		line, _, _ := bytes.Cut(e.left[to:e.start], []byte{'\n'})
		e.recalled = append(e.recalled[:0], line...)
	}
	if e.back = back; e.start+len(e.recalled) <= maxLine {
		e.left = append(e.left[:e.start], e.recalled...)
	}
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
	killing := e.killing
	e.killing = false
	switch c {
	case 0, 0x0c, 0x1e:
	case 0x07: // zsh gives up the line
		e.unsure = e.unsure || len(e.left)+len(e.right) > e.start
	case 0x11, 0x13: // start and stop the terminal's output; without stty ixon, quote and search
		e.unsure = true
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
		at := len(e.left)
		e.end()
		e.killing = killing
		e.kill(at, true)
	case 0x0e:
		e.recall(e.back - 1)
	case 0x10:
		e.recall(e.back + 1)
	case 0x14: // transpose
		if len(e.left) == e.start {
			break
		}
		if len(e.right) > 0 {
			e.key(0x06)
		}
		if at := e.before(); at > e.start {
			last := string(e.left[at:])
			e.left = e.left[:at]
			e.left = slices.Insert(e.left, e.before(), []byte(last)...)
		}
	case 0x15: // all before the cursor
		e.killing = killing
		e.kill(e.start, false)
	case 0x17: // a word
		at := len(e.left)
		for at > e.start && e.left[at-1] == ' ' {
			at--
		}
		for at > e.start && e.left[at-1] != ' ' {
			at--
		}
		e.killing = killing
		e.kill(at, false)
	case 0x19:
		if len(e.left)+len(e.killed) <= maxLine {
			e.moved += len(e.killed)
			e.left = append(e.left, e.killed...)
		}
	case 0x1a, 0x1c: // signals, behind which the shell reads anew
		e.unsure = e.unsure || len(e.left)+len(e.right) > e.start
		e.accept()
	case 0x12, 0x18, 0x1d, 0x1f: // search, more keys, undo
		e.unsure = true
	default:
		e.insert(c)
		return
	}
	e.typed = append(e.typed, ' ')
}

//go:noinline
func (e *lineEditor) insert(c byte) {
	e.left, e.typed = append(e.left, c), append(e.typed, c)
}

// kill takes what is from there to the cursor, which was behind it, or in front of it if it
// kills forward. What keys in a row kill comes back together.
func (e *lineEditor) kill(from int, forward bool) {
	part := e.left[from:]
	e.moved += len(part)
	if len(part) == 0 {
		e.killing = false
		return
	}
	switch {
	case !e.killing:
		e.killed = append(e.killed[:0], part...)
	case len(e.killed)+len(part) > maxLine:
	case forward:
		e.killed = append(e.killed, part...)
	default:
		e.moved += len(e.killed)
		e.killed = slices.Insert(e.killed, 0, part...)
	}
	e.left, e.killing = e.left[:from], true
}
