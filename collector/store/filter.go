package store

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
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
	Session   string
	Server    string
	ErrorType string
	Text      string // words in the arguments, all of which must match
	Anomalous bool   // only records with anomalies or of anomalies
	Decision  string // allow, deny, ask; Denied and the like; AnyDecision
	Rule      string // of the decision
	Risk      string // a category or a level
	Detector  string
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
	switch f.Kind {
	case AnyKind:
	case "":
		and("kind = {kind:String}", "kind", "call")
	default:
		and("kind = {kind:String}", "kind", f.Kind)
	}
	// Each column is read only where the conditions before it hold.
	for _, eq := range []struct{ column, value string }{
		{"session_id", f.Session}, {"policy_rule", f.Rule}, {"error_type", f.ErrorType}, {"user", f.User}, {"host", f.Host},
		{"method", f.Method}, {"outcome", f.Outcome}, {"tier", f.Tier}, {"server_name", f.Server},
	} {
		if eq.value != "" {
			and(eq.column+" = {"+eq.column+":String}", eq.column, eq.value)
		}
	}
	if f.Operation != "" {
		and("has(ops, {operation:String})", "operation", f.Operation)
	}
	if f.Risk != "" {
		and("(risk_category = {risk:String} OR risk_level = {risk:String})", "risk", f.Risk)
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
		// This splits words where the index does; a text without any word
		// matches no arguments.
		and("hasAllTokens(args, {tokens:Array(String)})", "tokens", tokens(f.Text))
		if len(tokens(f.Text)) == 0 {
			conditions[len(conditions)-1] = "false"
			delete(a, "tokens")
		}
	}
	if len(conditions) == 0 {
		return "1", a
	}
	return strings.Join(conditions, " AND "), a
}

// maxTokens is the most words of a text that are searched.
const maxTokens = 16

// tokens cuts text as the index on args does: splitByNonAlpha ends a word at
// every ASCII character other than a letter or digit, after lower().
func tokens(text string) []string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool {
		return r < utf8.RuneSelf && !('0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z')
	})
	for i, w := range words {
		words[i] = lower(w)
	}
	return words[:min(len(words), maxTokens)]
}

// lower is ClickHouse's lower(), which changes ASCII only.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
