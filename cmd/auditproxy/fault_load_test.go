package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A repeated is a text and how often to repeat it.
type repeated struct {
	text  string
	times int
}

// stream reads parts in order, without holding their sum.
func stream(parts []repeated) io.Reader {
	var list []io.Reader
	for _, p := range parts {
		// In blocks, so that characters are not read one by one.
		block := max(1, min(p.times, (64<<10)/len(p.text)))
		text := strings.Repeat(p.text, block)
		for n := p.times; n > 0; n -= block {
			list = append(list, strings.NewReader(text[:min(n, block)*len(p.text)]))
		}
	}
	return io.MultiReader(list...)
}

// TestConstantMemory sends lines longer than memory may be to an echo: they
// come back unchanged, and have a record that names the tool.
func TestConstantMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	proxy := shipped(t)
	deep := 25_000_000 // times three levels: a byte for each would be too much
	if soak() {
		deep = 89_000_000
	}
	for _, c := range []struct {
		name    string
		line    []repeated
		anomaly string
	}{
		{"160 MiB, name at the end", []repeated{
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"path":"`, 1},
			{"abcdefghijklmnop", 160 * mib / 16},
			{`"},"name":"work_1"}}` + "\n", 1},
		}, "oversize"},
		{"ten million levels", []repeated{
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work_1","arguments":{"path":`, 1},
			{"[", 10_000_000}, {"]", 10_000_000},
			{"}}}\n", 1},
		}, "depth"},
		{"levels of two kinds, name behind them", []repeated{
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"path":`, 1},
			{`[{"":[`, deep}, {"]}]", deep}, // no two words of levels are equal
			{`},"name":"work_1"}}` + "\n", 1},
		}, "depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wrap(t, setup{proxy: proxy, argv: []string{"cat"}})
			sent, echoed := sha256.New(), sha256.New()
			written := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.MultiWriter(w.in, sent), stream(c.line))
				written <- err
			}()
			size := 0
			for _, p := range c.line {
				size += p.times * len(p.text)
			}
			n, err := io.CopyN(echoed, w.out, int64(size))
			if err != nil || <-written != nil {
				t.Fatalf("%d bytes of %d came back: %v\n%s", n, size, err, &w.stderr)
			}
			if !bytes.Equal(sent.Sum(nil), echoed.Sum(nil)) {
				t.Error("other bytes came back")
			}
			if rss := procStatus(t, w, "VmHWM"); rss > 96*1024 {
				t.Errorf("%d KiB of memory, want at most 96 MiB", rss)
			} else {
				t.Logf("%d KiB of memory", rss)
			}
			w.end()
			list := w.checkTrail().finals[1]
			if len(list) != 1 || list[0].Tool != "work_1" || !slices.Contains(list[0].Anomalies, c.anomaly) {
				t.Errorf("records %+v, want one that names the tool and says %q", list, c.anomaly)
			}
		})
	}
}

// procStatus is a number of the running proxy, see proc_pid_status(5).
func procStatus(t *testing.T, w *wrapped, name string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			must(t, err)
			return n
		}
	}
	t.Fatalf("/proc/PID/status has no %s", name)
	return 0
}

// TestIdleAfterLoad makes 10 000 calls and then none: the second half adds no
// thread, and the idle proxy uses no processor time.
func TestIdleAfterLoad(t *testing.T) {
	t.Parallel()
	w := wrap(t, setup{proxy: shipped(t)})
	id := 0
	half := func() {
		for range 5000 / 20 {
			for range 20 {
				id++
				must(t, w.call(id, 100))
			}
			for range 20 {
				_, err := w.read()
				must(t, err)
			}
		}
	}
	half()
	threads := procStatus(t, w, "Threads")
	half()
	if n := procStatus(t, w, "Threads"); n > threads+1 {
		t.Errorf("%d threads after 10 000 calls, %d after 5 000", n, threads)
	}
	// The last sync and the tidying after the start finish; then a second has
	// at most one tick of the clock.
	eventually(t, "an idle proxy uses the processor", func() bool {
		before := ticks(t, w)
		<-time.After(time.Second)
		return ticks(t, w)-before <= 1
	})
	if status := w.end(); status != 0 {
		t.Errorf("status %#x", status)
	}
	if n := len(w.checkTrail().finals); n != 10_000 {
		t.Errorf("%d calls have a record", n)
	}
}

// ticks is the processor time of the proxy, in clock ticks.
func ticks(t *testing.T, w *wrapped) (sum int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(w.cmd.Process.Pid), "stat"))
	must(t, err)
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(f)
		must(t, err)
		sum += n
	}
	return sum
}
