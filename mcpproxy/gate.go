package mcpproxy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A Gate assesses calls and decides about them. It is immutable; SetGate
// replaces it as a whole.
type Gate struct {
	Risk *risk.Assessor // Required.

	Policy   *policy.Policy // nil: nothing is decided
	Mode     policy.Mode    // Enforce, or Observe: decisions are recorded and not applied
	Counters policy.Counters
	Source   string // of the policy, for records: a path or the name of a preset
}

// gate is a Gate with what follows from it.
type gate struct {
	Gate
	allowed audit.JSON // the member policy of a call that no rule concerned
	names   map[string]bool
}

func newGate(g Gate) (*gate, error) {
	switch {
	case g.Risk == nil:
		return nil, errors.New("no risk assessor")
	case g.Policy == nil:
		return &gate{Gate: g}, nil
	case g.Counters == nil:
		return nil, errors.New("a policy without counters")
	case g.Mode != policy.Enforce && g.Mode != policy.Observe:
		return nil, fmt.Errorf("policy mode %q", g.Mode)
	}
	n := &gate{Gate: g, names: make(map[string]bool)}
	for _, name := range g.Policy.Hide {
		n.names[name] = true
	}
	n.allowed = n.decision(&policy.Decision{})
	return n, nil
}

// startingGate is newGate for a Config, whose zero value assesses without a
// configuration.
func startingGate(g Gate) (*gate, error) {
	if g.Risk == nil && g.Policy == nil {
		a, err := risk.New(risk.Config{})
		if err != nil {
			return nil, err
		}
		g.Risk = a
	}
	return newGate(g)
}

// enforces reports whether decisions are applied.
func (g *gate) enforces() bool { return g.Policy != nil && g.Mode == policy.Enforce }

// hides reports whether tools must be removed from listings.
func (g *gate) hides() bool { return g.enforces() && len(g.names) > 0 }

func (g *gate) hidden(name string) bool { return g.names[name] || g.names["*"] }

// decision returns the member policy of a record.
func (g *gate) decision(d *policy.Decision) audit.JSON {
	return audit.Policy{Hash: g.Policy.Hash, Mode: string(g.Mode), Decision: d.Action.String(), Applied: g.enforces(), Rule: d.Rule, Reason: d.Reason,
		Counter: d.Counter, Count: d.Count, Max: d.Max, Window: d.Window}.JSON()
}

// SetGate replaces the gate for all calls that are read from now on, and records
// the policy that came into force. It may be called at any time.
func (p *Proxy) SetGate(g Gate) error {
	n, err := newGate(g)
	if err != nil {
		return fmt.Errorf("setting the gate: %w", err)
	}
	p.s.setGate(n)
	return nil
}

// PolicyFailed records that a policy could not be loaded again; the one before
// stays in force. detail may quote the policy, and is redacted. It may be called
// at any time.
func (p *Proxy) PolicyFailed(source, detail string) {
	p.s.tellPolicy(func(g *gate) audit.Policy {
		was := g.event("reload_failed", detail)
		was.Source = source
		return was
	})
}

func (s *session) setGate(g *gate) {
	s.gate.Store(g)
	s.tellPolicy((*gate).loaded)
}

// loaded is the event of a policy that came into force.
func (g *gate) loaded() audit.Policy {
	if g.Policy == nil {
		return audit.Policy{Event: "loaded", Detail: "no policy"}
	}
	return g.event("loaded", "")
}

// event is something that happened to the policy, if there is one.
func (g *gate) event(word, detail string) audit.Policy {
	v := audit.Policy{Source: g.Source, Event: word, Detail: detail}
	if g.Policy != nil {
		v.Hash, v.Mode, v.Dialect = g.Policy.Hash, string(g.Mode), string(g.Policy.Dialect)
	}
	return v
}

// tellPolicy records an event of the policy. Calls that were read before may
// have their lines after it.
func (s *session) tellPolicy(event func(*gate) audit.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.seq == 0 {
		return // start records the policy that is in force then
	}
	s.appendFinal(s.appendPolicy(nil, event(s.gate.Load())))
}

func (s *session) appendPolicy(dst []byte, event audit.Policy) []byte {
	r := s.record(audit.KindPolicy, time.Now())
	event.Source, event.Detail = s.short(event.Source), s.short(event.Detail)
	r.Policy = event.JSON()
	return audit.AppendRecord(dst, &r)
}

// short is a text of the configuration for a record.
func (s *session) short(text string) string { return string(s.red.AppendText(nil, []byte(text))) }

