package evidencereport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/verify"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"
)

// maxFile is the limit on a file of keys or checkpoints, in bytes.
const maxFile = 4 << 20

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("reading %q: it is longer than 4 MiB", name)
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), err // some programs begin a file with it
}

// ReadTrust reads a trust file. Without a name no key is trusted.
func ReadTrust(name string) (evidence.Trust, error) {
	if name == "" {
		return evidence.Trust{}, nil
	}
	b, err := readFile(name)
	if err != nil {
		return evidence.Trust{}, fmt.Errorf("reading the trust file: %w", err)
	}
	t, err := evidence.ParseTrust(string(b))
	if err != nil {
		return evidence.Trust{}, fmt.Errorf("reading the trust file %q: %w", name, err)
	}
	return t, nil
}

// ReadKey reads the verifier key in a file, which is alone in it.
func ReadKey(name string) (string, error) {
	b, err := readFile(name)
	if err != nil {
		return "", fmt.Errorf("reading a key: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if _, err := note.NewVerifier(key); err != nil {
		return "", fmt.Errorf("reading a key: %q has none: %w", name, err)
	}
	return key, nil
}

// ReadCheckpoints reads the signed checkpoints of sessions in files, each with one
// or several.
func ReadCheckpoints(names []string) ([]verify.Checkpoint, error) {
	list, logs, err := ReadAllCheckpoints(names)
	if len(logs) > 0 {
		c, _ := evidence.ReadCheckpoint(logs[0])
		return nil, fmt.Errorf("reading checkpoints: one is of %q, which is no session: auditcollector verify compares a log's", c.Origin)
	}
	return list, err
}

// ReadAllCheckpoints reads the signed checkpoints in files, each with one or
// several, of sessions and of logs.
func ReadAllCheckpoints(names []string) (sessions []verify.Checkpoint, logs [][]byte, err error) {
	for _, name := range names {
		b, err := readFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("reading checkpoints: %w", err)
		}
		notes := evidence.SplitNotes(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))) // mails have such lines
		if len(notes) == 0 {
			return nil, nil, fmt.Errorf("reading checkpoints: %q has none", name)
		}
		for _, signed := range notes {
			c, err := evidence.ReadCheckpoint(signed)
			if err != nil {
				return nil, nil, fmt.Errorf("%q: %w: of a mail, keep only the lines from the name of the log or session to the last one that begins with \"— \"", name, err)
			}
			// A log may be named like a session, but for the id.
			if id, ok := evidence.SessionOf(c.Origin); ok && len(id) == len("019e8b1c-0000-7aaa-8bbb-0123456789ab") {
				sessions = append(sessions, verify.Checkpoint{Signed: signed, From: name})
			} else {
				logs = append(logs, signed)
			}
		}
	}
	return sessions, logs, nil
}

// KeysFile returns the file in which a program keeps the keys that it trusts on first
// use: the named one, or one in configHome, which is "" without a home directory.
func KeysFile(named, configHome, program string) (string, error) {
	switch {
	case named != "":
		return named, nil
	case configHome == "":
		return "", errors.New("there is no home directory to keep keys in: name a file with --trust")
	}
	return filepath.Join(configHome, program, "trust"), nil
}

// Keep trusts keys on first use. It adds those of hosts that the trust file, which
// may be missing, has no key of, and returns all hosts' keys in it. It says which keys it
// added, and which are of a host that has another one there.
func Keep(name string, found []string) (hosts, said []string, err error) {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	trust, err := ReadTrust(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	has := map[string]bool{}
	for _, key := range trust.Hosts {
		has[hostOf(key)] = true
	}
	var lines strings.Builder
	for _, key := range found {
		switch {
		case slices.Contains(trust.Hosts, key):
		case has[hostOf(key)]:
			said = append(said, fmt.Sprintf("%q has another key of this host than %s: ask its owner whether the key was replaced; if it was, add the line \"host %[2]s\" to the file", name, key))
		default:
			trust.Hosts = append(trust.Hosts, key)
			lines.WriteString("host " + key + "\n")
			said = append(said, fmt.Sprintf("trusting host %s from now on, its first use, by %q: compare it with auditproxy evidence key on that host", key, name))
		}
	}
	if lines.Len() == 0 {
		return trust.Hosts, said, nil
	}
	if err := appendTo(name, lines.String()); err != nil {
		return nil, nil, fmt.Errorf("keeping keys: %w", err)
	}
	return trust.Hosts, said, nil
}

func hostOf(key string) string {
	name, _, _ := strings.Cut(key, "+")
	return name
}

// lock waits until no other program has a directory locked. Without it, of two that keep
// keys together one loses its own. Where a directory cannot be locked, as on NFS, it is not.
func lock(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking a directory: %w", err)
	}
	for unix.Flock(int(f.Fd()), unix.LOCK_EX) == unix.EINTR {
	}
	return f.Close, nil
}

// appendTo replaces a file by itself with more lines. A crash leaves either.
func appendTo(name, lines string) error {
	old, err := readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		old = append(old, '\n')
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".trust-")
	if err != nil {
		return err
	}
	_, err = f.Write(append(old, lines...))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
