package wire

import (
	"bytes"
	"hash/maphash"
)

// addText adds a string, and what of it comes before a NUL: for servers in C it ends
// there. It returns 1 + the index of the string.
func (p *reading) addText(l *occurrences, lit value, exact bool) int {
	i := p.addOccurrence(l, lit, exact)
	if n := nulIn(p.bytes(lit)); n >= 0 {
		p.flags |= ControlCharacter
		if lit.own == 0 { // an oversize message is not decided about
			p.addOccurrence(l, value{from: lit.from, n: int32(n)}, false)
		}
	}
	return i
}

// nulIn returns where a string has the escape of a NUL, -1 if it has none.
func nulIn(lit []byte) int {
	for at := 0; at < len(lit); at += len(`\"`) {
		n := bytes.IndexByte(lit[at:], '\\')
		if n < 0 {
			break
		}
		if at += n; bytes.HasPrefix(lit[at:], []byte(`\u0000`)) {
			return at
		}
	}
	return -1
}

// addOccurrence adds a string, and returns 1 + its index.
func (p *reading) addOccurrence(l *occurrences, lit value, exact bool) int {
	if l.n == 0 {
		l.list[0] = occurrence{lit: lit}
		l.n = 1
		return 1
	}
	o := occurrence{lit, p.sum(lit)}
	for i := range min(l.n, newestExact) {
		if p.sumOf(&l.list[i]) == o.sum {
			return i + 1
		}
	}
	i := l.n
	if l.n < newestExact {
		l.n++
	} else {
		if l.n == newestExact {
			l.n, l.list[newestExact], l.list[newestOther] = maxCandidates, occurrence{}, occurrence{}
		}
		i = p.newest(exact)
	}
	l.list[i] = o
	return i + 1
}

// newest is the place of further ones once all others are full.
func (p *reading) newest(exact bool) int {
	p.latest.cut = true
	if exact {
		return newestExact
	}
	return newestOther
}

// sum is a hash of the decoded string v, 0 only for none.
func (p *reading) sum(v value) uint64 {
	if v.n == 0 {
		return 0
	}
	return maphash.Bytes(p.shared.seed, p.text(v)) | 1
}

func (p *reading) sumOf(o *occurrence) uint64 {
	if o.sum == 0 {
		o.sum = p.sum(o.lit)
	}
	return o.sum
}

// clearArguments is for params that begin: the primary reading has none of the
// arguments that came before.
func (p *reading) clearArguments() {
	p.cur.arguments = value{}
	p.latest.exactSet = 0
}

func (p *reading) beginArguments(off int64, exact bool) {
	p.argCount = 0
	if p.over != nil {
		p.over.parts, p.over.digest = nil, nil
	}
	s := &p.sets
	i := s.n
	if s.n < newestExact {
		s.n++
	} else {
		if s.n == newestExact {
			s.n, s.list[newestExact], s.list[newestOther] = maxCandidates, argumentSet{}, argumentSet{}
		}
		i = p.newest(exact)
	}
	s.list[i] = argumentSet{from: off}
	s.busy = i + 1
	p.latest.set, p.latest.paramsSet = s.busy, s.busy
	if exact {
		p.clearArguments()
		p.latest.exactSet = s.busy
	}
}

func (p *reading) endArguments(l *level, off int64) {
	s := &p.sets.list[p.sets.busy-1]
	s.n = off - l.from
	if p.over != nil {
		s.parts = p.over.parts
	}
	if p.latest.exactSet == p.sets.busy {
		p.cur.arguments = p.whole(l, off)
	}
	p.sets.busy = 0
}

// setSum is a hash of arguments, 0 where a server would have none. Those of an
// oversize message are distinguished by their position.
func (p *reading) setSum(i int) uint64 {
	if i == 0 {
		return 0
	}
	s := &p.sets.list[i-1]
	switch {
	case p.over != nil:
		return uint64(s.from)<<1 | 1
	case s.n == 0:
		return 0 // the message ends in them: it is too deep
	case s.sum == 0:
		b := p.w.slice(s.from, s.from+s.n)
		if string(b) == "null" {
			return 0
		}
		s.sum = maphash.Bytes(p.shared.seed, b) | 1
	}
	return s.sum
}

