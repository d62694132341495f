package spool

import (
	"bytes"
	"hash/maphash"
	"strconv"

	"auditproxy/schemas/audit"
)

// After a failed sync the lines since the last good sync are written again,
// to a new segment. That segment starts with a line that marks it, so that
// reading costs nothing where no sync has failed.
const repeatPrefix = `{"line":"repeat","v":1,"segment":`

// appendRepeat appends the line "from here on this segment may repeat lines
// of segment no or later ones".
func appendRepeat(dst []byte, no uint32) []byte {
	from := len(dst)
	dst = append(dst, repeatPrefix...)
	dst = strconv.AppendUint(dst, uint64(no), 10)
	return audit.Seal(append(dst, '}'), from)
}

// repeatFrom reads the segment's number from a line that appendRepeat made.
func repeatFrom(line []byte) (uint32, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(repeatPrefix))
	if !ok {
		return 0, false
	}
	digits, _, _ := bytes.Cut(rest, []byte(","))
	no, err := strconv.ParseUint(string(digits), 10, 32)
	return uint32(no), err == nil
}

// repeats holds hashes of the lines that a segment may repeat: 16 to 32 bytes
// for each.
type repeats struct {
	seed    maphash.Seed
	lines   map[uint64]struct{} // hash of a line
	records map[uint64]uint64   // hash of a record's id → of its line
}

func (rep *repeats) add(item Item) {
	id := RecordID(item.Line)
	if id == nil {
		return
	}
	sum := maphash.Bytes(rep.seed, item.Line)
	rep.lines[sum] = struct{}{}
	if item.Record() {
		rep.records[maphash.Bytes(rep.seed, id)] = sum
	}
}

// check marks a line of an earlier segment, and one that differs from it.
// Lines without a record_id are returned again: they describe the lines after
// them.
func (rep *repeats) check(item Item) Item {
	id := RecordID(item.Line)
	if id == nil {
		return item
	}
	sum := maphash.Bytes(rep.seed, item.Line)
	if _, item.again = rep.lines[sum]; item.again {
		return item
	}
	if _, told := rep.records[maphash.Bytes(rep.seed, id)]; told && item.Record() {
		item.Damage = Conflicted
	}
	return item
}
