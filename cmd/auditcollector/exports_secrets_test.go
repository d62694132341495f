package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/deploy/dev"
	"auditproxy/schemas/jsontext"
	"auditproxy/sink/clickhouse/chdb"
)

const (
	canary       = "zk7QwX-canary-93vB"
	canaryNumber = "90817263544"
	clearWord    = "Marmalade" // at a place that is clear by design
)

// forms are those in which a secret may come out.
var forms = []func(string) string{
	func(s string) string { return s },
	func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		return b.String()
	},
	func(s string) string {
		whole := base64.StdEncoding.EncodeToString([]byte(s))
		return whole[:len(s)/3*4] // what follows depends on what comes next
	},
	func(s string) string { return hex.EncodeToString([]byte(s)) },
	url.QueryEscape,
}

// secretCalls returns what a client sends: calls with secrets in each place from
// which redaction takes them, in each form, and one with a clear word.
func secretCalls(t *testing.T) (text []byte, calls int) {
	t.Helper()
	list, err := os.ReadFile("../../redact/testdata/positions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	send := func(format string, args ...any) {
		calls++
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,`+format+"}\n", append([]any{calls}, args...)...)
	}
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"PASSWORD=%s","version":"1"}}}`+"\n", canary)
	for line := range strings.Lines(string(list)) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "NUMBER", canaryNumber)
		if !jsontext.Valid([]byte(line)) {
			continue
		}
		for _, form := range forms {
			send(`"method":"tools/call","params":{"name":"set_environment","arguments":%s}`, strings.ReplaceAll(line, "CANARY", form(canary)))
		}
	}
	send(`"method":"resources/read","params":{"uri":"https://ann:%s@example.com/x?token=%[1]s","_meta":{"client_id":"password=%[1]s"}}`, canary)
	send(`"method":"tools/call","params":{"name":"batch","arguments":{"operations":[{"tool":"send_keys","arguments":{"keys":"%s"}}]}}`, canary)
	send(`"method":"tools/call","params":{"name":"pipe_pane","arguments":{"output_path":"/tmp/%s"}}`, clearWord)
	return b.Bytes(), calls
}

// A box keeps what is posted to it.
type box struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (b *box) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, text...)
}

func (b *box) has() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text)
}

