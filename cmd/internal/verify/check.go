package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	evidence "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"
)

// A report is the result of verify for one session.
type report struct {
	SessionID    string    `json:"session_id"`
	State        string    `json:"state"` // live, dead, ended, as it was when the last line had been read; "" if it could not be read
	Machine      string    `json:"machine,omitempty"`
	FirstSegment uint32    `json:"first_segment"` // more than 1: retention removed the lines before it
	Lines        int64     `json:"lines"`
	Records      int64     `json:"records"`
	Calls        int64     `json:"calls"`   // with a final record
	Unknown      int64     `json:"unknown"` // calls without a known outcome
	Running      int       `json:"running"` // calls without a final record
	Unrecorded   int64     `json:"unrecorded"`
	SetAside     []string  `json:"set_aside,omitempty"` // torn tails that recovery kept
	Problems     []problem `json:"problems,omitempty"`
	NotShown     int       `json:"problems_not_shown,omitempty"`
	Error        string    `json:"error,omitempty"` // why it could not be read to its end
}

// begins reports whether the session's writer is alive and has written no record yet.
func (r *report) begins() bool {
	return r.State == spool.Live.String() && r.Records == 0 && r.Error == ""
}

// damaged reports whether there is something to say of the session beside its evidence.
func (r *report) damaged() bool { return len(r.Problems) > 0 || r.Unrecorded > 0 || r.Error != "" }

// A problem is damage to a session, or a loss.
type problem struct {
	Segment uint32 `json:"segment,omitempty"`
	Offset  int64  `json:"offset"`
	Text    string `json:"text"`
}

// maxProblems is how many problems of one session are listed.
const maxProblems = 100

var errInterrupted = errors.New("interrupted")

// A check reads a session once and keeps the state that reveals gaps.
type check struct {
	report   report
	entry    spool.Entry
	numbered bool                // a seq has been seen
	seq      uint64              // the next one
	called   bool                // an intent has been seen
	call     uint64              // the next call_no
	open     map[uint64]struct{} // calls without a final record
	before   bool                // retention has removed segments
	rows     *evidence.Session   // nil: evidence is not checked
	last     bool                // all other sessions have been read
	strays   strays              // the last lines of another session
}

// A strays is lines of one other session with no record of this one between them: of a
// directory that was renamed, all.
type strays struct {
	session string
	lines   int
	problem int // its place in the report
}

func newCheck(e spool.Entry, sessions *evidence.Checker, last bool) *check {
	c := &check{entry: e, open: make(map[uint64]struct{}), call: 1, last: last}
	if sessions != nil {
		c.rows = sessions.Session(e.ID, evidence.About{})
	}
	c.report = report{SessionID: e.ID, SetAside: e.Torn}
	if len(e.Segments) > 0 {
		c.report.FirstSegment = e.Segments[0]
		c.before = e.Segments[0] > 1
	}
	return c
}

// run reads the session. state returns its state afterwards.
func (c *check) run(dir string, p *terminal.Progress, stopped func() bool, state func() (spool.State, error)) {
	c.report.Machine = spool.Machine(dir, c.entry.ID)
	err := c.entry.Err
	var r *spool.Reader
	if err == nil {
		r, err = spool.OpenReader(spool.ReaderConfig{Dir: dir, Session: c.entry.ID})
	}
	if err == nil {
		defer r.Close()
		err = c.read(r, p, stopped)
	}
	now, unclear := c.entry.State, c.entry.Err != nil
	if err == nil && now == spool.Live {
		// It may have ended while it was read. Only a session that is still
		// alive may have calls without a record; lines written since have
		// theirs.
		now, err = state()
		if unclear = err != nil; !unclear && now != spool.Live {
			err = c.read(r, p, stopped)
		}
	}
	c.report.Running = len(c.open)
	if !unclear {
		c.report.State = now.String()
	}
	c.prove(now, err)
	if err != nil {
		c.report.Error = err.Error()
		return
	}
	c.finish(now, r)
}

// prove ends the check of the evidence.
func (c *check) prove(state spool.State, err error) {
	if c.rows == nil || !c.last && err == nil && c.report.begins() {
		return
	}
	// A process may have died between the session's end and its signature, which
	// recovery adds.
	c.rows.Update(evidence.About{Live: state == spool.Live, Dead: state != spool.Live, Cut: c.before})
	if err != nil {
		c.rows.Fail(err)
	}
	c.rows.End()
}

// row gives a line to the check of the evidence.
func (c *check) row(item spool.Item) {
	switch {
	case c.rows == nil || item.Damage == spool.Missing || item.Damage == spool.TornEnd:
		// A missing segment shows by its records, and a write that failed halfway left
		// no record.
	case item.Record():
		c.rows.Add(evidence.Row{Line: item.Line})
	case item.Damage == spool.LongLine:
		c.rows.Add(evidence.Row{Line: []byte{}})
	case item.Damage == spool.BadLine && !bytes.HasPrefix(item.Line, []byte(`{"line":`)):
		c.rows.Add(evidence.Row{Line: item.Line})
	}
}

func (c *check) read(r *spool.Reader, p *terminal.Progress, stopped func() bool) error {
	for n := 0; ; n++ {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if item.Damage != spool.Missing {
			c.report.Lines++
			p.Add(item.Length)
		}
		c.item(item)
		if n%4096 == 0 && stopped() {
			return errInterrupted
		}
	}
}

