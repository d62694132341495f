package approvals

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/escape"
)

// List prints the calls that wait, the oldest first, and returns how many.
func (s *Session) List() (int, error) {
	list, unread := s.waiting()
	now := time.Now()
	for i := range list {
		if err := s.print(&list[i], now); err != nil {
			return i, err
		}
	}
	if unread {
		return len(list), cli.ExitError{Code: cli.ExitUnclear}
	}
	return len(list), nil
}

func (s *Session) print(q *approval.Question, now time.Time) error {
	if s.cfg.JSON {
		return s.json(q, now)
	}
	_, err := s.cfg.Stdout.Write(s.text(q, now, false))
	return err
}

// IDs returns the ids of the calls that wait, each with a tool.
func (s *Session) IDs() (ids []string) {
	s.cfg.Say = func(error) {}
	list, _ := s.waiting()
	for i := range list {
		c := &list[i].Calls[0]
		l := terminal.Line{}
		l.Put(terminal.Plain, c.Subject()+" "+c.Target)
		ids = append(ids, list[i].ID+"\t"+strings.TrimSpace(string(l.End())))
	}
	return ids
}

// Answer answers the question whose id starts with a text, prints which it was,
// and waits until its proxy took the answer. An answer that does not count is a
// finding.
func (s *Session) Answer(ctx context.Context, id string, a approval.Answer) error {
	q, err := s.find(id)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := s.give(ctx, q, a); err != nil {
		return err
	}
	if s.cfg.JSON {
		return s.json(q, now)
	}
	l := terminal.Line{Colour: s.cfg.Colour}
	l.PutSafe(said(a))
	_, err = s.cfg.Stdout.Write(append(l.End(), s.text(q, now, true)...))
	return err
}

// said returns an answer in words.
func said(a approval.Answer) (terminal.Style, string) {
	switch {
	case !a.Approved:
		return terminal.Bad, "denied"
	case a.Scope == approval.Session:
		return terminal.Good, "allowed for this session"
	case a.Scope == approval.Always:
		return terminal.Good, "allowed always"
	}
	return terminal.Good, "allowed once"
}

// give answers a question. An ExitError with cli.ExitFound says that the answer
// does not count.
func (s *Session) give(ctx context.Context, q *approval.Question, a approval.Answer) error {
	before := s.dir.Rejections(q)
	err := s.dir.Give(q, a)
	var gone *approval.Gone
	var answered *approval.Answered
	var no *approval.NotAllowed
	if errors.As(err, &gone) || errors.As(err, &answered) || errors.As(err, &no) {
		return cli.ExitError{Code: cli.ExitFound, Err: err}
	}
	var kept *approval.NotKept
	if err != nil && !errors.As(err, &kept) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, takenWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for over := false; ; {
		if s.dir.Rejections(q) > before {
			return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("the proxy did not accept the answer to %q: its record has the anomaly answer_rejected, or the call had ended; its log says why", q.ID)}
		}
		if over {
			return err // a *NotKept, or nil
		}
		// A proxy that ends a question sets late answers aside at that moment.
		if waits, e := s.dir.Waits(q); e == nil && !waits {
			over = true
		}
		select {
		case <-ctx.Done():
			if over {
				continue
			}
			return fmt.Errorf("the answer to %q is given, but its proxy has not taken it: it may have ended, or not count the answers of this user", q.ID)
		case <-tick.C:
		}
	}
}

// shownEntry is an entry as --format json has it.
type shownEntry struct {
	Tool       string    `json:"tool"`
	ServerKey  string    `json:"server_key,omitempty"` // none: every server
	Detections []string  `json:"detections"`
	Level      string    `json:"level,omitempty"` // none: of any risk
	User       string    `json:"user"`
	By         string    `json:"by,omitempty"`
	Since      time.Time `json:"since"`
	File       string    `json:"file"`
	Ignored    string    `json:"ignored,omitempty"` // why it does not count
}

// Allowed prints the entries of what is always allowed, and returns their number.
// An entry that does not count is a finding.
func (s *Session) Allowed(loc *time.Location) (int, error) {
	if s.dir == nil {
		return 0, nil
	}
	list, err := s.dir.Allowed()
	if err != nil {
		return 0, err
	}
	ignored := false
	for _, e := range list {
		one := shownEntry{e.Tool, e.ServerKey, append([]string{}, e.Detections...), e.Level, e.User, e.By, e.Since, e.File, ""}
		if e.Err != nil {
			one.Ignored, ignored = e.Err.Error(), true
		}
		if err := s.entry(one, loc); err != nil {
			return 0, err
		}
	}
	if ignored {
		return len(list), cli.ExitError{Code: cli.ExitFound}
	}
	return len(list), nil
}

func (s *Session) entry(e shownEntry, loc *time.Location) error {
	if s.cfg.JSON {
		return terminal.PrintJSON(s.cfg.Stdout, e)
	}
	l := terminal.Line{Colour: s.cfg.Colour}
	l.PutSafe(terminal.Bold, escape.Name(e.Tool))
	server := "every server"
	if e.ServerKey != "" {
		server = "server " + e.ServerKey
	}
	if e.Level != "" {
		server += "  up to risk " + e.Level
	}
	l.Put(terminal.Plain, "  "+server+"  by "+e.User)
	if e.By != "" && e.By != e.User {
		l.Put(terminal.Plain, " ("+e.By+")")
	}
	l.PutSafe(terminal.Faint, "  since "+e.Since.In(loc).Format("2006-01-02 15:04:05"))
	for _, word := range e.Detections {
		l.Put(terminal.Warn, " !"+word)
	}
	if e.Ignored != "" {
		l.Put(terminal.Bad, "  does not count: "+e.Ignored)
	}
	_, err := s.cfg.Stdout.Write(l.End())
	return err
}

// Tools returns the tools that are always allowed.
func (s *Session) Tools() (tools []string) {
	if s.dir == nil {
		return nil
	}
	list, _ := s.dir.Allowed()
	for _, e := range list {
		l := terminal.Line{}
		l.Put(terminal.Plain, e.Tool)
		tools = append(tools, strings.TrimSpace(string(l.End())))
	}
	return tools
}

// Revoke removes the entry that always allows a tool.
func (s *Session) Revoke(tool, serverKey string) error {
	err := fs.ErrNotExist
	if s.dir != nil {
		err = s.dir.Revoke(tool, serverKey)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("tool %q is not always allowed: auditproxy approvals allowed lists what is", tool)}
	}
	return err
}
