package risk

import (
	"auditproxy/mcpproxy/risk/command"
	"auditproxy/mcpproxy/risk/detector"
)

// Budget is what the commands of a call may cost together, in all its readings.
const Budget = command.Budget

// Assess returns the risk of a call of t with arguments: JSON as on the wire, nil
// for none. Of duplicate names each value is looked at. The items of operations
// lists are calls of their own: tool returns the tool of such a call, nil for
// one that is not known; it may be nil. Assess is linear in the arguments and
// allocates nothing where it detects nothing, once warm.
func (a *Assessor) Assess(t *Tool, arguments []byte, tool func(name string) *Tool) Result {
	budget := Budget
	return a.AssessWithin(&budget, t, arguments, tool)
}

// AssessWithin is Assess for one of several readings of a call, which share a budget:
// the client chooses how many there are.
func (a *Assessor) AssessWithin(budget *int, t *Tool, arguments []byte, tool func(name string) *Tool) (r Result) {
	defer func() {
		if recover() != nil {
			// A defect here must neither end the session nor look harmless.
			r = a.Unread(t)
			r.Failed = true
		}
	}()
	r = a.assess(budget, t, arguments, tool)
	r.Failed = t.failed
	return r
}

func (a *Assessor) assess(budget *int, t *Tool, arguments []byte, tool func(name string) *Tool) Result {
	w, _ := a.walks.Get().(*walk)
	if w == nil {
		w = new(walk)
	}
	w.a, w.tool, w.b, w.lookups, w.budget = a, tool, arguments, maxLookups, *budget
	w.result = Result{Category: t.Category, Source: t.Source, Conflict: t.Conflict}
	i := w.b.Start(0)
	if i == len(w.b) || w.b[i] == '{' || string(w.b[i:max(i, w.b.Scalar(i))]) == "null" {
		i = w.arguments(t, i)
	} else {
		i = w.value(i, t, commandLine|typed)
	}
	if i < 0 {
		w.depth = 0
		w.found(detector.Opaque) // a server may be able to read the rest
	}
	r := w.result
	*budget = w.budget
	w.clear()
	a.walks.Put(w)
	return r
}

// Unread returns the risk of a call of t whose arguments are too large to
// be kept, or read: they could do anything.
func (a *Assessor) Unread(t *Tool) Result {
	w := &walk{a: a, result: Result{Category: t.Category, Source: t.Source, Conflict: t.Conflict}, lookups: maxLookups}
	w.found(detector.Opaque)
	return w.result
}
