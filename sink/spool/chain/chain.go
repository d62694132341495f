// Package chain keeps the host's key, and the numbers of a spool directory's
// sessions, in files.
//
// Each session's first record names the session before it, and the host's key signs
// both. So a session that is removed as a whole is missed. The files are in the
// directory "evidence" of the spool:
//
//	host.key       the host's private key (Ed25519, as package note has it), 0600
//	host.key.pub   its verifier key, for trust files
//	sessions       the last session and the one before it
//
// The files, from the top: chain, key, config.
package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool/disk"

	"golang.org/x/mod/sumdb/note"
)

const (
	sessionsFile = "sessions"
	slotSize     = 512 // bytes; the sessions with even and with odd numbers have one each
)

// Times of the lock. Its holder needs far less than a millisecond, but an editor starts
// twenty proxies at once, on a machine that is busy with that, and a session that did
// not get the lock has no evidence. A holder that was stopped must not stop all others.
const (
	lockFor   = 2 * time.Second
	lockAgain = time.Millisecond
)

// ErrBusy means that another process has held the lock of the chain for two seconds.
var ErrBusy = errors.New("another process holds the lock of the sessions")

// A Link is the place of one session in the chain. It is used in the order Begin,
// Enter, Written; Close ends it at any point. While it is open, no other session
// of the directory can start.
type Link struct {
	c       Config
	fs      disk.FS
	f       disk.File // sessions, locked
	host    note.Signer
	session string
	seq     uint64
	leaf    evidence.Hash
}

// A slot is what the file has of one session.
type slot struct {
	HostSeq   uint64        `json:"host_seq"`
	SessionID string        `json:"session_id"`
	Leaf      evidence.Hash `json:"leaf"` // of its session_start
	Pending   bool          `json:"pending,omitempty"`
}

// Begin locks the chain and returns the evidence of the next session, signed. key
// is the session's own verifier key.
func Begin(c Config, session, key string) (*Link, evidence.Session, error) {
	l := &Link{c: c, fs: disk.OrHost(c.FS), session: session}
	e, err := l.begin(key)
	if err != nil {
		l.Close()
		return nil, evidence.Session{}, fmt.Errorf("entering session %q: %w", session, err)
	}
	return l, e, nil
}

func (l *Link) begin(key string) (e evidence.Session, err error) {
	if err := l.lock(); err != nil {
		return e, err
	}
	var public string
	if l.host, public, err = l.c.key(l.fs, true); err != nil {
		return e, err
	}
	last, err := l.last()
	if err != nil {
		return e, err
	}
	l.seq = last.HostSeq + 1
	e = evidence.Session{Origin: evidence.Origin(l.c.Host, l.session), Key: key, HostKey: public, HostSeq: l.seq}
	if last.HostSeq > 0 {
		e.Previous = &evidence.Previous{SessionID: last.SessionID, Leaf: last.Leaf}
	}
	return e, e.Sign(l.host)
}

// Check returns why sessions have no evidence, as far as the files show it. Files
// that the first session makes may be missing.
func Check(c Config) error {
	l := &Link{c: c, fs: disk.OrHost(c.FS)}
	defer l.Close()
	err := l.open(false)
	if err == nil {
		_, err = l.last()
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	_, _, keyErr := Key(c)
	if errors.Is(keyErr, fs.ErrNotExist) && c.KeyFile == "" {
		keyErr = nil
	}
	return errors.Join(err, keyErr)
}

// lock opens the file and locks it.
func (l *Link) lock() error {
	if err := l.open(true); err != nil {
		return err
	}
	f := l.f
	for until := time.Now().Add(lockFor); ; {
		ok, err := f.Lock(false)
		if err != nil || ok {
			return err
		}
		if time.Now().After(until) {
			return ErrBusy
		}
		if err := wait.For(context.Background(), lockAgain); err != nil {
			return err
		}
	}
}

// open opens the file. With create it makes it and its directory, at the first
// start.
func (l *Link) open(create bool) error {
	name := l.c.path(sessionsFile)
	dir := filepath.Dir(name)
	f, err := l.fs.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := errors.Join(disk.MakeDirs(l.fs, dir), disk.CheckDir(l.fs, dir)); err != nil {
			return err
		}
		f, err = l.fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	l.f = f
	return errors.Join(disk.CheckDir(l.fs, dir), disk.CheckRegular(f, name))
}

// last returns the last session whose session_start was written, the zero slot
// for none.
func (l *Link) last() (slot, error) {
	b := make([]byte, 2*slotSize)
	n, err := l.f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return slot{}, err
	}
	b = b[:n]
	var list []slot
	for i := 0; i < len(b); i += slotSize {
		if s, ok := parseSlot(b[i:min(len(b), i+slotSize)]); ok {
			list = append(list, s)
		}
	}
	var last slot
	for _, s := range list {
		// A process that died between Enter and Written left it pending; whether
		// it wrote the line, the session itself says.
		if s.HostSeq > last.HostSeq && (!s.Pending || l.began(s)) {
			last = s
		}
	}
	if len(list) == 0 && len(b) > 0 {
		// Starting again at 1 would look like a session that was put in place of
		// another.
		return slot{}, fmt.Errorf("%q is damaged: if its contents cannot be restored, move it and %q away, and trust the new host key", l.c.path(sessionsFile), l.c.path(hostKeyFile))
	}
	return last, nil
}

