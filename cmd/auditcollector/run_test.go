package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/ledger"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// A process is a running program.
type process struct {
	cmd    *exec.Cmd
	stderr *tail // of this program and its engine
}

// A tail holds the output of a program so far.
type tail struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (s *tail) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *tail) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

func (s *tail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// collect starts auditcollector run.
func (h home) collect(t *testing.T, args ...string) process {
	t.Helper()
	p := process{exec.Command(h.exe, append([]string{"run"}, args...)...), new(tail)}
	p.cmd.Env, p.cmd.Stderr = append(h.env, "AUDITCOLLECTOR_SPOOL_DIRS="+h.spoolDir()), p.stderr
	// A killed program cannot end its engine, whose copy of standard error
	// would keep Wait waiting.
	p.cmd.WaitDelay = 10 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("collector:\n%s", p.stderr)
		}
	})
	return p
}

// endLimit bounds how long a program takes to end.
const endLimit = 2 * time.Minute

// end ends the program with a signal and returns its exit code, -1 if the
// signal ended it.
func (p process) end(s syscall.Signal) int {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(s) // it may have ended by itself
		// A program that does not end prints where it waits.
		stuck := time.AfterFunc(endLimit, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
		defer stuck.Stop()
		_ = p.cmd.Wait()
	}
	return p.cmd.ProcessState.ExitCode()
}

// spoolDir is where this home's proxy keeps its records.
func (h home) spoolDir() string { return filepath.Join(h.dir, "auditproxy") }

// A writer writes one session as a proxy does.
type writer struct {
	*spool.Session
	t    *testing.T
	no   int
	book ledger.Book // of all records written
	stop func()
}

