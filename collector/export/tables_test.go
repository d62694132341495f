package export_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/export"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/collector/store/storetest"
	"auditproxy/sink/clickhouse"

	"github.com/google/go-cmp/cmp"
)

// open starts ClickHouse's engine with tables.
func open(t testing.TB) (*store.Store, export.Tables) {
	t.Helper()
	s, _ := storetest.Open(t, clickhouse.Retention{})
	return s, export.Tables{Source: source.Source{DB: s.DB(), Run: "run"}}
}

// insert stores calls that arrive at a time.
func insert(t testing.TB, s *store.Store, at time.Time, from, to int) (rows []ingest.Row) {
	t.Helper()
	for i := from; i < to; i++ {
		rows = append(rows, ingesttest.Row(t, ingesttest.Call(i, "x", time.Now().Truncate(time.Hour)), ingest.Source{Topic: "t", Offset: uint64(i)}))
	}
	if err := s.InsertRows(t.Context(), rows, at); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTables(t *testing.T) {
	s, tables := open(t)
	ctx := t.Context()
	now := time.Now().Truncate(time.Millisecond).UTC()
	rows := insert(t, s, now, 0, 10)

	for _, tt := range []struct {
		after, upto time.Time
		want        bool
	}{
		{time.Time{}, now.Add(-time.Hour), true}, {now.Add(-time.Second), now, true}, {now, now.Add(time.Hour), false},
		{now.Add(-time.Hour), now.Add(-time.Second), false}, {now, now, false},
	} {
		if n, err := tables.News(ctx, tt.after, tt.upto); err != nil || n.Records != tt.want || n.Late != 0 || n.Asked != 0 {
			t.Errorf("News(%v, %v) = %+v, %v", tt.after, tt.upto, n, err)
		}
	}

	mark := export.Mark{Receiver: "r", Format: "ocsf", Since: now, Position: source.Position{Arrived: now, Session: "s'", Seq: 1 << 63, Hash: rows[1].Hash},
		Owner: "a b", Sent: 7, Failing: now, Error: `x'\`, At: now}
	other := export.Mark{Receiver: "q", Position: source.Position{Arrived: time.Unix(0, 0).UTC()}, Since: time.Unix(0, 0).UTC(), At: now}
	older := mark
	older.At, older.Owner = now.Add(-time.Millisecond), "older"
	for _, m := range []export.Mark{mark, older, other} {
		if err := tables.SetMarks(ctx, []export.Mark{m}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tables.Marks(ctx)
	if diff := cmp.Diff([]export.Mark{other, mark}, got); diff != "" || err != nil {
		t.Errorf("Marks: %v (-want +got)\n%s", err, diff)
	}

	for _, id := range []string{"1", "2", "1"} {
		if err := s.InsertLate(ctx, id, now, now, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.InsertLate(ctx, "3", now, now.Add(48*time.Hour), now); err != nil {
		t.Fatal(err)
	}
	// As older versions do.
	if err := tables.DB.Conn().Exec(ctx, "INSERT INTO "+tables.DB.Name()+".export_late (id, receiver, arrived, at) VALUES ('0', '', fromUnixTimestamp64Milli(?, 'UTC'), now()), ('0', 'q', fromUnixTimestamp64Milli(?, 'UTC'), now())", now.UnixMilli(), now.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	late, err := tables.Late(ctx, "r")
	want := []export.Late{{ID: "0", From: now, Upto: now}, {ID: "1", From: now, Upto: now}, {ID: "2", From: now, Upto: now}, {ID: "3", From: now, Upto: now.Add(48 * time.Hour)}}
	if diff := cmp.Diff(want, late); diff != "" || err != nil {
		t.Errorf("Late: %v (-want +got)\n%s", err, diff)
	}
	sent := slices.Clone(want)
	sent[0].Sent, sent[1].Sent, sent[3].Sent = now, now, now.Add(time.Hour)
	if err := tables.LateSent(ctx, "r", []export.Late{sent[0], sent[1], sent[3]}, now); err != nil {
		t.Fatal(err)
	}
	late, err = tables.Late(ctx, "r")
	if diff := cmp.Diff(sent[2:], late); diff != "" || err != nil {
		t.Errorf("Late, after some was sent: %v (-want +got)\n%s", err, diff)
	}
	late, err = tables.Late(ctx, "q")
	if diff := cmp.Diff(want[1:], late); diff != "" || err != nil {
		t.Errorf("Late, of another receiver: %v (-want +got)\n%s", err, diff)
	}
	sent[3].Sent = sent[3].Upto
	if err := tables.LateSent(ctx, "r", []export.Late{sent[3]}, now); err != nil {
		t.Fatal(err)
	}
	if late, err := tables.Late(ctx, "r"); len(late) != 1 || err != nil {
		t.Errorf("Late = %v, %v after a period was over", late, err)
	}

	refuse := func(i int) export.Refused {
		r := rows[i]
		return export.Refused{Receiver: "r", Tenant: "acme", SessionID: r.Record.SessionID, Seq: r.Record.Seq, Hash: r.Hash, RecordID: r.Record.RecordID,
			Arrived: now, Reason: "too 'odd'", RefusedAt: now, At: now}
	}
	if err := tables.SetRefused(ctx, []export.Refused{refuse(3), refuse(4), refuse(5)}); err != nil {
		t.Fatal(err)
	}
	first, err := tables.RefusedBy(ctx, "r", nil, 1)
	if diff := cmp.Diff([]export.Refused{refuse(3)}, first); diff != "" || err != nil {
		t.Errorf("RefusedBy: %v (-want +got)\n%s", err, diff)
	}
	if rest, err := tables.RefusedBy(ctx, "r", &first[0], 10); len(rest) != 2 || rest[1].Seq != 5 || err != nil {
		t.Errorf("RefusedBy after the first = %+v, %v", rest, err)
	}
	found, err := tables.Find(ctx, first[0])
	if err != nil || found == nil || found.Record.RecordID != rows[3].Record.RecordID {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if n, err := tables.Ask(ctx, "r", rows[4].Record.RecordID, now.Add(time.Second)); n != 1 || err != nil {
		t.Errorf("Ask = %d, %v", n, err)
	}
	asked, err := tables.Asked(ctx, "r")
	if len(asked) != 1 || asked[0].Seq != 4 || err != nil {
		t.Fatalf("Asked = %+v, %v", asked, err)
	}
	if n, err := tables.News(ctx, now, now); n.Asked == 0 || n.Late < 4 || n.Late > 5 || err != nil {
		t.Errorf("News = %+v, %v", n, err)
	}
	asked[0].AskedAt, asked[0].SentAt, asked[0].At = time.Time{}, now, now.Add(2*time.Second)
	if err := tables.SetRefused(ctx, asked); err != nil {
		t.Fatal(err)
	}
	status, err := tables.Status(ctx, []string{"new"}, now.Add(time.Hour))
	if err != nil || len(status) != 3 {
		t.Fatalf("Status = %+v, %v", status, err)
	}
	if got := status[0]; got.Receiver != "new" || got.Known {
		t.Errorf("a receiver without a mark: %+v", got)
	}
	if got := status[1]; got.Receiver != "q" || got.Waiting != 10 || !got.First.Equal(now) || got.Refused != 0 {
		t.Errorf("a receiver that is behind: %+v", got)
	}
	if got := status[2]; !got.Known || got.Refused != 2 || got.Asked != 0 || got.Waiting != 0 {
		t.Errorf("a receiver that refused: %+v", got)
	}
	if n, err := tables.Ask(ctx, "r", "", now.Add(3*time.Second)); n != 2 || err != nil {
		t.Errorf("Ask for all = %d, %v", n, err)
	}
}

// TestRealStore sends what a real store has, while it grows, and after a restart.
func TestRealStore(t *testing.T) {
	s, tables := open(t)
	mark := func(closed bool) {
		now := time.Now()
		if err := s.SetMarks(t.Context(), []alert.Mark{{Name: "run", Kind: alert.MarkRun, Upto: now, At: now, Closed: closed}}); err != nil {
			t.Fatal(err)
		}
	}
	mark(false)
	insert(t, s, time.Now().Add(-time.Minute), 0, 1500)
	got := make(chan string, 10_000)
	to := &fakeReceiver{}
	to.answers(func(_ context.Context, records []receiver.Record) (bool, error) {
		for i := range records {
			got <- records[i].Record.RecordID
		}
		return true, nil
	})
	begin := func(run string) (stop func()) {
		return beginReal(t, export.Config{Store: tables, Run: run, Receivers: []export.Receiver{{Name: "r", To: to, Since: time.Now().Add(-time.Hour)}}})
	}
	stop := begin("one")
	ids := map[string]bool{}
	for len(ids) < 1500 {
		ids[<-got] = true
	}
	insert(t, s, time.Now(), 1500, 1600)
	mark(false)
	for len(ids) < 1600 {
		ids[<-got] = true
	}
	stop()
	insert(t, s, time.Now(), 1600, 1700)
	mark(false)
	stop = begin("two")
	for len(ids) < 1700 {
		ids[<-got] = true
	}
	stop()
	if len(got) > 0 {
		t.Errorf("%d records were sent twice, although both ends were orderly", len(got))
	}
	status, err := tables.Status(t.Context(), nil, time.Now())
	if err != nil || len(status) != 1 || status[0].Sent != 1700 || status[0].Owner != "" || status[0].Waiting != 0 {
		t.Errorf("Status = %+v, %v", status, err)
	}
}
