package printed

import (
	"bytes"

	"auditproxy/redact/lex"
)

// A prompt is what a shell or another program shows before what is typed.
type prompt struct {
	end    int    // where it ends in its line; 0 for none
	head   []byte // before its last byte
	last   byte   // "$" and the like, or the first byte of a glyph
	bare   bool   // it is "# " alone, as a comment is
	quote  []byte // what is before it in each line, as in a quoted mail
	indent int    // white space before it, in bytes
	above  []byte // the line above it, which may be a part of it
	names  bool   // the command has a secret's variable, so that what tells of a failure may have it
	dir    int    // behind the directory that may follow it, 0 if none does
}

// hasPrompt reports whether there may be a prompt in t, which has several lines. Most texts
// have none.
func hasPrompt(t []byte) bool {
	if bytes.IndexByte(t, '\n') < 0 {
		return false
	}
	for _, last := range [...]string{"$ ", "# ", "% ", "+ ", ">", "\xE2", "\xC2\xBB", "\xEE", "\u03bb ", "In ["} {
		if bytes.Contains(t, []byte(last)) {
			return true
		}
	}
	return false
}

// glyphs are the last characters of decorated prompts.
var glyphs = [...]string{"\u276f", "\u279c", "\u03bb ", "\u00bb", "\u25b6", "\u2192", "\u27e9", "\u203a", "\u2570\u2500", "\u2514\u2500", "\u26a1", powerline}

// python is the prompt of Python before its last byte.
var python = []byte(">>")

// powerline ends each part of a prompt of powerline, the last one too.
const powerline = "\ue0b0"

// promptOf returns the prompt that a line starts with.
func promptOf(line []byte) (p prompt) {
	p.indent = indentOf(line)
	at := p.indent
	b := line[at:]
	if len(b) == 0 {
		return p
	}
	if len(b) > 4 && b[0] == '>' && b[1] == ' ' { // of a quoted mail
		if inner := promptOf(b[2:min(len(b), maxPrompt)]); inner.end > 0 && inner.indent == 0 && inner.last != '>' {
			inner.quote = line[:at+2]
			inner.end += at + 2
			return inner
		}
	}
	if b[0] == 'I' && bytes.HasPrefix(b, []byte("In [")) { // of IPython
		if n := bytes.Index(b[:min(len(b), 16)], []byte("]: ")); n > 0 {
			p.head, p.last, p.end = python, '>', at+n+len("]: ")
			return p
		}
	}
	for b[0] == '<' { // of HTML: <pre><code>$
		n := bytes.IndexByte(b[:min(len(b), maxTag)], '>') + 1
		if n == 0 || n == len(b) || b[n] == ' ' {
			break
		}
		at, b = at+n, b[n:]
	}
	for i := 0; i < len(b) && i < maxPrompt; i++ {
		c := b[i]
		switch {
		case c == '$' || c == '#' || c == '%' || c == '>':
			atEnd := i+1 == len(b) || b[i+1] <= ' '
			if !atEnd && (c != '>' || !isDrive(b[:i])) || i+1 < len(b) && b[i+1] == c || !isHead(b[:i], c) {
				continue
			}
			p.head, p.last, p.bare = b[:i], c, i == 0 && c == '#'
			p.end = at + i + 1
			return p
		case c == '+' && i == 0: // of set -x
			n := len(b) - len(bytes.TrimLeft(b, "+"))
			if len(b) > n+1 && n < 8 && b[n] == ' ' && b[n+1] > ' ' {
				p.last, p.end = c, at+n
				return p
			}
		case c >= 0xC2:
			n := glyphLen(b[i:])
			if n == 0 || i > 0 && b[i-1] != ' ' && c != powerline[0] {
				continue
			}
			if c == powerline[0] {
				i = bytes.LastIndex(b[:min(len(b), maxPrompt)], []byte(powerline))
			}
			p.head, p.last = b[:i], c
			p.end = at + i + n
			if i > 0 && bytes.IndexByte(b[:i], '"') >= 0 {
				return prompt{indent: p.indent}
			}
			if rest := b[i+n:]; n < len("\u2570\u2500") { // a prompt may have more behind it
				if dirty := bytes.LastIndex(rest[:min(len(rest), maxPrompt)], []byte("\u2717 ")); dirty >= 0 {
					p.end += dirty + len("\u2717 ")
				} else {
					p.dir = p.end + directoryLen(rest)
				}
			} else if inner := promptOf(rest[:min(len(rest), maxPrompt)]); inner.end > 0 && len(inner.head) < 8 {
				p.end += inner.end
			}
			return p
		case c == '"' || c == '\'' || c == '=' && (i+1 == len(b) || b[i+1] != '>' && b[i+1] != '#'):
			return p
		}
	}
	return p
}

// directoryLen returns the length of the directory, and the branch of Git, that b starts with.
func directoryLen(b []byte) int {
	n := indentOf(b)
	for n < len(b) && b[n] != ' ' {
		n++
	}
	if branch, _, ok := bytes.Cut(b[n:], []byte(")")); ok && bytes.HasPrefix(branch, []byte(" git:(")) {
		n += len(branch) + 1
	}
	return n
}

// glyphLen returns the length of the glyph that b starts with, 0 if there is none.
func glyphLen(b []byte) int {
	for _, g := range &glyphs {
		if bytes.HasPrefix(b, []byte(g)) {
			return len(g)
		}
	}
	return 0
}

