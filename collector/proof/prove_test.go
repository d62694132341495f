package proof_test

import (
	"bytes"
	"errors"
	"fmt"
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

// TestProveFromSubtrees proves records of a session of which verification stored the hashes
// of subtrees. What those cover need not be here. If one is wrong, the proof is made from
// the records.
func TestProveFromSubtrees(t *testing.T) {
	const width = evidence.SubtreeWidth
	db, dir := open(t)
	f := &fixture{t: t, db: db, dir: dir}
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-3*time.Hour).Truncate(time.Second))
	s := h.Session(evidencetest.Plan{Calls: 5*width + 100, Every: 1000})
	f.sessions(time.Now().Add(-time.Hour), s)
	trust, err := evidence.ParseTrust(evidencetest.Trust(h))
	if err != nil {
		t.Fatal(err)
	}
	prove := func(seq int) (string, error) {
		t.Helper()
		r, err := audit.Parse(bytes.Clone(s.Lines[seq]))
		if err != nil {
			t.Fatal(err)
		}
		p, err := proof.NewSource(db).Prove(t.Context(), uuid.MustParse(r.RecordID))
		if err != nil {
			return "", err
		}
		if _, err := p.Verify(trust); err != nil {
			t.Errorf("record %d: %v", seq, err)
		}
		return string(p.Text()), nil
	}
	places := []int{0, 1, width, 2*width + 5, 3*width - 1, 5*width + 50}
	want := map[int]string{}
	for _, seq := range places {
		if want[seq], err = prove(seq); err != nil {
			t.Fatal(err)
		}
	}
	compare := func(about string) {
		t.Helper()
		for _, seq := range places {
			got, err := prove(seq)
			if diff := cmp.Diff(want[seq], got); diff != "" || err != nil {
				t.Errorf("%s, record %d: %v (-want +got):\n%s", about, seq, err, diff)
			}
		}
	}
	job := proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Trust: func([]string) ([]string, error) { return []string{h.Key}, nil }})
	if found, err := job.Once(t.Context()); err != nil || found[verify.OK] != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	f.want("SELECT length(subtrees) FROM audit.verifications", "5")
	compare("stored")

	f.exec("INSERT INTO audit.verifications (tenant, session_id, state, at, subtrees) SELECT tenant, session_id, 'tampered', at, arrayMap((h, i) -> if(i = 2, unhex(repeat('11', 32)), h), subtrees, arrayEnumerate(subtrees)) || [unhex(repeat('22', 32))] FROM audit.verifications")
	f.want("SELECT max(length(subtrees)) FROM audit.verifications", "6")
	compare("a wrong one is stored too")
	f.exec("ALTER TABLE audit.verifications DELETE WHERE state = 'tampered' SETTINGS mutations_sync = 2")

	f.exec(fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE intDiv(seq, %d) = 1 AND seq != %d SETTINGS mutations_sync = 2", width, 2*width-1))
	places = []int{1, 2*width + 5, 3*width - 1, 5*width + 50} // of the third, the checkpoint is in the next subtree
	compare("some are not here")
	if text, err := prove(2*width - 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("record %d of the session is missing", width)) {
		t.Errorf("the records beside it are not here: %v, %s", err, text)
	}
}

// TestShortRecords verifies and proves records of a session of which Kafka refused two,
// before the whole ones are here and then.
func TestShortRecords(t *testing.T) {
	db, dir := open(t)
	h := evidencetest.NewHost("build-7", time.Now().UTC().Add(-3*time.Hour).Truncate(time.Second))
	s := h.Session(evidencetest.Plan{Calls: 60, Every: 8})
	offset := uint64(0)
	insert := func(lines ...[]byte) {
		t.Helper()
		var rows []ingest.Row
		for _, line := range lines {
			offset++
			rows = append(rows, ingesttest.RowOf(t, append(bytes.Clone(line), '\n'), ingest.Source{Topic: "t", Offset: offset}))
		}
		if err := db.InsertRows(t.Context(), rows, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	trust, err := evidence.ParseTrust(evidencetest.Trust(h))
	if err != nil {
		t.Fatal(err)
	}
	want := func(about string, state verify.State, proved ...int) {
		t.Helper()
		to := verify.New(verify.Config{Hosts: []string{h.Key}})
		if err := proof.NewSource(db).Check(t.Context(), proof.Check{Now: time.Now()}, to); err != nil {
			t.Fatal(err)
		}
		if got := to.Finish().Results[0]; got.State != state {
			t.Errorf("%s: %+v, want %s", about, got, state)
		}
		for _, seq := range []int{6, 20, 40} {
			r, err := audit.Parse(bytes.Clone(s.Lines[seq]))
			if err != nil {
				t.Fatal(err)
			}
			p, err := proof.NewSource(db).Prove(t.Context(), uuid.MustParse(r.RecordID))
			switch {
			case err == nil:
				if v, err := p.Verify(trust); err != nil {
					t.Errorf("%s, record %d: %+v, %v", about, seq, v, err)
				}
			case !errors.Is(err, proof.ErrShort):
				t.Errorf("%s, record %d: %v", about, seq, err)
			}
			if (err == nil) != slices.Contains(proved, seq) {
				t.Errorf("%s, record %d: %v, want it for others than %v", about, seq, err, proved)
			}
		}
	}
	insert(s.Short(6, h).Short(20, h).Lines...)
	want("two short records", verify.Incomplete, 40)
	job := proof.NewJob(proof.JobConfig{DB: db, Every: time.Minute, Trust: func([]string) ([]string, error) { return []string{h.Key}, nil }})
	if found, err := job.Once(t.Context()); err != nil || found[verify.Incomplete] != 1 {
		t.Errorf("found %v, %v", found, err)
	}
	f := &fixture{t: t, db: db, dir: dir}
	f.want("SELECT state, records - verified, JSONExtractString(findings, 1, 'detail') FROM audit.verifications",
		"incomplete\t2\tseq 6, and 1 other: Kafka refused the whole record, and its host signed the short one in its place")
	insert(s.Lines[20])
	want("one of the whole ones", verify.Incomplete, 20, 40)
	insert(s.Lines[6])
	want("both", verify.OK, 6, 20, 40)
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
		{"a checkpoint with a number far away", 20, func(lines [][]byte) [][]byte {
			for _, line := range lines[12:] {
				r, err := audit.Parse(bytes.Clone(line))
				if err == nil && r.Kind == audit.KindCheckpoint {
					r.Seq = 1 << 62
					return append(lines[:12:12], bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n")))
				}
			}
			return nil
		}, "record 12 of the session is missing"},
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
