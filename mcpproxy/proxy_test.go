package mcpproxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain makes the test binary double as the wrapped server.
func TestMain(m *testing.M) {
	if script := os.Getenv("TEST_SERVER_SCRIPT"); script != "" {
		os.Exit(serve(script))
	}
	goleak.VerifyTestMain(m)
}

// serve acts a server by a script, a step a line:
//
//	<            read a line from the client
//	> TEXT       write TEXT and a line feed
//	>> TEXT      write TEXT
//	err TEXT     write TEXT and a line feed to standard error
//	eof          read to the end of the input
//	cat          copy the input to the output
//	close        close the output
//	closein      close the input
//	spawn        leave a child behind that holds the output open
//	ignore       ignore SIGTERM from here on
//	hang         wait for ever
//	env          write the environment and the open descriptors
//	exit N       exit with code N
//	kill N       die of signal N
func serve(script string) int {
	in := bufio.NewReader(os.Stdin)
	for step := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(step, "\n"), " ")
		n, _ := strconv.Atoi(rest)
		switch verb {
		case "":
		case "<":
			in.ReadBytes('\n')
		case ">":
			fmt.Println(rest)
		case ">>":
			fmt.Print(rest)
		case "err":
			fmt.Fprintln(os.Stderr, rest)
		case "eof":
			io.Copy(io.Discard, in)
		case "cat":
			io.Copy(os.Stdout, in)
		case "close":
			os.Stdout.Close()
		case "closein":
			os.Stdin.Close()
		case "spawn":
			syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		case "ignore":
			ignoreTerm()
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/ready"}`)
		case "hang":
			<-time.After(time.Hour) // without a timer, Go would end it as a deadlock
		case "env":
			fds, _ := os.ReadDir("/proc/self/fd")
			fmt.Printf("%q %q\n", os.Environ(), describeFDs(fds))
		case "exit":
			return n
		case "kill":
			syscall.Kill(os.Getpid(), syscall.Signal(n))
			<-time.After(time.Hour) // without a timer, Go would end it as a deadlock
		default:
			panic("unknown step " + verb)
		}
	}
	return 0
}

// describeFDs leaves out files that the runtime opened: the directory, the
// poller and the limits on processors.
func describeFDs(fds []os.DirEntry) (list []string) {
	for _, fd := range fds {
		to, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			list = append(list, fd.Name())
		}
	}
	return list
}

// memory is a journal that can be made to fail, in both ways a write fails.
type memory struct {
	mu     sync.Mutex
	lines  bytes.Buffer
	broken bool
	slow   bool // a Wait with a limit runs into it
	waits  int
	full   int // length that it does not grow beyond; 0: none
	grew   chan struct{}
}

// room lets n more bytes into the journal; 0: any number.
func (m *memory) room(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full = 0; n > 0 {
		m.full = m.lines.Len() + n
	}
}

func (m *memory) Append(lines []byte, final bool) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken || m.full > 0 && m.lines.Len()+len(lines) > m.full {
		return 0, errors.New("no space left on device")
	}
	if len(lines) > 8<<20 {
		return 0, errors.New("more than a segment holds")
	}
	m.lines.Write(lines)
	select {
	case m.grew <- struct{}{}:
	default:
	}
	return int64(m.lines.Len()), nil
}

func (m *memory) Wait(pos int64, limit time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits++
	return !m.slow || limit == 0
}

func (m *memory) Last() {}

func (m *memory) set(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

func (m *memory) finals() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Count(m.lines.Bytes(), []byte(`"kind":"call"`))
}

// records are those written so far.
func (m *memory) records(t *testing.T) (list []audit.Record) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for line := range bytes.Lines(m.lines.Bytes()) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if !audit.Check(line) {
			t.Fatalf("line is not sealed: %s", line)
		}
		kind, r, err := audit.ParseLine(line)
		if err != nil {
			t.Fatalf("parsing %s: %v", line, err)
		}
		if kind == audit.LineRecord {
			list = append(list, r)
		}
	}
	return list
}

// peer is the client's end of a running proxy.
type peer struct {
	t       *testing.T
	in      *os.File // to the proxy
	out     *bufio.Reader
	outFile *os.File
	proxy   *mcpproxy.Proxy
	journal *memory
	signals chan os.Signal
	done    chan struct{}
	status  mcpproxy.Status
	err     error

	refusals chan struct{} // see sent
}

