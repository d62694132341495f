package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"auditproxy/mcpproxy/risk/detector"
)

// An expansion collects the fields of a word.
type expansion struct {
	out   []Field
	cur   Field
	b     []byte
	some  bool   // cur is a field even if it is empty
	whole bool   // no splitting: an assignment, a redirection
	words uint16 // of values of several lines that were split
}

func (e *expansion) end() {
	if e.some || len(e.b) > 0 {
		e.cur.Text = string(e.b)
		e.out = append(e.out, e.cur)
	}
	e.cur, e.b, e.some = Field{}, e.b[:0], false
}

// value adds an expanded value, which is split where it is not quoted.
func (e *expansion) value(v, ifs string, quoted bool) {
	if quoted || e.whole {
		e.b = append(e.b, v...)
		e.some = e.some || quoted
		e.cur.quoted = e.cur.quoted || quoted
		return
	}
	lines := strings.IndexByte(v, '\n') >= 0
	if lines {
		e.words++
		e.cur.word = e.words
	}
	for i := range len(v) {
		if strings.IndexByte(ifs, v[i]) >= 0 {
			line := v[i] == '\n' || e.cur.line && len(e.b) == 0
			if e.end(); lines {
				e.cur.line, e.cur.word = line, e.words
			}
			continue
		}
		if strings.IndexByte("*?[", v[i]) >= 0 {
			e.cur.Glob = true
		}
		e.b = append(e.b, v[i])
	}
}

func (e *expansion) unknown(from detector.Set, quoted bool) {
	e.b = append(e.b, Hole...)
	e.cur.Unknown, e.some = true, true
	e.cur.Split = e.cur.Split || !quoted
	e.cur.From |= from
}

// sequence returns the first words of {a..z} or {1..9}.
func sequence(b *syntax.BraceExp) []*syntax.Word {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	x, errX := strconv.Atoi(from)
	y, errY := strconv.Atoi(to)
	letters := errX != nil || errY != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return b.Elems
		}
		x, y = int(from[0]), int(to[0])
	}
	step := 1
	if y < x {
		step = -1
	}
	var out []*syntax.Word
	for v := x; len(out) < 8 || letters; v += step {
		text := strconv.Itoa(v)
		if letters {
			text = string(rune(v))
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}})
		if v == y {
			break
		}
	}
	return out
}

// literal adds unquoted or double-quoted text, whose backslashes quote.
func (e *expansion) literal(v string, quoted bool) {
	e.some = e.some || quoted
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c == '\\' && i+1 < len(v) {
			next := v[i+1]
			if !quoted || strings.IndexByte("$`\"\\\n", next) >= 0 {
				i++
				e.cur.quoted = true
				if next != '\n' {
					e.b = append(e.b, next)
				}
				continue
			}
		}
		if !quoted && (c == '*' || c == '?' || c == '[') {
			e.cur.Glob = true
		}
		e.b = append(e.b, c)
	}
}

// appendANSI decodes what is between $' and '.
func appendANSI(b []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b = append(b, v[i])
			continue
		}
		i++
		c := v[i]
		switch c {
		case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v':
			b = append(b, "\a\b\x1b\x1b\f\n\r\t\v"[strings.IndexByte("abeEfnrtv", c)])
		case 'x', 'u', 'U', '0', '1', '2', '3', '4', '5', '6', '7':
			base, width, from := 16, 2, i+1
			switch c {
			case 'u':
				width = 4
			case 'U':
				width = 8
			case 'x':
			default:
				base, width, from = 8, 3, i
			}
			braced := c == 'x' && from < len(v) && v[from] == '{'
			if braced {
				from, width = from+1, 8
			}
			to := from
			for to < len(v) && to-from < width && isDigit(v[to], base) {
				to++
			}
			n, err := strconv.ParseUint(v[from:to], base, 32)
			if err != nil {
				b = append(b, '\\', c)
				continue
			}
			if braced && to < len(v) && v[to] == '}' {
				to++
			}
			switch {
			case n == 0:
				return b // the word ends at a NUL
			case c == 'u' || c == 'U':
				b = utf8.AppendRune(b, rune(n))
			default:
				b = append(b, byte(n))
			}
			i = to - 1
		case 'c':
			if i++; i < len(v) {
				b = append(b, v[i]&0x1f)
			}
		case '\\', '\'', '"', '?':
			b = append(b, c)
		default:
			b = append(b, '\\', c)
		}
	}
	return b
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