// gatekeeper assesses the client's calls and asks the gate's policy, and people,
// about them.
type gatekeeper struct {
	s         *session
	approvals *approvals // nil: nobody is asked
	methods   *methods
	gate      *gate // of the frames at hand

	toolOf    func(name string) *risk.Tool // riskTool
	riskTools map[string]*risk.Tool        // by name as the server has it; by riskBy, at the listing riskAt
	riskBy    *risk.Assessor
	riskAt    uint64
	risks     [risk.Categories][risk.Sources][2]audit.JSON // without and with conflict

	asked        asked
	uncounted    bool                       // it is logged that the counters fail
	asksByResult bool                       // a call was answered by a question
	aside        struct{ calls, bytes int } // of the read at hand, that wait for a person
}

// riskTool returns what is known of a tool: by its definition, or by its name.
func (g *gatekeeper) riskTool(name string) *risk.Tool {
	if listed := g.s.listed.Load(); g.riskBy != g.gate.Risk || g.riskAt != listed || len(g.riskTools) >= maxKnown {
		g.riskBy, g.riskAt, g.riskTools = g.gate.Risk, listed, make(map[string]*risk.Tool)
	}
	t := g.riskTools[name]
	if t == nil {
		name = strings.Clone(name) // it may alias the window
		if t = g.s.definedTool(g.gate.Risk, name); t == nil {
			t = g.gate.Risk.Tool(name, nil)
		}
		if len(name) < maxSpare {
			g.riskTools[name] = t
		}
	}
	return t
}

// definedTool compiles the definition of a tool at its first use. Of several it
// returns the worst.
func (s *session) definedTool(by *risk.Assessor, name string) *risk.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.tools.byRaw[name]
	if d == nil {
		return nil
	}
	if d.riskBy != by {
		d.risk, d.riskBy = by.Tool(name, d.raw), by
		for _, twin := range d.twins {
			if t := by.Tool(name, twin); t.Category > d.risk.Category {
				d.risk = t
			}
		}
	}
	return d.risk
}

// opaqueFound is what bytes do that cannot be read, or not whole.
var opaqueFound = audit.DetectionsJSON([]audit.Detection{{Detector: detector.Opaque.Words()[0]}})

// assess sets the risk of a call, and adds what the policy decides about to
// g.asked. a are all anomalies of the message and its frame.
func (g *gatekeeper) assess(it *item, m *wire.Message, a wire.Anomaly) {
	r := &it.call.rec
	if m.State == wire.Opaque || m.Method == nil {
		r.Risk = g.riskJSON(&risk.Result{Category: risk.Execute, Source: risk.SourceDefault})
		r.Detections = opaqueFound
		g.refuse(ruleUnreadable, "It cannot be read.")
		return
	}
	found, ok := g.assessAll(it, m)
	r.Risk = g.riskJSON(&found)
	if r.Detections = ""; len(found.Detections) > 0 {
		r.Detections = showDetections(found.Detections, r)
	}
	if !ok {
		r.Detections = opaqueFound
		g.refuse(ruleFailed, "It cannot be assessed.")
	}
	switch {
	case m.Raw == nil:
		r.Detections = opaqueFound
		g.refuse(ruleOversize, "It is too large to be decided.")
	case a&undecidable != 0:
		g.refuse(ruleAmbiguous, "Two servers could read it differently.")
	}
}

// The rules of calls that no policy can decide.
const (
	ruleUnreadable = "(unreadable)"
	ruleOversize   = "(oversize)"
	ruleAmbiguous  = "(ambiguous)"
	ruleFailed     = "(not assessed)"
)

// undecidable are the anomalies with which no decision holds for every server.
// A batch is decided call by call, and a call without an id like any other.
const undecidable = wire.Ambiguous &^ (wire.Batch | wire.NoID)

// assessAll assesses a call in all its readings. It returns false, and the most
// that is known, after a panic: a defect in what reads hostile text must not end
// the session, or let a call through that it could not judge.
func (g *gatekeeper) assessAll(it *item, m *wire.Message) (found risk.Result, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			found, ok = risk.Result{Category: risk.Execute, Source: risk.SourceDefault}, false
			g.s.cfg.Log.Error("call not assessed", zap.String("tool", it.call.rec.Tool), zap.Stack("stack"))
		}
	}()
	name, args := g.subject(it, m)
	found = g.gate.Risk.Assess(g.riskTool(name), args, g.toolOf)
	g.submit(it.call, name, args, &found, false)
	for i := range m.Candidates {
		k := &m.Candidates[i]
		other := g.gate.Risk.Assess(g.riskTool(string(jsontext.AppendUnquote(nil, k.Name))), k.Arguments, g.toolOf)
		found = worse(found, other)
		found.Failed = found.Failed || other.Failed
	}
	return found, !found.Failed
}

