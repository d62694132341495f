package translog

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/collector/translog/tiles"
	"auditproxy/deploy/dev"
	"auditproxy/schemas/evidence"

	"github.com/google/go-cmp/cmp"
	f_note "github.com/transparency-dev/formats/note"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A cosigner is the key of a witness.
type cosigner struct {
	secret string
	signer *f_note.Signer
	public string
}

func newCosigner(t testing.TB, name string) cosigner {
	t.Helper()
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := f_note.NewSignerForCosignatureV1(secret)
	if err != nil {
		t.Fatal(err)
	}
	return cosigner{secret, signer, public}
}

// startWitness starts transparency-dev's witness of a log as a process. It keeps
// what it has signed in the file db, or in memory.
func startWitness(t testing.TB, c cosigner, log, db string) (url string) {
	t.Helper()
	program := dev.Fetched(t, "witness")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(c.secret), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"auditproxy/log/test", log, key}
	if db != "" {
		args = append(args, db)
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("a witness did not say where it listens: ", err)
	}
	return "http://" + strings.TrimSpace(addr)
}

// publicKey makes a log's key before the log, and returns its public half.
func publicKey(t testing.TB, dir string) string {
	t.Helper()
	k, err := makeKey(dir+".key", "auditproxy/log/test")
	if err != nil {
		t.Fatal(err)
	}
	return k.public
}

// cosigned returns how many of the witnesses have signed a checkpoint, by other
// code than the log's.
func cosigned(t testing.TB, signed []byte, keys ...cosigner) int {
	t.Helper()
	var verifiers []note.Verifier
	for _, k := range keys {
		verifiers = append(verifiers, k.signer.Verifier())
	}
	n, err := note.Open(signed, note.VerifierList(verifiers...))
	if errors.As(err, new(*note.UnverifiedNoteError)) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(n.Sigs)
}

// TestWitness checks that a third party's witness signs the log's checkpoints as
// it grows, also after a restart of the log and of the witness, and that it stops
// a rollback that the log's own memory does not show.
func TestWitness(t *testing.T) {
	base := t.TempDir()
	dir, db := filepath.Join(base, "log"), filepath.Join(base, "witness.last")
	log := publicKey(t, dir)
	a, b := newCosigner(t, "witness/a"), newCosigner(t, "witness/b")
	urlB := startWitness(t, b, log, "")
	var config Config
	session := func(name string, f func(t *testing.T, l *Log)) {
		t.Run(name, func(t *testing.T) {
			config = Config{Dir: dir, Quorum: 2, Witnesses: []Witness{
				{URL: startWitness(t, a, log, db), Key: a.public}, {URL: urlB + "/", Key: b.public},
			}}
			f(t, opened(t, config))
		})
	}
	grow := func(t *testing.T, l *Log, from, to int) {
		t.Helper()
		add(t, l, texts(from, to))
		eventually(t, "signed by both", func() bool { return l.Status().Witnessed == int64(to) })
		signed, err := l.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		if n := cosigned(t, signed, a, b); n != 2 {
			t.Errorf("%d witnesses have signed:\n%s", n, signed)
		}
		trust := evidence.Trust{Logs: []string{log}, Witnesses: []string{a.public, b.public}, Quorum: 2}
		if c, n, err := trust.OpenLog(signed); err != nil || n != 2 || c.Size != int64(to) {
			t.Errorf("a verifier reads %d entries, %d witnesses, %v", c.Size, n, err)
		}
		file, err := l.reader.Witnessed(t.Context())
		if err != nil || string(file) != string(signed) {
			t.Errorf("the file has another checkpoint: %v\n%s", err, file)
		}
		if _, tree := checkpoint(t, dir, log); tree.N != int64(to) {
			t.Errorf("the checkpoint covers %d entries, want %d", tree.N, to)
		}
		for _, w := range l.Status().Witnesses {
			if w.Err != nil || w.Size != int64(to) || w.Succeeded.IsZero() || !w.Failing.IsZero() {
				t.Errorf("status %+v", w)
			}
		}
	}
	session("first", func(t *testing.T, l *Log) {
		for to := 100; to <= 400; to += 100 {
			grow(t, l, to-100, to)
		}
	})
	old := filepath.Join(base, "old")
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	last, err := os.ReadFile(dir + ".key.last")
	if err != nil {
		t.Fatal(err)
	}
	session("second", func(t *testing.T, l *Log) {
		if got := l.Status().Witnessed; got != 400 {
			t.Errorf("%d entries are witnessed after a restart, want 400", got)
		}
		grow(t, l, 400, 700)
	})
	// All that the collector has is rolled back.
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(old)), os.WriteFile(dir+".key.last", last, 0o600)); err != nil {
		t.Fatal(err)
	}
	session("rolled back", func(t *testing.T, l *Log) {
		add(t, l, texts(1000, 1010))
		covered(t, l, 410)
		eventually(t, "noticed", func() bool {
			s := l.Status()
			return errors.Is(s.Witnesses[0].Refused, ErrRolledBack) && errors.Is(s.Witnesses[1].Refused, ErrRolledBack)
		})
		add(t, l, texts(1010, 1400))
		covered(t, l, 800)
		eventually(t, "noticed as another history", func() bool {
			s := l.Status()
			return errors.Is(s.Witnesses[0].Refused, ErrRolledBack) && strings.Contains(s.Witnesses[0].Refused.Error(), "another history")
		})
		if got := l.Status().Witnessed; got != 400 {
			t.Errorf("%d entries are witnessed, want 400", got)
		}
	})
}

