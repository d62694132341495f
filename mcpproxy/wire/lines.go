package wire

import (
	"math"
	"unicode/utf8"
)

// The reports of the opaque bytes of a line.
type telling uint8

const (
	tellNothing telling = iota // except for a Begun one
	tellContent                // unless it is only structure
	tellAll
)

// bareCR reports a CR that is white space to this reading.
func (p *reading) bareCR(off int64) {
	p.carriageReturn(off)
	p.afterCR = true
	switch {
	case p.st == dead:
		p.opaqueFlags |= BareCR
	case p.open:
		p.flags |= BareCR
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
		p.shared.lineFlags |= p.flags // white space holds no call
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

// tellBroken reports the end of an oversize message that breaks off.
func (p *reading) tellBroken(off int64) {
	if p.over != nil {
		p.tellOversize(Ended, off)
		p.over = nil
	}
}

// tellOpaque reports the opaque bytes of the line that ends at off.
func (p *reading) tellOpaque(off int64, tell telling, open bool) {
	if !p.opaque || p.opaqueFrom == off || tell == tellNothing && !p.announced {
		return
	}
	t := pendingMessage{state: Opaque, off: p.opaqueFrom, end: off, anomalies: p.opaqueFlags, open: open}
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
	p.shared.pending = append(p.shared.pending, t)
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

// advance is called once everything before off was scanned.
func (p *reading) advance(off int64) {
	if p.limit() <= off {
		p.exceed(off)
	}
	if p.opaqueSum != nil {
		p.opaqueSum.write(p.w, off)
		p.announce(off)
	}
	if p.over != nil {
		p.trim(off)
	}
	if p.streaming() && off-p.tok > keptValue {
		p.tok = -1
	}
}

// exceed starts the handling of oversize bytes.
func (p *reading) exceed(off int64) {
	if from := p.unread(); from >= 0 && p.opaqueSum == nil && from+p.shared.limit <= off {
		if from == p.blank() {
			p.addOpaque(from, p.flags|NotRPC) // it is more than is kept
		}
		p.opaqueSum = newDigest(p.shared.hash, from)
	}
	if !p.inMessage || p.over != nil {
		return
	}
	if p.first == '{' && p.item+p.shared.limit <= off {
		p.item = p.cur.off // the white space before it is no longer kept
	}
	if p.cur.off+p.shared.limit <= off {
		p.beginOversize(off)
	}
}

// announce reports opaque bytes before more than the limit of them is
// forwarded.
func (p *reading) announce(off int64) {
	if p.open && p.residue {
		p.addOpaque(p.item, p.oddities|NotRPC)
	}
	if p.announced || !p.opaque || p == p.shared.cr && p != p.shared.line {
		return
	}
	p.announced = true
	m := &Message{State: Begun, Off: p.opaqueFrom, End: min(off, p.opaqueFrom+p.shared.limit), Open: true}
	if p.opaqueSum.from == m.End {
		m.Sum = p.opaqueSum.sum()
	}
	flags := opaqueAnomalies(p.opaqueFlags | Oversize)
	p.shared.pending = append(p.shared.pending, pendingMessage{state: Begun, off: m.Off, end: m.End, anomalies: flags, whole: m})
}

func opaqueAnomalies(a Anomaly) Anomaly {
	if a&NotJSON != 0 {
		a &^= NotRPC
	}
	return a
}

// limit is the offset at which the message or line under way becomes oversize.
func (p *reading) limit() int64 {
	at := int64(math.MaxInt64)
	if p.inMessage && p.over == nil {
		at = p.cur.off + p.shared.limit
		if p.first == '{' && !p.crossed {
			at = p.item + p.shared.limit
		}
	}
	if from := p.unread(); from >= 0 && p.opaqueSum == nil {
		at = min(at, from+p.shared.limit)
	}
	return at
}

// unread is where the bytes of the line start that are opaque or may turn out
// to be, -1 for none. An object is a message as long as it can be.
func (p *reading) unread() int64 {
	switch {
	case p.opaque:
		return p.opaqueFrom
	case p.open && p.first != '{' && !p.crossed:
		return p.item
	}
	return p.blank()
}

// blank is where odd white space starts that no value follows yet, -1 for none.
// It belongs to what follows, if that is opaque.
func (p *reading) blank() int64 {
	if p.open || p.opaque || p.st == dead {
		return -1
	}
	return p.odd
}

// held is the start of the bytes that must wait for the end of the line, where
// they are reported. A message behind opaque bytes waits with them: readers of
// lines need the LF, and go-sdk ends the connection at a value that another one
// follows on its line.
func (p *reading) held() int64 {
	switch {
	case p.announced:
	case p.opaque:
		return p.opaqueFrom
	case p.open && p.residue && !p.crossed:
		return p.item
	}
	return math.MaxInt64
}

// streaming reports that more is under way than can be held back.
func (p *reading) streaming() bool { return p.over != nil || p.opaqueSum != nil }

// keep is the first offset of the bytes that p still needs.
func (p *reading) keep() int64 {
	at := int64(math.MaxInt64)
	if p.opaque && p.opaqueSum == nil {
		at = p.opaqueFrom
	}
	if from := p.blank(); from >= 0 && p.opaqueSum == nil {
		at = min(at, from)
	}
	if p.opaqueSum != nil {
		at = min(at, p.opaqueSum.from) // a line end is not in it yet
	}
	if p.over != nil && p.over.sum != nil {
		at = min(at, p.over.sum.from)
	}
	if p.st == dead {
		return at
	}
	if p.st >= inString && p.tok >= 0 {
		at = min(at, p.tok)
	}
	switch {
	case p.over != nil:
		if p.over.keep >= 0 && p.over.head == nil {
			at = min(at, p.over.keep)
		}
		if p.over.id != nil {
			at = min(at, p.over.idTo)
		}
		if p.over.digest != nil {
			at = min(at, p.over.digest.from)
		}
	case p.inMessage:
		at = min(at, p.cur.off)
	}
	if p.open && p.over == nil && p.opaqueSum == nil && !p.crossed {
		at = min(at, p.item)
	}
	return at
}
