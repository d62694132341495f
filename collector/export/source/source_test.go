package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/collector/store/storetest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

func open(t *testing.T) (*store.Store, string) {
	t.Helper()
	return storetest.Open(t, clickhouse.Retention{})
}

// insert stores calls of a session that arrive at a time.
func insert(t *testing.T, s *store.Store, at time.Time, session string, from, to int) {
	t.Helper()
	var rows []ingest.Row
	for i := from; i < to; i++ {
		r := ingesttest.Call(i, "x", time.Now().Truncate(time.Hour))
		r.SessionID = session
		rows = append(rows, ingesttest.Row(t, r, ingest.Source{Topic: session, Offset: uint64(i)}))
	}
	if err := s.InsertRows(t.Context(), rows, at); err != nil {
		t.Fatal(err)
	}
}

// TestRead reads records in the order of their arrival, in steps of different sizes
// and from each position, and stops and continues.
func TestRead(t *testing.T) {
	s, dir := open(t)
	noon := time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC()
	insert(t, s, noon.Add(2*time.Millisecond), "b", 0, 3)
	insert(t, s, noon, "c", 0, 2) // later by session, earlier by arrival
	insert(t, s, noon.Add(2*time.Millisecond), "a", 0, 2)
	insert(t, s, noon.Add(time.Second), "a", 2, 5)
	insert(t, s, noon.Add(time.Minute), "d", 0, 1)
	all := []string{"c 0", "c 1", "a 0", "a 1", "b 0", "b 1", "b 2", "a 2", "a 3", "a 4", "d 0"}
	src := source.Source{DB: s.DB()}
	var at []source.Position
	collect := func(got *[]string) func([]receiver.Record) error {
		return func(list []receiver.Record) error {
			for i := range list {
				*got = append(*got, fmt.Sprint(list[i].Record.SessionID, " ", list[i].Record.Seq))
				if len(at) < len(all) {
					at = append(at, source.After(&list[i]))
				}
				if len(list[i].Operations) != 1 || list[i].Raw == "" {
					t.Errorf("record %+v", list[i])
				}
			}
			return nil
		}
	}
	var got []string
	if err := src.Read(t.Context(), source.Position{}, noon.Add(time.Hour), collect(&got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	for i, p := range at {
		got := []string{}
		if err := src.Read(t.Context(), p, noon.Add(time.Hour), collect(&got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[i+1:], got); diff != "" {
			t.Errorf("after %d (-want +got)\n%s", i, diff)
		}
	}
	for limit := 1; limit < 13; limit++ {
		got := []string{}
		p, more := source.Position{}, true
		for n := 0; more; n++ {
			var err error
			if p, more, err = src.ReadSome(t.Context(), p, noon.Add(time.Hour), limit, collect(&got)); err != nil || n > 20 {
				t.Fatalf("step %d: %v", n, err)
			}
		}
		if diff := cmp.Diff(all, got); diff != "" || p != source.Upto(noon.Add(time.Hour)) {
			t.Errorf("%d at once, up to %v (-want +got)\n%s", limit, p, diff)
		}
	}
	got = nil
	if err := src.Read(t.Context(), source.Upto(noon), noon.Add(2*time.Millisecond), collect(&got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[2:7], got); diff != "" {
		t.Errorf("of a time (-want +got)\n%s", diff)
	}
	n, first, err := src.Count(t.Context(), at[3], noon.Add(time.Second))
	if n != 6 || !first.Equal(noon.Add(2*time.Millisecond)) || err != nil {
		t.Errorf("Count = %d, %v, %v", n, first, err)
	}
	found, err := src.Find(t.Context(), "acme", at[4])
	if err != nil || found == nil || source.After(found) != at[4] {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if found, err := src.Find(t.Context(), "other", at[4]); found != nil || err != nil {
		t.Errorf("Find of another tenant = %+v, %v", found, err)
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := src.Find(away, "acme", at[4]); found != nil || err == nil {
		t.Errorf("Find without an answer = %+v, %v", found, err)
	}

	// Someone changes a record in the database.
	chdbtest.Query(t, dir, "SET mutations_sync = 1")
	chdbtest.Query(t, dir, "ALTER TABLE audit.events UPDATE raw = replace(raw, '\"seq\":1', '\"seq\":7') WHERE session_id = 'b' AND seq = 1 SETTINGS mutations_sync = 1")
	got = nil
	if err := src.Read(t.Context(), source.Position{}, noon.Add(time.Hour), collect(&got)); err == nil {
		t.Errorf("a changed record was read: %q", got)
	}
	if found, err := src.Find(t.Context(), "", at[5]); found != nil || !errors.Is(err, source.ErrDamaged) {
		t.Errorf("Find of a changed record = %+v, %v", found, err)
	}
	for limit := 1; limit < 13; limit++ {
		var got, bad []string
		src.Unreadable = func(at source.Position, err error) error {
			bad = append(bad, fmt.Sprint(at.Session, " ", at.Seq))
			return nil
		}
		for p, more := (source.Position{}), true; more; {
			var err error
			if p, more, err = src.ReadSome(t.Context(), p, noon.Add(time.Hour), limit, collect(&got)); err != nil {
				t.Fatal(err)
			}
		}
		want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "b 1" })
		if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(bad, []string{"b 1"}) {
			t.Errorf("%d at once, unreadable %q (-want +got)\n%s", limit, bad, diff)
		}
	}
}

// TestReadPages reads large records: what is given at once is bounded by bytes.
func TestReadPages(t *testing.T) {
	s, _ := open(t)
	var rows []ingest.Row
	at := time.Now().Add(-time.Minute)
	for i := range 100 {
		r := ingesttest.Call(i, "x", at)
		r.Args = `{"x":"` + audit.JSON(strings.Repeat("y", 150_000)) + `"}`
		rows = append(rows, ingesttest.Row(t, r, ingest.Source{Topic: "t", Offset: uint64(i)}))
	}
	if err := s.InsertRows(t.Context(), rows, at); err != nil {
		t.Fatal(err)
	}
	n, stop := 0, errors.New("stop")
	err := source.Source{DB: s.DB()}.Read(t.Context(), source.Position{}, time.Now(), func(list []receiver.Record) error {
		if n += len(list); len(list) > 30 {
			t.Errorf("%d records at once", len(list))
		}
		if n > 70 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n > 100 {
		t.Errorf("%d records, %v", n, err)
	}
}

// TestSettled has the marks of runs hold back what is read.
func TestSettled(t *testing.T) {
	s, _ := open(t)
	now := time.Now().Truncate(time.Millisecond).UTC()
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	run := func(name string, upto, at int, closed bool) alert.Mark {
		return alert.Mark{Name: name, Kind: alert.MarkRun, Upto: ago(upto), At: ago(at), Closed: closed}
	}
	for _, tt := range []struct {
		name  string
		marks []alert.Mark
		alone int // seconds ago, without a run in this process
		in    int // in a run; -1: an error
		grace int
	}{
		{"none", nil, 0, -1, 0},
		{"one", []alert.Mark{run("1", 5, 4, false)}, 5, 5, 0},
		{"several", []alert.Mark{run("2", 2, 1, false)}, 5, 5, 0},
		{"old", []alert.Mark{run("1", 3, 3, true), run("0", 500, 400, false)}, 2, 500, 0},
		{"closed by another", []alert.Mark{run("0", 500, 3, true)}, 2, 500, 60},
		{"closed by another long ago", []alert.Mark{run("0", 500, 3, true)}, 2, 2, 1},
		{"closed by another whose clock was ahead", []alert.Mark{run("3", 200, -7200, true)}, 2, 2, 1},
		{"closed by such a one a moment ago", []alert.Mark{run("4", 100, -7200, true)}, 100, 100, 1},
		{"and opened again", []alert.Mark{run("4", 2, -7300, false)}, 2, 2, 1},
		{"which ends", []alert.Mark{run("4", -7400, -7400, true)}, 2, 2, 1},
		{"closed by itself", []alert.Mark{run("2", 1, 1, true)}, 0, -1, 1},
		{"of a rule", []alert.Mark{{Name: "r", Kind: alert.MarkRule, Upto: ago(900), At: ago(1)}}, 0, -1, 1},
	} {
		if err := s.SetMarks(t.Context(), tt.marks); err != nil {
			t.Fatal(err)
		}
		alone, err := source.Source{DB: s.DB()}.Settled(t.Context(), now)
		if err != nil || !alone.Equal(ago(tt.alone)) {
			t.Errorf("%s: alone %v, %v, want %v", tt.name, alone, err, ago(tt.alone))
		}
		in, err := source.Source{DB: s.DB(), Run: "x", Grace: time.Duration(tt.grace) * time.Second}.Settled(t.Context(), now)
		if (err != nil) != (tt.in < 0) || err == nil && !in.Equal(ago(tt.in)) {
			t.Errorf("%s: in a run %v, %v, want %v", tt.name, in, err, ago(tt.in))
		}
	}
}