func (h home) writer(t *testing.T) *writer {
	t.Helper()
	s, err := spool.Create(spool.Config{Dir: h.spoolDir(), Durability: spool.Interval, Log: zap.NewNop()}, audit.NewID(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return &writer{s, t, 0, ledger.Book{Place: "writer"}, func() {
		cancel()
		<-done
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}}
}

// call writes one call's record.
func (w *writer) call(change ...func(*audit.Record)) {
	w.t.Helper()
	line := w.line(append([]func(*audit.Record){func(r *audit.Record) { r.SessionID = w.ID() }}, change...)...)
	if _, err := w.Append(line, false); err != nil {
		w.t.Fatal(err)
	}
}

// line returns the next call's record.
func (w *writer) line(change ...func(*audit.Record)) []byte {
	now := time.Now()
	w.no++
	r := audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(now), Seq: uint64(w.no - 1), CallNo: uint64(w.no),
		TS: now, Method: "tools/call", Tool: "list_panes", RequestID: strconv.Itoa(w.no), Outcome: audit.OutcomeOK, Duration: time.Millisecond,
	}
	for _, c := range change {
		c(&r)
	}
	line := audit.AppendRecord(nil, &r)
	w.book.Entries = append(w.book.Entries, entry(w.t, line[:len(line)-1]))
	return line
}

// query returns the answer to a statement as tab-separated text.
func (h home) query(r chdb.Role, sql string) (string, error) {
	dial := chdb.Dialer(h.dir+"/local", r)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
	client := http.Client{Transport: transport, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://engine/?default_format=TSVRaw", "text/plain", strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return string(text), err
}

// ask returns the words of the answer to a question, nil while the engine is
// away.
func (h home) ask(t *testing.T, sql string) []string {
	t.Helper()
	text, err := h.query(chdb.Reader, sql)
	if err != nil {
		return nil
	}
	return strings.Fields(text)
}

// number returns the answer to a query for one number, 0 while the engine is
// down.
func (h home) number(sql string) int64 {
	text, err := h.query(chdb.Reader, sql)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// eventually waits for other processes. The limit is far beyond what they need on
// a busy machine: there, agents have made more records, and each that the table
// refuses is found by a score of inserts. Most conditions ask the engine, which
// takes processor time from what is waited for: in a long wait, less often.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for pause := 20 * time.Millisecond; !is(); pause = min(pause*5/4, 200*time.Millisecond) {
		if wait.For(ctx, pause) != nil {
			t.Fatalf("after ten minutes not: %s", what)
		}
	}
}

func (h home) counts(t *testing.T, sql string, want int) func() bool {
	return func() bool {
		rows := h.ask(t, sql)
		return len(rows) == 1 && rows[0] == strconv.Itoa(want)
	}
}

const distinct = "SELECT uniqExact(record_id) FROM audit.events"

// check compares what a reviewer sees with the contents of the places before
// it.
func (h home) check(t *testing.T, books ...ledger.Book) {
	t.Helper()
	calls := 0
	for _, e := range books[0].Entries {
		if e.Call != "" {
			calls++
		}
	}
	// An insert shows in the table a moment before it does in the rollup.
	eventually(t, "the rollup has every call", h.counts(t, "SELECT sum(calls) FROM audit.hourly", calls))
	if found := ledger.Follow(append(books, h.tableBook(t))...); len(found) > 0 {
		t.Errorf("of %d records: %v", len(books[0].Entries), found)
	}
	for question, want := range map[string]string{
		"SELECT count() FROM audit.conflicts":                                "0",
		"SELECT count() FROM audit.seq_gaps":                                 "0",
		"SELECT count() FROM audit.gaps":                                     "0",
		"SELECT count() FROM audit.dead_letters FINAL WHERE replayed_at = 0": "0",
	} {
		if got := h.ask(t, question); !slices.Equal(got, []string{want}) {
			t.Errorf("%s = %v, want %s", question, got, want)
		}
	}
}

// TestRunDeadSession checks that calls which a killed proxy's server may have
// executed reach the table although no other proxy starts, and so does a record
// of a kind that only a newer proxy writes.
func TestRunDeadSession(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.collect(t, "--batch-wait", "50ms")
	w := h.writer(t)
	w.call()
	w.call(func(r *audit.Record) { r.Kind, r.CallNo, r.Tool, r.Outcome = "policy", 0, "", "" })
	eventually(t, "the records are in the engine", h.counts(t, distinct, 2))
	now := time.Now()
	if _, err := w.Append(audit.AppendIntent(nil, &audit.Record{
		RecordID: audit.NewID(now), SessionID: w.ID(), CallNo: 2, TS: now, Method: "tools/call", Tool: "pipe_pane",
	}), false); err != nil {
		t.Fatal(err)
	}
	w.stop() // without an end: to a reader that is the same as a kill
	eventually(t, "the open call and the end are in the engine", h.counts(t, distinct, 4))
	for question, want := range map[string]string{
		"SELECT tool FROM audit.events WHERE outcome = 'unknown' AND recovered":               "pipe_pane",
		"SELECT count() FROM audit.events WHERE kind = 'policy'":                              "1",
		"SELECT concat(toString(ended), toString(died), toString(calls)) FROM audit.sessions": "truetrue2",
		"SELECT count() FROM audit.seq_gaps":                                                  "0",
		"SELECT count() FROM audit.dead_letters FINAL":                                        "0",
	} {
		if got := h.ask(t, question); !slices.Equal(got, []string{want}) {
			t.Errorf("%s = %v, want %s", question, got, want)
		}
	}
	if code := p.end(syscall.SIGTERM); code != 0 || p.stderr.has("not recovered") {
		t.Errorf("exit code %d, standard error:\n%s", code, p.stderr)
	}
}

// TestRunLocal checks that with the default configuration records reach the
// engine, also those of a new session, and that a stop is clean.
func TestRunLocal(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	w := h.writer(t)
	for range 20 {
		w.call()
	}
	p := h.collect(t, "--batch-wait", "50ms")
	eventually(t, "the records are in the engine", h.counts(t, distinct, 20))
	for range 5 {
		w.call()
	}
	eventually(t, "what came later is there too", h.counts(t, distinct, 25))
	h.check(t, w.book, h.spoolBook(t))
	w.stop()
	if code := p.end(syscall.SIGTERM); code != 0 || strings.Contains(p.stderr.String(), "error") {
		t.Errorf("exit code %d, standard error:\n%s", code, p.stderr)
	}
}

// TestRunLostStore: a new store lacks what the spool says is stored, which nothing
// else would tell.
func TestRunLostStore(t *testing.T) {
	t.Parallel()
	const told = "this store is empty, and records of the spool count as stored"
	h := newHome(t)
	w := h.writer(t)
	w.call()
	p := h.collect(t, "--batch-wait", "50ms")
	eventually(t, "the record is in the engine", h.counts(t, distinct, 1))
	eventually(t, "the record counts as stored", func() bool {
		e, _ := spool.Look(h.spoolDir(), w.ID())
		return e.Shipped.Segment > 0
	})
	p.end(syscall.SIGTERM)
	if p.stderr.has(told) {
		t.Errorf("the first start:\n%s", p.stderr)
	}
	if err := os.Rename(filepath.Join(h.dir, "local"), filepath.Join(h.dir, "lost")); err != nil {
		t.Fatal(err)
	}
	p = h.collect(t, "--batch-wait", "50ms")
	eventually(t, "the loss is told", func() bool { return p.stderr.has(told) })
	p.end(syscall.SIGTERM)
	if !p.stderr.has(`"sessions": 1`) {
		t.Errorf("not told for how many sessions:\n%s", p.stderr)
	}
	w.stop()
}

// TestKills kills the collector and its engine at random moments while records
// are being written. SOAK=1 does it as often as promised.
func TestKills(t *testing.T) {
	t.Parallel()
	collectors, kills := 5, 3 // of them, and of engines
	if soak() {
		collectors, kills = 50, 20
	}
	random := newRandom(t)
	h := newHome(t)
	w := h.writer(t)
	p := h.collect(t, "--batch-wait", "20ms")
	eventually(t, "the collector has started", h.counts(t, "SELECT 1", 1))
	for i := range collectors + kills {
		for range 200 {
			w.call()
		}
		// Any moment will do: during the wait, an insert or a commit.
		for range random.IntN(40) {
			w.call()
			h.ask(t, "SELECT 1")
		}
		if i < collectors {
			if i%4 == 0 {
				// An engine that hangs keeps an insert under way until the collector dies.
				eventually(t, "records flow", h.counts(t, distinct, len(w.book.Entries)))
				eventually(t, "there is an engine to stop", func() bool { return signalEngine(t, p.cmd.Process.Pid, syscall.SIGSTOP) })
				for range 200 {
					w.call()
				}
				<-time.After(time.Second)
				hanging := engines(t, p.cmd.Process.Pid)
				p.end(syscall.SIGKILL)
				for _, pid := range hanging {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			} else {
				p.end(syscall.SIGKILL)
			}
			p = h.collect(t, "--batch-wait", "20ms")
			continue
		}
		eventually(t, "there is an engine to kill", func() bool { return signalEngine(t, p.cmd.Process.Pid, syscall.SIGKILL) })
	}
	w.call()
	eventually(t, "everything is there", h.counts(t, distinct, len(w.book.Entries)))
	h.check(t, w.book, h.spoolBook(t))
	w.stop()
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, standard error:\n%s", code, p.stderr)
	}
}

// signalEngine sends a signal to the children of a process; it reports whether
// it had any.
func signalEngine(t *testing.T, parent int, signal syscall.Signal) (sent bool) {
	t.Helper()
	for _, pid := range engines(t, parent) {
		sent = syscall.Kill(pid, signal) == nil || sent
	}
	return sent
}

// engines returns the children of a process.
func engines(t *testing.T, parent int) (pids []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestDeadLetters checks that a line that is not a record of its session is
// listed, shown, and replayed in vain until the configuration accepts it.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	w.call()
	w.call(func(r *audit.Record) { r.SessionID = audit.NewID(time.Now()); r.Tool = "evil\x1b[31m" })
	w.call(func(r *audit.Record) { r.TS = time.Now().Add(-50 * 24 * time.Hour) }, piped("/root/.ssh/authorized_keys"))
	p := h.collect(t, "--batch-wait", "20ms", "--retention-events", "30d")
	eventually(t, "the good record is there", h.counts(t, distinct, 1))
	eventually(t, "the others are dead letters", h.counts(t, "SELECT count() FROM audit.dead_letters", 2))

	list := h.run(t, "dead-letters", "list")
	if list.code != cli.ExitFound || !regexp.MustCompile(`(?m)^spool/1/\d+ .* key .*\n^spool/1/\d+ .* ts `).MatchString(list.stdout) {
		t.Errorf("list: exit code %d\n%s%s", list.code, list.stdout, list.stderr)
	}
	if only := h.run(t, "dead-letters", "list", "--reason", "ts"); strings.Count(only.stdout, "\n") != 2 {
		t.Errorf("list --reason ts:\n%s", only.stdout)
	}
	place := strings.Fields(strings.Split(list.stdout, "\n")[1])[0]
	for _, command := range []string{"show", "replay"} {
		if r := h.run(t, "__complete", "dead-letters", command, ""); !strings.Contains("\n"+r.stdout, "\n"+place+"\t") || !strings.HasSuffix(r.stdout, "\n:4\n") {
			t.Errorf("a shell is offered %q to %s, want places", r.stdout, command)
		}
	}
	show := h.run(t, "dead-letters", "show", place)
	if show.code != 0 || !strings.Contains(show.stdout, `evil\\u001b[31m`) && !strings.Contains(show.stdout, `evil\u001b[31m`) {
		t.Errorf("show: exit code %d\n%s%s", show.code, show.stdout, show.stderr)
	}
	if raw := h.run(t, "dead-letters", "show", "--raw", place); !audit.Check([]byte(raw.stdout)) {
		t.Errorf("show --raw is not the record's line: %q", raw.stdout)
	}
	if none := h.run(t, "dead-letters", "show", "spool/1/999999"); none.code != cli.ExitUnclear {
		t.Errorf("show of nothing: exit code %d", none.code)
	}

	if none := h.run(t, "dead-letters", "replay", place, "spool/1/999999"); none.code != cli.ExitUnclear || none.stdout != "" || !strings.Contains(none.stderr, "there is no dead letter of spool/1/999999") {
		t.Errorf("replay of a place without one: exit code %d, %s%s", none.code, none.stdout, none.stderr)
	}
	if again := h.run(t, "dead-letters", "replay", "--retention-events", "30d"); again.code != cli.ExitFound || again.stdout != "0 stored, 2 remain\n" {
		t.Errorf("replay: exit code %d, %q\n%s", again.code, again.stdout, again.stderr)
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("run: exit code %d\n%s", code, p.stderr)
	}
	p = h.collect(t, "--batch-wait", "20ms") // keeps records for longer
	h.ready(t)
	if again := h.run(t, "dead-letters", "replay"); again.code != cli.ExitFound || again.stdout != "1 stored, 1 remain\n" {
		t.Errorf("replay with the time allowed: exit code %d, %q\n%s", again.code, again.stdout, again.stderr)
	}
	if !h.counts(t, distinct, 2)() {
		t.Errorf("after the replay there are %v records, want 2", h.ask(t, distinct))
	}
	if rest := h.run(t, "dead-letters", "list"); strings.Count(rest.stdout, "\n") != 2 {
		t.Errorf("after the replay:\n%s", rest.stdout)
	}
	// Rules see a record that was a dead letter for a while.
	eventually(t, "the replayed record is evaluated", h.counts(t, "SELECT count() FROM audit.alerts WHERE rule = 'pipe-pane-sensitive'", 1))
	w.stop()
	p.end(syscall.SIGTERM)
	// Without a collector the command runs an engine of its own.
	if lines := h.run(t, "dead-letters", "list", "--all", "--json"); lines.code != cli.ExitFound || strings.Count(lines.stdout, "\n") != 2 ||
		!regexp.MustCompile(`(?m)^\{"place":"[^"]+","key":"[^"]*","seen":"[^"]+Z","reason":"[a-z]+","bytes":\d+,"replayed":"[^"]+Z"\}$`).MatchString(lines.stdout) {
		t.Errorf("as JSON: %+v", lines)
	}
	if all := h.run(t, "dead-letters", "list", "--all"); all.code != cli.ExitFound || strings.Count(all.stdout, "\n") != 3 {
		t.Errorf("without a collector: exit code %d\n%s%s", all.code, all.stdout, all.stderr)
	}
}

// TestReplayRefused checks that a record which the table still refuses does not
// stop the replay of others.
func TestReplayRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	p := h.collect(t, "--batch-wait", "20ms")
	for _, tool := range []string{"one", "two"} {
		h.alter(t, "ADD CONSTRAINT "+tool+" CHECK tool != '"+tool+"'")
		w.call(func(r *audit.Record) { r.Tool = tool })
	}
	eventually(t, "both are dead letters", h.counts(t, "SELECT count() FROM audit.dead_letters WHERE reason = 'insert'", 2))
	for _, step := range []struct {
		drop, want string
		code       int
	}{
		{"two", "1 stored, 1 remain\n", cli.ExitFound},
		{"one", "1 stored, 0 remain\n", 0},
	} {
		h.alter(t, "DROP CONSTRAINT "+step.drop)
		if r := h.run(t, "dead-letters", "replay"); r.code != step.code || r.stdout != step.want {
			t.Errorf("without constraint %q: %+v, want %q", step.drop, r, step.want)
		}
	}
	h.check(t, w.book, h.spoolBook(t))
	w.stop()
	p.end(syscall.SIGTERM)
}

