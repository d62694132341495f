package mcpproxy

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// gatekeeper assesses the client's calls and asks the gate's policy, and people,
// about them.
type gatekeeper struct {
	s         *session
	approvals *approvals // nil: no call is asked about
	methods   *methods
	gate      *gate // of the frames at hand

	toolOf    func(name string) *risk.Tool // riskTool
	riskTools map[string]*risk.Tool        // by name as the server has it; by riskBy, at the listing riskAt
	riskBy    *risk.Assessor
	riskAt    uint64
	riskLast  *risk.Tool                                   // of riskTools, that of most calls
	risks     [risk.Categories][risk.Sources][2]audit.JSON // without and with conflict

	asked        asked
	uncounted    bool                       // it is logged that the counters fail
	asksByResult bool                       // a call was answered by a question
	aside        struct{ calls, bytes int } // of the read at hand, that wait for a person
}

// asked is what the policy decides about in one frame.
type asked struct {
	calls     []policy.Call
	of        []*call // of calls
	decisions []policy.Decision
	refused   policy.Decision // of a call that cannot be decided; see refuse
	last      policy.Decision // of the frame before
}

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
		g.refuse(policy.RuleOversize, "It is too large to be decided.")
	case a&wire.Undecidable != 0:
		g.refuse(ruleAmbiguous, policy.TwoReadings)
	}
}

// opaqueFound is what bytes do that cannot be read, or not whole.
var opaqueFound = audit.DetectionsJSON([]audit.Detection{{Detector: detector.Opaque.Words()[0]}})

// The rules of calls that no policy can decide.
const (
	ruleUnreadable = "(unreadable)"
	ruleAmbiguous  = policy.RuleAmbiguous
	ruleFailed     = "(not assessed)"
)

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
	budget := risk.Budget
	found = g.gate.Risk.AssessWithin(&budget, g.riskTool(name), args, g.toolOf)
	g.submit(it.call, name, args, &found, false)
	left := maxReadings * len(m.Raw) // bytes, of arguments that are read again
	for i := range m.Candidates {
		k := &m.Candidates[i]
		args := m.Arguments
		if k.Differs {
			args = k.Arguments
		}
		tool := g.riskTool(string(jsontext.AppendUnquote(nil, k.Name)))
		if left -= len(args); left < 0 {
			found = worse(found, g.gate.Risk.Unread(tool))
			continue
		}
		other := g.gate.Risk.AssessWithin(&budget, tool, args, g.toolOf)
		found = worse(found, other)
		found.Failed = found.Failed || other.Failed
	}
	return found, !found.Failed
}

// maxReadings is how often the arguments of a call are read in its other readings, all
// in all. Each can have other arguments, or all of them the same.
const maxReadings = 4

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
	has := mayHaveOperations(args)
	if !has && !audit.Relays(name) {
		return
	}
	// Arguments that are not strict JSON are ambiguous, and refused. The strings
	// alias the window, which outlasts the decision.
	text := audit.JSON(unsafe.String(unsafe.SliceData(args), len(args)))
	var ops []audit.Operation
	ok := true
	if has {
		ops, ok = audit.InnerOperations(text, max(maxOperations-len(g.asked.calls), 1))
	}
	ops, ok = audit.WithRelayed(ops, ok, name, text, maxOperations)
	if !ok {
		g.refuse(policy.RuleOversize, policy.UnknownOperations)
		return
	}
	for i := range ops {
		op := &ops[i]
		t := g.riskTool(op.Tool)
		// What the whole call does may be what this operation does.
		g.submit(of, op.Tool, unsafe.Slice(unsafe.StringData(string(op.Args)), len(op.Args)),
			&risk.Result{Category: t.Category, Source: t.Source, Conflict: t.Conflict, Detections: found.Detections, Found: found.Found}, true)
	}
}

// mayHaveOperations reports whether arguments may have operations for some server:
// the name in any case, or hidden by an escape or by the long s, which folds to its s.
func mayHaveOperations(args []byte) bool {
	const name = "operations"
	if bytes.IndexByte(args, '\\') >= 0 || bytes.Contains(args, []byte("\u017f")) {
		return true
	}
	for _, second := range [...]byte{'p', 'P'} { // rare, and found faster than each byte is compared
		for at := 0; ; at++ {
			i := bytes.IndexByte(args[at:], second)
			if i < 0 {
				break
			}
			at += i
			if at > 0 && len(args)-at >= len(name)-1 && bytes.EqualFold(args[at-1:at-1+len(name)], []byte(name)) {
				return true
			}
		}
	}
	return false
}

// maxOperations is how many operations of one frame are decided about.
const maxOperations = 4096

// riskTool returns what is known of a tool: by its definition, or by its name.
func (g *gatekeeper) riskTool(name string) *risk.Tool {
	if listed := g.s.listed.Load(); g.riskBy != g.gate.Risk || g.riskAt != listed || len(g.riskTools) >= maxKnown {
		g.riskBy, g.riskAt, g.riskTools, g.riskLast = g.gate.Risk, listed, make(map[string]*risk.Tool), nil
	}
	if t := g.riskLast; t != nil && t.Name == name {
		return t
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
	} else {
		g.riskLast = t
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

// operations returns what is asked about in the frame at hand.
func (g *gatekeeper) operations() (list []operation) {
	outer := "" // tool of the call at hand
	for i := range g.asked.decisions {
		one := &g.asked.calls[i]
		s := about{tool: strings.Clone(one.Tool)}
		switch method := g.asked.of[i].rec.Method; {
		case one.Inner:
			s.of = outer
		case method == "tools/call":
			outer = s.tool
		default:
			outer, s.of = s.tool, strings.Clone(method)
		}
		if g.asked.decisions[i].Action == policy.AskFirst {
			category, _ := risk.ParseCategory(one.Category)
			list = append(list, operation{s, slices.Clone(one.Detections), category.Level()})
		}
	}
	return list
}
