// Package approval asks people about calls through files.
//
// A proxy writes a question to <id>.json in a directory and looks for
// <id>.answer, which a person's program creates there exclusively. The owner of
// that file is the user who answered: only that user and root can make it.
// A directory is either the proxy's own, with mode 0700, or shared by a group,
// with the sticky bit, so that nobody moves or removes the answers of others.
//
// The texts of a question come from agents and servers, and its file from any
// user who may write to the directory. A proxy trusts no file but by its owner,
// and programs that show questions must make their texts harmless.
//
// The files, from the top: give, ask, waiting, always, read, approval, answer,
// question, owner, file.
package approval

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Config says where questions are and whose answers count. It is the proxy's;
// programs for people set People.
type Config struct {
	Dir string // absolute. Required.
	Own bool   // Dir is this user's alone: Open makes it with mode 0700

	// Approvers are the users whose answers count: names or ids, and groups
	// as %name or %id. None means the proxy's user and root.
	Approvers []string
	// SameUser is whether answers of the proxy's own user count, if Approvers
	// allows them.
	SameUser bool

	// People is set by programs that answer. They may open a directory whose
	// owner may not answer; a question says whose answers count for its proxy.
	People bool
}

// A Dir is an open directory of questions. Its methods may be called at the same
// time.
type Dir struct {
	cfg    Config
	rule   rule
	info   fileInfo // of the directory when it was opened
	shared bool     // others can reach the directory

	mu     sync.Mutex
	asked  map[string]asked // owned by mu: this process's questions, by id
	taken  map[string]bool  // owned by mu: questions whose answer was returned, by id
	doubts map[string]doubt // owned by mu: answers that do not count, by id
	swept  bool             // owned by mu: see sweep
}

// An asked is a question of this process. Its file is open and locked while it
// waits, so that the end of the process shows.
type asked struct {
	digest string
	file   *os.File
}

// A doubt is an answer that does not count now.
type doubt struct {
	file  fileInfo
	since time.Time // when it was first seen
	told  bool      // it was rejected, and could not be moved
}

// Open checks the directory and the approvers. It makes no directory but an own
// one.
func Open(cfg Config) (*Dir, error) {
	if cfg.Own {
		if d, err := Plan(cfg); err != nil {
			return d, err
		}
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("making approval directory: %w", err)
		}
	}
	return OpenExisting(cfg)
}

// OpenExisting is Open for programs that must make nothing. The error is
// fs.ErrNotExist if the directory is not there.
func OpenExisting(cfg Config) (*Dir, error) {
	d, err := Plan(cfg)
	if err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("opening approval directory %q: %w", cfg.Dir, err)
	}
	return d, nil
}

// Plan checks a configuration, and its approvers for an own directory, without
// looking at the directory.
func Plan(cfg Config) (*Dir, error) {
	d := &Dir{cfg: cfg, asked: map[string]asked{}, taken: map[string]bool{}, doubts: map[string]doubt{}}
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("approval directory %q is not an absolute path", cfg.Dir)
	}
	var err error
	if d.rule, err = newRule(cfg.Approvers, cfg.SameUser); err != nil {
		return nil, err
	}
	return d, d.checkOwn()
}

// checkOwn refuses rules that an own directory cannot keep: its owner could move
// the answers of others, and others cannot reach it.
func (d *Dir) checkOwn() error {
	if !d.cfg.Own || d.cfg.People || os.Geteuid() == 0 {
		return nil
	}
	if err := d.rule.allows(os.Geteuid(), os.Geteuid()); err != nil {
		return fmt.Errorf("approval directory %q is this user's alone, but %w: set approval.dir to a directory of root's with a group and mode 3770", d.cfg.Dir, err)
	}
	return nil
}

func (d *Dir) open() (err error) {
	if d.info, err = lstat(d.cfg.Dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) && !d.cfg.Own {
			return fmt.Errorf("%w: make it with: install -d -m 3770 -g GROUP %s", err, d.cfg.Dir)
		}
		return err
	}
	d.shared = d.info.mode&0o077 != 0
	return d.checkDir(d.cfg.Dir, d.info, d.rule, os.Geteuid())
}

// check is checkDir for the directory as it is now: somebody may have changed
// its mode, or replaced it.
func (d *Dir) check() error {
	i, err := lstat(d.cfg.Dir)
	if err == nil {
		err = d.checkDir(d.cfg.Dir, i, d.rule, os.Geteuid())
	}
	if err != nil {
		return fmt.Errorf("approval directory %q: %w", d.cfg.Dir, err)
	}
	return nil
}

