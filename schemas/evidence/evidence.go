// Package evidence is the published form of what proves that no record was
// changed: trees of records, signed checkpoints, keys and the trust in them.
//
// Each session has a Merkle tree (RFC 6962) of its records' lines. The proxy signs
// Checkpoints of it with a key that only its memory has; the host's key signs, in
// the session's first record, that key and the session's place among the sessions
// of its spool. Formats are those of C2SP where it has one: signed-note,
// tlog-checkpoint, tlog-proof.
//
// The files, from the top: proof, entry, trust, standin, record, session, checkpoint, tree, evidence.
package evidence

import "golang.org/x/mod/sumdb/note"

// verifier is what one verifier key can verify.
func verifier(key string) (note.Verifiers, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return nil, err
	}
	return note.VerifierList(v), nil
}
