package mcpproxy

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// A measured is a frame with what servers were seen to execute of it; see
// wire/testdata/README.md.
type measured struct {
	Name     string
	B64      []byte
	ZlibB64  []byte              `json:"zlib_b64"`
	Executed map[string][]string // by server: the tools
	Tools    []string            // all of them
}

func measuredFrames(t *testing.T) (list []measured) {
	t.Helper()
	f, err := os.Open("wire/testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var m measured
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.ZlibB64 != nil {
			z, err := zlib.NewReader(bytes.NewReader(m.ZlibB64))
			if err == nil {
				m.B64, err = io.ReadAll(z)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, m)
	}
	return list
}

// gated returns what reaches the server of a client's stream that comes in these
// reads, under a policy, "" for none, and the calls that were recorded.
func gated(t *testing.T, source string, mode policy.Mode, reads ...[]byte) (server []byte, calls []audit.Record) {
	t.Helper()
	red, g := gateOf(t, source, mode)
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	j := &lines{}
	c := testClient(t, Config{Redactor: red, Journal: j, Log: zap.NewNop(), Gate: g})
	var got bytes.Buffer
	c.server, c.out = &got, newOutput(out)
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	defer q.Close()
	for _, read := range reads {
		for len(read) > 0 {
			n := copy(q.Space(), read)
			read = read[n:]
			for more := n > 0; more; n, more = 0, q.More() {
				c.forward(q.Scan(n), q.Ready())
			}
		}
	}
	q.Space()
	c.forward(q.End(), q.Ready())
	c.s.end(audit.ErrNoResponse)
	for _, r := range j.records(t) {
		if r.Kind == audit.KindCall {
			calls = append(calls, r)
		}
	}
	return got.Bytes(), calls
}

// bytewise cuts b into reads of one byte.
func bytewise(b []byte) (reads [][]byte) {
	for i := range b {
		reads = append(reads, b[i:i+1])
	}
	return reads
}

// A policy holds in every frame that servers were tested with: what forbids a
// tool keeps it from all servers that were seen to execute it, and what forbids
// nothing lets every strict message through.
func TestPolicyHoldsInEveryFrame(t *testing.T) {
	strict := 0
	for _, f := range measuredFrames(t) {
		const oneTool = `{"version":"1","default":"deny","tools":{"another":{}}}`
		forbidding := map[string][]string{oneTool: append(f.Tools, "evil")} // policies, and tools that they forbid
		reads := map[string][][]byte{"whole": {f.B64}}
		if testing.Short() && len(f.B64) > 1<<20 {
			continue // one goroutine, so that the race detector finds nothing more in them
		}
		if len(f.B64) <= 600 {
			for _, tool := range forbidding[oneTool] {
				name, err := json.Marshal(tool)
				if err != nil {
					t.Fatal(err)
				}
				forbidding[`{"version":"1","default":"allow","auditproxy":{"denied_tools":[`+string(name)+`]}}`] = []string{tool}
				forbidding[`{"version":"1","default":"allow","hide":[`+string(name)+`]}`] = []string{tool}
			}
			reads["bytewise"] = bytewise(f.B64)
			for i := 1; i < len(f.B64) && !testing.Short(); i += 1 + len(f.B64)/8 {
				reads[fmt.Sprint("cut at ", i)] = [][]byte{f.B64[:i], f.B64[i:]}
			}
		}
		passes := isStrict(f.B64)
		if passes {
			strict++
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for cut, reads := range reads {
				for source, tools := range forbidding {
					got, _ := gated(t, source, policy.Enforce, reads...)
					checkKept(t, cut+" "+source, &f, tools, got)
				}
				got, calls := gated(t, `{"version":"1","default":"allow"}`, policy.Enforce, reads...)
				if passes && !bytes.Equal(got, f.B64) {
					t.Errorf("%s: %q is strict and the server gets %q", cut, f.B64, got)
				}
				for _, r := range calls {
					if refused := r.ErrorType == audit.ErrPolicyDenied || r.ErrorType == audit.ErrAmbiguousRequest; r.Forwarded == refused {
						t.Errorf("%s: forwarded %t and ends with %s", cut, r.Forwarded, r.ErrorType)
					}
				}
			}
		})
	}
	if strict < 10 {
		t.Errorf("%d frames are strict: want some that must pass", strict)
	}
}

// checkKept checks that no server would execute one of tools by what it gets of
// a frame.
func checkKept(t *testing.T, what string, f *measured, tools []string, got []byte) {
	t.Helper()
	text := mention(got)
	for _, tool := range tools {
		if !bytes.Equal(got, f.B64) {
			if strings.Contains(text, tool) {
				t.Errorf("%s: the server gets %.300q, with %q", what, got, tool)
			}
			continue
		}
		for server, executed := range f.Executed {
			if slices.Contains(executed, tool) {
				t.Errorf("%s: the server gets all of %.300q, of which %s executes %q", what, got, server, tool)
			}
		}
	}
}