// TestSecretsAreNotExported has a real proxy record calls that are full of secrets,
// and a server's errors that repeat them; so is the address of a webhook. Nothing that
// leaves the collector has one, in any form, though the receivers get all that they can be
// configured to get: exports, rows, pages, logs. All has the clear word, so that it has
// the calls.
func TestSecretsAreNotExported(t *testing.T) {
	t.Parallel()
	otelcol := dev.Fetched(t, "otelcol")
	h := newHome(t)
	client, calls := secretCalls(t)
	answer := fmt.Sprintf(`s/.*"id":\([0-9]*\),.*/{"jsonrpc":"2.0","id":\1,"error":{"code":-32000,"message":"password=%s","data":"%[1]s"}}/`, canary)
	proxy := exec.Command(clitest.Build(t, "auditproxy/cmd/auditproxy"), "--spool-dir", h.spoolDir(), "--", "sed", "-u", answer)
	proxy.Env, proxy.Stdin = h.env, bytes.NewReader(client)
	if out, err := proxy.CombinedOutput(); err != nil {
		t.Fatalf("the proxy: %v\n%s", err, out)
	}

	posts := &box{}
	server := httptest.NewServer(posts)
	t.Cleanup(server.Close)
	grpc, telemetry := dev.FreeAddr(t), filepath.Join(h.dir, "telemetry")
	config := fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {file: {path: %q}}
service: {pipelines: {logs: {receivers: [otlp], exporters: [file]}, traces: {receivers: [otlp], exporters: [file]}, metrics: {receivers: [otlp], exporters: [file]}}}
`, grpc, telemetry)
	if err := os.WriteFile(telemetry+".yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	receiver := exec.Command(otelcol, telemetry+".yaml")
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Process.Kill(); _ = receiver.Wait() })
	flag := h.receivers(t, fmt.Sprintf(`
receivers:
  - {name: telemetry, arguments: true, since: 1d, otlp: {endpoint: "http://%[1]s", protocol: grpc}}
  - {name: events, raw: true, since: 1d, file: {path: %[2]s/events.ndjson}}
  - {name: lines, format: ndjson, since: 1d, file: {path: %[2]s/lines.ndjson}}
  - {name: post, raw: true, since: 1d, http: {url: %[3]q}}
`, grpc, h.dir, server.URL))
	h.env = append(h.env, fmt.Sprintf("AUDITCOLLECTOR_ALERT_WEBHOOKS=http://127.0.0.1:1/%s?token=%[1]s", canary))
	p := h.collect(t, "--batch-wait", "20ms", "--review-listen", "127.0.0.1:0", "--log-level", "debug", flag)
	eventually(t, "all is stored", func() bool { return h.number("SELECT count() FROM audit.events WHERE kind = 'call'") >= int64(calls) })
	fileOf := func(name string) func() []byte {
		return func() []byte {
			text, err := os.ReadFile(name)
			if err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
			return text
		}
	}
	outputs := map[string]func() []byte{
		"telemetry": fileOf(telemetry), "events": fileOf(filepath.Join(h.dir, "events.ndjson")), "lines": fileOf(filepath.Join(h.dir, "lines.ndjson")), "post": posts.has,
	}
	// The clear word is in the last call.
	for name, text := range outputs {
		eventually(t, name+" has the last call", func() bool { return bytes.Contains(text(), []byte(clearWord)) })
	}
	for _, format := range []string{"ocsf", "ndjson", "csv", "parquet"} {
		file := filepath.Join(h.dir, "exported."+format)
		if r := h.run(t, "export", "--format", format, "--output", file); r.code != 0 {
			t.Fatalf("export: %+v", r)
		}
		outputs["export --format "+format] = fileOf(file)
		if format == "parquet" { // its pages are compressed
			text, err := h.query(chdb.Writer, "SELECT * FROM file('"+file+"', Parquet) FORMAT JSONEachRow")
			if err != nil {
				t.Fatal(err)
			}
			outputs["the rows of parquet"] = func() []byte { return []byte(text) }
			delete(outputs, "export --format parquet")
		}
	}
	pages := reviewedPages(t, h)
	outputs["the review page"] = func() []byte { return pages }
	found := h.run(t, "rules", "test", "shipped", "--since", "1h", "--json")
	if found.code != 1 { // alerts
		t.Errorf("rules test: %+v", found)
	}
	outputs["rules test"] = func() []byte { return []byte(found.stdout + found.stderr + clearWord) }
	rows := storedRows(t, h)
	outputs["ClickHouse"] = func() []byte { return rows }
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	outputs["the collector's log"] = func() []byte { return []byte(p.stderr.String() + clearWord) }
	for name, output := range outputs {
		text := output()
		if !bytes.Contains(text, []byte(clearWord)) {
			t.Errorf("%s has no call", name)
		}
		// An escape may itself be escaped, in a text that is a member's value.
		folded := bytes.ToLower(text)
		for bytes.Contains(folded, []byte(`\\`)) {
			folded = bytes.ReplaceAll(folded, []byte(`\\`), []byte(`\`))
		}
		for _, secret := range []string{canary, canaryNumber} {
			for i, form := range forms {
				if at := bytes.Index(folded, bytes.ToLower([]byte(form(secret)))); at >= 0 {
					t.Errorf("%s has form %d of %.5s…: …%s…", name, i, secret, folded[max(0, at-200):at+len(secret)])
					break
				}
			}
		}
	}
}

// reviewedPages returns what a reviewer sees: lists, exports, and the calls and sessions that
// the lists lead to.
func reviewedPages(t *testing.T, h home) (pages []byte) {
	t.Helper()
	ann := newReviewer(t, "", &http.Transport{})
	ann.open(h.link(t))
	list := []string{"/", "/calls", "/sessions", "/alerts", "/decisions", "/tools", "/environment", "/destinations", "/calls.csv", "/calls.ndjson"}
	for i := 0; i < len(list); i++ {
		status, page := ann.get(list[i])
		if status != http.StatusOK {
			t.Errorf("%s: %d", list[i], status)
		}
		pages = append(pages, page...)
		if strings.Count(list[i], "/") == 1 {
			for _, link := range regexp.MustCompile(`href="(/(?:calls|sessions|alerts)/[^"]+)"`).FindAllStringSubmatch(page, -1) {
				if path := html.UnescapeString(link[1]); len(list) < 100 && !slices.Contains(list, path) {
					list = append(list, path)
				}
			}
		}
	}
	if len(list) < 20 {
		t.Errorf("the pages lead to %d", len(list))
	}
	return pages
}

// storedRows returns all rows of all tables, with the columns that queries compute.
func storedRows(t *testing.T, h home) (rows []byte) {
	t.Helper()
	names, err := h.query(chdb.Writer, "SELECT name FROM system.tables WHERE database = 'audit' AND engine NOT LIKE '%View' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(names) {
		text, err := h.query(chdb.Writer, "SELECT * FROM audit."+name+" SETTINGS asterisk_include_materialized_columns = 1, asterisk_include_alias_columns = 1 FORMAT JSONEachRow")
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		rows = append(rows, text...)
	}
	return rows
}
