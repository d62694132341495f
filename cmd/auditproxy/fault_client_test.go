package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/chain"
)

// ceiling bounds every wait for something that must happen.
const ceiling = 2 * time.Minute

// soak selects the long forms of the tests; see the Makefile.
func soak() bool { return os.Getenv("SOAK") != "" }

// A wrapped is a proxy with its server, from the client's side.
type wrapped struct {
	t       *testing.T
	cmd     *exec.Cmd
	proxy   string // its path
	spool   string
	journal string // of the server

	mu     sync.Mutex // guards in
	in     *os.File
	out    *bufio.Reader
	outEnd *os.File
	stderr bytes.Buffer // to be read after wait

	started func() // closes the proxy's ends
}

// A setup is how to start a wrapped. The zero value of each field is good.
type setup struct {
	proxy  string   // path of the program, else that of the test binary
	before []string // a program that runs the proxy, such as strace
	flags  []string // of the proxy
	env    []string
	spool  string
	server []string // flags of the journaling server
	argv   []string // another server
}

// wrap starts a proxy around a server. Both end with the test, or after the
// ceiling.
func wrap(t *testing.T, s setup) *wrapped {
	t.Helper()
	w := prepare(t, s)
	must(t, w.cmd.Start())
	w.started()
	return w
}

// prepare is wrap without the start.
func prepare(t *testing.T, s setup) *wrapped {
	t.Helper()
	w := &wrapped{t: t, proxy: s.proxy, spool: s.spool}
	if w.proxy == "" {
		w.proxy = program(t)
	}
	dir := t.TempDir()
	if w.spool == "" {
		w.spool = filepath.Join(dir, "spool")
	}
	w.journal = filepath.Join(dir, "journal")
	if s.argv == nil {
		name := filepath.Join(dir, "journaling-server")
		self, err := os.Executable()
		must(t, err)
		must(t, os.Symlink(self, name))
		s.argv = append([]string{name, "-journal", w.journal}, s.server...)
	}
	args := slices.Concat(s.before, []string{w.proxy, "--spool-dir", w.spool}, s.flags, []string{"--"}, s.argv)
	ctx, cancel := context.WithTimeout(t.Context(), 3*ceiling)
	t.Cleanup(func() {
		cancel()
		if w.cmd.Process != nil && w.cmd.ProcessState == nil {
			w.cmd.Wait() // the test ended before it did
		}
	})
	w.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	w.cmd.WaitDelay = ceiling
	w.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, s.env...)
	w.cmd.Stderr = &w.stderr
	inR, inW, err := os.Pipe()
	must(t, err)
	outR, outW, err := os.Pipe()
	must(t, err)
	w.in, w.outEnd, w.out = inW, outR, bufio.NewReaderSize(outR, 64<<10)
	w.cmd.Stdin, w.cmd.Stdout = inR, outW
	w.started = func() { inR.Close(); outW.Close() }
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call sends a request whose line is about size bytes long.
func (w *wrapped) call(id, size int) error {
	const line = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work_%d","arguments":{"path":"%s"}}}` + "\n"
	return w.send(fmt.Appendf(nil, line, id, id%5, strings.Repeat("a", max(1, size-len(line)))))
}

func (w *wrapped) ping(id int) error {
	return w.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id))
}

func (w *wrapped) send(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.in.Write(line)
	return err
}

// An answer is the client's answer to a request.
type answer struct {
	ID     int
	Result struct {
		IsError bool
		Content []struct{ Text string }
	}
	Error *struct{ Code int }
}

// refused reports whether the proxy answered in the server's place.
func (a answer) refused() bool {
	return a.Result.IsError && len(a.Result.Content) == 1 && strings.HasPrefix(a.Result.Content[0].Text, "auditproxy refused")
}

// read returns the next answer, and io.EOF after the last.
func (w *wrapped) read() (a answer, err error) {
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("reading answer %q: %w", line[:min(len(line), 200)], err)
	}
	return a, nil
}

// answered sends a call and waits for its answer.
func (w *wrapped) answered(id, size int) answer {
	w.t.Helper()
	must(w.t, w.call(id, size))
	return w.next(id)
}