// A faulty witness answers as a function says.
func faulty(t testing.TB, answer http.HandlerFunc) string {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

// cosign answers a request with a signature on its checkpoint, as change makes it.
func cosign(t testing.TB, w http.ResponseWriter, r *http.Request, by note.Signer, change func(text string) string) {
	var body strings.Builder
	if _, err := bufio.NewReader(r.Body).WriteTo(&body); err != nil {
		t.Error(err)
	}
	_, signed, _ := strings.Cut(body.String(), "\n\n")
	text, _, _ := strings.Cut(signed, "\n\n")
	n, err := note.Sign(&note.Note{Text: change(text + "\n")}, by)
	if err != nil {
		t.Error(err)
	}
	_, sigs, _ := strings.Cut(string(n), "\n\n")
	fmt.Fprint(w, sigs)
}

// TestFaultyWitnesses checks that a witness that answers wrongly, slowly or not at
// all delays nothing, is named in the status, and that nothing of it is kept.
func TestFaultyWitnesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log := publicKey(t, dir)
	good := newCosigner(t, "witness/good")
	other := newCosigner(t, "witness/other")
	ended := make(chan struct{})
	same := func(text string) string { return text }
	faults := map[string]struct {
		answer func(by cosigner) http.HandlerFunc
		want   string
	}{
		"slow": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-ended:
				case <-r.Context().Done():
				}
			}
		}, "Client.Timeout"},
		"nothing": {func(cosigner) http.HandlerFunc { return func(http.ResponseWriter, *http.Request) {} }, "signature"},
		"hangs up": {func(cosigner) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		}, "EOF"},
		"endless": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				for {
					if _, err := w.Write([]byte(strings.Repeat("— x\n", 1000))); err != nil {
						return
					}
				}
			}
		}, "more than"},
		"another key": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { cosign(t, w, r, other.signer, same) }
		}, "signature"},
		"another checkpoint": {func(by cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				cosign(t, w, r, by.signer, func(text string) string { return strings.Replace(text, "\n", "0\n", 1) })
			}
		}, "invalid signature"},
		"a text of its own": {func(by cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "\nx\n1\n\n")
				cosign(t, w, r, by.signer, same)
			}
		}, "not a signature"},
		"without time": {func(by cosigner) http.HandlerFunc {
			plain, err := note.NewSigner(by.secret)
			if err != nil {
				t.Fatal(err)
			}
			return func(w http.ResponseWriter, r *http.Request) { cosign(t, w, r, plain, same) }
		}, "signature"},
		"other sizes": {func(cosigner) http.HandlerFunc {
			var n atomic.Int64
			return func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusConflict)
				fmt.Fprintln(w, n.Add(1)%7)
			}
		}, "size"},
		"a size that the log never had": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusConflict)
				fmt.Fprintln(w, 1_000_000)
			}
		}, "the witness has signed one of 1000000"},
		"no size": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusConflict) }
		}, "size"},
		"another history": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }
		}, "another history"},
		"unknown log": {func(cosigner) http.HandlerFunc { return http.NotFound }, "does not know this log"},
		"redirect": {func(cosigner) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			}
		}, "307"},
	}
	c := Config{Dir: dir, Quorum: 1, Witnesses: []Witness{{URL: startWitness(t, good, log, ""), Key: good.public}}}
	all := []cosigner{good}
	want := map[string]string{}
	for name, f := range faults {
		by := newCosigner(t, "witness/"+strings.ReplaceAll(name, " ", "-"))
		c.Witnesses = append(c.Witnesses, Witness{URL: faulty(t, f.answer(by)), Key: by.public})
		want[by.signer.Name()] = f.want
		all = append(all, by)
	}
	t.Cleanup(func() { close(ended) }) // before the servers wait for their handlers
	gone := newCosigner(t, "witness/gone")
	c.Witnesses = append(c.Witnesses, Witness{URL: "http://127.0.0.1:1", Key: gone.public})
	want["witness/gone"] = "connection refused"

	l := opened(t, c, func(l *Log) {
		l.witnesses.client.Timeout = 300 * time.Millisecond
		l.witnesses.delay = 50 * time.Millisecond
	})
	for i := range 10 {
		add(t, l, texts(10*i, 10*i+10))
		covered(t, l, int64(10*i+10))
	}
	eventually(t, "signed by the good one", func() bool { return l.Status().Witnessed == 100 })
	// On a busy machine any request may time out, so each fault shows in some round.
	seen := map[string]bool{}
	eventually(t, "each fault named", func() bool {
		for _, w := range l.Status().Witnesses {
			switch {
			case w.Name == "witness/good":
				seen[w.Name] = w.Size == 100
			case w.Size != 0 || !w.Succeeded.IsZero():
				t.Fatalf("status of %s: %+v", w.Name, w)
			case w.Err != nil && strings.Contains(w.Err.Error(), want[w.Name]):
				seen[w.Name] = !w.Failing.IsZero()
			}
		}
		return len(seen) == len(c.Witnesses)
	})
	for name, ok := range seen {
		if !ok {
			t.Errorf("status of %s: %+v", name, l.Status().Witnesses)
		}
	}
	signed, err := l.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if n := cosigned(t, signed, all...); n != 1 || strings.Count(string(signed), "\n— ") != 2 {
		t.Errorf("%d witnesses have signed:\n%s", n, signed)
	}
}

