package verify

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A head is the first part of a record's line.
type head struct {
	kind    audit.Kind
	session string
	seq     uint64
	hasSeq  bool
	at      moment
}

// A moment is the part of a record's id that is its time. Of two the later one is
// greater; that of an id of another form is zero.
type moment [13]byte

func (m moment) time() time.Time { return audit.TimeOfID(string(m[:]) + "-7000-8000-000000000000") }

var errNoRecord = errors.New("line is no record")

// readHead reads a record's line up to its ts. The leaf covers the rest, and
// reading it would take ten times as long.
func readHead(line []byte) (h head, err error) {
	var bad error
	walk := jsontext.Members(line, func(name, v []byte) bool {
		switch string(name) {
		case "line":
			bad = errNoRecord
		case "kind":
			h.kind = audit.Kind(jsontext.Unquote(v))
		case "record_id":
			if len(v) == len(`"019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e"`) {
				copy(h.at[:], v[1:])
			}
		case "session_id":
			h.session = jsontext.Unquote(v)
		case "seq":
			h.seq, bad = strconv.ParseUint(string(v), 10, 64)
			h.hasSeq = bad == nil
		case "ts":
			return false
		}
		return bad == nil
	})
	if err = errors.Join(walk, bad); err == nil && (h.kind == "" || !h.hasSeq) {
		err = errNoRecord
	}
	return h, err
}

// SessionOf returns the session that a line says it is of, and whether the line is
// a whole record. The session of another line is a guess, "" if there is none.
func SessionOf(line []byte) (id string, record bool) {
	h, err := readHead(line)
	if err != nil || !audit.Check(line) {
		return word(line, "session_id"), false
	}
	return h.session, true
}

// describe says which record a line is, for people: its tool and its time. The line
// may be damaged; its words are untrusted.
func describe(line []byte) string {
	what := ""
	for _, name := range []string{"tool", "method", "kind"} {
		if what = word(line, name); what != "" {
			break
		}
	}
	ts := word(line, "ts")
	if t, err := time.Parse(time.RFC3339Nano, ts); err == nil {
		ts = t.UTC().Format("2006-01-02 15:04:05")
	} else {
		ts = ""
	}
	switch {
	case what == "":
		return ts
	case ts == "":
		return what
	}
	return what + ", " + ts
}

// word finds the first text member of that name, without parsing.
func word(line []byte, name string) string {
	_, rest, found := bytes.Cut(line, []byte(`"`+name+`":"`))
	if !found {
		return ""
	}
	text, _, found := bytes.Cut(rest, []byte(`"`))
	if !found || len(text) > 100 {
		return ""
	}
	return string(text)
}