// next reads an answer and fails the test unless it answers id.
func (w *wrapped) next(id int) answer {
	w.t.Helper()
	a, err := w.read()
	if err != nil || a.ID != id {
		w.t.Fatalf("answer to %d, error %v, want the answer to %d", a.ID, err, id)
	}
	return a
}

// wait waits for the end of the proxy and returns how it ended.
func (w *wrapped) wait() syscall.WaitStatus {
	w.t.Helper()
	err := w.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("waiting for proxy: %v\n%s", err, &w.stderr)
	}
	return w.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// end closes the proxy's input, reads its output to the end and waits for it.
func (w *wrapped) end() syscall.WaitStatus {
	w.t.Helper()
	w.in.Close()
	io.Copy(io.Discard, w.out)
	return w.wait()
}

// executed is what the server wrote down: its process id and the ids of the
// calls. A server that was not started wrote nothing.
func (w *wrapped) executed() (pid int, ids []int) {
	w.t.Helper()
	b, err := os.ReadFile(w.journal)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	must(w.t, err)
	for line := range strings.Lines(string(b)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		must(w.t, err)
		if pid == 0 {
			pid = n
		} else {
			ids = append(ids, n)
		}
	}
	return pid, ids
}

// gone waits until no process runs in the group that pid leads. A zombie that
// init has yet to reap does not run.
func gone(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		return
	}
	eventually(t, fmt.Sprintf("a process of group %d still runs", pid), func() bool {
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		must(t, err)
		for _, stat := range stats {
			// proc_pid_stat(5): the state and two numbers on, the group, after a
			// name that can hold anything.
			b, _ := os.ReadFile(stat)
			fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
			if len(fields) > 2 && fields[2] == strconv.Itoa(pid) && fields[0] != "Z" {
				return false
			}
		}
		return true
	})
}

// eventually polls until done, or fails the test with what.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(ceiling); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A trail holds the contents of a spool.
type trail struct {
	records []audit.Record         // but for checkpoints, which are checked
	finals  map[int][]audit.Record // by request id
}

func (tr *trail) kind(k audit.Kind) (list []audit.Record) {
	for _, r := range tr.records {
		if r.Kind == k {
			list = append(list, r)
		}
	}
	return list
}

// readTrail reads all sessions of a spool without a writer.
func readTrail(t *testing.T, dir string) *trail {
	t.Helper()
	tr := &trail{finals: make(map[int][]audit.Record)}
	entries, err := spool.List(dir)
	must(t, err)
	for _, e := range entries {
		r, err := spool.OpenReader(spool.ReaderConfig{Dir: dir, Session: e.ID})
		must(t, err)
		defer r.Close()
		var seq, callNo uint64
		var tree evidence.Tree
		for {
			item, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			kind, rec, err := audit.ParseLine(bytes.Clone(item.Line))
			if item.Damage != spool.Intact || err != nil {
				t.Errorf("session %s, %v: %v, %v", e.ID, item.Pos, item.Damage, err)
				continue
			}
			switch kind {
			case audit.LineIntent:
				if rec.CallNo > callNo+1 {
					t.Errorf("session %s: call_no %d after %d", e.ID, rec.CallNo, callNo)
				}
				callNo = max(callNo, rec.CallNo) // an intent may be repeated with more of the call
			case audit.LineRecord:
				if rec.Seq != seq {
					t.Errorf("session %s: seq %d after %d records", e.ID, rec.Seq, seq)
				}
				seq++
				if rec.Kind == audit.KindCheckpoint {
					checkCheckpoint(t, &rec, &tree)
				} else {
					tr.records = append(tr.records, rec)
				}
				tree.Append(evidence.Leaf(item.Line))
				if rec.Kind == audit.KindCall {
					id, err := strconv.Atoi(rec.RequestID)
					must(t, err)
					tr.finals[id] = append(tr.finals[id], rec)
				}
			}
		}
	}
	return tr
}

// checkCheckpoint compares a checkpoint with the tree of the records before it.
func checkCheckpoint(t *testing.T, rec *audit.Record, tree *evidence.Tree) {
	t.Helper()
	signed, err := evidence.CheckpointOf(rec)
	must(t, err)
	c, err := evidence.ReadCheckpoint(signed)
	must(t, err)
	if c.Size != tree.Size() || c.Root != tree.Root() || c.Origin != evidence.Origin(rec.Host, rec.SessionID) {
		t.Errorf("session %s: checkpoint %d is %+v, want %d records with the hash %v", rec.SessionID, rec.Seq, c, tree.Size(), tree.Root())
	}
}

