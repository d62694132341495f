package mcpproxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"auditproxy/mcpproxy"
	"auditproxy/schemas/audit"
)

// batch is one line of n calls whose records are long.
func batch(n int) string {
	var args strings.Builder
	for i := range 60 {
		fmt.Fprintf(&args, `,"a%d":"%s"`, i, strings.Repeat("a", 180))
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work","arguments":{%s}}}`, i+1, args.String()[1:])
	}
	return "[" + b.String()[1:] + "]\n"
}

// numbered checks that the numbers of the records are dense, and returns the
// calls by their error types.
func numbered(t *testing.T, records []audit.Record) map[string]int {
	t.Helper()
	byType := make(map[string]int)
	calls := make(map[uint64]bool)
	for i, r := range records {
		if r.Seq != uint64(i) {
			t.Fatalf("record %d has seq %d", i, r.Seq)
		}
		if r.Kind == audit.KindCall {
			byType[r.ErrorType]++
			calls[r.CallNo] = true
		}
	}
	for no := range uint64(len(calls)) {
		if !calls[no+1] {
			t.Fatalf("no record has call_no %d of %d", no+1, len(calls))
		}
	}
	return byType
}

// A line whose records exceed one write of the journal is recorded like any
// other, before any of it is forwarded.
func TestBatchLongerThanOneAppend(t *testing.T) {
	const n = 900
	line := batch(n)
	for name, policy := range map[string]mcpproxy.Failure{"deny": mcpproxy.Deny, "allow": mcpproxy.Allow} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && policy == mcpproxy.Allow {
				t.Skip("the same goroutines as deny")
			}
			b, records := sent(t, func(c *mcpproxy.Config) {
				c.OnAuditFailure = policy
				c.Drain = time.Minute // bytes that a slow reader does not read are lost
			}, func(p *peer) {
				p.send(line)
			})
			if string(b) != line {
				t.Errorf("the server got %d bytes, want all %d", len(b), len(line))
			}
			if got := numbered(t, records); got[audit.ErrNoResponse] != n || len(records) != n+2 {
				t.Errorf("%d records, calls %v, want %d calls, the start and the end", len(records), got, n)
			}
		})
	}
}

// If the journal fails in the middle of a line, calls in the journal that the
// server does not get have records of that, and the others are in the gap.
// Calls that are forwarded all the same are recorded if the journal has them.
func TestJournalFailsInTheMiddleOfALine(t *testing.T) {
	const n = 900
	line := batch(n)
	const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n"
	const last = `{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"last"}}` + "\n"
	for name, policy := range map[string]mcpproxy.Failure{"deny": mcpproxy.Deny, "allow": mcpproxy.Allow} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && policy == mcpproxy.Allow {
				t.Skip("the same goroutines as deny")
			}
			p := start(t, "cat", func(c *mcpproxy.Config) { c.OnAuditFailure = policy })
			p.journal.room(3 << 20)
			p.send(line + ping)
			got := p.line()
			if refused := strings.Contains(got, "auditproxy refused"); refused != (policy == mcpproxy.Deny) || !refused && got != line {
				t.Errorf("the client got %.200q…, %d bytes", got, len(got))
			}
			if got := p.line(); got != ping {
				t.Errorf("%q comes back, want the ping", got)
			}
			p.journal.room(0)
			p.send(last)
			if got := p.line(); got != last {
				t.Errorf("%q comes back, want the last call", got)
			}
			records := p.wait()
			calls := numbered(t, records)
			var gap audit.Record
			for _, r := range records {
				switch {
				case r.Kind == audit.KindGap && gap.Count == 0:
					gap = r
				case r.Kind == audit.KindGap:
					t.Errorf("another gap: %+v", r)
				case r.Kind == audit.KindCall && r.Forwarded != (r.ErrorType == audit.ErrNoResponse):
					t.Errorf("record = %+v", r)
				}
			}
			written := calls[audit.ErrAuditFailure]
			if policy == mcpproxy.Allow {
				written = calls[audit.ErrNoResponse] - 1
			}
			if written < 100 || int64(written)+gap.Count != n || (gap.Denied == gap.Count) != (policy == mcpproxy.Deny) {
				t.Errorf("%d of %d calls have a record, gap of %d with %d denied; %v", written, n, gap.Count, gap.Denied, calls)
			}
		})
	}
}

// A call in the rest of a line whose begin was refused is not forwarded, and
// its record agrees, also if the journal works again by then.
func TestJournalRecoversInTheMiddleOfARefusedLine(t *testing.T) {
	call := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work"}}`, id)
	}
	b, records := sent(t, nil, func(p *peer) {
		p.send(call(1) + "\n")
		<-p.journal.grew // session_start
		<-p.journal.grew
		p.journal.set(true)
		p.send(call(2))
		p.refused()
		p.journal.set(false)
		p.send(` {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + call(3) + "\n" + call(4) + "\n")
	})
	if s := string(b); strings.Contains(s, `"id":2,"method"`) || strings.Contains(s, `"id":3,"method"`) || !strings.Contains(s, call(4)) {
		t.Errorf("the client got back %s", s)
	}
	if got := numbered(t, records); got[audit.ErrNoResponse] != 2 || got[audit.ErrAuditFailure] != 1 {
		t.Errorf("calls = %v, want two passed on and one refused", got)
	}
	for _, r := range records {
		if r.RequestID == "3" && (r.Forwarded || r.ErrorType != audit.ErrAuditFailure) {
			t.Errorf("the record of what was refused is %+v", r)
		}
		if r.CancelRequested {
			t.Errorf("a cancel that the server did not get is in %+v", r)
		}
	}
}

// A gap is recorded when the journal works again, before any other record.
func TestGapBeforeACancel(t *testing.T) {
	_, records := sent(t, nil, func(p *peer) {
		<-p.journal.grew // session_start
		p.journal.set(true)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work"}}` + "\n")
		p.refused()
		p.journal.set(false)
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n")
	})
	numbered(t, records)
	if len(records) != 3 || records[1].Kind != audit.KindGap || records[1].Count != 1 {
		t.Errorf("records = %+v, want one gap of one call", records)
	}
}
