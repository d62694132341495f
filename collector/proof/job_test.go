package proof_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/proof"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// sessions stores the records of sessions, which arrived at that time.
func (f *fixture) sessions(arrived time.Time, list ...*evidencetest.Session) {
	f.t.Helper()
	var rows []ingest.Row
	for _, s := range list {
		for _, line := range s.Lines {
			f.offset++
			rows = append(rows, ingesttest.RowOf(f.t, append(line[:len(line):len(line)], '\n'), ingest.Source{Topic: "t", Offset: f.offset}))
		}
	}
	if err := f.db.InsertRows(f.t.Context(), rows, arrived); err != nil {
		f.t.Fatal(err)
	}
}

// clear empties the tables.
func (f *fixture) clear() {
	for _, table := range []string{"events", "leaves", "session_states", "verifications", "erasures", "erased_sessions", "retention_log", "alert_marks"} {
		f.exec("TRUNCATE TABLE audit." + table)
	}
}

// TestJob verifies what arrived since it was verified, and what retention and
// erasures left.
func TestJob(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now().UTC().Truncate(time.Millisecond)
	h := evidencetest.NewHost("build-7", now.Add(-72*time.Hour))
	var all []*evidencetest.Session
	for range 6 {
		all = append(all, h.Session(evidencetest.Plan{Calls: 25}))
	}
	running := h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Running})
	long := now.Add(-time.Hour)
	f.sessions(long, append(all, running)...)
	job := proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Collector: "c", Trust: func([]string) ([]string, error) { return []string{h.Key}, nil }, Now: func() time.Time { return now }})
	once := func(want string) {
		t.Helper()
		found, err := job.Once(t.Context())
		if got := fmt.Sprint(found); err != nil || got != want {
			t.Errorf("found %s, %v, want %s", got, err, want)
		}
		now = now.Add(time.Minute)
	}
	once("map[incomplete:1 ok:6]")
	const stored = "SELECT state, count(), sum(records), sum(verified), any(host), any(collector), any(first_ts) > now() - INTERVAL 4 DAY FROM audit.verifications FINAL GROUP BY state ORDER BY state"
	f.want(stored, "incomplete\t1\t31\t23\tbuild-7\tc\t1", "ok\t6\t180\t180\tbuild-7\tc\t1")
	once("map[]")

	// Nothing of a session that goes on is looked for in vain.
	f.exec(fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE session_id = '%s' AND seq IN (5, 7) SETTINGS mutations_sync = 2", all[0].ID))
	f.exec(fmt.Sprintf("ALTER TABLE audit.events UPDATE user = 'x' WHERE session_id = '%s' AND seq = 3 SETTINGS mutations_sync = 2", all[1].ID))
	f.exec("TRUNCATE TABLE audit.verifications")
	once("map[incomplete:1 ok:4 tampered:2]")
	f.want("SELECT session_id, JSONExtractArrayRaw(findings)[1] LIKE '%\"what\":\"deleted\",\"seq\":5,\"to\":5%', length(JSONExtractArrayRaw(findings)) FROM audit.verifications WHERE state = 'tampered' ORDER BY session_id LIMIT 1", all[0].ID+"\t1\t2")
	f.want("SELECT findings LIKE '%columns that differ from the record: user%' FROM audit.verifications WHERE session_id = '"+all[1].ID+"'", "1")

	// What was there once stays, also after the session was found to be in order.
	f.sessions(now, &evidencetest.Session{ID: all[0].ID, Lines: all[0].Lines[5:8]})
	once("map[ok:1]")
	once("map[ok:1]") // more might have been on its way
	f.want("SELECT state FROM audit.verifications FINAL WHERE session_id = '"+all[0].ID+"' ORDER BY at", "tampered", "ok")
	once("map[]")

	// Removed and erased records are not missing.
	keep := func(session *evidencetest.Session, from, to int) {
		f.exec(fmt.Sprintf(`INSERT INTO audit.leaves (tenant, session_id, seq, hash, evidence, kept_at)
			SELECT tenant, session_id, seq, SHA256(concat(char(0), raw)), evidence, now() FROM audit.events WHERE session_id = '%s' AND seq >= %d AND seq < %d`, session.ID, from, to))
		f.exec(fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE session_id = '%s' AND seq >= %d AND seq < %d SETTINGS mutations_sync = 2", session.ID, from, to))
	}
	keep(all[2], 0, 15)  // its oldest ones
	keep(all[3], 0, 100) // all of it
	keep(all[4], 0, 100)
	f.exec("INSERT INTO audit.erasures (erasure_id, at, kind, value, who, done_at) VALUES ('0b0ce67c-9fd2-4f0a-a1ea-0ba9d1c0a7b1', now(), 'session', 'x', 'eve', now())")
	f.exec("INSERT INTO audit.erased_sessions (session_id, erasure_id, at) VALUES ('" + all[4].ID + "', '0b0ce67c-9fd2-4f0a-a1ea-0ba9d1c0a7b1', '2026-11-20 09:00:00')")
	f.exec("INSERT INTO audit.retention_log (table_name, cutoff, planned_at) VALUES ('events', now() - INTERVAL 70 HOUR, now())")
	f.exec("ALTER TABLE audit.events DELETE WHERE session_id = '" + all[1].ID + "' SETTINGS mutations_sync = 2")
	f.exec("ALTER TABLE audit.session_states DELETE WHERE session_id = '" + all[1].ID + "' SETTINGS mutations_sync = 2")
	src := proof.NewSource(db)
	checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: now})
	if err := src.Check(t.Context(), proof.Check{Now: now}, checker); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range checker.Finish().Results {
		got = append(got, fmt.Sprintf("%s %s %s", r.SessionID, r.State, r.Note))
	}
	want := []string{all[0].ID + " ok ", all[1].ID + " tampered ", all[2].ID + " ok ", all[4].ID + " erased 30 records: by eve on 2026-11-20", all[5].ID + " ok ", running.ID + " incomplete running, verified through 23 of 31"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("after retention and an erasure:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	f.exec("TRUNCATE TABLE audit.verifications")
	stranger, accused := evidencetest.NewHost("build-8", now.Add(-70*time.Hour)), all[5].Clone()
	accused.Lines[0] = all[0].Lines[0]
	stranger.Restore(accused)
	f.sessions(long, stranger.Session(evidencetest.Plan{Calls: 3})) // its key is not trusted
	stranger.Session(evidencetest.Plan{Calls: 3})                   // it never was
	f.sessions(long, stranger.Session(evidencetest.Plan{Calls: 3}))
	if err := job.Chains(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want("SELECT session_id, state, findings LIKE '%missing_session%' FROM audit.verifications", all[1].ID+"\ttampered\t1")

	// A log knows more than the tables.
	f.clear()
	f.sessions(long, all[5].Clone())
	f.exec(fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE session_id = '%s' AND seq > 20 SETTINGS mutations_sync = 2", all[5].ID))
	withLog := proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Now: func() time.Time { return now }, Trust: func([]string) ([]string, error) { return []string{h.Key}, nil },
		Known: func(_ context.Context, sessions []string) (proof.Known, error) {
			if !slices.Equal(sessions, []string{all[5].ID}) {
				t.Errorf("the log is asked for the sessions %q", sessions)
			}
			known := proof.Known{Size: 17, Starts: []evidence.Entry{all[5].Start()}}
			for _, signed := range all[5].Checkpoints() {
				known.Checkpoints = append(known.Checkpoints, verify.Checkpoint{Signed: signed, From: "the log"})
			}
			return known, nil
		}})
	if found, err := withLog.Once(t.Context()); err != nil || found[verify.Tampered] != 1 {
		t.Errorf("found %v, %v, want what the log knows", found, err)
	}
	f.want("SELECT findings LIKE '%truncated%', log_size FROM audit.verifications", "1\t17")
}

// TestTurns has two collectors verify: one of them does.
func TestTurns(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now()
	h := evidencetest.NewHost("build-7", now.Add(-72*time.Hour))
	for i, name := range []string{"a", "b", "a"} {
		f.sessions(now.Add(-time.Hour), h.Session(evidencetest.Plan{Calls: 2}))
		job := proof.NewJob(proof.JobConfig{DB: db, Every: 10 * time.Minute, Collector: name, Now: func() time.Time { return now }})
		if err := job.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			now = now.Add(11 * time.Minute)
		}
	}
	f.want("SELECT collector, count() FROM audit.verifications WHERE state = 'unknown_key' GROUP BY collector ORDER BY collector", "a\t3")
}

