package proof_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/proof"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"

	"github.com/google/go-cmp/cmp"
)

// TestMutations changes sessions in random places, and stores them as an attacker who
// can write the tables would. SOAK=1 takes 200 places for each change.
func TestMutations(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	src := proof.NewSource(db)
	places := 2
	if os.Getenv("SOAK") != "" {
		places = 200
	}
	began := time.Now().UTC().Add(-72 * time.Hour).Truncate(time.Second)
	arrived := time.Now().Add(-time.Hour)
	checks := 0
	check := func(t *testing.T, h *evidencetest.Host, all, list []*evidencetest.Session, kept [][]byte) verify.Report {
		t.Helper()
		if checks++; checks%25 == 0 {
			f.clear() // the engine of tests has little memory, and merges take some of it
		}
		var rows []ingest.Row
		var ids []string
		for _, s := range list {
			ids = append(ids, s.ID)
			for i, line := range s.Lines {
				whole := line
				if _, err := audit.Parse(line); err != nil { // raw of a row that was stored as it was written
					was := slices.IndexFunc(all, func(o *evidencetest.Session) bool { return o.ID == s.ID })
					whole = all[was].Lines[i]
				}
				f.offset++
				row := ingesttest.RowOf(t, append(bytes.Clone(whole), '\n'), ingest.Source{Topic: "t", Offset: f.offset})
				row.Raw = string(line)
				rows = append(rows, row)
			}
		}
		// Merges may take the memory.
		for err := db.InsertRows(t.Context(), rows, arrived); err != nil; err = db.InsertRows(t.Context(), rows, arrived) {
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
		}
		cfg := verify.Config{Hosts: []string{h.Key}, Now: time.Now()}
		for _, signed := range kept {
			cfg.Checkpoints = append(cfg.Checkpoints, verify.Checkpoint{Signed: signed, From: "elsewhere"})
		}
		checker := verify.New(cfg)
		if err := src.Check(t.Context(), proof.Check{Selection: proof.Selection{IDs: ids}, Now: time.Now()}, checker); err != nil {
			t.Fatal(err)
		}
		return checker.Finish()
	}
	fleet := func() (*evidencetest.Host, []*evidencetest.Session) {
		h := evidencetest.NewHost("build-7", began)
		var all []*evidencetest.Session
		for i := range 6 {
			all = append(all, h.Session(evidencetest.Plan{Calls: 25 + 3*i, End: []evidencetest.End{evidencetest.Ended, evidencetest.Recovered}[i%2]}))
		}
		return h, all
	}
	h, all := fleet()
	if r := check(t, h, all, all, nil); r.Exit != verify.ExitVerified {
		t.Fatalf("the unchanged sessions: %+v", r)
	}
	for _, m := range evidencetest.Mutations() {
		t.Run(m.Name, func(t *testing.T) {
			for range places {
				h, all := fleet()
				seed := rand.Uint64()
				list, change := m.Change(rand.New(rand.NewPCG(seed, 0)), all)
				report := check(t, h, all, list, change.Kept)
				if same(all, list) { // rows have no order of their own
					if report.Exit != verify.ExitVerified {
						t.Fatalf("seed %d: rows in another order are %+v", seed, report)
					}
					continue
				}
				if err := found(report, change); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
	for name, edit := range map[string]struct {
		sql  string // of a session's row
		want verify.What
	}{
		"a column":              {"UPDATE user = 'x'", verify.Edited},
		"the number":            {"UPDATE seq = seq + 1000", verify.Edited},
		"raw and its hash":      {"UPDATE raw = replace(raw, 'call', 'coll'), user = 'y'", verify.Edited},
		"raw is no record":      {"UPDATE raw = 'x'", verify.Edited},
		"the session":           {"UPDATE session_id = '019e8b1c-0000-7aaa-8bbb-0123456789ab'", verify.Deleted},
		"a row is deleted":      {"DELETE", verify.Deleted},
		"the evidence's column": {"UPDATE evidence = 'x'", verify.Edited},
	} {
		t.Run(name, func(t *testing.T) {
			for range places {
				h, all := fleet()
				if r := check(t, h, all, all, nil); r.Exit != verify.ExitVerified {
					t.Fatalf("the unchanged sessions: %+v", r)
				}
				s := all[rand.IntN(len(all))]
				at := rand.IntN(len(s.Lines) - 1)
				f.exec(fmt.Sprintf("ALTER TABLE audit.events %s WHERE session_id = '%s' AND seq = %d SETTINGS mutations_sync = 2", edit.sql, s.ID, at))
				checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now()})
				if err := src.Check(t.Context(), proof.Check{Selection: proof.Selection{ID: s.ID}, Now: time.Now()}, checker); err != nil {
					t.Fatal(err)
				}
				r := checker.Finish()
				ok := slices.ContainsFunc(r.Results, func(r verify.Result) bool {
					return slices.ContainsFunc(r.Findings, func(f verify.Finding) bool { return f.What == edit.want && f.Seq <= uint64(at) && f.To >= uint64(at) })
				})
				if r.Exit != verify.ExitTampered || !ok {
					t.Errorf("seq %d of %s: %+v, want that it is %s", at, s.ID, r, edit.want)
				}
			}
		})
	}
}

// TestPlantedRows stores copies of a row where a question by time or by the session's id
// may not look. The row beside them is in another session, whose records are all found too.
func TestPlantedRows(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-72*time.Hour).Truncate(time.Second))
	var last *evidencetest.Session
	records := 0
	for _, calls := range []int{5, 5, 25} { // each question for some rows costs 20 ms
		last = h.Session(evidencetest.Plan{Calls: calls})
		f.sessions(time.Now().Add(-time.Hour), last)
		records += len(last.Lines)
	}
	want := func(what string, exit int, states map[string]verify.State) {
		t.Helper()
		for _, sizes := range []proof.Sizes{{}, {Rows: 5, Sessions: 1, Page: 1}} {
			src := proof.NewSource(db)
			src.Sizes = sizes
			checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now()})
			if err := src.Check(t.Context(), proof.Check{Now: time.Now()}, checker); err != nil {
				t.Fatal(err)
			}
			r := checker.Finish()
			got := map[string]verify.State{}
			for _, one := range r.Results {
				if one.State != verify.OK {
					got[one.SessionID] = one.State
				}
			}
			if diff := cmp.Diff(states, got); r.Exit != exit || diff != "" || r.Hosts[len(r.Hosts)-1].Records != int64(records) {
				t.Errorf("%s, sizes %+v: exit %d, want %d, hosts %+v, states (-want +got):\n%s", what, sizes, r.Exit, exit, r.Hosts, diff)
			}
		}
	}
	want("untouched", verify.ExitVerified, map[string]verify.State{})
	for _, year := range []int{1900, 1969, 2110, 2260} {
		f.exec(fmt.Sprintf("INSERT INTO audit.events SELECT * REPLACE(toDateTime64('%d-01-01 00:00:00', 6, 'UTC') AS ts, 'eve' AS user) FROM audit.events WHERE session_id = '%s' AND seq = 7", year, last.ID))
		want(fmt.Sprint("a row of ", year), verify.ExitTampered, map[string]verify.State{last.ID: verify.Tampered})
		f.exec("DELETE FROM audit.events WHERE user = 'eve'")
	}
	f.exec("INSERT INTO audit.events SELECT * REPLACE('' AS session_id, generateUUIDv4() AS record_id) FROM audit.events WHERE seq = 7 LIMIT 1")
	want("a row of no session", verify.ExitTampered, map[string]verify.State{"": verify.Tampered})
}