// TestWitnessComesBack checks that a witness that was away signs the newest
// checkpoint although nothing is added, and that its signature joins the others'.
func TestWitnessComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log := publicKey(t, dir)
	a, b := newCosigner(t, "witness/a"), newCosigner(t, "witness/b")
	real := startWitness(t, b, log, "")
	var mu sync.Mutex
	away := true
	urlB := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		gone := away
		mu.Unlock()
		if gone {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		http.Redirect(w, r, real+r.URL.Path, http.StatusTemporaryRedirect)
	})
	l := opened(t, Config{Dir: dir, Quorum: 2, Witnesses: []Witness{
		{URL: startWitness(t, a, log, ""), Key: a.public}, {URL: urlB, Key: b.public},
	}}, func(l *Log) {
		l.witnesses.client.CheckRedirect = nil // stands for the network
		l.witnesses.delay = time.Millisecond
	})
	add(t, l, texts(0, 300))
	eventually(t, "signed by one, refused by the other", func() bool {
		s := l.Status()
		return s.Witnesses[0].Size == 300 && s.Witnesses[1].Err != nil
	})
	if got := l.Status().Witnessed; got != 0 {
		t.Errorf("%d entries are witnessed without a quorum", got)
	}
	mu.Lock()
	away = false
	mu.Unlock()
	eventually(t, "signed by both", func() bool { return l.Status().Witnessed == 300 })
	signed, err := l.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if n := cosigned(t, signed, a, b); n != 2 {
		t.Errorf("%d witnesses have signed:\n%s", n, signed)
	}
	r, err := tiles.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := r.Witnessed(context.Background()); err != nil || cosigned(t, file, a, b) != 2 {
		t.Errorf("the file has another checkpoint: %v\n%s", err, file)
	}
}

