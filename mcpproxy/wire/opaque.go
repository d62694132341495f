package wire

import "unicode/utf8"

// fail makes the line opaque, from the value that cannot be read. If that value
// was reported as Begun, the rest of the line is part of it.
func (p *reading) fail(off int64) {
	p.failed = off
	if p == p.q.line {
		p.q.broken = true
	}
	from := off
	if p.odd >= 0 {
		from = p.odd
	}
	if p.open && !p.crossed {
		from = p.item
	}
	oversize := p.inMessage && p.over != nil
	if oversize {
		p.idAnomalies()
	}
	flags := p.oddities | p.flags
	p.inMessage, p.open = false, false
	if !oversize {
		p.addOpaque(from, flags)
		return
	}
	p.cur.anomalies = flags
	p.over.broken, p.over.keep, p.over.head, p.over.digest = true, -1, nil, nil
	if !p.opaque {
		p.opaqueSum = nil
	}
}

// addOpaque makes the rest of the line opaque, from an offset on unless it was
// before. Each line of a value from an earlier line is reported by itself.
func (p *reading) addOpaque(from int64, flags Anomaly) {
	if p.crossed {
		return
	}
	if !p.opaque {
		p.opaque, p.opaqueFrom, p.opaqueFlags = true, from, 0
	}
	p.opaqueFlags |= flags
}

// announce reports opaque bytes before more than the limit of them is
// forwarded.
func (p *reading) announce(off int64) {
	if p.open && p.residue {
		p.addOpaque(p.item, p.oddities|NotRPC)
	}
	if p.announced || !p.opaque || p == p.q.cr && p != p.q.line {
		return
	}
	p.announced = true
	m := &Message{State: Begun, Off: p.opaqueFrom, End: min(off, p.opaqueFrom+p.q.limit), Open: true}
	if p.opaqueSum.from == m.End {
		m.Sum = p.opaqueSum.sum()
	}
	flags := opaqueAnomalies(p.opaqueFlags | Oversize)
	p.q.pending = append(p.q.pending, told{state: Begun, off: m.Off, end: m.End, anomalies: flags, whole: m})
}

func opaqueAnomalies(a Anomaly) Anomaly {
	if a&NotJSON != 0 {
		a &^= NotRPC
	}
	return a
}

// The reports of the opaque bytes of a line.
type telling uint8

const (
	tellNothing telling = iota // except for a Begun one
	tellContent                // unless it is only structure
	tellAll
)

// tellOpaque reports the opaque bytes of the line that ends at off.
func (p *reading) tellOpaque(off int64, tell telling, open bool) {
	if !p.opaque || p.opaqueFrom == off || tell == tellNothing && !p.announced {
		return
	}
	t := told{state: Opaque, off: p.opaqueFrom, end: off, anomalies: p.opaqueFlags, open: open}
	if p.opaqueSum != nil {
		p.opaqueSum.write(p.w, off)
		t.sum = p.opaqueSum.sum()
		t.anomalies |= Oversize
	} else {
		b := p.w.slice(t.off, off)
		if tell == tellContent && isStructure(b) {
			return
		}
		if !utf8.Valid(b) {
			t.anomalies |= InvalidUTF8
		}
	}
	t.anomalies = opaqueAnomalies(t.anomalies)
	p.q.pending = append(p.q.pending, t)
}

// isStructure reports whether b has nothing in it that could name anything.
func isStructure(b []byte) bool {
	for _, c := range b {
		switch c {
		case '{', '}', '[', ']', ',', ':', ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return true
}

// tellBroken reports the end of an oversize message that breaks off.
func (p *reading) tellBroken(off int64) {
	if p.over != nil {
		p.tellOversize(Ended, off)
		p.over = nil
	}
}

// cut ends the value under way at off, as a reader does that restarts after it.
func (p *reading) cut(off int64, tell telling) {
	p.lineFeed(off)
	switch {
	case p.st == dead:
	case p.open:
		p.scanner.fail(off, NotJSON)
	case p.odd >= 0:
		p.q.lineFlags |= p.flags // white space holds no call
	}
	p.tellBroken(off)
	p.tellOpaque(off, tell, false)
	p.reset()
}

// cross continues the value under way over the end of a line at off.
func (p *reading) cross(off int64, tell telling) {
	message := false
	if !p.opaque && !p.crossed && p.over == nil {
		from := p.item
		if message = p.inMessage && !p.residue; message && p.cur.off != from {
			from, p.opaqueSum = p.cur.off, nil
		}
		p.addOpaque(from, 0)
	}
	p.opaqueFlags |= p.oddities | p.flags | NotJSON
	p.tellOpaque(off, tell, message)
	p.opaque, p.announced, p.opaqueSum = false, false, nil
	p.crossed, p.explains = true, false
	p.oddities |= MultiLine
	p.afterCR = false
}
