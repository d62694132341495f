package verify

import (
	"bytes"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"golang.org/x/mod/sumdb/note"
)

// A start is a version of the session's first record.
type start struct {
	leaf     evidence.Hash
	hostName string
	evidence evidence.Session
	err      error // of its evidence or the host's signature; evidence.ErrUnsigned

	key, host note.Verifier // nil: none
	signs     bool          // there was a key
}

// readStart reads the line of a session_start.
func readStart(line []byte) start {
	var b start
	r, err := audit.Parse(bytes.Clone(line))
	if err == nil {
		b.hostName = r.Host
		b.read(&r)
	} else {
		b.err = err
	}
	b.leaf = evidence.StartLeaf(line, &b.evidence)
	return b
}

// keptStart reads what is kept of a session_start that is here no more.
func keptStart(session string, leaf evidence.Hash, kept audit.JSON) start {
	b := start{leaf: leaf}
	b.read(&audit.Record{SessionID: session, Evidence: kept})
	b.hostName, _, _ = strings.Cut(strings.TrimPrefix(b.evidence.Origin, "auditproxy/"), "/")
	return b
}

// read reads the evidence of a session_start.
func (b *start) read(r *audit.Record) {
	if b.evidence, b.err = evidence.ReadSession(r); b.err != nil {
		return
	}
	b.err = b.evidence.Verify()
	b.key, b.host = verifierOf(b.evidence.Key), verifierOf(b.evidence.HostKey)
	b.signs = b.key != nil
}

// shrink gives up what is of no use once all records were read: of a year there are
// many sessions.
func (b *start) shrink() {
	b.key, b.host, b.hostName = nil, nil, strings.Clone(b.hostName) // of the line
	b.evidence = evidence.Session{HostKey: b.evidence.HostKey, HostSeq: b.evidence.HostSeq, Previous: b.evidence.Previous}
}

// signed reports whether a key has signed a checkpoint of the session.
func (b *start) signed(key note.Verifier, signed []byte) bool {
	if key == nil {
		return false
	}
	c, _, err := evidence.OpenCheckpoint(signed, note.VerifierList(key))
	return err == nil && c.Origin == b.evidence.Origin
}

// verifierOf returns the verifier of a key, nil if it is none.
func verifierOf(key string) note.Verifier {
	v, err := note.NewVerifier(key)
	if err != nil {
		return nil
	}
	return v
}

// A checkpoint is that of a record of the session, with a good signature.
type checkpoint struct {
	evidence.Checkpoint
	seq    uint64 // of its record
	byHost bool
}
