package store_test

import (
	"slices"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func testLetters(t *testing.T, s *store.Store, dir string) {
	letter := func(offset uint64, reason string) ingest.DeadLetter {
		return ingest.DeadLetter{
			Source: ingest.Source{Topic: "t", Partition: 1, Offset: offset}, Time: hour, Key: "k\x00\xff",
			Raw: []byte("not JSON \x00\xff"), Reason: reason, Error: "the value is not JSON", Seen: hour,
		}
	}
	letters := []ingest.DeadLetter{letter(1, "not_json"), letter(2, "tenant"), letter(3, "not_json")}
	for range 2 { // a duplicate collapses
		if err := s.InsertDeadLetters(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	read := func(f store.LetterFilter) (list []ingest.DeadLetter) {
		t.Helper()
		f.Limit = 2
		for {
			page, err := s.Letters(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				return list
			}
			for _, l := range page {
				list = append(list, l.DeadLetter)
			}
			f.After = &page[len(page)-1].Cursor
		}
	}
	if diff := cmp.Diff(letters, read(store.LetterFilter{})); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(letters[1:2], read(store.LetterFilter{Reason: "tenant"})); diff != "" {
		t.Errorf("by reason (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(letters[2:], read(store.LetterFilter{Source: &letters[2].Source})); diff != "" {
		t.Errorf("by place (-want +got):\n%s", diff)
	}
	if err := s.MarkReplayed(t.Context(), letters[:1], time.Now()); err != nil {
		t.Fatal(err)
	}
	// The topic is read from its start again: the mark stays.
	if err := s.InsertDeadLetters(t.Context(), append(letters[:1:1], letter(9, "ts"))); err != nil {
		t.Fatal(err)
	}
	if got := read(store.LetterFilter{}); len(got) != 3 {
		t.Errorf("after a replay %d letters wait, want 3", len(got))
	}
	if got := read(store.LetterFilter{Replayed: true}); len(got) != 4 {
		t.Errorf("after a replay there are %d letters, want 4", len(got))
	}
	// Alone, so that the mark is an insert of the same letter; and others of its place.
	alone := letter(20, "not_json")
	other, shifted := alone, alone
	other.Key = "j\x00\xff"
	shifted.Key, shifted.Raw = "k", append([]byte("\x00\xff"), alone.Raw...)
	for _, l := range []ingest.DeadLetter{alone, other, shifted} {
		if err := s.InsertDeadLetters(t.Context(), []ingest.DeadLetter{l}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.MarkReplayed(t.Context(), []ingest.DeadLetter{alone}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if left := read(store.LetterFilter{Source: &alone.Source}); len(left) != 2 || left[0].Key == alone.Key || left[1].Key == alone.Key {
		t.Errorf("of three letters of a place, of which one was replayed, %+v wait", left)
	}
	gap := ingest.Gap{Topic: "t", Partition: 1, From: 5, To: 8, Reason: "removed", Seen: hour}
	longer, later, ofSession := gap, gap, gap
	longer.To, later.From, ofSession.Session = 9, 6, "s"
	for _, g := range []ingest.Gap{gap, gap, longer, later, ofSession} { // a duplicate collapses, another does not
		if err := s.InsertGaps(t.Context(), []ingest.Gap{g}); err != nil {
			t.Fatal(err)
		}
	}
	// The letters are at partition 1 too; a record is at 3, and comes again later, also in
	// another partition. Of its rows the first stays.
	record := ingesttest.Call(1, "list_panes", hour)
	for _, at := range []ingest.Source{{Topic: "t", Partition: 3, Offset: 7}, {Topic: "t", Partition: 3, Offset: 20}, {Topic: "t", Partition: 4, Offset: 30}} {
		if err := s.InsertRows(t.Context(), []ingest.Row{ingesttest.Row(t, record, at)}, hour.Add(time.Duration(at.Offset)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	chdbtest.Query(t, dir, "OPTIMIZE TABLE audit.events FINAL")
	places := []ingest.Source{{Topic: "t", Partition: 3, Offset: 9}, {Topic: "t", Partition: 3, Offset: 7}, {Topic: "it's", Partition: 3, Offset: 9}, {Topic: "t", Partition: 1, Offset: 10}, {Topic: "t", Partition: 1, Offset: 100},
		{Topic: "t", Partition: 4, Offset: 31}, {Topic: "t", Partition: 3, Offset: 100}, {Topic: "t", Partition: 3, Offset: 20}, {Topic: "t", Partition: 4, Offset: 30}}
	next := make([]uint64, len(places))
	for i, p := range places {
		one, err := s.Reached(t.Context(), []ingest.Source{p})
		if err != nil {
			t.Fatal(err)
		}
		next[i] = one[0]
	}
	if want := []uint64{8, 0, 0, 10, 21, 31, 21, 8, 0}; !slices.Equal(next, want) {
		t.Errorf("places %v: the store reached %d, want %d", places, next, want)
	}
	testLacks(t, s, dir, record, letters[0].Source)
	testUnfilled(t, s)
	full := engine(dir, chdb.Writer)
	full.KeepFree = 1 << 60
	limited, err := store.Open(full)
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	if err := limited.InsertDeadLetters(t.Context(), letters[:1]); err == nil {
		t.Error("a dead letter is stored on a full disk")
	}
	chdbtest.Want(t, dir, "SELECT kafka_topic, kafka_partition, from_offset, to_offset, session_id, reason FROM audit.gaps FINAL WHERE kafka_topic = 't' ORDER BY ALL",
		"t\t1\t5\t8\t\tremoved", "t\t1\t5\t8\ts\tremoved", "t\t1\t5\t9\t\tremoved", "t\t1\t6\t8\t\tremoved")
}

// testUnfilled asks for gaps of which records may be read yet. A gap that was read further
// replaces itself; of a log that was cut later, the offsets are those of others.
func testUnfilled(t *testing.T, s *store.Store) {
	t.Helper()
	id := uuid.UUID{15: 1}
	at := time.Now().UTC().Truncate(time.Millisecond)
	gap := func(partition uint32, reason string, age time.Duration, readTo uint64) ingest.Gap {
		return ingest.Gap{Topic: "filled", Partition: partition, From: 5, To: 9, Reason: reason, Seen: at.Add(-age), TopicID: id, ReadTo: readTo}
	}
	unknown := gap(7, ingest.OffsetWasSet, 0, 0)
	unknown.TopicID = uuid.UUID{}
	cut := gap(6, ingest.LogIsShorter, 0, 0)
	cut.To = 20
	for _, g := range []ingest.Gap{
		gap(1, ingest.OffsetWasSet, 0, 0), gap(2, ingest.StoreIsOlder, 0, 0), gap(3, "removed", 0, 0), gap(4, ingest.OffsetWasSet, 0, 0), gap(4, ingest.OffsetWasSet, 0, 7),
		gap(5, ingest.OffsetWasSet, 0, 0), gap(5, ingest.OffsetWasSet, 0, 10), gap(6, ingest.OffsetWasSet, time.Minute, 0), cut, unknown,
	} {
		if err := s.InsertGaps(t.Context(), []ingest.Gap{g}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Unfilled(t.Context(), []string{"filled", "none"})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b ingest.Gap) int { return int(a.Partition) - int(b.Partition) })
	want := []ingest.Gap{gap(1, ingest.OffsetWasSet, 0, 0), gap(2, ingest.StoreIsOlder, 0, 0), gap(4, ingest.OffsetWasSet, 0, 7)}
	if !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
}

// testLacks asks for a record that is here, for others that are not, and for these when
// there is a reason.
func testLacks(t *testing.T, s *store.Store, dir string, here audit.Record, letter ingest.Source) {
	t.Helper()
	stored := func(seq uint64, ts time.Time, at ingest.Source) ingest.Stored {
		return ingest.Stored{Session: here.SessionID, Seq: seq, TS: ts, Source: at}
	}
	list := []ingest.Stored{
		stored(here.Seq, here.TS, ingest.Source{Topic: "t", Partition: 3, Offset: 7}),
		stored(here.Seq+1, here.TS, ingest.Source{Topic: "t", Partition: 3, Offset: 8}),
		stored(here.Seq+1, here.TS, letter),
		stored(here.Seq+1, here.TS.Add(-48*time.Hour), ingest.Source{Topic: "t", Partition: 3, Offset: 8}),
	}
	check := func(what string, want ...bool) {
		t.Helper()
		if got, err := s.Lacks(t.Context(), list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: the store lacks %v, %v, want %v", what, got, err, want)
		}
	}
	check("at first", false, true, false, true)
	chdbtest.Query(t, dir, "INSERT INTO audit.retention_log (table_name, cutoff) VALUES ('events', now() - INTERVAL 1 DAY)")
	check("after retention", false, true, false, false)
	chdbtest.Query(t, dir, "INSERT INTO audit.erased_sessions (session_id) VALUES ('"+here.SessionID+"')")
	check("after an erasure", false, false, false, false)
}
