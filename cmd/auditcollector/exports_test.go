package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse/chdb"
)

// receivers writes a file of receivers, and returns the flag that names it.
func (h home) receivers(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(h.dir, "receivers.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--export-receivers=" + name
}

// linesOf returns how often each line is in files, of which the last may have an
// unfinished line.
func linesOf(t *testing.T, pattern string) map[string]int {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for r := bufio.NewReader(f); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			lines[strings.TrimSuffix(line, "\n")]++
		}
	}
	return lines
}

// stored returns the distinct records in the table.
func (h home) stored(t *testing.T) (raw []string) {
	t.Helper()
	text, err := h.query(chdb.Writer, "SELECT DISTINCT raw FROM audit.events")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// A postbox is a receiver by HTTP that fails in several ways.
type postbox struct {
	elsewhere string // where it redirects to

	mu    sync.Mutex     // guards all below
	lines map[string]int // that it has acknowledged, or not
	posts int
	away  bool
}

func (p *postbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if z, err := gzip.NewReader(r.Body); err == nil {
		body = z
	}
	text, err := io.ReadAll(body)
	if p.serve(w, r, string(text), err) {
		<-r.Context().Done() // until the client waits no longer
	}
}

// serve reports whether it gives no answer.
func (p *postbox) serve(w http.ResponseWriter, r *http.Request, text string, err error) (hangs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posts++
	how := p.posts % 41
	switch {
	case err != nil || p.away || p.posts%5 == 1:
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return false
	case strings.Contains(text, `"tool":"poison"`):
		http.Error(w, "I do not want that", http.StatusBadRequest)
		return false
	case how == 5:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many", http.StatusTooManyRequests)
		return false
	case how == 9:
		http.Redirect(w, r, p.elsewhere, http.StatusPermanentRedirect)
		return false
	case len(text) > 64<<10:
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return false
	}
	for line := range strings.Lines(text) {
		p.lines[strings.TrimSuffix(line, "\n")]++
	}
	// It has taken them from here on, and does not say so.
	switch how {
	case 15, 33:
		http.Error(w, "failed", http.StatusInternalServerError)
	case 20:
		panic(http.ErrAbortHandler) // the connection ends
	case 28:
		return true
	}
	return false
}

func (p *postbox) has() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.lines)
}

