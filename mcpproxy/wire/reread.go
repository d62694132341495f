package wire

import (
	"bytes"
	"math"
	"slices"

	"auditproxy/schemas/jsontext"
)

// reread reads the line from..to once more, for the servers that read what the
// scanner cannot. The messages that they execute become messages of their own,
// in strict JSON except for Raw, and are no longer opaque:
//
//   - The Kotlin SDK needs no quotes around names and strings. It retries a
//     broken line at its first brace.
//   - Ruby's JSON skips comments.
//
// Both need the whole line, so nothing is executed before its end. Lines beyond
// the limit, which are not kept, remain opaque: Kotlin ends at 16 MiB, Ruby at 4.
func (q *Requests) reread(from, to int64) {
	if q.rereads || from < q.window.off || to-from > q.limit {
		return
	}
	line := q.window.slice(from, to)
	if !bytes.Contains(line, []byte("method")) && !bytes.Contains(line, []byte(`\u`)) {
		return // no request
	}
	if b, brace := addQuotes(line); b != nil {
		off := from + int64(brace)
		end := from + int64(len(trimSpace(line)))
		list := q.again(b, off)
		if len(list) == 1 && list[0].Off == off && list[0].End == off+int64(len(b)) {
			list[0].End = end
			q.tellAgain(from, list)
			return
		}
	}
	if b := removeComments(line); b != nil {
		q.tellAgain(from, q.again(b, from))
	}
}

// again returns the messages in b, which is at off; none if b is not JSON.
func (q *Requests) again(b []byte, off int64) (list []*Message) {
	if q.rereader == nil {
		q.rereader = NewRequests(Config{Hash: q.hash})
		q.rereader.limit = math.MaxInt64 / 2
		q.rereader.rereads = true
		for i := range q.rereader.readings {
			q.rereader.readings[i].maxDepth = q.line.maxDepth
		}
	}
	r := q.rereader
	r.window.buf, r.window.off = b, off
	r.pos, r.first, r.passed, r.done, r.lineFrom = off, off, off, off, off
	for _, f := range r.End() {
		for _, m := range f.Messages {
			if m.State == Opaque && m.Anomalies&NotJSON != 0 {
				return nil
			}
			if m.State != Opaque {
				m.Candidates = slices.Clone(m.Candidates)
				list = append(list, &m)
			}
		}
	}
	return list
}

// tellAgain adds messages of the line that are not reported yet. Opaque bytes
// with such a message at one of their ends lose it.
func (q *Requests) tellAgain(from int64, list []*Message) {
	for _, m := range list {
		if slices.Contains(q.early, m.Off) ||
			slices.ContainsFunc(q.pending, func(t told) bool { return t.state != Opaque && t.off == m.Off }) {
			continue
		}
		q.pending = slices.DeleteFunc(q.pending, func(t told) bool { return t.state == Opaque && t.sum == nil && t.off >= from && q.without(m, &t) })
		for i := range q.pending {
			if t := &q.pending[i]; t.state == Opaque && t.sum == nil && t.off >= from {
				q.without(m, t)
			}
		}
		m.Raw = q.window.slice(m.Off, m.End)
		q.pending = append(q.pending, told{off: m.Off, end: m.End, whole: m, anomalies: m.Anomalies | NotJSON})
		q.forked = true // so that frame sorts them
	}
}

// without removes m from either end of opaque bytes, and reports whether none
// are left.
func (q *Requests) without(m *Message, t *told) bool {
	blank := func(from, to int64) bool {
		return from >= to || len(bytes.Trim(q.window.slice(from, to), " \t\r,[]")) == 0
	}
	switch {
	case m.End <= t.off || m.Off >= t.end:
		return false
	case blank(t.off, m.Off):
		t.off, t.open = min(m.End, t.end), false
	case blank(m.End, t.end):
		t.end = m.Off
	}
	return blank(t.off, t.end)
}

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
