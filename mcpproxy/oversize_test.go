package mcpproxy_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// oversized is a call whose tool and id come after more bytes than are kept.
func oversized(head string) (start, end string) {
	return `{"jsonrpc":"2.0",` + head + `"method":"tools/call","params":{"arguments":{"n":1,"b":true,"z":null,"l":[],"d":{},"keys":"` + strings.Repeat("k", wire.Limit+1<<20),
		`"},"name":"late"},"id":1}` + "\n"
}

// sent sends a client's bytes through a server that echoes, and returns the
// server's input and the records.
func sent(t *testing.T, change func(*mcpproxy.Config), client func(*peer)) ([]byte, []audit.Record) {
	t.Helper()
	p := start(t, "cat", change)
	got := make(chan []byte)
	go func() {
		var b []byte
		for err := error(nil); err == nil; {
			var line []byte
			line, err = p.out.ReadBytes('\n')
			if b = append(b, line...); bytes.Contains(line, []byte("auditproxy refused")) {
				select {
				case p.refusals <- struct{}{}:
				default:
				}
			}
		}
		got <- b
	}()
	client(p)
	p.in.Close()
	b := <-got
	<-p.done
	if p.err != nil {
		t.Fatal(p.err)
	}
	return b, p.journal.records(t)
}

// refused waits until the client gets a new refusal.
func (p *peer) refused() {
	p.t.Helper()
	select {
	case <-p.refusals:
	case <-p.done:
		p.t.Fatal("the proxy has ended: nothing is refused")
	case <-time.After(patience):
		p.t.Fatal("nothing is refused")
	}
}

// executed are the calls that a server reading lines finds.
func executed(stream []byte) (n int) {
	for line := range bytes.Lines(stream) {
		var m struct{ Params struct{ Name string } }
		if json.Unmarshal(line, &m) == nil && m.Params.Name == "late" {
			n++
		}
	}
	return n
}

// A call of any length has its intent before more than the limit is forwarded,
// and its tool and parts in the record.
func TestOversizeCall(t *testing.T) {
	head, tail := oversized("")
	b, records := sent(t, nil, func(p *peer) { p.send(head + tail) })
	if executed(b) != 1 || len(b) != len(head+tail) {
		t.Errorf("the server got %d bytes and %d calls, want all of one", len(b), executed(b))
	}
	if len(records) != 3 {
		t.Fatalf("records = %+v, want one call's", records)
	}
	r := records[1]
	if r.Tool != "late" || r.RequestID != "1" || r.CallNo != 1 {
		t.Errorf("record = %+v, want tool and id", r)
	}
	for _, part := range []string{
		`"n":{"type":"number","bytes":1,`, `"b":{"type":"bool","bytes":4,`, `"z":{"type":"NoneType","bytes":4,`,
		`"l":{"type":"list","bytes":2,`, `"d":{"type":"dict","bytes":2,`, `"keys":{"type":"str","bytes":17825794,`,
	} {
		if !strings.Contains(string(r.Args), part) {
			t.Errorf("args = %s, want %s…", r.Args, part)
		}
	}
	if len(r.Anomalies) != 1 || r.Anomalies[0] != "oversize" {
		t.Errorf("anomalies = %v, want oversize", r.Anomalies)
	}
}

