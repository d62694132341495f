package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"auditproxy/schemas/audit"
)

// utf16Server answers calls that come in UTF-16, a line each, by creating the
// file that they name, and says in its answer that it did.
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
// cannot read: none while nothing can be recorded, and none without an intent.
func TestOpaqueCallIsRefusedOrRecorded(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("python3 is not installed: run make tools")
	}
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
	prints("verify")
}
