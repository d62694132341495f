package redact

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// begin, write and appendDigest make one digest at a time in p.

func (p *pass) begin(d Domain) {
	p.hash.Reset()
	p.points = 0
	if label := p.r.digest.label(d); label != "" {
		p.hash.Write(append(p.sum[:0], label...))
	}
}

// write adds text. Each piece must be valid UTF-8, or code points are
// miscounted.
func (p *pass) write(text []byte) {
	p.hash.Write(text)
	p.points += points(text)
}

// finish returns the sum, in p's memory.
func (p *pass) finish() []byte {
	return p.hash.Sum(p.sum[:0])
}

// appendDigest appends the digest object of the text written.
func (p *pass) appendDigest(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"len":`...), int64(p.points), 10)
	return append(p.r.digest.appendPrefix(dst, p.finish()), '}')
}

// appendMark appends how a digest looks inside a text: open, then
// "len=40 hmac=0123456789abcdef]".
func (p *pass) appendMark(dst []byte, open string) []byte {
	dst = strconv.AppendInt(append(append(dst, open...), `len=`...), int64(p.points), 10)
	dst = append(append(append(dst, ' '), p.r.digest.word...), '=')
	dst = hex.AppendEncode(dst, p.finish()[:p.r.digest.prefix])
	return append(dst, ']')
}

// writeString adds the text of a string literal, which may be megabytes long
// and is decoded in pieces.
func (p *pass) writeString(s jsontext.String) {
	if s.Plain() {
		p.write(s.Inner)
		return
	}
	lit, buf := s.Inner, p.text[:0]
	for len(lit) > 0 {
		run := bytes.IndexByte(lit, '\\')
		if run < 0 {
			run = len(lit)
		}
		switch {
		case s.Defects&jsontext.BadUTF8 != 0:
			buf = jsontext.AppendUnquote(buf, lit[:run])
		case run < 256:
			buf = append(buf, lit[:run]...)
		default:
			p.write(buf)
			p.write(lit[:run])
			buf = buf[:0]
		}
		lit = lit[run:]
		n := jsontext.EscapeLen(lit)
		buf = jsontext.AppendUnquote(buf, lit[:n])
		lit = lit[n:]
		if len(buf) > 4096 {
			p.write(buf)
			buf = buf[:0]
		}
	}
	p.write(buf)
	p.text = buf
}

// points counts code points: the bytes that do not continue one.
func points(text []byte) int { return utf8.RuneCount(text) }
