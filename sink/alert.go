package sink

import "time"

// A Severity says how much an alert matters.
type Severity string

// The severities, as the rules name them.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// An Alert is what a rule found. All of it but StoredAt is a function of the
// rule and of the records, so that what is found again is the same alert.
type Alert struct {
	ID       string // 32 hexadecimal digits
	Rule     string
	Severity Severity
	Title    string // of the rule
	Reason   string // of the rule

	Tenant, Host, User, SessionID string // of the record; "" where several differ

	RecordID  string // "" if it is about no single record
	CallNo    uint64 // 0 if it is about no call
	Operation string // a tool or, without one, a method; by the client
	Path      string // of the operation, see audit.Operation

	TS       time.Time // of the record, or where the window starts
	WindowTo time.Time // zero if there is no window
	Details  string    // a JSON object: the values that the rule names, already redacted

	SuppressKey string // alerts of one key are one interruption; "" for none
	Suppressed  bool   // another of the key was stored before

	StoredAt time.Time // set by the store
}

// A Mark says how far records are evaluated.
type Mark struct {
	Name   string
	Kind   string    // MarkRun or MarkRule
	Upto   time.Time // what arrived up to then is done
	Closed bool      // nobody moves it any more
	At     time.Time // when it was written
}

// The kinds of a Mark.
const (
	MarkRun  = "run"  // of one run of a collector
	MarkRule = "rule" // of a rule that is asked on a schedule
)
