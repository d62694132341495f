package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
)

// sendPolicy is the policy of the page about the tool send, word for word.
const sendPolicy = "../../mcpproxy/policy/testdata/send/policy.json"

// firstSend is the first id of calls in these tests: no process id is as high.
const firstSend = 10_000_000

// A limited holds what proxies of one server share.
type limited struct {
	t       *testing.T
	proxy   string
	policy  string
	spool   string
	journal string
	argv    []string // of the server
	last    int
}

func newLimited(t *testing.T, proxy string) *limited {
	t.Helper()
	dir := t.TempDir()
	l := &limited{t: t, proxy: proxy, spool: filepath.Join(dir, "spool"), journal: filepath.Join(dir, "journal"), last: firstSend}
	var err error
	l.policy, err = filepath.Abs(sendPolicy)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	server := filepath.Join(dir, "journaling-server")
	must(t, os.Symlink(self, server))
	l.argv = []string{server, "-journal", l.journal}
	return l
}

func (l *limited) start() *wrapped {
	return wrap(l.t, setup{proxy: l.proxy, spool: l.spool, argv: l.argv, flags: []string{"--policy-file", l.policy}})
}

// request returns a call of a tool, with an id of its own.
func (l *limited) request(tool string) (line []byte, id int) {
	l.last++
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":"a"}}}`+"\n", l.last, tool), l.last
}

// executed returns the ids of all calls that any server executed.
func (l *limited) executed() (ids []int) {
	l.t.Helper()
	for line := range strings.Lines(readFile(l.t, l.journal)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		must(l.t, err)
		if n > firstSend {
			ids = append(ids, n)
		}
	}
	return ids
}

// TestTenSendsAMinute runs eight proxies of one server at a time under the
// documented policy of the tool send, and kills and replaces some of them. In no
// minute is an eleventh call of it executed, and never another tool.
func TestTenSendsAMinute(t *testing.T) {
	t.Parallel()
	proxy := program(t)
	rounds := 4
	if soak() {
		rounds = 60
	}
	for round := range rounds {
		l := newLimited(t, proxy)
		killed := 4 * (round % 2) // of eight
		batch := func() (lines []byte) {
			for range 5 {
				line, _ := l.request("send")
				other, _ := l.request("detach")
				lines = append(append(lines, line...), other...)
			}
			return lines
		}
		var wait sync.WaitGroup
		for n := range 8 {
			w, lines := l.start(), batch()
			after := time.Duration(1+7*n+round) * time.Millisecond
			wait.Go(func() {
				w.send(lines) // its error is that the proxy was killed
				if n >= killed {
					w.end()
					return
				}
				first := make(chan struct{})
				go func() {
					defer close(first)
					w.out.ReadByte()
				}()
				<-first // it has decided about a call
				time.AfterFunc(after, func() { w.cmd.Process.Kill() })
				io.Copy(io.Discard, w.out)
				w.wait()
			})
		}
		wait.Wait()
		w := l.start() // after the kills
		must(t, w.send(batch()))
		w.end()
		w.recoverDead()
		l.check(killed == 0)
	}
}

// check compares what was executed with the records, and with exact that the
// limit was used up.
func (l *limited) check(exact bool) {
	l.t.Helper()
	tr := readTrail(l.t, l.spool)
	perMinute, denied := map[time.Time]int{}, map[time.Time]int{}
	for _, id := range l.executed() {
		r := tr.finals[id][0]
		if r.Tool != "send" {
			l.t.Errorf("%s was executed", r.Tool)
		}
		perMinute[r.TS.Truncate(time.Minute)]++
	}
	for id, list := range tr.finals {
		r := list[0]
		if len(list) != 1 {
			l.t.Errorf("call %d has %d records", id, len(list))
		}
		if r.Tool == "send" && r.ErrorType == audit.ErrPolicyDenied {
			denied[r.TS.Truncate(time.Minute)]++
		}
		if r.Tool == "detach" && (r.Forwarded || !strings.Contains(string(r.Policy), `"rule":"(default deny)"`)) {
			l.t.Errorf("detach: forwarded %t, policy %s", r.Forwarded, r.Policy)
		}
	}
	for minute, n := range perMinute {
		if n > 10 || exact && n != 10 && denied[minute] > 0 {
			l.t.Errorf("%d calls were executed in one minute, %d denied", n, denied[minute])
		}
	}
	if len(perMinute) == 0 {
		l.t.Error("nothing was executed")
	}
}

// TestCounterUnusable denies calls whose counter cannot be used, with the reason
// in the answer and in the record.
func TestCounterUnusable(t *testing.T) {
	t.Parallel()
	proxy := program(t)
	for _, tt := range []struct {
		name, reason string
		harm         func(t *testing.T, dir, file string)
	}{
		{"torn", "its counter is damaged", func(t *testing.T, _, file string) { must(t, os.Truncate(file, 200)) }},
		{"empty", "its counter is damaged", func(t *testing.T, _, file string) { must(t, os.Truncate(file, 0)) }},
		{"open to others", "its counter is not this user's own file", func(t *testing.T, _, file string) { must(t, os.Chmod(file, 0o666)) }},
		{"new in an open directory", "its counter is not this user's own file", func(t *testing.T, dir, file string) {
			must(t, os.Remove(file))
			must(t, os.Chmod(dir, 0o777))
		}},
		{"of another user", "its counter is not this user's own file", func(t *testing.T, _, file string) {
			dev.Superuser(t)
			must(t, os.Chown(file, 1, 1))
		}},
		{"a link", "its counter is not this user's own file", func(t *testing.T, dir, file string) {
			must(t, os.Rename(file, filepath.Join(dir, "..", "elsewhere")))
			must(t, os.Symlink("../elsewhere", file))
		}},
		{"on a full disk", "its counter cannot be written", func(t *testing.T, dir, _ string) {
			dev.SmallDisk(t, dir, "4k")
			must(t, os.WriteFile(filepath.Join(dir, "rubbish"), make([]byte, 4096), 0o600))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, proxy)
			w := l.start()
			line, _ := l.request("send")
			must(t, w.send(line))
			if a, err := w.read(); err != nil || a.Result.IsError {
				t.Fatalf("before: %+v, %v", a, err)
			}
			dir := filepath.Join(l.spool, "counters")
			files, err := filepath.Glob(filepath.Join(dir, "*.counters"))
			must(t, err)
			if len(files) != 1 {
				t.Fatalf("counters: %q", files)
			}
			tt.harm(t, dir, files[0])
			want := "[POLICY DENIED] A limit cannot be applied: " + tt.reason
			for _, w := range []*wrapped{w, l.start()} {
				line, id := l.request("send")
				must(t, w.send(line))
				a, err := w.read()
				if err != nil || a.ID != id || !a.Result.IsError || len(a.Result.Content) != 1 || a.Result.Content[0].Text != want {
					t.Errorf("after: %+v, %v, want %q", a, err, want)
				}
				if status := w.end(); status != 0 {
					t.Errorf("status %#x", status)
				}
				if log := w.stderr.String(); strings.Count(log, "policy counter not usable") != 1 {
					t.Errorf("log: %s", log)
				}
			}
			if n := len(l.executed()); n != 1 {
				t.Errorf("%d calls were executed, want one", n)
			}
			for _, list := range readTrail(t, l.spool).finals {
				if r := list[0]; r.ErrorType == audit.ErrPolicyDenied && !strings.Contains(string(r.Policy), tt.reason) {
					t.Errorf("policy %s", r.Policy)
				}
			}
		})
	}
}