// TestWitnessesAsked checks when witnesses are asked: not before there is a checkpoint,
// each once for one checkpoint, one that failed not before its delay is over, and after
// a restart only those that have not signed.
func TestWitnessesAsked(t *testing.T) {
	l := opened(t, Config{Dir: filepath.Join(t.TempDir(), "log")})
	a, b := newCosigner(t, "witness/a"), newCosigner(t, "witness/b")
	var signed, failed atomic.Int64 // times that each was asked
	urlA := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		signed.Add(1)
		cosign(t, w, r, a.signer, func(text string) string { return text })
	})
	urlB := faulty(t, func(w http.ResponseWriter, _ *http.Request) {
		failed.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	c := l.config
	c.Quorum, c.Witnesses = 2, []Witness{{URL: urlA, Key: a.public}, {URL: urlB, Key: b.public}}
	core, logged := observer.New(zap.DebugLevel)
	c.Log = zap.New(core)
	fresh := func() *witnesses {
		w := newWitnesses(c, l.key, l.reader, []note.Verifier{a.signer.Verifier(), b.signer.Verifier()})
		w.delay = time.Hour
		return w
	}
	round := func(w *witnesses, what string, signs, fails int64) {
		t.Helper()
		if wait := w.round(t.Context()); fails == 0 && wait != 0 || fails > 0 && (wait <= 0 || wait > witnessLongest) {
			t.Errorf("%s: the next round is in %s", what, wait)
		}
		if diff := cmp.Diff([2]int64{signs, fails}, [2]int64{signed.Load(), failed.Load()}); diff != "" {
			t.Errorf("%s: times asked (-want +got):\n%s", what, diff)
		}
	}
	w := fresh()
	round(w, "nothing is in the log", 0, 0)
	if logged.Len() > 0 {
		t.Errorf("a log without entries: %v", logged.All())
	}
	add(t, l, texts(0, 3))
	covered(t, l, 3)
	round(w, "a checkpoint", 1, 1)
	round(w, "the same one", 1, 1)
	add(t, l, texts(3, 5))
	covered(t, l, 5)
	round(w, "a newer one", 2, 1)
	round(fresh(), "the same one, after a restart", 2, 2)
}

// TestSignatureWithoutTime checks that a signature has the time that makes it a
// witness's.
func TestSignatureWithoutTime(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := note.NewEd25519VerifierKey("witness/a", private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	key, err := f_note.NewVerifierForCosignatureV1(public)
	if err != nil {
		t.Fatal(err)
	}
	text := "log\n1\n" + tlog.Hash{1}.String() + "\n"
	for seconds, good := range map[uint64]bool{0: false, 1_700_000_000: true, 1 << 63: false} {
		sig := ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text))
		raw := binary.BigEndian.AppendUint32(nil, key.KeyHash())
		raw = append(binary.BigEndian.AppendUint64(raw, seconds), sig...)
		answer := fmt.Sprintf("— %s %s\n", key.Name(), base64.StdEncoding.EncodeToString(raw))
		if _, err := checkAnswer([]byte(text+"\n"), []byte(answer), key); (err == nil) != good {
			t.Errorf("time %d: %v", seconds, err)
		}
	}
}

// TestWitnessKey checks that a mistyped key is refused, in both types.
func TestWitnessKey(t *testing.T) {
	plain := newCosigner(t, "witness/a").public
	typed, err := f_note.VKeyToCosignatureV1(plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{plain, typed} {
		if _, err := witnessKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		for _, bad := range []string{strings.Replace(key, "/a", "/b", 1), strings.Replace(key, "+", "+0", 1), key[:len(key)-8] + "AAAAAAA=", key + "x", ""} {
			if _, err := witnessKey(bad); err == nil {
				t.Errorf("%q is accepted", bad)
			}
		}
	}
}

// TestPreferred checks which checkpoint is kept: a newer one unless it has fewer
// signatures than the quorum and the older one.
func TestPreferred(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	publicKey(t, dir)
	a, b := newCosigner(t, "witness/a"), newCosigner(t, "witness/b")
	l := opened(t, Config{Dir: dir})
	w := &witnesses{config: Config{Dir: dir, Quorum: 2}, key: l.key, reader: l.reader}
	for i, step := range []struct {
		size int64
		by   []cosigner
		want int64 // size of the checkpoint that is kept
		n    int   // signatures
	}{
		{100, nil, 0, 0},
		{100, []cosigner{a}, 100, 1},
		{200, []cosigner{b}, 200, 1},
		{200, []cosigner{a}, 200, 2},
		{300, []cosigner{a}, 200, 2},
		{300, nil, 200, 2},
		{400, []cosigner{a, b}, 400, 2},
	} {
		text := fmt.Sprintf("auditproxy/log/test\n%d\n%v\n", step.size, tlog.Hash{byte(i)})
		tree := tlog.Tree{N: step.size, Hash: tlog.Hash{byte(step.size / 100)}}
		signed, err := note.Sign(&note.Note{Text: text}, l.key.signer)
		if err != nil {
			t.Fatal(err)
		}
		var found []note.Signature
		for _, by := range step.by {
			found = append(found, note.Signature{Name: by.signer.Name(), Base64: "x"})
		}
		if err := w.keep(signed, tree, found); err != nil {
			t.Fatal(err)
		}
		if w.tree.N != step.want || w.signed != step.n || strings.Count(string(w.best), "— witness/") != step.n {
			t.Errorf("step %d: size %d with %d signatures is kept, want %d with %d:\n%s", i, w.tree.N, w.signed, step.want, step.n, w.best)
		}
	}
}