// maxPrompt is how long a prompt is at most, in bytes.
const maxPrompt = 120

// maxTag is how long a tag of HTML before a prompt is at most, in bytes.
const maxTag = 64

// isHead reports whether b is what a prompt has before its last byte.
func isHead(b []byte, last byte) bool {
	if len(b) == 0 || string(b) == ">>" {
		return true
	}
	spaced := len(b)
	b = bytes.TrimRight(b, " ")
	if len(b) == 0 {
		return true
	}
	if len(b) < spaced && b[len(b)-1] == ')' && lex.Classes[b[0]]&lex.IsAlnum != 0 && last == '>' { // len(name) > n
		return false
	}
	word := b[bytes.LastIndexByte(b, ' ')+1:]
	words := bytes.Count(b, []byte(" ")) + 1
	if last == '>' {
		switch {
		case isDrive(b), bytes.HasPrefix(b, []byte("PS ")), bytes.HasPrefix(b, []byte("MariaDB [")), bytes.HasPrefix(b, []byte("MySQL [")),
			bytes.IndexByte(b, '@') > 0 && (isPath(word) || words < 6 && bytes.Contains(b, []byte(" ~")) || words < 6 && bytes.Contains(b, []byte(" /"))):
			return true
		case words > 1 || len(b) > 48 || lex.Classes[b[0]]&lex.IsAlnum == 0 && b[0] != '(' && b[0] != '~':
			return false
		}
		return bytes.ContainsAny(b, ":/~=(-") && bytes.IndexByte(b, '<') < 0 || isClient(b) || bytes.IndexByte(b, '@') > 0 && bytes.IndexByte(b, '.') < 0
	}
	switch {
	case b[0] == '[' && b[len(b)-1] == ']' && words < 6, b[0] == '(' && words < 6 && (isPath(word) || words == 1 || bytes.IndexByte(b, '@') > 0):
		return true
	case words > 6:
		return false
	case isPath(word), bytes.IndexByte(b, '@') > 0, (b[0] == '~' || b[0] == '/') && words < 6:
		return true
	case words == 2 && bytes.Contains(b, []byte(":~ ")) || words == 2 && bytes.Contains(b, []byte(":/ ")): // of macOS: host:~ ann$
		return true
	case words > 1 || lex.IsDigit(b[0]) || len(b) < 2:
		return false
	}
	return bytes.ContainsAny(b, ":/~-=") && lex.Classes[b[0]]&lex.IsAlnum != 0 || isClient(b)
}

// isPath reports whether a word is a directory, as prompts have it.
func isPath(w []byte) bool {
	return len(w) > 0 && (w[0] == '~' || w[0] == '/' || bytes.Contains(w, []byte(":~")) || bytes.Contains(w, []byte(":/")))
}

// isDrive reports whether b is a directory of Windows: C:\src.
func isDrive(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("PS "))
	return len(b) > 2 && b[1] == ':' && b[2] == '\\' && lex.Classes[b[0]]&lex.IsAlnum != 0
}

// isClient reports whether b is a program that shows its name as a prompt.
func isClient(b []byte) bool {
	switch string(b) {
	case "mysql", "mariadb", "sqlite", "SQL", "cqlsh", "redis", "psql", "vault", "ftp", "sftp", "mongo", "test", "admin", "local", "D", "duckdb", "bash", "sh", "zsh", "root", "host", "user", "router", "switch", "fish", "nu", "irb", "jshell", "node", "ghci", "php", "PS":
		return true
	}
	return false
}

// isOfProgram reports whether what is typed behind p may be an expression rather than a
// command: >>> token.
func (p *prompt) isOfProgram() bool {
	return p.last == '>' && bytes.IndexByte(p.head, '@') < 0
}

// ends reports whether the line t[i:end], below a command behind p, is no output of it.
func (p *prompt) ends(t []byte, i, end int) bool {
	i += len(p.quote)
	line := t[i:end]
	if len(p.head) == 0 && bytes.ContainsAny(p.above, "~/@") && bytes.Equal(bytes.TrimSpace(line), p.above) {
		return true
	}
	if bytes.HasPrefix(line, []byte("\u256d\u2500")) || bytes.HasPrefix(line, []byte("\u250c\u2500\u2500(")) ||
		bytes.Contains(line, []byte(" MINGW")) && bytes.IndexByte(line, '@') > 0 {
		return true
	}
	next := promptOf(line)
	switch {
	case next.end == 0 || next.last == '+' && p.last != '+':
		return false
	case next.last == p.last && bytes.Equal(next.head, p.head):
		return true
	case next.last >= 0xC2:
		return p.last >= 0xC2 || len(next.head) > 0
	case next.end == len(line) || len(bytes.TrimSpace(line[next.end:])) == 0:
		return isDrive(next.head) || isPath(next.head[bytes.LastIndexByte(next.head, ' ')+1:]) && (bytes.IndexByte(next.head, '@') > 0 || string(next.head) == "~") ||
			len(next.head) > 2 && next.head[0] == '['
	case len(next.head) == 0:
		return next.last == '$' // others are before comments and quotations too
	}
	return bytes.ContainsAny(next.head, "@~") || next.last == '>' && (isDrive(next.head) || bytes.HasPrefix(next.head, []byte("PS "))) || next.head[0] == '[' ||
		next.head[0] == '/' || isClient(next.head) || next.last == p.last && len(p.head) > 0 && next.head[0] == p.head[0]
}