// TestExportKills kills the collector and its engine while records arrive and are
// exported to files and to an address that fails now and then. At the end each record
// in events is at each receiver, and what is there twice is the same.
func TestExportKills(t *testing.T) {
	t.Parallel()
	kills := 6
	if soak() {
		kills = 60
	}
	random := newRandom(t)
	h := newHome(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect has sent a request elsewhere, with the headers %v", r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	box := &postbox{lines: map[string]int{}, elsewhere: elsewhere.URL}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	if err := os.WriteFile(filepath.Join(h.dir, "headers"), []byte("Authorization: Bearer hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flag := h.receivers(t, fmt.Sprintf(`
receivers:
  - {name: records, format: ndjson, since: 1d, file: {path: %[1]s/records.ndjson, max_size: 256KiB}}
  - {name: events, format: ocsf, alerts: false, since: 1d, file: {path: %[1]s/events.ndjson}}
  - {name: some, format: ndjson, since: 1d, when: 'op.tool == "kill_server"', file: {path: %[1]s/some.ndjson}}
  - {name: post, format: ndjson, since: 1d, http: {url: %[2]q, gzip: true, timeout: 5s, headers_file: %[1]s/headers}}
  - {name: absent, format: ocsf, since: 1d, http: {url: "http://127.0.0.1:1/", timeout: 1s}}
`, h.dir, server.URL))
	w := h.writer(t)
	p := h.collect(t, "--batch-wait", "20ms", "--log-level", "info", flag)
	eventually(t, "the collector has started", h.counts(t, "SELECT 1", 1))
	poison := 0
	for i := range kills {
		for n := range 300 {
			w.call(func(r *audit.Record) {
				switch {
				case n%50 == 0:
					r.Tool = "kill_server"
				case n == 133:
					r.Tool = "poison"
					poison++
				}
			})
		}
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
		if i%2 == 0 {
			eventually(t, "there is an engine to kill", func() bool { return signalEngine(t, p.cmd.Process.Pid, syscall.SIGKILL) })
			continue
		}
		p.end(syscall.SIGKILL)
		p = h.collect(t, "--batch-wait", "20ms", "--log-level", "info", flag)
	}
	w.stop()
	eventually(t, "all is stored", h.counts(t, distinct, len(w.book.Entries)+1)) // with the session's end
	stored := h.stored(t)
	wanted := func(line string) bool { return !strings.Contains(line, `"tool":"poison"`) }
	for _, r := range []struct {
		name string
		want func(line string) bool
		have func() map[string]int
	}{
		{"records", func(string) bool { return true }, func() map[string]int { return linesOf(t, h.dir+"/records.ndjson*") }},
		{"some", func(line string) bool { return strings.Contains(line, `"tool":"kill_server"`) }, func() map[string]int { return linesOf(t, h.dir+"/some.ndjson*") }},
		{"post", wanted, box.has},
	} {
		want := slices.DeleteFunc(slices.Clone(stored), func(line string) bool { return !r.want(line) })
		lost := func() (n int) {
			have := r.have()
			for _, line := range want {
				if have[line] == 0 {
					n++
				}
			}
			return n
		}
		// A receiver that fails so often gets about fifteen records a second.
		for left := lost(); left > 0; left = lost() {
			eventually(t, fmt.Sprintf("receiver %s has more of %d records", r.name, len(want)), func() bool { return lost() < left })
		}
		times, more := 0, r.have()
		for _, line := range want {
			times += more[line]
			delete(more, line)
		}
		if len(more) > 0 {
			t.Errorf("receiver %s has %d lines that are not stored: %q", r.name, len(more), slices.Collect(maps.Keys(more))[0])
		}
		t.Logf("receiver %s has %d records, lost 0, %d of them again", r.name, len(want), times-len(want))
	}
	eventually(t, "the events are there", func() bool { return len(eventIDs(t, h.dir+"/events.ndjson*")) >= len(stored) })
	if got := eventIDs(t, h.dir+"/events.ndjson*"); len(got) != len(stored) {
		t.Errorf("%d events of %d records", len(got), len(stored))
	}

	refused := h.run(t, "receivers", "refused", "post", "--format", "json")
	// A record that was stored again, because a kill came before it was acknowledged,
	// has a second arrival, and may be refused for each.
	records := map[string]bool{}
	for line := range strings.Lines(refused.stdout) {
		records[line[:strings.Index(line, ",")]] = true
	}
	if len(records) != poison || refused.code != 1 || !strings.Contains(refused.stdout, "status 400") {
		t.Errorf("refused: %d, want %d: %+v", len(records), poison, refused)
	}
	eventually(t, "one receiver fails", func() bool { // marks are stored now and then
		var list []receiverStatus
		status := h.run(t, "receivers", flag, "--format", "json")
		if err := json.Unmarshal([]byte(status.stdout), &list); err != nil || status.code != 1 || len(list) != 5 {
			t.Fatalf("receivers: %+v, %v", status, err)
		}
		return !slices.ContainsFunc(list, func(r receiverStatus) bool {
			bad := r.Name == "absent"
			return (r.State == "fails") != bad || (r.Error == "") == bad || bad != (r.Waiting >= uint64(len(stored)))
		})
	})
	if text := h.run(t, "receivers", flag); !strings.Contains(text.stdout, "absent") || text.code != 1 {
		t.Errorf("receivers: %+v", text)
	}
	if r := h.run(t, "receivers", "resend", "records", "--all"); r.code != 1 || r.stdout != "0 to be sent again\n" {
		t.Errorf("resend of nothing: %+v", r)
	}
	for _, command := range [][]string{{"refused", "pots"}, {"resend", "pots", "--all"}} {
		if r := h.run(t, append([]string{"receivers"}, command...)...); r.code != 2 || !strings.Contains(r.stderr, `there is no receiver "pots"; the receivers are [`) {
			t.Errorf("receivers %q: %+v", command, r)
		}
	}
	// The receiver takes everything now.
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	if r := h.run(t, "receivers", "resend", "post", "--all"); r.code != 0 || r.stdout != fmt.Sprintf("%d to be sent again\n", strings.Count(refused.stdout, "\n")) {
		t.Errorf("resend: %+v", r)
	}
	eventually(t, "nothing is refused any more", func() bool { return h.run(t, "receivers", "refused", "post").code == 0 })
	resp, err := http.Get(p.metrics(t) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(metrics); !strings.Contains(text, `auditcollector_export_up{receiver="absent"} 0`) || !strings.Contains(text, `auditcollector_export_up{receiver="records"} 1`) {
		t.Errorf("metrics:\n%s", text)
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if owner := h.positions(t); owner != "" {
		t.Errorf("after an orderly end these receivers have an owner: %s", owner)
	}
}

// positions returns the receivers whose marks are owned.
func (h home) positions(t *testing.T) string {
	t.Helper()
	r := h.run(t, "query", "--format", "csv", "SELECT receiver FROM export_marks WHERE owner != ''")
	return strings.TrimSpace(strings.TrimPrefix(r.stdout, "receiver\n"))
}

// eventIDs returns the ids of OCSF events of records.
func eventIDs(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for line := range linesOf(t, pattern) {
		var event struct {
			Class    int `json:"class_uid"`
			Metadata struct {
				UID string `json:"uid"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		ids[event.Metadata.UID] = true
	}
	return ids
}
