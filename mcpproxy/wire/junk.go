package wire

import "unicode/utf8"

// fail makes junk of what cannot be read, up to the end of the line. What is
// known of a message that was too deep, or begun already, is told.
func (p *reading) fail(off int64) {
	if p == p.q.line {
		p.q.broken = true
	}
	from := off
	if p.odd >= 0 {
		from = p.odd
	}
	if p.open {
		from = p.item
	}
	flags := p.oddities | p.flags
	if p.inMessage && (p.over != nil || flags&Depth != 0) {
		p.endMessage(off)
		from = off
	}
	if p.junkSum != nil {
		from = p.item
	}
	p.inMessage, p.open = false, false
	if !p.junk {
		p.junk, p.junkFrom, p.junkFlags = true, from, 0
	}
	p.junkFlags |= flags
	p.junkTo = off
}

// addJunk adds bytes between messages to those to be told.
func (p *reading) addJunk(from, to int64, flags Anomaly) {
	if p.junk && to-p.junkFrom > keptJunk || p.junkSum != nil {
		p.flushJunk()
	}
	if !p.junk {
		p.junk, p.junkFrom, p.junkFlags = true, from, 0
	}
	p.junkTo = to
	p.junkFlags |= flags
	if p.junkSum != nil {
		p.junkSum.write(p.w, to)
		p.tellJunk(p.junkSum.sum())
	}
}

func (p *reading) flushJunk() {
	if p.junk {
		p.tellJunk(nil)
	}
}

func (p *reading) tellJunk(sum []byte) {
	p.junk = false
	if p.junkFrom == p.junkTo {
		return // all of it was told as a message
	}
	if p.junkFlags&NotJSON != 0 {
		p.junkFlags &^= NotRPC
	}
	if sum == nil && !utf8.Valid(p.w.slice(p.junkFrom, p.junkTo)) {
		p.junkFlags |= InvalidUTF8
	}
	p.q.pending = append(p.q.pending, told{state: Junk, off: p.junkFrom, end: p.junkTo, anomalies: p.junkFlags, sum: sum})
}

// cut ends what is under way at off, as a reader does that starts afresh after
// it. The junk that this makes is told only where told is true.
func (p *reading) cut(off int64, told bool) {
	p.lineFeed(off)
	switch {
	case p.st == dead:
	case p.open:
		p.scanner.fail(off, NotJSON)
	case p.odd >= 0:
		p.addJunk(p.odd, off, p.flags|NotJSON)
	}
	if told && p.st == dead {
		p.tellDead(off)
	}
	if told {
		p.flushJunk()
	}
	p.reset()
}

// tellDead tells that the bytes up to an offset are junk after an error.
func (p *reading) tellDead(to int64) {
	p.junkTo = to
	var sum []byte
	if p.junkSum != nil {
		p.junkSum.write(p.w, to)
		sum = p.junkSum.sum()
	}
	p.tellJunk(sum)
}
