package spool

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
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

// loadRepeats reads the segments from no to the one before the reader's.
// Lines that cannot be read there were not returned before either.
func (r *Reader) loadRepeats(no uint32) *repeats {
	rep := &repeats{maphash.MakeSeed(), make(map[uint64]struct{}), make(map[uint64]uint64)}
	earlier := &Reader{fs: r.fs, session: r.session, plain: true, from: Position{max(no, 1), 0}}
	defer earlier.Close()
	for {
		item, err := earlier.Next()
		if err != nil || item.Pos.Segment >= r.seg {
			return rep
		}
		if item.Damage == Intact {
			rep.add(item)
		}
	}
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

// startRepeats reads the first line of a segment that the reader starts in
// the middle of.
func (r *Reader) startRepeats() error {
	if r.off == 0 || r.plain {
		return nil
	}
	head := make([]byte, 128)
	n, err := r.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading segment %d: %w", r.seg, err)
	}
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	if from, ok := repeatFrom(line); ok && audit.Check(line) {
		r.repeats = r.loadRepeats(from)
	}
	return nil
}
