package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"auditproxy/deploy/dev"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

// A frame is something a client could send and what servers did with it, from
// mcpproxy/wire/testdata, whose README says how it was measured.
type frame struct {
	Name       string
	Initialize bool   // the frame follows a finished initialization
	Version    string // the protocol version that the client requests
	B64        []byte
	ZlibB64    []byte                       `json:"zlib_b64"`
	Executed   map[string][]string          // by server: the tools it executed
	Arguments  map[string][]json.RawMessage // by server: their arguments; not measured for all frames
	Tools      []string                     // all of them
}

func frames(t *testing.T) (list []frame) {
	t.Helper()
	f, err := os.Open(filepath.Join(root(t), "mcpproxy/wire/testdata/frames.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(f); dec.More(); {
		var fr frame
		if err := dec.Decode(&fr); err != nil {
			t.Fatalf("decoding frame %d: %v", len(list), err)
		}
		list = append(list, fr)
	}
	if len(list) != 269 {
		t.Fatalf("testdata has %d frames, want 269", len(list))
	}
	return list
}

func (f *frame) bytes(t *testing.T) []byte {
	t.Helper()
	if f.ZlibB64 == nil {
		return f.B64
	}
	z, err := zlib.NewReader(bytes.NewReader(f.ZlibB64))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opening is what a client sends before f, in two parts: the second follows
// the answer to the first.
func (f *frame) opening() (initialize, initialized string) {
	if !f.Initialize {
		return "", ""
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"frames","version":"1"}}}`, f.Version) + "\n",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
}

// follows reports whether f can be sent before and after other frames. Servers
// refuse an id while a call of that id is not answered, and do not answer what
// was cancelled, or two calls of one id.
func (f *frame) follows(t *testing.T) bool {
	for _, executed := range f.Executed {
		if len(executed) > 1 {
			return false
		}
	}
	return f.Initialize && f.ends(t) && !bytes.Contains(f.bytes(t), []byte("notifications/cancelled"))
}

// ends reports whether f ends where a line does. What does not may be lost at
// the end of the stream, as with go-sdk now and then.
func (f *frame) ends(t *testing.T) bool { return bytes.HasSuffix(f.bytes(t), []byte("\n")) }

// inTurn returns the frames in groups that one process can get, one frame after
// the other.
func inTurn(t *testing.T, list []frame) (groups [][]frame) {
	byVersion := map[string]int{}
	for _, f := range list {
		i, ok := byVersion[f.Version]
		switch {
		case !f.follows(t):
			groups = append(groups, []frame{f})
			continue
		case !ok:
			i = len(groups)
			byVersion[f.Version] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// mark is what follows the frame with this number: two calls, each on a line,
// which separate its records from those of the next frame. A value that the
// frame has left open cannot continue with two objects in a row.
func mark(n int) string {
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":"mark %d","method":"tools/call","params":{"name":"safe","arguments":{"mark":%[1]d}}}`+"\n", n)
	return line + strings.Replace(line, `"id":"`, `"id":"second `, 1)
}

// marks returns the number in the arguments of a mark's call.
func marks(args []byte) (n int, ok bool) {
	var a struct{ Mark *int }
	if json.Unmarshal(args, &a) != nil || a.Mark == nil {
		return 0, false
	}
	return *a.Mark, true
}

// byFrame returns the records of calls in a spool by the frame that they belong
// to, of which the first one has a number.
func byFrame(t *testing.T, spool string, first int) map[int][]audit.Record {
	t.Helper()
	list := slices.DeleteFunc(records(t, spool), func(r audit.Record) bool { return r.Kind != audit.KindCall })
	slices.SortFunc(list, func(a, b audit.Record) int { return cmp.Compare(a.CallNo, b.CallNo) })
	frames := map[int][]audit.Record{}
	for _, r := range list {
		if n, ok := marks([]byte(r.Args)); ok {
			first = n + 1
		} else {
			frames[first] = append(frames[first], r)
		}
	}
	return frames
}

// TestFramesPassUnchanged sends every frame through the proxy to cat and back:
// it passes in both directions, also under a policy that observes.
func TestFramesPassUnchanged(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":"1","default":"deny","hide":["*"],"auditproxy":{"mode":"observe"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, group := range inTurn(t, frames(t)) {
		passUnchanged(t, group, proxy)
		if soak() || group[0].follows(t) {
			passUnchanged(t, group, proxy, "--policy-file", file)
		}
	}
}

