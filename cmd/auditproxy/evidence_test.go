package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/chain"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"
)

// A fleet is the sessions of a host, and copies of them.
type fleet struct {
	host     *evidencetest.Host
	sessions []*evidencetest.Session
	intents  map[string][]byte // of a session's calls
	dir      string
	trust    string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{host: evidencetest.NewHost("build-7", time.Now().Add(-time.Hour)), intents: map[string][]byte{}, dir: t.TempDir()}
	for i := range 5 {
		s := f.host.Session(evidencetest.Plan{Calls: 22 + 4*i, End: []evidencetest.End{evidencetest.Ended, evidencetest.Recovered}[i%2]})
		f.sessions = append(f.sessions, s)
		for _, line := range s.Lines {
			r, err := audit.Parse(line)
			must(t, err)
			if r.Kind == audit.KindCall {
				f.intents[s.ID] = append(f.intents[s.ID], audit.AppendIntent(nil, &r)...)
			}
		}
	}
	f.trust = f.write(t, "trusted-keys", []byte(evidencetest.Trust(f.host)))
	return f
}

func (f *fleet) write(t *testing.T, name string, b []byte) string {
	t.Helper()
	name = filepath.Join(f.dir, name)
	must(t, os.WriteFile(name, b, 0o600))
	return name
}

// spool writes sessions to a new spool. Intents are no part of the evidence.
func (f *fleet) spool(t *testing.T, sessions []*evidencetest.Session) string {
	t.Helper()
	dir := filepath.Join(f.dir, "spool")
	must(t, os.RemoveAll(dir))
	for _, s := range sessions {
		w, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, s.ID)
		must(t, err)
		_, err = w.Append(slices.Concat(f.intents[s.ID], bytes.Join(s.Lines, []byte("\n")), []byte("\n")), true)
		must(t, err)
		must(t, w.Close())
	}
	return dir
}

// dump writes sessions as messages of a topic: their records are mixed, and some
// come twice.
func (f *fleet) dump(t *testing.T, sessions []*evidencetest.Session) string {
	t.Helper()
	var b bytes.Buffer
	const batch = 7
	for from, more := 0, true; more; from += batch {
		more = false
		for i, s := range sessions {
			if from >= len(s.Lines) {
				continue
			}
			more = true
			lines := s.Lines[from:min(from+batch, len(s.Lines))]
			for range 1 + (i+from)%3%2 {
				b.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
			}
		}
	}
	return f.write(t, "dump.ndjson", b.Bytes())
}

// export writes sessions one after the other.
func (f *fleet) export(t *testing.T, sessions []*evidencetest.Session) string {
	t.Helper()
	var b bytes.Buffer
	for _, s := range sessions {
		b.Write(append(bytes.Join(s.Lines, []byte("\n")), '\n'))
	}
	return f.write(t, "export.ndjson", b.Bytes())
}

// verify runs auditproxy verify over a copy of the sessions, and returns its
// objects in JSON.
func (f *fleet) verify(t *testing.T, source string, sessions []*evidencetest.Session, more ...string) (objects []verified, exit string) {
	t.Helper()
	args, dir := append([]string{"verify", "--trust", f.trust, "--json"}, more...), f.dir
	switch source {
	case "spool":
		dir = f.spool(t, sessions)
	case "dump":
		args = append(args, "--file", f.dump(t, sessions))
	case "export":
		args = append(args, "--file", f.export(t, sessions))
	}
	out := runApp(t, dir, args...)
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "exit "); ok {
			exit = strings.TrimSpace(rest)
			continue
		}
		var o verified
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("reading %q: %v", line, err)
		}
		objects = append(objects, o)
	}
	return objects, cmp.Or(exit, "0")
}

// verified is what the test reads of an object of verify.
type verified struct {
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Records   int64  `json:"records"`
	Verified  int64  `json:"verified"`
	Findings  json.RawMessage
	Note      string `json:"note"`
	Exit      *int   `json:"exit"`
}

func (v verified) found(t *testing.T) (list []place) {
	t.Helper()
	if v.Exit == nil {
		must(t, json.Unmarshal(v.Findings, &list))
	}
	return list
}