// subject returns the name and the arguments that a call is judged by. A method
// other than tools/call is judged as if it were a tool of that name.
func (g *gatekeeper) subject(it *item, m *wire.Message) (name string, args []byte) {
	if method := g.methods.of(m.Method).name; method != "tools/call" {
		return method, m.Params
	}
	return it.tool, m.Arguments
}

// worse returns the risk of a call that may be either.
func worse(a, b risk.Result) risk.Result {
	if b.Category > a.Category {
		a.Category, a.Source = b.Category, b.Source
	}
	a.Conflict = a.Conflict || b.Conflict
	a.Found |= b.Found
	for _, d := range b.Detections {
		if len(a.Detections) < risk.MaxDetections && !slices.Contains(a.Detections, d) {
			a.Detections = append(a.Detections, d)
		}
	}
	return a
}

// riskJSON returns the member risk of a record.
func (g *gatekeeper) riskJSON(r *risk.Result) audit.JSON {
	conflict := 0
	if r.Conflict {
		conflict = 1
	}
	v := &g.risks[r.Category][r.Source][conflict]
	if *v == "" {
		*v = newRiskJSON(r)
	}
	return *v
}

func newRiskJSON(r *risk.Result) audit.JSON {
	return audit.Risk{Category: r.Category.String(), Level: r.Category.Level(), Source: r.Source.String(), Conflict: r.Conflict}.JSON()
}

// asked is what the policy decides about in one frame.
type asked struct {
	calls     []policy.Call
	of        []*call // of calls
	decisions []policy.Decision
	refused   policy.Decision // of a call that cannot be decided; see refuse
	last      policy.Decision // of the frame before
}

// refuse denies the whole frame: a gate that can be confused protects nothing.
func (g *gatekeeper) refuse(rule, reason string) {
	if g.gate.Policy != nil && g.asked.refused.Action == policy.Allow {
		g.asked.refused = policy.Decision{Action: policy.Deny, Rule: rule, Reason: reason}
	}
}

// submit adds the operations of a call.
func (g *gatekeeper) submit(of *call, name string, args []byte, found *risk.Result, inner bool) {
	if g.gate.Policy == nil {
		return
	}
	one := policy.Call{Tool: name, Arguments: args, Category: found.Category.String(), Inner: inner}
	if len(found.Detections) > 0 {
		one.Detections = found.Found.Words()
	}
	g.asked.calls, g.asked.of = append(g.asked.calls, one), append(g.asked.of, of)
	if inner {
		return
	}
	if !bytes.Contains(args, []byte("operations")) && bytes.IndexByte(args, '\\') < 0 {
		return // only an escape can hide the name
	}
	// Arguments that are not strict JSON are ambiguous, and refused. The strings
	// alias the window, which outlasts the decision.
	ops, more := audit.InnerOperations(audit.JSON(unsafe.String(unsafe.SliceData(args), len(args))), max(maxOperations-len(g.asked.calls), 1))
	if more {
		g.refuse(ruleOversize, "It is too large to be decided.")
		return
	}
	for i := range ops {
		op := &ops[i]
		t := g.riskTool(op.Tool)
		g.submit(of, op.Tool, unsafe.Slice(unsafe.StringData(string(op.Args)), len(op.Args)), &risk.Result{Category: t.Category, Source: t.Source, Conflict: t.Conflict}, true)
	}
}

// maxOperations is how many operations of one frame are decided about.
const maxOperations = 4096

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
		g.refuse(ruleOversize, "It is too large to be decided.")
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
			d = &policy.Decision{Action: policy.Deny, Rule: ruleAmbiguous, Reason: "Two servers could read it differently."}
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

// giveBack takes back what calls that are not forwarded added to counters.
func (g *gatekeeper) giveBack(held []policy.Counter) {
	if len(held) > 0 {
		g.tellCounters(g.gate.Counters.Release(held))
	}
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

// tellCounters logs the first error of the counters and the recovery.
func (g *gatekeeper) tellCounters(err error) {
	if err != nil && !g.uncounted {
		g.s.cfg.Log.Error("policy counter not usable", zap.Error(err))
	}
	g.uncounted = err != nil
}
