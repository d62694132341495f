package proof_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/proof"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/google/go-cmp/cmp"
)

// TestArrivingMeanwhile stores records of a running session while it is verified, of
// which one query sees only the second: nothing was deleted. A record that is said to
// have arrived in the future excuses nothing.
func TestArrivingMeanwhile(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-3*time.Hour).Truncate(time.Second))
	s := h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Running})
	at := func(line []byte, ts time.Time) []byte {
		r, err := audit.Parse(bytes.Clone(line))
		if err != nil {
			t.Fatal(err)
		}
		r.TS = ts
		return bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	}
	before, err := audit.Parse(s.Lines[28])
	if err != nil {
		t.Fatal(err)
	}
	store := func(arrived time.Time, lines ...[]byte) {
		t.Helper()
		var rows []ingest.Row
		for _, line := range lines {
			f.offset++
			rows = append(rows, ingesttest.RowOf(t, append(bytes.Clone(line), '\n'), ingest.Source{Topic: "t", Offset: f.offset}))
		}
		if err := db.InsertRows(t.Context(), rows, arrived); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, begin func(proof.Session)) {
		t.Helper()
		src := proof.NewSource(db)
		src.Sizes.Rows = 3
		checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now()})
		if err := src.Check(t.Context(), proof.Check{Now: time.Now(), Begin: begin}, checker); err != nil {
			t.Fatal(err)
		}
		r := checker.Finish().Results[0]
		if got := fmt.Sprint(r.State, r.Findings, r.Note); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	store(time.Now().Add(-time.Hour), s.Lines[:29]...)
	// A call that took long has an earlier time than the one before it.
	check("incomplete[]records are on their way, verified through 23 of 30", func(proof.Session) {
		store(time.Now(), at(s.Lines[29], before.TS.Add(time.Minute)), at(s.Lines[30], before.TS))
	})
	f.clear()
	store(time.Now().Add(-time.Hour), append(append([][]byte{}, s.Lines[:26]...), s.Lines[27:]...)...)
	const deleted = "tampered[{deleted 26 26 seq 26 deleted after checkpoint 22}]"
	check(deleted, nil)
	store(time.Now().Add(50*time.Minute), s.Lines[5]) // another clock is ahead
	check("incomplete[]records are on their way, verified through 23 of 30", nil)
	store(time.Now().Add(240*time.Hour), s.Lines[6])
	check(deleted, nil)
}

// TestReadAgain closes the connection while a session is read: it is read again from
// its beginning, and nothing of it counts twice.
func TestReadAgain(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	var mu sync.Mutex // guards conns
	var conns []net.Conn
	cut, err := store.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Uncompressed: true, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := chdb.Dialer(dir, chdb.Writer)(ctx, addr)
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, conn)
		return conn, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Close()
	h := evidencetest.NewHost("build-7", at.Add(-time.Hour))
	short, long := h.Session(evidencetest.Plan{Calls: 2}), h.Session(evidencetest.Plan{Calls: 12_000})
	f.sessions(time.Now().Add(-time.Hour), short, long)
	var began []string
	checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now()})
	check := proof.Check{Now: time.Now(), Begin: func(s proof.Session) { began = append(began, s.ID) }, Progress: func(int) {
		if len(began) == 2 {
			mu.Lock()
			defer mu.Unlock()
			for _, conn := range conns {
				conn.Close()
			}
		}
	}}
	if err := proof.NewSource(cut.DB()).Check(t.Context(), check, checker); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{short.ID, long.ID, long.ID}, began); diff != "" {
		t.Errorf("sessions that were begun (-want +got):\n%s", diff)
	}
	for _, r := range checker.Finish().Results {
		if r.State != verify.OK {
			t.Errorf("session %s is %s: %s %v", r.SessionID, r.State, r.Note, r.Findings)
		}
	}
	if checker.Forgot() {
		t.Error("records were given to the checker twice")
	}
}

// TestManyDamaged damages a file with more sessions than one would be told one by one,
// between others: each of them is unreadable, and all others are verified.
func TestManyDamaged(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	f.exec("SYSTEM STOP MERGES audit.events")
	h := evidencetest.NewHost("build-7", at.Add(-72*time.Hour))
	want := map[verify.State]int{}
	var damaged *evidencetest.Session
	for _, n := range []int{3, 150, 3} {
		var list []*evidencetest.Session
		for range n {
			list = append(list, h.Session(evidencetest.Plan{Calls: 1}))
		}
		f.sessions(time.Now().Add(-time.Hour), list...)
		if n == 150 {
			damaged = list[0]
			want[verify.Unreadable] += n
		} else {
			want[verify.OK] += n
		}
	}
	f.damage(damaged.ID)
	checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now()})
	if err := proof.NewSource(db).Check(t.Context(), proof.Check{Now: time.Now()}, checker); err != nil {
		t.Fatal(err)
	}
	r := checker.Finish()
	got := map[verify.State]int{}
	for _, one := range r.Results {
		got[one.State]++
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Exit != verify.ExitUnclear {
		t.Errorf("exit %d, states (-want +got):\n%s", r.Exit, diff)
	}
}