type place struct {
	What    string
	Seq, To uint64
	Detail  string
}

var sources = []string{"spool", "dump", "export"}

// TestVerifyMutations changes sessions as an attacker would, in random places of a
// spool, of a dump of Kafka messages and of an exported file.
func TestVerifyMutations(t *testing.T) {
	f := newFleet(t)
	times := 8
	if os.Getenv("SOAK") != "" {
		times = 200
	}
	for _, source := range sources {
		if objects, exit := f.verify(t, source, f.sessions); exit != "0" || len(objects) != len(f.sessions)+1 {
			t.Fatalf("the unchanged sessions in a %s: exit %s, %+v", source, exit, objects)
		}
		for _, m := range evidencetest.Mutations() {
			t.Run(source+" "+m.Name, func(t *testing.T) {
				for range times {
					seed := rand.Uint64()
					sessions, change := m.Change(rand.New(rand.NewPCG(seed, 0)), f.sessions)
					var args []string
					if len(change.Kept) > 0 {
						args = []string{"--checkpoint", f.write(t, "kept", bytes.Join(change.Kept, []byte("\n")))}
					}
					objects, exit := f.verify(t, source, sessions, args...)
					if source == "spool" && change.From == uint64(len(recordsOf(f.sessions, change.Session))-1) && checkUnsigned(objects, exit, change) {
						continue
					}
					if err := checkFound(t, objects, exit, change); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		}
	}
}

// recordsOf returns the records of a session before a change.
func recordsOf(sessions []*evidencetest.Session, id string) [][]byte {
	i := slices.IndexFunc(sessions, func(s *evidencetest.Session) bool { return s.ID == id })
	return sessions[i].Lines
}

// checkUnsigned reports whether only the last signature of the session is missing:
// in a spool its process may have died before that.
func checkUnsigned(objects []verified, exit string, c evidencetest.Change) bool {
	i := slices.IndexFunc(objects, func(o verified) bool { return o.SessionID == c.Session })
	return exit == "2" && i >= 0 && objects[i].State == "incomplete" && strings.Contains(objects[i].Note, "its process ended and recovery has not signed its end")
}

// checkFound checks that the change was found, and named.
func checkFound(t *testing.T, objects []verified, exit string, c evidencetest.Change) error {
	t.Helper()
	if exit != "1" {
		return fmt.Errorf("exit %s: %+v is not found", exit, c)
	}
	var others []string
	for _, o := range objects {
		for _, f := range o.found(t) {
			if o.SessionID == c.Session && slices.Contains(c.What, f.What) && f.Seq >= c.From && f.To <= c.To {
				return nil
			}
			others = append(others, f.Detail)
		}
	}
	return fmt.Errorf("%+v is not named, but %q", c, others)
}

// TestVerifyTrust verifies unchanged sessions with and without knowing whom to
// trust.
func TestVerifyTrust(t *testing.T) {
	f := newFleet(t)
	running := f.host.Session(evidencetest.Plan{Calls: 12, End: evidencetest.Running})
	export, whole := f.export(t, append(slices.Clone(f.sessions), running)), len(f.sessions)
	home := t.TempDir()
	kept := filepath.Join(home, "kept")
	trusting := fmt.Sprintf("stderr:\nauditproxy: trusting host %s from now on, its first use, by %q: compare it with auditproxy evidence key on that host\n", f.host.Key, kept)
	for _, tt := range []struct {
		name string
		args []string
		want []string
		exit string
	}{
		{"a trust file", []string{"--trust", f.trust}, []string{"host build-7   sessions 6   records ", "incomplete  " + running.ID + "  running, verified through 12 of "}, "0"},
		{"no trust file", nil, []string{"unknown_key 6 sessions: host " + f.host.Key, "exit 2"}, "2"},
		{"first use", []string{"--trust", kept, "--trust-on-first-use"}, []string{"incomplete", trusting}, "0"},
		{"second use", []string{"--trust", kept, "--trust-on-first-use"}, []string{"incomplete"}, "0"},
		{"the kept file", []string{"--trust", kept}, []string{"incomplete"}, "0"},
		{"a checkpoint of a session that is here", []string{"--trust", f.trust, "--checkpoint", f.write(t, "one", f.sessions[1].Checkpoints()[1])}, []string{"incomplete"}, "0"},
		{"another host's trust file", []string{"--trust", f.write(t, "other", []byte(evidencetest.Trust(evidencetest.NewHost("build-7", time.Now()))))}, []string{"unknown_key"}, "2"},
		{"no such trust file", []string{"--trust", filepath.Join(home, "none")}, []string{"reading the trust file"}, "2"},
		{"another file as trust file", []string{"--trust", f.write(t, "x", []byte("x"))}, []string{"reading the trust file \"$", "\": line 1: starts with none of"}, "2"},
		{"evidence with --damage-only", []string{"--trust", f.trust, "--damage-only"}, []string{"cannot be combined"}, "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := runApp(t, f.dir, append([]string{"verify", "--file", export}, tt.args...)...)
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			if !strings.HasSuffix(strings.TrimSuffix(out, trusting), "exit "+tt.exit+"\n") {
				t.Errorf("want exit %s:\n%s", tt.exit, out)
			}
		})
	}
	// Without a trust file, keys are kept in the user's configuration.
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, env: []string{"HOME=" + home}}
	if code := a.run(context.Background(), []string{"verify", "--file", export, "--trust-on-first-use"}); code != 0 {
		t.Errorf("first use without a file: exit %d", code)
	}
	if got := readFile(t, filepath.Join(home, ".config", "auditproxy", "trust")); got != evidencetest.Trust(f.host) {
		t.Errorf("the kept keys are %q", got)
	}
	// A file needs no spool, nor what says where it is: in a job of an auditor that may be nothing.
	var problem strings.Builder
	a = &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &problem, env: []string{"AUDITPROXY_SPOOL_DIR=none"}}
	if code := a.run(context.Background(), []string{"verify", "--file", export, "--trust", f.trust}); code != 0 {
		t.Errorf("without a spool directory: exit %d, %s", code, &problem)
	}
	// A host's key that changes after its first use is not trusted.
	other := evidencetest.NewHost("build-7", time.Now())
	changed := f.export(t, []*evidencetest.Session{other.Session(evidencetest.Plan{Calls: 3})})
	if out := runApp(t, f.dir, "verify", "--file", changed, "--trust", kept, "--trust-on-first-use"); !strings.Contains(out, "has another key of this host") || !strings.Contains(out, `add the line "host `) || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("another key: %s", out)
	}
	// Sessions without evidence are never called verified.
	plain := f.export(t, []*evidencetest.Session{f.sessions[0].Unsigned()})
	if out := runApp(t, f.dir, "verify", "--file", plain, "--trust", f.trust); !strings.Contains(out, "unsigned    "+f.sessions[0].ID) || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("without evidence: %s", out)
	}
	if objects, exit := f.verify(t, "spool", f.sessions); exit != "0" || len(objects) != whole+1 || *objects[whole].Exit != 0 || objects[0].State != "ok" || objects[0].Verified != objects[0].Records {
		t.Errorf("a spool: exit %s, %+v", exit, objects)
	}
	if out := runApp(t, f.dir, "verify", "--file", f.write(t, "nothing", []byte("\nx\n")), "--trust", f.trust); !strings.Contains(out, "unreadable") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("a file without records: %s", out)
	}
}

