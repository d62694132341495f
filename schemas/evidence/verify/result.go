package verify

import (
	"cmp"
	"fmt"
	"sort"

	"auditproxy/schemas/evidence"
)

// What is the kind of a finding.
type What string

// The kinds of findings.
const (
	Edited         What = "edited"
	Deleted        What = "deleted"
	Inserted       What = "inserted"
	Reordered      What = "reordered"
	Truncated      What = "truncated"
	MissingSession What = "missing_session"
	Forked         What = "forked" // two versions of one record, or of one session
	BadSignature   What = "bad_signature"
	UnknownKey     What = "unknown_key"
	RolledBack     What = "rolled_back"
)

// A Finding is one change of a session's records, or of a host's sessions.
type Finding struct {
	What   What   `json:"what"`
	Seq    uint64 `json:"seq"` // the first record; of a missing session, its host_seq
	To     uint64 `json:"to"`  // the last one that it may be
	Detail string `json:"detail"`
}

// State is the state of a session.
type State string

// The states.
const (
	OK         State = "ok"
	Tampered   State = "tampered"
	Incomplete State = "incomplete"  // not signed to its end: it is running, unless Result.Unclear
	Erased     State = "erased"      // all verified; the content of records was deleted on request
	Unsigned   State = "unsigned"    // from a proxy without evidence
	Unknown    State = "unknown_key" // signed by a host that is not trusted
	Unreadable State = "unreadable"
)

// A Result is that of one session.
type Result struct {
	SessionID string    `json:"session_id"`
	State     State     `json:"state"`
	Records   int64     `json:"records"`
	Verified  int64     `json:"verified"`            // of them, by a signature of a trusted host
	Recovered int64     `json:"recovered,omitempty"` // of these, by the host's key alone
	Removed   int64     `json:"removed,omitempty"`   // further ones, of which only the hash is here: they were old
	Findings  []Finding `json:"findings"`
	NotShown  int       `json:"findings_not_shown,omitempty"`
	Note      string    `json:"note,omitempty"` // why it is neither ok nor tampered

	Checkpoints int64  `json:"-"`
	Unclear     bool   `json:"-"` // Incomplete, and not because it is running
	Begins      uint64 `json:"-"` // its host_seq, if it follows a session that is not here and may be missing

	// Subtrees are those of the tree that was proved last, see evidence.Tree.Subtrees.
	Subtrees []evidence.Hash `json:"-"`
}

// A Host has the totals of the sessions of one key.
type Host struct {
	Name        string `json:"host"`
	Key         string `json:"key,omitempty"` // "" for sessions without evidence
	Trusted     bool   `json:"trusted"`
	Sessions    int64  `json:"sessions"`
	Records     int64  `json:"records"`
	Verified    int64  `json:"verified"`
	Recovered   int64  `json:"recovered,omitempty"` // see Result
	Removed     int64  `json:"removed,omitempty"`
	Checkpoints int64  `json:"checkpoints"`
	Begins      uint64 `json:"begins_with,omitempty"` // the host_seq of the first session, if those before it are not here
}

// A hostKey is a host's name and key. Of one host a Checker keeps one.
type hostKey struct{ name, key string }

// A Report is the result of a check.
type Report struct {
	Hosts   []Host
	Results []Result // in the order of sessions' ids; missing sessions too
	Exit    int

	hosts map[hostKey]int // places in Hosts: anyone can name as many as sessions
}

// host returns the totals of a host.
func (r *Report) host(name, key string, trusted bool) *Host {
	i, found := r.hosts[hostKey{name, key}]
	if !found {
		i = len(r.Hosts)
		r.Hosts, r.hosts[hostKey{name, key}] = append(r.Hosts, Host{Name: name, Key: key, Trusted: trusted}), i
	}
	return &r.Hosts[i]
}

func (r *Report) add(name, key string, trusted bool, result Result) {
	h := r.host(name, key, trusted)
	h.Sessions++
	h.Records += result.Records
	h.Verified += result.Verified
	h.Recovered += result.Recovered
	h.Removed += result.Removed
	h.Checkpoints += result.Checkpoints
	if result.Begins > 0 && (h.Begins == 0 || result.Begins < h.Begins) {
		h.Begins = result.Begins
	}
	r.Results = append(r.Results, result)
}

// The exit codes of a check.
const (
	ExitVerified = 0 // all of it, or all but the last records of running sessions
	ExitTampered = 1
	ExitUnclear  = 2 // it could not be determined
)

func exitCode(results []Result) int {
	code := ExitVerified
	if len(results) == 0 {
		code = ExitUnclear
	}
	for _, r := range results {
		switch r.State {
		case Tampered:
			return ExitTampered
		case Unsigned, Unknown, Unreadable:
			code = ExitUnclear
		case Incomplete:
			if r.Unclear {
				code = ExitUnclear
			}
		}
	}
	return code
}

// maxFindings is how many findings of one session are kept.
const maxFindings = 100

// A finding is a Finding whose place becomes known with the next checkpoint.
type finding struct {
	Finding
	text          string // instead of the usual sentence
	about         string // which record: its tool and time
	of            string // the other session of a record
	others        int64  // further records that it is about
	after, before int64  // sizes of signed checkpoints around it; -1: none
}

// findings are those of a session.
type findings struct {
	list     []finding
	open     int // from here on, before may be unknown
	notShown int
}

func (f *findings) add(n finding) {
	if len(f.list) == maxFindings {
		f.notShown++
		return
	}
	f.list = append(f.list, n)
}

// signed is told the size of a checkpoint with a good signature.
func (f *findings) signed(size int64) {
	for i := f.open; i < len(f.list); i++ {
		if n := &f.list[i]; n.before < 0 && uint64(size) > n.To {
			n.before = size
		}
	}
	for f.open < len(f.list) && f.list[f.open].before >= 0 {
		f.open++
	}
}

// done returns the findings in the order of records.
func (f *findings) done() []Finding {
	list := make([]Finding, 0, len(f.list))
	for i := range f.list {
		n := &f.list[i]
		if n.Detail = cmp.Or(n.text, n.sentence()); n.others > 0 {
			n.Detail += ", and " + count(n.others, "other") + " of it"
		}
		list = append(list, n.Finding)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Seq < list[j].Seq }) // a third of the code of slices.SortStableFunc
	return list
}

func (n *finding) sentence() string {
	text := seqs(n.Seq, n.To) + " " + string(n.What)
	switch {
	case n.after >= 0 && n.before >= 0:
		text += fmt.Sprintf(" between checkpoints %d and %d", n.after, n.before)
	case n.before >= 0:
		text += fmt.Sprintf(" before checkpoint %d", n.before)
	case n.after >= 0:
		text += fmt.Sprintf(" after checkpoint %d", n.after)
	}
	if n.about != "" {
		text += ": " + n.about
	}
	return text
}

// seqs names records.
func seqs(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("seq %d", from)
	}
	return fmt.Sprintf("seq %d to %d", from, to)
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
