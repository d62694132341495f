package mcpproxy_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy"
	"auditproxy/schemas/audit"
)

// stream makes bytes that look like traffic, in whole or in part.
func stream(rng *rand.Rand, n int) []byte {
	pieces := []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"keys":"x"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `{"a":[[[`, `]]}`, "\"unterminated", "\\", "\xff\xfe", "\ufeff", "\x00",
		"\r", "\r\n", "\n", "\n\n", " ", "NaN", "{", "}", "[", "]", ",", ":", "\"\\ud800\"", strings.Repeat("x", 70000),
	}
	var b []byte
	for len(b) < n {
		b = append(b, pieces[rng.IntN(len(pieces))]...)
		if rng.IntN(3) == 0 {
			b = append(b, '\n')
		}
	}
	return b
}

// Bytes are identical and in order, both ways, and each end of input is
// forwarded.
func TestBytesAreIdentical(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		in := stream(rng, 1<<rng.IntN(20))
		p := start(t, "cat", func(c *mcpproxy.Config) { c.Drain = time.Minute }) // bytes that a slow reader does not read are lost
		go func() {
			for rest := in; len(rest) > 0; {
				n := min(1+rng.IntN(100000), len(rest))
				p.in.Write(rest[:n])
				rest = rest[n:]
			}
			p.in.Close()
		}()
		out, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(in, out) {
			t.Fatalf("seed %d: %d bytes went in, %d came out, first difference at %d", seed, len(in), len(out), firstDifference(in, out))
		}
		p.wait()
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// The last answer before an exit always arrives.
func TestLastAnswerArrives(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	for i := range 100 {
		p := start(t, "<\n> "+strings.TrimSpace(answer)+"\nexit 0", nil)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n")
		if got := p.line(); got != answer {
			t.Fatalf("run %d: answer = %q, want %q", i, got, answer)
		}
		<-p.done
		records := p.wait()
		if n := len(records); n != 3 || records[1].Outcome != audit.OutcomeOK {
			t.Fatalf("run %d: records = %+v, want the call's between start and end", i, records)
		}
	}
}

// The server sees none of the proxy's variables and no descriptor above 2, even
// one that the proxy's parent forgot to close.
func TestChildInheritsNothing(t *testing.T) {
	leak, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	p := start(t, "env", func(c *mcpproxy.Config) {
		c.Env = mcpproxy.ChildEnv(append(c.Env, "AUDITPROXY_KAFKA_SASL_PASSWORD=canary", "TOKEN=canary", "TMUX=/tmp/x,1,2"), []string{"TOKEN"})
	})
	got := p.line()
	p.wait()
	if strings.Contains(got, "canary") || !strings.Contains(got, "TMUX=/tmp/x,1,2") {
		t.Errorf("environment = %s, want TMUX and no canary", got)
	}
	if _, fds, _ := strings.Cut(got, "] "); strings.TrimSpace(fds) != `["0" "1" "2"]` {
		t.Errorf("descriptors = %s, want 0, 1 and 2", fds)
	}
}

// The server's standard error is the file given for it: its bytes are not
// relayed, and arrive unchanged.
func TestStandardErrorIsHandedOver(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const text = "loud \xff\x1b[31m"
	p := start(t, "err "+text+"\n> {}\neof", func(c *mcpproxy.Config) { c.Stderr = w })
	if got := p.line(); got != "{}\n" {
		t.Errorf("standard output = %q, want {}", got)
	}
	p.wait()
	w.Close()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != text+"\n" {
		t.Errorf("standard error = %q, %v, want %q", got, err, text)
	}
}

func TestChildEnv(t *testing.T) {
	env := []string{"A=1", "AUDITPROXY_X=2", "B", "SECRET=3", "AUDITPROXYX=4"}
	want := []string{"A=1", "B", "AUDITPROXYX=4"}
	if diff := cmp.Diff(want, mcpproxy.ChildEnv(env, []string{"SECRET"})); diff != "" {
		t.Errorf("ChildEnv (-want +got):\n%s", diff)
	}
}

// A client that does not read holds the server back and costs no memory, and
// the server's earlier answers are recorded.
func TestClientDoesNotRead(t *testing.T) {
	p := start(t, "<\n> "+`{"jsonrpc":"2.0","id":1,"result":{}}`+"\ncat", nil)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n")
	p.line()
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		p.in.Write(bytes.Repeat([]byte(`{"jsonrpc":"2.0","method":"notifications/x"}`+"\n"), 100000))
	}()
	records := p.journal.records(t)
	for len(records) < 2 { // the record follows the answer
		<-p.journal.grew
		records = p.journal.records(t)
	}
	if got := records[1].Outcome; got != audit.OutcomeOK {
		t.Errorf("outcome = %q, want ok", got)
	}
	io.Copy(io.Discard, io.LimitReader(p.out, 1<<20))
	go io.Copy(io.Discard, p.out)
	<-blocked
	p.in.Close()
	<-p.done
}

// A server that cannot be started leaves only the end of a session.
func TestCommandNotFound(t *testing.T) {
	p := start(t, "", func(c *mcpproxy.Config) { c.Command = []string{"/no/such/server"} })
	<-p.done
	if p.err == nil || !strings.Contains(p.err.Error(), `starting "/no/such/server"`) {
		t.Errorf("err = %v, want one that names the command", p.err)
	}
	kinds := []audit.Kind{}
	for _, r := range p.journal.records(t) {
		kinds = append(kinds, r.Kind)
	}
	if want := []audit.Kind{audit.KindSessionStart, audit.KindSessionEnd}; !slices.Equal(kinds, want) {
		t.Errorf("records = %v, want %v", kinds, want)
	}
}

// If nothing can be recorded, the server is never started.
func TestNothingStartsUnrecorded(t *testing.T) {
	side := t.TempDir() + "/started"
	p := start(t, "", func(c *mcpproxy.Config) {
		c.Command = []string{"/bin/sh", "-c", "touch " + side}
		c.Journal.(*memory).broken = true
	})
	<-p.done
	if p.err == nil || !strings.Contains(p.err.Error(), mcpproxy.ErrNotRecorded.Error()) {
		t.Errorf("err = %v, want %v", p.err, mcpproxy.ErrNotRecorded)
	}
	if _, err := os.Stat(side); err == nil {
		t.Error("the server was started")
	}
}