// TestVerifyFile verifies files as other programs leave them. Records that they lack
// count as deleted, and one note says that a filter has the same effect.
func TestVerifyFile(t *testing.T) {
	f := newFleet(t)
	var all, calls [][]byte
	for _, s := range f.sessions {
		for _, line := range s.Lines {
			all = append(all, line)
			if bytes.Contains(line, []byte(`"kind":"call"`)) {
				calls = append(calls, line)
			}
		}
	}
	kept := f.write(t, "kept", bytes.Join(f.sessions[0].Checkpoints(), nil))
	const part = "a file of a part of the records"
	for _, tt := range []struct {
		name  string
		lines [][]byte
		args  []string
		want  string // "": nothing is found
		note  string // how it begins
	}{
		{"all", all, nil, "", ""},
		{"one session", f.sessions[2].Lines, nil, "", ""},
		{"with a byte order mark and carriage returns", [][]byte{append([]byte("\ufeff"), bytes.Join(all, []byte("\r\n"))...)}, nil, "", ""},
		{"with two byte order marks", [][]byte{append([]byte("\ufeff\ufeff"), bytes.Join(all, []byte("\n"))...)}, nil, "edited", ""},
		{"with a byte order mark in between", append(slices.Clone(all[:3]), append([]byte("\ufeff"), bytes.Join(all[3:], []byte("\n"))...)), nil, "edited", ""},
		{"since a record", all[2:], nil, "seq 0 to 1 deleted", part},
		{"until a record, and a checkpoint from later", all[:15], []string{"--checkpoint", kept}, "seq 15 to 25 truncated", part},
		{"when it is a call", calls, nil, "seq 11 deleted", part},
		{"when it is of two sessions", slices.Concat(f.sessions[1].Lines, f.sessions[3].Lines), nil, "host_seq 3 is missing", part},
		{"edited", append([][]byte{bytes.Replace(all[0], []byte(`"v":1`), []byte(`"v": 1`), 1)}, all[1:]...), nil, "edited", ""},
		{"with a line that is no record", append(slices.Clone(all), audit.AppendIntent(nil, &audit.Record{Kind: audit.KindCall, Tool: "planted"})), nil, "", "1 line of a spool in the file"},
		{"when one came later", slices.Concat(all[:3], all[4:9], all[3:4], all[9:]), nil, "seq 3 reordered", "a record that came to ClickHouse after"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"verify", "--trust", f.trust, "--file", f.write(t, "part", bytes.Join(tt.lines, []byte("\n")))}, tt.args...)
			out := runApp(t, f.dir, args...)
			notes := regexp.MustCompile(`(?m)^note +`+tt.note).FindAllString(out, -1)
			if !strings.Contains(out, tt.want) || strings.Contains(out, "tampered") != (tt.want != "") || strings.Count(out, "\nnote ") != len(notes) || (len(notes) > 0) != (tt.note != "") {
				t.Errorf("want %q and a note %q:\n%s", tt.want, tt.note, out)
			}
			if out := runApp(t, f.dir, append(args, "--json")...); strings.Contains(out, `"note":"`+cmp.Or(tt.note, "a ")) != (tt.note != "") {
				t.Errorf("want a note %q in JSON:\n%s", tt.note, out)
			}
		})
	}
}

