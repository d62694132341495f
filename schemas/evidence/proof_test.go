package evidence_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"

	fnote "github.com/transparency-dev/formats/note"
	fproof "github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/note"
)

func prove(t *testing.T, s *evidencetest.Session, seq uint64) *evidence.RecordProof {
	t.Helper()
	p := evidence.NewProver(seq)
	for _, line := range s.Lines {
		proof, err := p.Add(line)
		if err != nil {
			t.Fatal(err)
		}
		if proof != nil {
			return proof
		}
	}
	return nil
}

// TestProof proves each record of sessions, and reads the proofs again.
func TestProof(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Unix(1e9, 0))
	trust := evidence.Trust{Hosts: []string{h.Key}}
	h.Session(evidencetest.Plan{})
	for _, s := range []*evidencetest.Session{h.Session(evidencetest.Plan{Calls: 25}), h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Recovered}), h.Session(evidencetest.Plan{})} {
		for seq := range uint64(len(s.Lines)) {
			proof := prove(t, s, seq)
			if seq == uint64(len(s.Lines)-1) {
				if proof != nil {
					t.Error("the last checkpoint is covered by another one")
				}
				break
			}
			text := proof.Text()
			if over := len(text) - len(proof.Record) - len(proof.Start); over > 8<<10 {
				t.Errorf("the proof has %d bytes", over)
			}
			read, err := evidence.ParseProof(text)
			if err != nil {
				t.Fatal(err)
			}
			v, err := read.Verify(trust)
			if err != nil {
				t.Fatalf("seq %d: %v\n%s", seq, err, text)
			}
			if v.Record.Seq != seq || v.Record.SessionID != s.ID || v.Session.HostSeq != s.Start().HostSeq || v.Checkpoint.Size <= int64(seq) {
				t.Errorf("seq %d is proved as %+v", seq, v)
			}
			if _, err := read.Verify(evidence.Trust{}); !errors.Is(err, evidence.ErrUntrusted) {
				t.Errorf("without trust: %v", err)
			}
			// Both proofs are in C2SP's form.
			_, rest, _ := strings.Cut(string(text), string(proof.Record)+"\n")
			first, _, _ := strings.Cut(rest, "\nsession_start\n")
			var c2sp fproof.TLogProof
			if err := c2sp.Unmarshal([]byte(first)); err != nil || c2sp.Index != seq || len(c2sp.Hashes) != len(proof.RecordPath.Path) || !bytes.Equal(c2sp.Checkpoint, proof.Checkpoint) {
				t.Errorf("as a C2SP proof: %v, %+v", err, c2sp)
			}
		}
	}
}

// logged adds the proof that a session's checkpoint is in a log.
func logged(t *testing.T, p *evidence.RecordProof) evidence.Trust {
	t.Helper()
	log, key := newKey(t, "auditproxy/log/central")
	trust := evidence.Trust{Logs: []string{key}, Quorum: 2}
	signers := []note.Signer{log}
	for i := range 2 {
		private, public, err := note.GenerateKey(rand.Reader, fmt.Sprintf("witness%d.example", i))
		if err != nil {
			t.Fatal(err)
		}
		signer, err := fnote.NewSignerForCosignatureV1(private)
		if err != nil {
			t.Fatal(err)
		}
		vkey, err := fnote.VKeyToCosignatureV1(public)
		if err != nil {
			t.Fatal(err)
		}
		signers, trust.Witnesses = append(signers, signer), append(trust.Witnesses, vkey)
	}
	var tree evidence.Tree
	for i := range 11 {
		if i == 6 {
			tree.Prove(6)
			tree.Append(evidence.Leaf(p.Checkpoint))
			continue
		}
		tree.Append(evidence.Leaf(fmt.Append(nil, i)))
	}
	root, path := tree.Proof(6)
	signed, err := evidence.Checkpoint{Origin: "auditproxy/log/central", Size: 11, Root: root}.Sign(signers...)
	if err != nil {
		t.Fatal(err)
	}
	p.Log = &evidence.LogProof{Path: *path, Checkpoint: signed}
	return trust
}

