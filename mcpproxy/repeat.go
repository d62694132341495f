package mcpproxy

import (
	"slices"
	"time"

	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

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
	about := g.operations()
	switch {
	case r == nil || !read || subject != r.subject || !r.shows(about):
		v.Outcome, p.text = "denied", "The answer is not to a question about this call."
	case !now.Before(r.until):
		v.Outcome, p.error, p.text = "timeout", audit.ErrApprovalTimeout, lateText
	case how == elicitation.Cancelled:
		v.Outcome, p.error, p.text = "cancelled", audit.ErrCancelled, dismissedText
	case how != elicitation.Answered || !answer.Approved:
		v.Outcome = "denied"
	case p.result != nil:
		v.Outcome, v.Scope = "approved", string(answer.Scope)
		p.approved = a.accept(about, &p.result.shown, v, answer.Scope)
	}
	p.refused = v
	return p
}

// shows reports whether the question was about all operations: the server may have
// listed its tools in another way since, so that more is detected.
func (r *result) shows(about []operation) bool {
	return !slices.ContainsFunc(about, func(o operation) bool {
		return !slices.ContainsFunc(r.about, func(a operation) bool {
			return a.tool == o.tool && granted{detections: a.detections, level: a.level}.covers(o)
		})
	})
}

// apply refuses the call of a repetition that approves nothing.
func (p *repetition) apply(it *item) {
	it.refused, it.why = p.error, (&policy.Decision{Reason: p.text}).Denied()
	it.call.rec.Approval = p.refused.JSON()
}
