// Package evidencetest makes sessions with evidence, and changes them as an attacker
// would, for tests.
//
// The files, from the top: change, line, evidencetest.
package evidencetest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"golang.org/x/mod/sumdb/note"
)

// A Host writes sessions one after the other, as the proxies of one spool directory
// do. It panics where a test could only fail.
type Host struct {
	Name string
	Key  string // the verifier key

	signer   note.Signer
	now      time.Time
	seq      uint64
	previous *evidence.Previous
}

// NewHost returns a host whose first session starts at that time.
func NewHost(name string, now time.Time) *Host {
	h := &Host{Name: name, now: now}
	h.Rotate()
	return h
}

// Rotate gives the host another key for its next sessions.
func (h *Host) Rotate() { h.signer, h.Key = newKey("auditproxy/" + h.Name) }

func newKey(name string) (note.Signer, string) {
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		panic(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		panic(err)
	}
	return signer, public
}

// End is how a session ends.
type End int

// The ends.
const (
	Ended     End = iota
	Running       // a few records after the last checkpoint
	Recovered     // its process died, and recovery ended it
	Uncovered     // its process died between its end and the last checkpoint, which is recovery's
)

// A Plan says what session to write.
type Plan struct {
	Calls int
	Every int // calls for each checkpoint; 0: 10
	End   End
	Args  audit.JSON // of the calls; "": short ones
}

// A Session is the records of a session, without line feeds.
type Session struct {
	ID    string
	Lines [][]byte
	Host  *Host

	start evidence.Session
	key   note.Signer
}

// A writer writes the records of a session.
type writer struct {
	s      *Session
	tree   evidence.Tree
	now    time.Time
	signer note.Signer // of checkpoints
	call   uint64
}

func (w *writer) add(r audit.Record) {
	w.now = w.now.Add(time.Millisecond)
	r.RecordID, r.SessionID, r.Seq, r.TS, r.Host, r.User, r.PID = audit.NewID(w.now), w.s.ID, uint64(len(w.s.Lines)), w.now, w.s.Host.Name, "agent", 4711
	if r.Kind == audit.KindCheckpoint {
		c := evidence.Checkpoint{Origin: w.s.start.Origin, Size: w.tree.Size(), Root: w.tree.Root()}
		if err := c.SignRecord(&r, w.signer); err != nil {
			panic(err)
		}
	}
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	w.s.Lines = append(w.s.Lines, line)
	w.tree.Append(evidence.Leaf(line))
}

func (w *writer) calls(n, every int, args audit.JSON) {
	for i := range n {
		w.call++
		r := audit.Record{Kind: audit.KindCall, CallNo: w.call, Method: "tools/call", Tool: tools[int(w.call)%len(tools)], Outcome: audit.OutcomeOK,
			Forwarded: true, Duration: time.Millisecond, RequestID: fmt.Sprint(w.call), RequestIDType: "number", Args: `{"pane_id":"%1"}`}
		if args != "" {
			r.Args = args
		}
		w.add(r)
		if (i+1)%every == 0 {
			w.checkpoint(false)
		}
	}
}

var tools = []string{"send_keys", "pipe_pane", "capture_pane", "list_windows"}

func (w *writer) checkpoint(recovered bool) {
	w.add(audit.Record{Kind: audit.KindCheckpoint, Recovered: recovered, Duration: -1})
}

func (w *writer) end(recovered bool) {
	w.add(audit.Record{Kind: audit.KindSessionEnd, Recovered: recovered, Duration: -1})
	w.checkpoint(recovered || w.signer == w.s.Host.signer)
}

// Beside returns another spool directory with the same key.
func (h *Host) Beside() *Host { return &Host{Name: h.Name, Key: h.Key, signer: h.signer, now: h.now} }

// Restore has the sessions after that one forgotten.
func (h *Host) Restore(s *Session) {
	h.seq, h.previous = s.start.HostSeq, &evidence.Previous{SessionID: s.ID, Leaf: evidence.Leaf(s.Lines[0])}
}

// Wait has a time pass before the host's next session.
func (h *Host) Wait(d time.Duration) { h.now = h.now.Add(d) }

// Session writes the host's next session.
func (h *Host) Session(p Plan) *Session {
	h.now = h.now.Add(time.Minute)
	h.seq++
	s := &Session{ID: audit.NewID(h.now), Host: h}
	s.begin(h.seq, h.previous)
	h.previous = &evidence.Previous{SessionID: s.ID, Leaf: evidence.Leaf(s.Lines[0])}
	s.write(p, h.now)
	return s
}

// begin writes session_start, with a new key.
func (s *Session) begin(seq uint64, previous *evidence.Previous) {
	origin := evidence.Origin(s.Host.Name, s.ID)
	var key string
	s.key, key = newKey(origin)
	s.start = evidence.Session{Origin: origin, Key: key, HostKey: s.Host.Key, HostSeq: seq, Previous: previous}
	if err := s.start.Sign(s.Host.signer); err != nil {
		panic(err)
	}
	w := writer{s: s, now: s.Host.now}
	w.add(audit.Record{Kind: audit.KindSessionStart, Duration: -1, Proxy: `{"version":"test"}`, Evidence: s.start.JSON()})
}

