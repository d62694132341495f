package shell

import (
	"strings"

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
		if e.cur.Text = string(e.b); e.cur.Text != Hole {
			e.cur.others = nil
		}
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
