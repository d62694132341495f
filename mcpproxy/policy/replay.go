package policy

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"

	"auditproxy/schemas/jsontext"
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

// An Unknown is why a recorded call cannot be decided, a word for people and
// scripts.
type Unknown string

// The reasons.
const (
	UnknownValue      Unknown = "redacted"   // a condition needs a value that is a digest, or partly redacted
	UnknownCut        Unknown = "cut"        // a condition needs a value that may have been cut off
	UnknownTool       Unknown = "tool"       // the name of the tool is redacted
	UnknownDefinition Unknown = "definition" // approval depends on the definition of the tool
	UnknownEffects    Unknown = "effects"    // the detections that a rule names may not all be recorded
	UnknownHistory    Unknown = "history"    // a limit depends on calls that are not known, or not decided
	UnknownFrame      Unknown = "batch"      // it came in a JSON-RPC batch, which is refused whole
)

// A Replayed is what a policy would have decided about a recorded call.
type Replayed struct {
	Action  Action  // if Unknown is ""
	Rule    string  // as in Decision; of an undecided call, the first rule that is not decided
	Unknown Unknown // "" if the call is decided

	held []held
}

// A held is what a call may have added to a counter.
type held struct {
	of        *History
	key       string
	start     int64
	window    int64
	low, high int64
	refund    bool
}

// A History is the counters of one scope, as far as records have them: for
// each, bounds of its value. Its zero value knows all calls.
type History struct {
	From time.Time // earlier calls are not known; zero: there were none

	counts map[string]bounds
}

// bounds are those of a counter in its last window, and in the one before.
type bounds struct {
	start     int64
	low, high [2]int64
}

// at returns the window of a time and the bounds of the counter's value in it.
func (h *History) at(c *Counter, at time.Time) (start, low, high int64) {
	start = windowStart(at, c.Window)
	b := h.counts[c.Key]
	switch b.start - start {
	case 0:
		low, high = b.low[0], b.high[0]
	case c.Window:
		low, high = b.low[1], b.high[1]
	default:
		if b.start > start { // the count is not kept
			high = math.MaxInt64
		}
	}
	if start < h.From.Unix() && !h.From.IsZero() {
		high = math.MaxInt64
	}
	return start, low, high
}

// add adds to a counter. What is older than the window before is forgotten.
func (h *History) add(key string, start, window, low, high int64) {
	if h.counts == nil {
		h.counts = make(map[string]bounds)
	}
	b, known := h.counts[key]
	switch {
	case known && b.start == start, known && b.start == start+window:
	case known && start == b.start+window:
		b = bounds{start: start, low: [2]int64{0, b.low[0]}, high: [2]int64{0, b.high[0]}}
	case !known || start > b.start:
		b = bounds{start: start}
	default:
		return
	}
	i := 0
	if b.start != start {
		i = 1
	}
	b.low[i] = max(sum(b.low[i], max(low, 0))+min(low, 0), 0)
	b.high[i] = max(sum(b.high[i], max(high, 0))+min(high, 0), 0)
	h.counts[key] = b
}

// Idle reports whether no counter of h is in a window that holds at a time.
func (h *History) Idle(at time.Time) bool {
	for _, b := range h.counts {
		if b.start > at.Unix()-2*maxWindow {
			return false
		}
	}
	return true
}

// Histories are the counters that a call is decided by.
type Histories struct{ Session, User *History }

func (h Histories) of(s Scope) *History {
	if s == User {
		return h.User
	}
	return h.Session
}

// Longest returns the longest window of a scope's limits, 0 if there is none.
func (p *Policy) Longest(s Scope) time.Duration {
	var longest int64
	look := func(t *tool) {
		for _, c := range t.counters {
			if c.Scope == s {
				longest = max(longest, c.Window)
			}
		}
	}
	for _, t := range p.tools {
		look(t)
	}
	look(p.other)
	return time.Duration(longest) * time.Second
}

