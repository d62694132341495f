package mcpproxy

import (
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// clientSide reads the client's messages. fromClient owns it.
type clientSide struct {
	s      *session
	out    *output
	server io.Writer

	methods *methods
	filler
	gatekeeper

	oversize map[int64]earlierCall // and not ended, by offset; see remember
	openLine struct {              // the last opaque line of which a message may become
		known bool
		off   int64
		earlierCall
	}
	items   []item
	refusal []byte

	dropping string // why the line was refused whose rest is still to come, as error type
	answer   string // to the calls in that line, "" for that of the error type
	midLine  bool   // the last byte forwarded was no LF
	passed   bool   // the frame before was forwarded
	ready    []byte
}

func newClientSide(s *session, out *output, a *approvals, server io.Writer) *clientSide {
	c := &clientSide{s: s, out: out, server: server}
	c.filler.red = s.red
	c.gatekeeper.s, c.approvals = s, a
	c.toolOf = c.riskTool
	c.setGate(s.gate.Load())
	return c
}

// setGate puts a gate before the frames to come. With a policy no method is
// skipped for the configuration: it would pass undecided.
func (c *clientSide) setGate(g *gate) {
	skip := c.s.cfg.SkipMethods
	if g.Policy != nil {
		skip = nil
	}
	c.gate, c.methods = g, newMethods(skip)
	c.filler.methods, c.gatekeeper.methods = c.methods, c.methods
}

// forward records what is in the frames and forwards their bytes, in that order.
// It returns false when the server no longer takes any.
func (c *clientSide) forward(frames []wire.Frame, ready []byte) bool {
	c.ready = ready
	c.items = c.items[:0]
	c.aside.calls, c.aside.bytes = 0, 0
	if g := c.s.gate.Load(); g != c.gate {
		c.setGate(g)
	}
	now := time.Time{}
	dropping := c.dropping
	for f := range frames {
		from := len(c.items)
		for m := range frames[f].Messages {
			if now.IsZero() {
				now = time.Now()
			}
			c.read(f, &frames[f].Messages[m], frames[f].Anomalies, now, dropping)
		}
		c.decide(&frames[f], c.items[from:], f == 0 && c.midLine, dropping != "", now)
		if frames[f].Complete {
			dropping = ""
		}
	}
	if len(c.items) == 0 && c.dropping == "" {
		return c.write(ready, frames, 0)
	}
	pos, _ := c.s.intend(c.items, now) // what it could not write and must not be forwarded is refused
	c.remember()
	c.giveBackRefused()
	if c.s.cfg.WaitIntent && pos > 0 && !c.s.cfg.Journal.Wait(pos, c.s.cfg.SyncWait) {
		c.s.amend(c.items, func(r *facts) { r.NotDurable = true })
	}
	if c.dropping == "" && c.allForwardable() {
		return c.write(ready, frames, 0)
	}
	return c.forwardSome(frames)
}

// remember keeps the calls whose end is still to come: nil for one that was
// refused or could not be recorded.
func (c *clientSide) remember() {
	for i := range c.items {
		switch it := &c.items[i]; {
		case it.open:
			c.openLine.known, c.openLine.off, c.openLine.earlierCall = true, it.off, it.begin()
		case it.begun:
			if c.oversize == nil {
				c.oversize = make(map[int64]earlierCall)
			}
			c.oversize[it.off] = it.begin()
		}
	}
}

// giveBackRefused gives back what calls added to counters that are refused for
// another reason than the policy.
func (c *clientSide) giveBackRefused() {
	for i := range c.items {
		if it := &c.items[i]; it.refused != "" {
			c.giveBack(it.held)
		}
	}
}

// allForwardable reports whether all frames can be forwarded.
func (c *clientSide) allForwardable() bool {
	for i := range c.items {
		if it := &c.items[i]; it.refused != "" || it.waits != nil || it.ours != nil || it.strip != nil || it.cancel != nil && c.approvals != nil {
			return false
		}
	}
	return true
}

// forwardSome forwards the frames that may pass, answers those that are refused,
// and sets those aside that wait for a person.
func (c *clientSide) forwardSome(frames []wire.Frame) bool {
	i := 0
	for f := range frames {
		frame := &frames[f]
		refused, answer := c.dropping, c.answer
		from := i
		for ; i < len(c.items) && c.items[i].frame == f; i++ {
			if refused == "" {
				refused, answer = c.items[i].refused, c.items[i].why
			}
		}
		if items := c.items[from:i]; refused == "" {
			switch {
			case len(items) > 0 && items[0].waits != nil:
				c.setAside(frame, items)
				c.passed = false
			case c.approvals != nil && c.cancels(frame, items):
				c.passed = false
			case len(items) == 1 && items[0].ours != nil && len(frame.Messages) == 1:
				c.approvals.respond(items[0].ours, frame.Messages[0].Raw)
				c.passed = false
			case len(items) == 1 && items[0].strip != nil:
				if !c.write(items[0].strip.stripped, frames, f) {
					return false
				}
			case !c.write(frame.Bytes, frames, f):
				return false
			}
			continue
		}
		why := refusal{answer: answer}
		if c.dropping == "" {
			if !c.invalidateForwarded(frames, f) {
				return false
			}
			why.reason = reasons[refused]
		}
		c.passed = false
		c.dropping, c.answer = refused, answer
		if frame.Complete {
			c.dropping, c.answer = "", ""
		}
		c.refusal = appendRefusal(c.refusal[:0], frame, why)
		c.out.reply(c.refusal)
		if cap(c.refusal) > maxSpare {
			c.refusal = nil
		}
	}
	return true
}

// invalidateForwarded makes the forwarded part of a value that is refused now
// unreadable for every server: no JSON value continues with "!" and a line feed, not
// even inside a string. Nothing was forwarded of most refused frames, nor of a value
// whose frame before was refused.
func (c *clientSide) invalidateForwarded(frames []wire.Frame, at int) bool {
	f := &frames[at]
	begun := c.midLine || c.passed && f.Inside
	for i := range f.Messages {
		m := &f.Messages[i]
		goesOn := m.State == wire.Ended || m.State != wire.Begun && int64(len(f.Bytes)) < m.End-m.Off
		begun = begun || c.passed && goesOn
	}
	if !begun {
		return true
	}
	return c.write([]byte("!\n"), frames, at)
}

// write forwards b, which is of the frames from number first on. It returns false if the
// server does not take all of it: how much it has of the frame where that ends is
// unknown, and of those behind it nothing.
func (c *clientSide) write(b []byte, frames []wire.Frame, first int) bool {
	if len(b) == 0 {
		return true
	}
	n, err := c.server.Write(b)
	if err == nil {
		c.midLine, c.passed = b[len(b)-1] != '\n', true
		return true
	}
	for ; n > 0 && first < len(frames); first++ {
		n -= len(frames[first].Bytes)
	}
	if i := slices.IndexFunc(c.items, func(it item) bool { return it.frame >= first }); i >= 0 {
		c.s.amend(c.items[i:], func(r *facts) { r.Forwarded = false })
	}
	c.s.cfg.Log.Debug("the server takes no more input", zap.Error(err))
	return false
}

// read turns a message into an item, if there is anything to record or to
// remember of it.
func (c *clientSide) read(frame int, m *wire.Message, all wire.Anomaly, now time.Time, dropping string) {
	// A call in the rest of a refused line is refused with it, also if it could
	// be recorded and forwarded by now.
	refused := dropping
	if refused == "" && c.s.cfg.DenyAmbiguous && all&wire.Ambiguous != 0 {
		refused = audit.ErrAmbiguousRequest
	}
	if isResponse(m) && c.approvals != nil && c.approvals.owns(m.ID) {
		c.items = append(c.items, item{frame: frame, ours: m.ID})
		return
	}
	earlier, line, goesOn := c.earlier(m)
	cl := c.classOf(m)
	if cl == cancelled {
		if id := wire.Member(m.Params, "requestId"); id != nil {
			c.items = append(c.items, item{frame: frame, cancel: id, refused: dropping})
		}
	}
	switch {
	case goesOn && (earlier.call == nil || earlier.refused != ""):
		// Its begin has no record, or a final one; a refused value is refused whole.
		if earlier.refused != "" {
			c.items = append(c.items, item{frame: frame, refused: earlier.refused})
		}
		return
	case goesOn && earlier.other:
		if cl != recorded {
			return // it is in the table of open calls
		}
		earlier, line = earlierCall{}, 0 // its end makes it a call
	case goesOn, m.Anomalies&wire.Unreadable != 0:
		cl = recorded // under the method that was read, if any
	case cl.unrecorded() && isAnswered(m, cl):
		// Its answer must not be taken for that of a call with its id.
	case cl.unrecorded():
		return
	}
	it := item{frame: frame, id: wire.KeepID(m.ID, maxSpare), variant: wire.KeepID(m.VariantID, maxSpare), begun: m.State == wire.Begun, off: m.Off, refused: dropping, earlier: earlier}
	if line > 0 {
		it.earlier, it.line = earlierCall{}, line // its call has no number yet
	}
	it.open = m.Open && m.State == wire.Opaque
	it.call = c.s.take()
	it.call.class, it.call.start = cl, now
	switch cl {
	case recorded:
		var found wire.Anomaly
		it.tool, found = c.fill(it.call, m)
		it.refused = refused
		c.assess(&it, m, all|found)
		it.opaque = it.call.rec.Bytes > 0
	case initialize:
		if can := wire.Member(m.Params, "capabilities"); can != nil { // server/discover has none
			c.s.setCapabilities(can)
		}
		it.call.rec.Client = peerOf(c.s.red, wire.Member(m.Params, "clientInfo"))
		if it.call.rec.Client == (audit.Peer{}) {
			it.call.rec.Client = peerOf(c.s.red, wire.Member(m.Meta, metaClientInfo))
		}
	case listTools:
		it.call.cursor = cursorOf(wire.Member(m.Params, "cursor"))
	}
	c.items = append(c.items, it)
}

// isAnswered reports whether a server may answer m, which is no call: most answer
// a notification that has an id with an error, and do not look for a result where
// there is a method.
func isAnswered(m *wire.Message, cl class) bool {
	return m.Method != nil && m.ID != nil && m.State != wire.Begun && (cl == skipped || string(m.ID) != string(noID))
}

// isResponse reports whether a message is a response of the client and nothing
// else in any reading.
func isResponse(m *wire.Message) bool {
	return m.Method == nil && m.ID != nil && (m.HasResult || m.HasError) && m.State == wire.Complete && len(m.Candidates) == 0
}

// earlier finds the call that the bytes before m made of what m is about, and
// reports whether there is one: with no call in it, that was refused or could
// not be recorded. line is 1 + the index of its item if it is of the same read.
func (c *clientSide) earlier(m *wire.Message) (b earlierCall, line int, found bool) {
	switch {
	case m.State == wire.Begun,
		m.State == wire.Opaque && m.Sum == nil,
		m.State == wire.Complete && m.Anomalies&wire.MultiLine == 0:
		return earlierCall{}, 0, false // it is from one read, or one line
	}
	for i := range c.items {
		if it := &c.items[i]; (it.open || it.begun) && it.off == m.Off {
			it.open, it.begun = false, false
			return it.begin(), i + 1, true
		}
	}
	if b, found = c.oversize[m.Off]; found {
		delete(c.oversize, m.Off)
	} else if c.openLine.known && c.openLine.off == m.Off && m.State == wire.Complete {
		b, found = c.openLine.earlierCall, true
		c.openLine.known = false
	}
	return b, 0, found
}

// classOf says what to do about m: what its method says, unless another
// reading of it would be recorded. What says nothing is a call: another server
// may read it as one.
func (c *clientSide) classOf(m *wire.Message) class {
	for i := range m.Candidates {
		cl := c.methods.of(m.Candidates[i].Method).class
		if cl == recorded || cl == listTools && c.gate.hides() { // its answer could not be found, see edit
			return recorded
		}
	}
	if m.Method == nil {
		if !m.HasResult && !m.HasError {
			return recorded
		}
		return skipped
	}
	cl := c.methods.of(m.Method).class
	if m.ID == nil && (cl == initialize || cl == listTools) {
		return skipped // a notification has no answer
	}
	return cl
}
