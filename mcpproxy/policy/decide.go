package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// RuleOversize is the rule of calls that are too large, or have too many operations, to
// be decided: they are denied.
const RuleOversize = "(oversize)"

// UnknownOperations is why a call is denied of which audit.InnerOperations does not list
// all operations.
const UnknownOperations = "It has too many operations to be decided, or some that cannot be read."

// RuleAmbiguous is the rule of calls that two servers could read differently, and
// TwoReadings why they are denied.
const (
	RuleAmbiguous = "(ambiguous)"
	TwoReadings   = "Two servers could read it differently."
)

// Decide writes to decisions, which is as long as calls, the decision of each.
// The calls are those of one frame, which is forwarded whole or not at all. If
// any is denied, none of them uses a quota.
//
// The error is that of counters, for the log. The calls that needed them are
// denied.
func (p *Policy) Decide(calls []Call, at time.Time, counters Counters, decisions []Decision) error {
	pending := false
	for i := range calls {
		decisions[i] = Decision{}
		pending = p.judge(&calls[i], &decisions[i]) || pending
	}
	var err error
	if pending {
		err = p.count(calls, at, counters, decisions)
	}
	for i := range calls {
		if d := &decisions[i]; d.Action != Deny {
			p.approve(&calls[i], d)
		}
	}
	return err
}

// judge decides by all that depends on neither counters nor approval. It returns
// true if counters are needed.
func (p *Policy) judge(c *Call, d *Decision) (pending bool) {
	t := p.of(c.Tool)
	d.tool = t
	switch {
	case t.deny != nil:
		d.deny(t.deny, c)
		return false
	case len(c.Detections) > 0 && p.detected(c, d, p.denyDetections, "deny_detections"):
		d.Action = Deny
		return false
	case t.closed != nil:
		d.deny(t.closed, c)
		return false
	case len(t.rules) == 0:
		return len(t.limits) > 0
	}
	var buf [8]argument
	found := buf[:min(len(t.paths), len(buf))]
	if len(t.paths) > len(buf) {
		found = make([]argument, len(t.paths))
	}
	readable := len(t.paths) == 0 || values(c.Arguments, t.paths, found)
	for _, i := range t.searched {
		found[i].count()
	}
	counted := false
	for d.failed = range t.rules {
		r := &t.rules[d.failed]
		if readable && r.skips(found) {
			continue
		}
		if r.fails(found, readable) {
			if counted {
				return true // a rule before this one may fail by a counter
			}
			d.denyBy(r)
			return false
		}
		counted = counted || r.counted
	}
	d.failed = len(t.rules)
	return counted || len(t.limits) > 0
}

// skips reports whether r is one of the rules that are seen at once not to deny.
func (r *rule) skips(found []argument) bool {
	if !r.only {
		return false
	}
	a := &found[r.path]
	return !a.twin && !a.odd && (len(a.value) == 0 || a.lacks(r.chars, r.fold))
}

// fails reports whether r denies, as far as it depends on arguments.
func (r *rule) fails(found []argument, readable bool) bool {
	hold := true
	for i := range r.conditions {
		c := &r.conditions[i]
		if c.path < 0 {
			continue
		}
		if !readable {
			return true
		}
		switch c.in(r.denyIf, &found[c.path]) {
		case unreadable:
			return true
		case no:
			hold = false
		}
	}
	if r.denyIf {
		return hold
	}
	return !hold
}

// failsBy reports whether r denies by the values of counters.
func (r *rule) failsBy(counters []int64) bool {
	for i := range r.conditions {
		if c := &r.conditions[i]; c.path < 0 && !c.ofCounter(counters[c.counter]) {
			return true
		}
	}
	return false
}

// count decides by counters and reserves quotas, all in one update.
func (p *Policy) count(calls []Call, at time.Time, counters Counters, decisions []Decision) error {
	var all []Counter
	index := make([][]int, len(calls)) // of the tool's counters in all
	for i := range decisions {
		if d := &decisions[i]; d.Action != Deny {
			for _, c := range d.tool.counters {
				n := slices.IndexFunc(all, func(o Counter) bool { return o.Scope == c.Scope && o.Key == c.Key })
				if n < 0 {
					n = len(all)
					all = append(all, c)
				}
				index[i] = append(index[i], n)
			}
		}
	}
	err := counters.Update(at, all, func(before []int64) bool {
		now := slices.Clone(before)
		reserved := true
		for i := range decisions {
			d := &decisions[i]
			if d.Action != Deny {
				p.reserve(&calls[i], d, index[i], now)
			}
			reserved = reserved && d.Action != Deny
		}
		for i := range all {
			all[i].Amount = now[i] - before[i]
		}
		return reserved
	})
	denied := err != nil
	for i := range decisions {
		d := &decisions[i]
		if err != nil && len(index[i]) > 0 && d.Action != Deny {
			d.denyUncounted(err)
		}
		denied = denied || d.Action == Deny
	}
	for i := range decisions {
		d := &decisions[i]
		if denied {
			d.Held = nil
		}
		for n := range d.Held { // the windows that counted
			k := slices.IndexFunc(all, func(o Counter) bool { return o.Scope == d.Held[n].Scope && o.Key == d.Held[n].Key })
			d.Held[n].Start = all[k].Start
		}
	}
	return err
}

