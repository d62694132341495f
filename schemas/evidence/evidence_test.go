package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"github.com/google/go-cmp/cmp"
	fnote "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// hashes are the stored hashes of a tree, as package tlog has them.
type hashes []tlog.Hash

func (h hashes) ReadHashes(at []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(at))
	for i, n := range at {
		list[i] = h[n]
	}
	return list, nil
}

// TestTree compares trees of every size up to 70, and the proof of every leaf in
// them, with those of package tlog.
func TestTree(t *testing.T) {
	var stored hashes
	var tree evidence.Tree
	for n := int64(0); n <= 70; n++ {
		want, err := tlog.TreeHash(n, stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Root(); got != want || tree.Size() != n {
			t.Fatalf("the tree of %d leaves has the hash %v and the size %d, want %v", n, got, tree.Size(), want)
		}
		for i := range n {
			want, err := tlog.ProveRecord(n, i, stored)
			if err != nil {
				t.Fatal(err)
			}
			var other evidence.Tree
			for leaf := range n {
				if leaf == i {
					other.Prove(i)
				}
				other.Append(evidence.Leaf(fmt.Append(nil, leaf)))
			}
			root, proof := other.Proof(i)
			if root != tree.Root() || !cmp.Equal(proof.Path, []tlog.Hash(want)) && n > 1 {
				t.Fatalf("proof of leaf %d of %d: %v, want %v", i, n, proof.Path, want)
			}
			if err := proof.Check(n, root, evidence.Leaf(fmt.Append(nil, i))); err != nil {
				t.Errorf("leaf %d of %d: %v", i, n, err)
			}
			if err := proof.Check(n, root, evidence.Leaf([]byte("another"))); err == nil {
				t.Errorf("leaf %d of %d: another leaf has the same proof", i, n)
			}
		}
		add, err := tlog.StoredHashes(n, fmt.Append(nil, n), stored)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, add...)
		tree.Append(evidence.Leaf(fmt.Append(nil, n)))
	}
	tree.Prove(99)
	if _, proof := tree.Proof(99); proof != nil {
		t.Errorf("a leaf that is not there has the proof %v", proof)
	}
}

// TestSubtrees makes trees of whole subtrees, and the proofs in them, and compares them
// with those of their leaves.
func TestSubtrees(t *testing.T) {
	const width = evidence.SubtreeWidth
	var leaves []evidence.Hash
	for n := range 6*width + 5 {
		leaves = append(leaves, evidence.Leaf(fmt.Append(nil, n)))
	}
	var whole evidence.Tree
	for n, leaf := range leaves {
		whole.Append(leaf)
		if got := len(whole.Subtrees()); got != (n+1)/width {
			t.Fatalf("%d leaves have %d subtrees", n+1, got)
		}
	}
	grown := whole.Clone()
	clone := grown.Clone()
	for n := range width {
		clone.Append(leaves[n])
	}
	alone := slices.Clone(clone.Subtrees())
	for n := range width {
		grown.Append(leaves[width+n])
	}
	if diff := cmp.Diff(alone, clone.Subtrees()); diff != "" || len(alone) != 7 || len(whole.Subtrees()) != 6 {
		t.Errorf("a tree of %d subtrees changes its clone of %d (-want +got):\n%s", len(whole.Subtrees()), len(alone), diff)
	}
	for i, index := range []int64{0, width - 1, width, 3*width + 77, 6*width - 1, 6*width + 4} {
		var tree, parts evidence.Tree
		for _, leaf := range leaves {
			if tree.Size() == index {
				tree.Prove(index)
			}
			tree.Append(leaf)
		}
		for parts.Size() < int64(len(leaves)) {
			at := parts.Size()
			switch n := at / width; {
			case at == index:
				parts.Prove(index)
				fallthrough
			case at%width != 0 || n == index/width || n == 6 || int(n) == i: // one more is made of its leaves
				parts.Append(leaves[at])
			default:
				parts.AppendSubtree(whole.Subtrees()[n])
			}
		}
		root, want := tree.Proof(index)
		other, got := parts.Proof(index)
		if other != root || parts.Size() != tree.Size() || !cmp.Equal(got.Path, want.Path) {
			t.Errorf("leaf %d: the tree of %d leaves made of subtrees has the root %v and the proof %v, want %v and %v", index, parts.Size(), other, got.Path, root, want.Path)
		}
		if diff := cmp.Diff(whole.Subtrees(), parts.Subtrees()); diff != "" {
			t.Errorf("leaf %d: subtrees (-want +got):\n%s", index, diff)
		}
	}
}