func TestMigrateCommand(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	first := h.run(t, "migrate")
	if first.code != 0 || !strings.Contains(first.stdout, "applied 0001_tables\n") {
		t.Errorf("migrate: exit code %d\n%s%s", first.code, first.stdout, first.stderr)
	}
	if again := h.run(t, "migrate"); again.code != 0 || strings.Contains(again.stdout, "applied") {
		t.Errorf("migrate again: exit code %d\n%s%s", again.code, again.stdout, again.stderr)
	}
}

// TestConfigProblems checks that all problems are reported together, and that
// nothing starts.
func TestConfigProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"it names every problem", []string{"--kafka-brokers", "a", "--clickhouse-database", "a;b", "--batch-rows", "0", "--retention-events", "1h", "--metrics-listen", "x"},
			[]string{"kafka.brokers", "clickhouse.database", "batch.rows", "retention.events", "metrics.listen"}},
		{"it tells an empty value from a missing home", []string{"--local-dir=", "--spool-dirs="}, []string{"flag --local-dir: local.dir: is empty: name a directory", "flag --spool-dirs: spool.dirs: is empty: name a directory"}},
		{"it wants addresses without a secret", []string{"--kafka-brokers", "h:1?password=swordfish,h:1;password=swordfish,h:1#swordfish,ann@h:1,ann:sword;fish@h:1", "--clickhouse-addr", "h/x:1"},
			[]string{`kafka.brokers: "h:1?<secret>": want host:port`, `"h:1;<secret>": want host:port`, `"h:1#<secret>": want`, `"ann@h:1": want`, `"<secret>@h:1": want`, `clickhouse.addr: "h/x:1": want`}},
		{"it knows pairs", []string{"--kafka-tenants", "a,b=c,b=d,=e"}, []string{`"a": want topic=tenant`, `"b" is listed twice`, `"=e"`}},
		{"it wants brokers of mapped topics", []string{"--kafka-tenants", "a=b"}, []string{"kafka.tenants: would not be used: there are no kafka.brokers"}},
		{"it wants a page that serves the log", []string{"--evidence-serve"}, []string{"evidence.serve: would not be used: review.listen is off"}},
		{"it wants a log that is served", []string{"--evidence-serve", "--evidence-enabled=false", "--review-listen", "127.0.0.1:0"}, []string{"evidence.serve: would not be used: evidence.enabled is false"}},
		{"it keeps its files out of a spool's sessions", []string{"--spool-dirs", "/s,/t", "--local-dir", "/t/sessions", "--evidence-log", "/s/sessions/../sessions/log"},
			[]string{`local.dir: "/t/sessions" is among the sessions of the spool "/t": choose another directory`, `evidence.log: "/s/sessions/log" is among the sessions of the spool "/s"`}},
		{"it wants TLS that is used", []string{"--kafka-tls-ca-file", "/x", "--clickhouse-tls-cert-file", "/y"}, []string{"kafka.tls.enabled is false", "clickhouse.tls.key_file"}},
		{"it wants a login that is whole", []string{"--kafka-sasl-mechanism", "plain"}, []string{"kafka.sasl.username"}},
		{"it keeps dead letters apart", []string{"--dead-letters-topic", "mcp.audit.v1"}, []string{"holds records"}},
		{"it needs some memory", []string{"--local-memory", "1MiB"}, []string{"local.memory: is 1MiB, want at least 256MiB"}},
		{"it opens no port to others", []string{"--local-listen", "0.0.0.0:1"}, []string{"loopback", "password"}},
		{"it knows tenants' times", []string{"--retention-tenants", "a,=5d,b=1h,c=x,d=e=30d,d=e=40d"}, []string{`"a": want tenant=time`, `"=5d"`, `"b=1h": is 1h0m0s`, `"c=x"`, `"d=e" is listed twice`}},
		{"it moves records where there are volumes", []string{"--retention-cold-after", "30d", "--retention-storage-policy", "a'b", "--retention-cold-volume", "c d"},
			[]string{"needs clickhouse.addr", "retention.storage_policy", "retention.cold_volume"}},
		{"it keeps inside ClickHouse's times", []string{"--retention-events", "20000d"}, []string{"10000d"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := emptyHome(t)
			got := h.run(t, append([]string{"run"}, tt.args...)...)
			if got.code != cli.ExitConfig {
				t.Errorf("exit code %d, want %d", got.code, cli.ExitConfig)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("standard error has no %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

// TestTableRefuses checks that a table altered to refuse all records stops the
// collector. No record becomes a dead letter, and /readyz names what fails.
func TestTableRefuses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	p := h.collect(t, "--batch-wait", "20ms", "--log-level", "info")
	w.call()
	eventually(t, "the first record is there", h.counts(t, distinct, 1))
	h.alter(t, "DROP COLUMN result_bytes")
	h.alter(t, "ADD COLUMN result_bytes Array(Int64)")
	for range 20 {
		w.call()
	}
	eventually(t, "the table is blamed", func() bool { return p.stderr.has("it now refuses a record that it has taken before") })
	resp, err := http.Get(p.metrics(t) + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "storing records") {
		t.Errorf("/readyz answers %d %q, %v", resp.StatusCode, text, err)
	}
	if text, err := h.query(chdb.Writer, "SELECT count() FROM audit.dead_letters"); err != nil || text != "0\n" {
		t.Errorf("%q dead letters, %v, want none", text, err)
	}
	h.alter(t, "DROP COLUMN result_bytes")
	h.alter(t, "ADD COLUMN result_bytes Int64")
	eventually(t, "all records are there", h.counts(t, distinct, 21))
	w.stop()
	p.end(syscall.SIGTERM)
	if text := h.run(t, "dead-letters", "list"); text.code != 0 {
		t.Errorf("there are dead letters: %+v", text)
	}
}
