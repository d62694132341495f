package redact

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/schemas/jsontext"
)

// The methods below read p.raw, text of the lenient grammar, and note its
// defects in p.flags. An index of -1 means that the bytes cannot be read.

// note notes the defects of a string.
func (p *pass) note(d jsontext.Defects) {
	if d&jsontext.LoneSurrogate != 0 {
		p.flags |= Surrogate
	}
	if d&jsontext.BadUTF8 != 0 {
		p.flags |= BadUTF8
	}
	if d&jsontext.Control != 0 {
		p.flags |= Control
	}
}

// readString reads the string at raw[i], which is a quote.
func (p *pass) readString(i int) (s jsontext.String, next int) {
	if s, next = p.raw.String(i); s.Defects != 0 {
		p.note(s.Defects)
	}
	return s, next
}

// decoded returns s's text, valid UTF-8, in the input's memory or in p.text.
func (p *pass) decoded(s jsontext.String) []byte {
	if s.Plain() {
		return s.Inner
	}
	p.text = s.Append(p.text[:0])
	return p.text
}

// scalar returns the token at raw[i], which is neither a string nor a
// container; it is empty if there is none.
func (p *pass) scalar(i int) (token []byte, next int) {
	next = p.raw.Scalar(i)
	return p.raw[i:next], next
}

// skip returns the index after the value at raw[i].
func (p *pass) skip(i int) int {
	return p.tokens(i, func(byte, jsontext.String, []byte) {})
}

// tokens is jsontext.Lenient.Tokens.
func (p *pass) tokens(i int, visit func(structure byte, s jsontext.String, scalar []byte)) int {
	return p.raw.Tokens(i, func(structure byte, s jsontext.String, scalar []byte) {
		switch {
		case s.Defects != 0:
			p.note(s.Defects)
		case scalar != nil && classify(scalar) == nonFinite:
			p.flags |= NonFinite
		}
		visit(structure, s, scalar)
	})
}

// writeCompact adds the compact text of the value at raw[i] to the digest: no
// white space, strings and numbers in the form in which records have them.
func (p *pass) writeCompact(i int) int {
	buf := p.spare[:0]
	next := p.tokens(i, func(structure byte, s jsontext.String, scalar []byte) {
		switch {
		case structure != 0:
			buf = append(buf, structure)
		case scalar != nil:
			buf = appendScalar(buf, scalar)
		default:
			buf = jsontext.AppendQuote(buf, lex.View(p.decoded(s)))
		}
		if len(buf) > 4096 {
			p.write(buf)
			buf = buf[:0]
		}
	})
	p.write(buf)
	p.spare = buf
	return next
}

// kindAt returns the kind of the value at raw[i].
func (p *pass) kindAt(i int) kind {
	switch p.raw[i] {
	case '"':
		return text
	case '[':
		return list
	case '{':
		return object
	}
	token, _ := p.scalar(i)
	return classify(token)
}

// digest writes the digest of the value at raw[i]: of a string's text, of
// anything else's compact text.
func (p *pass) digest(i int) (next int) {
	p.begin(Argument)
	if p.raw[i] == '"' {
		var s jsontext.String
		if s, next = p.readString(i); next >= 0 {
			p.writeString(s)
		}
	} else {
		next = p.writeCompact(i)
	}
	p.out = p.appendDigest(p.out)
	return next
}

// isOption reports whether the string at raw[i], which ends before raw[end], is an
// option alone that wants a secret: "--password", "password=" of Windows' sc. The value is
// then the next element of the list.
func (p *pass) isOption(i, end int) bool {
	if p.raw[i] != '"' || i+1 >= len(p.raw) || p.raw[i+1] != '-' && p.raw[i+1] != '\\' && (end < i+3 || p.raw[end-2] != '=') {
		return false
	}
	s, next := p.readString(i)
	if next < 0 {
		return false
	}
	t := p.decoded(s)
	name := bytes.TrimSuffix(bytes.TrimLeft(t, "-"), []byte("="))
	if len(name) == len(t) || len(name) == 0 {
		return false
	}
	for _, c := range name {
		if lex.Classes[c]&lex.IsName == 0 {
			return false
		}
	}
	c := p.r.names.Class(&p.folded, name)
	return c != names.Clear && c != names.Doubtful && c != names.DoubtfulKey
}
