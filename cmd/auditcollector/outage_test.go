package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// metrics returns the address of the metrics, which the program has logged.
func (p process) metrics(t *testing.T) string {
	t.Helper()
	addr := regexp.MustCompile(`serving metrics.*"addr": ?"([^"]+)"`)
	eventually(t, "the metrics are served", func() bool { return addr.MatchString(p.stderr.String()) })
	return "http://" + addr.FindStringSubmatch(p.stderr.String())[1]
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// The name, which may have spaces, ends with the last parenthesis.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if parent, _ := strconv.Atoi(fields[1]); parent == pid {
			list = append(list, child)
		}
	}
	return list
}

// TestOutage stops the engine, so that it hangs: the age of the oldest record grows
// until the engine goes on.
func TestOutage(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	defer w.stop()
	p := h.collect(t, "--batch-wait", "20ms", "--log-level", "info")
	w.call()
	eventually(t, "the first record is there", h.counts(t, distinct, 1))
	at := p.metrics(t)
	value := func(name string) float64 {
		resp, err := http.Get(at + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("no %s in\n%s", name, text)
		}
		v, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	age := func() float64 { return value("auditcollector_oldest_unacknowledged_seconds") }
	eventually(t, "nothing waits", func() bool { return age() == 0 })

	engines := children(t, p.cmd.Process.Pid)
	if len(engines) != 1 {
		t.Fatalf("the collector has the children %v, want its engine", engines)
	}
	stop := func(s syscall.Signal) {
		for _, pid := range append(children(t, engines[0]), engines[0]) {
			_ = syscall.Kill(pid, s) // the collector may have killed it
		}
	}
	stop(syscall.SIGSTOP)
	defer stop(syscall.SIGCONT)
	w.call()
	eventually(t, "a record waits", func() bool { return age() > 0.5 })
	was := age()
	eventually(t, "it grows older", func() bool { return age() > was+0.5 })
	stop(syscall.SIGCONT)
	eventually(t, "all records are there", h.counts(t, distinct, 2))
	eventually(t, "nothing waits after all", func() bool { return age() == 0 })
	if got := value("auditcollector_failing_parts"); got != 0 {
		t.Errorf("%v parts fail", got)
	}
	p.end(syscall.SIGTERM)
}