// A policy that observes forwards every byte that is forwarded without one, and
// records what it would decide if it were enforced.
func TestObservingDecidesAlike(t *testing.T) {
	const source = `{"version":"1","default":"deny","tools":{"safe":{"limits":[{"counter":"c","window":"day","max":3,"scope":"session"}]},"evil":{"action":"require_approval"},"ping":{}}}`
	var all [][]byte
	for _, f := range measuredFrames(t) {
		if len(f.B64) > 1<<20 {
			continue // refused before it can be read
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			checkAlike(t, source, f.B64)
			checkAlike(t, source, bytewise(f.B64[:min(len(f.B64), 600)])...)
		})
		if bytes.HasSuffix(f.B64, []byte("\n")) {
			all = append(all, f.B64)
		}
	}
	checkAlike(t, source, all...)
}

func checkAlike(t *testing.T, source string, reads ...[]byte) {
	t.Helper()
	without, _ := gated(t, "", "", reads...)
	observing, observed := gated(t, source, policy.Observe, reads...)
	_, enforced := gated(t, source, policy.Enforce, reads...)
	if !bytes.Equal(without, observing) {
		t.Errorf("the server gets %.300q, without a policy %.300q", observing, without)
	}
	decisions := func(calls []audit.Record) (list []string) {
		for _, r := range calls {
			p, err := audit.ParsePolicy(r.Policy)
			if err != nil {
				t.Errorf("policy %s: %v", r.Policy, err)
			}
			if p.Rule == ruleAmbiguous || p.Rule == ruleUnreadable {
				// A value over several lines is refused at the first, and observed whole.
				list = append(list, fmt.Sprint(r.CallNo, " ", p.Decision, " unclear"))
				continue
			}
			list = append(list, fmt.Sprintf("%d %s %s %s %s %q %s %d %s %s", r.CallNo, r.Method, r.Tool, p.Decision, p.Rule, p.Reason, p.Counter, p.Count, r.Risk, r.Detections))
		}
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff(decisions(enforced), decisions(observed)); diff != "" {
		t.Errorf("%.300q (-enforced +observed):\n%s", reads, diff)
	}
}

var escapes = regexp.MustCompile(`(?i)\\u00([0-7][0-9a-f])`)

// mention is the text of b in the encodings that servers read: without NUL, so
// that UTF-16 and UTF-32 read as ASCII, and without escapes.
func mention(b []byte) string {
	b = bytes.ReplaceAll(b, []byte{0}, nil)
	return string(escapes.ReplaceAllFunc(b, func(e []byte) []byte {
		n, _ := strconv.ParseUint(string(e[4:]), 16, 8)
		return []byte{byte(n)}
	}))
}

var (
	oneID      = regexp.MustCompile(`^([1-9][0-9]{0,8}|"[a-z0-9]+")$`)
	longNumber = regexp.MustCompile(`[0-9]{16}|[0-9][eE]`)
)

// isStrict reports whether each line of b is one strict JSON-RPC 2.0 request
// that every reader understands alike. It uses another parser than the proxy,
// and calls some strict messages unclear.
func isStrict(b []byte) bool {
	if len(b) > 1<<20 || !bytes.HasSuffix(b, []byte("\n")) || bytes.ContainsFunc(b, func(r rune) bool { return r != '\n' && r < ' ' || r == '\\' || r > '~' }) {
		return false
	}
	for line := range strings.Lines(string(b)) {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &members) != nil || hasTwins([]byte(line)) || longNumber.MatchString(line) {
			return false
		}
		for name := range members {
			if !slices.Contains([]string{"jsonrpc", "id", "method", "params"}, name) {
				return false
			}
		}
		var params map[string]json.RawMessage
		var method, tool string
		var arguments map[string]any
		switch {
		case string(members["jsonrpc"]) != `"2.0"`, json.Unmarshal(members["method"], &method) != nil:
			return false
		case members["params"] != nil && json.Unmarshal(members["params"], &params) != nil:
			return false
		case strings.HasPrefix(method, "notifications/"):
			continue
		case !oneID.Match(members["id"]), strings.Count(line, "{")+strings.Count(line, "[") > 50:
			return false
		case method != "tools/call":
			continue
		case json.Unmarshal(params["name"], &tool) != nil, params["arguments"] != nil && json.Unmarshal(params["arguments"], &arguments) != nil:
			return false
		}
		for name := range params {
			if !slices.Contains([]string{"name", "arguments", "_meta"}, name) {
				return false
			}
		}
	}
	return true
}

// hasTwins reports whether an object in b has two names that are equal in some
// case.
func hasTwins(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	var stack []map[string]bool // nil for an array
	var name bool
	for {
		tok, err := d.Token()
		if err != nil {
			return false
		}
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '{':
				stack, name = append(stack, map[string]bool{}), true
				continue
			case '[':
				stack, name = append(stack, nil), false
				continue
			}
			stack = stack[:len(stack)-1]
		case string:
			if name {
				v = strings.ToLower(v)
				if stack[len(stack)-1][v] {
					return true
				}
				stack[len(stack)-1][v] = true
				name = false
				continue
			}
		}
		name = len(stack) > 0 && stack[len(stack)-1] != nil
	}
}
