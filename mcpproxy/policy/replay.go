package policy

import (
	"slices"
	"time"
)

// A Recorded is one operation of a recorded call. Arguments is the redacted
// summary that the record has, and Category is not used.
//
// Operations inside a value that is now a digest are not seen.
type Recorded struct {
	Call
	Least, Most string // the categories that the call can have had, words of mcpproxy/risk
	Cut         bool   // members may be missing from Arguments
	Unseen      bool   // the arguments may do more than Detections has
}

// A Replayed is what a policy would have decided about a recorded call.
type Replayed struct {
	Action  Action  // if Unknown is ""
	Rule    string  // as in Decision; of an undecided call, the first rule that is not decided
	Unknown Unknown // "" if the call is decided

	held []held
}

// Replay is Decide for the operations of a recorded call. Where it decides, it
// decides as Decide did or would have done with the arguments on the wire. It
// returns the index of the decision that holds for the call.
func (p *Policy) Replay(calls []Recorded, at time.Time, counters Histories, decisions []Replayed) (strictest int) {
	var all []held // of the call so far
	for i := range calls {
		d := &decisions[i]
		*d = Replayed{}
		r := replay{p: p, c: &calls[i], d: d, t: p.of(calls[i].Tool)}
		if r.t == p.other && Redacted(calls[i].Tool) {
			r.unknown("", UnknownTool)
		}
		if !r.judge() && !r.count(at, counters, all) {
			r.approve()
			all = append(all, d.held...)
		}
		if i > 0 && decisions[strictest].before(d) {
			strictest = i
		}
	}
	decided := &decisions[strictest]
	if decided.Unknown == "" && decided.Action == Deny {
		all = nil
	}
	for i := range all {
		if decided.Unknown != "" || decided.Action != Allow {
			all[i].low = 0
		}
		all[i].of.add(all[i].key, all[i].start, all[i].window, all[i].low, all[i].high)
	}
	for i := range decisions {
		decisions[i].held = nil
	}
	decided.held = all
	return strictest
}

// before reports whether o decides rather than d: it denies, or it may.
func (d *Replayed) before(o *Replayed) bool { return o.rank() > d.rank() }

func (d *Replayed) rank() int {
	switch {
	case d.Unknown != "":
		return 2
	case d.Action == Deny:
		return 3
	}
	return int(d.Action)
}

// Refund takes back what an answer with a JSON-RPC error gives back: that of
// Intercept's rules.
func (d *Replayed) Refund() {
	for _, h := range d.held {
		if h.refund {
			h.of.add(h.key, h.start, h.window, -h.low, -h.high)
		}
	}
}

// Refundable reports whether Refund would change anything.
func (d *Replayed) Refundable() bool {
	return slices.ContainsFunc(d.held, func(h held) bool { return h.refund })
}

// A replay decides about one operation.
type replay struct {
	p *Policy
	t *tool
	c *Recorded
	d *Replayed
}

// unknown notes the first rule that cannot be decided.
func (r *replay) unknown(rule string, why Unknown) {
	if r.d.Unknown == "" {
		r.d.Rule, r.d.Unknown = rule, why
	}
}

// deny denies the call, even if a rule before was not decided.
func (r *replay) deny(rule string) bool {
	*r.d = Replayed{Action: Deny, Rule: rule}
	return true
}

// judge decides by what depends on no counter.
func (r *replay) judge() (denied bool) {
	if r.t.deny != nil {
		return r.deny(r.t.deny.rule)
	}
	if word, found := r.found(r.p.denyDetections); found {
		return r.deny("/auditproxy/deny_detections/" + word)
	} else if r.c.Unseen && len(r.p.denyDetections) > 0 {
		r.unknown("/auditproxy/deny_detections", UnknownEffects)
	}
	if r.t.closed != nil && r.d.Unknown != UnknownTool {
		return r.deny(r.t.closed.rule)
	}
	return false
}

// found returns the first of words that the call is known to do.
func (r *replay) found(words []string) (word string, ok bool) {
	i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(r.c.Detections, w) })
	if i < 0 {
		return "", false
	}
	return words[i], true
}