// TestLeafWithoutReason deletes records and keeps their leaves, as retention and an
// erasure do and as an attacker who can write the tables could: without a reason in
// them, they are deleted.
func TestLeafWithoutReason(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-72*time.Hour).Truncate(time.Second))
	one, gone, all, last := h.Session(evidencetest.Plan{Calls: 25}), h.Session(evidencetest.Plan{Calls: 5}), h.Session(evidencetest.Plan{Calls: 5}), h.Session(evidencetest.Plan{Calls: 5})
	f.sessions(time.Now().Add(-time.Hour), one, gone, all, last)
	want := func(name string, exit int, removed int64, findings ...string) {
		t.Helper()
		for _, sizes := range []proof.Sizes{{}, {Rows: 5, Sessions: 1, Page: 1}} {
			src := proof.NewSource(db)
			src.Sizes = sizes
			checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now()})
			if err := src.Check(t.Context(), proof.Check{Now: time.Now()}, checker); err != nil {
				t.Fatal(err)
			}
			r := checker.Finish()
			var got []string
			for _, one := range r.Results {
				for _, f := range one.Findings {
					got = append(got, fmt.Sprintf("%s %s %d to %d", one.SessionID, f.What, f.Seq, f.To))
				}
			}
			if r.Exit != exit || !slices.Equal(got, findings) || len(r.Hosts) != 1 || r.Hosts[0].Removed != removed {
				t.Errorf("%s: exit %d, %q, hosts %+v, want %d, %q, %d removed", name, r.Exit, got, r.Hosts, exit, findings, removed)
			}
		}
	}
	keep := func(condition string) {
		f.exec("INSERT INTO audit.leaves (tenant, session_id, seq, hash, evidence, kept_at) SELECT tenant, session_id, seq, SHA256(concat(char(0), raw)), evidence, now64(3) FROM audit.events WHERE " + condition)
	}
	remove := func(condition string) { f.exec("DELETE FROM audit.events WHERE " + condition) }
	some := "session_id = '" + one.ID + "' AND seq IN (0, 7, 8, 14)"
	want("untouched", verify.ExitVerified, 0)
	keep(some)
	want("the leaves are kept", verify.ExitVerified, 0)
	remove(some)
	deleted := []string{one.ID + " deleted 0 to 0", one.ID + " deleted 7 to 8", one.ID + " deleted 14 to 14"}
	want("the records are deleted", verify.ExitTampered, 4, deleted...)
	whole := "session_id = '" + all.ID + "'"
	keep(whole)
	remove(whole)
	want("a session is deleted", verify.ExitTampered, 12, append(deleted, fmt.Sprintf("%s deleted 0 to %d", all.ID, len(all.Lines)-1))...)
	f.exec("INSERT INTO audit.erasures (erasure_id, at, kind, value, who, done_at) VALUES ('0b0ce67c-9fd2-4f0a-a1ea-0ba9d1c0a7b1', now(), 'session', '" + all.ID + "', 'eve', now())")
	f.exec("INSERT INTO audit.erased_sessions (session_id, erasure_id, at) VALUES ('" + all.ID + "', '0b0ce67c-9fd2-4f0a-a1ea-0ba9d1c0a7b1', now())")
	want("the session was erased", verify.ExitTampered, 4, deleted...)
	log := "INSERT INTO audit.retention_log (table_name, tenant, cutoff, partition, action, rule, row_count, planned_at, collector) VALUES ('%s', '%s', now() - INTERVAL %d HOUR, 'p', 'rows', 'retention.events', 4, now(), 'c')"
	f.exec(fmt.Sprintf(log, "alerts", "", 1))
	f.exec(fmt.Sprintf(log, "events", "", 100))
	want("retention removed older records", verify.ExitTampered, 4, deleted...)
	f.exec(fmt.Sprintf(log, "events", "acme", 1))
	want("retention removed records of another tenant", verify.ExitTampered, 4, deleted...)
	f.exec("INSERT INTO audit.leaves (tenant, session_id, seq, hash, evidence, kept_at) SELECT 'acme', session_id, seq, hash, evidence, kept_at FROM audit.leaves WHERE " + some)
	want("the leaves say that they are of the other tenant", verify.ExitTampered, 4, deleted...)
	f.exec(fmt.Sprintf(log, "events", "", 71))
	want("retention removed the records", verify.ExitVerified, 4)
	whole = "session_id = '" + gone.ID + "'"
	keep(whole)
	remove(whole)
	want("retention removed a session", verify.ExitVerified, 4+int64(len(gone.Lines)))
	f.exec("DELETE FROM audit.leaves WHERE " + whole)
	f.exec("INSERT INTO audit.leaves (session_id, seq, hash) VALUES ('" + gone.ID + "', 1000, repeat('x', 32))")
	want("any leaf is in its place", verify.ExitTampered, 4, gone.ID+" missing_session 2 to 2")
}

