package chain_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool/chain"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"
)

// enter takes a session into the chain as far as step: 0 begins it, 1 enters it, 2
// writes its first record, 3 completes it.
func enter(t *testing.T, c chain.Config, session string, step int) evidence.Session {
	t.Helper()
	_, key, err := note.GenerateKey(nil, evidence.Origin(c.Host, session))
	if err != nil {
		t.Fatal(err)
	}
	l, e, err := chain.Begin(c, session, key)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := e.Verify(); err != nil {
		t.Errorf("session %s: %v", session, err)
	}
	line := "{\"session\":\"" + session + "\"}"
	if step > 0 {
		if err := l.Enter(evidence.Leaf([]byte(line))); err != nil {
			t.Fatal(err)
		}
	}
	if step > 1 {
		dir := filepath.Join(c.Dir, "sessions", session)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "00000001.jsonl"), []byte(`{"line":"context"}`+"\n"+line+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if step > 2 {
		if err := l.Written(); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// TestLinks starts sessions of which some die at each step. Each number belongs to
// the one session whose first record was written.
func TestLinks(t *testing.T) {
	c := chain.Config{Dir: t.TempDir(), Host: "build 7"}
	for i, tt := range []struct {
		session  string
		step     int
		seq      uint64
		previous string
	}{
		{"a", 0, 1, ""},
		{"b", 1, 1, ""},
		{"c", 3, 1, ""},
		{"d", 1, 2, "c"},
		{"e", 2, 2, "c"},
		{"f", 3, 3, "e"},
		{"g", 3, 4, "f"},
		{"h", 0, 5, "g"},
		{"i", 3, 5, "g"},
	} {
		e := enter(t, c, tt.session, tt.step)
		previous := ""
		if e.Previous != nil {
			previous = e.Previous.SessionID
			if want := evidence.Leaf([]byte("{\"session\":\"" + previous + "\"}")); e.Previous.Leaf != want {
				t.Errorf("session %s follows %v, want %v", tt.session, e.Previous.Leaf, want)
			}
		}
		if e.HostSeq != tt.seq || previous != tt.previous {
			t.Errorf("%d: session %s has the number %d after %q, want %d after %q", i, tt.session, e.HostSeq, previous, tt.seq, tt.previous)
		}
		if e.Origin != "auditproxy/build_7/"+tt.session || !strings.HasPrefix(e.HostKey, "auditproxy/build_7+") {
			t.Errorf("session %s has the origin %q and the key %q", tt.session, e.Origin, e.HostKey)
		}
		if i == 5 {
			if err := chain.Sync(c); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestConcurrent starts many sessions at once: no number is given twice or left
// out.
func TestConcurrent(t *testing.T) {
	c := chain.Config{Dir: t.TempDir(), Host: "h"}
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[uint64]bool{}
	for i := range 40 {
		wg.Go(func() {
			l, e, err := chain.Begin(c, fmt.Sprint("s", i), "x+00000000+AAAA")
			for errors.Is(err, chain.ErrBusy) { // on a machine that does nothing for two seconds
				l, e, err = chain.Begin(c, fmt.Sprint("s", i), "x+00000000+AAAA")
			}
			if err == nil {
				err = errors.Join(l.Enter(evidence.Hash{byte(i)}), l.Written())
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[e.HostSeq] || e.HostSeq == 0 || e.HostSeq > 40 {
				t.Errorf("session %d: number %d, %v", i, e.HostSeq, err)
			}
			seen[e.HostSeq] = true
		})
	}
	wg.Wait()
}

// TestBusy has another process keep the lock: for a second, which a busy machine may need
// for those that start at once, and for ever.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := chain.Config{Dir: t.TempDir(), Host: "h"}
		l, _, err := chain.Begin(c, "a", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := chain.Begin(c, "b", ""); !errors.Is(err, chain.ErrBusy) {
			t.Errorf("beginning beside another: %v, want ErrBusy", err)
		}
		time.AfterFunc(time.Second, func() { l.Close() })
		l, _, err = chain.Begin(c, "b", "")
		if err != nil {
			t.Fatalf("beginning beside one that ends: %v", err)
		}
		l.Close()
	})
}

// TestDamaged refuses a file that it cannot read: starting again at 1 would look
// like tampering.
func TestDamaged(t *testing.T) {
	c := chain.Config{Dir: t.TempDir(), Host: "h"}
	enter(t, c, "a", 3)
	name := filepath.Join(c.Dir, "evidence", "sessions")
	if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := chain.Begin(c, "b", ""); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("beginning with a damaged file: %v", err)
	}
	// One slot is enough: the other may have been torn by a power cut.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"a", "b", "c"} {
		enter(t, c, session, 3)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 512+20); err != nil {
		t.Fatal(err)
	}
	if e := enter(t, c, "d", 3); e.HostSeq != 3 || e.Previous.SessionID != "b" {
		t.Errorf("after one slot was damaged: %+v", e)
	}
}

// TestKey makes the host's key once, and refuses one that is not usable.
func TestKey(t *testing.T) {
	c := chain.Config{Dir: t.TempDir(), Host: "h"}
	if _, _, err := chain.Key(c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key before any session: %v, want that there is none", err)
	}
	e := enter(t, c, "a", 3)
	_, public, err := chain.Key(c)
	if err != nil || public != e.HostKey {
		t.Errorf("the key is %q, %v, want %q", public, err, e.HostKey)
	}
	b, err := os.ReadFile(filepath.Join(c.Dir, "evidence", "host.key.pub"))
	if err != nil || string(b) != public+"\n" {
		t.Errorf("host.key.pub has %q, %v", b, err)
	}
	name := filepath.Join(c.Dir, "evidence", "host.key")
	private, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := enter(t, c, "z", 3); e.HostKey == public {
		t.Error("a key that is empty was used")
	}
	other := filepath.Join(t.TempDir(), "other.key")
	for text, mode := range map[string]fs.FileMode{string(private): 0o640, "x": 0o600, "": 0o600, strings.Repeat("x", 5000): 0o600, string(private) + strings.Repeat("\n", 5000): 0o600} {
		if err := errors.Join(os.RemoveAll(other), os.WriteFile(other, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		if l, _, err := chain.Begin(chain.Config{Dir: c.Dir, KeyFile: other, Host: "h"}, "b", ""); err == nil {
			l.Close()
			t.Errorf("a key file of %d bytes with mode %o was accepted", len(text), mode)
		}
	}
	if err := errors.Join(os.Remove(other), unix.Mkfifo(other, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := chain.Begin(chain.Config{Dir: c.Dir, KeyFile: other, Host: "h"}, "b", ""); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a FIFO as a key file: %v", err)
	}
	if l, _, err := chain.Begin(chain.Config{Dir: c.Dir, KeyFile: other + ".none", Host: "h"}, "b", ""); err == nil {
		l.Close()
		t.Error("a key file that does not exist was made")
	}
}

// TestWithoutEvidence has a session that entered its number and then wrote another
// first record, as it does where the record with its evidence cannot be written. Its
// number is free.
func TestWithoutEvidence(t *testing.T) {
	c := chain.Config{Dir: t.TempDir(), Host: "h"}
	enter(t, c, "a", 3)
	enter(t, c, "b", 1)
	dir := filepath.Join(c.Dir, "sessions", "b")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "00000001.jsonl"), []byte(`{"line":"context"}`+"\n"+`{"session":"b without evidence"}`+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if e := enter(t, c, "c", 3); e.HostSeq != 2 || e.Previous.SessionID != "a" {
		t.Errorf("the next session is %+v, want number 2 after a", e)
	}
}

// TestOfOthers refuses what other users can write or read, and changes nothing of it.
func TestOfOthers(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"a directory that others can write": func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link in place of the numbers": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "sessions"), filepath.Join(dir, "moved")), os.Symlink("moved", filepath.Join(dir, "sessions")))
		},
		"a key that others can read": func(dir string) error { return os.Chmod(filepath.Join(dir, "host.key"), 0o644) },
		"a key that is none":         func(dir string) error { return os.WriteFile(filepath.Join(dir, "host.key"), []byte("x\n"), 0o600) },
	} {
		c := chain.Config{Dir: t.TempDir(), Host: "h"}
		enter(t, c, "a", 3)
		dir := filepath.Join(c.Dir, "evidence")
		if err := harm(dir); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(filepath.Join(dir, "host.key"))
		if err != nil {
			t.Fatal(err)
		}
		if l, _, err := chain.Begin(c, "b", ""); err == nil {
			l.Close()
			t.Errorf("%s: a session begins", name)
		}
		if after, err := os.ReadFile(filepath.Join(dir, "host.key")); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the host's key has changed: %v", name, err)
		}
	}
}

// TestKeyOfTheConfiguration: nothing makes the default key beside one that is
// configured, and reading a key makes none.
func TestKeyOfTheConfiguration(t *testing.T) {
	other := chain.Config{Dir: t.TempDir(), Host: "h"}
	enter(t, other, "a", 3)
	c := chain.Config{Dir: t.TempDir(), Host: "h", KeyFile: filepath.Join(other.Dir, "evidence", "host.key")}
	e := enter(t, c, "a", 3)
	if _, public, err := chain.Key(c); err != nil || public != e.HostKey {
		t.Errorf("the key is %q, %v, want %q", public, err, e.HostKey)
	}
	if err := chain.Sync(c); err != nil {
		t.Error(err)
	}
	c.KeyFile = ""
	if _, _, err := chain.Key(c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading the default key: %v, want that there is none", err)
	}
	if err := chain.Check(c); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(c.Dir, "evidence", "host.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the default key was made: %v", err)
	}
	if err := os.Remove(filepath.Join(c.Dir, "evidence", "sessions")); err != nil {
		t.Fatal(err)
	}
	if err := chain.Sync(c); err == nil {
		t.Error("numbers that are not there are synced")
	}
}
