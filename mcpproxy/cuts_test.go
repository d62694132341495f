package mcpproxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

// relayed returns what is recorded of a client's stream that comes in these
// reads: of each call its record, by call_no, without what every record has of
// its own.
func relayed(t *testing.T, reads ...[]byte) []string {
	t.Helper()
	c, j := testSession(t)
	c.server = io.Discard
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	defer q.Close()
	for _, read := range reads {
		n := copy(q.Space(), read)
		for more := n > 0; more; n, more = 0, q.More() {
			c.forward(q.Scan(n), q.Ready())
		}
	}
	q.Space()
	c.forward(q.End(), q.Ready())
	c.s.end(audit.ErrNoResponse)
	records := j.records(t)
	dense(t, records)
	calls := make([]string, len(records)-1)
	for _, r := range records[:len(records)-1] {
		if r.Kind != audit.KindCall || r.CallNo < 1 || int(r.CallNo) > len(calls) {
			t.Fatalf("record %+v among %d, want calls with dense numbers", r, len(records))
		}
		calls[r.CallNo-1] = fmt.Sprintf("%s %q %s %q %s %d anomalies %q at %d+%d %s %v", r.Method, r.Tool, r.Target, r.RequestID, r.Args, r.ArgsBytes, r.Anomalies, r.At, r.Bytes, r.Digest, r.Candidates)
	}
	return calls
}

// The calls of a stream, their numbers and their records do not depend on where
// the reads cut its bytes.
func TestCutsChangeNoRecord(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"n":%[1]d}}}`
	streams := map[string][]byte{
		"a call over lines":                     []byte("{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"tools/call\",\n\"params\":{\"name\":\"late\"}}\n" + fmt.Sprintf(call, 2) + "\n"),
		"a batch over lines":                    []byte("[\n" + fmt.Sprintf(call, 1) + ",\n" + fmt.Sprintf(call, 2) + "\n]\n" + fmt.Sprintf(call, 3) + "\n"),
		"a call inside a value over lines":      []byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"params\":\n" + fmt.Sprintf(call, 2) + "\n,\"method\":\"tools/call\"}\n" + fmt.Sprintf(call, 3) + "\n"),
		"a value over lines that breaks":        []byte("{\"jsonrpc\":\"2.0\",\"id\":1,\n\"params\":}\n" + fmt.Sprintf(call, 2) + "\n"),
		"junk before, between and after a call": []byte("x " + fmt.Sprintf(call, 1) + " y " + fmt.Sprintf(call, 2) + " z\n" + fmt.Sprintf(call, 3) + "\n"),
		"a call without its line feed":          []byte("x\n" + fmt.Sprintf(call, 1)),
	}
	var wide []byte
	for _, u := range utf16.Encode([]rune(fmt.Sprintf(call, 1) + "\n" + fmt.Sprintf(call, 2) + "\n")) {
		wide = append(wide, byte(u>>8), byte(u))
	}
	streams["UTF-16"] = wide
	for name, b := range frameBytes(t) {
		if len(b) <= 600 {
			streams[name] = append(bytes.Clone(b), "\n"+fmt.Sprintf(call, 1000)+"\n"...)
		}
	}
	for name, b := range streams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := relayed(t, b)
			var bytewise [][]byte
			for i := range b {
				bytewise = append(bytewise, b[i:i+1])
			}
			if diff := cmp.Diff(want, relayed(t, bytewise...)); diff != "" {
				t.Fatalf("%q, read byte by byte (-whole +cut):\n%s", b, diff)
			}
			for i := 1; i < len(b); i += step(len(b)) {
				if diff := cmp.Diff(want, relayed(t, b[:i], b[i:])); diff != "" {
					t.Fatalf("%q, cut after byte %d (-whole +cut):\n%s", b, i, diff)
				}
			}
		})
	}
}

// step returns the distance between two cuts of a stream. The scanner's tests cut
// everywhere too, so that few are left to the race detector.
func step(bytes int) int {
	if testing.Short() {
		return 1 + bytes/20
	}
	return 1 + bytes/300
}

// frameBytes returns the short ones of the frames that servers were tested with.
func frameBytes(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open("wire/testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[string][]byte{}
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var frame struct {
			Name string
			B64  []byte
		}
		if err := dec.Decode(&frame); err != nil {
			t.Fatal(err)
		}
		if len(frame.B64) > 0 {
			list[strings.ReplaceAll(frame.Name, "/", " ")] = frame.B64
		}
	}
	return list
}

// A call over lines that cannot be recorded is one call that is missing,
// refused or forwarded as a whole, also if the journal fails or works again
// between its lines.
func TestCallOverLinesIsMissedOnce(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	first, second := []byte("{\"jsonrpc\":\"2.0\",\"id\":1,\n"), []byte("\"method\":\"tools/call\",\"params\":{\"name\":\"late\"}}\n")
	for _, tt := range []struct {
		name   string
		reads  [][]byte
		broken []bool
		missed int64
		calls  int    // with a record
		denied string // the server's input, if what is not recorded is refused
	}{
		{"one read", [][]byte{append(bytes.Clone(first), second...)}, []bool{true}, 1, 0, ""},
		{"two reads", [][]byte{first, second}, []bool{true, true}, 1, 0, ""},
		{"the second fails", [][]byte{first, second}, []bool{false, true}, 0, 1, string(first) + "!\n"},
		{"the first fails", [][]byte{first, second}, []bool{true, false}, 1, 0, ""},
	} {
		for name, policy := range map[string]Failure{"deny": Deny, "allow": Allow} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				c, j := testSession(t)
				var server bytes.Buffer
				c.s.cfg.OnAuditFailure = policy
				c.server, c.out = &server, newOutput(out)
				q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
				for i, read := range tt.reads {
					j.fail(tt.broken[i])
					c.forward(q.Scan(copy(q.Space(), read)), q.Ready())
				}
				j.fail(false)
				c.s.end(audit.ErrNoResponse)
				records := j.records(t)
				dense(t, records)
				calls, missed := 0, int64(0)
				for _, r := range records {
					switch r.Kind {
					case audit.KindCall:
						calls++
						if r.CallNo != 1 {
							t.Errorf("record %+v, want call 1", r)
						}
					case audit.KindGap:
						missed += r.Count
					}
				}
				want := tt.denied
				if policy == Allow {
					want = string(first) + string(second)
				}
				if calls != tt.calls || missed != tt.missed || server.String() != want {
					t.Errorf("%d records, %d missed, the server gets %q; want %d, %d, %q", calls, missed, server.String(), tt.calls, tt.missed, want)
				}
			})
		}
	}
}
