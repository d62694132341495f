package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
)

// utf16Server executes calls that arrive in UTF-16, a line each, by creating
// the file that they name, and confirms it in its answer.
const utf16Server = `
import json, sys
for line in iter(sys.stdin.buffer.readline, b""):
    call = json.loads(line.decode("utf-16-be"))
    open(call["params"]["arguments"]["path"], "w").close()
    if call["params"]["name"] == "hang":
        print('{"jsonrpc":"2.0","method":"notifications/hanging"}', flush=True)
        continue
    print('{"jsonrpc":"2.0","id":null,"result":{"content":[]}}', flush=True)
`

// utf16Call is the line of a call in big-endian UTF-16, whose line feed ends in
// the byte that ends lines.
func utf16Call(tool, path string) (b []byte) {
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{"path":%q}}}`+"\n", tool, path)
	for _, u := range utf16.Encode([]rune(line)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return b
}

// TestOpaqueCallIsRefusedOrRecorded has a server execute calls that auditproxy
// cannot read: none while recording fails, and none without an intent.
func TestOpaqueCallIsRefusedOrRecorded(t *testing.T) {
	python := dev.Command(t, "python3")
	dir := t.TempDir()
	room := filepath.Join(dir, "room")
	w := wrap(t, setup{env: []string{envRoom + "=" + room}, argv: []string{python, "-c", utf16Server}})
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	line := func() string {
		b, err := w.out.ReadBytes('\n')
		must(t, err)
		return string(b)
	}

	prints := func(args ...string) []byte {
		cmd := exec.Command(w.proxy, append(args, "--spool-dir", w.spool)...)
		cmd.Env = w.cmd.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return out
	}

	good := filepath.Join(dir, "good")
	must(t, w.send(utf16Call("create", good)))
	if got := line(); !strings.Contains(got, `"result"`) || !exists(good) {
		t.Fatalf("answer %q, executed: %t", got, exists(good))
	}

	// A record without space would use the ballast, and then the next call
	// has to wait for its return.
	eventually(t, "the call has no record", func() bool { return strings.Contains(all(t, w.spool), `"outcome":"ok"`) })
	must(t, takeRoom(room, "bytes"))
	refused := filepath.Join(dir, "refused")
	must(t, w.send(utf16Call("create", refused)))
	if got := line(); !strings.Contains(got, `"id":null,"error":{"code":-32600`) {
		t.Errorf("answer %q, want a refusal", got)
	}
	must(t, os.Remove(room))

	hang := filepath.Join(dir, "hang")
	must(t, w.send(utf16Call("hang", hang)))
	if got := line(); !strings.Contains(got, "hanging") {
		t.Fatalf("answer %q", got)
	}
	if exists(refused) || !exists(hang) {
		t.Errorf("executed: the refused call %t, the last one %t", exists(refused), exists(hang))
	}
	// The proxy dies while the server works on the call.
	must(t, w.cmd.Process.Signal(syscall.SIGKILL))
	w.wait()
	w.recoverDead()

	var calls []audit.Record
	for line := range bytes.Lines(prints("log", "-o", "json")) {
		r, err := audit.Parse(bytes.TrimSuffix(line, []byte("\n")))
		must(t, err)
		if r.Kind == audit.KindCall && r.Opaque() {
			calls = append(calls, r)
		}
	}
	if len(calls) != 2 {
		t.Fatalf("%d opaque calls, want two: %+v", len(calls), calls)
	}
	if r := calls[0]; r.Bytes < int64(len(utf16Call("create", good)))-3 || r.Digest == "" || r.Outcome != audit.OutcomeOK || r.CallNo != 1 {
		t.Errorf("the record of the answered call is %+v", r)
	}
	if r := calls[1]; r.Bytes < int64(len(utf16Call("hang", hang)))-3 || r.Digest == "" || r.Outcome != audit.OutcomeUnknown || r.ErrorType != audit.ErrProxyDied || !r.Recovered {
		t.Errorf("the record of the call at the proxy's death is %+v", r)
	}
	if shown := prints("log"); !bytes.Contains(shown, []byte("unreadable")) {
		t.Errorf("log shows no unreadable call:\n%s", shown)
	}
	prints("verify", "--damage-only")
}

// TestFloodOfOpaqueLines sends lines of two bytes as fast as the proxy reads
// them. What it keeps of each is many times as long: memory stays bounded, and
// each line has its record, or is refused and counted.
func TestFloodOfOpaqueLines(t *testing.T) {
	const lines = 200_000
	proxy, dir := shipped(t), t.TempDir()
	flood := filepath.Join(dir, "flood")
	must(t, os.WriteFile(flood, bytes.Repeat([]byte("x\n"), lines), 0o600))
	in, err := os.Open(flood)
	must(t, err)
	defer in.Close()
	cmd := exec.Command(proxy, "--spool-dir", filepath.Join(dir, "spool"), "--", "cat")

	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	cmd.Stdin = in // a file gives the largest reads
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	// Not from the rusage of the process: that begins with the memory of this test,
	// which forked it. The end has the peak of all before it.
	rss, n := 0, 0
	for buf := make([]byte, 32<<10); err == nil; {
		var more int
		more, err = out.Read(buf)
		n += more
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status); m != nil { // else it has ended
			rss, _ = strconv.Atoi(string(m[1]))
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	must(t, cmd.Wait())
	if n != 2*lines {
		t.Errorf("%d bytes came back, want %d", n, 2*lines)
	}
	if (rss > 128<<10 || rss == 0) && runtime.GOOS == "linux" {
		t.Errorf("%d KiB of memory, want at most 128 MiB", rss)
	} else {
		t.Logf("%d KiB of memory", rss)
	}
	if n := strings.Count(all(t, filepath.Join(dir, "spool")), `"kind":"call"`); n != lines {
		t.Errorf("%d lines have a record, want %d", n, lines)
	}

	room := filepath.Join(dir, "room")
	w := wrap(t, setup{env: []string{envRoom + "=" + room}, argv: []string{"cat"}})
	must(t, w.send([]byte("recorded\n")))
	if line, err := w.out.ReadString('\n'); line != "recorded\n" {
		t.Fatalf("answer %q, %v", line, err)
	}
	must(t, takeRoom(room, "bytes"))
	sent := make(chan error)
	go func() { sent <- w.send(bytes.Repeat([]byte("x\n"), lines)) }()
	for i := range lines {
		line, err := w.out.ReadBytes('\n')
		if err != nil || !bytes.Contains(line, []byte(`"id":null,"error":{"code":-32600`)) {
			t.Fatalf("answer %d: %q, %v", i, line, err)
		}
	}
	must(t, <-sent)
	must(t, os.Remove(room))
	must(t, w.in.Close())
	if status := w.wait(); status != 0 {
		t.Errorf("status %#x", status)
	}
	if want := fmt.Sprintf(`"count":%d,"denied":%[1]d`, lines); !strings.Contains(all(t, w.spool), want) {
		t.Errorf("no gap with %s", want)
	}
}
