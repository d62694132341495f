// Package alert evaluates alert rules on records.
//
// Rules are data, see rules/ and schemas/alert-rules.v1.schema.json. Most are
// evaluated on each record as it is stored; others are queries that run on a
// schedule.
//
// Evaluation delays no record and misses none. Stored records arrive through
// a queue that never blocks. A mark in the store is the arrival time up to
// which all records are evaluated. Records in the queue, refused by a full
// queue or still being stored are after it. So is a record that was committed
// but not evaluated, because the queue was full or the process died. A sweep
// reads it again from the store, here or in another collector that finds the mark
// of a run that ended. The engine gives records their arrival time, so that none is
// before a mark that was written, whatever the machine's clock does. A program that
// stores records and evaluates none leaves such a mark too, see HandOver. A second evaluation gives the
// same alerts, because an alert's identity is a function of rule and record.
//
// The files, from the top: handover, run, sweep, firstseen, engine, metrics, load, filter,
// question, flood, match, condition, rule, path, unclear, arguments, alert.
package alert

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// A Severity says how much an alert matters.
type Severity string

// The severities, as the rules name them.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// An Alert is a finding of a rule. Everything except what the store sets is a
// function of the rule and the records, so a repeated finding is the same alert.
type Alert struct {
	ID       string // 32 hexadecimal digits; of rule, tenant and finding: tenants may not hide each other's
	OldID    string // the identity before it had the tenant, so that old alerts are known; "" for none
	Rule     string
	Severity Severity
	Title    string // of the rule
	Reason   string // of the rule

	Tenant, Host, User, SessionID string // of the record; "" where several differ

	RecordID  string // "" if it concerns several records
	CallNo    uint64 // 0 if it does not concern a call
	Operation string // a tool or, without one, a method; by the client
	Path      string // of the operation, see audit.Operation

	TS       time.Time // of the record, or where the window starts
	WindowTo time.Time // zero without a window
	Details  string    // a JSON object: the values that the rule names, already redacted

	SuppressKey string        // alerts with one key notify once; "" for none
	SuppressFor time.Duration // for so long after one was stored; 0 for good
	Suppressed  bool          // another of the key was stored before, or too many of its producer, see Flood

	// A condition that lasts has an alert whenever it has grown, and one when it
	// has ended. The ID is a function of Lasting and Extent.
	Lasting string // the condition's identity, as long as an ID; "" for a single finding
	Extent  uint64 // of the condition, which never shrinks while it lasts or comes again; 0: it has ended
	Closes  string // ID of the alert whose condition ended; set by the store

	StoredAt time.Time // set by the store
}

// Ended reports whether a is about the end of a condition, which may never have
// had an alert.
func (a *Alert) Ended() bool { return a.Lasting != "" && a.Extent == 0 }

// Closing returns the alert that the condition of the alert with an ID ended.
func (a Alert) Closing(id string, extent uint64) Alert {
	a.ID, a.Closes, a.Extent = hash(id, "closed"), id, extent
	a.Title = "Closed: " + a.Title
	return a
}

// hash returns the identity of parts.
func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
		sum.Write(length[:])
		sum.Write([]byte(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// A Mark records how far records are evaluated.
type Mark struct {
	Name   string
	Kind   string    // MarkRun, MarkRule or MarkSeen
	Upto   time.Time // records that arrived up to then are evaluated
	Closed bool      // it does not move any more
	At     time.Time // when it was written
}

// The kinds of a Mark.
const (
	MarkRun  = "run"  // of one run of a collector
	MarkRule = "rule" // of a rule that runs on a schedule
	MarkSeen = "seen" // of what a rule with FirstSeen has seen: the store has it
)