func newKey(t *testing.T, name string) (note.Signer, string) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

// TestSession changes each part of a session's evidence, which the host's
// signature covers.
func TestSession(t *testing.T) {
	host, hostKey := newKey(t, "auditproxy/build-7")
	_, key := newKey(t, evidence.Origin("build-7", "s2"))
	_, other := newKey(t, "other")
	whole := evidence.Session{Origin: "auditproxy/build-7/s2", Key: key, HostKey: hostKey, HostSeq: 2,
		Previous: &evidence.Previous{SessionID: "s1", Leaf: evidence.Leaf([]byte("{}"))}}
	if err := whole.Sign(host); err != nil {
		t.Fatal(err)
	}
	r := audit.Record{Kind: audit.KindSessionStart, SessionID: "s2", Evidence: whole.JSON()}
	read, err := evidence.ReadSession(&r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, read); diff != "" {
		t.Errorf("read again (-written +read):\n%s", diff)
	}
	if err := read.Verify(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*evidence.Session){
		"origin":      func(s *evidence.Session) { s.Origin = "auditproxy/build-8/s2" },
		"key":         func(s *evidence.Session) { s.Key = other },
		"no key":      func(s *evidence.Session) { s.Key = "" },
		"host key":    func(s *evidence.Session) { s.HostKey = other },
		"no host key": func(s *evidence.Session) { s.HostKey = "x" },
		"host key in two lines": func(s *evidence.Session) {
			s.HostKey = hostKey[:len(hostKey)-9] + "\n" + hostKey[len(hostKey)-9:]
			if err := s.Sign(host); err != nil {
				t.Fatal(err)
			}
		},
		"host_seq":         func(s *evidence.Session) { s.HostSeq++ },
		"previous session": func(s *evidence.Session) { s.Previous = &evidence.Previous{SessionID: "s0", Leaf: s.Previous.Leaf} },
		"previous leaf":    func(s *evidence.Session) { s.Previous = &evidence.Previous{SessionID: "s1"} },
		"first":            func(s *evidence.Session) { s.Previous = nil },
		"no signature":     func(s *evidence.Session) { s.HostSig = "" },
	} {
		changed := read
		change(&changed)
		if err := changed.Verify(); err == nil {
			t.Errorf("%s: the change was not found", name)
		}
	}
	r.SessionID = "s3"
	if _, err := evidence.ReadSession(&r); err == nil {
		t.Error("another session's evidence was accepted")
	}
	if _, err := evidence.ReadSession(&audit.Record{}); err != evidence.ErrUnsigned {
		t.Errorf("no evidence: %v, want ErrUnsigned", err)
	}
}

// TestOrigin makes names of keys from names of hosts.
func TestOrigin(t *testing.T) {
	for host, want := range map[string]string{
		"build-7":          "auditproxy/build-7/s",
		"a b+c/d\n\u2028e": "auditproxy/a_b_c_d__e/s",
		"\xff":             "auditproxy/_/s",
		"":                 "auditproxy/unknown/s",
	} {
		got := evidence.Origin(host, "s")
		if got != want {
			t.Errorf("origin of host %q is %q, want %q", host, got, want)
		}
		if id, ok := evidence.SessionOf(got); id != "s" || !ok {
			t.Errorf("session of %q is %q, %v", got, id, ok)
		}
		newKey(t, got)
	}
	for _, origin := range []string{"", "auditproxy/", "auditproxy/h", "auditproxy/h/", "auditproxy/h/s/t", "other/h/s"} {
		if id, ok := evidence.SessionOf(origin); ok {
			t.Errorf("session of %q is %q", origin, id)
		}
	}
}

