package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"golang.org/x/mod/sumdb/note"
)

// evidenceMember begins a checkpoint in a record's line. It is the last member
// before the checksum.
const evidenceMember = `,"evidence":{"checkpoint":`

// checksumTail is how many bytes a line has from its checksum on.
const checksumTail = len(`,"crc":"00000000"}`)

// SignRecord makes c the evidence of r, a record of kind checkpoint that is
// otherwise complete. The signature covers the whole record: no later checkpoint
// covers that of a session's end.
func (c Checkpoint) SignRecord(r *audit.Record, by note.Signer) error {
	r.Evidence = ""
	line := bytes.TrimSuffix(audit.AppendRecord(nil, r), []byte("\n"))
	c.Record = sha256.Sum256(line[:len(line)-checksumTail])
	signed, err := c.Sign(by)
	if err != nil {
		return fmt.Errorf("signing a checkpoint: %w", err)
	}
	r.Evidence = checkpointMember(signed)
	return nil
}

func checkpointMember(signed []byte) audit.JSON {
	return audit.JSON(append(jsontext.AppendQuote([]byte(`{"checkpoint":`), string(signed)), '}'))
}

// CheckpointOf returns the signed checkpoint in a record of kind checkpoint.
func CheckpointOf(r *audit.Record) ([]byte, error) {
	var member struct {
		Checkpoint string `json:"checkpoint"`
	}
	if r.Evidence == "" {
		return nil, ErrUnsigned
	}
	if err := json.Unmarshal([]byte(r.Evidence), &member); err != nil {
		return nil, fmt.Errorf("reading the evidence of record %q: %w", r.RecordID, err)
	}
	return []byte(member.Checkpoint), nil
}

// ErrOtherRecord means that a checkpoint was signed in another record than the
// one that has it, or in another form of it.
var ErrOtherRecord = errors.New("the checkpoint was signed in another record")

// CheckRecord reports ErrOtherRecord unless line is exactly the record that c,
// which signed is the signature of, was signed in.
func (c Checkpoint) CheckRecord(line, signed []byte) error {
	i := bytes.LastIndex(line, []byte(evidenceMember))
	if i < 0 || !audit.Check(line) || !signedOnce(signed) || sha256.Sum256(line[:i]) != [sha256.Size]byte(c.Record) ||
		string(line[i+len(`,"evidence":`):len(line)-checksumTail]) != string(checkpointMember(signed)) {
		return ErrOtherRecord
	}
	return nil
}

// signedOnce reports whether a note has one signature, in the only encoding that
// package note writes: it reads others too.
func signedOnce(signed []byte) bool {
	_, signature, _ := bytes.Cut(signed, []byte("\n\n"))
	line, rest, ended := bytes.Cut(signature, []byte("\n"))
	return ended && len(rest) == 0 && canonical(line)
}

// canonical reports whether the base64 of a signature's line is the only one of its
// bytes.
func canonical(line []byte) bool {
	_, err := base64.StdEncoding.Strict().DecodeString(string(line[bytes.LastIndexByte(line, ' ')+1:]))
	return err == nil && !bytes.ContainsRune(line, '\r')
}
