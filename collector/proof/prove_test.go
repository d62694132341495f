package proof_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/proof"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// TestProveInPieces proves records of a session that is read in pieces of any size, of
// which some records were removed and one came twice. The proofs are the same.
func TestProveInPieces(t *testing.T) {
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-3*time.Hour).Truncate(time.Second))
	s := h.Session(evidencetest.Plan{Calls: 60, Every: 8})
	var rows []ingest.Row
	for i, line := range append(s.Lines, s.Lines[20]) {
		rows = append(rows, ingesttest.RowOf(t, append(append([]byte(nil), line...), '\n'), ingest.Source{Topic: "t", Offset: uint64(i)}))
	}
	if err := db.InsertRows(t.Context(), rows, time.Now()); err != nil {
		t.Fatal(err)
	}
	f.exec("INSERT INTO audit.leaves (tenant, session_id, seq, hash, evidence, kept_at) SELECT tenant, session_id, seq, SHA256(concat(char(0), raw)), evidence, now64(3) FROM audit.events WHERE seq IN (5, 6, 31)")
	f.exec("ALTER TABLE audit.events DELETE WHERE seq IN (5, 6) SETTINGS mutations_sync = 2")
	trust, err := evidence.ParseTrust(evidencetest.Trust(h))
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int{1, 40} {
		r, err := audit.Parse(append([]byte(nil), s.Lines[seq]...))
		if err != nil {
			t.Fatal(err)
		}
		var whole string
		for _, size := range []int{0, 1, 7, 30} {
			src := proof.NewSource(db)
			src.Sizes.Rows = size
			p, err := src.Prove(t.Context(), uuid.MustParse(r.RecordID))
			if err != nil {
				t.Errorf("record %d in pieces of %d: %v", seq, size, err)
				continue
			}
			if v, err := p.Verify(trust); err != nil {
				t.Errorf("record %d in pieces of %d: %+v, %v", seq, size, v, err)
			}
			if whole == "" {
				whole = string(p.Text())
			}
			if diff := cmp.Diff(whole, string(p.Text())); diff != "" {
				t.Errorf("record %d in pieces of %d (-want +got):\n%s", seq, size, diff)
			}
		}
	}
}

// TestProveNothing proves no record of a session that is not whole as far as the
// checkpoint goes, however much of it is read together.
func TestProveNothing(t *testing.T) {
	edited := func(line []byte) []byte {
		r, err := audit.Parse(append([]byte(nil), line...))
		if err != nil {
			t.Fatal(err)
		}
		r.Tool = "other"
		return bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	}
	for _, tt := range []struct {
		name   string
		every  int // records, until a checkpoint
		change func(lines [][]byte) [][]byte
		want   string
	}{
		{"a record is missing", 20, func(lines [][]byte) [][]byte { return append(lines[:3:3], lines[4:]...) }, "record 3 of the session is missing or there twice"},
		{"all records of a row are missing", 800, func(lines [][]byte) [][]byte { return append(lines[:256:256], lines[512:]...) }, "record 256 of the session is missing"},
		{"two versions of a record", 20, func(lines [][]byte) [][]byte { return append(lines, edited(lines[3])) }, "record 3 of the session is missing or there twice"},
		{"the first record is missing", 20, func(lines [][]byte) [][]byte { return lines[1:] }, "the session's first record is not here"},
		{"an edited record", 20, func(lines [][]byte) [][]byte {
			return append(append(lines[:3:3], edited(lines[3])), lines[4:]...)
		}, "not those that were signed"},
		{"no checkpoint yet", 20, func(lines [][]byte) [][]byte { return lines[:12] }, evidence.ErrNotSigned.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, _ := open(t)
			s := evidencetest.NewHost("build-7", at).Session(evidencetest.Plan{Calls: tt.every + 10, Every: tt.every})
			var rows []ingest.Row
			for i, line := range tt.change(s.Lines) {
				rows = append(rows, ingesttest.RowOf(t, append(append([]byte(nil), line...), '\n'), ingest.Source{Topic: "t", Offset: uint64(i)}))
			}
			if err := db.InsertRows(t.Context(), rows, time.Now()); err != nil {
				t.Fatal(err)
			}
			r, err := audit.Parse(append([]byte(nil), s.Lines[9]...))
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{0, 1} {
				src := proof.NewSource(db)
				src.Sizes.Rows = size
				if p, err := src.Prove(t.Context(), uuid.MustParse(r.RecordID)); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("in pieces of %d: %v, %v, want %q", size, p, err, tt.want)
				}
			}
		})
	}
}
