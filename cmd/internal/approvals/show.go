package approvals

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
)

// maxShown is how many bytes of a call's arguments are shown to a person who is
// asked; the others are counted.
const maxShown = 4096

// shownQuestion is a question as --format json has it.
type shownQuestion struct {
	ID        string      `json:"id"`
	Asked     time.Time   `json:"asked"`
	Expires   time.Time   `json:"expires"`
	LeftMS    int64       `json:"left_ms"`
	Owner     string      `json:"owner"` // of the file, by the operating system
	SessionID string      `json:"session_id"`
	Host      string      `json:"host"`
	User      string      `json:"user"`
	PID       int         `json:"pid"`
	Server    string      `json:"server"`
	Client    string      `json:"client"`
	Calls     []shownCall `json:"calls"`
	More      int         `json:"more,omitempty"`
	MayAnswer string      `json:"may_answer"`
	Yours     bool        `json:"yours"`               // this user's answer counts
	Abandoned bool        `json:"abandoned,omitempty"` // its proxy has ended, so an answer has no effect
}

type shownCall struct {
	CallNo     uint64          `json:"call_no"`
	Method     string          `json:"method"`
	Tool       string          `json:"tool"`
	Target     string          `json:"target,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Risk       json.RawMessage `json:"risk,omitempty"`
	Detections json.RawMessage `json:"detections,omitempty"`
	Rule       string          `json:"rule"`
	Reason     string          `json:"reason,omitempty"`

	Operations     []string `json:"operations,omitempty"`
	MoreOperations int      `json:"more_operations,omitempty"`
}

// json prints a question as one line.
func (s *Session) json(q *approval.Question, now time.Time) error {
	one := shownQuestion{ID: q.ID, Asked: q.Asked, Expires: q.Expires, LeftMS: max(0, q.Expires.Sub(now).Milliseconds()), Owner: q.Owner,
		SessionID: q.SessionID, Host: q.Host, User: q.User, PID: q.PID, Server: q.Server, Client: q.Client, More: q.More,
		MayAnswer: q.MayAnswer(), Yours: q.Allows(os.Geteuid()) == nil, Abandoned: q.Abandoned}
	for _, c := range q.Calls {
		one.Calls = append(one.Calls, shownCall{c.CallNo, c.Method, c.Tool, c.Target, json.RawMessage(c.Args), json.RawMessage(c.Risk),
			json.RawMessage(c.Detections), c.Rule, c.Reason, c.Operations, c.MoreOperations})
	}
	return terminal.PrintJSON(s.cfg.Stdout, one)
}

// text formats a question for people. An attacker may have chosen everything in
// it. The arguments fill one line or, with whole, as many as they need.
func (s *Session) text(q *approval.Question, now time.Time, whole bool) []byte {
	var text []byte
	end := func(l *terminal.Line) { text = append(text, l.End()...) }
	l := s.line()
	l.Put(terminal.Bold, q.ID)
	left := seconds(q.Expires.Sub(now)) + " left"
	if q.Abandoned {
		left = "its proxy has ended, so an answer has no effect"
	}
	l.PutSafe(terminal.Plain, "  "+seconds(now.Sub(q.Asked))+" ago, "+left)
	end(l)
	l = s.line()
	l.PutSafe(terminal.Faint, "  asked by ")
	l.Put(terminal.Plain, q.Owner)
	field := func(name, value string) {
		if value != "" {
			l.PutSafe(terminal.Faint, "  "+name+" ")
			l.PutSafe(terminal.Plain, visible(value))
		}
	}
	if q.User != q.Owner { // by its own account
		field("user", q.User)
	}
	field("host", q.Host)
	field("client", q.Client)
	field("server", q.Server)
	field("session", q.SessionID)
	end(l)
	for i := range q.Calls {
		text = s.appendCall(text, &q.Calls[i], whole)
	}
	if q.More > 0 {
		l = s.line()
		l.PutSafe(terminal.Alarm, fmt.Sprintf("  and %s that the question leaves out", terminal.Count(q.More, "more call")))
		end(l)
	}
	return text
}

func (s *Session) appendCall(text []byte, c *approval.Call, whole bool) []byte {
	found, err := audit.ParseDetections(c.Detections)
	l := s.line()
	l.PutSafe(terminal.Plain, "  ")
	putSubject(l, c)
	if c.Target != "" {
		l.PutSafe(terminal.Plain, " "+visible(c.Target))
	}
	putRisk(l, c)
	for _, d := range found { // all: an approval may hold for them
		l.PutSafe(terminal.Warn, " !"+visible(d.Detector)+":"+visible(d.At))
	}
	if err != nil {
		l.PutSafe(terminal.Alarm, " !unreadable_detections")
	}
	l.PutSafe(terminal.Faint, "  "+visible(c.Rule))
	if c.Reason != "" {
		l.PutSafe(terminal.Faint, ": "+visible(c.Reason))
	}
	text = append(text, l.End()...)
	if len(c.Operations) > 0 { // the arguments may name them far behind
		l = s.line()
		l.PutSafe(terminal.Plain, "    operations")
		for _, name := range c.Operations {
			l.PutSafe(terminal.Bold, "  "+spaced(escape.Name(clip(name))))
		}
		if c.MoreOperations > 0 {
			l.PutSafe(terminal.Alarm, fmt.Sprintf("  and %d more", c.MoreOperations))
		}
		text = append(text, l.End()...)
	}
	if c.Args == "" {
		return text
	}
	l = s.line()
	if !whole {
		l.Turn = ""
	}
	l.PutSafe(terminal.Plain, "    ")
	args := string(escape.AppendJSON(nil, []byte(c.Args)))
	short := args
	if len(short) > maxShown {
		short = strings.ToValidUTF8(short[:maxShown], "")
	}
	l.PutSafe(terminal.Plain, spaced(short))
	text = append(text, l.End()...)
	if n := len(args) - len(short); n > 0 {
		l = s.line()
		l.PutSafe(terminal.Alarm, fmt.Sprintf("    and %d bytes that are not shown: see --format json", n))
		text = append(text, l.End()...)
	}
	return text
}

// maxText is how many bytes of each other text are shown, so that none fills the
// screen.
const maxText = 1024

// about is what a question is about, in a word: its text may have left the screen.
func (s *Session) about(q *approval.Question) string {
	l := s.line()
	putSubject(l, &q.Calls[0]) // the most dangerous one
	putRisk(l, &q.Calls[0])
	if n := len(q.Calls) - 1 + q.More; n > 0 {
		l.PutSafe(terminal.Alarm, fmt.Sprintf(" and %s", terminal.Count(n, "more call")))
	}
	return strings.TrimSuffix(string(l.End()), "\n") + ": "
}

func putSubject(l *terminal.Line, c *approval.Call) {
	l.PutSafe(terminal.Bold, spaced(escape.Name(clip(c.Subject()))))
}

func putRisk(l *terminal.Line, c *approval.Call) {
	k, _ := audit.ParseRisk(c.Risk)
	style := terminal.Plain
	switch k.Level {
	case risk.Destructive.Level():
		style = terminal.Bad
	case risk.Execute.Level():
		style = terminal.Warn
	}
	l.PutSafe(style, strings.TrimRight("  "+visible(k.Category)+" "+visible(k.Level), " "))
}

// line starts a line. A further row of it has a mark: text that filled a row could look like
// a question of its own in the next one, right above the prompt.
func (s *Session) line() *terminal.Line {
	return &terminal.Line{Colour: s.cfg.Colour, Limit: s.cfg.Cells, Turn: "    | "}
}

// visible is a text that may be untrusted as a person sees it.
func visible(text string) string { return spaced(escape.Text(clip(text))) }

// spaced shows each space behind another as its escape: they can fill a row too.
func spaced(text string) string {
	for i := strings.Index(text, "  "); i >= 0; i = strings.Index(text, "  ") {
		n := len(text[i:]) - len(strings.TrimLeft(text[i:], " "))
		text = text[:i+1] + strings.Repeat(`\u0020`, n-1) + text[i+n:]
	}
	return text
}

// clip shortens a text that may be untrusted, and marks the cut.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(text[:maxText], ""), len(text)-maxText)
}

// seconds formats a time for people. Clocks may differ, and files may lie.
func seconds(d time.Duration) string { return max(0, d).Round(time.Second).String() }