// checkTrail compares a spool without a writer, in which all sessions have
// their end, with what the server executed, and runs verify. As many calls may
// lack a record as gaps count.
func (w *wrapped) checkTrail() *trail {
	w.t.Helper()
	tr := readTrail(w.t, w.spool)
	_, executed := w.executed()
	var gaps int64
	for _, g := range tr.kind(audit.KindGap) {
		gaps += g.Count - g.Denied
	}
	for _, id := range executed {
		switch list := tr.finals[id]; {
		case len(list) == 0 && gaps > 0:
			gaps--
		case len(list) != 1:
			w.t.Errorf("call %d was executed and has %d records", id, len(list))
		case list[0].Tool != fmt.Sprintf("work_%d", id%5):
			w.t.Errorf("the record of call %d names tool %q", id, list[0].Tool)
		}
	}
	for id, list := range tr.finals {
		if len(list) != 1 {
			w.t.Errorf("call %d has %d records", id, len(list))
		}
		if r := list[0]; r.Outcome == audit.OutcomeOK && !slices.Contains(executed, id) {
			w.t.Errorf("call %d was not executed and its record says ok", id)
		}
	}
	if _, err := os.Stat(w.spool); errors.Is(err, fs.ErrNotExist) && len(executed) == 0 {
		return tr // it ended before it began
	}
	how := []string{"--damage-only"} // one was killed before it began, or had its key
	sessions, err := spool.List(w.spool)
	must(w.t, err)
	signed := slices.DeleteFunc(tr.kind(audit.KindSessionStart), func(r audit.Record) bool { return r.Recovered })
	if len(sessions) > 0 && len(signed) == len(sessions) {
		_, public, err := chain.Key(chain.Config{Dir: w.spool})
		must(w.t, err)
		trust := filepath.Join(w.t.TempDir(), "trust")
		must(w.t, os.WriteFile(trust, []byte("host "+public+"\n"), 0o600))
		how = []string{"--trust", trust}
	}
	verify := exec.Command(w.proxy, append([]string{"verify", "--spool-dir", w.spool}, how...)...)
	verify.Env = w.cmd.Env
	if out, err := verify.CombinedOutput(); err != nil {
		w.t.Errorf("verify: %v\n%s", err, out)
	}
	return tr
}

// checkUntouched runs verify on a spool of which sessions are being written, or were
// when their proxies were killed: none of them is tampered.
func (w *wrapped) checkUntouched() {
	w.t.Helper()
	_, public, err := chain.Key(chain.Config{Dir: w.spool})
	if err != nil {
		return // no proxy has made it yet, or is about to
	}
	trust := filepath.Join(w.t.TempDir(), "trust")
	must(w.t, os.WriteFile(trust, []byte("host "+public+"\n"), 0o600))
	verify := exec.Command(w.proxy, "verify", "--spool-dir", w.spool, "--trust", trust, "--format", "json")
	verify.Env = w.cmd.Env
	out, err := verify.Output()
	if bytes.Contains(out, []byte(`"state":"tampered"`)) || !bytes.Contains(out, []byte(`"exit":`)) && !bytes.Contains(errorOutput(err), []byte("no session in")) {
		w.t.Errorf("verify of what nobody changed: %v\n%s%s", err, out, errorOutput(err))
	}
}

// errorOutput is what a program that failed wrote to standard error.
func errorOutput(err error) []byte {
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil {
		return nil
	}
	return exit.Stderr
}

// recoverDead ends the sessions whose proxies were killed.
func (w *wrapped) recoverDead() {
	w.t.Helper()
	_, skipped, err := spool.Recover(w.t.Context(), spool.RecoverConfig{Dir: w.spool})
	if err != nil || len(skipped) > 0 {
		w.t.Fatalf("recovering: %v, skipped %v", err, skipped)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	return string(b)
}

const callOne = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work_1"}}` + "\n"