// checkDir refuses a directory in which others than approvers could change
// answers to the proxies of a user.
func (d *Dir) checkDir(name string, i fileInfo, r rule, proxy int) error {
	perm := i.mode & 0o7777
	switch {
	case i.kind() == unix.S_IFLNK:
		return errors.New("it is a symbolic link: name the directory that it points to")
	case i.kind() != unix.S_IFDIR:
		return errors.New("it is not a directory")
	case d.cfg.Own && i.uid != os.Geteuid():
		return fmt.Errorf("it belongs to %s, not to %s: set approval.dir", userName(i.uid), userName(os.Geteuid()))
	case d.cfg.Own && perm&0o077 != 0:
		return fmt.Errorf("its mode %04o lets others in: run chmod 700 %s, or set approval.dir", perm, name)
	case perm&0o002 != 0:
		return fmt.Errorf("its mode %04o lets everyone write: run chmod 3770 %s", perm, name)
	case perm&0o020 != 0 && perm&unix.S_ISVTX == 0:
		return fmt.Errorf("its mode %04o lets a group remove the answers of others: run chmod 3770 %s", perm, name)
	case i.uid == 0 || d.cfg.People && name == d.cfg.Dir:
		return nil
	}
	// The owner of a directory may move every answer in it to another question.
	if err := r.allows(i.uid, proxy); err != nil {
		return fmt.Errorf("its owner could move the answers of others, but may not answer: %w: run chown root %s", err, name)
	}
	return nil
}

// Path returns the directory.
func (d *Dir) Path() string { return d.cfg.Dir }

// MayAnswer says in words whose answers count.
func (d *Dir) MayAnswer() string { return d.rule.describe(os.Geteuid()) }

const (
	questionExt = ".json"
	answerExt   = ".answer"
)

func (d *Dir) name(id, ext string) string { return filepath.Join(d.cfg.Dir, id+ext) }

// newFile makes a file under a name of its own. The group of the directory can
// read it. A crash leaves a file whose name starts with a period.
func (d *Dir) newFile(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".new-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil && (d.shared || d.info.uid != os.Geteuid()) {
		// Where the directory does not hand on its group, root still can.
		_ = f.Chown(-1, d.info.gid)
		if err = f.Chmod(0o640); err != nil { // the umask may have taken it away
			f.Close()
			os.Remove(f.Name())
		}
	}
	return f, err
}

// writeFile makes a file with all of text, and returns its name.
func (d *Dir) writeFile(dir string, text []byte, durable bool) (name string, err error) {
	f, err := d.newFile(dir)
	if err != nil {
		return "", err
	}
	if _, err = f.Write(text); err == nil && durable {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// create makes a file exclusively, whole or not at all. A crash between its
// steps leaves the file with two names; the other one starts with a period.
func (d *Dir) create(name string, text []byte) error {
	tmp, err := d.writeFile(filepath.Dir(name), text, false)
	if err != nil {
		return err
	}
	return link(tmp, name)
}

// link gives a file its name, if nothing has it.
func link(tmp, name string) error {
	err := os.Link(tmp, name)
	return errors.Join(err, os.Remove(tmp))
}

// A Gone error says that a question no longer waits, or is no longer the one
// that was read.
type Gone struct {
	ID      string
	Changed bool // another question has its place
}

func (e *Gone) Error() string {
	if e.Changed {
		return fmt.Sprintf("question %q changed since it was shown: look at it again", e.ID)
	}
	return fmt.Sprintf("question %q no longer waits", e.ID)
}

// An Answered error says that somebody else answered first.
type Answered struct {
	ID   string
	User string // of the operating system, who owns the answer
	By   string // who answered, by the answer's own account
}

func (e *Answered) Error() string {
	who := e.User
	if e.By != "" && e.By != e.User {
		who = fmt.Sprintf("%s (%q)", e.User, e.By)
	}
	return fmt.Sprintf("question %q is already answered by %s", e.ID, who)
}

// A NotAllowed error says that this user's answers do not count, and why.
type NotAllowed struct{ Err error }

func (e *NotAllowed) Error() string { return e.Err.Error() }

// A Rejected error is about an answer that does not count.
type Rejected struct {
	ID   string
	User string // the file's owner, "" if it is not known
	Kept string // the file as which it was set aside, "" if it could not be moved
	Err  error  // why
}

func (e *Rejected) Error() string {
	text := fmt.Sprintf("answer to question %q does not count: %v", e.ID, e.Err)
	if e.Kept != "" {
		text += fmt.Sprintf("; kept as %q", filepath.Base(e.Kept))
	}
	return text
}

func (e *Rejected) Unwrap() error { return e.Err }