// TestCheckpoint signs a checkpoint and reads it again, also from a record.
func TestCheckpoint(t *testing.T) {
	signer, key := newKey(t, "auditproxy/h/s")
	want := evidence.Checkpoint{Origin: "auditproxy/h/s", Size: 12, Root: evidence.Leaf([]byte("x"))}
	signed, err := want.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := note.NewVerifier(key)
	got, by, err := evidence.OpenCheckpoint(signed, note.VerifierList(v))
	if err != nil || got != want || len(by) != 1 {
		t.Errorf("opening: %v, %v, %v", got, by, err)
	}
	if got, err := evidence.ReadCheckpoint(signed); err != nil || got != want {
		t.Errorf("reading: %v, %v", got, err)
	}
	for _, bad := range []string{"", "x", "a\n1\n\n", strings.Replace(string(signed), "\n12\n", "\n012\n", 1), strings.Replace(string(signed), "\n12\n", "\n-1\n", 1), "a\n1\nAAAA\n\n— a b\n"} {
		if c, err := evidence.ReadCheckpoint([]byte(bad)); err == nil {
			t.Errorf("reading %q: %v", bad, c)
		}
	}
	body, _, _ := strings.Cut(string(signed), "\n\n")
	if want := "auditproxy/h/s\n12\n" + base64.StdEncoding.EncodeToString(want.Root[:]); body != want {
		t.Errorf("the text that is signed is %q, want %q", body, want)
	}
	for _, extension := range []string{"record \n", "record AAAA\n", "record " + strings.Repeat("A", 42) + "B=\n"} {
		if c, err := evidence.ReadCheckpoint([]byte(body + "\n" + extension + "\n— a b\n")); err == nil {
			t.Errorf("reading one with the line %q: %v", extension, c)
		}
	}
	long, err := note.Sign(&note.Note{Text: body + "\n" + strings.Repeat("x\n", 1<<15)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := evidence.OpenCheckpoint(long, note.VerifierList(v)); err == nil {
		t.Errorf("opening one of %d bytes", len(long))
	}
	if _, err := evidence.ReadCheckpoint(long); err == nil {
		t.Errorf("reading one of %d bytes", len(long))
	}
	if _, _, err := evidence.OpenCheckpoint([]byte(strings.Replace(string(signed), "\n12\n", "\n13\n", 1)), note.VerifierList(v)); err == nil {
		t.Error("another size has the same signature")
	}
}

// TestRecord signs a checkpoint in a record, and changes each byte of its line.
func TestRecord(t *testing.T) {
	signer, key := newKey(t, "auditproxy/h/s")
	v, _ := note.NewVerifier(key)
	r := audit.Record{Kind: audit.KindCheckpoint, RecordID: "r", SessionID: "s", Seq: 12, TS: time.Unix(1, 0), Duration: -1, Host: "h"}
	c := evidence.Checkpoint{Origin: "auditproxy/h/s", Size: 12, Root: evidence.Leaf([]byte("x"))}
	if err := c.SignRecord(&r, signer); err != nil {
		t.Fatal(err)
	}
	check := func(line []byte) error {
		read, err := audit.Parse(line)
		if err != nil {
			return err
		}
		signed, err := evidence.CheckpointOf(&read)
		if err != nil {
			return err
		}
		got, _, err := evidence.OpenCheckpoint(signed, note.VerifierList(v))
		if err != nil {
			return err
		}
		if got.Record = (evidence.Hash{}); got != c {
			t.Errorf("the checkpoint is %+v, want %+v", got, c)
		}
		got, _ = evidence.ReadCheckpoint(signed)
		return got.CheckRecord(line, signed)
	}
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	if err := check(line); err != nil {
		t.Fatal(err)
	}
	for i := range 255 * len(line) {
		changed := bytes.Clone(line)
		if changed[i/255] ^= byte(1 + i%255); check(changed) == nil {
			t.Errorf("byte %d was changed, and the record is accepted: %q", i/255, changed)
		}
		// A writer of lines can write their checksums too.
		changed = audit.Seal(append(changed[:len(changed)-18:len(changed)-18], '}'), 0)
		if i/255 < len(line)-18 && check(changed[:len(changed)-1]) == nil {
			t.Errorf("byte %d was changed with the checksum, and the record is accepted: %q", i/255, changed)
		}
	}
}

// TestRecordSpelling has the line of a checkpoint's record in other spellings, each
// with a right checksum, and cut: only the line that was signed is accepted.
func TestRecordSpelling(t *testing.T) {
	signer, _ := newKey(t, "auditproxy/h/s")
	r := audit.Record{Kind: audit.KindCheckpoint, RecordID: "r", SessionID: "s", Seq: 12, TS: time.Unix(1, 0), Duration: -1, Host: "h"}
	if err := (evidence.Checkpoint{Origin: "auditproxy/h/s", Size: 12}).SignRecord(&r, signer); err != nil {
		t.Fatal(err)
	}
	signed, err := evidence.CheckpointOf(&r)
	if err != nil {
		t.Fatal(err)
	}
	c, err := evidence.ReadCheckpoint(signed)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	sealed := func(old, new string) []byte {
		body := bytes.Replace(line[:len(line)-len(`,"crc":"00000000"}`)], []byte(old), []byte(new), 1)
		return bytes.TrimSuffix(audit.Seal(append(body, '}'), 0), []byte("\n"))
	}
	if err := c.CheckRecord(sealed("", ""), signed); err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string][]byte{
		"an escape":          sealed(`"checkpoint":"auditproxy/`, `"checkpoint":"auditproxy\/`),
		"a member after it":  sealed(`}`, `,"x":1}`),
		"white space":        sealed(`{"checkpoint":"`, `{"checkpoint": "`),
		"a member after all": sealed(`\n"}`, `\n"},"x":1`),
		"another checksum":   append(bytes.Clone(line[:len(line)-len(`00000000"}`)]), `00000000"}`...),
	} {
		if bytes.Equal(changed, line) {
			t.Errorf("%s: it is the same line", name)
		}
		if c.CheckRecord(changed, signed) == nil {
			t.Errorf("%s: it is accepted: %s", name, changed)
		}
	}
	for i := range line {
		// Whoever writes the line can write the hash of what is before the evidence.
		cut := c
		if at := bytes.LastIndex(line[:i], []byte(`,"evidence":{"checkpoint":`)); at >= 0 {
			cut.Record = sha256.Sum256(line[:at])
		}
		if cut.CheckRecord(line[:i], signed) == nil {
			t.Errorf("%d of its bytes are accepted", i)
		}
	}
}

// TestOtherOrigin opens a checkpoint of one session with another session of the same
// host: its key has signed both.
func TestOtherOrigin(t *testing.T) {
	host, hostKey := newKey(t, "auditproxy/h")
	_, key := newKey(t, "auditproxy/h/s")
	s := evidence.Session{Origin: "auditproxy/h/s", Key: key, HostKey: hostKey}
	for origin, ok := range map[string]bool{s.Origin: true, "auditproxy/h/other": false} {
		signed, err := evidence.Checkpoint{Origin: origin, Size: 3}.Sign(host)
		if err != nil {
			t.Fatal(err)
		}
		if _, byHost, err := s.Open(signed); (err == nil) != ok || byHost != ok {
			t.Errorf("a checkpoint of %s: by the host %t, %v", origin, byHost, err)
		}
	}
}

// TestEntry reads the entries of a log again.
func TestEntry(t *testing.T) {
	signer, hostKey := newKey(t, "auditproxy/h")
	signed, err := evidence.Checkpoint{Origin: "auditproxy/h/s", Size: 1}.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []evidence.Entry{
		{Origin: "auditproxy/h/s", HostKey: hostKey, HostSeq: 7, Leaf: evidence.Leaf([]byte("x"))},
		{Origin: "auditproxy/h/s", Checkpoint: signed},
	} {
		got, err := evidence.ReadEntry(want.Bytes())
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("entry %+v, %v, want %+v", got, err, want)
		}
	}
	for _, bad := range []string{"", "auditproxy/session_start\n", "auditproxy/session_start\no\nk\n0\n" + tlog.Hash{}.String() + "\n", "auditproxy/session_start\no\nk\n1\nx\n",
		"auditproxy/session_start\no\nk\n1\n" + tlog.Hash{}.String() + "\nx", "auditproxy/session_start\no\nk\n1\n" + tlog.Hash{}.String()} {
		if got, err := evidence.ReadEntry([]byte(bad)); err == nil {
			t.Errorf("entry %q: %+v", bad, got)
		}
	}
}

