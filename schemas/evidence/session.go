package evidence

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"golang.org/x/mod/sumdb/note"
)

// A Session is the evidence of a record of kind session_start.
type Session struct {
	Origin   string    `json:"origin"`   // of the session's checkpoints
	Key      string    `json:"key"`      // verifier key of the session, which only its process could sign with
	HostKey  string    `json:"host_key"` // verifier key of the host
	HostSeq  uint64    `json:"host_seq"` // 1, 2, 3… over the sessions of a spool directory
	Previous *Previous `json:"previous"` // nil for the first session of a spool directory
	HostSig  string    `json:"host_sig"` // of all above, by the host's key: base64, as in a note
}

// A Previous is the session before one, in the same spool directory.
type Previous struct {
	SessionID string `json:"session_id"`
	Leaf      Hash   `json:"leaf"` // of its session_start
}

// text is what the host signs. It is no checkpoint: its second line is no number.
func (s *Session) text() string {
	previous := "-\n-\n"
	if s.Previous != nil {
		previous = s.Previous.SessionID + "\n" + s.Previous.Leaf.String() + "\n"
	}
	return "auditproxy/session_start\n" + s.Origin + "\n" + s.Key + "\n" + s.HostKey + "\n" + strconv.FormatUint(s.HostSeq, 10) + "\n" + previous
}

// Sign sets HostSig. The signer's key is HostKey.
func (s *Session) Sign(host note.Signer) error {
	sig, err := signText(s.text(), host)
	if err != nil {
		return fmt.Errorf("signing the session: %w", err)
	}
	s.HostSig = sig
	return nil
}

// Verify checks HostSig by HostKey. Whether to trust HostKey is the caller's to
// know.
func (s *Session) Verify() error {
	known, err := note.NewVerifier(s.HostKey)
	if err != nil {
		return fmt.Errorf("reading the host's key %q: %w", s.HostKey, err)
	}
	if _, err := note.NewVerifier(s.Key); err != nil {
		return fmt.Errorf("reading the session's key %q: %w", s.Key, err)
	}
	// Package note skips line feeds in a key, which a trust file cannot have.
	if strings.ContainsAny(s.HostKey+s.Key, "\r\n") {
		return fmt.Errorf("reading the host's key %q and the session's: they are not on one line", s.HostKey)
	}
	if err := openText(s.text(), s.HostSig, known); err != nil {
		return fmt.Errorf("checking the host's signature: %w", err)
	}
	return nil
}

// signText returns the signature of a text as package note writes it, without the key's
// name.
func signText(text string, by note.Signer) (sig string, err error) {
	signed, err := note.Sign(&note.Note{Text: text}, by)
	if err != nil {
		return "", err
	}
	_, line, _ := strings.Cut(string(signed), "\n\n")
	return strings.TrimSuffix(line[strings.LastIndexByte(line, ' ')+1:], "\n"), nil
}

// openText checks a signature by signText.
func openText(text, sig string, by note.Verifier) error {
	_, err := note.Open([]byte(text+"\n— "+by.Name()+" "+sig+"\n"), note.VerifierList(by))
	return err
}

// JSON returns the evidence as a record has it.
func (s *Session) JSON() audit.JSON {
	dst := jsontext.AppendQuote([]byte(`{"origin":`), s.Origin)
	dst = jsontext.AppendQuote(append(dst, `,"key":`...), s.Key)
	dst = jsontext.AppendQuote(append(dst, `,"host_key":`...), s.HostKey)
	dst = strconv.AppendUint(append(dst, `,"host_seq":`...), s.HostSeq, 10)
	if s.Previous != nil {
		dst = jsontext.AppendQuote(append(dst, `,"previous":{"session_id":`...), s.Previous.SessionID)
		dst = append(dst, `,"leaf":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, s.Previous.Leaf[:]), `"}`...)
	}
	dst = jsontext.AppendQuote(append(dst, `,"host_sig":`...), s.HostSig)
	return audit.JSON(append(dst, '}'))
}

// ErrUnsigned means that a record has no evidence: it is from a proxy without it.
var ErrUnsigned = errors.New("the record has no evidence")

// ReadSession reads the evidence of a session_start, without regard to its
// signature. It returns ErrUnsigned if there is none.
func ReadSession(r *audit.Record) (s Session, err error) {
	if r.Evidence == "" {
		return s, ErrUnsigned
	}
	if err := json.Unmarshal([]byte(r.Evidence), &s); err != nil {
		return s, fmt.Errorf("reading the evidence of session %q: %w", r.SessionID, err)
	}
	if id, ok := SessionOf(s.Origin); !ok || id != r.SessionID {
		return s, fmt.Errorf("reading the evidence of session %q: its origin is %q", r.SessionID, s.Origin)
	}
	return s, nil
}