// reserve decides one call by the values of counters, and adds to them if it is
// not denied. index has the places of the tool's counters in now.
func (p *Policy) reserve(c *Call, d *Decision, index []int, now []int64) {
	t := d.tool
	before := make([]int64, len(index))
	for i, n := range index {
		before[i] = now[n]
	}
	for i := range t.rules[:d.failed] {
		if r := &t.rules[i]; r.counted && r.failsBy(before) {
			d.denyBy(r)
			return
		}
	}
	if d.failed < len(t.rules) {
		d.denyBy(&t.rules[d.failed])
		return
	}
	if len(t.limits) == 0 {
		return
	}
	d.Held = make([]Counter, 0, len(t.limits))
	least := int64(-1)
	for i := range t.limits {
		l := &t.limits[i]
		value, amount := before[l.counter], l.amount
		if l.from >= 0 {
			var ok bool
			if amount, ok = l.read(c, t); !ok {
				d.Held = nil
				d.Action, d.Rule, d.Reason = Deny, l.rule, "Internal policy error"
				return
			}
		}
		if l.bounded {
			left := l.max - value
			if denied := amount > left; denied || least < 0 || left < least {
				least = max(left, 0)
				d.Counter, d.Count, d.Max, d.Window = l.name, value, l.max, l.window
				if denied {
					d.Held = nil
					d.Action, d.Rule, d.Reason = Deny, l.rule, l.reason
					return
				}
			}
		}
		held := t.counters[l.counter]
		held.Amount = amount
		d.Held = append(d.Held, held)
	}
	for i := range t.limits {
		n := index[t.limits[i].counter]
		now[n] = sum(now[n], d.Held[i].Amount)
	}
}

// read returns the amount that is in an argument: a whole number, at least 0.
// Anything else could give quota back or count as nothing.
func (l *limit) read(c *Call, t *tool) (amount int64, ok bool) {
	var found [1]argument
	if !values(c.Arguments, t.paths[l.from:l.from+1], found[:]) || found[0].twin || len(found[0].value) == 0 || kindOf(found[0].value) != number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(found[0].value), 64)
	if err != nil || f < 0 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(min(f, 1<<62)), true // more than any maximum
}

// approve asks a person where the policy wants it.
func (p *Policy) approve(c *Call, d *Decision) {
	t := d.tool
	switch {
	case t.free:
	case t.ask != nil:
		d.Action, d.Rule, d.Reason = AskFirst, t.ask.rule, t.ask.reason
	case len(c.Detections) > 0 && p.detected(c, d, p.askDetections, "ask_detections"):
		d.Action = AskFirst
	case p.Approval.covers(c.Category):
		d.Action, d.Rule, d.Reason = AskFirst, "/auditproxy/approval", "Approval is required for "+category(c.Category)+" tools"
	}
}

// covers reports whether a person is asked about tools of a category. A word
// that is not known here covers more than those that are.
func (a Approval) covers(category string) bool {
	switch a {
	case AskForDangerous:
		return category != "read" && category != "write" && category != "execute"
	case AskForWrites, Ask:
		return category != "read"
	}
	return false
}

func category(word string) string {
	if !slices.Contains(categories, word) {
		return "unknown"
	}
	return word
}

// detected looks for the first of words that c has.
func (p *Policy) detected(c *Call, d *Decision, words []string, member string) bool {
	for _, w := range words {
		if slices.Contains(c.Detections, w) {
			d.Rule = "/auditproxy/" + member + "/" + w
			d.Reason = "The arguments have a forbidden effect: " + w
			if member == "ask_detections" {
				d.Reason = "Approval is required for this effect of the arguments: " + w
			}
			return true
		}
	}
	return false
}

func (d *Decision) deny(v *verdict, c *Call) {
	d.Action, d.Rule, d.Reason = Deny, v.rule, v.reason
	if d.Reason == "" {
		name := "Tool " + quoted(c.Tool)
		if c.Inner {
			name = "A tool of this call"
		}
		d.Reason = cut(name+" "+v.words, maxReason)
	}
}

func (d *Decision) denyBy(r *rule) {
	if d.Action, d.Rule, d.Reason = Deny, r.name, r.reason; r.reason == "" {
		d.Reason = fmt.Sprintf("Denied by rule %q", cut(r.name, 150))
	}
}

// denyUncounted denies a call whose counters cannot be used. The cause is one of
// the texts of this package: others name files.
func (d *Decision) denyUncounted(err error) {
	cause := ErrCounter
	for _, known := range []error{ErrDamaged, ErrFull, ErrForeign, ErrClock, ErrBusy} {
		if errors.Is(err, known) {
			cause = known
			break
		}
	}
	d.Held = nil
	d.Action, d.Rule = Deny, "(counter)"
	if t := d.tool; len(t.limits) > 0 {
		d.Rule = t.limits[0].rule
	}
	d.Reason = "A limit cannot be applied: " + cause.Error()
}
