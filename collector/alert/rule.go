package alert

import (
	"slices"
	"time"

	"auditproxy/schemas/audit"

	"cel.dev/cel-go/cel"
)

// A Rule is a condition for an alert. It is evaluated on each record, or is a
// query that runs on a schedule.
type Rule struct {
	Name     string
	Title    string
	Severity Severity
	Reason   string

	// Operations are tools, or methods of calls without a tool; "*" is all. A
	// rule without operations applies to records.
	Operations []string
	Kinds      []audit.Kind // of records; none: calls, also those that are open

	// Filters before the condition. It is evaluated only for operations with
	// one of the texts in their clear arguments, or whose arguments are not all
	// in the record. The record must have one of
	// the anomalies, one of the detections and one of the outcomes of an
	// approval; "*" is any. An empty filter admits all.
	Containing []string
	Anomalies  []string
	Detections []string
	Approvals  []string

	when    cel.Program // nil: always
	details []detail

	suppress suppress

	Threshold *Threshold
	FirstSeen *FirstSeen
	Query     string        // SQL of the rule's own; see question
	Copies    bool          // Query is to see the copies of records
	Every     time.Duration // interval of a query
}

// Scheduled reports whether r is a query.
func (r *Rule) Scheduled() bool { return r.Threshold != nil || r.FirstSeen != nil || r.Query != "" }

// A detail is a value that an alert includes.
type detail struct {
	name  string
	value cel.Program
}

// A suppress groups alerts, so that only the first is delivered.
type suppress struct {
	within time.Duration // zero: each alert is delivered
	by     []string      // fields that are equal in all of them; see suppressFields
}

// A Threshold is reached when Count operations in one window are the same in
// By. Windows start at multiples of Within.
type Threshold struct {
	Count  uint64
	Within time.Duration
	By     []string // see column
	Where  string   // SQL; "" for all
}

// A FirstSeen is a combination of By that is new within its combination of
// Among, which itself was first seen at least Learn before.
type FirstSeen struct {
	By, Among []string // see column
	Learn     time.Duration
	Where     string // SQL; "" for all
}

// Paths are the directories that rules refer to.
type Paths struct {
	Allowed []string // where panes may be piped to
	Own     []string // of the audit trail itself
}

// Rules are rules that were checked. They do not change, so they may be used
// concurrently.
type Rules struct {
	all   []*Rule
	paths Paths

	streaming map[audit.Kind]*kindRules // by kind of record
}

// kindRules are the rules on records of one kind, or on the operations in
// them.
type kindRules struct {
	records    []*Rule
	operations map[string][]*Rule // by name
	every      []*Rule            // with "*"
}

// All returns the rules in the order of their files.
func (s *Rules) All() []*Rule { return s.all }

// index sorts the streaming rules by kind of record and by operation.
func (s *Rules) index() {
	s.streaming = map[audit.Kind]*kindRules{}
	for _, r := range s.all {
		if r.Scheduled() {
			continue
		}
		for i, kind := range r.Kinds {
			if slices.Contains(r.Kinds[:i], kind) {
				continue
			}
			of := s.streaming[kind]
			if of == nil {
				of = &kindRules{operations: map[string][]*Rule{}}
				s.streaming[kind] = of
			}
			of.add(r)
		}
	}
}

func (k *kindRules) add(r *Rule) {
	if len(r.Operations) == 0 {
		k.records = append(k.records, r)
	}
	for _, name := range r.Operations {
		if name == "*" {
			k.every = append(k.every, r)
		} else {
			k.operations[name] = append(k.operations[name], r)
		}
	}
}
