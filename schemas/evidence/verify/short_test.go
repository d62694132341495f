package verify_test

import (
	"slices"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
)

// TestShortRecords checks sessions with short records in place of those that Kafka
// refused: nothing is tampered with, and nothing is ok before the whole one is here. Who
// has not the host's key cannot write one.
func TestShortRecords(t *testing.T) {
	h, other := evidencetest.NewHost("build-7", began), evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 23})
	died := h.Session(evidencetest.Plan{Calls: 23, End: evidencetest.Recovered})
	long := h.Session(evidencetest.Plan{Calls: 3000, Every: 100})
	last := len(s.Lines) - 1
	after := func(of *evidencetest.Session, behind, seq int) func([]verify.Row) []verify.Row {
		return func(rows []verify.Row) []verify.Row {
			return slices.Insert(rows, behind, verify.Row{Line: of.Lines[seq]})
		}
	}
	for _, tt := range []struct {
		name    string
		session *evidencetest.Session
		rows    func([]verify.Row) []verify.Row
		state   verify.State
		note    string
		forgot  bool
	}{
		{name: "of a call", session: s.Short(7, h), state: verify.Incomplete, note: "seq 7: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "of several", session: s.Short(7, h).Short(8, h).Short(12, h), state: verify.Incomplete, note: "seq 7, and 2 others: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "of session_start", session: s.Short(0, h), state: verify.Incomplete, note: "seq 0: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "of a checkpoint", session: s.Short(11, h), state: verify.Incomplete, note: "seq 11: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "of the end", session: s.Short(last-1, h), state: verify.Incomplete, note: "seq 26: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "of the last checkpoint", session: s.Short(last, h), state: verify.Incomplete, note: "seq 27: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "of what recovery wrote", session: died.Short(len(died.Lines)-1, h), state: verify.Incomplete,
			note: "seq 29: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "by another key", session: s.Short(7, other), state: verify.Tampered},
		{name: "by a key that it brings", session: s.ForgedShort(7, other), state: verify.Tampered},
		{name: "of session_start, by another key", session: s.Short(0, other), state: verify.Tampered},
		{name: "the whole one behind it", session: s.Short(7, h), rows: after(s, 8, 7), state: verify.OK},
		{name: "the whole one before it", session: s.Short(7, h), rows: after(s, 7, 7), state: verify.OK},
		{name: "the whole one behind the next checkpoint", session: s.Short(7, h), rows: after(s, 15, 7), state: verify.OK},
		{name: "the whole one much later", session: long.Short(7, h), rows: after(long, 1500, 7), state: verify.Incomplete,
			note: "seq 7: Kafka refused the whole record, and its host signed the short one in its place", forgot: true},
		{name: "the whole one of another", session: s.Short(7, h).Short(8, h), rows: after(s, 8, 7), state: verify.Incomplete,
			note: "seq 8: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "another version of the whole one", session: s.Short(7, h), rows: func(rows []verify.Row) []verify.Row {
			return slices.Insert(rows, 8, verify.Row{Line: s.Short(7, other).Lines[7]})
		}, state: verify.Tampered},
		{name: "twice", session: s.Short(7, h), rows: after(s.Short(7, h), 8, 7), state: verify.Incomplete, note: "seq 7: Kafka refused the whole record, and its host signed the short one in its place"},
		{name: "its leaf alone", session: s.Short(7, h), rows: func(rows []verify.Row) []verify.Row {
			leaf, _ := evidence.OpenStandIn(rows[7].Line, nil)
			if leaf != (evidence.Hash{}) {
				t.Error("without a key, it stands for something")
			}
			rows[7] = verify.Row{Seq: 7, HasSeq: true, Leaf: evidence.Leaf(s.Lines[7]), Erased: "by alice on 2026-11-21"}
			return rows
		}, state: verify.Erased, note: "1 record: by alice on 2026-11-21"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := verify.New(verify.Config{Hosts: []string{h.Key}})
			v := c.Session(tt.session.ID, verify.About{})
			rows := rowsOf(tt.session)
			if tt.rows != nil {
				rows = tt.rows(rows)
			}
			for _, row := range rows {
				v.Add(row)
			}
			v.End()
			got := c.Finish().Results[0]
			if got.State != tt.state || tt.state != verify.Tampered && got.Note != tt.note || got.Unclear != (tt.state == verify.Incomplete) {
				t.Errorf("%s, %q, unclear %t, %+v; want %s, %q", got.State, got.Note, got.Unclear, got.Findings, tt.state, tt.note)
			}
			if c.Forgot() != tt.forgot {
				t.Errorf("forgot: %t, want %t", c.Forgot(), tt.forgot)
			}
		})
	}
	if r, err := audit.Parse(slices.Clone(s.Lines[11])); err != nil || r.Kind != audit.KindCheckpoint {
		t.Errorf("record 11 is a %s, want a checkpoint", r.Kind)
	}
}
