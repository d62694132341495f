package wire

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// member looks a name up in table.
func (p *reading) member(l *level, table []string, lit []byte) {
	l.member, l.exact = 0, false
	if len(lit) < 2 {
		return
	}
	name := lit[1 : len(lit)-1]
	if p.str.Escaped {
		p.shared.scratch = jsontext.AppendUnquote(p.shared.scratch[:0], lit)
		name = p.shared.scratch
	}
	l.member, l.exact = matchName(table, name)
	if l.exact {
		if bit := uint16(1) << l.member; l.known&bit == 0 {
			l.known |= bit
		} else {
			p.flags |= DuplicateMember
		}
		return
	}
	if l.member > 0 {
		p.flags |= CaseVariantMember
	}
	if l.add(maphash.Bytes(p.shared.seed, name)) {
		p.flags |= DuplicateMember
	}
}

// matchName returns the index of name in table, 0 for none, and whether it is
// there exactly, not in another case, nor with a NUL behind it, at which strings of
// servers in C end. Case folds as in Unicode: a long s is an s, the sign for Kelvin
// is a k.
func matchName(table []string, name []byte) (i int, exact bool) {
	for i, n := range table {
		if i > 0 && string(name) == n {
			return i, true
		}
	}
	if len(table) > 0 {
		name, _, _ = bytes.Cut(name, nul)
	}
	for i, n := range table {
		if i > 0 && len(n) <= len(name) && len(name) <= utf8.UTFMax*len(n) && bytes.EqualFold(name, []byte(n)) {
			return i, false
		}
	}
	return 0, false
}

var nul = []byte{0}

func (l *level) clear() { l.known, l.names = 0, 0 }

// add adds the hash of a name, and reports whether it was there.
func (l *level) add(sum uint64) bool {
	for _, s := range l.sums[:l.names] {
		if s == sum {
			return true
		}
	}
	if l.names < maxNames {
		l.sums[l.names] = sum
		l.names++
	}
	return false
}

func (p *reading) endMember(l *level, off int64) {
	if !l.exact {
		switch {
		case l.member == memberMethod && l.first == '"':
			p.latest.method = p.addText(&p.methods, p.take(l, off), false)
		case l.member == memberID && l.known&(1<<memberID) == 0: // mcp-go answers with it
			p.cur.id = p.take(l, off)
		case l.member == memberID:
			p.cur.variantID = p.take(l, off)
		}
		return
	}
	switch l.member {
	case memberVersion:
		p.version = l.first == '"' && p.equals(p.take(l, off), "2.0")
	case memberID:
		p.cur.variantID = p.cur.id // a server that takes the first one answers with it
		p.cur.id = p.take(l, off)
	case memberMethod:
		p.hasMethod = true
		p.cur.method = value{}
		if l.first == '"' {
			p.cur.method = p.take(l, off)
			p.latest.exactMethod = p.addText(&p.methods, p.cur.method, true)
			p.latest.method = p.latest.exactMethod
		}
	case memberParams:
		p.cur.params = p.whole(l, off)
	case memberResult:
		p.cur.hasResult = true
	case memberError:
		p.cur.hasError = l.first != 'n'
	}
}

func (p *reading) endParam(l *level, off int64, primary bool) {
	switch {
	case l.member == paramName || l.member == paramURI:
		p.endName(l, off, l.exact && primary)
	case l.member == paramArguments:
		p.endArguments(l, off)
	case l.member == paramMeta && l.exact && primary:
		p.cur.meta = p.whole(l, off)
	}
}

// endName keeps the object of a call: the name of a tool or prompt, or the URI
// of a resource.
func (p *reading) endName(l *level, off int64, primary bool) {
	list, last, cur := &p.toolNames, &p.latest.name, &p.cur.name
	if l.member == paramURI {
		list, last, cur = &p.uris, &p.latest.uri, &p.cur.uri
	}
	v, text := p.takeName(l, off), l.first == '"'
	switch {
	case !primary:
	case text:
		*cur = v
	case l.member == paramName || l.first != 'n': // a last null URI is skipped by go-sdk, and an error to others
		*cur = value{}
	}
	if v.n == 0 {
		return
	}
	i := p.addText(list, v, primary && text)
	if text {
		last.params, last.any = i, i
		if primary {
			last.exact = i
		}
	}
}

// takeName keeps a tool's name or a URI. A number or a word is one too, as Java
// and Kotlin make strings of them.
func (p *reading) takeName(l *level, off int64) value {
	if l.first == '{' || l.first == '[' {
		return value{}
	}
	v := p.take(l, off)
	if string(p.bytes(v)) == "null" {
		return value{}
	}
	return v
}

// endMeta checks a progress token, to which the same applies as to an id.
func (p *reading) endMeta(l *level, off int64) {
	if l.exact && p.over == nil && l.first != 'n' && oddID(p.w.slice(l.from, off)) {
		p.flags |= OddID
	}
}
