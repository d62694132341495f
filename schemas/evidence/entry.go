package evidence

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// startWord begins the entry of a session's start. A checkpoint begins with its
// origin, which has other words.
const startWord = "auditproxy/session_start"

// An Entry is what a central log says of a session. An entry of a checkpoint is
// the signed checkpoint itself.
type Entry struct {
	Origin string

	// Of a session's start; else HostSeq is 0.
	HostKey string
	HostSeq uint64
	Leaf    Hash // of its session_start

	Checkpoint []byte // signed; nil for a start
}

// Bytes returns the entry as a log has it.
func (e Entry) Bytes() []byte {
	if e.Checkpoint != nil {
		return e.Checkpoint
	}
	return []byte(startWord + "\n" + e.Origin + "\n" + e.HostKey + "\n" + strconv.FormatUint(e.HostSeq, 10) + "\n" + e.Leaf.String() + "\n")
}

// ReadEntry reads an entry of a log.
func ReadEntry(b []byte) (Entry, error) {
	rest, start := strings.CutPrefix(string(b), startWord+"\n")
	if !start {
		c, err := ReadCheckpoint(b)
		return Entry{Origin: c.Origin, Checkpoint: b}, err
	}
	lines := strings.Split(rest, "\n")
	if len(lines) != 5 || lines[4] != "" {
		return Entry{}, errors.New("reading an entry: it has not five lines")
	}
	seq, err := strconv.ParseUint(lines[2], 10, 64)
	if err != nil || seq == 0 {
		return Entry{}, fmt.Errorf("reading an entry: %q is not the number of a session", lines[2])
	}
	leaf, err := parseHash(lines[3])
	return Entry{Origin: lines[0], HostKey: lines[1], HostSeq: seq, Leaf: leaf}, err
}
