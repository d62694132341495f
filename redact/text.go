package redact

import (
	"hash"
	"unicode/utf8"
	"unsafe"

	"auditproxy/schemas/jsontext"
)

// Limits of a string that stays a string.
const (
	maxName = 256 // code points
	cutName = 200 // code points that are left of a longer one
)

// A pass is one run of the redactor with its scratch memory. The goroutine that
// got it from the pool owns it.
type pass struct {
	r      *Redactor
	hash   hash.Hash
	points int // code points in the digest that is being made
	sum    []byte

	raw    jsontext.Lenient
	out    []byte
	flags  Flags
	room   Room // of the summary
	clear  int  // bytes of clear strings still allowed
	share  int  // of shares, the one that is being tried
	limit  int  // length of out that must not be passed
	shared bool // in a member that must keep its share
	over   bool // the limit was passed
	reread bool // the operation is a call: it is read again as one

	members []member
	names   []byte              // decoded, of the objects that are being written
	text    []byte              // the string that is being decoded
	spare   []byte              // a compact or Python text
	settled []byte              // the members of an object in order
	clean   []byte              // a text without credentials
	folded  folded              // a name that is being classified
	infos   map[string]nameInfo // of names seen before
	program command             // the program that an earlier member names for a list
	rehash  int                 // bytes that may still be digested a second time
	scan    scanner
}

func newPass(r *Redactor) *pass {
	p := &pass{r: r, hash: r.digest.bare(), sum: make([]byte, 0, 64), infos: make(map[string]nameInfo)}
	p.scan.names = r.names
	return p
}

func (r *Redactor) pass() *pass { return r.passes.Get().(*pass) }

// maxKept is the scratch memory, in bytes per buffer, that a pass may keep.
const maxKept = 64 << 10

func (r *Redactor) release(p *pass) {
	p.raw, p.out = nil, nil
	p.members, p.names = p.members[:0], p.names[:0]
	if max(cap(p.names), cap(p.text), cap(p.spare), cap(p.settled), cap(p.clean)) > maxKept ||
		cap(p.members)+cap(p.scan.found) > maxKept/32 {
		return
	}
	r.passes.Put(p)
}

// view is b as a string, for calls that do not keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendName appends a member's name, quoted.
func (p *pass) appendName(dst, name []byte) []byte {
	if !p.r.strict {
		if len(name) <= maxPlain {
			return jsontext.AppendQuote(dst, view(name))
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
func appendQuoted(dst, text []byte) []byte { return jsontext.AppendQuote(dst, view(text)) }

// appendText is AppendText. dst must not share memory with text or p.clean
// unless it is p.clean itself.
func (p *pass) appendText(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		// Quoting replaces each maximal part that is not UTF-8.
		text = jsontext.AppendUnquote(nil, jsontext.AppendQuote(nil, view(text)))
	}
	spans := p.scan.credentials(text)
	from := len(dst)
	dst = p.appendClean(dst, text, spans, maxName)
	if len(dst)-from <= maxName || points(dst[from:]) <= maxName {
		return dst
	}
	dst = dst[:from+len(firstPoints(dst[from:], cutName))]
	p.begin(Argument)
	p.write(text)
	return p.appendMark(dst, cutMark)
}

// The prefix of the mark for a credential, and for the rest of a long name.
const (
	redactedMark = "[redacted "
	cutMark      = "…["
)

// redacted returns text without credentials, in text's memory or in p.clean: at
// least its first most code points.
func (p *pass) redacted(text []byte, most int) []byte {
	spans := p.scan.credentials(text)
	if len(spans) == 0 {
		return text
	}
	p.clean = p.appendClean(p.clean[:0], text, spans, most)
	return p.clean
}

// appendClean appends text with a mark for each span. It may stop once the
// result has more than most code points: marks cost more than finding the
// credentials.
func (p *pass) appendClean(dst, text []byte, spans []span, most int) []byte {
	done, from := 0, len(dst)
	for _, s := range spans {
		if (len(dst)-from)/utf8.UTFMax > most {
			return dst
		}
		dst = append(dst, text[done:s.from]...)
		p.begin(Argument)
		p.write(text[s.from:s.to])
		dst = p.appendMark(dst, redactedMark)
		done = s.to
	}
	return append(dst, text[done:]...)
}

// firstPoints returns text's first n code points.
func firstPoints(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for i := range view(text) {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
