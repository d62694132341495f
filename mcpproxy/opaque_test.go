package mcpproxy

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// Ambiguous input that is refused has a record with the digest of its bytes, and
// nothing of it reaches the server, however it is cut and however long it is.
func TestOpaqueLinesAreRefused(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	long := strings.Repeat("}x", wire.Limit/2+100)
	for _, tt := range []struct {
		name  string
		reads []string
		calls []string // the request ids of the refused ones, "" for opaque
		bytes int64    // of the last one
	}{
		{"junk", []string{"}x\n"}, []string{""}, 2},
		{"junk in pieces", []string{"}", "x", "\n"}, []string{""}, 2},
		{"junk before a call", []string{"x " + call + "\n"}, []string{"1", ""}, int64(len(call)) + 2},
		{"UTF-16", []string{"{\x00}\x00\n\x00" + "x\n"}, []string{"", ""}, 2},
		{"a bare CR", []string{"}\rx\n"}, []string{""}, 3},
		{"oversize", []string{long[:1000], long[1000:] + "\n"}, []string{""}, wire.Limit},
		{"oversize object", []string{`{"a":"` + long[:1000] + "\x01", long + "\n"}, []string{""}, wire.Limit},
		{"oversize list", []string{"[" + strings.Repeat("1,", wire.Limit/2+100) + "1]\n"}, []string{""}, wire.Limit},
		{"oversize without its line feed", []string{long}, []string{""}, wire.Limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := os.CreateTemp(t.TempDir(), "out")
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			c, j := testSession(t)
			c.s.cfg.DenyAmbiguous = true
			var server bytes.Buffer
			c.server, c.out = &server, newOutput(out)
			q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
			defer q.Close()
			for _, read := range tt.reads {
				for len(read) > 0 {
					n := copy(q.Space(), read)
					read = read[n:]
					for more := true; more; n, more = 0, q.More() {
						c.forward(q.Scan(n), q.Ready())
					}
				}
			}
			q.Space()
			c.forward(q.End(), q.Ready())
			c.s.end(audit.ErrNoResponse)
			if server.Len() > 0 {
				t.Errorf("the server gets %.100q", server.String())
			}
			got, err := os.ReadFile(out.Name())
			for i, answer := range slices.Collect(bytes.Lines(got)) {
				if id := cmp.Or(tt.calls[i], "null"); !bytes.Contains(answer, []byte(`"id":`+id+`,`)) || !bytes.Contains(answer, []byte("auditproxy refused")) {
					t.Errorf("answer %d is %s, want a refusal of %q", i, answer, tt.calls[i])
				}
			}
			if n := bytes.Count(got, []byte("\n")); n != len(tt.calls) || err != nil {
				t.Errorf("%d answers, %v, want one for each of %q", n, err, tt.calls)
			}
			records := j.records(t)
			dense(t, records)
			for i, r := range records[:len(records)-1] {
				if i >= len(tt.calls) || r.RequestID != tt.calls[i] || r.ErrorType != audit.ErrAmbiguousRequest || r.Forwarded || r.CallNo != uint64(i+1) {
					t.Errorf("record %d = %+v, want a refusal of %q", i, r, tt.calls)
				}
			}
			if r := records[len(records)-2]; r.Bytes != tt.bytes || !strings.Contains(string(r.Digest), fmt.Sprintf(`"bytes":%d`, tt.bytes)) {
				t.Errorf("the last record has %d bytes and digest %s, want %d", r.Bytes, r.Digest, tt.bytes)
			}
		})
	}
}

// An opaque call is answered without an id, or with one that nobody can read.
// An id that is an open call's ends that one, and one that no call has ends
// none.
func TestAnswersToOpaqueCalls(t *testing.T) {
	opaque := func(off int64) *wire.Message {
		return &wire.Message{State: wire.Opaque, Off: off, End: off + 1, Raw: []byte("}"), Anomalies: wire.NotJSON}
	}
	const failed = `"error":{"code":-32700,"message":"m"}`
	for _, tt := range []struct {
		answer string
		ends   uint64 // call_no: 1 and 3 are opaque, 2 has the id 7; 0: none
	}{
		{`{"jsonrpc":"2.0","id":null,` + failed + `}`, 1},
		{`{"jsonrpc":"2.0",` + failed + `}`, 1},
		{`{"jsonrpc":"2.0","id":NaN,` + failed + `}`, 1},
		{`{"jsonrpc":"2.0","id":{"a":[7]},` + failed + `}`, 1},
		{`{"jsonrpc":"2.0","id":true,"result":{}}`, 1},
		{`{"jsonrpc":"2.0","id":7,"result":{}}`, 2},
		{`{"jsonrpc":"2.0","id":7.0,` + failed + `}`, 2},
		{`{"jsonrpc":"2.0","id":"7","result":{}}`, 0},
		{`{"jsonrpc":"2.0","id":"null",` + failed + `}`, 0},
		{`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `",` + failed + `}`, 0},
		{`{"jsonrpc":"2.0","id":8,` + failed + `}`, 0},
		{`{"jsonrpc":"2.0","id":null,"method":"m",` + failed + `}`, 0},
		{`{"jsonrpc":"2.0","id":null}`, 0},
		{`null`, 0},
	} {
		c, j := testSession(t)
		intend(t, c, opaque(0))
		c.ask(t, "7", "t")
		intend(t, c, opaque(100))
		var answers wire.Answers
		for b := []byte(tt.answer + "\n"); len(b) > 0; {
			n := min(len(b), 64<<10)
			c.s.finish(answers.Scan(b[:n]), false)
			b = b[n:]
		}
		ended := uint64(0)
		for _, r := range j.records(t) {
			if r.Kind != audit.KindCall || ended != 0 {
				t.Errorf("%.100s: another record, %+v", tt.answer, r)
			}
			ended = r.CallNo
		}
		if ended != tt.ends {
			t.Errorf("%.100s: ends call %d, want %d", tt.answer, ended, tt.ends)
		}
		c.s.end(audit.ErrNoResponse)
		if n := len(j.records(t)); n != 4 {
			t.Errorf("%.100s: %d records in the end, want 4", tt.answer, n)
		}
	}
}

// Of calls without an id fewer are held open than of others, which they do not
// evict.
func TestOpaqueCallsAreEvicted(t *testing.T) {
	c, j := testSession(t)
	c.ask(t, "7", "t")
	for i := range maxNameless + 2 {
		intend(t, c, &wire.Message{State: wire.Opaque, Off: int64(i), End: int64(i) + 1, Raw: []byte("}"), Anomalies: wire.NotJSON})
	}
	records := j.records(t)
	for i, r := range records {
		if r.CallNo != uint64(i+2) || r.ErrorType != audit.ErrNoResponse || !slices.Contains(r.Anomalies, "evicted") {
			t.Errorf("record %+v, want the oldest opaque calls, evicted", r)
		}
	}
	if len(records) != 2 || c.s.open.n != maxNameless+1 {
		t.Errorf("%d calls are evicted, %d open", len(records), c.s.open.n)
	}
	c.s.end(audit.ErrNoResponse)
	if n := len(j.records(t)); n != maxNameless+4 || c.s.open.nameless != 0 {
		t.Errorf("%d records in the end, want one for each call and the end; %d are counted", n, c.s.open.nameless)
	}
	dense(t, j.records(t))
}
