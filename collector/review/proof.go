package review

import (
	"context"
	"encoding/json"
	"strings"

	"auditproxy/collector/store"
)

// A proof is what verification says of a session, for a page.
type proof struct {
	store.Verification
	Mark     mark
	Why      string   // of what is not verified
	Findings []string // the places of changes
}

// proofs returns what verification says of sessions.
func (s *Server) proofs(ctx context.Context, list ...store.Session) (map[string]proof, error) {
	ids := make([]string, len(list))
	for i, se := range list {
		ids[i] = se.SessionID
	}
	found, err := s.data.Verifications(ctx, ids)
	proofs := map[string]proof{}
	for _, id := range ids {
		v, ok := found[id]
		proofs[id] = newProof(v, ok)
	}
	return proofs, err
}

// newProof returns the proof of a session; found is false if it was never verified.
func newProof(v store.Verification, found bool) proof {
	p := proof{Verification: v}
	unverified := mark{"?", "unverified", "warn"}
	switch {
	case !found:
		p.Mark, p.Why = unverified, "It was not checked yet, or evidence.verify_every is 0."
	case !v.Tampered.IsZero():
		p.Mark = mark{"▲", "tampered", "bad"}
		p.Findings = findings(v.Findings)
	case v.State == "ok":
		p.Mark = mark{"✓", "verified", "ok"}
	case v.State == "incomplete" && len(findings(v.Unclear)) > 0:
		p.Mark, p.Why = unverified, strings.Join(findings(v.Unclear), "; ")+"."
	case v.State == "incomplete" && v.Verified > 0:
		p.Mark = mark{"✓", "verified so far", "ok"}
	case v.State == "erased":
		p.Mark = mark{"▪", "erased", "faint"}
	default:
		p.Mark, p.Why = unverified, map[string]string{
			"incomplete":  "No signature covers its records yet, or its first record is not here.",
			"unsigned":    "Its records have no evidence: an older proxy wrote them, or evidence.enabled is false there.",
			"unknown_key": "Its host's key is not in the trust file.",
			"unreadable":  "It could not be read.",
		}[v.State]
	}
	return p
}

// findings returns the sentences of findings.
func findings(text string) (list []string) {
	var all []struct {
		What   string `json:"what"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	for _, f := range all {
		if f.Detail == "" {
			f.Detail = f.What
		}
		list = append(list, f.Detail)
	}
	return list
}