// Replay is Decide for the operations of a recorded call. Where it decides, it
// decides as Decide did or would have done with the arguments on the wire. It
// returns the index of the decision that holds for the call.
func (p *Policy) Replay(calls []Recorded, at time.Time, counters Histories, decisions []Replayed) (strictest int) {
	var all []held // of the call so far
	for i := range calls {
		d := &decisions[i]
		*d = Replayed{}
		r := replay{p: p, c: &calls[i], d: d, t: p.tools[calls[i].Tool]}
		if r.t == nil {
			r.t = p.other
			if Redacted(calls[i].Tool) {
				r.unknown("", UnknownTool)
			}
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

// Truths of recorded values, besides no and yes: one of the two, and one of the
// two or unreadable.
const (
	maybe truth = unreadable + 1 + iota
	lost
)

// replay reports whether r denies: yes, no or maybe.
func (r *rule) replay(found []recorded, counters []held) (t truth, why Unknown) {
	hold, open := true, truth(no)
	for i := range r.conditions {
		c := &r.conditions[i]
		if c.path < 0 {
			continue
		}
		switch t, w := c.replay(&found[c.path]); t {
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

// A recorded is an argument as a record has it.
type recorded struct {
	value   []byte  // nil if there is none
	missing Unknown // why there may have been one
	what    remains
}

// remains are what is left of a value.
type remains uint8

const (
	whole     remains = iota
	digest            // of any type
	beginning         // of a text
	partial           // a text with marks
	mixed             // a list or an object with any of them
)

// The marks of redaction inside a text, and of a text that was cut.
var marks = [][]byte{[]byte("[redacted "), []byte("…["), []byte("...<truncated>")}

func redacted(text []byte) bool {
	return slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(text, m) })
}

// Redacted reports whether a name in a record has a mark of redaction.
func Redacted(name string) bool { return redacted([]byte(name)) }

// find finds the argument at a path in a summary. cut means that members may be
// missing.
func find(arguments []byte, p path, cut bool) recorded {
	v := arguments
	if len(v) == 0 {
		v = []byte("{}")
	}
	missing := Unknown("")
	if cut {
		missing = UnknownCut
	}
	for _, want := range p {
		if v[0] != '{' {
			return recorded{}
		}
		if remainsOf(v) != whole && remainsOf(v) != mixed {
			return recorded{missing: UnknownValue}
		}
		var next []byte
		err := jsontext.Members(v, func(name, value []byte) bool {
			switch {
			case named(name, want):
				next = value
			case bytes.HasPrefix(name, []byte("[cut]")), bytes.HasPrefix(name, []byte("[arguments]")):
				missing = UnknownCut
			case redacted(name) && missing == "":
				missing = UnknownValue
			}
			return true
		})
		if err != nil {
			return recorded{missing: UnknownCut}
		}
		if next == nil {
			return recorded{missing: missing}
		}
		v = next
	}
	return recorded{value: v, what: remainsOf(v)}
}

// remainsOf reports what the redactor left of a value. An agent can send a value
// that looks the same: its call is not decided.
func remainsOf(v []byte) remains {
	switch v[0] {
	case '"':
		if redacted(v) {
			return partial
		}
	case '[', '{':
		if v[0] == '{' {
			if r := objectRemains(v); r != whole {
				return r
			}
		}
		for _, sign := range []string{`_prefix":"`, `"redacted":true`, `"[cut]"`, `"bytes":`} {
			if bytes.Contains(v, []byte(sign)) {
				return mixed
			}
		}
		if redacted(v) {
			return mixed
		}
	}
	return whole
}

// Complete reports whether the summary of a call's arguments has all of them in
// clear.
func Complete(arguments []byte) bool {
	return len(arguments) == 0 || arguments[0] == '{' && remainsOf(arguments) == whole
}

// objectRemains returns what is left of a value that an object replaces.
func objectRemains(v []byte) remains {
	r, members := digest, 0
	err := jsontext.Members(v, func(name, _ []byte) bool {
		switch string(name) {
		case "head":
			r = beginning
		case "len", "bytes", "hmac_sha256_prefix", "sha256_prefix", "type", "redacted":
		default:
			r = whole
		}
		members++
		return r != whole
	})
	if err != nil || members < 2 {
		return whole
	}
	return r
}

// replay evaluates c for a recorded argument.
func (c *condition) replay(r *recorded) (t truth, why Unknown) {
	switch {
	case r.value == nil && r.missing != "":
		return lost, r.missing
	case r.value == nil || r.what == whole:
		return c.of(r.value), ""
	case c.op == "exists":
		if r.what == digest && r.perhapsNull() {
			return lost, UnknownValue
		}
		return truthOf(c.exists), ""
	case r.what == mixed && c.op == "regex":
		return no, "" // it is not a text
	case r.what == digest || r.what == mixed:
		if c.op == "regex" {
			return maybe, UnknownValue
		}
		return lost, UnknownValue
	}
	switch c.op { // it is a text
	case "lt", "lte", "gt", "gte":
		return no, ""
	}
	return maybe, UnknownValue
}

// perhapsNull reports whether a digest or shape can be that of null.
func (r *recorded) perhapsNull() bool {
	typ, length := memberOf(r.value, "type"), memberOf(r.value, "len")
	switch {
	case typ != nil:
		return string(typ) == `"NoneType"`
	case length != nil:
		return string(length) == "4" // the digest is of the text null
	}
	return true
}

// memberOf returns a member of an object, nil if it has none.
func memberOf(v []byte, name string) (value []byte) {
	_ = jsontext.Members(v, func(n, m []byte) bool { // which objectRemains has read
		if string(n) == name {
			value = m
		}
		return true
	})
	return value
}

// amount sets what an argument adds to a counter: no if it is not an amount.
func (r *recorded) amount(add *held) (t truth, why Unknown) {
	add.low, add.high = 0, 1<<62
	switch {
	case r.value == nil && r.missing != "":
		return maybe, r.missing
	case r.value == nil || r.what == partial || r.what == beginning || r.what == mixed:
		return no, ""
	case r.what == digest:
		return maybe, UnknownValue
	case kindOf(r.value) != number:
		return no, ""
	}
	f, err := strconv.ParseFloat(string(r.value), 64)
	if err != nil || f < 0 || f != math.Trunc(f) {
		return no, ""
	}
	n := int64(min(f, 1<<62))
	add.low, add.high = n, n
	return yes, ""
}