// TestTamperedLog verifies sessions without their starts, of which a producer can make as
// many as it likes: the log has some of them and the number of the others.
func TestTamperedLog(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now().UTC().Truncate(time.Millisecond)
	var rows []ingest.Row
	for i := range 150 {
		r := ingesttest.Call(6, "list_panes", now.Add(-time.Hour))
		r.SessionID, r.Seq = audit.NewID(r.TS), 5
		rows = append(rows, ingesttest.Row(t, r, ingest.Source{Topic: "t", Offset: uint64(i)}))
	}
	if err := db.InsertRows(t.Context(), rows, now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.ErrorLevel)
	job := proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Again: 1000, Collector: "c", Now: func() time.Time { return now }, Log: zap.New(core)})
	for range 3 { // the second turn ends the round, and the third verifies all again
		if err := job.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	f.want("SELECT uniqExact(session_id) FROM audit.verifications WHERE state = 'tampered'", "150")
	if n := logs.FilterMessage("records were tampered with").Len(); n != 200 {
		t.Errorf("in three turns the log has %d sessions, want 100 in the first and the last", n)
	}
	var others []int64
	for _, e := range logs.FilterMessage("records of more sessions were tampered with").All() {
		others = append(others, e.ContextMap()["verifications"].(int64))
	}
	if diff := cmp.Diff([]int64{200, 50}, others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}

// TestTurned has turns fail twice: since the first of them, and until one succeeds.
func TestTurned(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now().UTC().Truncate(time.Millisecond)
	began := now
	h := evidencetest.NewHost("build-7", now.Add(-72*time.Hour))
	f.sessions(now.Add(-time.Hour), h.Session(evidencetest.Plan{Calls: 2}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	// The clock advances between two turns only: Run is the only one to read it.
	job := proof.NewJob(proof.JobConfig{DB: db, Every: time.Millisecond, Collector: "c", Now: func() time.Time { return now },
		Trust: func([]string) ([]string, error) {
			if len(got) < 2 {
				return nil, errors.New("the trust file is away")
			}
			return []string{h.Key}, nil
		},
		Turned: func(_ context.Context, since time.Time, err error) {
			text := fmt.Sprint(err)
			if !since.IsZero() {
				text = fmt.Sprint(since.Sub(began), " ", err)
			}
			got = append(got, text)
			if now = now.Add(time.Minute); err == nil {
				cancel()
			}
		},
	})
	if err := job.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0s the trust file is away", "0s the trust file is away", "<nil>"}, got); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

// TestReverify changes records of sessions that were verified: the next rounds find
// it, a few sessions in each turn, also in another process.
func TestReverify(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now().UTC().Truncate(time.Millisecond)
	h := evidencetest.NewHost("build-7", now.Add(-30*24*time.Hour))
	var all []*evidencetest.Session
	for range 5 {
		all = append(all, h.Session(evidencetest.Plan{Calls: 10}))
	}
	f.sessions(now.Add(-20*24*time.Hour), all...)
	registry := prometheus.NewRegistry()
	newJob := func() *proof.Job {
		return proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Again: len(all[0].Lines) + 1, Collector: "c", Metrics: registry,
			Trust: func([]string) ([]string, error) { return []string{h.Key}, nil }, Now: func() time.Time { return now }})
	}
	job := newJob()
	turn := func(want string) {
		t.Helper()
		now = now.Add(time.Minute)
		if err := job.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.want("SELECT arraySort(groupArray((session_id, state))) FROM audit.verifications FINAL WHERE at = fromUnixTimestamp64Milli("+fmt.Sprint(now.UnixMilli())+")", want)
	}
	states := func(state string, of ...*evidencetest.Session) string {
		var list []string
		for _, s := range of {
			list = append(list, "('"+s.ID+"','"+state+"')")
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	turn(states("ok", all...)) // all are new, and two of them are checked again
	f.exec(fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE session_id = '%s' AND seq = 5 SETTINGS mutations_sync = 2", all[1].ID))
	f.exec(fmt.Sprintf("ALTER TABLE audit.events UPDATE user = 'x' WHERE session_id = '%s' AND seq = 3 SETTINGS mutations_sync = 2", all[4].ID))
	turn(states("ok", all[2], all[3]))
	registry = prometheus.NewRegistry()
	job = newJob()
	// Another process begins with the last session again.
	turn("[('" + all[3].ID + "','ok'),('" + all[4].ID + "','tampered')]")
	if got := metric(t, registry, "auditcollector_reverified_until_timestamp_seconds"); got != float64((proof.Session{ID: all[4].ID}).Started().Unix()) {
		t.Errorf("the metric says that it came to %v, want the start of the last session", got)
	}
	// That it is not known which ones are next is not the end of the round.
	f.exec("RENAME TABLE audit.session_states TO audit.away")
	now = now.Add(time.Minute)
	err := job.Turn(t.Context())
	if rounds := metric(t, registry, "auditcollector_reverification_rounds_total"); err == nil || rounds != 0 {
		t.Errorf("without the table of sessions: %v, and %v rounds", err, rounds)
	}
	f.exec("RENAME TABLE audit.away TO audit.session_states")
	turn("[]") // the round is over
	if got := metric(t, registry, "auditcollector_reverification_rounds_total"); got != 1 {
		t.Errorf("%v rounds, want 1", got)
	}
	now = now.Add(time.Minute)
	if err := job.Turn(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want("SELECT state FROM audit.verifications FINAL WHERE session_id = '"+all[1].ID+"' ORDER BY at DESC LIMIT 1", "tampered")
}

// metric is the value of a metric without labels.
func metric(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// damage changes the part that has a session's records, as a failing disk or an attacker
// may: the size of the last of the large blocks of compressed data.
func (f *fixture) damage(session string) {
	f.t.Helper()
	path := chdbtest.Query(f.t, f.dir, "SELECT path FROM system.parts WHERE active AND table = 'events' AND name = (SELECT any(_part) FROM audit.events WHERE session_id = '"+session+"')")[0]
	file := filepath.Join(path, "data.bin")
	b, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	// A block is its checksum of 16 bytes, a byte for the method, its size with these
	// nine bytes, its size when decompressed, and data.
	const header, checksum = 25, 16
	largest, at := uint32(0), 0
	for i := 0; i+header <= len(b); {
		if size := binary.LittleEndian.Uint32(b[i+21:]); size > largest/2 {
			largest, at = max(largest, size), i
		}
		i += checksum + int(binary.LittleEndian.Uint32(b[i+17:]))
	}
	// Of a byte that differs ClickHouse looks for the bit that was flipped: of a large
	// block for a minute.
	binary.LittleEndian.PutUint32(b[at+17:], math.MaxUint32)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// TestDamaged damages the files of a session that was not verified and of one that was:
// all others are verified, and both are named until they can be read.
func TestDamaged(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	now := time.Now().UTC().Truncate(time.Millisecond)
	h := evidencetest.NewHost("build-7", now.Add(-72*time.Hour))
	var all []*evidencetest.Session
	f.exec("SYSTEM STOP MERGES audit.events")
	for i := range 6 {
		calls := 10
		if i == 2 {
			calls = 5000 // thousands of its records are read before what is damaged
		}
		all = append(all, h.Session(evidencetest.Plan{Calls: calls}))
		f.sessions(now.Add(-time.Hour), all[len(all)-1])
	}
	job := proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Again: 100_000, Collector: "c",
		Trust: func([]string) ([]string, error) { return []string{h.Key}, nil }, Now: func() time.Time { return now }})
	turn := func(want string) {
		t.Helper()
		now = now.Add(time.Minute)
		err := job.Turn(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the turn is %v, want %s…", err, want)
		}
	}
	f.damage(all[2].ID)
	turn("of the sessions, 1 cannot be read; the first is " + all[2].ID + ": reading records to verify: ")
	f.want("SELECT state, count() FROM audit.verifications FINAL GROUP BY state", "ok\t5")
	f.damage(all[1].ID)
	turn("reading starts of sessions: ") // its turn to be verified again has not come
	turn("of the sessions, 2 cannot be read; the first is " + all[1].ID + ": reading records to verify: ")
	f.want("SELECT state, count() FROM audit.verifications FINAL GROUP BY state", "ok\t5")

	// One who verifies sees which they are.
	checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: now})
	if err := proof.NewSource(db).Check(t.Context(), proof.Check{Now: now}, checker); err != nil {
		t.Fatal(err)
	}
	report := checker.Finish()
	var got []string
	for _, r := range report.Results {
		got = append(got, string(r.State))
	}
	if diff := cmp.Diff([]string{"ok", "unreadable", "unreadable", "ok", "ok", "ok"}, got); diff != "" || report.Exit != verify.ExitUnclear {
		t.Errorf("exit %d, states (-want +got):\n%s", report.Exit, diff)
	}

	// They were restored from a backup.
	for _, s := range all[1:3] {
		f.exec(fmt.Sprintf("ALTER TABLE audit.events DROP PART '%s'", chdbtest.Query(t, dir, "SELECT any(_part) FROM audit.events WHERE session_id = '"+s.ID+"'")[0]))
		f.sessions(now.Add(-time.Hour), s)
	}
	now = now.Add(time.Minute)
	if err := job.Turn(t.Context()); err != nil {
		t.Error(err)
	}
	f.want("SELECT state, uniqExact(session_id) FROM audit.verifications FINAL GROUP BY state", "ok\t6")
}