// A timedWitness signs as if it were another time (C2SP tlog-cosignature).
type timedWitness struct {
	note.Verifier
	key ed25519.PrivateKey
	at  time.Time
}

func (w timedWitness) Sign(text []byte) ([]byte, error) {
	at := binary.BigEndian.AppendUint64(nil, uint64(w.at.Unix()))
	return append(at, ed25519.Sign(w.key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", w.at.Unix(), text))...), nil
}

// TestWitnessed says when a quorum had signed a checkpoint.
func TestWitnessed(t *testing.T) {
	log, logKey := newKey(t, "auditproxy/log/c")
	trust := evidence.Trust{Logs: []string{logKey}}
	signers := []note.Signer{log}
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for _, hours := range []int{2, 0, 1} {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := note.NewEd25519VerifierKey(fmt.Sprint("witness-", hours), public)
		if err != nil {
			t.Fatal(err)
		}
		key, err := fnote.VKeyToCosignatureV1(plain)
		if err != nil {
			t.Fatal(err)
		}
		v, err := fnote.NewVerifierForCosignatureV1(key)
		if err != nil {
			t.Fatal(err)
		}
		trust.Witnesses = append(trust.Witnesses, key)
		signers = append(signers, timedWitness{v, private, began.Add(time.Duration(hours) * time.Hour)})
	}
	signed, err := evidence.Checkpoint{Origin: "auditproxy/log/c", Size: 3}.Sign(signers...)
	if err != nil {
		t.Fatal(err)
	}
	for quorum, want := range []time.Time{began.Add(2 * time.Hour), began.Add(2 * time.Hour), began.Add(time.Hour), began, {}} {
		trust.Quorum = quorum
		if at := trust.Witnessed(signed); !at.Equal(want) {
			t.Errorf("with the quorum %d it was witnessed at %v, want %v", quorum, at, want)
		}
	}
	changed := bytes.Replace(signed, []byte("\n3\n"), []byte("\n4\n"), 1)
	if at := trust.Witnessed(changed); !at.IsZero() {
		t.Errorf("a changed checkpoint was witnessed at %v", at)
	}
}

// TestTrust reads trust files, and checkpoints of logs by them.
func TestTrust(t *testing.T) {
	_, host := newKey(t, "auditproxy/h")
	log, logKey := newKey(t, "auditproxy/log/c")
	private, public, err := note.GenerateKey(rand.Reader, "witness.example")
	if err != nil {
		t.Fatal(err)
	}
	witness, err := fnote.NewSignerForCosignatureV1(private)
	if err != nil {
		t.Fatal(err)
	}
	witnessKey, err := fnote.VKeyToCosignatureV1(public)
	if err != nil {
		t.Fatal(err)
	}
	text := "# keys\n\nhost " + host + "\n log  " + logKey + "\r\nwitness\t" + witnessKey + "\nquorum \t1\n"
	trust, err := evidence.ParseTrust(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := (evidence.Trust{Hosts: []string{host}, Logs: []string{logKey}, Witnesses: []string{witnessKey}, Quorum: 1}); !cmp.Equal(trust, want) {
		t.Errorf("trust is %+v, want %+v", trust, want)
	}
	c := evidence.Checkpoint{Origin: "auditproxy/log/c", Size: 3}
	both, err := c.Sign(log, witness)
	if err != nil {
		t.Fatal(err)
	}
	if got, n, err := trust.OpenLog(both); got != c || n != 1 || err != nil {
		t.Errorf("opening: %v, %d, %v", got, n, err)
	}
	for name, signers := range map[string][]note.Signer{"without the witness": {log}, "without the log": {witness}} {
		signed, err := c.Sign(signers...)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := trust.OpenLog(signed); err == nil {
			t.Errorf("%s: the checkpoint is trusted", name)
		}
	}
	_, err = evidence.ParseTrust("host x\nlog\nwitness x\nquorum x\nquorum 2\nhosts y\n")
	for _, want := range []string{"line 1:", "line 2:", "line 3:", "line 4:", "line 6:", "quorum 2 is more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the problems are %v, want %q too", err, want)
		}
	}
	_, err = evidence.ParseTrust(strings.Repeat("x\n", 1000))
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "\nand 980 more problems") {
		t.Errorf("of a file of another kind the problems are %v", err)
	}
	_, err = evidence.ParseTrust("PRIVATE+KEY+a+b+s3cr3t\nhost PRIVATE+KEY+a+b+s3cr3t\nlog s3cr3t\nwitness PRIVATE+KEY+a+b+s3cr3t\nquorum s3cr3t\n")
	if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Count(err.Error(), "is a private key; want the verifier key") != 2 {
		t.Errorf("of a file with private keys the problems are %v", err)
	}
	_, err = evidence.ParseTrust("host " + host + "\nwitness " + witnessKey + "\nquorum 2\nwitness " + witnessKey + "\nquorum 1\nhost " + host + "\nlog " + host + "\n")
	for _, want := range []string{"line 4: witness repeats line 2", "line 5: quorum repeats line 3", "line 6: host repeats line 1", "line 7: log repeats line 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of a file with repeated lines the problems are %v, want %q too", err, want)
		}
	}
}

