package verify

import (
	"errors"
	"fmt"
	"strconv"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A head is the first part of a line.
type head struct {
	line            string
	kind            audit.Kind
	record, session string
	seq, call       uint64
	hasSeq, hasCall bool
}

// readHead reads a line up to its ts. The rest has passed the checksum, and
// reading it would take ten times as long.
func readHead(line []byte) (h head, err error) {
	var bad error
	walk := jsontext.Members(line, func(name, v []byte) bool {
		switch string(name) {
		case "line":
			h.line = jsontext.Unquote(v)
		case "kind":
			h.kind = audit.Kind(jsontext.Unquote(v))
		case "record_id":
			h.record = jsontext.Unquote(v)
		case "session_id":
			h.session = jsontext.Unquote(v)
		case "seq":
			h.hasSeq = true
			h.seq, bad = strconv.ParseUint(string(v), 10, 64)
		case "call_no":
			h.hasCall = true
			h.call, bad = strconv.ParseUint(string(v), 10, 64)
		case "ts":
			return false
		}
		return bad == nil
	})
	if err = errors.Join(walk, bad); err != nil {
		return h, fmt.Errorf("reading the line: %w", err)
	}
	if h.line == audit.LineRecord && h.kind == "" {
		return h, errors.New("line is neither a record nor says what it is")
	}
	return h, nil
}
