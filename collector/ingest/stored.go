package ingest

import (
	"fmt"
	"time"

	"auditproxy/schemas/audit"
)

// A Stored is a place of a record that a store has had.
type Stored struct {
	Session string
	Seq     uint64
	TS      time.Time
	Source
}

// StoredText is a place of a record that was stored, for the metadata of an offset; "" if
// its session has no id of a proxy, which may be long.
func StoredText(r *Row) string {
	if audit.TimeOfID(r.Record.SessionID).IsZero() {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d:%d", r.Record.SessionID, r.Record.Seq, r.Source.Offset, r.Record.TS.UnixMicro())
}

// ParseStored reads what StoredText wrote. ok: it was.
func ParseStored(text string) (s Stored, ok bool) {
	const id = len("01a21fbc-856a-782c-ba78-44b847511c88")
	if len(text) < id || audit.TimeOfID(text[:id]).IsZero() {
		return s, false
	}
	var micros int64
	s.Session = text[:id]
	n, err := fmt.Sscanf(text[id:], ":%d:%d:%d", &s.Seq, &s.Source.Offset, &micros)
	s.TS = time.UnixMicro(micros)
	return s, n == 3 && err == nil
}