// A call refused at its begin is not forwarded at all, and is answered once.
func TestOversizeRefused(t *testing.T) {
	head, tail := oversized(`"method":"ping",`)
	b, records := sent(t, func(c *mcpproxy.Config) { c.DenyAmbiguous = true }, func(p *peer) { p.send(head + tail + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n") })
	if n := bytes.Count(b, []byte("\n")); executed(b) != 0 || n != 2 || !bytes.Contains(b, []byte(`"id":1,"result"`)) || !bytes.Contains(b, []byte(`"id":2,"method":"ping"`)) {
		t.Errorf("the client got %.300q, want one refusal and the ping", b)
	}
	if len(records) != 3 || records[1].ErrorType != audit.ErrAmbiguousRequest || records[1].Forwarded {
		t.Errorf("records = %+v, want one refused call", records)
	}
}

// If the journal fails, an oversize call does not reach the server in a form
// that it could execute, whether it fails before the call's begin or between
// that and its end.
func TestOversizeUnrecorded(t *testing.T) {
	for name, failAt := range map[string]int{"begin": 0, "end": 1} {
		t.Run(name, func(t *testing.T) {
			head, tail := oversized("")
			b, records := sent(t, nil, func(p *peer) {
				<-p.journal.grew // session_start
				if failAt == 0 {
					p.journal.set(true)
				}
				p.send(head)
				if failAt == 1 {
					<-p.journal.grew // the intent
					p.journal.set(true)
				}
				p.send(tail)
				p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n")
			})
			if executed(b) != 0 || !bytes.Contains(b, []byte(`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")) {
				t.Errorf("the server got %d calls and … %q, want none and the ping", executed(b), b[max(0, len(b)-300):])
			}
			for _, r := range records {
				if r.Kind == audit.KindCall && r.Outcome == audit.OutcomeOK {
					t.Errorf("record = %+v, want none that says ok", r)
				}
			}
		})
	}
}

// A server answers a call that it has only a part of. If answers wait for their
// records, it is forwarded with the rest of the call, or when the server ends.
func TestOversizeAnsweredEarly(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	_, rest := oversized("")
	begin := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"path":"` + strings.Repeat("k", wire.Limit+1<<20)
	for _, end := range []string{"rest", "exit"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			script := "head -c 1000000 >/dev/null; echo '" + strings.TrimSpace(answer) + "'; "
			if end == "rest" {
				script += "cat >/dev/null"
			}
			p := start(t, "", func(c *mcpproxy.Config) {
				c.Command, c.Env = []string{"/bin/sh", "-c", script}, os.Environ()
				c.WaitIntent, c.WaitFinal = true, true
			})
			io.WriteString(p.in, begin) // a server that is gone reads no more
			if end == "rest" {
				p.outFile.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				if s, err := p.out.ReadString('\n'); err == nil {
					t.Errorf("%q has no record yet", s)
				}
				p.send(rest)
			}
			if got := p.line(); got != answer {
				t.Errorf("the client reads %q, want the answer", got)
			}
			if records := p.journal.records(t); len(records) < 2 || records[1].Kind != audit.KindCall || records[1].Outcome != audit.OutcomeOK {
				t.Errorf("records %+v when the answer comes, want that of the call", records)
			}
			p.wait()
		})
	}
}

// A batch with more messages than wait for its end is denied where every tool is allowed:
// its last call could be one that is denied when the server has the first ones.
func TestLongBatchIsDenied(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	b, records := sent(t, func(c *mcpproxy.Config) { c.Gate = testGate(t, `{"version":"1","default":"allow"}`) },
		func(p *peer) { p.send("[" + strings.Repeat(call+",", 2*wire.MaxBatch) + call + "]\n") })
	if executed(b) != 0 {
		t.Errorf("the server got %d of the calls", executed(b))
	}
	calls := 0
	for _, r := range records {
		if r.Kind != audit.KindCall {
			continue
		}
		calls++
		if r.Forwarded || !strings.Contains(string(r.Policy), `"rule":"(oversize)"`) {
			t.Fatalf("record %+v, want one of a call that was denied for the batch", r)
		}
	}
	if calls != 2*wire.MaxBatch+1 {
		t.Errorf("%d calls have a record, want all %d", calls, 2*wire.MaxBatch+1)
	}
}

// No policy can decide a call that is not kept whole: it is denied where every
// tool is allowed, and no server gets any of it.
func TestOversizeCallIsDenied(t *testing.T) {
	head, tail := oversized("")
	b, records := sent(t, func(c *mcpproxy.Config) { c.Gate = testGate(t, `{"version":"1","default":"allow"}`) },
		func(p *peer) { p.send(head + tail) })
	if executed(b) != 0 || len(b) > 1<<10 || !bytes.Contains(b, []byte("[POLICY DENIED] It is too large to be decided.")) {
		t.Errorf("the client got %d bytes, which begin %.300q: want only a refusal", len(b), b)
	}
	calls := 0
	for _, r := range records {
		if r.Kind != audit.KindCall {
			continue
		}
		calls++
		if r.ErrorType != audit.ErrPolicyDenied || r.Forwarded || !strings.Contains(string(r.Policy), `"rule":"(oversize)"`) {
			t.Errorf("record %+v, want one of a denied call", r)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls have a record, want 1", calls)
	}
}
