package evidence_test

import (
	"bytes"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"

	"golang.org/x/mod/sumdb/note"
)

// TestStandIn changes each byte of a short record in place of a refused one, and signs it
// with another key: it stands for nothing then.
func TestStandIn(t *testing.T) {
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	h, other := evidencetest.NewHost("build-7", began), evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 12})
	key := func(h *evidencetest.Host) note.Verifier {
		v, err := note.NewVerifier(h.Key)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for seq, line := range s.Lines {
		if leaf, ok := evidence.OpenStandIn(line, key(h)); ok {
			t.Errorf("record %d stands for %s, want it for nothing", seq, leaf)
		}
		short := s.Short(seq, h).Lines[seq]
		if leaf, ok := evidence.OpenStandIn(short, key(h)); !ok || leaf != evidence.Leaf(line) {
			t.Errorf("the short record %d stands for %s, %t, want the record's leaf: %s", seq, leaf, ok, short)
		}
		if again := s.Short(seq, h).Lines[seq]; !bytes.Equal(again, short) {
			t.Errorf("record %d: two short ones differ: %s\n%s", seq, short, again)
		}
		if leaf, ok := evidence.OpenStandIn(s.Short(seq, other).Lines[seq], key(h)); ok {
			t.Errorf("record %d by another host stands for %s", seq, leaf)
		}
	}
	short := s.Short(3, h).Lines[3]
	const crc = len(`,"crc":"00000000"}`)
	for i := range len(short) - crc {
		for _, to := range []byte{short[i] ^ 1, short[i] ^ 2, '"'} {
			changed := bytes.Clone(short)
			if changed[i] == to {
				continue
			}
			changed[i] = to
			changed = bytes.TrimSuffix(audit.Seal(append(changed[:len(changed)-crc], '}'), 0), []byte("\n"))
			if _, ok := evidence.OpenStandIn(changed, key(h)); ok {
				t.Fatalf("byte %d is %q and the record still stands for another: %s", i, to, changed)
			}
		}
	}
}
