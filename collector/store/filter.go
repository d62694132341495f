package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"auditproxy/collector/store/word"
)

// A Filter selects records; zero values select all calls.
type Filter struct {
	Window    Window // zero times: no bound
	Kind      string // "": calls; "any"
	Operation string // its tool, or one inside a batch
	Method    string
	Outcome   string
	Tier      string
	Host      string
	User      string
	Client    string // the name that it gives, or its client_id
	Session   string
	Server    string
	ErrorType string
	Text      string // words in the arguments, all of which must match
	Anomalous bool   // only records with anomalies or of anomalies
	Decision  string // allow, deny, ask; Denied and the like; AnyDecision
	Rule      string // of the decision
	Risk      string // a category or a level
	Detector  string
	Approver  string // who answered the question about the call
}

// AnyKind is the Kind that chooses records of every kind.
const AnyKind = "any"

// decisions are conditions on a record: with the effect, or by the policy's own
// word.
var decisions = map[string]string{
	Denied:      "policy_decision = 'deny' AND policy_applied",
	WouldDeny:   "policy_decision = 'deny' AND NOT policy_applied",
	Asked:       "policy_decision = 'ask' AND policy_applied",
	WouldAsk:    "policy_decision = 'ask' AND NOT policy_applied",
	AnyDecision: "policy_decision IN ('deny', 'ask')",
	"allow":     "policy_decision = 'allow'",
	"deny":      "policy_decision = 'deny'",
	"ask":       "policy_decision = 'ask'",
}

// DecisionWords are the words that Filter.Decision takes.
func DecisionWords() []string { return slices.Sorted(maps.Keys(decisions)) }

// where returns the conditions of f, without its window.
func (f Filter) where() (string, args) {
	var conditions []string
	a := args{}
	and := func(condition, name string, v any) {
		conditions = append(conditions, condition)
		a[name] = v
	}
	// Each column is read only where the conditions before it hold.
	if f.Risk != "" {
		and("(risk_category = {risk:String} OR risk_level = {risk:String})", "risk", f.Risk)
	}
	switch f.Kind {
	case AnyKind:
	case "":
		and("kind = {kind:String}", "kind", "call")
	default:
		and("kind = {kind:String}", "kind", f.Kind)
	}
	for _, eq := range []struct{ column, value string }{
		{"session_id", f.Session}, {"policy_rule", f.Rule}, {"error_type", f.ErrorType}, {"user", f.User}, {"host", f.Host},
		{"method", f.Method}, {"outcome", f.Outcome}, {"tier", f.Tier}, {"server_name", f.Server},
	} {
		if eq.value != "" {
			and(eq.column+" = {"+eq.column+":String}", eq.column, eq.value)
		}
	}
	if f.Client != "" {
		and("(client_name = {client:String} OR client_id = {client:String})", "client", f.Client)
	}
	if f.Approver != "" {
		and("(approval_outcome != '' AND JSONExtractString(approval, 'by') = {approver:String})", "approver", f.Approver)
	}
	if f.Operation != "" {
		and("has(ops, {operation:String})", "operation", f.Operation)
	}
	if f.Detector != "" {
		and("has(detections, {detector:String})", "detector", f.Detector)
	}
	if f.Decision != "" {
		condition, known := decisions[f.Decision]
		if !known {
			condition = "false"
		}
		conditions = append(conditions, condition)
	}
	if f.Anomalous {
		conditions = append(conditions, "(kind = 'anomaly' OR notEmpty(anomalies))")
	}
	if f.Text != "" {
		words := word.Of(f.Text)
		if len(words) == 0 { // a text without any word matches no arguments
			conditions = append(conditions, "false")
		}
		for i, w := range words {
			// Arguments are JSON, whose escape for a line feed makes one word of its
			// letter and the word after it. The index has both, and finds the records
			// that may have the word; the text decides.
			token, tokens, escaped := fmt.Sprintf("word%d", i), fmt.Sprintf("words%d", i), fmt.Sprintf("escaped%d", i)
			and(fmt.Sprintf("hasAnyTokens(args, {%s:Array(String)})", tokens), tokens, word.Glued(w))
			a[token], a[escaped] = []string{w}, word.AfterEscape(w)
			conditions = append(conditions, fmt.Sprintf("(hasAllTokens(args, {%s:Array(String)}) OR match(args, {%s:String}))", token, escaped))
		}
	}
	if len(conditions) == 0 {
		return "1", a
	}
	return strings.Join(conditions, " AND "), a
}

// MaxWords is the most words of Filter.Text.
const MaxWords = 16

// Words returns how many words Filter.Text has.
func Words(text string) int { return len(word.Of(text)) }