func start(t *testing.T, script string, change func(*mcpproxy.Config)) *peer {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	red, err := redact.New(redact.Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, in: inW, out: bufio.NewReader(outR), outFile: outR, journal: &memory{grew: make(chan struct{}, 1)}, signals: make(chan os.Signal, 4), done: make(chan struct{}), refusals: make(chan struct{}, 1)}
	c := mcpproxy.Config{
		Command:  []string{exe},
		Env:      []string{"TEST_SERVER_SCRIPT=" + script, "GORACE=atexit_sleep_ms=0"},
		In:       inR,
		Out:      outW,
		Journal:  p.journal,
		Redactor: red,
		Base:     audit.Record{SessionID: "s", Host: "h", User: "u", PID: 1},
		Signals:  p.signals,
	}
	if change != nil {
		change(&c)
	}
	proxy, err := mcpproxy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.proxy = proxy
	go func() {
		defer close(p.done)
		p.status, p.err = proxy.Run(context.Background())
		proxy.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		select {
		case <-p.done:
		default:
			p.signals <- syscall.SIGTERM
			<-p.done
		}
	})
	return p
}

func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, s); err != nil {
		p.t.Fatalf("sending %q: %v", s, err)
	}
}

// patience is how long a test waits for immediate events.
const patience = 3 * time.Minute

// line is the next line from the proxy, or why there is none.
func (p *peer) line() string {
	p.t.Helper()
	p.outFile.SetReadDeadline(time.Now().Add(patience))
	defer p.outFile.SetReadDeadline(time.Time{})
	s, err := p.out.ReadString('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.t.Fatalf("no line came from the proxy, only %q", s)
	case err != nil && s == "":
		return err.Error()
	}
	return s
}

// recorded waits until so many calls have their record: an answer is forwarded
// before its call's.
func (p *peer) recorded(calls int) {
	p.t.Helper()
	late := time.After(patience)
	for p.journal.finals() < calls {
		select {
		case <-p.journal.grew:
		case <-p.done:
			if p.journal.finals() < calls {
				p.t.Fatal("the proxy has ended, and a call that was answered has no record")
			}
		case <-late:
			p.t.Fatal("a call that was answered gets no record")
		}
	}
}

// ended waits for the end of the proxy.
func (p *peer) ended() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("the proxy does not end")
	}
}

// wait closes the client's side and returns the records once all is over.
func (p *peer) wait() []audit.Record {
	p.t.Helper()
	p.in.Close()
	p.outFile.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, p.out); errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatal("the proxy does not close its output")
	}
	p.ended()
	if p.err != nil {
		p.t.Fatal(p.err)
	}
	return p.journal.records(p.t)
}

// TestConversations plays the files of testdata/conversation. Each begins with
// prose; then come flags, the server's script (see serve), what the client does
// and the records. The client's steps are
//
//	> TEXT    send TEXT and a line feed
//	>> TEXT   send TEXT
//	<         read a line; the golden file shows it as "< LINE"
//	asked N   wait for the question about call N
//	answer N TEXT  answer the question about call N, once it is asked
//	policy N  have the policy in section "policy N" replace the one in force
//	recorded N  wait until N calls have their record
//	full      fail the journal from here on
//	free      let the journal work again
//	eof       close the input
//	gone      close the input and the output
//	signal N  send a signal to the proxy
//	ended     wait for the end
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversation/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := string(txtar.Format(ar))
			play(t, ar)
			got := txtar.Format(ar)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("conversation differs (-want +got):\n%s", diff)
			}
		})
	}
}

