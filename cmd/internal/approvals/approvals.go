// Package approvals shows people the calls that wait for them, and takes their
// answers.
//
// The files, from the top: follow, keyboard, flush_linux, flush_other,
// commands, show, approvals.
package approvals

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/mcpproxy/approval"
)

// A Config says where questions are and how they are shown.
type Config struct {
	Files  approval.Config // of the directory
	JSON   bool            // one object a line
	Colour bool
	Cells  int // of a line with arguments, 0 for no limit

	Stdout io.Writer
	Say    func(error) // prints a message
}

// A Session is an open directory with the output to one person.
type Session struct {
	cfg  Config
	dir  *approval.Dir // nil until it exists
	told map[string]bool
}

// Open opens the directory of questions. A directory that is made by the first
// proxy that asks may be missing.
func Open(cfg Config) (*Session, error) {
	s := &Session{cfg: cfg, told: map[string]bool{}}
	s.cfg.Files.People = true
	return s, s.open()
}

func (s *Session) open() (err error) {
	if s.dir != nil {
		return nil
	}
	s.dir, err = approval.OpenExisting(s.cfg.Files)
	if s.cfg.Files.Own && errors.Is(err, fs.ErrNotExist) {
		s.dir, err = nil, nil
	}
	return err
}

// waiting returns the questions, and reports each unreadable one once.
func (s *Session) waiting() (list []approval.Question, unread bool) {
	err := s.open()
	if err == nil && s.dir != nil {
		list, err = s.dir.Waiting()
	}
	if err != nil && !s.told[err.Error()] {
		s.told[err.Error()] = true
		s.cfg.Say(err)
	}
	return list, err != nil
}

// find returns the one question whose id starts with a text.
func (s *Session) find(id string) (*approval.Question, error) {
	list, unread := s.waiting()
	var found *approval.Question
	for i := range list {
		switch q := &list[i]; {
		case q.ID == id:
			return q, nil
		case !strings.HasPrefix(q.ID, id) || id == "":
		case found != nil:
			return nil, fmt.Errorf("more than one call waits whose id starts with %q: write more of it", id)
		default:
			found = q
		}
	}
	if found == nil && unread { // which may be it
		return nil, cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("no call that can be read waits whose id starts with %q", id)}
	}
	if found == nil {
		return nil, cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("no call waits whose id starts with %q: it may be answered, cancelled or timed out; auditproxy show says how it ended", id)}
	}
	return found, nil
}

// Name returns the default name of a person who answers: root may be a person
// who used sudo. A proxy records the file's owner as the user who answered.
func Name(getenv func(string) string) string {
	if os.Geteuid() == 0 && getenv("SUDO_USER") != "" {
		return getenv("SUDO_USER")
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// takenWithin is the time in which a proxy must take an answer. After it, the
// person who answered gets an error.
const takenWithin = 3 * time.Second

// pollEvery is the interval at which the directory is read.
const pollEvery = 200 * time.Millisecond
