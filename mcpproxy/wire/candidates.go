package wire

import "hash/maphash"

// maxCandidates is how many other readings are told of a message.
const maxCandidates = 16

// An occurrence is one string that a method or the name of a tool or prompt
// has somewhere in a message.
type occurrence struct {
	lit value
	sum uint64 // hash of the decoded string; 0 if nobody asked yet
}

// occurrences are different strings, in the order of the stream. When there
// are more, the last two places go to the newest ones: readers take the last,
// some the last that is not null, some the last in any case.
type occurrences struct {
	list [maxCandidates]occurrence
	n    int
}

// A pair is a Candidate before its frame is ready.
type pair struct{ method, name value }

func (p *reading) addOccurrence(l *occurrences, lit value, exact bool) {
	if l.n == 0 {
		l.list[0] = occurrence{lit: lit}
		l.n = 1
		return
	}
	o := occurrence{lit, p.sum(lit)}
	for i := range min(l.n, maxCandidates-2) {
		if p.sumOf(&l.list[i]) == o.sum {
			return
		}
	}
	switch {
	case l.n < maxCandidates:
		l.list[l.n] = o
		l.n++
	case exact:
		l.list[maxCandidates-2] = o
	default:
		l.list[maxCandidates-1] = o
	}
}

// sum is a hash of the decoded string v, never 0 but for none.
func (p *reading) sum(v value) uint64 {
	if v.n == 0 {
		return 0
	}
	return maphash.Bytes(p.q.seed, p.text(v)) | 1
}

func (p *reading) sumOf(o *occurrence) uint64 {
	if o.sum == 0 {
		o.sum = p.sum(o.lit)
	}
	return o.sum
}

// findCandidates finds what other readings of the message would run.
func (p *reading) findCandidates() {
	t, q := &p.cur, p.q
	t.candidates = [2]int{len(q.candidates), len(q.candidates)}
	if p.methods.n == 0 || p.methods.n == 1 && t.method.n > 0 &&
		(p.toolNames.n == 0 || p.toolNames.n == 1 && t.name.n > 0) {
		return // all strings there are belong to the primary reading
	}
	method, name := p.sum(t.method), p.sum(t.name)
	for i := range p.methods.n {
		m := &p.methods.list[i]
		if p.toolNames.n == 0 || !p.equals(m.lit, methodCall) && !p.equals(m.lit, methodPrompt) {
			if p.sumOf(m) != method {
				p.addCandidate(m.lit, value{})
			}
			continue
		}
		for j := range p.toolNames.n {
			n := &p.toolNames.list[j]
			if p.sumOf(m) != method || p.sumOf(n) != name {
				p.addCandidate(m.lit, n.lit)
			}
		}
	}
}

// addCandidate adds one reading, at the end of the list or, when it is full,
// in its last place, which the newest strings reach.
func (p *reading) addCandidate(method, name value) {
	c, from := &p.q.candidates, p.cur.candidates[0]
	if len(*c)-from == maxCandidates {
		*c = (*c)[:len(*c)-1]
	}
	*c = append(*c, pair{method, name})
	p.cur.candidates[1] = len(*c)
}
