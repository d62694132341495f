package wire

import (
	"bytes"
	"slices"

	"auditproxy/schemas/jsontext"
)

// beginOversize reports what is known of the message under way, at off, and
// moves it out of the window.
func (p *reading) beginOversize(off int64) {
	p.over = &oversize{keep: -1}
	if !p.hasMethod && p.methods.n == 0 && !p.cur.hasResult && !p.cur.hasError {
		p.over.sum = newDigest(p.shared.hash, p.cur.off)
	}
	for v := range p.kept {
		if v.n > 0 {
			b := p.w.slice(v.from, v.from+int64(v.n))
			if v == &p.cur.id || v == &p.cur.variantID {
				b = KeepID(b, keptValue)
			} else {
				b = b[:min(len(b), keptValue)]
			}
			*v = p.hold(b)
		}
	}
	for i := range p.sets.n {
		if s := &p.sets.list[i]; s.n > 0 {
			s.parts = p.partsOf(p.w.slice(s.from, s.from+s.n))
		}
	}
	p.cur.params, p.cur.arguments, p.cur.meta = value{}, value{}, value{}
	for i := range 2 {
		if l := &p.levels[i]; l.busy && p.captured(i) {
			p.over.keep = l.from
		}
	}
	if p.sets.busy > 0 {
		for i := range min(p.argCount, maxNames) {
			p.movePart(&p.args[i])
		}
	}
	p.tellOversize(Begun, off)
}

// partsOf returns the parts of arguments that are complete.
func (p *reading) partsOf(args []byte) (parts []Part) {
	if args[0] != '{' {
		return nil
	}
	for n, v := range jsontext.Lenient(args).Members() {
		if len(parts) == maxNames {
			break
		}
		name := append(append([]byte{'"'}, n.Inner[:min(len(n.Inner), keptName)]...), '"')
		h := p.shared.hash()
		h.Write(v)
		parts = append(parts, Part{Name: name[:min(len(name), keptName)], Type: typeOf(v[0]), Bytes: int64(len(v)), Sum: h.Sum(nil)})
	}
	return parts
}

func (p *reading) movePart(a *argument) {
	part := Part{Name: bytes.Clone(p.w.slice(a.name.from, a.name.from+min(int64(a.name.n), keptName)))}
	if a.first != 0 {
		part.Type = typeOf(a.first)
		d := newDigest(p.shared.hash, a.value.from)
		if a.value.n > 0 {
			d.write(p.w, a.value.from+int64(a.value.n))
			part.Bytes, part.Sum = int64(a.value.n), d.sum()
		} else {
			p.over.digest = d
		}
	}
	p.over.parts = append(p.over.parts, part)
}

func (p *reading) nameArgument(off int64, lit []byte) {
	if p.argCount == maxNames {
		p.argCount++ // one beyond: the value has no entry
	}
	if p.argCount > maxNames {
		return
	}
	p.argCount++
	if p.over != nil {
		p.over.parts = append(p.over.parts, Part{Name: bytes.Clone(lit[:min(len(lit), keptName)])})
		return
	}
	p.args[p.argCount-1] = argument{name: value{from: off - int64(len(lit)), n: int32(len(lit))}}
}

func (p *reading) beginArgument(off int64, first byte) {
	switch {
	case p.argCount > maxNames:
	case p.over != nil:
		p.over.parts[len(p.over.parts)-1].Type = typeOf(first)
		p.over.digest = newDigest(p.shared.hash, off)
	default:
		a := &p.args[p.argCount-1]
		a.first, a.value.from = first, off
	}
}

func (p *reading) endArgument(off int64) {
	from := p.levels[2].from
	switch {
	case p.argCount > maxNames:
	case p.over != nil:
		part := &p.over.parts[len(p.over.parts)-1]
		p.over.digest.write(p.w, off)
		part.Bytes, part.Sum = off-from, p.over.digest.sum()
		p.over.digest = nil
	default:
		p.args[p.argCount-1].value.n = int32(off - from)
	}
}

// trim makes p independent of the window's bytes before off, except for a small
// value that is under way.
func (p *reading) trim(off int64) {
	o := p.over
	if o.digest != nil {
		o.digest.write(p.w, off)
	}
	if o.sum != nil {
		o.sum.write(p.w, off)
	}
	if o.keep >= 0 && o.head == nil && off-o.keep > keptValue {
		o.head = bytes.Clone(p.w.slice(o.keep, o.keep+keptValue))
		if p.levels[0].busy && p.levels[0].member == memberID {
			o.id, o.idTo = new(idKeys), o.keep
		}
	}
	if o.id != nil {
		o.writeID(p.w, off)
	}
}

// tellOversize reports the message under way, all of it in memory of its own.
func (p *reading) tellOversize(s State, off int64) {
	t := &p.cur
	if busy := p.sets.busy; busy > 0 {
		p.sets.list[busy-1].parts = slices.Clone(p.over.parts) // as far as they have come
	}
	cut := p.findCandidates()
	m := &Message{
		State: s, Off: t.off, End: off,
		ID: p.bytes(t.id), VariantID: p.bytes(t.variantID), Method: p.bytes(t.method), Name: p.bytes(t.name), URI: p.bytes(t.uri),
		HasResult: t.hasResult, HasError: t.hasError,
		Anomalies: Oversize | p.oddities | p.flags | cut,
		Open:      s == Begun,
	}
	if i := p.latest.exactSet; i > 0 {
		m.ArgumentsBytes, m.Parts = p.sets.list[i-1].n, p.sets.list[i-1].parts
	}
	if s == Ended {
		m.Anomalies |= t.anomalies
	}
	if p.over.sum != nil && m.Method == nil && t.candidates[0] == t.candidates[1] {
		p.over.sum.write(p.w, off)
		m.Sum = p.over.sum.sum()
	}
	if p.first == '[' {
		m.Anomalies |= Batch
	}
	for _, c := range p.shared.candidates[t.candidates[0]:t.candidates[1]] {
		m.Candidates = append(m.Candidates, Candidate{Method: p.bytes(c.method), Name: p.bytes(c.name), Differs: c.differs, Parts: c.parts})
	}
	if p.over.broken && m.Method != nil {
		// Its reading so far is one of many.
		m.Candidates = append(m.Candidates, Candidate{Method: m.Method, Name: m.Name})
		m.Method, m.Name = nil, nil
	}
	p.shared.pending = append(p.shared.pending, pendingMessage{state: s, off: t.off, end: off, whole: m, anomalies: m.Anomalies})
}

// typeOf names a value's JSON type by its first byte.
func typeOf(first byte) string {
	switch first {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
