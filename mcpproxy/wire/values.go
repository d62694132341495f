package wire

import (
	"bytes"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

// captured reports whether the value under way is kept of an oversize message.
func (p *reading) captured(i int) bool {
	switch l := &p.levels[i]; {
	case l.member == 0 || i == 2:
		return false
	case i == 0:
		return l.member == memberID || l.first == '"' && l.member <= memberMethod
	default:
		return (l.member == paramName || l.member == paramURI) && l.first != '{' && l.first != '['
	}
}

// take returns the value that ends before off; of an oversize message a copy of
// it.
func (p *reading) take(l *level, off int64) value {
	if p.over == nil {
		return value{from: l.from, n: int32(off - l.from)}
	}
	o := p.over
	switch {
	case o.id != nil:
		o.writeID(p.w, off)
		return p.hold(o.id.keep(o.head))
	case o.head != nil:
		return p.hold(o.head)
	case l.member == memberID && l == &p.levels[0]:
		return p.hold(KeepID(p.w.slice(o.keep, off), keptValue))
	}
	return p.hold(p.w.slice(o.keep, min(off, o.keep+keptValue)))
}

// hold keeps a copy of b. When many were replaced by later ones, it lets those
// go that nothing refers to any more.
func (p *reading) hold(b []byte) value {
	o := p.over
	if len(o.owned) == maxOwned {
		old := o.owned
		o.owned = nil
		for v := range p.kept {
			if v.own > 0 {
				o.owned = append(o.owned, old[v.own-1])
				v.own = int32(len(o.owned))
			}
		}
	}
	o.owned = append(o.owned, bytes.Clone(b))
	return value{n: int32(len(b)), own: int32(len(o.owned))}
}

// kept yields the values that are kept of an oversize message.
func (p *reading) kept(yield func(*value) bool) {
	for _, v := range [...]*value{&p.cur.id, &p.cur.variantID, &p.cur.method, &p.cur.name, &p.cur.uri} {
		if !yield(v) {
			return
		}
	}
	for _, l := range [...]*occurrences{&p.methods, &p.toolNames, &p.uris} {
		for i := range l.n {
			if !yield(&l.list[i].lit) {
				return
			}
		}
	}
}

// writeID writes the part of the id under way before off.
func (o *oversize) writeID(w *window, off int64) {
	if o.idTo < off {
		o.id.write(w.slice(o.idTo, off))
		o.idTo = off
	}
}

// whole is take for values that are not kept of an oversize message.
func (p *reading) whole(l *level, off int64) value {
	if p.over != nil {
		return value{}
	}
	return value{from: l.from, n: int32(off - l.from)}
}

// bytes returns the bytes of v, nil for none.
func (p *reading) bytes(v value) []byte {
	switch {
	case v.n == 0:
		return nil
	case v.own > 0:
		return p.over.owned[v.own-1]
	default:
		return p.w.slice(v.from, v.from+int64(v.n))
	}
}

// text returns the decoded string v, good until the next call.
func (p *reading) text(v value) []byte {
	lit := p.bytes(v)
	if bytes.IndexByte(lit, '\\') >= 0 || !utf8.Valid(lit) {
		p.shared.scratch = jsontext.AppendUnquote(p.shared.scratch[:0], lit)
		return p.shared.scratch
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(lit, []byte{'"'}), []byte{'"'})
}

func (p *reading) equals(v value, s string) bool {
	lit := p.bytes(v)
	if len(lit) == len(s)+2 {
		return lit[0] == '"' && string(lit[1:len(lit)-1]) == s
	}
	return len(lit) > len(s) && lit[0] == '"' && len(lit) <= len(s)*len(`\u0000`)+2 && string(p.text(v)) == s
}