// TestProve proves records of a spool to somebody who has only the host's key.
func TestProve(t *testing.T) {
	f := newFleet(t)
	dir := f.spool(t, f.sessions)
	r, err := audit.Parse(f.sessions[2].Lines[13])
	must(t, err)
	proof := f.write(t, "record.proof", []byte(runApp(t, dir, "prove", r.RecordID)))
	out := runApp(t, dir, "verify-proof", proof, "--trust", f.trust)
	if !strings.Contains(out, "record      "+r.RecordID+": "+r.Tool) || !strings.Contains(out, "seq 13, host_seq 3") || !strings.HasSuffix(out, "verified    the record is the one that this host wrote\n") {
		t.Errorf("a proof: %s", out)
	}
	text, err := os.ReadFile(proof)
	must(t, err)
	var piped bytes.Buffer
	a := &app{stdin: bytes.NewReader(text), stdout: &piped, stderr: &piped, env: []string{"HOME=" + t.TempDir()}}
	if code := a.run(t.Context(), []string{"verify-proof", "-", "--trust", f.trust}); code != 0 || piped.String() != out {
		t.Errorf("a proof on standard input: %d, %s", code, &piped)
	}
	var o struct {
		Valid  bool
		Record string
	}
	must(t, json.Unmarshal([]byte(runApp(t, dir, "verify-proof", proof, "--trust", f.trust, "--format", "json")), &o))
	if !o.Valid || o.Record != string(f.sessions[2].Lines[13]) {
		t.Errorf("a proof in JSON: %+v", o)
	}
	if out := runApp(t, dir, "verify-proof", proof); !strings.Contains(out, "unknown_key") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("without trust: %s", out)
	}
	trusted := readFile(t, f.trust)
	witness := f.write(t, "witness", []byte(trusted+"witness "+evidencetest.NewHost("w", time.Now()).Key+"\nquorum 1\n"))
	if out := runApp(t, dir, "verify-proof", proof, "--trust", witness); !strings.Contains(out, "unwitnessed the trust file has a quorum") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("without a witness: %s", out)
	}
	logProof, logLine := addLog(t, readFile(t, proof))
	inLog := f.write(t, "log.proof", logProof)
	const unknownLog = "unknown_key the key of auditproxy/log/central is not in the trust file; auditcollector evidence key"
	if out := runApp(t, dir, "verify-proof", inLog, "--trust", f.trust); strings.Count(out, "unknown_key") != 1 || !strings.Contains(out, unknownLog) || !strings.Contains(out, "seq 13") || strings.Contains(out, "verified ") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("without the log's key: %s", out)
	}
	if out := runApp(t, dir, "verify-proof", inLog); !strings.Contains(out, "unknown_key the host's key") || !strings.Contains(out, unknownLog) || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("without any key: %s", out)
	}
	if out := runApp(t, dir, "verify-proof", inLog, "--trust", f.trust, "--format", "json"); !strings.Contains(out, `"valid":false,"problem":"verifying a proof: the log's key is not trusted: auditproxy/log/central: add the line`) ||
		!strings.Contains(out, "auditcollector evidence key") || !strings.Contains(out, `"seq":13`) || strings.Contains(out, "log_size") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("without the log's key, in JSON: %s", out)
	}
	early := f.write(t, "early", []byte(trusted+logLine+"witness "+evidencetest.NewHost("w", time.Now()).Key+"\nquorum 1\n"))
	if out := runApp(t, dir, "verify-proof", inLog, "--trust", early); !strings.Contains(out, "unwitnessed fewer witnesses have signed") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("before the witness has signed: %s", out)
	}
	if out := runApp(t, dir, "verify-proof", inLog, "--trust", f.write(t, "log", []byte(trusted+logLine))); !strings.Contains(out, "log         auditproxy/log/central of size 1") || !strings.HasSuffix(out, "verified    the record is the one that this host wrote\n") {
		t.Errorf("with the log's key: %s", out)
	}
	changed := f.write(t, "changed.proof", bytes.Replace([]byte(readFile(t, proof)), []byte(r.Tool), []byte("x"+r.Tool[1:]), 1))
	if out := runApp(t, dir, "verify-proof", changed, "--trust", f.trust); !strings.Contains(out, "refused ") || strings.Contains(out, r.RecordID) || !strings.HasSuffix(out, "exit 1\n") {
		t.Errorf("a changed proof: %s", out)
	}
	last, err := audit.Parse(f.sessions[2].Lines[len(f.sessions[2].Lines)-1])
	must(t, err)
	for id, want := range map[string][2]string{
		last.RecordID:  {"no checkpoint covers the record yet", "2"},
		"0123456789":   {"there is no record", "1"},
		r.RecordID[:2]: {"is the beginning of", "2"},
		"x":            {"is not the start of a record id", "2"},
	} {
		if out := runApp(t, dir, "prove", id); !strings.Contains(out, want[0]) || !strings.HasSuffix(out, "exit "+want[1]+"\n") {
			t.Errorf("proving %q: %s", id, out)
		}
	}
}

