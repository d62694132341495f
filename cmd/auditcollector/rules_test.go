package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"auditproxy/collector/alert"
	"auditproxy/schemas/audit"
)

// piped makes a call that pipes a pane, inside a batch.
func piped(path string) func(*audit.Record) {
	return func(r *audit.Record) {
		r.Tool = "call_execute_tools_batch"
		r.Args = audit.JSON(`{"operations":[{"tool":"pipe_pane","arguments":{"output_path":"` + path + `"}}]}`)
	}
}

// TestAlerts runs the collector with a webhook that is down at first, kills it,
// and checks the stored alerts and the notifications. Then the webhook gets another
// address, and a file that is half written.
func TestAlerts(t *testing.T) {
	t.Parallel()
	told := make(chan map[string]any, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var message map[string]any
		if err != nil || json.Unmarshal(text, &message) != nil {
			t.Errorf("the webhook got %q, %v", text, err)
			return
		}
		message["asked"] = r.URL.Path
		told <- message
	}))
	defer hook.Close()
	h := newHome(t)
	addresses := filepath.Join(h.dir, "webhooks")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(addresses, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# the team's channel\n\n" + hook.URL + "/token-of-the-hook\r\n")
	h.env = append(h.env, "AUDITCOLLECTOR_ALERT_WEBHOOKS_FILE="+addresses, "AUDITCOLLECTOR_ALERT_ALLOWED_PATHS=/srv/logs")
	w := h.writer(t)
	defer w.stop()
	p := h.collect(t)
	eventually(t, "the collector has registered", h.counts(t, "SELECT count() FROM audit.alert_deliveries WHERE state = 'registered'", 2))
	w.call(piped("/srv/logs/a"))
	w.call(piped("/tmp/x"))
	message := <-told
	if message["rule"] != "pipe-pane-outside" || message["path"] != "operations[0]" || message["operation"] != "pipe_pane" {
		t.Errorf("the webhook got %v, want the pipe_pane inside the batch", message)
	}
	eventually(t, "both deliveries are noted", h.counts(t, "SELECT count() FROM audit.alert_deliveries WHERE alert_id != ''", 2))
	p.end(syscall.SIGKILL)
	w.call(piped("/tmp/y"))
	p = h.collect(t)
	if message := <-told; !strings.Contains(message["details"].(map[string]any)["destination"].(string), "/tmp/y") {
		t.Errorf("after a crash the webhook got %v, want the second destination and the first not again", message)
	}
	if rows := h.ask(t, "SELECT count(), uniqExact(alert_id) FROM audit.alerts"); strings.Join(rows, " ") != "2 2" {
		t.Errorf("alerts and their ids: %v, want 2 2", rows)
	}
	// Three seconds ago is long enough: the clock is the same.
	r := h.run(t, "rules", "test", "shipped", "--since", "1h", "--json")
	if got := strings.Count(r.stdout, `"rule":"pipe-pane-outside"`); r.code != 1 || got != 2 {
		t.Errorf("rules test = %+v, want two alerts and exit code 1", r)
	}
	if r := h.run(t, "rules", "test", "shipped", "--since", "1h"); r.code != 1 || !strings.Contains(r.stdout, "     2 pipe-pane-outside") {
		t.Errorf("rules test = %+v, want a table", r)
	}
	for i, tt := range []struct{ text, problem string }{
		{hook.URL + "/token-after-rotation", ""}, {"ht", "alert.webhooks_file: " + addresses + ":1: want an address"},
		{hook.URL + "/token-of-one\n" + hook.URL + "/token-of-two", ""}, {hook.URL + "/token-after-rotation", ""},
		{hook.URL + "/token-of-one\n" + hook.URL + "/token-of-two", "it has 2 addresses, and had 1 at the start"},
	} {
		write(tt.text)
		w.call(piped(fmt.Sprintf("/tmp/z%d", i)))
		if message := <-told; message["asked"] != "/token-after-rotation" {
			t.Errorf("with %q in the file the address is %v", tt.text, message["asked"])
		}
		eventually(t, tt.problem, func() bool { return p.stderr.has(tt.problem) })
	}
	p.end(syscall.SIGTERM)
	if strings.Contains(p.stderr.String(), "token") {
		t.Errorf("the log holds the webhook's address:\n%s", p.stderr)
	}
	select {
	case message := <-told:
		t.Errorf("the webhook got %v too", message)
	default:
	}
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	file := filepath.Join(h.dir, "rules.yaml")
	text := "rules:\n  - name: a\n    title: A\n    severity: low\n    reason: R\n    operations: [x]\n    when: op.tol == 'x'\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := h.run(t, "rules", "check", file)
	for _, want := range []string{file + ":4:15: ", file + ":7:13: "} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("rules check says %q, want %q", r.stderr, want)
		}
	}
	if r.code != 1 {
		t.Errorf("rules check of wrong rules exits %d, want 1", r.code)
	}
	if r := h.run(t, "rules", "check", "shipped"); r.code != 0 {
		t.Errorf("rules check of the shipped rules = %+v", r)
	}
	if r := h.run(t, "rules", "check", file+".gone"); r.code != 2 {
		t.Errorf("rules check of no file = %+v, want exit code 2", r)
	}
	if r := h.run(t, "rules", "list"); r.code != 0 || !strings.Contains(r.stdout, "pipe-pane-outside") {
		t.Errorf("rules list = %+v", r)
	}
}

