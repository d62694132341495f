package translog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"auditproxy/schemas/evidence"

	f_note "github.com/transparency-dev/formats/note"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
)

// ErrRolledBack means that the log does not continue what was signed last: it was
// replaced by an older copy, or rewritten.
var ErrRolledBack = errors.New("the log was rolled back")

// errInUse means that another process has the log open.
var errInUse = errors.New("another process has the log open")

// A Config configures a Log.
type Config struct {
	// Dir is the directory of the log. Everything in it may be published.
	// Required.
	Dir string

	// Key is the file of the key that signs the log, in note's form. It is
	// made if it is missing and the log is empty. The public half is next to
	// it, in Key + ".pub". Default: Dir + ".key".
	Key string

	// Last is the file that remembers the last checkpoint that was signed. A
	// log that does not continue it was rolled back, and is not opened. So it
	// must not be in Dir, nor be restored with it. Default: Key + ".last".
	Last string

	// Name is the log's origin: the first line of its checkpoints, and the name
	// of a key that is made. Default: the name of the key that is there, or
	// else auditproxy/log/ with the host's name and some letters, a new one.
	Name string

	// Interval is the least time between two checkpoints, and about the longest
	// from an entry to the checkpoint that covers it. Default: 1 s; at least
	// 100 ms, at most 1 min.
	Interval time.Duration

	// Witnesses sign checkpoints too. Nothing waits for them.
	Witnesses []Witness

	// Quorum is how many witnesses must have signed a checkpoint to prefer it to an
	// older one with more signatures. Default: more than half of Witnesses.
	Quorum int

	Log *zap.Logger // nil: none
}

// A Witness is a server that signs checkpoints which continue what it has signed
// before (C2SP tlog-witness).
type Witness struct {
	URL string // the prefix of add-checkpoint, http or https
	Key string // its verifier key (C2SP tlog-cosignature), with Ed25519
}

const (
	defaultName     = "auditproxy/log/"
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond // of tessera
	maxInterval     = time.Minute            // Close waits for it
)

// Validate returns all problems of the configuration.
func (c Config) Validate() error {
	_, _, err := c.complete()
	return err
}

// complete returns the configuration with its defaults, and the keys of its
// witnesses. It reports all problems.
func (c Config) complete() (Config, []note.Verifier, error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Dir == "" {
		problem("there is no directory")
	} else {
		c.Dir = filepath.Clean(c.Dir)
	}
	if c.Key == "" {
		c.Key = c.Dir + ".key"
	}
	if c.Last == "" {
		c.Last = c.Key + ".last"
	}
	for _, file := range []string{c.Key, c.Last} {
		if rel, err := filepath.Rel(c.Dir, file); c.Dir != "" && err == nil && filepath.IsLocal(rel) {
			problem("%q is in the log's directory, which may be published: choose a file elsewhere", file)
		}
	}
	if c.Name != "" && !goodName(c.Name) {
		problem("%q is not a name of a log: want no spaces and no +", c.Name)
	}
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Interval < minInterval || c.Interval > maxInterval {
		problem("an interval of %v between checkpoints is not possible: want %v to %v", c.Interval, minInterval, maxInterval)
	}
	keys := make([]note.Verifier, len(c.Witnesses))
	known := map[string]bool{}
	for i, w := range c.Witnesses {
		if u, err := url.Parse(w.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			problem("witness %d: %q is not an http or https address", i, w.URL)
		}
		var err error
		if keys[i], err = witnessKey(w.Key); err != nil {
			problem("witness %d: %w", i, evidence.NoVerifierKey(w.Key, err))
		} else if id := fmt.Sprint(keys[i].Name(), keys[i].KeyHash()); known[id] {
			problem("witness %d: its key is listed twice", i)
		} else {
			known[id] = true
		}
	}
	if c.Quorum < 0 || c.Quorum > len(c.Witnesses) {
		problem("a quorum of %d of %d witnesses is impossible", c.Quorum, len(c.Witnesses))
	}
	if c.Quorum == 0 && len(c.Witnesses) > 0 {
		c.Quorum = len(c.Witnesses)/2 + 1
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if err := errors.Join(problems...); err != nil {
		return c, nil, fmt.Errorf("configuring the log: %w", err)
	}
	return c, keys, nil
}

// witnessKey reads the verifier key of a witness. It is of the type of
// cosignatures, or of plain Ed25519 signatures with the same key.
func witnessKey(text string) (note.Verifier, error) {
	v, err := f_note.NewVerifierForCosignatureV1(text)
	if err != nil {
		return nil, err
	}
	// The library does not compare the hash of the first type.
	if _, err := note.NewVerifier(text); err != nil && !strings.Contains(text, fmt.Sprintf("+%08x+", v.KeyHash())) {
		return nil, errors.New("its hash is another one")
	}
	return v, nil
}

// newName returns the name of a new log. No log had it before: a witness, and everyone
// else who has seen an older log of this host, knows that one by its name.
func newName() string {
	id := strings.ToLower(rand.Text()[:8])
	host, _ := os.Hostname()
	if name := defaultName + host + "/" + id; goodName(name) {
		return name
	}
	return defaultName + id
}

// goodName is what a name in note's form may be.
func goodName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "+ \t\r\n") && strings.ToValidUTF8(name, "") == name
}