// TestProveNeedsOneSession proves a record by its whole id although another session
// cannot be read; the beginning of an id could be of that one too.
func TestProveNeedsOneSession(t *testing.T) {
	f := newFleet(t)
	dir := f.spool(t, f.sessions)
	r, err := audit.Parse(f.sessions[1].Lines[13])
	must(t, err)
	for _, other := range []int{0, 2} {
		segments, err := filepath.Glob(filepath.Join(dir, "sessions", f.sessions[other].ID, "*.jsonl"))
		must(t, err)
		must(t, os.Remove(segments[0]))
		must(t, os.Mkdir(segments[0], 0o700))
	}
	if out := runApp(t, dir, "prove", r.RecordID); !strings.Contains(out, r.RecordID) || strings.Contains(out, "exit ") {
		t.Errorf("a whole id: %s", out)
	}
	if out := runApp(t, dir, "prove", r.RecordID[:35]); !strings.Contains(out, "exit 2\n") {
		t.Errorf("the beginning of an id: %s", out)
	}
}

// addLog adds the proof of a log to a proof. It returns the log's line of a trust
// file too.
func addLog(t *testing.T, text string) (proof []byte, trust string) {
	t.Helper()
	p, err := evidence.ParseProof([]byte(text))
	must(t, err)
	private, public, err := note.GenerateKey(nil, "auditproxy/log/central")
	must(t, err)
	signer, err := note.NewSigner(private)
	must(t, err)
	var tree evidence.Tree
	tree.Prove(0)
	tree.Append(evidence.Leaf(p.Checkpoint))
	root, path := tree.Proof(0)
	signed, err := evidence.Checkpoint{Origin: "auditproxy/log/central", Size: 1, Root: root}.Sign(signer)
	must(t, err)
	p.Log = &evidence.LogProof{Path: *path, Checkpoint: signed}
	return p.Text(), "log " + public + "\n"
}

