package audit

import (
	"errors"
	"fmt"

	"auditproxy/schemas/jsontext"
)

var errNoRecord = errors.New("not a record")

// ParseLine reads a line of the spool, without its line feed. kind is "" for a
// record, else the value of "line", which may be unknown to this program: then
// r is meaningless. Unknown members are skipped. The checksum is not verified,
// see Check. The texts of r are parts of one copy of line, and keep all of it
// in memory.
func ParseLine(line []byte) (kind string, r Record, err error) {
	kind, err = r.parseLine(string(line), false)
	return kind, r, err
}

// parseLine is ParseLine into r, which is empty. bounded refuses values that
// break their members' bounds.
func (r *Record) parseLine(line string, bounded bool) (kind string, err error) {
	r.Duration = -1
	var (
		bad       error
		versioned bool
		next      int // the member after the last one that is known
	)
	err = jsontext.Members(line, func(name, value string) bool {
		versioned = versioned || name == "v"
		switch {
		case name == "line":
			kind, bad = text(value)
		case known(kind):
			if i := findMember(name, next); i >= 0 {
				m := &recordMembers[i]
				bad = m.set(r, value)
				// Short values are bounded only by sign and by words.
				if bounded && bad == nil && (len(value) > MaxWord || value[0] == '-' || m.Words != nil) {
					bad = m.bounds(r)
				}
				next = i + 1
			}
		}
		if bad != nil {
			bad = fmt.Errorf("member %q: %w", name, bad)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err == nil && !versioned && known(kind) {
		err = errNoRecord
	}
	return kind, err
}

// known reports whether members of such a line have the types of a Record's.
func known(kind string) bool {
	switch kind {
	case LineRecord, LineIntent, LineContext, LineTool:
		return true
	}
	return false
}

// Parse reads a record as AppendRecord wrote it, without its line feed. The
// line must pass Check and be a record of a version that this program knows.
func Parse(line []byte) (r Record, err error) {
	if err := r.parse(line, string(line), false); err != nil {
		return Record{}, err
	}
	return r, nil
}

// ParseCopied is Parse into r, which is empty, for a caller that keeps a copy of the
// line: the record's texts are parts of that copy. After an error r is meaningless.
func (r *Record) ParseCopied(line []byte, copied string) error { return r.parse(line, copied, false) }

// ParseBounded is Parse into r, which is empty, for an untrusted line, and a
// caller that keeps a copy of it: the record's texts are parts of that copy. It
// refuses values that break the bounds of their members. After an error r is
// meaningless.
func (r *Record) ParseBounded(line []byte, copied string) error { return r.parse(line, copied, true) }

func (r *Record) parse(line []byte, copied string, bounded bool) error {
	if !Check(line) {
		return errChecksum
	}
	kind, err := r.parseLine(copied, bounded)
	switch {
	case err != nil:
		return err
	case kind != LineRecord || r.Kind == "":
		return errNoRecord
	}
	return nil
}
