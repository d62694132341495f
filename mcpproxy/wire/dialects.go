package wire

import (
	"bytes"

	"auditproxy/schemas/jsontext"
)

// addQuotes returns line from its first brace on with quotes around unquoted
// words, and the index of that brace. It returns nil if the Kotlin SDK cannot
// read the line.
func addQuotes(line []byte) (b []byte, brace int) {
	brace = bytes.IndexByte(line, '{')
	if brace < 0 {
		return nil, 0
	}
	line = trimSpace(line)
	b = make([]byte, 0, len(line)-brace+64)
	for i := brace; i < len(line); {
		switch c := line[i]; {
		case c == '"':
			_, end := jsontext.Lenient(line).String(i)
			if end < 0 {
				return nil, 0
			}
			// A CR is part of the string, and not the end of a line.
			b = append(b, bytes.ReplaceAll(line[i:end], []byte{'\r'}, []byte(`\r`))...)
			i = end
		case c == ' ' || c == '\t' || c == '\r':
			b = append(b, ' ')
			i++
		case bareByte(c):
			end := i
			for end < len(line) && bareByte(line[end]) {
				end++
			}
			next := bytes.TrimLeft(line[end:], " \t\r")
			name := len(next) > 0 && next[0] == ':'
			if word := line[i:end]; !name && scalarAnomaly(word) == 0 {
				b = append(b, word...)
			} else {
				b = append(append(append(b, '"'), word...), '"')
			}
			i = end
		case c < ' ' || c == '\\':
			return nil, 0
		default:
			b = append(b, c)
			i++
		}
	}
	return b, brace
}

// bareByte reports whether c can be in a string without quotes: anything but
// white space, control characters and JSON's own.
func bareByte(c byte) bool {
	switch c {
	case ',', ':', '{', '}', '[', ']', '"', '\\':
		return false
	}
	return c > ' '
}

// removeComments returns line with spaces in place of its comments, nil if it
// has none or Ruby cannot read it.
func removeComments(line []byte) []byte {
	if !bytes.Contains(line, []byte("/*")) && !bytes.Contains(line, []byte("//")) {
		return nil
	}
	b := bytes.Clone(line)
	blank := func(b []byte) {
		for i := range b {
			b[i] = ' '
		}
	}
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"':
			_, end := jsontext.Lenient(b).String(i)
			if end < 0 || bytes.IndexByte(b[i:end], '\r') >= 0 {
				return nil
			}
			i = end - 1
		case b[i] == '\r':
			b[i] = ' '
		case bytes.HasPrefix(b[i:], []byte("//")):
			blank(b[i:])
		case bytes.HasPrefix(b[i:], []byte("/*")):
			n := bytes.Index(b[i+2:], []byte("*/"))
			if n < 0 {
				return nil
			}
			blank(b[i : i+n+4])
		}
	}
	return b
}

func trimSpace(line []byte) []byte { return bytes.TrimRight(line, " \t\r") }
