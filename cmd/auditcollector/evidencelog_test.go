package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/collector/translog"
	"auditproxy/collector/translog/feed"
	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
)

// stores puts a session's records into the spool, as its proxy did.
func (h home) stores(t *testing.T, s *evidencetest.Session) {
	t.Helper()
	w, err := spool.Create(spool.Config{Dir: h.spoolDir(), Log: zap.NewNop()}, s.ID)
	if err == nil {
		_, err = w.Append(append(bytes.Join(s.Lines, []byte("\n")), '\n'), true)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// entries reads the log at a place, and checks it with the public half of its key.
func (h home) entries(t *testing.T, place string) (list []string) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(h.dir, "local", "log.key.pub"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(strings.TrimSpace(string(key)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tiles.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := r.Checkpoint(t.Context())
	if err != nil {
		return nil
	}
	if _, _, err := evidence.OpenCheckpoint(signed, note.VerifierList(v)); err != nil {
		t.Fatal(err)
	}
	_, tree, err := tiles.ParseCheckpoint(signed)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Entries(t.Context(), tree, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(e.Data))
	}
	return list
}

// TestDamageOf checks which states of a log are told as damage. That the database
// fails is not: other rules and metrics tell that.
func TestDamageOf(t *testing.T) {
	full, gone := errors.New("no space left on device"), fmt.Errorf("adding to the log: %w while it was open", translog.ErrRolledBack)
	ago := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name   string
		log    translog.Status
		fed    feed.Status
		damage string
		known  bool
		urgent bool
	}{
		{name: "no pass has ended"},
		{name: "it has what arrived", fed: feed.Status{Upto: ago}, known: true},
		{name: "a checkpoint is on its way", log: translog.Status{Behind: ago}, fed: feed.Status{Upto: ago}, known: true},
		{name: "the database fails", fed: feed.Status{Upto: ago, Failing: ago, Err: errors.New("reading evidence: connection refused")}},
		{name: "the disk is full", fed: feed.Status{Upto: ago, Failing: ago, Err: fmt.Errorf("%w: %w", feed.ErrLog, full)}, damage: "feeding the log: no space left on device", known: true},
		{name: "it was removed", fed: feed.Status{Failing: ago, Err: fmt.Errorf("%w: %w", feed.ErrLog, gone)}, damage: "feeding the log: adding to the log: the log was rolled back while it was open", known: true, urgent: true},
		{name: "its checkpoint is not signed", log: translog.Status{Err: gone}, fed: feed.Status{Upto: ago}, damage: "signing a checkpoint: adding to the log: the log was rolled back while it was open", known: true, urgent: true},
		{name: "a witness signs", log: translog.Status{Published: 1, Witnesses: []translog.WitnessStatus{{Succeeded: ago}}}, fed: feed.Status{Upto: ago}, known: true},
		{name: "a witness was not asked", log: translog.Status{Published: -1, Witnesses: []translog.WitnessStatus{{}}}, fed: feed.Status{Upto: ago}, known: true},
		{name: "a witness does not answer any more", log: translog.Status{Published: 1, Witnesses: []translog.WitnessStatus{{Succeeded: ago, Failing: ago, Err: full}}}, fed: feed.Status{Upto: ago}, known: true},
		{name: "a witness has not answered since the start", log: translog.Status{Published: 1, Witnesses: []translog.WitnessStatus{{Succeeded: ago}, {Failing: ago, Err: full}}}, fed: feed.Status{Upto: ago}},
		{name: "a witness has seen a larger log", log: translog.Status{Published: 1, Witnesses: []translog.WitnessStatus{{Succeeded: ago}, {Name: "w", Err: full, Refused: gone}}}, fed: feed.Status{Upto: ago},
			damage: `asking witness "w": adding to the log: the log was rolled back while it was open: restore the newest copy of the log; if there is none, treat it as an intrusion, or ask the witness's operator`, known: true, urgent: true},
	} {
		damage, known := damageOf(c.log, c.fed)
		got := ""
		if damage != nil {
			got = damage.Error()
		}
		if got != c.damage || known != c.known || urgent(damage) != c.urgent {
			t.Errorf("%s: %q, known %v, urgent %v; want %q, %v, %v", c.name, got, known, urgent(damage), c.damage, c.known, c.urgent)
		}
	}
}

// TestEvidenceLog runs a collector over sessions with evidence. Its log has the
// start and the checkpoints of each once, on the disk and at /log/; checkpoints that
// contradict each other are stored as tampering; and a log that was rolled back is
// not continued, while records are still collected.
func TestEvidenceLog(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	host := evidencetest.NewHost("h", time.Now().Add(-time.Hour))
	first, forged := host.Session(evidencetest.Plan{Calls: 25}), host.Session(evidencetest.Plan{Calls: 25})
	h.stores(t, first)
	p := h.collect(t, "--batch-wait", "20ms", "--review-listen", "127.0.0.1:0", "--evidence-serve")
	want := map[string]bool{string(first.Start().Bytes()): true}
	for _, signed := range first.Checkpoints() {
		want[string(signed)] = true
	}
	dir := filepath.Join(h.dir, "local", "log")
	eventually(t, "the log has the session", func() bool { return len(h.entries(t, dir)) >= len(want) })
	for _, e := range h.entries(t, dir) {
		if !want[e] {
			t.Errorf("the log has the entry %q", e)
		}
		delete(want, e)
	}
	if len(want) > 0 {
		t.Errorf("the log lacks %v", want)
	}
	base, _, _ := strings.Cut(h.link(t), "/login")
	served := base + "/log/"
	if over, there := h.entries(t, served), h.entries(t, dir); fmt.Sprint(over) != fmt.Sprint(there) {
		t.Errorf("%s has %d entries, and the directory %d", served, len(over), len(there))
	}
	for _, path := range []string{"", "..%2flog.key", "tile/", "../log.key"} {
		res, err := http.Get(served + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == http.StatusOK || bytes.Contains(body, []byte("PRIVATE")) {
			t.Errorf("GET %s%s: %s", served, path, res.Status)
		}
	}

	// A session with a checkpoint without a signature is in the log, too.
	for i, line := range forged.Lines {
		if bytes.Contains(line, []byte(`"kind":"checkpoint"`)) {
			line = regexp.MustCompile(`\\n(\d+)\\n`).ReplaceAll(line, []byte(`\n9$1\n`))
			forged.Lines[i] = bytes.TrimSuffix(audit.Seal(append(line[:len(line)-len(`,"crc":"00000000"}`)], '}'), 0), []byte("\n"))
			break
		}
	}
	older := filepath.Join(h.dir, "older")
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	before := len(h.entries(t, dir))
	h.stores(t, forged)
	eventually(t, "the contradiction is stored", h.counts(t, "SELECT count() FROM audit.verifications FINAL WHERE state = 'tampered' AND session_id = '"+forged.ID+"' AND position(findings, 'bad_signature') > 0", 1))
	eventually(t, "the log has the other session", func() bool { return len(h.entries(t, dir)) == before+1+len(forged.Checkpoints()) })
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the collector ended with %d", code)
	}

	newest := filepath.Join(h.dir, "newest")
	if err := errors.Join(os.Rename(dir, newest), os.Rename(older, dir)); err != nil {
		t.Fatal(err)
	}
	third := host.Session(evidencetest.Plan{Calls: 3})
	h.stores(t, third)
	p = h.collect(t, "--batch-wait", "20ms", "--log-level", "info")
	eventually(t, "the records are there", h.counts(t, "SELECT uniqExact(seq) FROM audit.events WHERE session_id = '"+third.ID+"'", len(third.Lines)))
	eventually(t, "the log is refused", func() bool { return p.stderr.has("rolled back") })
	if got := len(h.entries(t, dir)); got != before {
		t.Errorf("the log that was rolled back has %d entries, want the %d that it had", got, before)
	}
	res, err := http.Get(p.metrics(t) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); !bytes.Contains(body, []byte("\nauditcollector_log_up 0\n")) {
		t.Error("the metrics do not say that the log is not written")
	}
	const alerts = "SELECT count() FROM audit.alerts WHERE rule = 'central-log-damaged' AND position(details, 'rolled back') > 0"
	eventually(t, "there is an alert", h.counts(t, alerts+" AND closes = ''", 1))

	// The newest copy is restored.
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the collector ended with %d", code)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(newest, dir)); err != nil {
		t.Fatal(err)
	}
	h.collect(t, "--batch-wait", "20ms")
	eventually(t, "the alert is closed", h.counts(t, "SELECT count() FROM audit.alerts WHERE rule = 'central-log-damaged' AND closes != ''", 1))
}
