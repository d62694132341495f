package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	fnote "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

// A Trust is what a verifier trusts: a file of lines, each a word and a value.
//
//	# build-7, since 2026
//	host auditproxy/build-7+1b2c3d4e+AQ…
//	log auditproxy/log/central+5f6a7b8c+AQ…
//	witness witness.example+9d0e1f2a+BA…
//	quorum 1
type Trust struct {
	Hosts     []string // verifier keys
	Logs      []string // verifier keys
	Witnesses []string // verifier keys, for cosignatures (C2SP tlog-cosignature)
	Quorum    int      // how many witnesses must have signed a checkpoint of a log
}

// maxProblems is how many are reported: a file that was named by mistake may have one
// in each line.
const maxProblems = 20

// ParseTrust reads a trust file, and returns the problems with their lines. A line
// for the same thing as an earlier one is a problem: a witness that is listed twice
// is no second witness, and which of two quorums was meant is not known. Problems do
// not quote the text: the file named by mistake may hold a secret.
func ParseTrust(text string) (Trust, error) {
	var t Trust
	var problems []error
	first := map[string]int{} // lines, by what they are about
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, value := line, ""
		if i := strings.IndexFunc(line, unicode.IsSpace); i >= 0 {
			word, value = line[:i], strings.TrimSpace(line[i:])
		}
		var err error
		switch word {
		case "host":
			t.Hosts, err = addKey(t.Hosts, value)
		case "log":
			t.Logs, err = addKey(t.Logs, value)
		case "witness":
			if _, err = fnote.NewVerifierForCosignatureV1(value); err == nil {
				t.Witnesses = append(t.Witnesses, value)
			} else {
				err = NoVerifierKey(value, err)
			}
		case "quorum":
			t.Quorum, err = strconv.Atoi(value)
			if err != nil || t.Quorum < 0 {
				err = errors.New("want a number of witnesses")
			}
		default:
			err = errors.New("starts with none of host, log, witness, quorum")
		}
		about := value
		if word == "quorum" {
			about = word
		}
		if before, repeated := first[about]; err == nil && repeated {
			err = fmt.Errorf("%s repeats line %d", word, before)
		} else if !repeated {
			first[about] = i + 1
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", i+1, err))
		}
	}
	if t.Quorum > len(t.Witnesses) {
		problems = append(problems, fmt.Errorf("quorum %d is more than the %d witnesses", t.Quorum, len(t.Witnesses)))
	}
	if n := len(problems) - maxProblems; n > 0 {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more problems", n))
	}
	if err := errors.Join(problems...); err != nil {
		return Trust{}, err
	}
	return t, nil
}

func addKey(keys []string, key string) ([]string, error) {
	if _, err := note.NewVerifier(key); err != nil {
		return keys, NoVerifierKey(key, err)
	}
	return append(keys, key), nil
}

// NoVerifierKey returns the error for a text that is not a verifier key because of err.
// It does not quote the text: a private key is named by mistake.
func NoVerifierKey(text string, err error) error {
	if strings.Contains(text, "PRIVATE+KEY+") {
		return errors.New("its key is a private key; want the verifier key, which is in the file that ends in .pub")
	}
	return fmt.Errorf("its key is not a verifier key: %w", err)
}

// ErrUnknownLog means that a checkpoint is of a log that is not trusted, so that
// whether the log has signed it cannot be checked.
var ErrUnknownLog = errors.New("the log's key is not trusted")

// ErrUnwitnessed means that fewer witnesses than the quorum have signed a log's
// checkpoint, which they may do later, or that a proof is without a log.
var ErrUnwitnessed = errors.New("witnesses must have signed")

// OpenLog reads a checkpoint of a central log. It returns an error unless one of
// the logs, and as many witnesses as the quorum asks for, have signed it. With
// ErrUnwitnessed, only the log has. With ErrUnknownLog, the checkpoint that is returned
// is what anyone may have written.
func (t Trust) OpenLog(signed []byte) (c Checkpoint, witnesses int, err error) {
	var list []note.Verifier
	logs := map[string]bool{}
	for _, key := range t.Logs {
		v, err := note.NewVerifier(key)
		if err != nil {
			return c, 0, err
		}
		list, logs[id(v.Name(), v.KeyHash())] = append(list, v), true
	}
	for _, key := range t.Witnesses {
		v, err := fnote.NewVerifierForCosignatureV1(key)
		if err != nil {
			return c, 0, err
		}
		list = append(list, v)
	}
	c, by, err := OpenCheckpoint(signed, note.VerifierList(list...))
	if err != nil && !errors.As(err, new(*note.UnverifiedNoteError)) {
		return c, 0, err
	}
	signedByLog := false
	for _, s := range by {
		if logs[id(s.Name, s.Hash)] {
			signedByLog = true
		} else {
			witnesses++
		}
	}
	if !signedByLog {
		c, err = ReadCheckpoint(signed)
		if err == nil {
			err = t.unknownLog(string(signed), c.Origin)
		}
		return c, 0, err
	}
	if witnesses < t.Quorum {
		return c, witnesses, fmt.Errorf("reading a checkpoint: %w: %d of %d have, the quorum is %d", ErrUnwitnessed, witnesses, len(t.Witnesses), t.Quorum)
	}
	return c, witnesses, nil
}

// Witnessed returns when as many witnesses as the quorum asks for had signed a checkpoint,
// at least one; the zero time if fewer have. They say when: of an old copy of a log, long ago.
func (t Trust) Witnessed(signed []byte) time.Time {
	var at []time.Time
	for _, key := range t.Witnesses {
		v, err := fnote.NewVerifierForCosignatureV1(key)
		if err != nil {
			continue
		}
		n, err := note.Open(signed, note.VerifierList(v))
		if err != nil {
			continue
		}
		if when, err := fnote.CoSigV1Timestamp(n.Sigs[0]); err == nil {
			at = append(at, when)
		}
	}
	slices.SortFunc(at, func(a, b time.Time) int { return b.Compare(a) })
	if enough := max(t.Quorum, 1); enough <= len(at) {
		return at[enough-1]
	}
	return time.Time{}
}

// unknownLog returns ErrUnknownLog if the log that a checkpoint names has signed it,
// by its name, and no trusted one: that would have another key.
func (t Trust) unknownLog(signed, origin string) error {
	named := func(log string) bool { return strings.Contains(signed, "\n— "+log+" ") }
	trusted := false
	for _, key := range t.Logs {
		name, _, _ := strings.Cut(key, "+")
		trusted = trusted || named(name)
	}
	if trusted || !named(origin) {
		return errors.New("reading a checkpoint: no trusted log has signed it")
	}
	return fmt.Errorf("reading a checkpoint: %w: %s", ErrUnknownLog, origin)
}

func id(name string, hash uint32) string { return fmt.Sprintf("%s+%08x", name, hash) }