// count decides by rules and limits, in their order. before is what operations
// of the same call before this one have added.
func (r *replay) count(at time.Time, counters Histories, before []held) (denied bool) {
	found := make([]recorded, len(r.t.paths))
	for i, p := range r.t.paths {
		found[i] = find(r.c.Arguments, p, r.c.Cut)
	}
	windows := make([]held, len(r.t.counters))
	for i := range r.t.counters {
		c := &r.t.counters[i]
		h := counters.of(c.Scope)
		start, low, high := h.at(c, at)
		for _, b := range before {
			if b.of == h && b.key == c.Key {
				low, high = sum(low, b.low), sum(high, b.high)
			}
		}
		windows[i] = held{of: h, key: c.Key, start: start, window: c.Window, low: low, high: high, refund: c.refund}
	}
	for i := range r.t.rules {
		rule := &r.t.rules[i]
		switch t, why := rule.replay(found, windows); t {
		case yes:
			return r.deny(rule.name)
		case maybe:
			r.unknown(rule.name, why)
		}
	}
	for i := range r.t.limits {
		l := &r.t.limits[i]
		add := windows[l.counter]
		value, most := add.low, add.high
		add.low, add.high = l.amount, l.amount
		if l.from >= 0 {
			switch t, why := found[l.from].amount(&add); t {
			case no:
				return r.deny(l.rule)
			case maybe:
				r.unknown(l.rule, why)
			}
		}
		if l.bounded {
			switch {
			case add.low > l.max-value:
				return r.deny(l.rule)
			case add.high > l.max-most:
				r.unknown(l.rule, UnknownHistory)
			}
		}
		r.d.held = append(r.d.held, add)
	}
	return false
}

// approve asks a person where the policy wants it.
func (r *replay) approve() {
	if r.d.Unknown != "" || r.t.free {
		return
	}
	if r.t.ask != nil {
		r.d.Action, r.d.Rule = AskFirst, r.t.ask.rule
		return
	}
	if word, found := r.found(r.p.askDetections); found {
		r.d.Action, r.d.Rule = AskFirst, "/auditproxy/ask_detections/"+word
		return
	}
	const rule = "/auditproxy/approval"
	switch a := r.p.Approval; {
	case a.covers(r.c.Least):
		r.d.Action, r.d.Rule = AskFirst, rule
	case r.c.Unseen && len(r.p.askDetections) > 0:
		r.unknown("/auditproxy/ask_detections", UnknownEffects)
	case a.covers(r.c.Most):
		r.unknown(rule, UnknownDefinition)
	}
}

// replay reports whether r denies: yes, no or maybe.
func (r *rule) replay(found []recorded, counters []held) (t truth, why Unknown) {
	hold, open := true, truth(no)
	for i := range r.conditions {
		c := &r.conditions[i]
		if c.path < 0 {
			continue
		}
		switch t, w := c.replay(&found[c.path], r.denyIf); t {
		case unreadable:
			return yes, ""
		case no:
			hold = false
		case maybe, lost:
			open = max(open, t)
			if why == "" {
				why = w
			}
		}
	}
	switch {
	case r.denyIf && !hold && open != lost, !r.denyIf && hold && open == no: // it does not deny by arguments
	case open == no || !r.denyIf && !hold:
		return yes, ""
	default:
		t = maybe
	}
	for i := range r.conditions {
		c := &r.conditions[i]
		if c.path >= 0 {
			continue
		}
		switch b := &counters[c.counter]; c.bounded(b.low, b.high) {
		case no:
			return yes, ""
		case maybe:
			if t != maybe {
				t, why = maybe, UnknownHistory
			}
		}
	}
	return t, why
}

// bounded evaluates c for a counter between bounds.
func (c *condition) bounded(low, high int64) truth {
	t := c.ofCounter(low)
	switch c.op {
	case "exists", "regex", "contains":
		return truthOf(t)
	case "lt", "lte", "gt", "gte":
		if t == c.ofCounter(high) {
			return truthOf(t)
		}
		return maybe
	}
	if low == high {
		return truthOf(t)
	}
	return maybe
}
