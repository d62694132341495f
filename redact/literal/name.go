package literal

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/schemas/jsontext"
)

// NameBefore returns the name that ends before the separator at i, and where
// it starts. A name in quotes may hold anything but a separator.
func (r *Reader) NameBefore(from, i int) (name []byte, first int) {
	t := r.Text
	equals := t[i] == '='                                   // also of ?=, +=, .=, ||= and !=
	if i > from+1 && t[i-1] == ']' && lex.IsDigit(t[i-2]) { // NAME[0]=
		at := i - 2
		for at > from && i-at < 6 && lex.IsDigit(t[at-1]) {
			at--
		}
		if at-2 > from && t[at-1] == '[' && t[at-2] == 's' {
			i = at - 1
		}
	}
	for i > from && (t[i-1] == ' ' || t[i-1] == '\t' || t[i-1] == ']' || t[i-1] == '[' && i < len(t) && t[i] == ']' || t[i-1] == '+' ||
		t[i-1] == '*' && !equals && (i > 1 && t[i-2] == '*' || t[i] == '*') || equals && (t[i-1] == '?' || t[i-1] == '.' || t[i-1] == '!' || t[i-1] == '|')) {
		i--
	}
	if equals && i > from+1 && t[i-1] == '}' && t[i-2] > ' ' { // ${env:NAME} =, $ENV{NAME} =
		begin := max(from, i-names.MaxPairName)
		if at := bytes.LastIndexByte(t[begin:i], '{'); at >= 0 && lex.After(t, begin+at, "{env:") > 0 ||
			at > 0 && (t[begin+at-1] == '>' || lex.Classes[t[begin+at-1]]&lex.IsAlnum != 0) {
			i--
		}
	}
	if i > from && t[i-1] == '>' && t[i] == ':' { // <b>NAME</b>:
		begin := max(from, i-12)
		if at := bytes.LastIndex(t[begin:i], []byte("</")); at >= 0 {
			i = begin + at
		}
	}
	if i > from && lex.Classes[t[i-1]]&lex.IsQuote != 0 {
		quote := t[i-1]
		i--
		for i > from && t[i-1] == '\\' {
			i--
		}
		first = i
		for first > from && t[first-1] != quote && t[first-1] != '=' && t[first-1] != ':' && t[first-1] != ',' {
			first--
		}
		if first > from+1 && t[first-1] == ':' && lex.Classes[t[first-2]]&lex.IsAlnum != 0 { // configuration["Jwt:Key"] =
			path := first - 1
			for path > from && i-path < names.MaxPairName && (lex.Classes[t[path-1]]&lex.IsName != 0 || t[path-1] == ':') {
				path--
			}
			if path > from && t[path-1] == quote && (path < 2 || t[path-2] == '[') {
				first = path
			}
		}
		return t[first:i], first
	}
	first = i
	for first > from && (lex.Classes[t[first-1]]&lex.IsName != 0 || t[first-1] == '\\') {
		first--
	}
	return t[first:i], first
}

// IsSensitive reports whether name, which may have escapes, is sensitive, and leaves it in f.
func (r *Reader) IsSensitive(f *names.Folded, name []byte, more names.Sections) bool {
	name = r.Unescaped(name)
	f.Fold(name)
	return r.Names.Sensitive(f, more|names.Keyed(name))
}

// Unescaped decodes b if it has the escapes of JSON or of URLs, at every level,
// as strings in strings have them: in b's memory or, until the next call, in
// the reader's.
func (r *Reader) Unescaped(b []byte) []byte {
	for n := range 4 {
		to := &r.decoded[n%2]
		switch {
		case bytes.IndexByte(b, '\\') >= 0:
			if *to = lex.AppendOctets((*to)[:0], b); len(*to) == len(b) {
				*to = jsontext.AppendUnquote((*to)[:0], b)
			}
		case bytes.IndexByte(b, '%') >= 0:
			*to = lex.AppendPercent((*to)[:0], b)
		default:
			return b
		}
		if len(*to) == len(b) && bytes.Equal(*to, b) {
			break // there is nothing to decode
		}
		b = *to
	}
	return b
}
