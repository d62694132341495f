package approvals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/approval"
)

// Follow prints the calls that wait as they come, until ctx ends.
func (s *Session) Follow(ctx context.Context) error {
	seen := map[string]bool{}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		list, _ := s.waiting()
		for i := range list {
			if q := &list[i]; !seen[q.Digest] {
				seen[q.Digest] = true
				if err := s.print(q, time.Now()); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// An Asker asks a person at a terminal.
type Asker struct {
	Keyboard *os.File // a terminal
	By       string   // the person's name
	// Settle is how long input is ignored after a question replaced another
	// that ended: it may be meant for that one.
	Settle time.Duration
}

const question = "[a]llow once, [s]ession, [d]eny; or the word always or skip: "

// Ask asks about the calls that wait, one after the other, until ctx or the
// person's input ends.
func (s *Session) Ask(ctx context.Context, k Asker) error {
	done := map[string]bool{} // answered, skipped or over, by digest
	var settled time.Time     // until then input is ignored
	s.tell(terminal.Faint, "waiting for calls; Ctrl-C ends")
	for ctx.Err() == nil {
		q := s.next(done)
		if q == nil {
			// Without an open question, input answers nothing.
			if _, ended, err := readLine(k.Keyboard, nil, pollEvery); ended || err != nil {
				return err
			}
			continue
		}
		done[q.Digest] = true
		if err := s.show(q); err != nil {
			return err
		}
		if err := q.Allows(os.Geteuid()); err != nil {
			s.tell(terminal.Warn, err.Error())
			continue
		}
		flush(k.Keyboard) // typed before the question was shown
		over, err := s.ask(ctx, k, q, settled)
		if over {
			s.tell(terminal.Warn, "\nthis call no longer waits: it was answered elsewhere, cancelled or timed out, or its proxy has ended")
			settled = time.Now().Add(k.Settle)
			flush(k.Keyboard)
		} else {
			settled = time.Time{}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// next returns the oldest question that waits and is not done, nil for none.
func (s *Session) next(done map[string]bool) *approval.Question {
	list, _ := s.waiting()
	for i := range list {
		if !done[list[i].Digest] && !list[i].Abandoned {
			return &list[i]
		}
	}
	return nil
}

// show prints a question and rings the bell.
func (s *Session) show(q *approval.Question) error {
	text := append([]byte("\a\n"), s.text(q, time.Now(), true)...)
	_, err := s.cfg.Stdout.Write(text)
	return err
}

// ask asks until an answer comes or the question is over. The error is
// io.EOF at the end of the input.
func (s *Session) ask(ctx context.Context, k Asker, q *approval.Question, settled time.Time) (over bool, err error) {
	about := s.about(q)
	prompt := func() { io.WriteString(s.cfg.Stdout, about+question) }
	prompt()
	var typed []byte
	for ctx.Err() == nil {
		if waits, err := s.dir.Waits(q); err == nil && !waits || q.Abandoned || time.Now().After(q.Expires) {
			return true, nil
		}
		var ended bool
		typed, ended, err = readLine(k.Keyboard, typed, pollEvery)
		if err != nil {
			return false, err
		}
		line, _, whole := bytes.Cut(typed, []byte("\n")) // a second line is for no question
		if !whole && ended {
			return false, io.EOF
		} else if !whole {
			continue
		}
		typed = nil
		if time.Now().Before(settled) {
			s.tell(terminal.Warn, "the question changed a moment ago: nothing was answered, type it again")
			prompt()
			continue
		}
		a := approval.Answer{Approved: true, Scope: approval.Once, By: k.By}
		switch word := strings.TrimSpace(string(line)); word {
		case "a", "allow":
		case "s", "session":
			a.Scope = approval.Session
		case "always":
			a.Scope = approval.Always
		case "d", "deny":
			a.Approved = false
		case "skip":
			return false, nil
		default:
			prompt()
			continue
		}
		if err := s.give(ctx, q, a); err != nil {
			s.tell(terminal.Bad, err.Error())
			return false, nil
		}
		s.tell(said(a))
		return false, nil
	}
	return false, nil
}

// tell prints a message of this program, which may quote untrusted text.
func (s *Session) tell(style terminal.Style, text string) {
	l := terminal.Line{Colour: s.cfg.Colour}
	l.PutSafe(style, terminal.EscapeMessage(text))
	fmt.Fprint(s.cfg.Stdout, string(l.End()))
}
