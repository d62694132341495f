package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"auditproxy/cmd/internal/ledger"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

// entries are three records: two calls, and one of another kind.
func entries() []ledger.Entry {
	return []ledger.Entry{
		{RecordID: "r0", SessionID: "s", Hash: [16]byte{1}},
		{RecordID: "r1", SessionID: "s", Seq: 1, CallNo: 1, Call: "1", Hash: [16]byte{2}},
		{RecordID: "r2", SessionID: "s", Seq: 2, CallNo: 2, Call: "2", Hash: [16]byte{3}},
	}
}

// TestFollow changes the last of three books.
func TestFollow(t *testing.T) {
	type list = []ledger.Entry
	for _, tt := range []struct {
		name   string
		change func(list) list
		want   ledger.Findings
	}{
		{"it has nothing to say of what is whole", func(l list) list { return l }, nil},
		{"it does not ask for an order", func(l list) list { slices.Reverse(l); return l }, nil},
		{"it finds what is lost", func(l list) list { return l[:2] }, ledger.Findings{{ledger.Lost, "table", "r2"}}},
		{"it finds that all is lost", func(list) list { return nil },
			ledger.Findings{{ledger.Lost, "table", "r0"}, {ledger.Lost, "table", "r1"}, {ledger.Lost, "table", "r2"}}},
		{"it finds a phantom", func(l list) list { return append(l, ledger.Entry{RecordID: "r9"}) }, ledger.Findings{{ledger.Phantom, "table", "r9"}}},
		{"it finds a duplicate", func(l list) list { return append(l, l[1]) }, ledger.Findings{{ledger.Duplicate, "table", "r1"}}},
		{"it finds other bytes", func(l list) list { l[1].Hash[15]++; return l }, ledger.Findings{{ledger.Altered, "table", "r1"}}},
		{"it finds another session", func(l list) list { l[1].SessionID = "t"; return l }, ledger.Findings{{ledger.Altered, "table", "r1"}}},
		{"it finds another place in it", func(l list) list { l[1].Seq++; return l }, ledger.Findings{{ledger.Altered, "table", "r1"}}},
		{"it finds another number", func(l list) list { l[1].CallNo++; return l }, ledger.Findings{{ledger.Altered, "table", "r1"}}},
		{"it finds another call", func(l list) list { l[1].Call = "9"; return l }, ledger.Findings{{ledger.Altered, "table", "r1"}}},
		{"it finds an altered copy beside the good one", func(l list) list { c := l[1]; c.Hash[0]++; return append(l, c) }, ledger.Findings{{ledger.Altered, "table", "r1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ledger.Follow(
				ledger.Book{Place: "spool", Entries: entries()},
				ledger.Book{Place: "topic", Entries: append(entries(), entries()...), Repeats: true},
				ledger.Book{Place: "table", Entries: tt.change(entries())})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Follow (-want +got):\n%s", diff)
			}
		})
	}
	twice := ledger.Book{Place: "spool", Entries: append(entries(), entries()[2])}
	if diff := cmp.Diff(ledger.Findings{{ledger.Duplicate, "spool", "r2"}}, ledger.Follow(twice)); diff != "" {
		t.Errorf("Follow of the first book alone (-want +got):\n%s", diff)
	}
}

func TestCalls(t *testing.T) {
	for _, tt := range []struct {
		name           string
		sent, executed []string
		entries        []ledger.Entry
		want           ledger.Findings
	}{
		{"it has nothing to say of what is whole", []string{"1", "2"}, []string{"2", "1"}, entries(), nil},
		{"it takes the record of a call that was not executed", []string{"1", "2"}, []string{"1"}, entries(), nil},
		{"it finds what was executed unseen", []string{"1", "2", "3"}, []string{"1", "2", "3"}, entries(), ledger.Findings{{ledger.Lost, "spool", "3"}}},
		{"it finds what nobody sent", []string{"1"}, []string{"1"}, entries(), ledger.Findings{{ledger.Phantom, "spool", "r2"}}},
		{"it finds two records of one call", []string{"1", "2"}, []string{"1", "2"}, append(entries(), ledger.Entry{RecordID: "r3", Call: "2"}),
			ledger.Findings{{ledger.Duplicate, "spool", "r3"}}},
		{"it leaves copies of one record to Follow", []string{"1", "2"}, []string{"1", "2"}, append(entries(), entries()...), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ledger.Calls(ledger.Journal{Sent: tt.sent, Executed: tt.executed}, ledger.Book{Place: "spool", Entries: tt.entries})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRead gives a flipped bit another entry, or none.
func TestRead(t *testing.T) {
	call := audit.Record{Kind: audit.KindCall, RecordID: "r", SessionID: "s", Seq: 3, CallNo: 2, RequestID: "7", Outcome: audit.OutcomeOK}
	open := call
	open.Kind = audit.KindOpen
	for _, tt := range []struct {
		record audit.Record
		call   string
	}{{call, "7"}, {open, ""}} {
		line := audit.AppendRecord(nil, &tt.record)
		line = line[:len(line)-1]
		got, err := ledger.Read(line)
		want := ledger.Entry{RecordID: "r", SessionID: "s", Seq: 3, CallNo: 2, Call: tt.call, Hash: got.Hash}
		if err != nil || got != want || got.Hash == [16]byte{} {
			t.Errorf("Read = %+v, %v, want %+v", got, err, want)
		}
		if other, err := ledger.Read([]byte(strings.Replace(string(line), `"s"`, `"t"`, 1))); err == nil {
			t.Errorf("Read of a changed line = %+v", other)
		}
	}
}

func TestFindings(t *testing.T) {
	f := ledger.Findings{{ledger.Lost, "topic", "r1"}, {ledger.Lost, "topic", "r2"}, {ledger.Altered, "table", "r3"}}
	want := "lost 2, phantom 0, duplicates 0, altered 1\nlost in topic: r1\nlost in topic: r2\naltered in table: r3"
	if got := f.String(); got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if got := ledger.Findings(nil).String(); got != "lost 0, phantom 0, duplicates 0, altered 0" {
		t.Errorf("String of none = %q", got)
	}
}