func play(t *testing.T, ar *txtar.Archive) {
	section := map[string]*[]byte{}
	for i := range ar.Files {
		section[ar.Files[i].Name] = &ar.Files[i].Data
	}
	for _, name := range []string{"server", "client", "records"} {
		if section[name] == nil {
			t.Fatalf("no section %q", name)
		}
	}
	var questions *approval.Dir
	p := start(t, string(*section["server"]), func(c *mcpproxy.Config) {
		if flags := section["flags"]; flags != nil {
			c.DenyAmbiguous = bytes.Contains(*flags, []byte("deny-ambiguous"))
			c.WaitIntent = bytes.Contains(*flags, []byte("wait-intent"))
			c.WaitFinal = bytes.Contains(*flags, []byte("wait-final"))
			if bytes.Contains(*flags, []byte("allow")) {
				c.OnAuditFailure = mcpproxy.Allow
			}
			if bytes.Contains(*flags, []byte("slow-sync")) {
				c.SyncWait = time.Millisecond
				p, _ := c.Journal.(*memory)
				p.slow = true
			}
		}
		if flags := section["flags"]; flags != nil && bytes.Contains(*flags, []byte("files")) {
			c.Approval = testFiles(t, *flags)
			questions = c.Approval.Files
		}
		if section["policy"] != nil {
			c.Gate = testGate(t, string(*section["policy"]))
		}
	})
	var client bytes.Buffer
	names := generated{}
	for step := range strings.Lines(string(*section["client"])) {
		step = strings.TrimSuffix(step, "\n")
		verb, rest, _ := strings.Cut(step, " ")
		switch verb {
		case "<":
			line := names.hide(strings.TrimSuffix(p.line(), "\n"))
			if rest != line && !*update {
				// The steps after a wrong line may wait forever.
				t.Fatalf("the client got\n%s\nwant\n%s", line, rest)
			}
			step = "< " + line
		case ">":
			p.send(unescape(names.show(rest)) + "\n")
		case ">>":
			p.send(unescape(rest))
		case "policy":
			if err := p.proxy.SetGate(testGate(t, string(*section["policy "+rest]))); err != nil {
				t.Fatal(err)
			}
		case "asked":
			n, _ := strconv.ParseUint(rest, 10, 64)
			p.question(questions, n)
		case "answer":
			p.answer(questions, rest)
		case "recorded":
			n, _ := strconv.Atoi(rest)
			p.recorded(n)
		case "full", "free":
			p.journal.set(verb == "full")
		case "eof":
			p.in.Close()
		case "signal":
			n, _ := strconv.Atoi(rest)
			p.signals <- syscall.Signal(n)
		case "gone":
			p.in.Close()
			p.outFile.Close()
		case "ended":
			p.ended()
		case "", "#":
		default:
			t.Fatalf("unknown step %q", step)
		}
		fmt.Fprintln(&client, step)
	}
	*section["client"] = client.Bytes()
	*section["records"] = golden(p.wait())
	if status := section["status"]; status != nil {
		*status = fmt.Appendf(nil, "code %d signal %d\n", p.status.Code, p.status.Signal)
	}
}

// generated replaces the ids of the proxy's questions, which differ from run to
// run: the last of each kind.
type generated map[string]string

func (g generated) hide(line string) string {
	line = regexp.MustCompile("question: `[0-9a-f-]{36}`(.* at )[0-9:]{8} UTC").ReplaceAllString(line, "question: `ID`${1}TIME")
	for name, pattern := range map[string]string{"REQUEST": `auditproxy-[A-Z2-7]{26}-`, "QUESTION": `auditproxy:s:[0-9a-f-]{36}`} {
		line = regexp.MustCompile(pattern).ReplaceAllStringFunc(line, func(id string) string {
			g[name] = id
			return name
		})
	}
	return line
}

func (g generated) show(line string) string {
	for name, id := range g {
		line = strings.ReplaceAll(line, name, id)
	}
	return line
}

