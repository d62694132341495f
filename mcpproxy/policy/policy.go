// Package policy decides whether the calls of an agent may reach the server, by
// rules that an operator writes.
//
// Load reads a policy in one of four dialects into one form. Decide applies it
// to the operations of a call. Time and counters are arguments; nothing here
// reads a clock or a file. A decision names its rule as a JSON Pointer into the
// policy, and its reason never has a part of an argument.
//
// The order, for each operation: hidden; denied by the tool's name; denied by
// what its arguments do; the default; require; deny_if; limits; approval. What
// cannot be decided is denied.
//
// The files, from the top: replay, describe, load, hosted, intercept, loader, compile,
// policy, condition, counter, source, problem.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Dialect is the language of a policy.
type Dialect string

// The dialects.
const (
	Hosted    Dialect = "hosted"    // policy.json with require, deny_if and limits, auditproxy's own
	Questions Dialect = "questions" // action, reason and rate_limit below a tool; may be mixed with Hosted
	Intercept Dialect = "intercept" // policy.yaml with rules
	Pages     Dialect = "pages"     // Intercept with rules that have no name
)

// A Mode is what happens to denied calls.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe" // decisions are recorded and not applied
)

// An Approval is which tools a person is asked about.
type Approval string

// The modes of approval. Ask is another word for AskForWrites.
const (
	Auto            Approval = "auto"
	AskForDangerous Approval = "ask_for_dangerous" // destructive and financial tools
	AskForWrites    Approval = "ask_for_writes"    // all but reading tools
	Ask             Approval = "ask"
)

// An Action is a decision.
type Action uint8

// The actions, the strictest one last.
const (
	Allow Action = iota
	AskFirst
	Deny
)

var actionWords = [...]string{"allow", "ask", "deny"}

// String returns the word that records have for a.
func (a Action) String() string { return actionWords[a] }

// A Policy is a compiled policy. It is immutable; its methods may be called
// concurrently.
type Policy struct {
	Dialect  Dialect
	Hash     string // SHA-256 of the source, hexadecimal
	Mode     Mode   // "" if the policy has none
	Approval Approval
	Hide     []string // exact names, or "*"
	Risk     []Override
	Commands Arguments // arguments that are commands; patterns are RE2
	Paths    Arguments // arguments that are paths; patterns are sensitive paths

	tools map[string]*tool
	other *tool // for names that the policy does not have

	denyDetections, askDetections []string

	allow           bool // default
	allowed, denied []string
	specs           map[string]*spec
	mentions        []mention
	warnings        []Problem
}

// An Override is an operator's category of a tool.
type Override struct{ Tool, Category string }

// Arguments are names of arguments, "argument" or "tool.argument", and patterns.
type Arguments struct{ Names, Patterns []string }

// A verdict is a decision that depends on nothing else.
type verdict struct {
	rule   string
	reason string // "": the tool's name and words
	words  string
}

// A tool is what a policy has about one name.
type tool struct {
	hidden bool
	listed bool
	deny   *verdict // before all else
	closed *verdict // by default
	ask    *verdict
	free   bool // never asked about

	rules    []rule
	limits   []limit
	paths    []path
	counters []Counter // that rules and limits name; the keys differ
}

// A rule denies a call by its conditions.
type rule struct {
	name, reason string
	denyIf       bool // denies if all conditions hold; else unless all hold
	conditions   []condition
	counted      bool // some condition is about a counter
}

// A limit adds to a counter, or denies the call.
type limit struct {
	rule, reason string
	counter      int // index in the tool's counters
	name, window string
	max          int64
	bounded      bool // false: the call is counted, and max means nothing
	amount       int64
	from         int // index in the tool's paths of the amount, -1: amount
}

// A Call is one operation of a frame: a call, an item of its list of operations,
// or another reading of it.
type Call struct {
	Tool       string
	Arguments  []byte   // as on the wire, nil if there are none
	Inner      bool     // the name of the tool is itself in an argument: no reason has it
	Category   string   // of the call, a word of mcpproxy/risk; "" if unknown
	Detections []string // words of mcpproxy/risk
}

