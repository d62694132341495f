package mcpproxy

import (
	"crypto/sha256"
	"maps"
	"time"

	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// result is a call whose result is the question about it: the client asks its
// user and repeats the call with the answer (MCP 2026-07-28, "Multi Round-Trip
// Requests"). The repetition is a call of its own.
type result struct {
	subject [sha256.Size]byte // of the call; it must be repeated as it was
	carried elicitation.Carried
	id      []byte // of the request, as on the wire
	since   time.Time
	until   time.Time

	stripped []byte // of a repetition: what the server gets
}

// The member of params._meta that MCP 2026-07-28 has for what a client can.
const metaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"

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

// askByResult ends a call with the question about it. Its intent is in the
// journal: a crash before the answer leaves it as a call whose outcome is unknown,
// which no server has seen.
func (a *approvals) askByResult(w *waiting) {
	r := w.result
	r.since, r.until = w.since, w.until
	w.channel = ChannelClient
	a.mu.Lock()
	maps.DeleteFunc(a.results, func(_ string, old *result) bool { return !w.since.Before(old.until) })
	full := len(a.results) >= maxWaiting || a.ended
	if !full {
		a.results[w.question.ID] = r
	}
	a.mu.Unlock()
	if full {
		a.refuse(w, w.outcome("unavailable", nil), audit.ErrApprovalUnavailable, unavailableText)
		return
	}
	a.s.concludeAsked(w, time.Now())
	a.giveBack(w)
	a.out.reply(elicitation.AppendInputRequired(nil, r.id, &w.question))
}

// concludeAsked ends the call of a frame whose result is a question.
func (s *session) concludeAsked(w *waiting, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := w.items[0].call
	if s.ended || !s.unhold(c) {
		return
	}
	s.lines = s.lines[:0]
	c.rec.Approval, c.rec.ResultType = "", "input_required"
	s.conclude(c, audit.OutcomeOK, "", now)
	s.release(c)
	s.appendFinal(s.lines)
	w.items[0].call = nil
}

// A repetition is what a client's repetition of a call says of the question.
type repetition struct {
	result   *result         // nil: what is the proxy's cannot be removed from it
	approved *audit.Approval // nil if it approves nothing
	refused  audit.Approval  // then
	error    string          // its error type
	text     string
}

// repeats reads a frame as the repetition of a call that was asked about; nil if
// it is none. An answer holds for one repetition, which it names.
func (g *gatekeeper) repeats(f *wire.Frame, items []item, now time.Time) *repetition {
	if !g.asksByResult || len(f.Messages) != 1 || len(items) != 1 || !items[0].isCall() {
		return nil
	}
	m, a := &f.Messages[0], g.approvals
	id, answer, how, has := elicitation.ParseRetry(m.Params, g.s.cfg.Base.SessionID)
	if !has {
		return nil
	}
	a.mu.Lock()
	r := a.results[id]
	delete(a.results, id)
	a.mu.Unlock()
	v := audit.Approval{Channel: ChannelClient, By: answer.By}
	p := &repetition{result: r, error: audit.ErrApprovalDenied, text: deniedText}
	if r != nil {
		v.Request, v.WaitMS = id, now.Sub(r.since).Milliseconds()
	} else {
		p.result = &result{} // to remove what the server must not get
	}
	var stripped bool
	if p.result.stripped, stripped = elicitation.AppendStripped(nil, f.Bytes, p.result.carried); !stripped {
		p.result = nil
	}
	subject, read := elicitation.Subject(string(m.Method), m.Params)
	switch {
	case r == nil || !read || subject != r.subject:
		v.Outcome, p.text = "denied", "The answer is not to a question about this call."
	case !now.Before(r.until):
		v.Outcome, p.error, p.text = "timeout", audit.ErrApprovalTimeout, lateText
	case how == elicitation.Cancelled:
		v.Outcome, p.error, p.text = "cancelled", audit.ErrCancelled, dismissedText
	case how != elicitation.Answered || !answer.Approved:
		v.Outcome = "denied"
	case p.result != nil:
		v.Outcome, v.Scope = "approved", string(answer.Scope)
		p.approved = a.accept(g.operations(), v, answer.Scope)
	}
	p.refused = v
	return p
}

// apply refuses the call of a repetition that approves nothing.
func (p *repetition) apply(it *item) {
	it.refused, it.why = p.error, (&policy.Decision{Reason: p.text}).Denied()
	it.call.rec.Approval = p.refused.JSON()
}