// findCandidates finds what other readings of the message would run: first the
// choices of known readers, then all other combinations.
func (p *reading) findCandidates() Anomaly {
	t, q, l := &p.cur, p.shared, &p.latest
	t.candidates = [2]int{len(q.candidates), len(q.candidates)}
	if p.methods.n == 0 || p.methods.n == 1 && t.method.n > 0 &&
		(p.toolNames.n == 0 || p.toolNames.n == 1 && t.name.n > 0) &&
		(p.uris.n == 0 || p.uris.n == 1 && t.uri.n > 0) &&
		(p.sets.n == 0 || p.sets.n == 1 && l.exactSet > 0) &&
		l.name.params == l.name.exact && l.uri.params == l.uri.exact && l.paramsSet == l.exactSet {
		return 0 // all that is there belongs to the primary reading
	}
	name := t.uri
	if p.isNamed(t.method) {
		name = t.name
	}
	primary := candidate{sums: [3]uint64{p.sum(t.method), p.sum(name), p.setSum(l.exactSet)}}
	p.addReading(&primary, l.exactMethod, func(n *lastName) int { return n.exact }, l.exactSet)
	p.addReading(&primary, l.method, func(n *lastName) int { return n.params }, l.set)
	p.addReading(&primary, l.method, func(n *lastName) int { return n.any }, l.set)
	p.addReading(&primary, l.method, func(n *lastName) int { return n.params }, l.paramsSet)
	p.combine(&primary)
	if l.cut {
		return CandidatesCut
	}
	return 0
}

// addReading adds a reading whose name is known.
func (p *reading) addReading(primary *candidate, method int, which func(*lastName) int, set int) {
	if method > 0 {
		_, last := p.namesOf(method)
		p.addCandidate(primary, method, which(last), set)
	}
}

// namesOf returns the names or URIs that a method can refer to.
func (p *reading) namesOf(method int) (*occurrences, *lastName) {
	if p.isNamed(p.methods.list[method-1].lit) {
		return &p.toolNames, &p.latest.name
	}
	return &p.uris, &p.latest.uri
}

// combine adds every method with every name and all arguments, while there is
// room: those with the latest method and the latest name first, so that no
// others keep them out.
func (p *reading) combine(primary *candidate) {
	for m := range p.methods.n {
		method := (p.latest.method+m-1)%p.methods.n + 1
		names, last := p.namesOf(method)
		for n := range max(1, names.n) {
			name := 0
			if names.n > 0 {
				name = (last.any+n-1+names.n)%names.n + 1
			}
			if !p.addCandidate(primary, method, name, p.latest.exactSet) {
				return
			}
			for s := range p.sets.n {
				if !p.addCandidate(primary, method, name, s+1) {
					return
				}
			}
		}
	}
}

// isNamed reports whether a method refers to its object by a name, not by a
// URI.
func (p *reading) isNamed(method value) bool {
	return p.equals(method, methodCall) || p.equals(method, methodPrompt)
}

// addCandidate adds a reading that is neither the primary one nor a duplicate.
// It returns false when it is full.
func (p *reading) addCandidate(primary *candidate, method, name, set int) bool {
	if method == 0 || p.methods.list[method-1].lit.n == 0 {
		return true
	}
	m := &p.methods.list[method-1]
	c := candidate{method: m.lit, sums: [3]uint64{p.sumOf(m), 0, p.setSum(set)}}
	if name > 0 {
		names, _ := p.namesOf(method)
		o := &names.list[name-1]
		if o.lit.n == 0 {
			return true
		}
		c.name, c.sums[1] = o.lit, p.sumOf(o)
	}
	if set > 0 && p.sets.list[set-1].from == 0 || c.sums == primary.sums {
		return true
	}
	list, from := &p.shared.candidates, p.cur.candidates[0]
	for i := range (*list)[from:] {
		if (*list)[from+i].sums == c.sums {
			return true
		}
	}
	if len(*list)-from == maxCandidates {
		p.latest.cut = true
		return false
	}
	if c.differs = c.sums[2] != primary.sums[2]; c.differs && c.sums[2] != 0 {
		s := &p.sets.list[set-1]
		if p.over != nil {
			c.parts = s.parts
		} else {
			c.arguments = value{from: s.from, n: int32(s.n)}
		}
	}
	*list = append(*list, c)
	p.cur.candidates[1] = len(*list)
	return true
}
