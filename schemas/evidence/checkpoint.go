package evidence

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/mod/sumdb/note"
)

// maxNote is the limit on a note in bytes: a checkpoint with the signatures of
// more witnesses than a log has.
const maxNote = 64 << 10

// Origin returns the origin of a session's tree. It is the name of the session's
// key too, so characters of the host's name that a name must not have become
// underscores.
func Origin(host, session string) string { return "auditproxy/" + keyName(host) + "/" + session }

func keyName(host string) string {
	name := strings.Map(func(r rune) rune {
		if r == '+' || r == '/' || r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, host)
	if name == "" {
		return "unknown"
	}
	return name
}

// SessionOf returns the session that an origin names.
func SessionOf(origin string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(origin, "auditproxy/")
	_, id, found := strings.Cut(rest, "/")
	return id, ok && found && id != "" && !strings.Contains(id, "/")
}

// A Checkpoint is the size and hash of a tree, as its log claims them (C2SP
// tlog-checkpoint).
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
	Record Hash // of the record that it is in, see SignRecord; zero: none
}

// recordWord begins the extension line of a checkpoint that a record has.
const recordWord = "record "

// text is the checkpoint's body.
func (c Checkpoint) text() string {
	text := c.Origin + "\n" + strconv.FormatInt(c.Size, 10) + "\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
	if c.Record != (Hash{}) {
		text += recordWord + base64.StdEncoding.EncodeToString(c.Record[:]) + "\n"
	}
	return text
}

// Sign returns the checkpoint as a signed note (C2SP signed-note).
func (c Checkpoint) Sign(by ...note.Signer) ([]byte, error) {
	return note.Sign(&note.Note{Text: c.text()}, by...)
}

// ReadCheckpoint reads a signed checkpoint, without regard to who signed it.
// Extension lines other than that of a record are skipped.
func ReadCheckpoint(signed []byte) (Checkpoint, error) {
	text, _, found := bytes.Cut(signed, []byte("\n\n"))
	if !found || len(signed) > maxNote {
		return Checkpoint{}, errors.New("reading a checkpoint: it is no signed note")
	}
	return parseCheckpoint(string(text) + "\n")
}

// SignerOf returns the name and the hash of the key that a note says it is signed by
// first, without regard to whether it is; nil if that cannot be read.
func SignerOf(signed []byte) []byte {
	_, signatures, _ := bytes.Cut(signed, []byte("\n\n"))
	line, _, _ := bytes.Cut(signatures, []byte("\n"))
	i := bytes.LastIndexByte(line, ' ')
	sig, err := base64.StdEncoding.DecodeString(string(line[i+1:]))
	if err != nil || len(sig) < 4 {
		return nil
	}
	return append(bytes.Clone(line[:i+1]), sig[:4]...)
}

// SplitNotes returns the signed notes of a text that has several, with empty lines
// between them or without.
func SplitNotes(text []byte) (notes [][]byte) {
	signed, from := false, 0
	for i := 0; i < len(text); {
		end := i + bytes.IndexByte(text[i:], '\n') + 1
		if end == i {
			end = len(text)
		}
		line := text[i:end]
		switch signature := bytes.HasPrefix(line, []byte("— ")); {
		case signed && !signature:
			notes = append(notes, text[from:i])
			from, signed = i, false
			if line[0] == '\n' || line[0] == '\r' {
				from = end
			}
		case from == i && line[0] == '\n':
			from = end
		default:
			signed = signed || signature
		}
		i = end
	}
	if from < len(text) {
		notes = append(notes, text[from:])
	}
	return notes
}

func parseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 4 || lines[0] == "" {
		return c, errors.New("reading a checkpoint: it has fewer than three lines")
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, fmt.Errorf("reading a checkpoint: %q is not the size of a tree", lines[1])
	}
	if c.Root, err = parseHash(lines[2]); err != nil {
		return c, err
	}
	for line := range strings.Lines(lines[3]) {
		if record, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), recordWord); ok {
			c.Record, err = parseHash(record)
		}
	}
	return c, err
}

// OpenCheckpoint reads a checkpoint and returns the keys of those that have
// signed it. It returns an error if none of them has, or if a signature by one of
// their keys is wrong.
func OpenCheckpoint(signed []byte, known note.Verifiers) (c Checkpoint, by []note.Signature, err error) {
	if len(signed) > maxNote {
		return c, nil, errors.New("reading a checkpoint: it is longer than 64 KiB")
	}
	n, err := note.Open(signed, known)
	if err != nil {
		return c, nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	c, err = parseCheckpoint(n.Text)
	return c, n.Sigs, err
}

func parseHash(text string) (h Hash, err error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("reading a hash: %q is not 32 bytes in base64", text)
	}
	return Hash(b), nil
}
