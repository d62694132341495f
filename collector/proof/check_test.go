package proof_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/proof"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
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