// TestProofUnknownLog verifies a proof by those who do not trust its log, and before
// its witnesses have signed. It is never accepted, and wrong where what can be checked is.
func TestProofUnknownLog(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Unix(1e9, 0))
	h.Session(evidencetest.Plan{})
	proof := prove(t, h.Session(evidencetest.Plan{Calls: 25}), 13)
	all := logged(t, proof)
	_, sameName := newKey(t, "auditproxy/log/central")
	_, otherName := newKey(t, "auditproxy/log/other")
	hosts := []string{h.Key}
	const known, unknown, unwitnessed, refused = "the log is known", "the log is unknown", "too few witnesses", "refused"
	signature := func(name string) func(*evidence.LogProof) {
		return func(l *evidence.LogProof) {
			i := bytes.Index(l.Checkpoint, []byte("— "+name))
			i += bytes.IndexByte(l.Checkpoint[i:], '\n') - 10                              // behind the hash of the key
			l.Checkpoint[i] = map[bool]byte{true: 'C', false: 'B'}[l.Checkpoint[i] == 'B'] // still base64
		}
	}
	replace := func(old, new string) func(*evidence.LogProof) {
		return func(l *evidence.LogProof) {
			l.Checkpoint = bytes.Replace(l.Checkpoint, []byte(old), []byte(new), 1)
		}
	}
	for _, tt := range []struct {
		name   string
		trust  evidence.Trust
		change func(*evidence.LogProof)
		want   string
	}{
		{"the log is trusted", evidence.Trust{Hosts: hosts, Logs: all.Logs}, nil, known},
		{"hosts alone are trusted", evidence.Trust{Hosts: hosts}, nil, unknown},
		{"another log is trusted", evidence.Trust{Hosts: hosts, Logs: []string{otherName}}, nil, unknown},
		{"witnesses are trusted, and the log is not", evidence.Trust{Hosts: hosts, Witnesses: all.Witnesses, Quorum: 2}, nil, unknown},
		{"nothing is trusted", evidence.Trust{}, nil, unknown},
		{"a witness has not signed yet", evidence.Trust{Hosts: hosts, Logs: all.Logs, Witnesses: all.Witnesses, Quorum: 2}, replace("— witness1.example ", "— x.example "), unwitnessed},
		{"a log of the same name is trusted", evidence.Trust{Hosts: hosts, Logs: []string{sameName}}, nil, refused},
		{"the trusted log's signature is wrong", evidence.Trust{Hosts: hosts, Logs: all.Logs}, signature("auditproxy/log/central"), refused},
		{"a signature in the trusted log's name is for another log", evidence.Trust{Hosts: hosts, Logs: all.Logs}, replace("auditproxy/log/central\n", "auditproxy/log/other\n"), refused},
		{"the unknown log's signature cannot be checked", evidence.Trust{Hosts: hosts}, signature("auditproxy/log/central"), unknown},
		{"a trusted witness's signature is wrong", evidence.Trust{Hosts: hosts, Witnesses: all.Witnesses}, signature("witness1.example"), refused},
		{"no log has signed", evidence.Trust{Hosts: hosts}, replace("— auditproxy/log/central ", "— auditproxy/log/x "), refused},
		{"the path is wrong", evidence.Trust{Hosts: hosts}, func(l *evidence.LogProof) { l.Path.Index++ }, refused},
		{"the size is wrong", evidence.Trust{Hosts: hosts}, replace("\n11\n", "\n7\n"), refused},
		{"a witness has not signed, and the path is wrong", evidence.Trust{Hosts: hosts, Logs: all.Logs, Witnesses: all.Witnesses, Quorum: 3}, func(l *evidence.LogProof) { l.Path.Index++ }, refused},
	} {
		changed := *proof
		changed.Log = &evidence.LogProof{Path: proof.Log.Path, Checkpoint: bytes.Clone(proof.Log.Checkpoint)}
		if tt.change != nil {
			tt.change(changed.Log)
		}
		v, err := changed.Verify(tt.trust)
		got := refused
		switch {
		case err == nil:
			got = known
		case errors.Is(err, evidence.ErrUnknownLog), errors.Is(err, evidence.ErrUntrusted):
			got = unknown
		case errors.Is(err, evidence.ErrUnwitnessed):
			if got = unwitnessed; v.Record.Seq != 13 || v.LogCheckpoint == nil || v.Witnesses != 1 {
				t.Errorf("%s: %+v", tt.name, v)
			}
		}
		if got != tt.want || errors.Is(err, evidence.ErrUntrusted) != (len(tt.trust.Hosts) == 0) {
			t.Errorf("%s: %s, %v, want that %s", tt.name, got, err, tt.want)
		}
		if got == unknown && (v.UnknownLog != "auditproxy/log/central" || v.Record.Seq != 13 || v.LogCheckpoint != nil || v.Witnesses != 0) {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
	text := proof.Text()
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		if p, err := evidence.ParseProof(changed); err == nil {
			if _, err := p.Verify(evidence.Trust{Hosts: hosts, Logs: []string{otherName}}); err == nil {
				t.Errorf("byte %d is %q instead of %q, and the proof is accepted", i, changed[i], text[i])
			}
		}
	}
}