// passUnchanged sends the frames of a group to cat and back.
func passUnchanged(t *testing.T, group []frame, proxy string, flags ...string) {
	t.Run(group[0].Name, func(t *testing.T) {
		t.Parallel()
		spool := t.TempDir()
		first, second := group[0].opening()
		in := append([]byte(first), second...)
		for i, f := range group {
			in = append(in, f.bytes(t)...)
			if f.follows(t) {
				in = append(in, mark(i)...)
			}
		}
		cmd := exec.CommandContext(t.Context(), proxy, append(flags, readable(spool, "cat")...)...)
		cmd.Env = environ()
		cmd.Stdin = bytes.NewReader(in)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Run(); err != nil {
			t.Fatalf("running proxy: %v\n%s", err, &log)
		}
		if !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes came back for %d, the first difference at %d", out.Len(), len(in), differ(out.Bytes(), in))
		}
		list := byFrame(t, spool, 0)
		for i, f := range group {
			for _, tool := range f.Tools {
				if !slices.ContainsFunc(list[i], naming(tool)) {
					t.Errorf("%s: no record names %.40q", f.Name, tool)
				}
			}
			for server, arguments := range f.Arguments {
				var executed []execution
				for i, args := range arguments {
					executed = append(executed, execution{f.Executed[server][i], args})
				}
				checkArguments(t, f.Name+" "+server, list[i], executed)
			}
		}
	})
}

// readable is the proxy's arguments, with digests that a test can make too.
func readable(spool string, command ...string) []string {
	return append([]string{"--spool-dir", spool, "--redact-digest", "sha256", "--"}, command...)
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// A frameServer is a server whose tools write to a journal outside of it,
// before they answer, that they were executed.
type frameServer struct {
	name    string // as in frame.Executed
	command func(journal string) []string
	runtime string // of a server that takes half a second of processor time to start, or more; else ""
}

func frameServers(t *testing.T) []frameServer {
	peers := build(t, "./cmd/internal/peers")
	scripts := filepath.Join(root(t), "deploy/dev/peers")
	packages := dev.Fetched(t, "typescript")
	goPeer := func(sdk string) func(string) []string {
		return func(journal string) []string { return []string{peers, sdk, journal} }
	}
	node := func(script string) func(string) []string {
		return func(journal string) []string {
			return []string{dev.Command(t, "node"), filepath.Join(scripts, script), packages, journal}
		}
	}
	sdk := func(release string) func(string) []string {
		start := forkedSDK(t, release)
		return func(journal string) []string {
			return append(slices.Clip(start), filepath.Join(scripts, "mcp_server.py"), journal)
		}
	}
	libtmux := func(release string) func(string) []string {
		start := forkedLibtmux(t, release)
		return func(journal string) []string {
			return append(slices.Clip(start), filepath.Join(scripts, "libtmux_mcp_server.py"), "--journal", journal)
		}
	}
	return []frameServer{
		{"go-sdk 1.8.0", goPeer("go-sdk"), ""},
		{"mcp-go 1.2.1", goPeer("mcp-go"), ""},
		{"typescript-sdk 1.32.2", node("typescript_sdk.mjs"), "node"},
		{"typescript-sdk 2.4.0", node("typescript_server.mjs"), "node"},
		{"python-sdk 1.29.0", sdk("0.1.0a20"), "python"},
		{"python-sdk 2.3.0", sdk("0.1.0a22"), "python"},
		{"libtmux-mcp 0.1.0a20", libtmux("0.1.0a20"), "python"},
		{"libtmux-mcp 0.1.0a22", libtmux("0.1.0a22"), "python"},
	}
}

// TestFramesExecutedAreRecorded puts the proxy in front of real servers and
// sends them every frame: each call that a server executed has a record that
// names its tool and has its arguments, however the server read it.
//
// A frame that needs a process of its own is sent to the servers in Go. Of each
// slow runtime it is sent to one of the servers that execute it, in turn. With
// SOAK set it is sent to all.
func TestFramesExecutedAreRecorded(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	servers := frameServers(t)
	for i, group := range inTurn(t, frames(t)) {
		chosen := servers
		if !soak() && len(group) == 1 {
			chosen = choose(servers, &group[0], i)
		}
		for _, s := range chosen {
			t.Run(group[0].Name+" "+s.name, func(t *testing.T) {
				t.Parallel()
				for n := 0; n < len(group); {
					spool := t.TempDir()
					executed := runFrames(t, group, n, s, append([]string{proxy}, readable(spool)...)...)
					list := byFrame(t, spool, n)
					for i, executed := range executed {
						f := &group[n+i]
						for _, name := range f.Executed[s.name] {
							if f.ends(t) && !slices.ContainsFunc(executed, func(e execution) bool { return isName(e.tool, name) }) {
								t.Errorf("%s: the server executed %.40q without a proxy, with it only %.40q", f.Name, name, executed)
							}
						}
						checkNamed(t, f.Name, list[n+i], executed)
						checkArguments(t, f.Name, list[n+i], executed)
					}
					n += len(executed)
				}
			})
		}
	}
}

// TestFramesBehindDepth nests deeper than any reader but V8's accepts, before
// the members that decide what is executed.
func TestFramesBehindDepth(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	deep := strings.Repeat("[", 1<<20+1000) + strings.Repeat("]", 1<<20+1000)
	for _, s := range frameServers(t) {
		if !strings.HasPrefix(s.name, "typescript") {
			continue
		}
		for name, line := range map[string]string{
			"method": `{"jsonrpc":"2.0","id":1,"params":{"name":"evil","arguments":{"x":` + deep + `}},"method":"tools/call"}`,
			"name":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"x":` + deep + `},"name":"evil"}}`,
			"second": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"x":` + deep + `},"name":"evil"}}`,
		} {
			t.Run(s.name+" "+name, func(t *testing.T) {
				spool := t.TempDir()
				f := frame{Initialize: true, Version: "2025-06-18", B64: []byte(line + "\n"), Executed: map[string][]string{s.name: {"evil"}}}
				executed := runFrames(t, []frame{f}, 0, s, proxy, "--spool-dir", spool, "--")[0]
				if len(executed) != 1 || executed[0].tool != "evil" {
					t.Errorf("the server executed %q, want evil", executed)
				}
				list := records(t, spool)
				if i := slices.IndexFunc(list, func(r audit.Record) bool { return r.Kind == audit.KindCall }); i < 0 || list[i].Tool != "evil" {
					t.Errorf("records %+v, want a call of evil", list)
				}
			})
		}
	}
}