func (c *check) problem(at spool.Position, format string, args ...any) {
	if len(c.report.Problems) == maxProblems {
		c.report.NotShown++
		return
	}
	c.report.Problems = append(c.report.Problems, problem{at.Segment, at.Offset, fmt.Sprintf(format, args...)})
}

func (c *check) item(item spool.Item) {
	c.row(item)
	switch item.Damage {
	case spool.Intact, spool.Conflicted:
	case spool.Missing:
		c.problem(item.Pos, "%v: %d", item.Damage, item.Length)
		return
	default:
		c.problem(item.Pos, "%v: %s", item.Damage, terminal.Count(int(item.Length), "byte"))
		return
	}
	h, err := readHead(item.Line)
	switch {
	case err != nil:
		c.problem(item.Pos, "%v", err)
	case h.session != "" && h.session != c.entry.ID:
		c.stray(item.Pos, h.session)
	case item.Damage == spool.Conflicted:
		c.problem(item.Pos, "%v, record %s", item.Damage, h.record)
	case h.line == audit.LineIntent:
		c.intent(item.Pos, h)
	case h.line == audit.LineRecord:
		c.record(item, h)
	}
}

// stray adds a line of another session to its problem.
func (c *check) stray(at spool.Position, session string) {
	if s := &c.strays; s.lines > 0 && s.session == session {
		s.lines++
		if s.problem < len(c.report.Problems) {
			c.report.Problems[s.problem].Text = fmt.Sprintf("%d lines of another session, %q, the first of them here", s.lines, session)
		}
		return
	}
	c.strays = strays{session, 1, len(c.report.Problems)}
	c.problem(at, "line of another session, %q", session)
}

func (c *check) intent(at spool.Position, h head) {
	switch {
	case !h.hasCall || h.call == 0:
		c.problem(at, "intent without a call_no")
		return
	case h.call < c.call && c.called:
		return // repeated with more of the call; the first one counts
	case h.call > c.call && (c.called || !c.before):
		c.problem(at, "%s before this line", missing("call_no", c.call, h.call-1))
	}
	c.called, c.call = true, h.call+1
	c.open[h.call] = struct{}{}
}

func (c *check) record(item spool.Item, h head) {
	c.report.Records++
	c.strays = strays{}
	switch {
	case !h.hasSeq:
		c.problem(item.Pos, "record without a seq")
	case h.seq > c.seq && (c.numbered || !c.before):
		c.problem(item.Pos, "%s before this line", missing("seq", c.seq, h.seq-1))
	case h.seq < c.seq:
		c.problem(item.Pos, "seq %d is repeated or out of order", h.seq)
	}
	if h.hasSeq {
		c.numbered, c.seq = true, max(c.seq, h.seq+1)
	}
	switch h.kind {
	case audit.KindCall:
		c.final(item, h)
	case audit.KindGap:
		if _, r, err := audit.ParseLine(item.Line); err == nil {
			c.report.Unrecorded += r.Count
		}
	}
}

func (c *check) final(item spool.Item, h head) {
	c.report.Calls++
	if summary, _, _ := bytes.Cut(item.Line, []byte(`,"args":`)); bytes.Contains(summary, []byte(`,"outcome":"unknown"`)) {
		c.report.Unknown++
	}
	if _, ok := c.open[h.call]; ok {
		delete(c.open, h.call)
		return
	}
	switch {
	case !h.hasCall:
		c.problem(item.Pos, "call without a call_no")
	case h.call >= c.call && (c.called || !c.before):
		c.problem(item.Pos, "call %d has a record and no intent", h.call)
	case h.call < c.call && !c.before:
		c.problem(item.Pos, "call %d has a record already", h.call)
	}
}

// finish reports the problems at the end of a session. One that has a writer may end
// anywhere behind what was synced before it was read.
func (c *check) finish(state spool.State, r *spool.Reader) {
	pos, n := r.Tail()
	if state == spool.Live {
		end := spool.Position{Segment: pos.Segment, Offset: pos.Offset + n}
		if end.Before(c.entry.Durable) && len(c.report.Problems) == 0 {
			c.problem(end, "the session's end is missing: its proxy has synced up to %s", c.entry.Durable.Place())
		}
		return
	}
	if n > 0 {
		c.problem(pos, "%v: %s", spool.TornEnd, terminal.Count(int(n), "byte"))
	}
	if state == spool.Dead {
		text := "session is dead and not recovered: the next auditproxy on its host does it, or auditproxy recover"
		if len(c.open) > 0 {
			text += "; " + terminal.Count(len(c.open), "call") + " without a record"
		}
		c.problem(pos, "%s", text)
		return
	}
	if c.report.Records == 0 && c.strays.lines > 0 {
		return // the records are the other session's
	}
	for _, n := range sortedCalls(c.open) {
		c.problem(pos, "call %d has no record", n)
	}
}

func sortedCalls(open map[uint64]struct{}) []uint64 {
	var list []uint64
	for n := range open {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func missing(what string, from, to uint64) string {
	if from == to {
		return fmt.Sprintf("%s %d is missing", what, from)
	}
	return fmt.Sprintf("%s %d to %d are missing", what, from, to)
}
