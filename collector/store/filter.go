package store

import (
	"fmt"
	"maps"
	"regexp"
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
		words := tokens(f.Text)
		if len(words) == 0 { // a text without any word matches no arguments
			conditions = append(conditions, "false")
		}
		for i, word := range words {
			// Arguments are JSON, whose escape for a line feed makes one word of its
			// letter and the word after it. The index has both, and finds the records
			// that may have the word; the text decides.
			token, tokens, escaped := fmt.Sprintf("word%d", i), fmt.Sprintf("words%d", i), fmt.Sprintf("escaped%d", i)
			and(fmt.Sprintf("hasAnyTokens(args, {%s:Array(String)})", tokens), tokens, glued(word))
			a[token], a[escaped] = []string{word}, afterEscape(word)
			conditions = append(conditions, fmt.Sprintf("(hasAllTokens(args, {%s:Array(String)}) OR match(args, {%s:String}))", token, escaped))
		}
	}
	if len(conditions) == 0 {
		return "1", a
	}
	return strings.Join(conditions, " AND "), a
}

// escapes are the letters of JSON's escapes for white space and the like.
const escapes = "bfnrt"

// glued returns the words of the index that may end with word.
func glued(word string) []string {
	words := []string{word}
	for _, letter := range escapes {
		words = append(words, string(letter)+word)
	}
	return words
}

// afterEscape returns a pattern of JSON in which word follows an escape.
func afterEscape(word string) string {
	return `(?i)(^|[^\\])(\\\\)*\\[` + escapes + `]` + regexp.QuoteMeta(word) + `([\x00-/:-@\[-\x60{-\x7f]|$)`
}

// MaxWords is the most words of Filter.Text.
const MaxWords = 16

// Words returns how many words Filter.Text has.
func Words(text string) int { return len(tokens(text)) }

// tokens cuts text as the index on args does: splitByNonAlpha ends a word at
// every ASCII character other than a letter or digit, after lower().
func tokens(text string) []string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool {
		return r < utf8.RuneSelf && !('0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z')
	})
	for i, w := range words {
		words[i] = strings.Map(func(r rune) rune { // ClickHouse's lower(), which changes ASCII only
			if 'A' <= r && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, w)
	}
	return words
}
