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
// The files, from the top: replay, recorded, history, describe, load, hosted, intercept,
// loader, decide, compile, policy, condition, argument, pattern, counter, source, slab,
// problem.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	other *tool // for names that the policy does not have; see of

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

// A tool is what a policy has about one name. It is compiled at its first use: a
// server has a few of the tools of a long policy, and every start loads it.
type tool struct {
	name string // "": all names that the policy does not have
	once sync.Once

	hidden bool
	listed bool
	deny   *verdict // before all else
	closed *verdict // by default
	ask    *verdict
	free   bool // never asked about

	rules    []rule
	limits   []limit
	paths    []path
	searched []int     // indexes in paths, of texts that rules search
	counters []Counter // that rules and limits name; the keys differ
}

// A rule denies a call by its conditions.
type rule struct {
	name, reason string // reason: "" for deniedBy
	denyIf       bool   // denies if all conditions hold; else unless all hold
	conditions   []condition
	counted      bool // some condition is about a counter

	// only is set for a rule that denies by one condition which a missing argument,
	// or a text without some characters, does not meet: most rules about most calls.
	only  bool
	path  int // of that condition
	chars charset
	fold  uint8
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
func (d *Decision) Refunds() (list []Counter) {
	for _, c := range d.Held {
		if c.refund {
			list = append(list, c)
		}
	}
	return list
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

// quoted is the name of a tool in a reason.
func quoted(name string) string { return strconv.Quote(cut(strings.ToValidUTF8(name, "\ufffd"), 100)) }

// pointer is the JSON Pointer (RFC 6901) to a member.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(escaped(name))
	}
	return b.String()
}

func escaped(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
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