func parseSlot(b []byte) (s slot, ok bool) {
	line, _, found := bytes.Cut(b, []byte("\n"))
	return s, found && audit.Check(line) && json.Unmarshal(line, &s) == nil && s.HostSeq > 0
}

// began reports whether the session's first record has the leaf of the slot.
func (l *Link) began(s slot) bool {
	for _, dir := range []string{s.SessionID, ".new-" + s.SessionID} {
		f, err := l.fs.OpenFile(filepath.Join(l.c.Dir, "sessions", dir, "00000001.jsonl"), os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		b := make([]byte, audit.MaxLine+1)
		n, _ := f.ReadAt(b, 0)
		f.Close()
		for line := range bytes.Lines(b[:n]) {
			if bytes.HasPrefix(line, []byte(`{"line":`)) {
				continue // not a record, see audit.AppendContext
			}
			if line, found := bytes.CutSuffix(line, []byte("\n")); found && evidence.Leaf(line) == s.Leaf {
				return true
			}
			break
		}
	}
	return false
}

// Enter says that a session_start with that leaf is about to be written. A crash
// after it leaves the number pending: the next session looks whether the line
// was written.
func (l *Link) Enter(leaf evidence.Hash) error {
	l.leaf = leaf
	if err := l.write(true); err != nil {
		return fmt.Errorf("entering session %q: %w", l.session, err)
	}
	return nil
}

// Written says that the session_start was written, and unlocks the chain. The file
// is synced by Sync.
func (l *Link) Written() error {
	err := l.write(false)
	if err := errors.Join(err, l.unlock()); err != nil {
		return fmt.Errorf("entering session %q: %w", l.session, err)
	}
	return nil
}

func (l *Link) write(pending bool) error {
	line, err := json.Marshal(slot{l.seq, l.session, l.leaf, pending})
	if err != nil {
		return err
	}
	b := audit.Seal(line, 0)
	if len(b) > slotSize {
		return fmt.Errorf("session id %q is too long", l.session)
	}
	b = append(b, bytes.Repeat([]byte(" "), slotSize-len(b)-1)...)
	_, err = l.f.WriteAt(append(b, '\n'), int64(l.seq%2)*slotSize)
	return err
}

func (l *Link) unlock() error {
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}

// Close gives the number up, unless Written was called. Another session gets it.
func (l *Link) Close() error { return l.unlock() }

// Sync makes the chain and the host's key durable, so that no number is given
// twice after a power cut. It may be called at any time, by any process.
func Sync(c Config) error {
	f := disk.OrHost(c.FS)
	var errs []error
	for _, name := range []string{hostKeyFile, hostKeyFile + publicExt, sessionsFile} {
		if err := disk.SyncFile(f, c.path(name)); err != nil && (name == sessionsFile || !errors.Is(err, fs.ErrNotExist)) {
			errs = append(errs, err)
		}
	}
	// The directory's own name is synced with those of the first session.
	errs = append(errs, disk.SyncNames(f, filepath.Dir(c.path(sessionsFile))))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("syncing the numbers of sessions: %w", err)
	}
	return nil
}