func choose(servers []frameServer, f *frame, turn int) (chosen []frameServer) {
	slow := map[string][]frameServer{}
	for _, s := range servers {
		switch {
		case s.runtime == "":
			chosen = append(chosen, s)
		case f.Executed[s.name] != nil:
			slow[s.runtime] = append(slow[s.runtime], s)
		}
	}
	for _, list := range slow {
		chosen = append(chosen, list[turn%len(list)])
	}
	return chosen
}

// patience bounds what a server does with a frame in milliseconds, or seconds
// when the machine is busy. Only a failing test waits this long.
const patience = 3 * time.Minute

// runFrames sends the frames of a group from number n on to one process of s,
// each with its mark. It returns the executed calls of each frame, of one frame
// only if the process ended at the first. prefix is the command line that starts
// s.
func runFrames(t *testing.T, group []frame, n int, s frameServer, prefix ...string) (all [][]execution) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := time.AfterFunc(patience, cancel)
	defer late.Stop()
	journal := newJournal(t)
	argv := slices.Concat(prefix, s.command(journal.path))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = environ()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	first, second := group[n].opening()
	if first != "" {
		io.WriteString(stdin, first)
		if answer, err := out.ReadString('\n'); err != nil || !strings.Contains(answer, "protocolVersion") {
			t.Errorf("initialize was answered with %q, %v", answer, err)
		}
	}
	silent, done := make(chan struct{}), make(chan int, 4096)
	go func() {
		defer close(silent)
		for err := error(nil); err == nil; {
			var line []byte
			line, err = out.ReadBytes('\n')
			if n := bytes.Count(line, []byte(`"done"`)); n > 0 {
				done <- n
			}
		}
	}()
	write := func(b string) <-chan struct{} {
		written := make(chan struct{})
		go func() {
			defer close(written)
			// The error is ignored: a server may end in the middle of a frame that
			// is too long for it.
			io.WriteString(stdin, b)
		}()
		return written
	}
	var executed []execution
	marked, unanswered := 0, 0
	// next waits for a call or an answer, and returns false if none can come.
	next := func() bool {
		select {
		case n := <-done:
			unanswered -= n
			return true
		case e := <-journal.noted:
			unanswered++
			if _, ok := marks(e.args); ok {
				marked++
			} else {
				executed = append(executed, e)
			}
			return true
		case <-silent:
			return false
		}
	}
	alive := true
	for ; alive && n < len(group); n++ {
		f := &group[n]
		executed, marked = nil, 0
		late.Reset(patience)
		written := write(second + string(f.bytes(t)))
		second = ""
		if !f.ends(t) {
			<-written
			stdin.Close() // some servers read such a line when the stream ends
		}
		// At the end of their input, or of what they can read, servers drop calls
		// that they have read: the end waits for what the frame is known to do.
		for alive && len(executed) < len(f.Executed[s.name]) {
			alive = next()
		}
		<-written
		if f.follows(t) {
			written = write(mark(n))
			for alive && (marked < 2 || unanswered > 0) {
				alive = next()
			}
			<-written
		}
		all = append(all, executed)
	}
	stdin.Close()
	<-silent
	cmd.Wait() // each server has its own idea of the right exit code
	if ctx.Err() != nil {
		t.Errorf("%s: the server was still there after %v", group[n-1].Name, patience)
	}
	for _, e := range journal.rest() {
		if _, ok := marks(e.args); !ok {
			all[len(all)-1] = append(all[len(all)-1], e)
		}
	}
	return all
}

