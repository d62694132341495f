package approvals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/mcpproxy/approval"

	"go.uber.org/goleak"
)

// A person is the other side of a terminal.
type person struct {
	t      *testing.T
	master *os.File
	read   string
}

// types writes a line.
func (p *person) types(line string) {
	p.t.Helper()
	if _, err := p.master.WriteString(line); err != nil {
		p.t.Fatal(err)
	}
}

// sees reads until a text is on the screen, and forgets all up to its end.
func (p *person) sees(want string) {
	p.t.Helper()
	buf := make([]byte, 4096)
	p.master.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for !strings.Contains(p.read, want) {
		n, err := p.master.Read(buf)
		if err != nil {
			p.t.Fatalf("the terminal shows %q, want %q: %v", p.read, want, err)
		}
		p.read += string(buf[:n])
	}
	_, p.read, _ = strings.Cut(p.read, want)
}

// sit starts Ask at a terminal. It ends with the test.
func (p proxy) sit(settle time.Duration) *person {
	t := p.t
	t.Helper()
	master, slave := dev.Terminal(t)
	s, err := Open(Config{Files: approval.Config{Dir: p.Path(), Own: true, SameUser: true}, Stdout: slave, Say: func(err error) { fmt.Fprintln(slave, err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Ask(ctx, Asker{Keyboard: slave, By: "Ann", Settle: settle}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("asking ends with %v", err)
		}
	})
	one := &person{t: t, master: master}
	one.sees("Ctrl-C ends")
	return one
}

func (p proxy) wants(approved bool, scope approval.Scope) {
	p.t.Helper()
	select {
	case a := <-p.answers:
		if a.Approved != approved || a.Scope != scope || a.By != "Ann" {
			p.t.Errorf("answer: %+v, want %v for %s", a, approved, scope)
		}
	case <-time.After(2 * time.Minute):
		p.t.Fatal("no answer comes")
	}
}

const prompt = "send_keys  destructive critical: [a]llow once, [s]ession, [d]eny; or the word always or skip: "

// Several calls are asked about one after the other.
func TestAskAtTerminal(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	p := newProxy(t)
	ann := p.sit(0)
	ann.types("a\n") // does not answer a later question
	for _, tt := range []struct {
		typed    string
		approved bool
		scope    approval.Scope
		said     string
	}{
		{"a\n", true, approval.Once, "allowed once"},
		{"s\n", true, approval.Session, "allowed for this session"},
		{"d\n", false, approval.Once, "denied"},
		{" deny \n", false, approval.Once, "denied"},
		{"always\n", true, approval.Always, "allowed always"},
		{"a\na\n", true, approval.Once, "allowed once"}, // the second answers no question
		{"d\n", false, approval.Once, "denied"},
	} {
		p.ask(newQuestion(fmt.Sprintf("q%d", time.Now().UnixNano())))
		ann.sees("\a")
		ann.sees("rm -rf x")
		ann.sees(prompt)
		for _, wrong := range []string{"\n", "A\n", "y\n", "al\n"} {
			ann.types(wrong)
			ann.sees(prompt)
		}
		ann.types(tt.typed)
		p.wants(tt.approved, tt.scope)
		ann.sees(tt.said)
	}
	// Two wait at the same time.
	first := newQuestion("qa")
	p.ask(first)
	second := newQuestion("qb")
	second.Asked = first.Asked.Add(time.Millisecond)
	p.ask(second)
	ann.sees("qa")
	ann.sees(prompt)
	ann.types("skip\n")
	ann.sees("qb")
	ann.sees(prompt)
	ann.types("a\n")
	p.wants(true, approval.Once)
	ann.sees("allowed once")
}

// A call that ends while it is asked about is reported, and an answer typed for it
// does not answer the next.
func TestQuestionEndsWhileAsked(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	p := newProxy(t)
	ann := p.sit(time.Hour)
	first := newQuestion("qa")
	p.ask(first)
	ann.sees("qa")
	ann.sees(prompt)
	second := newQuestion("qb")
	second.Asked = first.Asked.Add(time.Millisecond)
	p.ask(second)
	ann.types("a") // not sent yet
	if err := p.Withdraw("qa"); err != nil {
		t.Fatal(err)
	}
	ann.sees("this call no longer waits")
	ann.sees("qb")
	ann.sees(prompt)
	ann.types("a\n")
	ann.sees("nothing was answered, type it again")
	ann.sees(prompt)
	select {
	case a := <-p.answers:
		t.Errorf("an answer for the call before was taken: %+v", a)
	default:
	}
	ann.types("\x04") // the end of input
}

// A user whose answer would not count is not asked.
func TestAskNobodyElse(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	p := newProxy(t)
	var err error
	p.Dir, err = approval.Open(approval.Config{Dir: t.TempDir(), Approvers: []string{"root"}, SameUser: false, People: true})
	if err != nil {
		t.Fatal(err)
	}
	p.ask(newQuestion("q"))
	s, err := Open(Config{Files: approval.Config{Dir: p.Path()}, Stdout: io.Discard, Say: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := s.waiting()
	if len(list) != 1 || list[0].Allows(os.Geteuid()) == nil {
		t.Fatalf("this user may answer: %+v", list)
	}
	var no *approval.NotAllowed
	if err := s.Answer(t.Context(), "q", approval.Answer{Approved: true}); !errors.As(err, &no) {
		t.Errorf("answering: %v", err)
	}
}