// TestProofOfOther has trees that a session's key has signed, and that no proxy
// writes: with records of another session or number, or without a session_start at
// their beginning. They prove nothing.
func TestProofOfOther(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Unix(1e9, 0))
	s, other := h.Session(evidencetest.Plan{Calls: 3}), h.Session(evidencetest.Plan{Calls: 3})
	first := func(change func(*audit.Record)) []byte {
		r, err := audit.Parse(s.Lines[0])
		if err != nil {
			t.Fatal(err)
		}
		change(&r)
		return bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	}
	for _, tt := range []struct {
		name   string
		lines  [][]byte
		start  int // the index of session_start
		record int
		proved bool
	}{
		{"its own", s.Lines[:3], 0, 1, true},
		{"of another session", [][]byte{s.Lines[0], other.Lines[1]}, 0, 1, false},
		{"of another number", [][]byte{s.Lines[0], s.Lines[2]}, 0, 1, false},
		{"before session_start", [][]byte{s.Lines[1], s.Lines[0], s.Lines[2]}, 1, 2, false},
		{"after another record", [][]byte{first(func(r *audit.Record) { r.Kind = audit.KindCall }), s.Lines[1]}, 0, 1, false},
		{"after a session_start that is not the first record", [][]byte{first(func(r *audit.Record) { r.Seq = 7 }), s.Lines[1]}, 0, 1, false},
	} {
		path := func(index int) evidence.Proof {
			var tree evidence.Tree
			for i, line := range tt.lines {
				if i == index {
					tree.Prove(int64(i))
				}
				tree.Append(evidence.Leaf(line))
			}
			_, proof := tree.Proof(int64(index))
			return *proof
		}
		p := evidence.RecordProof{Record: tt.lines[tt.record], RecordPath: path(tt.record), Checkpoint: s.Sign(tt.lines...), Start: tt.lines[tt.start], StartPath: path(tt.start)}
		read, err := evidence.ParseProof(p.Text())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read.Verify(evidence.Trust{Hosts: []string{h.Key}}); (err == nil) != tt.proved {
			t.Errorf("a record %s: %v", tt.name, err)
		}
	}
}

