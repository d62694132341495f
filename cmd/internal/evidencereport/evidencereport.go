// Package evidencereport prints what the verification of evidence found, in the one
// form of both programs.
package evidencereport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/verify"
)

// A Log is what the records were compared with, if it was a central log.
type Log struct {
	Size      int64 `json:"size"`
	Signed    int   `json:"witnesses"` // that have signed its checkpoint
	Witnesses int   `json:"of"`        // that the trust file names

	At time.Time `json:"witnessed_at,omitzero"` // see evidence.Trust.Witnessed
}

// A Printer prints reports.
type Printer struct {
	Out    io.Writer
	Colour bool
}

// style is that of the word at the beginning of a line.
func style(word string) terminal.Style {
	switch verify.State(word) {
	case verify.Tampered, Damaged:
		return terminal.Bad
	case verify.Incomplete, verify.Erased:
		return terminal.Notice
	}
	return terminal.Warn
}

// Damaged is the word for bytes that are not whole.
const Damaged = "damaged"

// Line returns a line about a session: a word, its id and a text, which may be
// untrusted.
func (p Printer) Line(word, session, text string) []byte {
	l := terminal.Line{Colour: p.Colour}
	l.Column(style(word), word, 11)
	if session != "" {
		l.Column(terminal.Plain, session, 36)
		l.PutSafe(terminal.Plain, " ")
	}
	l.Put(terminal.Plain, text)
	return l.End()
}

// Text prints a line for each key of a host, which names the key where that is of another
// name, since a host may sign in another one's, or where the host has several lines. It
// prints one for each finding and one for each session that is neither verified nor
// tampered, of those that cannot be read for the first ones alone; then the lines more, and
// the exit code.
func (p Printer) Text(r verify.Report, log *Log, exit int, more ...[]byte) error {
	var out []byte
	lines := map[string]int{} // by the host's name
	for _, h := range r.Hosts {
		lines[h.Name]++
	}
	for _, h := range r.Hosts {
		l := terminal.Line{Colour: p.Colour}
		l.PutSafe(terminal.Plain, "host ")
		l.Put(terminal.Bold, cmp.Or(h.Name, "unknown"))
		switch name := hostOf(h.Key); {
		case lines[h.Name] > 1 && h.Key == "":
			l.PutSafe(terminal.Plain, "   not signed")
		case lines[h.Name] > 1:
			_, rest, _ := strings.Cut(h.Key, "+")
			l.PutSafe(terminal.Plain, "   key ")
			l.Put(terminal.Plain, name+"+"+hostOf(rest)) // with the key's hash
		case h.Key != "" && name+"/" != evidence.Origin(h.Name, ""):
			l.PutSafe(terminal.Plain, "   key ")
			l.Put(terminal.Plain, name)
		}
		l.PutSafe(terminal.Plain, fmt.Sprintf("   sessions %d   records %d", h.Sessions, h.Records))
		if h.Removed > 0 {
			l.PutSafe(terminal.Plain, fmt.Sprintf("   removed %d", h.Removed))
		}
		l.PutSafe(terminal.Plain, fmt.Sprintf("   checkpoints %d", h.Checkpoints))
		if h.Recovered > 0 {
			l.PutSafe(terminal.Plain, fmt.Sprintf("   recovered %d", h.Recovered))
		}
		if h.Begins > 0 {
			l.PutSafe(terminal.Plain, fmt.Sprintf("   begins with host_seq %d", h.Begins))
		}
		if log != nil {
			l.PutSafe(terminal.Plain, "   log size "+log.text())
		}
		out = append(out, l.End()...)
	}
	unreadable := 0
	for i := range r.Results {
		if r.Results[i].State == verify.Unreadable {
			if unreadable++; unreadable > maxUnreadable {
				continue
			}
		}
		out = append(out, p.session(&r.Results[i])...)
	}
	if n := unreadable - maxUnreadable; n > 0 {
		out = append(out, p.Line(string(verify.Unreadable), "", terminal.Count(n, "more session")+"; --format json names each")...)
	}
	unknown := false
	for _, h := range r.Hosts {
		if h.Key != "" && !h.Trusted && h.Sessions > 0 {
			out = append(out, p.Line(string(verify.Unknown), "", fmt.Sprintf("%s: host %s", terminal.Count(int(h.Sessions), "session"), h.Key))...)
			unknown = true
		}
	}
	if unknown {
		out = append(out, p.Line("note", "", "compare a key with auditproxy evidence key on its host, then put \"host KEY\" as a line into a file for --trust")...)
	}
	for _, line := range more {
		out = append(out, line...)
	}
	l := terminal.Line{Colour: p.Colour}
	l.PutSafe([]terminal.Style{terminal.Good, terminal.Bad, terminal.Warn}[exit], fmt.Sprintf("exit %d", exit))
	_, err := p.Out.Write(append(out, l.End()...))
	return err
}