// testFiles asks in a directory of its own, by default for longer than a test
// waits. "timeout=DURATION" in flags is another time.
func testFiles(t *testing.T, flags []byte) mcpproxy.Approval {
	t.Helper()
	dir, err := approval.Open(approval.Config{Dir: filepath.Join(t.TempDir(), "approvals"), Own: true, SameUser: true})
	if err != nil {
		t.Fatal(err)
	}
	a := mcpproxy.Approval{Channels: []string{mcpproxy.ChannelClient, mcpproxy.ChannelFiles}, Files: dir, Timeout: 2 * patience, ServerKey: "0123456789abcdef"}
	if _, text, ok := strings.Cut(string(flags), "timeout="); ok {
		if a.Timeout, err = time.ParseDuration(strings.Fields(text)[0]); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// question waits for the question about a call. There is none about one that has ended.
func (p *peer) question(dir *approval.Dir, callNo uint64) approval.Question {
	p.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); ; {
		records := p.journal.records(p.t) // before the questions: a call ends after its own
		list, err := dir.Waiting()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, q := range list {
			if slices.ContainsFunc(q.Calls, func(c approval.Call) bool { return c.CallNo == callNo }) {
				return q
			}
		}
		for _, r := range records {
			if r.Kind == audit.KindCall && r.CallNo == callNo {
				p.t.Fatalf("call %d has ended as %s without a question: %s", callNo, r.Outcome, r.ErrorType)
			}
		}
		p.pause(look.C, late, fmt.Sprint("there is no question about call ", callNo))
	}
}

// pause waits for the time to look again, and fails when it is late, or the proxy has ended.
func (p *peer) pause(look, late <-chan time.Time, why string) {
	p.t.Helper()
	select {
	case <-look:
	case <-late:
		p.t.Fatal(why)
	case <-p.done:
		p.t.Fatal("the proxy has ended: " + why)
	}
}

// answer plays "N TEXT": it writes the answer as a person might.
func (p *peer) answer(dir *approval.Dir, step string) {
	p.t.Helper()
	no, text, _ := strings.Cut(step, " ")
	n, _ := strconv.ParseUint(no, 10, 64)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	name := filepath.Join(dir.Path(), p.question(dir, n).ID+".answer")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	for late := time.After(patience); errors.Is(err, fs.ErrExist); { // until the answer before is set aside
		p.pause(look.C, late, "an answer that does not count stays")
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// testGate is the gate of a policy, in the mode that it names; of none if source is "".
func testGate(t *testing.T, source string) mcpproxy.Gate {
	t.Helper()
	if source == "" {
		a, err := risk.New(risk.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return mcpproxy.Gate{Risk: a}
	}
	p, err := policy.Load([]byte(source), "policy.json")
	if err != nil {
		t.Fatal(err)
	}
	c := risk.Config{Text: func(dst, text []byte) []byte { return append(dst, text...) }}
	for _, o := range p.Risk {
		c.Risk = append(c.Risk, risk.Override(o))
	}
	a, err := risk.New(c)
	if err != nil {
		t.Fatal(err)
	}
	mode := policy.Enforce
	if p.Mode != "" {
		mode = p.Mode
	}
	return mcpproxy.Gate{Risk: a, Policy: p, Mode: mode, Counters: &policy.Memory{}, Source: "policy.json"}
}

// unescape lets a conversation hold bytes that a text file cannot.
func unescape(s string) string {
	return strings.NewReplacer(`<CR>`, "\r", `<LF>`, "\n", `<FF>`, "\xff", `<BOM>`, "\ufeff").Replace(s)
}

// golden are the records without the values that differ from run to run.
func golden(records []audit.Record) []byte {
	var out bytes.Buffer
	calls := map[string]uint64{} // by id of the record
	for i := range records {
		calls[records[i].RecordID] = records[i].CallNo
	}
	for i := range records {
		r := &records[i]
		r.RecordID, r.TS, r.Duration = "", time.Time{}, -1
		r.SessionID, r.Host, r.User, r.PID, r.Server, r.Client = "", "", "", 0, audit.Peer{}, audit.Peer{}
		if !r.From.IsZero() {
			r.From, r.To = time.Time{}, time.Time{}
		}
		if a, err := audit.ParseApproval(r.Approval); err == nil && r.Approval != "" {
			if a.WaitMS, a.User = 0, ""; a.Request != "" {
				a.Request = fmt.Sprintf("call %d", calls[a.Request])
			}
			r.Approval = a.JSON()
		}
		line := audit.AppendRecord(nil, r)
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintf(&out, "%v: %s", err, line)
			continue
		}
		delete(m, "crc")
		for _, name := range []string{"v", "ts", "from", "to"} {
			delete(m, name)
		}
		names := make([]string, 0, len(m))
		for name := range m {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			return bytes.Index(line, []byte(`"`+a+`":`)) - bytes.Index(line, []byte(`"`+b+`":`))
		})
		for i, name := range names {
			v, _ := json.Marshal(m[name])
			if i > 0 {
				out.WriteByte(' ')
			}
			fmt.Fprintf(&out, "%s=%s", name, v)
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}
