package verify

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"golang.org/x/mod/sumdb/note"
)

// newSigner returns a new key, and its verifier.
func newSigner(t *testing.T, name string) (note.Signer, note.Verifier) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return s, verifierOf(public)
}

// TestSignedForAnotherSession: a host signs checkpoints of all its sessions.
func TestSignedForAnotherSession(t *testing.T) {
	host, key := newSigner(t, "auditproxy/h")
	_, other := newSigner(t, "auditproxy/h")
	b := &start{evidence: evidence.Session{Origin: "auditproxy/h/s"}}
	for origin, want := range map[string]bool{"auditproxy/h/s": true, "auditproxy/h/t": false} {
		text, err := evidence.Checkpoint{Origin: origin, Size: 3}.Sign(host)
		if err != nil {
			t.Fatal(err)
		}
		if b.signed(key, text) != want || b.signed(other, text) || b.signed(nil, text) {
			t.Errorf("a checkpoint of %s: signed %v, by another key %v, want %v and false", origin, b.signed(key, text), b.signed(other, text), want)
		}
	}
}

// TestHolds compares a record's checkpoint with one that is known from elsewhere.
func TestHolds(t *testing.T) {
	by, _ := newSigner(t, "auditproxy/h/s")
	sign := func(seconds int64) (audit.Record, []byte) {
		r := audit.Record{Kind: audit.KindCheckpoint, RecordID: "r", SessionID: "s", Seq: 3, TS: time.Unix(seconds, 0), Duration: -1}
		if err := (evidence.Checkpoint{Origin: "auditproxy/h/s", Size: 3}).SignRecord(&r, by); err != nil {
			t.Fatal(err)
		}
		signed, err := evidence.CheckpointOf(&r)
		if err != nil {
			t.Fatal(err)
		}
		return r, signed
	}
	r, own := sign(1)
	_, forked := sign(2)
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	for _, row := range []Row{{Line: line}, {Evidence: r.Evidence}} {
		if !holds(row, own) || !holds(row, append(bytes.Clone(own), "— witness AAAA\n"...)) {
			t.Error("the record has not the checkpoint that was signed in it")
		}
		if holds(row, forked) || holds(row, nil) || holds(Row{Line: []byte("{}")}, own) {
			t.Error("a record has the checkpoint that was signed in another one")
		}
	}
	if !holds(Row{}, own) {
		t.Error("a leaf alone contradicts a checkpoint")
	}
}