// TestReceiverAddresses checks what is wrong about addresses of receivers. No message has one.
func TestReceiverAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key, file string // file: the content of the one that key+"_FILE" names; "-": none is there
		value           string
		want            string
	}{
		{"a variable", "WEBHOOKS", "", "ftp://secret-host", "alert.webhooks (variable AUDITCOLLECTOR_ALERT_WEBHOOKS): entry 1: want an address"},
		{"a line of a file", "WEBHOOKS", "# ours\nhttps://a/b\n\n ftp://secret-host\n", "", "alert.webhooks_file: FILE:4: want an address"},
		{"Alertmanagers", "ALERTMANAGER", "secret-host:9093", "", "alert.alertmanager_file: FILE:1: want an address"},
		{"an empty file", "WEBHOOKS", "# none yet\n", "", `reading alert.webhooks_file: "FILE" has no address`},
		{"no file", "ALERTMANAGER", "-", "", "reading alert.alertmanager_file: stat FILE: no such file"},
		{"a file that is no list", "WEBHOOKS", strings.Repeat("#", 1<<20+1), "", `reading alert.webhooks_file: "FILE" has more than 1MiB`},
		{"a value and a file", "WEBHOOKS", "https://secret-host/a", "https://secret-host/b", "alert.webhooks_file: there is alert.webhooks too: want one of them"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := emptyHome(t)
			name := filepath.Join(h.dir, "addresses")
			if tt.file != "" {
				h.env = append(h.env, "AUDITCOLLECTOR_ALERT_"+tt.key+"_FILE="+name)
			}
			if tt.file != "" && tt.file != "-" {
				if err := os.WriteFile(name, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.value != "" {
				h.env = append(h.env, "AUDITCOLLECTOR_ALERT_"+tt.key+"="+tt.value)
			}
			r := h.run(t, "run")
			if want := strings.ReplaceAll(tt.want, "FILE", name); r.code != 78 || strings.Contains(r.stderr, "secret-host") || !strings.Contains(r.stderr, want) {
				t.Errorf("run = %+v, want exit code 78, no address and %q", r, want)
			}
		})
	}
}

// TestRulesTestJSON prints an alert about a tool whose name would steer a terminal.
func TestRulesTestJSON(t *testing.T) {
	var out strings.Builder
	const name = "send\u009b2J\u202e"
	if err := new(ruleTest).printJSON(bufio.NewWriter(&out), []alert.Alert{{Operation: name, Details: "{}"}}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Operation string }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Operation != name || !strings.Contains(out.String(), `send\u009b2J\u202e`) {
		t.Errorf("%v, printed %q", err, out.String())
	}
}
