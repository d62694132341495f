package retention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/retention"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
)

// signed stores a record of a session, with evidence unless that is "". It returns
// the row of its leaf.
func (f *fixture) signed(session string, seq uint64, age time.Duration, tenant string, proof audit.JSON) string {
	f.t.Helper()
	r := signedOf(session, seq, age, tenant, proof)
	f.insert(r.TS, r)
	return f.leafOf(r)
}

// signedOf is such a record.
func signedOf(session string, seq uint64, age time.Duration, tenant string, proof audit.JSON) audit.Record {
	r := callOf(int(seq)+1, age, tenant, session)
	r.Evidence = proof
	return r
}

// leafOf returns the row of a record's leaf.
func (f *fixture) leafOf(r audit.Record) string {
	f.t.Helper()
	row := ingesttest.Row(f.t, r, ingest.Source{Topic: "t", Offset: f.offset})
	return fmt.Sprintf("%s\t%d\t%X\t%s", r.SessionID, r.Seq, [32]byte(evidence.Leaf([]byte(row.Raw))), r.Evidence)
}

const leaves = "SELECT session_id, seq, hex(hash), evidence FROM audit.leaves FINAL ORDER BY session_id, seq"

// testLeaves keeps the leaves of what it removes from sessions with evidence:
// with the partition, row by row, of a session whose evidence is in another
// partition than its records, of one whose evidence has no column, and of one with
// short records in place of refused ones.
func testLeaves(t *testing.T, f *fixture) {
	a, b, c := audit.NewID(time.Now()), audit.NewID(time.Now().Add(time.Minute)), audit.NewID(time.Now().Add(time.Hour))
	want := []string{
		f.signed(a, 0, 2100*day, "", `{"key":"k"}`),
		f.signed(a, 1, 2100*day, "", ""),
		f.signed(a, 2, 100*day, "", ""), // alone in its partition
		f.signed(b, 0, 101*day, "", ""), // its clock was wrong
	}
	f.signed(a, 3, time.Hour, "", `{"checkpoint":"c"}`)
	f.signed(b, 1, time.Hour, "", `{"key":"k"}`)
	f.signed(c, 0, 102*day, "", "") // without evidence
	f.signed(c, 1, time.Hour, "", "")
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-102*day))
	older := h.Session(evidencetest.Plan{Calls: 2})
	var rows []ingest.Row
	for seq, line := range older.Lines {
		row := ingesttest.RowOf(t, append(line[:len(line):len(line)], '\n'), ingest.Source{Topic: "older", Offset: uint64(seq)})
		rows = append(rows, row)
		want = append(want, fmt.Sprintf("%s\t%d\t%X\t%s", older.ID, seq, [32]byte(evidence.Leaf(line)), row.Record.Evidence))
	}
	whole := h.Session(evidencetest.Plan{Calls: 2})
	for seq, line := range whole.Short(0, h).Short(1, h).Lines { // Kafka refused two of its records
		row := ingesttest.RowOf(t, append(line[:len(line):len(line)], '\n'), ingest.Source{Topic: "refused", Offset: uint64(seq)})
		rows = append(rows, row)
		if row.Record.Kind == audit.KindCall {
			row.Record.Evidence = ""
		}
		want = append(want, fmt.Sprintf("%s\t%d\t%X\t%s", whole.ID, seq, [32]byte(evidence.Leaf(whole.Lines[seq])), row.Record.Evidence))
	}
	if err := f.db.InsertRows(t.Context(), rows, time.Now()); err != nil {
		t.Fatal(err)
	}
	f.exec("ALTER TABLE audit.events UPDATE evidence = '' WHERE session_id = '" + older.ID + "' SETTINGS mutations_sync = 2")
	slices.Sort(want)
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "3")
	f.want(leaves, want...)
	f.want("SELECT DISTINCT kept_at > now() - INTERVAL 1 HOUR FROM audit.leaves", "1")
	f.once(f.job())
	f.want(leaves, want...)
}

// testLeavesGo removes leaves when all of their session was removed, and that is
// as long ago as records are kept. The first stays, and those of erased sessions.
func testLeavesGo(t *testing.T, f *fixture) {
	gone, part, erased := audit.NewID(time.Now()), audit.NewID(time.Now().Add(time.Minute)), audit.NewID(time.Now().Add(time.Hour))
	var old, young []audit.Record
	for seq := range uint64(2) {
		for _, session := range []string{gone, part} {
			old = append(old, signedOf(session, seq, 100*day, "", `{"key":"k"}`))
		}
		young = append(young, signedOf(erased, seq, 20*day, "", `{"key":"k"}`))
	}
	f.insert(old[0].TS, old...)
	f.insert(young[0].TS, young...)
	f.signed(part, 2, time.Hour, "", "")
	f.once(f.job())
	f.erase(erasure(retention.HoldSession, erased))
	kept := "SELECT session_id, count() FROM audit.leaves FINAL GROUP BY session_id ORDER BY session_id"
	f.want(kept, gone+"\t2", part+"\t2", erased+"\t2")
	f.exec("ALTER TABLE audit.leaves UPDATE kept_at = now() - INTERVAL 40 DAY WHERE 1 SETTINGS mutations_sync = 2")
	f.once(f.job())
	f.want(kept, gone+"\t1", part+"\t2", erased+"\t2")
	f.want("SELECT seq FROM audit.leaves WHERE session_id = '"+gone+"'", "0")
}

// testEraseLeaves keeps the leaves of erased records with evidence, and only
// these.
func testEraseLeaves(t *testing.T, f *fixture) {
	a, b := audit.NewID(time.Now()), audit.NewID(time.Now().Add(time.Minute))
	want := []string{f.signed(a, 0, 2*day, "acme", `{"key":"k"}`), f.signed(a, 1, 2*day, "acme", "")}
	f.signed(b, 0, 2*day, "acme", "")
	f.exec(fmt.Sprintf("INSERT INTO audit.verifications (session_id, tenant, state, findings) VALUES ('%s', 'acme', 'ok', 'x')", a))
	for _, session := range []string{a, b} {
		f.erase(erasure(retention.HoldSession, session))
	}
	f.want("SELECT count() FROM audit.events", "0")
	f.want("SELECT count() FROM audit.verifications", "0")
	f.want(leaves, want...)
	f.signed(a, 1, time.Hour, "acme", "") // from a collector that does not know
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "0")
	f.want("SELECT uniqExact(seq) FROM audit.leaves", "2")
}
