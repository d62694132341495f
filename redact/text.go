package redact

import (
	"unicode/utf8"

	"auditproxy/redact/lex"
	"auditproxy/schemas/jsontext"
)

// appendName appends a member's name, quoted.
func (p *pass) appendName(dst, name []byte) []byte {
	if !p.r.strict {
		if len(name) <= maxPlain {
			return jsontext.AppendQuote(dst, lex.View(name))
		}
		p.flags |= Cut
	}
	return p.appendQuoted(dst, name)
}

// appendQuoted appends text as AppendText does, as a JSON string.
func (p *pass) appendQuoted(dst, text []byte) []byte {
	p.clean = p.appendText(p.clean[:0], text)
	return appendQuoted(dst, p.clean)
}

// appendQuoted appends text as a JSON string.
func appendQuoted(dst, text []byte) []byte { return jsontext.AppendQuote(dst, lex.View(text)) }

// appendText is AppendText. dst must not share memory with text or p.clean
// unless it is p.clean itself.
func (p *pass) appendText(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		// Quoting replaces each maximal part that is not UTF-8.
		text = jsontext.AppendUnquote(nil, jsontext.AppendQuote(nil, lex.View(text)))
	}
	spans := p.scan.Find(text)
	from := len(dst)
	dst = p.appendClean(dst, text, spans, maxName)
	if len(dst)-from <= maxName || points(dst[from:]) <= maxName {
		return dst
	}
	dst = dst[:from+len(firstPoints(dst[from:], cutName))]
	p.begin(Argument)
	p.write(text)
	return p.appendMark(dst, lex.CutMark)
}

// redacted returns text without credentials, in text's memory or in p.clean: at
// least its first most code points.
func (p *pass) redacted(text []byte, most int) []byte {
	spans := p.scan.Find(text)
	if len(spans) == 0 {
		return text
	}
	p.clean = p.appendClean(p.clean[:0], text, spans, most)
	return p.clean
}

// appendClean appends text with a mark for each span. It may stop once the
// result has more than most code points: marks cost more than finding the
// credentials.
func (p *pass) appendClean(dst, text []byte, spans []lex.Span, most int) []byte {
	done, from := 0, len(dst)
	for _, s := range spans {
		if (len(dst)-from)/utf8.UTFMax > most {
			return dst
		}
		dst = append(dst, text[done:s.From]...)
		p.begin(Argument)
		p.write(text[s.From:s.To])
		dst = p.appendMark(dst, lex.RedactedMark)
		done = s.To
	}
	return append(dst, text[done:]...)
}

// firstPoints returns text's first n code points.
func firstPoints(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for i := range lex.View(text) {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
