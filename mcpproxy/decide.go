package mcpproxy

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// decide decides about the calls of a frame, which are items. Unless the policy
// allows all of them, the frame is refused, or waits until a person approves it.
// midLine means that the frame starts in the middle of a line, rest that it is of
// a line that is refused already.
func (g *gatekeeper) decide(f *wire.Frame, items []item, midLine, rest bool, now time.Time) {
	if len(items) == 0 || g.gate.Policy == nil {
		return
	}
	a := &g.asked
	d := &a.refused
	if len(f.Messages) > wire.MaxBatch { // more of it may come, in a frame that could be denied
		g.refuse(policy.RuleOversize, "It is too large to be decided.")
	}
	// A server that knows the ids of the proxy's questions could ask the client
	// under one. No version that has elicitation has batches.
	if (len(f.Messages) > 1 || f.Inside || midLine) && g.answers(f, items) {
		g.refuse(ruleAmbiguous, "It has an answer to the proxy.")
		g.s.cfg.Log.Warn("answer about a call does not count: it is in a batch")
	}
	if d.Action == policy.Allow {
		a.decisions = slices.Grow(a.decisions[:0], len(a.calls))[:len(a.calls)]
		// A crash from here until the frame is forwarded leaves counts of calls
		// that were not made: too much is counted, never too little.
		g.tellCounters(g.gate.Policy.Decide(a.calls, now, g.gate.Counters, a.decisions))
		if i := policy.Strictest(a.decisions); i >= 0 {
			d = &a.decisions[i]
		}
	}
	if rest && d.Action == policy.Allow {
		d = &a.last
	}
	repeated := g.repeats(f, items, now)
	approved, waits := g.approval(f, midLine, items, d, repeated)
	refused := d.Action != policy.Allow && approved == nil && waits == nil
	if repeated != nil && (!refused || !g.gate.enforces()) {
		if items[0].strip = repeated.result; items[0].strip == nil {
			refused = true // the server would get the answer to the proxy
			d = &policy.Decision{Action: policy.Deny, Rule: ruleAmbiguous, Reason: policy.TwoReadings}
		}
	}
	from := 0
	for i := range items {
		it := &items[i]
		it.waits = waits
		switch {
		case refused:
			g.apply(it, d)
		case it.isCall():
			if from = g.allow(it, from); d.Action != policy.Allow {
				g.show(it, d)
			}
			if approved != nil {
				it.call.rec.Approval = approved.JSON()
			}
		}
	}
	if refused && repeated != nil && d.Action == policy.AskFirst && g.gate.enforces() {
		repeated.apply(&items[0])
	}
	if refused {
		for i := range a.decisions {
			g.giveBack(a.decisions[i].Held)
		}
	}
	a.last = *d
	clear(a.calls) // of what aliases the window
	clear(a.decisions)
	a.calls, a.of, a.decisions, a.refused = a.calls[:0], a.of[:0], a.decisions[:0], policy.Decision{}
}

// answers reports whether a frame has an answer to the proxy.
func (g *gatekeeper) answers(f *wire.Frame, items []item) bool {
	return slices.ContainsFunc(items, func(it item) bool { return it.ours != nil }) ||
		g.asksByResult && slices.ContainsFunc(f.Messages, func(m wire.Message) bool {
			_, _, _, has := elicitation.ParseRetry(m.Params, g.s.cfg.Base.SessionID)
			return has
		})
}

// approval returns the approval that a frame already has, or what it waits with; nil
// and nil if it is refused, or needs no approval.
func (g *gatekeeper) approval(f *wire.Frame, midLine bool, items []item, d *policy.Decision, repeated *repetition) (*audit.Approval, *waiting) {
	if d.Action != policy.AskFirst || !g.gate.enforces() || g.approvals == nil {
		return nil, nil
	}
	if repeated != nil {
		return repeated.approved, nil
	}
	about := g.operations()
	if approved, ok := g.approvals.has(about); ok {
		return &approved, nil
	}
	if !g.canWait(f, midLine, items) {
		return nil, nil
	}
	return nil, &waiting{about: about, result: g.byResult(f)}
}

// allow writes the decision into the record of a call that is allowed: the one
// of its operations that is the nearest to a limit. They are in asked from an
// index on; allow returns the index after them.
func (g *gatekeeper) allow(it *item, from int) int {
	it.call.rec.Policy = g.gate.allowed
	for ; from < len(g.asked.of) && g.asked.of[from] == it.call; from++ {
		d := &g.asked.decisions[from]
		if d.Counter != "" {
			it.call.rec.Policy = g.gate.decision(d)
		}
		it.held = append(it.held, d.Held...)
		it.call.refunds = append(it.call.refunds, d.Refunds()...)
	}
	return from
}

// apply writes a decision that allows nothing into a call's record and, if
// decisions are applied, refuses the call.
func (g *gatekeeper) apply(it *item, d *policy.Decision) {
	if it.isCall() {
		g.show(it, d)
	}
	if !g.gate.enforces() || it.refused != "" {
		return
	}
	it.why = d.Denied()
	switch {
	case d.Rule == ruleAmbiguous || d.Rule == ruleUnreadable:
		it.refused, it.why = audit.ErrAmbiguousRequest, ""
	case d.Action == policy.Deny:
		it.refused = audit.ErrPolicyDenied
	default:
		it.refused = audit.ErrApprovalUnavailable
		if it.isCall() {
			it.call.rec.Approval = audit.Approval{Outcome: "unavailable"}.JSON()
		}
	}
}

// show writes a decision into a call's record.
func (g *gatekeeper) show(it *item, d *policy.Decision) {
	one := *d
	one.Reason = g.s.short(d.Reason) // it may have the name of the tool
	it.call.rec.Policy = g.gate.decision(&one)
}

// giveBack takes back what calls that are not forwarded added to counters.
func (g *gatekeeper) giveBack(held []policy.Counter) {
	if len(held) > 0 {
		g.tellCounters(g.gate.Counters.Release(held))
	}
}

// tellCounters logs the first error of the counters, and the first after they worked again.
func (g *gatekeeper) tellCounters(err error) {
	if err != nil && !g.uncounted {
		g.s.cfg.Log.Error("policy counter not usable", zap.Error(err))
	}
	g.uncounted = err != nil
}
