package alert

import (
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink"

	"cel.dev/cel-go/cel"
)

// A Rule says what to look for. It looks at each record as it comes, or it is a
// question that the store is asked again and again.
type Rule struct {
	Name     string
	Title    string
	Severity sink.Severity
	Reason   string

	// Operations are tools, or methods where there is no tool; "*" is all. A
	// rule without any looks at records, not at operations.
	Operations []string
	Kinds      []audit.Kind // of records; none: calls, also those that are open

	// What spares the condition: it is evaluated only for operations that have
	// one of these texts in their clear arguments, and for records that have one
	// of these anomalies, where "*" is any. None: for all.
	Containing []string
	Anomalies  []string

	when    cel.Program // nil: always
	details []detail

	suppress suppress

	Threshold *Threshold
	FirstSeen *FirstSeen
	Query     string        // SQL of the rule's own; see question
	Every     time.Duration // how often a question is asked
}

// Scheduled reports whether r is a question to the store.
func (r *Rule) Scheduled() bool { return r.Threshold != nil || r.FirstSeen != nil || r.Query != "" }

// A detail is a value that goes with an alert.
type detail struct {
	name  string
	value cel.Program
}

// A suppress makes one interruption of many alerts.
type suppress struct {
	within time.Duration // zero: each alert is an interruption
	by     []string      // of what is the same in all of them; see suppressFields
}

// A Threshold is reached when Count operations in one window are the same in
// By. Windows start at multiples of Within.
type Threshold struct {
	Count  uint64
	Within time.Duration
	By     []string // see column
	Where  string   // SQL; "" for all
}

// A FirstSeen is a combination of By that was never seen among what is the same
// in Among, which itself was first seen at least Learn before.
type FirstSeen struct {
	By, Among []string // see column
	Learn     time.Duration
	Where     string // SQL; "" for all
}

// Paths are the directories that rules know.
type Paths struct {
	Allowed []string // where panes may be piped to
	Own     []string // of the audit trail itself
}

// Rules are rules that were checked. They do not change, so they may be used
// concurrently.
type Rules struct {
	all   []*Rule
	paths Paths

	// Streaming ones, by what they look at.
	operations map[string][]*Rule // by name; "*" is in every
	records    map[audit.Kind][]*Rule
	kinds      map[audit.Kind]bool // of which there is any rule
	every      []*Rule             // with "*"
}

// All returns the rules in the order of their files.
func (s *Rules) All() []*Rule { return s.all }

// index sorts the streaming rules by what they look at.
func (s *Rules) index() {
	s.operations, s.records, s.kinds = map[string][]*Rule{}, map[audit.Kind][]*Rule{}, map[audit.Kind]bool{}
	for _, r := range s.all {
		if r.Scheduled() {
			continue
		}
		for _, kind := range r.Kinds {
			s.kinds[kind] = true
			if len(r.Operations) == 0 {
				s.records[kind] = append(s.records[kind], r)
			}
		}
		for _, name := range r.Operations {
			if name == "*" {
				s.every = append(s.every, r)
			} else {
				s.operations[name] = append(s.operations[name], r)
			}
		}
	}
}
