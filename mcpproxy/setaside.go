package mcpproxy

import (
	"slices"
	"strings"
	"time"

	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/jsontext"
)

// canWait reports whether a frame can be set aside: it must be whole, and whole
// lines.
func (g *gatekeeper) canWait(f *wire.Frame, midLine bool, items []item) bool {
	if midLine || f.Inside || !f.Complete || len(f.Bytes) == 0 || f.Bytes[len(f.Bytes)-1] != '\n' {
		return false
	}
	calls, size := g.aside.calls, g.aside.bytes+len(f.Bytes)
	for i := range items {
		it := &items[i]
		if it.refused != "" || it.begun || it.open || it.line > 0 || it.earlier != (earlierCall{}) {
			return false
		}
		if it.isCall() {
			calls++
		}
	}
	if !g.approvals.room(calls, size) {
		return false
	}
	g.aside.calls, g.aside.bytes = calls, size
	return true
}

// byResult returns how a frame is asked about by the result of its call, nil if
// another channel comes first, or the client cannot do that.
func (g *gatekeeper) byResult(f *wire.Frame) *result {
	if len(f.Messages) != 1 {
		return nil
	}
	m, a := &f.Messages[0], g.approvals
	for _, name := range a.cfg.Channels {
		if name == ChannelFiles && a.files() {
			return nil
		}
		version := string(jsontext.AppendUnquote(nil, wire.Member(m.Meta, metaProtocolVersion)))
		form := elicitation.Support(version, wire.Member(m.Meta, metaClientCapabilities))
		if name != ChannelClient || form != elicitation.InputRequired || !form.Asks(g.methods.of(m.Method).name) {
			continue
		}
		r := &result{id: append([]byte(nil), m.ID...)}
		var read, kept bool
		r.subject, read = elicitation.Subject(string(m.Method), m.Params)
		r.carried, kept = elicitation.CarriedBy(m.Params, g.s.cfg.Base.SessionID)
		if read && kept && jsontext.Valid(m.ID) {
			return r
		}
	}
	return nil
}

// setAside copies a frame whose calls are recorded and has it wait.
func (g *gatekeeper) setAside(f *wire.Frame, items []item) {
	w := items[0].waits
	w.bytes = slices.Clone(f.Bytes)
	w.frame = wire.Frame{Anomalies: f.Anomalies}
	for i := range f.Messages {
		m := &f.Messages[i]
		var params []byte
		if asksForTask(m) {
			params = []byte(`{"task":{}}`) // as much as the answer needs
		}
		w.frame.Messages = append(w.frame.Messages, wire.Message{State: m.State, ID: slices.Clone(m.ID), Method: slices.Clone(m.Method), Params: params, Meta: slices.Clone(m.Meta),
			HasResult: m.HasResult, HasError: m.HasError, Anomalies: m.Anomalies})
	}
	w.items = slices.Clone(items)
	for i := range w.items {
		it := &w.items[i]
		it.id, it.variant, it.cancel, it.tool = slices.Clone(it.id), slices.Clone(it.variant), slices.Clone(it.cancel), strings.Clone(it.tool)
	}
	w.counters = g.gate.Counters
	w.since = time.Now()
	w.until = w.since.Add(g.approvals.cfg.Timeout)
	w.question = g.s.question(w)
	w.question.ServerKey = g.approvals.cfg.ServerKey
	if w.result != nil {
		g.asksByResult = true
		g.approvals.askByResult(w)
		return
	}
	g.approvals.add(w)
}

// cancels ends the wait of calls that a frame cancels, and reports whether it
// does nothing else: the server does not know those calls.
func (g *gatekeeper) cancels(f *wire.Frame, items []item) bool {
	alone := false
	for i := range items {
		if id := items[i].cancel; id != nil && g.approvals.cancel(id) {
			alone = !items[i].found && len(f.Messages) == 1
		}
	}
	return alone
}