// write writes what follows session_start.
func (s *Session) write(p Plan, now time.Time) {
	if p.Every == 0 {
		p.Every = 10
	}
	w := writer{s: s, now: now.Add(time.Second), signer: s.key}
	w.tree.Append(evidence.Leaf(s.Lines[0]))
	w.calls(p.Calls, p.Every, p.Args)
	switch p.End {
	case Ended:
		w.end(false)
	case Running:
		w.calls(3, p.Every+4, p.Args)
	case Recovered:
		w.calls(2, p.Every+3, p.Args)
		w.signer = s.Host.signer
		w.end(true)
	case Uncovered:
		w.signer = s.Host.signer
		w.end(false)
	}
}

// writer returns one that continues the session.
func (s *Session) writer() *writer {
	w := &writer{s: s, now: s.Host.now}
	for _, line := range s.Lines {
		w.tree.Append(evidence.Leaf(line))
	}
	return w
}

// Continue has the session's own process write more, after whatever ended it.
func (s *Session) Continue() *Session {
	c := s.Clone()
	w := c.writer()
	w.signer = s.key
	w.calls(1, 1, "")
	return c
}

// Recover has recovery write another checkpoint, after whatever ended the session.
func (s *Session) Recover() *Session {
	c := s.Clone()
	w := c.writer()
	w.signer = s.Host.signer
	w.checkpoint(true)
	return c
}

// RecoveredBy has a host write calls and then end the session, as recovery does.
func (s *Session) RecoveredBy(by *Host, calls int) *Session {
	c := s.Clone()
	w := c.writer()
	w.signer = by.signer
	w.calls(calls, calls+1, "")
	w.end(true)
	return c
}

// Checkpoints returns the signed checkpoints in a session's records, the first
// first.
func (s *Session) Checkpoints() (list [][]byte) {
	for _, line := range s.Lines {
		if r, err := audit.Parse(line); err == nil && r.Kind == audit.KindCheckpoint {
			if signed, err := evidence.CheckpointOf(&r); err == nil {
				list = append(list, signed)
			}
		}
	}
	return list
}

// Sign has the session's own key sign a checkpoint of other lines.
func (s *Session) Sign(lines ...[]byte) []byte {
	var tree evidence.Tree
	for _, line := range lines {
		tree.Append(evidence.Leaf(line))
	}
	signed, err := evidence.Checkpoint{Origin: s.start.Origin, Size: tree.Size(), Root: tree.Root()}.Sign(s.key)
	if err != nil {
		panic(err)
	}
	return signed
}

// Short returns the session with a short record in place of that one, which Kafka refused,
// signed with a host's key.
func (s *Session) Short(seq int, by *Host) *Session { return s.short(seq, by, func(*audit.Record) {}) }

// short is Short of a record that is changed.
func (s *Session) short(seq int, by *Host, change func(*audit.Record)) *Session {
	c := s.Clone()
	r, err := audit.Parse(bytes.Clone(s.Lines[seq]))
	if err != nil {
		panic(err)
	}
	r.Args, r.Proxy, r.Anomalies = "", "", []string{"undeliverable"}
	change(&r)
	if err := evidence.SignStandIn(&r, evidence.Leaf(s.Lines[seq]), by.signer); err != nil {
		panic(err)
	}
	c.Lines[seq] = bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	return c
}

// Start returns the entry of a log about a session's start.
func (s *Session) Start() evidence.Entry {
	return evidence.Entry{Origin: s.start.Origin, HostKey: s.start.HostKey, HostSeq: s.start.HostSeq, Leaf: evidence.Leaf(s.Lines[0])}
}

// Clone returns a copy that may be changed.
func (s *Session) Clone() *Session {
	c := *s
	c.Lines = make([][]byte, len(s.Lines))
	for i, line := range s.Lines {
		c.Lines[i] = bytes.Clone(line)
	}
	return &c
}

// Unsigned returns the records as a proxy without evidence writes them.
func (s *Session) Unsigned() *Session {
	c := &Session{ID: s.ID, Host: s.Host}
	for _, line := range s.Lines {
		r, err := audit.Parse(line)
		if err != nil {
			panic(err)
		}
		if r.Kind != audit.KindCheckpoint {
			r.Evidence, r.Seq = "", uint64(len(c.Lines))
			c.Lines = append(c.Lines, bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n")))
		}
	}
	return c
}

// Trust returns a trust file for the hosts.
func Trust(hosts ...*Host) string {
	var b strings.Builder
	for _, h := range hosts {
		b.WriteString("host " + h.Key + "\n")
	}
	return b.String()
}

// RecoverAt has a holder of the host's key write another end of the session, from a record
// on, as recovery would.
func (s *Session) RecoverAt(at int) *Session {
	c := s.Clone()
	c.Lines = c.Lines[:at]
	w := c.writer()
	w.signer = s.Host.signer
	w.calls(2, 3, "")
	w.end(true)
	return c
}
