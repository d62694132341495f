package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"auditproxy/cmd/internal/process"
	"auditproxy/sink/spool"

	"github.com/google/go-cmp/cmp"
)

// TestMain makes the test binary play the other parts, as the program does.
func TestMain(m *testing.M) {
	if code, ok := otherPart(os.Args[1:]); ok {
		os.Exit(code)
	}
	if len(os.Args) == 2 && os.Args[1] == "holder" {
		holder()
	}
	os.Exit(m.Run())
}

// TestServer reads the answers, which the measurements only count.
func TestServer(t *testing.T) {
	var in bytes.Buffer
	in.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n")
	in.WriteString(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	in.WriteString(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n")
	for i, c := range []call{sendKeys, capture(8 << 10), capture(1 << 20), under("keys", 3<<20)} {
		line, after := c.append(nil, firstID+i)
		in.Write(line)
		in.Write(bytes.Repeat(textBlock, int(c.block)/len(textBlock)))
		in.WriteString(after)
	}
	for line := range bytes.Lines(in.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("the client says %.300q", line)
		}
	}
	var out bytes.Buffer
	if code := serve(&in, &out); code != 0 {
		t.Fatalf("serve = %d", code)
	}
	type answer struct{ ID, Len int }
	var got []answer
	for line := range bytes.Lines(out.Bytes()) {
		var a struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("the server says %.300q: %v", line, err)
		}
		got = append(got, answer{a.ID, len(line)})
	}
	want := []answer{
		{1, len(`{"jsonrpc":"2.0","id":1,` + initializeResult)},
		{2, len(`{"jsonrpc":"2.0","id":2,` + toolsResult)},
		{firstID, sendKeys.answerLen()},
		{firstID + 1, capture(8 << 10).answerLen()},
		{firstID + 2, capture(1 << 20).answerLen()},
		{firstID + 3, sendKeys.answerLen()},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestSession goes through everything that a measurement does to a session.
func TestSession(t *testing.T) {
	b := &bench{options: options{itself: true}, dir: t.TempDir(), self: os.Args[0]}
	s, err := b.start(t.Context(), theRelay, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{sendKeys, capture(64 << 10), under("blob", 1<<20)} {
		if err := s.roundTrip(c); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	if err := s.pipeline(sendKeys, 100, 16); err != nil {
		t.Errorf("pipeline: %v", err)
	}
	if s.id != firstID+103 {
		t.Errorf("the next id is %d, want %d", s.id, firstID+103)
	}
	if used, err := process.CPUTime(s.cmd.Process.Pid); err != nil || used <= 0 {
		t.Errorf("cpu = %v, %v", used, err)
	}
	if peak, err := process.PeakRSS(s.cmd.Process.Pid); err != nil || peak < 1<<20 {
		t.Errorf("peak = %v, %v", peak, err)
	}
	if err := s.close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestRefusal checks that a refused call is an error and not a fast call.
func TestRefusal(t *testing.T) {
	refusing := `read line; printf '{"jsonrpc":"2.0","id":1,` + strings.TrimSuffix(initializeResult, "\n") + `\n'; while read line; do echo '{"jsonrpc":"2.0","id":10000000,"error":{"code":-31001,"message":"no"}}'; done`
	s, err := start(t.Context(), []string{"sh", "-c", refusing}, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.roundTrip(sendKeys); err == nil || !strings.Contains(err.Error(), "-31001") {
		t.Errorf("roundTrip = %v", err)
	}
	if err := s.pipeline(sendKeys, 10, 4); err == nil {
		t.Error("pipeline saw no refusal")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// holder starts a neighbour, reports it and waits to be killed.
func holder() {
	runtime.LockOSThread()
	cpu, err := process.LastCPU()
	if err == nil {
		_, err = startNeighbour(os.Args[0], cpu)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "walking")
	io.Copy(io.Discard, os.Stdin)
}

// TestNeighbourEndsWithBench checks that no neighbour is left when the program
// that started it is killed. Both hold the pipe of standard error.
func TestNeighbourEndsWithBench(t *testing.T) {
	cmd := exec.Command(os.Args[0], "holder")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	if line, err := said.ReadString('\n'); line != "walking\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(said); err != nil || len(rest) > 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	cmd.Wait()
}

// TestNeighbourEndsWithInput ends a neighbour by closing its input.
func TestNeighbourEndsWithInput(t *testing.T) {
	cpu, err := process.LastCPU()
	if err != nil {
		t.Fatal(err)
	}
	end, err := startNeighbour(os.Args[0], cpu)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestOneCPU checks that a row that needs two CPUs is neither counted as
// measured nor as missed.
func TestOneCPU(t *testing.T) {
	b := &bench{options: options{itself: true, quick: true, cpu: 0}, cpus: []int{0}, dir: t.TempDir(), self: os.Args[0]}
	if err := errors.Join(b.busyNeighbour(t.Context()), b.unpinned("argument", under("keys", 1<<20), 1, 3, 1.6)(t.Context())); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printTable(&out, b.rows); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "not measured: "+oneCPU); got != 2 {
		t.Errorf("%d rows say so, want 2:\n%s", got, &out)
	}
	if code := exitCode(b.rows); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if code := exitCode(append(b.rows, row{Compare: atMost, Value: 1})); code != 1 {
		t.Errorf("exit code %d with a missed target, want 1", code)
	}
}

// TestFillSpool checks that the spool that log is measured on has the stated
// number of calls.
func TestFillSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	calls, err := fillSpool(t.Context(), dir, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := spool.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, e := range entries {
		if e.Err != nil {
			t.Errorf("session %s: %v", e.ID, e.Err)
		}
		size += e.Bytes
	}
	if len(entries) != logSessions || size < 4<<20 || calls == 0 {
		t.Errorf("%d sessions, %d bytes, %d calls", len(entries), size, calls)
	}
}

func TestPass(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  row
		want bool
	}{
		{"is within a ratio", row{Compare: ratio, Value: 1.6, Target: 1.6}, true},
		{"is over a ratio", row{Compare: ratio, Value: 1.61, Target: 1.6}, false},
		{"is judged as it is printed", row{Compare: ratio, Value: 1.604, Target: 1.6}, true},
		{"is enough", row{Compare: atLeast, Value: 100_000, Target: 100_000}, true},
		{"is too few", row{Compare: atLeast, Value: 99_999, Target: 100_000}, false},
		{"is less than the relay", row{Compare: more, Value: -1, Target: 6}, true},
		{"is too much", row{Compare: atMost, Value: 0.1, Target: 0}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.row.pass(); got != tt.want {
				t.Errorf("pass() of %+v = %v", tt.row, got)
			}
		})
	}
}

func TestTextBlock(t *testing.T) {
	if len(textBlock) != 64<<10 {
		t.Errorf("a block has %d bytes, so that text of 2^n bytes would end inside an escape", len(textBlock))
	}
}
