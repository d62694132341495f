package redact

import (
	"math"
	"unicode/utf8"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/schemas/jsontext"
)

// clearText writes text, which is under a name that is not sensitive.
func (p *pass) clearText(text []byte, c names.Class) {
	from, n := len(p.out), points(text)
	most := maxText
	if c == names.OutputPath {
		most = maxPath
	}
	shown := math.MaxInt
	if n > most {
		shown = maxText
	}
	redacted := p.redacted(text, shown)
	p.scan.Given = p.scan.Given[:0]
	if n <= most {
		p.out = appendQuoted(p.out, redacted)
	} else {
		p.out = appendQuoted(append(p.out, `{"head":`...), firstPoints(redacted, maxText))
		p.out = append(p.out, ',')
		brace := len(p.out)
		p.begin(Argument)
		p.write(text)
		p.out = p.appendDigest(p.out)
		p.out = append(p.out[:brace], p.out[brace+1:]...) // one object, not two
	}
	if c == names.OutputPath {
		return
	}
	if p.clear -= len(p.out) - from; p.clear < 0 {
		p.clear = 0
		p.flags |= Cut
		p.begin(Argument)
		p.write(text)
		p.out = p.appendDigest(p.out[:from])
	}
}

// shortened writes the string at raw[i] as libtmux-mcp does an argument.
func (p *pass) shortened(i int) int {
	s, next := p.readString(i)
	if next < 0 {
		return -1
	}
	t := p.decoded(s)
	if head := firstPoints(t, maxText); len(head) < len(t) {
		p.spare = append(append(p.spare[:0], head...), "...<truncated>"...)
		t = p.spare
	}
	p.out = appendQuoted(p.out, t)
	return next
}

// plain writes s as it is, unless no record could hold it.
func (p *pass) plain(s jsontext.String) {
	if len(s.Inner) > maxPlain {
		p.flags |= Cut
		p.begin(Argument)
		p.writeString(s)
		p.out = p.appendDigest(p.out)
		return
	}
	p.out = jsontext.AppendQuote(p.out, lex.View(p.decoded(s)))
}

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