// An execution is a line of a server's journal.
type execution struct {
	tool string
	args json.RawMessage // null for none
}

// A journal reads what a server process executes.
type journal struct {
	path  string // of a named pipe, to append to
	pipe  *os.File
	noted chan execution
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	j := &journal{path: filepath.Join(t.TempDir(), "journal"), noted: make(chan execution)}
	if err := syscall.Mkfifo(j.path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for writing too, so that no reader or writer waits for the other.
	pipe, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	j.pipe = pipe
	t.Cleanup(func() { pipe.Close() })
	go j.read()
	return j
}

func (j *journal) read() {
	defer close(j.noted)
	for r := bufio.NewReader(j.pipe); ; {
		line, err := r.ReadString('\n')
		if err != nil || line == "\n" {
			return
		}
		var e execution
		if err := json.Unmarshal([]byte(line), &[]any{&e.tool, &e.args}); err != nil {
			e.tool = "not a name: " + line
		}
		j.noted <- e
	}
}

// rest returns what is left in the pipe when its writers are gone.
func (j *journal) rest() (list []execution) {
	j.pipe.WriteString("\n")
	for e := range j.noted {
		list = append(list, e)
	}
	return list
}

// checkNamed checks that each call in executed has a record of its own in list.
func checkNamed(t *testing.T, frame string, list []audit.Record, executed []execution) {
	t.Helper()
	unused := slices.Clone(list)
	for _, e := range executed {
		i := slices.IndexFunc(unused, naming(e.tool))
		if i < 0 {
			t.Errorf("%s: %.40q was executed and has no record of its own; all that was executed: %.40q", frame, e.tool, executed)
			continue
		}
		unused = slices.Delete(unused, i, i+1)
	}
}

// checkArguments checks that each call in executed has a record with a reading
// of that tool and those arguments. A record of which something was cut may show
// less.
func checkArguments(t *testing.T, frame string, list []audit.Record, executed []execution) {
	t.Helper()
	red, err := redact.New(redact.Config{Digest: redact.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range executed {
		if string(e.args) == `"?"` {
			continue
		}
		summary, _ := red.AppendArgs(nil, e.args)
		want := decoded(t, summary)
		if !slices.ContainsFunc(list, func(r audit.Record) bool {
			cut := slices.Contains(r.Anomalies, "args_cut") || slices.Contains(r.Anomalies, "oversize")
			return slices.ContainsFunc(audit.Operations(&r), func(o audit.Operation) bool {
				return isName(o.Tool, e.tool) && (cut || same(want, decoded(t, []byte(o.Args))))
			})
		}) {
			t.Errorf("%s: %.40q was executed with %.200s, which no record has: %.600s", frame, e.tool, e.args, fmt.Sprint(list))
		}
	}
}

// decoded returns arguments, none for those that a record does not have.
func decoded(t *testing.T, args []byte) any {
	t.Helper()
	v := map[string]any{}
	if len(args) > 0 {
		d := json.NewDecoder(bytes.NewReader(args))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Errorf("decoding arguments %.200s: %v", args, err)
		}
	}
	return v
}

// same compares what a server got with what a record has. Servers write numbers
// in their own ways; a record has the digest of one that is not JSON, which for
// Kotlin is a string.
func same(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && maps.EqualFunc(w, g, same)
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, same)
	case nil:
		if g, ok := got.(json.Number); ok {
			_, err := g.Float64()
			return err != nil // what JavaScript writes for Infinity
		}
	case json.Number:
		if g, ok := got.(json.Number); ok {
			a, _ := w.Float64()
			b, _ := g.Float64()
			return a == b
		}
	}
	digest, ok := got.(map[string]any)
	return ok && digest["sha256_prefix"] != nil || want == got
}

// naming finds the records of calls that, in some reading, call tool.
func naming(tool string) func(audit.Record) bool {
	return func(r audit.Record) bool {
		return r.Kind == audit.KindCall && slices.ContainsFunc(audit.Operations(&r), func(o audit.Operation) bool {
			return isName(o.Tool, tool)
		})
	}
}

// isName reports whether got is the name want, when either may have been cut:
// a record keeps 200 code points of a name over 256, the measured frames 20.
func isName(got, want string) bool {
	if got == want {
		return true
	}
	got, _, _ = strings.Cut(got, "…[len=")
	n := min(utf8.RuneCountInString(got), utf8.RuneCountInString(want))
	return (n == 20 || n == 200) && strings.HasPrefix(got, want) || n == 200 && strings.HasPrefix(want, got)
}
