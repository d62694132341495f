// Package ledger compares what servers executed with the records kept of it,
// place by place, and reports what was lost, made up, kept twice or altered on
// the way.
package ledger

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"auditproxy/schemas/audit"
)

// An Entry is a record as one place keeps it. Two places that keep the same
// record have equal entries.
type Entry struct {
	RecordID  string
	SessionID string
	Seq       uint64
	CallNo    uint64
	Call      string   // request id of a call's record, "" of every other kind
	Hash      [16]byte // SHA-256 of the record's bytes, its first half
}

// Read returns the entry of a record's bytes, as a spool or a topic has them.
func Read(line []byte) (Entry, error) {
	r, err := audit.Parse(line)
	if err != nil {
		return Entry{}, fmt.Errorf("reading a record: %w", err)
	}
	sum := sha256.Sum256(line)
	e := Entry{RecordID: r.RecordID, SessionID: r.SessionID, Seq: r.Seq, CallNo: r.CallNo, Hash: [16]byte(sum[:])}
	if r.Kind == audit.KindCall {
		e.Call = r.RequestID
	}
	return e, nil
}

// A Book holds all that one place keeps.
type Book struct {
	Place   string // for findings
	Entries []Entry
	Repeats bool // a record may be repeated, byte for byte
}

// A Journal lists what happened, noted outside of every place. Each id belongs to
// one call.
type Journal struct {
	Sent     []string // ids of the calls that clients have sent, or started to send
	Executed []string // ids of the calls that servers have noted before they acted
}

// A Kind is a fault of a record.
type Kind string

// The kinds of findings.
const (
	Lost      Kind = "lost"      // in the place before, and not in this one
	Phantom   Kind = "phantom"   // in this place, and not in the one before
	Duplicate Kind = "duplicate" // in this place twice
	Altered   Kind = "altered"   // different from the place before
)

// A Finding is one faulty record.
type Finding struct {
	Kind  Kind
	Place string
	ID    string // of the record; of a call that has none, the request's
}

// Findings are all faults; none if the records are right.
type Findings []Finding

// String counts the findings of each kind, and names the first few.
func (f Findings) String() string {
	const most = 10
	count := map[Kind]int{}
	for _, finding := range f {
		count[finding.Kind]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lost %d, phantom %d, duplicates %d, altered %d", count[Lost], count[Phantom], count[Duplicate], count[Altered])
	for _, finding := range f[:min(len(f), most)] {
		fmt.Fprintf(&b, "\n%s in %s: %s", finding.Kind, finding.Place, finding.ID)
	}
	return b.String()
}

// Calls compares a book with a journal: each executed call has one record, and
// a call that was never sent has none. A call that was sent and not executed
// may have one: its proxy may have died in between.
func Calls(j Journal, b Book) Findings {
	var found Findings
	kept := map[string]string{} // by call, the record
	sent := make(map[string]bool, len(j.Sent))
	for _, id := range j.Sent {
		sent[id] = true
	}
	for _, e := range b.Entries {
		first, again := kept[e.Call]
		switch {
		case e.Call == "":
			continue
		case !sent[e.Call]:
			found = append(found, Finding{Phantom, b.Place, e.RecordID})
		case again && first != e.RecordID:
			found = append(found, Finding{Duplicate, b.Place, e.RecordID})
		}
		kept[e.Call] = e.RecordID
	}
	for _, id := range j.Executed {
		if _, ok := kept[id]; !ok {
			found = append(found, Finding{Lost, b.Place, id})
		}
	}
	return found
}

// Follow compares each book with the one before it. In the first one it finds
// duplicates only.
func Follow(books ...Book) Findings {
	var found Findings
	for i, b := range books {
		found = append(found, compare(books[max(i-1, 0)], b)...)
	}
	return found
}

func compare(before, here Book) Findings {
	var found Findings
	want := make(map[string]Entry, len(before.Entries))
	for _, e := range before.Entries {
		want[e.RecordID] = e
	}
	seen := make(map[string]bool, len(here.Entries))
	for _, e := range here.Entries {
		switch w, ok := want[e.RecordID]; {
		case !ok:
			found = append(found, Finding{Phantom, here.Place, e.RecordID})
		case w != e:
			found = append(found, Finding{Altered, here.Place, e.RecordID})
		case seen[e.RecordID] && !here.Repeats:
			found = append(found, Finding{Duplicate, here.Place, e.RecordID})
		}
		seen[e.RecordID] = true
	}
	for _, e := range before.Entries {
		if !seen[e.RecordID] {
			found = append(found, Finding{Lost, here.Place, e.RecordID})
			seen[e.RecordID] = true // once, even if repeated
		}
	}
	return found
}
