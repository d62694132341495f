package redact

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
)

const (
	maxWithin = 16 << 10 // the longest string, in bytes, that is read as JSON too
	maxLines  = 32 << 10 // of a list that is read as lines, in bytes, and of each:
	maxLine   = 400      // a record shows no more
)

// hide is digest for a value that is a secret by its place.
func (p *pass) hide(i int) (next int) {
	if !p.inner {
		return p.digest(i)
	}
	next = p.skip(i)
	from, to := i, next
	if p.raw[i] == '"' {
		from, to = i+1, next-1
	}
	p.conceal(from, to)
	p.out = append(p.out, '0')
	return next
}

// conceal notes that raw[from:to], in a string that is JSON, is a secret.
func (p *pass) conceal(from, to int) {
	if p.inner && from < to && !formats.IsPlaceholder(p.raw[from:to]) {
		p.hidden = append(p.hidden, lex.Span{From: from, To: to})
	}
}

// readLines finds the secrets of the list of strings whose first is at raw[i] as in the text
// whose lines they are, and reports whether there are some: ["name,password", "ann,SECRET"].
// A list of words is none.
func (p *pass) readLines(i int, more bool) bool {
	p.lines, p.ends = p.lines[:0], p.ends[:0]
	spaced := false
	for ; more && len(p.lines) < maxLines; i, more = p.raw.Next(i, ']') {
		if p.raw[i] != '"' {
			return false
		}
		s, next := p.readString(i)
		if i = next; i < 0 {
			return false
		}
		t := p.decoded(s)
		t = t[:min(len(t), maxLine)]
		spaced = spaced || bytes.ContainsAny(t, " ,;|\t")
		p.lines = append(append(p.lines, t...), '\n')
		p.ends = append(p.ends, len(p.lines))
	}
	if !spaced || len(p.ends) < 2 {
		return false
	}
	p.told = append(p.told[:0], p.scan.Find(p.lines[:len(p.lines)-1])...)
	return len(p.told) > 0
}

// line gives the scanner the secrets in the n-th string of that list, and reports whether it
// is one.
func (p *pass) line(n int) (whole bool) {
	if n >= len(p.ends) {
		return false
	}
	from, to := 0, p.ends[n]-1
	if n > 0 {
		from = p.ends[n-1]
	}
	for _, c := range p.told {
		whole = whole || c.From == from && c.To == to
		if c.From, c.To = max(c.From, from), min(c.To, to); c.From < c.To {
			p.scan.Given = append(p.scan.Given, lex.Span{From: c.From - from, To: c.To - from})
		}
	}
	return whole
}

// opens reports whether the arguments are about a lock or an alarm of Home Assistant, whose
// "code" is a secret.
func (p *pass) opens() bool {
	if p.lock == 0 {
		p.lock = -1
		if bytes.Contains(p.raw, []byte(`"lock.`)) || bytes.Contains(p.raw, []byte("alarm_control_panel")) {
			p.lock = 1
		}
	}
	return p.lock > 0
}