// TestRunning checks that a tree's copy grows alone.
func TestRunning(t *testing.T) {
	var tree evidence.Tree
	for i := range 5 {
		tree.Append(evidence.Leaf(fmt.Append(nil, i)))
	}
	other := tree.Clone()
	before := tree.Root()
	other.Append(evidence.Leaf([]byte("x")))
	if tree.Root() != before || other.Size() != 6 {
		t.Error("a copy of the tree changed it")
	}
}

func BenchmarkLeaf(b *testing.B) {
	line := make([]byte, 1024)
	var tree evidence.Tree
	b.ReportAllocs()
	for b.Loop() {
		tree.Append(evidence.Leaf(line))
	}
}

func BenchmarkSign(b *testing.B) {
	private, _, _ := note.GenerateKey(rand.Reader, "auditproxy/h/s")
	signer, _ := note.NewSigner(private)
	for b.Loop() {
		if _, err := (evidence.Checkpoint{Origin: "auditproxy/h/s", Size: 12}).Sign(signer); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSplitNotes takes notes apart that were put together in different ways.
func TestSplitNotes(t *testing.T) {
	a, b := "o\n1\nr\n\n— k s\n— l s\n", "p\n2\nr\n\n— k s\n"
	for text, want := range map[string][]string{
		"": nil, "\n": nil, "x": {"x"}, a: {a}, a + b: {a, b}, "\n\n" + a + "\n\n" + b + "\n": {a, b},
		a[:len(a)-1]: {a[:len(a)-1]},
	} {
		var got []string
		for _, n := range evidence.SplitNotes([]byte(text)) {
			got = append(got, string(n))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