// maxUnreadable is how many sessions that cannot be read have a line: of a damaged file
// there may be thousands.
const maxUnreadable = 100

func (l *Log) text() string {
	if l.Witnesses == 0 {
		return fmt.Sprint(l.Size)
	}
	text := fmt.Sprintf("%d, %d of %d witnesses", l.Size, l.Signed, l.Witnesses)
	if !l.At.IsZero() {
		text += l.At.UTC().Format(" on 2006-01-02 15:04:05")
	}
	return text
}

func (p Printer) session(r *verify.Result) (out []byte) {
	switch r.State {
	case verify.OK, verify.Unknown: // the latter once for each key
	case verify.Tampered:
		for _, f := range r.Findings {
			id := r.SessionID
			if strings.HasPrefix(f.Detail, "host_seq ") || strings.HasPrefix(f.Detail, "session ") {
				id = "" // it names the sessions
			}
			out = append(out, p.Line(string(r.State), id, f.Detail)...)
		}
		if r.NotShown > 0 {
			out = append(out, p.Line(string(r.State), r.SessionID, fmt.Sprintf("and %d more", r.NotShown))...)
		}
	default:
		out = p.Line(string(r.State), r.SessionID, r.Note)
	}
	return out
}

// Totals are the last object in JSON.
type Totals struct {
	Hosts     []verify.Host  `json:"hosts"`
	Sessions  int64          `json:"sessions"` // that are here; States has missing ones too
	Records   int64          `json:"records"`
	Verified  int64          `json:"verified"`
	Recovered int64          `json:"recovered,omitempty"` // by the key of their host alone
	Removed   int64          `json:"removed,omitempty"`   // of which only the hash is here
	States    map[string]int `json:"states"`
	Findings  map[string]int `json:"findings"`
	Unknown   []string       `json:"unknown_keys,omitempty"`
	Log       *Log           `json:"log,omitempty"`
	Note      string         `json:"note,omitempty"`
	Exit      int            `json:"exit"`
}

// JSON prints an object for each session, which object makes of its result, and
// one with the totals and the note; "": none.
func (p Printer) JSON(r verify.Report, log *Log, note string, exit int, object func(*verify.Result) any) error {
	t := Totals{Hosts: r.Hosts, States: map[string]int{}, Findings: map[string]int{}, Log: log, Note: note, Exit: exit}
	for i := range r.Results {
		s := &r.Results[i]
		if s.Findings == nil {
			s.Findings = []verify.Finding{}
		}
		t.Records += s.Records
		t.Verified += s.Verified
		t.States[string(s.State)]++
		for _, f := range s.Findings {
			t.Findings[string(f.What)]++
		}
		if err := terminal.PrintJSON(p.Out, object(s)); err != nil {
			return err
		}
	}
	for _, h := range r.Hosts {
		t.Sessions += h.Sessions
		t.Recovered += h.Recovered
		t.Removed += h.Removed // of sessions of which no record is here too
		if h.Key != "" && !h.Trusted && h.Sessions > 0 {
			t.Unknown = append(t.Unknown, h.Key)
		}
	}
	slices.Sort(t.Unknown)
	return terminal.PrintJSON(p.Out, &t)
}
