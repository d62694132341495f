package mcpproxy

import (
	"errors"
	"fmt"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
)

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