// TestProofChanged changes each byte of a proof.
func TestProofChanged(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Unix(1e9, 0))
	h.Session(evidencetest.Plan{})
	proof := prove(t, h.Session(evidencetest.Plan{Calls: 25}), 13)
	trust := logged(t, proof)
	trust.Hosts = []string{h.Key}
	text := proof.Text()
	accepted := func(text []byte) bool {
		p, err := evidence.ParseProof(text)
		if err != nil {
			return false
		}
		_, err = p.Verify(trust)
		return err == nil
	}
	if !accepted(text) {
		t.Fatalf("the proof is refused:\n%s", text)
	}
	if over := len(text) - len(proof.Record) - len(proof.Start); over > 8<<10 {
		t.Errorf("the proof has %d bytes", over)
	}
	if _, err := evidence.ParseProof(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))); err == nil || !strings.Contains(err.Error(), "also at the ends of its lines") {
		t.Errorf("with carriage returns: %v", err)
	}
	long := *proof
	long.RecordPath.Path = make([]evidence.Hash, 65) // more than any tree is high
	if p, err := evidence.ParseProof(long.Text()); err == nil {
		t.Errorf("a path of %d hashes is read", len(p.RecordPath.Path))
	}
	for i := range text {
		for bit := range 8 {
			changed := bytes.Clone(text)
			if changed[i] ^= 1 << bit; accepted(changed) {
				t.Errorf("byte %d is %q instead of %q, and the proof is accepted", i, changed[i], text[i])
			}
		}
		if accepted(append(bytes.Clone(text[:i]), text[i+1:]...)) {
			t.Errorf("byte %d, %q, is removed, and the proof is accepted", i, text[i])
		}
	}
	for _, more := range []string{"\n", "x", "\nlog\n"} {
		if accepted(append(bytes.Clone(text), more...)) {
			t.Errorf("with %q behind it the proof is accepted", more)
		}
	}
	// Without the log, of which the quorum must have signed a checkpoint.
	alone := *proof
	alone.Log = nil
	if v, err := alone.Verify(trust); !errors.Is(err, evidence.ErrUnwitnessed) || v.Record.Seq != 13 {
		t.Errorf("without the log: %+v, %v", v, err)
	}
	quorum := trust.Quorum
	if trust.Quorum = 0; !accepted(alone.Text()) {
		t.Error("without the log, and without a quorum, the proof is refused")
	}
	// The session's checkpoint is in the text twice.
	for i := range proof.Checkpoint {
		for bit := range 8 {
			changed := *proof
			changed.Checkpoint = bytes.Clone(proof.Checkpoint)
			changed.Checkpoint[i] ^= 1 << bit
			changed.Log = nil // which has its hash
			if accepted(changed.Text()) {
				t.Errorf("byte %d of the checkpoint is %q instead of %q, and the proof is accepted", i, changed.Checkpoint[i], proof.Checkpoint[i])
			}
		}
		for _, more := range []byte("\r\n =A") { // of which base64 has some that mean nothing
			changed := *proof
			changed.Checkpoint = slices.Insert(bytes.Clone(proof.Checkpoint), i, more)
			changed.Log = nil
			if accepted(changed.Text()) {
				t.Errorf("%q is before byte %d of the checkpoint, and the proof is accepted", more, i)
			}
		}
	}
	if forged := prove(t, h.Session(evidencetest.Plan{Calls: 25}).Forged(), 3); accepted(forged.Text()) {
		t.Error("the proof of a session without the host's signature is accepted")
	}
	trust.Quorum = quorum
	// What each part proves counts.
	other := prove(t, h.Session(evidencetest.Plan{Calls: 25}), 13)
	for name, change := range map[string]func(*evidence.RecordProof){
		"another record":        func(p *evidence.RecordProof) { p.Record = other.Record },
		"another session_start": func(p *evidence.RecordProof) { p.Start = other.Start },
		"another checkpoint":    func(p *evidence.RecordProof) { p.Checkpoint = other.Checkpoint },
		"another record's path": func(p *evidence.RecordProof) { p.RecordPath = p.StartPath },
		"no session_start":      func(p *evidence.RecordProof) { p.Start, p.StartPath = p.Record, p.RecordPath },
		"another log":           func(p *evidence.RecordProof) { logged(t, p) },
		"another entry's path":  func(p *evidence.RecordProof) { p.Log.Path.Index++ },
		"a log without witnesses": func(p *evidence.RecordProof) {
			p.Log.Checkpoint = p.Log.Checkpoint[:bytes.Index(p.Log.Checkpoint, []byte("— witness"))]
		},
	} {
		changed, copied := *proof, *proof.Log
		changed.Log = &copied
		change(&changed)
		if accepted(changed.Text()) {
			t.Errorf("%s: the proof is accepted", name)
		}
	}
}