// TestWithoutColumn empties the column of the evidence, as it is where an older collector
// stored the records: whether they are signed, they say themselves. Of old sessions
// without evidence, retention keeps no leaves.
func TestWithoutColumn(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-72*time.Hour).Truncate(time.Second))
	untouched, deleted, forged, unsigned := h.Session(evidencetest.Plan{Calls: 25}), h.Session(evidencetest.Plan{Calls: 25}), h.Session(evidencetest.Plan{Calls: 25}), h.Session(evidencetest.Plan{Calls: 5}).Unsigned()
	changed := forged.Clone()
	r, err := audit.Parse(bytes.Clone(changed.Lines[20]))
	if err != nil {
		t.Fatal(err)
	}
	r.User = "eve"
	changed.Lines[20] = bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	changed.Lines = slices.Delete(changed.Lines, 3, 4)
	f.sessions(time.Now().Add(-time.Hour), untouched, deleted, changed, unsigned)
	f.exec("DELETE FROM audit.events WHERE session_id = '" + deleted.ID + "' AND seq = 7 OR session_id = '" + unsigned.ID + "' AND seq IN (0, 1, 3)")
	f.exec("ALTER TABLE audit.events UPDATE evidence = '' WHERE 1 SETTINGS mutations_sync = 2")
	f.exec("INSERT INTO audit.retention_log (table_name, cutoff, planned_at) VALUES ('events', now() - INTERVAL 71 HOUR, now())")
	checker := verify.New(verify.Config{Hosts: []string{h.Key}, Now: time.Now(), Partial: true})
	if err := proof.NewSource(db).Check(t.Context(), proof.Check{Now: time.Now()}, checker); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range checker.Finish().Results {
		text := fmt.Sprint(r.SessionID, " ", r.State)
		for _, found := range r.Findings {
			text += fmt.Sprintf(" %s %d-%d", found.What, found.Seq, found.To)
		}
		got = append(got, text)
	}
	want := []string{untouched.ID + " ok", deleted.ID + " tampered deleted 7-7", forged.ID + " tampered deleted 3-3", unsigned.ID + " incomplete"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

// same reports whether two copies have the same records, in any order and number.
func same(a, b []*evidencetest.Session) bool {
	lines := func(list []*evidencetest.Session) (all []string) {
		for _, s := range list {
			for _, line := range s.Lines {
				all = append(all, string(line))
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	return slices.Equal(lines(a), lines(b))
}

// found compares a report with the change that was made.
func found(r verify.Report, c evidencetest.Change) error {
	want := verify.ExitTampered
	if c.Unclear {
		want = verify.ExitUnclear
	}
	if r.Exit != want {
		return fmt.Errorf("the exit code is %d, want %d for %+v", r.Exit, want, c)
	}
	if c.Unclear {
		return nil
	}
	var seen []string
	for _, s := range r.Results {
		for _, f := range s.Findings {
			if s.SessionID == c.Session && slices.Contains(c.What, string(f.What)) && f.Seq >= c.From && f.To <= c.To {
				return nil
			}
			seen = append(seen, fmt.Sprintf("%s %s %d to %d", s.SessionID, f.What, f.Seq, f.To))
		}
	}
	return fmt.Errorf("found %s, want one of %q at %d to %d in %s", strings.Join(seen, "; "), c.What, c.From, c.To, c.Session)
}
