package view

import (
	"bytes"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/schemas/jsontext"
)

// A summarizer writes redacted arguments in few words. What it writes has
// nothing in it but visible characters.
type summarizer struct {
	depth int // levels of objects and lists to go into
	hex   int // digits of a digest to show
}

// arguments writes the members of an arguments object as name=value.
func (s summarizer) arguments(args audit.JSON) string {
	var b strings.Builder
	s.members(&b, []byte(args), s.depth)
	return b.String()
}

func (s summarizer) members(b *strings.Builder, obj []byte, depth int) {
	sep := ""
	// The error is that of a line that was made up; its readable part is shown.
	_ = jsontext.Members(obj, func(name, value []byte) bool {
		b.WriteString(sep)
		sep = " "
		b.WriteString(word(jsontext.Unquote(name)))
		b.WriteByte('=')
		s.value(b, value, depth)
		return true
	})
}

func (s summarizer) value(b *strings.Builder, v []byte, depth int) {
	switch v[0] {
	case '"':
		b.WriteString(word(jsontext.Unquote(v)))
	case '[':
		s.list(b, v, depth)
	case '{':
		d := readShape(v)
		switch {
		case d.ok:
			b.WriteString(d.text(s.hex))
		case depth == 0 && !empty(v):
			b.WriteString("{…}")
		default:
			b.WriteByte('{')
			s.members(b, v, depth-1)
			b.WriteByte('}')
		}
	default:
		b.WriteString(escape.Text(string(v)))
	}
}

func (s summarizer) list(b *strings.Builder, v []byte, depth int) {
	b.WriteByte('[')
	sep := ""
	_ = jsontext.Elements(v, func(v []byte) bool {
		b.WriteString(sep)
		if depth == 0 {
			b.WriteString("…")
			return false
		}
		sep = ", "
		if tool, args, ok := operation(v); ok {
			if escape.IsMixed(tool) {
				b.WriteString(`"` + strings.ReplaceAll(escape.Name(tool), `"`, `\"`) + `"`)
			} else {
				b.WriteString(word(tool))
			}
			if depth > 1 && len(args) > 0 {
				b.WriteByte('(')
				s.members(b, args, depth-2)
				b.WriteByte(')')
			}
			return true
		}
		s.value(b, v, depth-1)
		return true
	})
	b.WriteByte(']')
}

// operation reads an item of a batch, see audit.Operations.
func operation(item []byte) (tool string, args []byte, ok bool) {
	_ = jsontext.Members(item, func(name, v []byte) bool {
		switch {
		case string(name) == "tool" && v[0] == '"':
			tool, ok = jsontext.Unquote(v), true
		case string(name) == "arguments" && v[0] == '{':
			args = v
		}
		return true
	})
	return tool, args, ok
}

// A shape is what the redactor left of a value.
type shape struct {
	ok       bool
	head     string // the beginning, of a long text
	typ      string // of a value of which nothing else is left
	redacted bool
	size     string // "12 chars" or "12 bytes"
	sum      string // hexadecimal digits of the digest
}

// readShape reads an object that the redactor wrote in place of a value. A
// client can send one that looks the same; nothing depends on it.
func readShape(v []byte) (s shape) {
	other := false
	err := jsontext.Members(v, func(name, v []byte) bool {
		switch string(name) {
		case "len":
			s.size = plural(string(v), "char")
		case "bytes":
			s.size = plural(string(v), "byte")
		case "hmac_sha256_prefix", "sha256_prefix":
			s.sum = jsontext.Unquote(v)
		case "head":
			s.head = jsontext.Unquote(v)
		case "type":
			s.typ = jsontext.Unquote(v)
		case "redacted":
			s.redacted = string(v) == "true"
		default:
			other = true
		}
		return !other
	})
	s.ok = err == nil && !other && (s.sum != "" && s.size != "" || s.typ != "" && s.redacted)
	return s
}

func plural(n, unit string) string {
	if n == "1" {
		return "1 " + unit
	}
	return n + " " + unit + "s"
}

// text shows a shape with so many digits of its digest, 0 for all.
func (s shape) text(hex int) string {
	var parts []string
	if s.typ != "" {
		parts = append(parts, s.typ)
	}
	if s.redacted {
		parts = append(parts, "redacted")
	}
	if s.size != "" {
		parts = append(parts, s.size)
	}
	if s.sum != "" {
		sum := s.sum
		if hex > 0 && hex < len(sum) {
			sum = sum[:hex]
		}
		parts = append(parts, "#"+sum)
	}
	text := "<" + escape.Text(strings.Join(parts, " ")) + ">"
	if s.head != "" {
		text = quoted(s.head) + "…" + text
	}
	return text
}

// word returns text unchanged if it is one word, else in quotation marks.
func word(text string) string {
	if text == "" || hasMark(text) || escape.Text(text) != text {
		return quoted(text)
	}
	return text
}

// hasMark reports whether text has a character that a summary uses itself.
func hasMark(text string) bool {
	for _, c := range text {
		switch c {
		case ' ', '"', '\'', '=', ',', ';', '(', ')', '[', ']', '{', '}', '<', '>', '#', '…':
			return true
		}
	}
	return false
}

func quoted(text string) string {
	return `"` + strings.ReplaceAll(escape.Text(text), `"`, `\"`) + `"`
}

func empty(v []byte) bool {
	return len(bytes.TrimSpace(v[1:len(v)-1])) == 0
}

// one returns the text of one value.
func (s summarizer) one(v []byte) string {
	var b strings.Builder
	s.value(&b, v, s.depth)
	return b.String()
}
