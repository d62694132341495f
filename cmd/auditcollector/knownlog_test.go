package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/translog"
	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"

	fnote "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

// writeLog makes a log with entries, and returns its directory and its verifier key.
func writeLog(t *testing.T, name string, entries ...[]byte) (dir, key string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	log, err := translog.Open(t.Context(), translog.Config{Dir: dir, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries { // one at a time, so that they are in this order
		if err := log.Add(t.Context(), [][]byte{e}); err != nil {
			t.Fatal(err)
		}
	}
	key = log.Status().Key
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, key
}

// TestKnownLog reads a log in which a session was written again, with the host's key:
// what it had of the first one is still compared. So it is where somebody added
// what nobody signed, as much as they want.
func TestKnownLog(t *testing.T) {
	t.Parallel()
	host := evidencetest.NewHost("h", time.Now())
	s := host.Session(evidencetest.Plan{Calls: 25})
	again := s.Clone()
	again.Lines = again.Lines[:12]
	again = again.RecoveredBy(host, 40)
	forged := s.ForgedBy(host)
	newest := func(s *evidencetest.Session) []byte { return s.Checkpoints()[len(s.Checkpoints())-1] }
	var planted [][]byte
	for i := range 20 {
		planted = append(planted, fmt.Appendf(nil, "%s\n0\n%s\n\n— x %s\n", s.Start().Origin, evidence.Hash{}, strings.Repeat(string(rune('A'+i)), 12)))
	}
	entries := slices.Concat(planted, [][]byte{s.Start().Bytes()}, s.Checkpoints(), [][]byte{forged.Start().Bytes()}, again.Checkpoints(), forged.Checkpoints())
	dir, key := writeLog(t, "auditproxy/log/c", entries...)
	k := known{trust: evidence.Trust{Logs: []string{key}}}
	if err := k.readLog(t.Context(), dir, part{}, nil, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for _, signed := range [][]byte{newest(s), newest(again), newest(forged)} {
		if !slices.ContainsFunc(k.Checkpoints, func(c verify.Checkpoint) bool { return bytes.Equal(c.Signed, signed) }) {
			t.Errorf("it has not the checkpoint %q", signed)
		}
	}
	if len(k.Checkpoints) != 3 || len(k.Starts) != 2 {
		t.Errorf("it has %d checkpoints and %d starts, want 3 and 2", len(k.Checkpoints), len(k.Starts))
	}

	// The kept checkpoint of another log says nothing of this one.
	other, otherKey := writeLog(t, "auditproxy/log/d", s.Start().Bytes())
	kept, err := os.ReadFile(filepath.Join(other, tiles.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	k = known{trust: evidence.Trust{Logs: []string{key, otherKey}}}
	err = k.readLog(t.Context(), dir, part{}, [][]byte{kept}, func(string) bool { return true })
	if err == nil || !strings.Contains(err.Error(), `it is of log "auditproxy/log/d"`) || len(k.rolledBack) > 0 {
		t.Errorf("with a checkpoint of another log: %v, %q", err, k.rolledBack)
	}
}

// TestOwnLog finds this collector's log also where its checkpoint was removed: a
// verification without it must not look like one with it.
func TestOwnLog(t *testing.T) {
	t.Parallel()
	local := t.TempDir()
	cfg := config{localDir: local, evidence: evidenceConfig{enabled: true}}
	if got := cfg.ownLog(); got != "" {
		t.Errorf("before the first start there is the log %q", got)
	}
	dir := filepath.Join(local, "log")
	log, err := translog.Open(t.Context(), translog.Config{Dir: dir, Name: "auditproxy/log/c"})
	if err == nil {
		err = log.Add(t.Context(), [][]byte{[]byte("x")})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, tiles.CheckpointFile)); err != nil {
		t.Fatal(err)
	}
	if got := cfg.ownLog(); got != dir {
		t.Errorf("without its checkpoint the log is %q", got)
	}
	cfg.evidence.enabled = false
	if got := cfg.ownLog(); got != "" {
		t.Errorf("without evidence the log is %q", got)
	}
}

// TestTrustWithoutLog has trust files that ask for a log, and none.
func TestTrustWithoutLog(t *testing.T) {
	host := evidencetest.NewHost("h", time.Now())
	trust := filepath.Join(t.TempDir(), "trust")
	for line, want := range map[string]string{
		"witness " + evidencetest.NewHost("w", time.Now()).Key + "\nquorum 1\n": "the trust file has quorum 1, and there is no log",
		"log " + evidencetest.NewHost("l", time.Now()).Key:                      "the trust file has the key of a log, and there is no log",
	} {
		if err := os.WriteFile(trust, []byte(evidencetest.Trust(host)+line), 0o600); err != nil {
			t.Fatal(err)
		}
		var a app
		_, err := a.compareWith(t.Context(), config{localDir: t.TempDir(), evidence: evidenceConfig{enabled: true}}, verifyOptions{trust: trust})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestTrustedLog compares with this collector's own log: the key next to it counts only
// where the trust file names no log.
func TestTrustedLog(t *testing.T) {
	t.Parallel()
	host := evidencetest.NewHost("h", time.Now())
	own, key := writeLog(t, "auditproxy/log/c", host.Session(evidencetest.Plan{Calls: 3}).Start().Bytes())
	_, otherKey := writeLog(t, "auditproxy/log/c", []byte("x"))
	for name, tt := range map[string]struct{ trust, want string }{
		"no log":               {"", ""},
		"this log":             {"log " + key, ""},
		"another log":          {"log " + otherKey, "name its key in the trust file"},
		"another and this log": {"log " + otherKey + "\nlog " + key, ""},
	} {
		trust := filepath.Join(t.TempDir(), "trust")
		if err := os.WriteFile(trust, []byte(evidencetest.Trust(host)+tt.trust), 0o600); err != nil {
			t.Fatal(err)
		}
		var a app
		k, err := a.compareWith(t.Context(), config{evidence: evidenceConfig{enabled: true, log: own}}, verifyOptions{trust: trust})
		if got := fmt.Sprint(err); tt.want == "" && (err != nil || len(k.Starts) != 1) || !strings.Contains(got, tt.want) {
			t.Errorf("with %s in the trust file: %d starts, %v", name, len(k.Starts), err)
		}
	}
}

// TestChangedLogCheckpoint has a log whose checkpoint is not one that it signed.
func TestChangedLogCheckpoint(t *testing.T) {
	t.Parallel()
	host := evidencetest.NewHost("h", time.Now())
	own, key := writeLog(t, "auditproxy/log/c", host.Session(evidencetest.Plan{Calls: 3}).Start().Bytes())
	trust := filepath.Join(t.TempDir(), "trust")
	if err := os.WriteFile(trust, []byte(evidencetest.Trust(host)+"log "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(own, tiles.CheckpointFile)
	signed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"empty":            "",
		"carriage returns": strings.ReplaceAll(string(signed), "\n", "\r\n"),
		"another size":     strings.Replace(string(signed), "\n1\n", "\n2\n", 1),
		"a server's page":  "<html>not found</html>\n",
	} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var a app
		_, err := a.compareWith(t.Context(), config{evidence: evidenceConfig{enabled: true, log: own}}, verifyOptions{trust: trust})
		if err == nil || !strings.Contains(err.Error(), own) || !strings.Contains(err.Error(), "its checkpoint is damaged, or was changed") || strings.Contains(err.Error(), "name its key") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// cosign returns a log's checkpoint with the signature of a new witness, and its key.
func cosign(t *testing.T, signed []byte, log string) (cosigned []byte, witness string) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, "witness.example")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := fnote.NewSignerForCosignatureV1(private)
	if err != nil {
		t.Fatal(err)
	}
	if witness, err = fnote.VKeyToCosignatureV1(public); err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(log)
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err == nil {
		cosigned, err = note.Sign(n, signer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cosigned, witness
}

// TestMailedCheckpoint compares a log that witnesses have signed with checkpoints of it
// that were mailed, which no witness has signed.
func TestMailedCheckpoint(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	write := func(entries ...string) (dir string, checkpoints [][]byte, verifier string) {
		dir = filepath.Join(t.TempDir(), "log")
		for _, e := range entries {
			log, err := translog.Open(t.Context(), translog.Config{Dir: dir, Key: key, Last: dir + ".last", Name: "auditproxy/log/c"})
			if err == nil {
				err = log.Add(t.Context(), [][]byte{[]byte(e)})
			}
			if err != nil {
				t.Fatal(err)
			}
			verifier = log.Status().Key
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			signed, err := os.ReadFile(filepath.Join(dir, tiles.CheckpointFile))
			if err != nil {
				t.Fatal(err)
			}
			checkpoints = append(checkpoints, signed)
		}
		return dir, checkpoints, verifier
	}
	dir, own, verifier := write("a", "b", "c")
	_, other, _ := write("a", "x", "c", "d")
	witnessed, witness := cosign(t, own[1], verifier)
	forked, forkedBy := cosign(t, other[1], verifier)
	for _, tt := range []struct {
		name              string
		newest, witnessed []byte
		mailed            []byte
		want              string // how the log contradicts what was kept; "": it does not
	}{
		{"as old as what witnesses signed", own[2], witnessed, own[1], ""},
		{"older", own[2], witnessed, own[0], ""},
		{"newer", own[2], witnessed, own[2], ""},
		{"newer than the log", own[2], witnessed, other[3], "is rolled back: it has 3 entries, and had 4"},
		{"of another history", own[2], witnessed, other[1], "was rewritten: its first 2 entries"},
		{"newer, and of another history", own[2], witnessed, other[2], "was rewritten: its first 3 entries"},
		{"and the newest checkpoint is older", own[0], witnessed, own[1], ""},
		{"and witnesses signed another history", own[2], forked, own[2], "was rewritten: its first 2 entries"},
	} {
		for name, b := range map[string][]byte{tiles.CheckpointFile: tt.newest, tiles.WitnessedFile: tt.witnessed} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := known{trust: evidence.Trust{Logs: []string{verifier}, Witnesses: []string{witness, forkedBy}, Quorum: 1}}
		err := k.readLog(t.Context(), dir, part{}, [][]byte{tt.mailed}, func(string) bool { return true })
		if got := strings.Join(k.rolledBack, ", "); err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || k.log.Size != 2 || k.log.At.IsZero() {
			t.Errorf("%s: %v, %q, want %q", tt.name, err, got, tt.want)
		}
	}
	// The log itself needs the witness.
	if err := os.WriteFile(filepath.Join(dir, tiles.WitnessedFile), own[2], 0o600); err != nil {
		t.Fatal(err)
	}
	k := known{trust: evidence.Trust{Logs: []string{verifier}, Witnesses: []string{witness}, Quorum: 1}}
	for _, want := range []string{"0 of 1 have, the quorum is 1", "no checkpoint of it has the signatures of a quorum yet"} {
		err := k.readLog(t.Context(), dir, part{}, [][]byte{own[1]}, func(string) bool { return true })
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("without a witness: %v, want %q", err, want)
		}
		os.Remove(filepath.Join(dir, tiles.WitnessedFile))
	}
}

// TestPartOfLog reads a part of a log: the newest entries, and those of an old session.
func TestPartOfLog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	id := func(i int) string { return audit.NewID(at.Add(time.Duration(i) * time.Hour)) }
	var entries [][]byte
	var ids []string
	const n = 60 * 256
	for i := range n {
		ids = append(ids, id(i))
		origin := evidence.Origin("h", ids[i])
		if i%5 == 0 { // an entry of another origin
			origin = evidence.Origin("h", "ffffffff-ffff-7fff-bfff-ffffffffffff")
		}
		entries = append(entries, evidence.Entry{Origin: origin, HostKey: "k", HostSeq: 1, Leaf: evidence.Leaf(fmt.Append(nil, i))}.Bytes())
	}
	dir := filepath.Join(t.TempDir(), "log")
	log, err := translog.Open(t.Context(), translog.Config{Dir: dir, Name: "auditproxy/log/c"})
	for bundle := range slices.Chunk(entries, 256) { // so that bundles are in order
		if err == nil {
			err = log.Add(t.Context(), bundle)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	k := known{trust: evidence.Trust{Logs: []string{log.Status().Key}}}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		part   part
		there  []int // the starts of sessions that it reads
		absent []int
	}{
		{"all", part{}, []int{1, n/2 + 1, n - 1}, nil},
		{"the newest", part{most: 256}, []int{n - 1, n - 256}, []int{1, n/2 + 1, n - 257}},
		{"the first one too", part{most: 4096, oldest: ids[1]}, []int{1, 256, n - 1}, nil},
		{"an old one too", part{most: (before + 2) * 256, oldest: ids[30*256+2]}, []int{30*256 - 1, 30*256 + 2, n - 1}, []int{1, 257}},
		{"one that is older than all", part{most: 512, oldest: "01900000-0000-7000-8000-000000000000"}, []int{1, n - 1}, []int{1023}},
		{"more than there is", part{most: 2 * n, oldest: ids[1]}, []int{1, n - 1}, nil},
	} {
		k.Starts, k.rolledBack = nil, nil
		seen := map[string]int{}
		if err := k.readLog(t.Context(), dir, tt.part, nil, func(id string) bool { seen[id]++; return true }); err != nil || len(k.rolledBack) > 0 {
			t.Fatalf("%s: %v, %q", tt.name, err, k.rolledBack)
		}
		for _, i := range tt.there {
			if seen[ids[i]] != 1 {
				t.Errorf("%s: session %d was read %d times", tt.name, i, seen[ids[i]])
			}
		}
		for _, i := range tt.absent {
			if seen[ids[i]] != 0 {
				t.Errorf("%s: session %d was read", tt.name, i)
			}
		}
	}
}
