package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"auditproxy/schemas/audit"

	"golang.org/x/mod/sumdb/note"
)

// A stand-in is a short record that takes the place of one that Kafka refused. Its evidence
// ends with the member that standsFor begins: the leaf of the refused record, so that the
// session's tree can still be checked, and a signature with the host's key, so that nobody
// who can only write to a copy turns a record into a short one.
const standsFor = `"stands_for":{"leaf":"`

const (
	standsSig  = `","sig":"`
	sigSize    = 4 + 64 // a hash of the key, and the signature: see package note
	standsTail = len(standsFor) + (32+2)/3*4 + len(standsSig) + (sigSize+2)/3*4 + len(`"}}`)
)

// standInText is what the host signs: before is the line up to standsFor. It is neither a
// checkpoint nor the text of a session.
func standInText(before []byte, leaf Hash) string {
	sum := sha256.Sum256(before)
	return "auditproxy/stands_for\n" + leaf.String() + "\n" + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// SignStandIn makes r, which is otherwise complete, the stand-in of the record with that
// leaf. What r has of evidence stays.
func SignStandIn(r *audit.Record, leaf Hash, host note.Signer) error {
	own := "{"
	if r.Evidence != "" {
		own = strings.TrimSuffix(string(r.Evidence), "}") + ","
	}
	member := func(sig string) audit.JSON {
		return audit.JSON(own + standsFor + leaf.String() + standsSig + sig + `"}}`)
	}
	r.Evidence = member(base64.StdEncoding.EncodeToString(make([]byte, sigSize)))
	before, ok := beforeStandsFor(bytes.TrimSuffix(audit.AppendRecord(nil, r), []byte("\n")))
	if !ok {
		return errors.New("signing a short record: its evidence is not its last member")
	}
	sig, err := signText(standInText(before, leaf), host)
	if err != nil {
		return fmt.Errorf("signing a short record: %w", err)
	}
	r.Evidence = member(sig)
	return nil
}

// beforeStandsFor returns the part of a line before standsFor, and whether it has that.
func beforeStandsFor(line []byte) ([]byte, bool) {
	i := len(line) - checksumTail - standsTail
	if i < 0 || !bytes.HasPrefix(line[i:], []byte(standsFor)) {
		return nil, false
	}
	return line[:i], true
}

// IsStandIn reports whether line says that it is a stand-in, whoever signed that.
func IsStandIn(line []byte) bool {
	_, ok := beforeStandsFor(line)
	return ok
}

// OpenStandIn returns the leaf of the record that line stands for, and whether it is a
// stand-in that the host signed.
func OpenStandIn(line []byte, host note.Verifier) (leaf Hash, ok bool) {
	before, ok := beforeStandsFor(line)
	if !ok || host == nil || !audit.Check(line) {
		return leaf, false
	}
	rest := string(line[len(before)+len(standsFor) : len(line)-checksumTail])
	claimed, sig, found := strings.Cut(strings.TrimSuffix(rest, `"}}`), standsSig)
	leaf, err := parseHash(claimed)
	if err != nil || !found || !canonical([]byte(sig)) {
		return leaf, false
	}
	return leaf, openText(standInText(before, leaf), sig, host) == nil
}

// StartLeaf returns the leaf of the session_start that line is or stands for, by its own
// host's key. Whether to trust that is the caller's to know.
func StartLeaf(line []byte, s *Session) Hash {
	if IsStandIn(line) {
		if host, err := note.NewVerifier(s.HostKey); err == nil {
			if leaf, ok := OpenStandIn(line, host); ok {
				return leaf
			}
		}
	}
	return Leaf(line)
}