// TestEvidenceKey prints the key of a spool, by which its sessions are verified.
func TestEvidenceKey(t *testing.T) {
	dir := t.TempDir()
	if out := runApp(t, dir, "evidence", "key"); !strings.Contains(out, "there is no key") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("before the first session: %s", out)
	}
	l, e, err := chain.Begin(chain.Config{Dir: dir, Host: "build-7"}, "01a208bb-2ab0-7d57-b2b4-b0c8d8ee4f9f", "")
	must(t, err)
	must(t, l.Close())
	if out := runApp(t, dir, "evidence", "key"); out != "host "+e.HostKey+"\n" {
		t.Errorf("the key is %q, want %q", out, e.HostKey)
	}
}

// TestWalkthrough runs the commands of the walkthrough in docs/evidence.md, and
// compares what they print, but for ids and times.
func TestWalkthrough(t *testing.T) {
	_, text, found := strings.Cut(readFile(t, "../../docs/evidence.md"), "## A walkthrough for an auditor\n")
	text, _, _ = strings.Cut(text, "\n## ")
	if !found {
		t.Fatal("docs/evidence.md has no walkthrough")
	}
	h := evidencetest.NewHost("build-7", time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	f := &fleet{host: h, dir: t.TempDir()}
	for range 3 {
		f.sessions = append(f.sessions, h.Session(evidencetest.Plan{Calls: 25}))
	}
	f.export(t, f.sessions)
	f.write(t, "trusted-keys", []byte(evidencetest.Trust(h)))
	list := f.sessions[0].Checkpoints()
	f.write(t, "kept.txt", list[len(list)-1])
	t.Chdir(f.dir)
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times := regexp.MustCompile(`2026-11-20 \d\d:\d\d:\d\d`)
	plain := func(s string) string { return times.ReplaceAllString(ids.ReplaceAllString(s, "ID"), "TIME") }
	commands := 0
	for _, block := range strings.Split(text, "    $ ")[1:] {
		command, rest, _ := strings.Cut(block, "\n")
		want := ""
		for line := range strings.Lines(rest) {
			if printed, ok := strings.CutPrefix(line, "    "); ok {
				want += printed
			}
		}
		if words := commandWords(command); words[0] == "auditproxy" {
			commands++
			got := runApp(t, f.dir, words[1:]...)
			if last := "exit 1\n"; strings.HasSuffix(got, last+last) {
				got = strings.TrimSuffix(got, last) // which runApp added
			}
			if diff := gocmp.Diff(strings.TrimSpace(plain(want)), strings.TrimSpace(plain(got))); diff != "" {
				t.Errorf("%s (-documented +printed):\n%s", command, diff)
			}
			continue
		}
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	if commands == 0 {
		t.Error("the walkthrough has no command")
	}
}
