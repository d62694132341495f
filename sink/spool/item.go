package spool

import "bytes"

// Damage is the kind of damage of an Item.
type Damage uint8

// The kinds of damage.
const (
	Intact     Damage = iota
	BadLine           // the line fails its checksum
	LongLine          // the line is longer than audit.MaxLine
	TornEnd           // a segment that has a successor ends without a line feed
	Missing           // segments are missing; Length is their number
	Conflicted        // the line is good, but differs from an earlier one with its record_id
)

func (d Damage) String() string {
	switch d {
	case Intact:
		return "intact"
	case BadLine:
		return "line fails its checksum"
	case LongLine:
		return "line is too long"
	case TornEnd:
		return "line is torn"
	case Missing:
		return "segments are missing"
	case Conflicted:
		return "line contradicts an earlier one"
	}
	return "unknown damage"
}

// An Item is one line of a session, or a place where one should be.
type Item struct {
	// Line is the line without its line feed. It is valid until the next call
	// of Next. Its checksum holds unless Damage is set; otherwise it is
	// untrusted. It is nil for a line that is too long and for missing
	// segments.
	Line   []byte
	Pos    Position // of the line's first byte
	Length int64    // bytes, line feed included
	Damage Damage

	again bool // also in an earlier segment
}

// End returns the position after it.
func (i Item) End() Position { return Position{i.Pos.Segment, i.Pos.Offset + i.Length} }

// Record reports whether the item is a record, as opposed to an intent, a
// context or other line with a "line" member.
func (i Item) Record() bool {
	return (i.Damage == Intact || i.Damage == Conflicted) && !bytes.HasPrefix(i.Line, []byte(`{"line":`))
}

// RecordID returns the record_id of a record or an intent, else nil. It
// aliases line.
func RecordID(line []byte) []byte {
	const member = `"record_id":"`
	// Values that a client controls follow the record_id, see audit.AppendRecord.
	i := bytes.Index(line, []byte(member))
	if i < 0 {
		return nil
	}
	id := line[i+len(member):]
	end := bytes.IndexByte(id, '"')
	if end < 0 {
		return nil
	}
	return id[:end]
}
