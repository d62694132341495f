package main_test

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"auditproxy/schemas/audit"
)

// A frame is something a client could send and what eight servers did with it.
// testdata/frames.jsonl and testdata/arguments.jsonl, which has the arguments
// too, were measured on the servers themselves, by their own notes of what they
// executed, without a proxy.
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
	for _, file := range []string{"testdata/frames.jsonl", "testdata/arguments.jsonl"} {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for dec := json.NewDecoder(f); dec.More(); {
			var fr frame
			if err := dec.Decode(&fr); err != nil {
				t.Fatalf("decoding frame %d of %s: %v", len(list), file, err)
			}
			list = append(list, fr)
		}
	}
	if len(list) != 168 {
		t.Fatalf("testdata has %d frames, want 168", len(list))
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

// TestFramesPassUnchanged sends every frame through the proxy to cat and back:
// it passes in both directions.
func TestFramesPassUnchanged(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	for _, f := range frames(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			spool := t.TempDir()
			first, second := f.opening()
			in := slices.Concat([]byte(first), []byte(second), f.bytes(t))
			cmd := exec.CommandContext(t.Context(), proxy, "--spool-dir", spool, "--", "cat")
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
			list := records(t, spool)
			for _, tool := range f.Tools {
				if !slices.ContainsFunc(list, naming(tool)) {
					t.Errorf("no record names %.40q", tool)
				}
			}
			for server, arguments := range f.Arguments {
				var executed []execution
				for i, args := range arguments {
					executed = append(executed, execution{f.Executed[server][i], args})
				}
				checkArguments(t, list, executed)
			}
		})
	}
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
	runtime string // of a server that is slow to start, else ""
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
	python := func(release string, args ...string) func(string) []string {
		bin := dev.Fetched(t, "libtmux-mcp-"+release, "bin", "python")
		args[0] = filepath.Join(scripts, args[0])
		return func(journal string) []string { return append(append([]string{bin}, args...), journal) }
	}
	return []frameServer{
		{"go-sdk 1.8.0", goPeer("go-sdk"), ""},
		{"mcp-go 1.2.1", goPeer("mcp-go"), ""},
		{"typescript-sdk 1.32.2", node("typescript_sdk.mjs"), "node"},
		{"typescript-sdk 2.4.0", node("typescript_server.mjs"), "node"},
		{"python-sdk 1.29.0", python("0.1.0a20", "mcp_server.py"), "python"},
		{"python-sdk 2.3.0", python("0.1.0a22", "mcp_server.py"), "python"},
		{"libtmux-mcp 0.1.0a20", python("0.1.0a20", "libtmux_mcp_server.py", "--journal"), "python"},
		{"libtmux-mcp 0.1.0a22", python("0.1.0a22", "libtmux_mcp_server.py", "--journal"), "python"},
	}
}

// TestFramesExecutedAreRecorded puts the proxy in front of real servers and
// sends them every frame: each call that a server executed has a record that
// names its tool, however the server read it.
//
// Each frame is sent to the servers in Go, and for each slow runtime to one of
// the servers that execute it, in turn; with SOAK set it is sent to all.
func TestFramesExecutedAreRecorded(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	servers := frameServers(t)
	for i, f := range frames(t) {
		chosen := choose(servers, &f, i)
		if soak() {
			chosen = servers
		}
		for _, s := range chosen {
			t.Run(f.Name+" "+s.name, func(t *testing.T) {
				t.Parallel()
				spool := t.TempDir()
				executed, sure := runFrame(t, &f, s, proxy, "--spool-dir", spool, "--")
				for _, name := range f.Executed[s.name] {
					if sure && !slices.ContainsFunc(executed, func(e execution) bool { return isName(e.tool, name) }) {
						t.Errorf("the server executed %.40q without a proxy, with it only %.40q", name, executed)
					}
				}
				checkNamed(t, records(t, spool), executed)
				checkArguments(t, records(t, spool), executed)
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
				executed, _ := runFrame(t, &f, s, proxy, "--spool-dir", spool, "--")
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

// patience bounds what a server does in milliseconds, or seconds when the
// machine is busy. Only a failing test waits this long.
const patience = 3 * time.Minute

// runFrame sends f to s and returns the tools that it executed, and whether it
// must have executed all it can: a line that only ends with the stream may be
// lost there, as go-sdk loses it now and then. prefix is the command line that
// s is started with.
func runFrame(t *testing.T, f *frame, s frameServer, prefix ...string) (executed []execution, sure bool) {
	t.Helper()
	content := f.bytes(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
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
	first, second := f.opening()
	if f.Initialize {
		io.WriteString(stdin, first)
		if answer, err := out.ReadString('\n'); err != nil || !strings.Contains(answer, "protocolVersion") {
			t.Errorf("initialize was answered with %q, %v", answer, err)
		}
	}
	sure = bytes.HasSuffix(content, []byte("\n"))
	written, silent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		// The error is ignored: a server may end in the middle of a frame that
		// is too long for it.
		stdin.Write(append([]byte(second), content...))
		if !sure {
			stdin.Close() // some servers read such a line when the stream ends
		}
	}()
	go func() {
		defer close(silent)
		io.Copy(io.Discard, out)
	}()
	// At the end of their input servers drop calls that they have read, so the
	// end waits for the executions that the frame is known to cause.
	for waiting := true; waiting && len(executed) < len(f.Executed[s.name]); {
		select {
		case e := <-journal.noted:
			executed = append(executed, e)
		case <-silent:
			waiting = false
		}
	}
	<-written
	stdin.Close()
	<-silent
	cmd.Wait() // each server has its own idea of the right exit code
	if ctx.Err() != nil {
		t.Errorf("the server was still there after %v", patience)
	}
	return append(executed, journal.rest()...), sure
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
func checkNamed(t *testing.T, list []audit.Record, executed []execution) {
	t.Helper()
	unused := slices.Clone(list)
	for _, e := range executed {
		tool := e.tool
		i := slices.IndexFunc(unused, naming(tool))
		if i < 0 {
			t.Errorf("%.40q was executed and has no record of its own; all that was executed: %.40q", tool, executed)
			continue
		}
		unused = slices.Delete(unused, i, i+1)
	}
}

// checkArguments checks that each call in executed has a record with a reading
// of that tool and those arguments. It compares strings with a path in them: of
// others a record may have a digest.
func checkArguments(t *testing.T, list []audit.Record, executed []execution) {
	t.Helper()
	for _, e := range executed {
		var args map[string]any
		if json.Unmarshal(e.args, &args) != nil {
			continue
		}
		if path, ok := args["output_path"].(string); ok && !slices.ContainsFunc(list, func(r audit.Record) bool {
			return slices.ContainsFunc(audit.Operations(&r), func(o audit.Operation) bool {
				var got struct {
					Path string `json:"output_path"`
				}
				return isName(o.Tool, e.tool) && json.Unmarshal([]byte(o.Args), &got) == nil && got.Path == path
			})
		}) {
			t.Errorf("%.40q was executed with %.200s, which no record has", e.tool, e.args)
		}
	}
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