// A Decision is what a policy says about one call.
type Decision struct {
	Action Action
	Rule   string // JSON Pointer, rule's name, "(hidden)" or "(default deny)"; "" if allowed
	Reason string // one line of at most 200 code points, without anything of arguments

	// The limit that decided, or else the one that is the nearest to its maximum.
	// Count is the value before this call.
	Counter    string
	Count, Max int64
	Window     string // minute, hour, day, or seconds such as 90s

	// Held is what the call, which is not denied, has added to counters.
	Held []Counter

	tool   *tool
	failed int // index of the first rule that fails by arguments; len: none
}

// Refunds returns the part of Held that an answer with a JSON-RPC error gives
// back: that of Intercept's rules. The others count attempts.
func (d *Decision) Refunds() []Counter {
	if !slices.ContainsFunc(d.Held, func(c Counter) bool { return c.refund }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.Held), func(c Counter) bool { return !c.refund })
}

// Denied is the text of the answer to the agent.
func (d *Decision) Denied() string { return "[POLICY DENIED] " + d.Reason }

// Strictest returns the index of the decision that decides for all: the first of
// the strictest. It is -1 if there is none.
func Strictest(decisions []Decision) int {
	best := -1
	for i := range decisions {
		if best < 0 || decisions[i].Action > decisions[best].Action {
			best = i
		}
	}
	return best
}

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
	t := p.tools[c.Tool]
	if t == nil {
		t = p.other
	}
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
	var buf [16][]byte
	found := buf[:min(len(t.paths), len(buf))]
	if len(t.paths) > len(buf) {
		found = make([][]byte, len(t.paths))
	}
	readable := len(t.paths) == 0 || values(c.Arguments, t.paths, found)
	counted := false
	for d.failed = range t.rules {
		r := &t.rules[d.failed]
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

// fails reports whether r denies, as far as it depends on arguments.
func (r *rule) fails(found [][]byte, readable bool) bool {
	hold := true
	for i := range r.conditions {
		c := &r.conditions[i]
		if c.path < 0 {
			continue
		}
		if !readable {
			return true
		}
		switch c.of(found[c.path]) {
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
	var found [1][]byte
	if !values(c.Arguments, t.paths[l.from:l.from+1], found[:]) || len(found[0]) == 0 || kindOf(found[0]) != number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(found[0]), 64)
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

func (d *Decision) denyBy(r *rule) { d.Action, d.Rule, d.Reason = Deny, r.name, r.reason }

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

// quoted is the name of a tool in a reason.
func quoted(name string) string { return strconv.Quote(cut(strings.ToValidUTF8(name, "\ufffd"), 100)) }

// pointer is the JSON Pointer (RFC 6901) to a member.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func hash(source []byte) string {
	sum := sha256.Sum256(source)
	return hex.EncodeToString(sum[:])
}

// windowWord is a window as reasons and records have it.
func windowWord(seconds int64) string {
	for word, s := range windows {
		if s == seconds {
			return word
		}
	}
	return fmt.Sprintf("%ds", seconds)
}

// Names returns the names of tools that p has, sorted.
func (p *Policy) Names() []string { return sorted(p.tools) }

// Words that policies use. categories are those of mcpproxy/risk, which this
// package must not import; a test in cmd compares them.
var (
	windows    = map[string]int64{"minute": 60, "hour": 3600, "day": 86400}
	categories = []string{"read", "write", "execute", "destructive", "financial"}
)

// A spec is what the source has about one tool, or about all tools.
type spec struct {
	node   *node
	deny   *verdict
	ask    *verdict
	rules  []ruleSpec
	limits []limitSpec
}

type ruleSpec struct {
	rule
	node       *node
	conditions []conditionSpec
}

// A conditionSpec is a condition about a path or a counter.
type conditionSpec struct {
	condition
	node    *node
	path    path
	counter *Counter
}

// A limitSpec is a limit, its counter and the argument that it adds.
type limitSpec struct {
	limit
	node    *node
	counter Counter
	from    path
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A mention is a name of a tool in a policy.
type mention struct {
	node  *node
	where string
}
