package ocsf_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/export/ocsf"
	"auditproxy/mcpproxy"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A memory is a journal in memory.
type memory struct {
	mu    sync.Mutex
	lines []byte
}

func (m *memory) Append(lines []byte, _ bool) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, lines...)
	return int64(len(m.lines)), nil
}

func (m *memory) Wait(int64, time.Duration) bool { return true }

func (m *memory) Last() {}

// TestSecretsStayOut has a proxy record calls that are full of secrets, and answers
// of a server that repeats them: no event has one in any form. An ordinary word at a
// place that is clear by design is in the events.
func TestSecretsStayOut(t *testing.T) {
	const canary, number, word = "zk7QwX-canary-93vB", "90817263544", "Marmalade"
	sed, err := exec.LookPath("sed")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{canary, number}
	forms := []func(string) string{
		func(s string) string { return s },
		escapes,
		func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		func(s string) string { return hex.EncodeToString([]byte(s)) },
		url.QueryEscape,
	}
	// As parts, so that secret scanners do not report them.
	credentials := []string{
		"AKIA" + "Q3EGRZ5XHT7KXN2M", "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx", "glpat-" + "Zx8Yw7Vu6Ts5Rq4Po3Nm",
		"sk-ant-" + "api03-Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1Hg0Fe9", "npm_" + "Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1Hg0Fe9Dc8B",
		"eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	}
	list, err := os.ReadFile("../../../redact/testdata/positions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var client bytes.Buffer
	calls := 0
	send := func(format string, args ...any) {
		calls++
		fmt.Fprintf(&client, `{"jsonrpc":"2.0","id":%d,`+format+"}\n", append([]any{calls}, args...)...)
	}
	fmt.Fprintf(&client, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"%s","version":"PASSWORD=%s"}}}`+"\n", credentials[0], canary)
	for line := range strings.Lines(string(list)) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "NUMBER", number)
		if !jsontext.Valid([]byte(line)) {
			continue
		}
		for _, form := range forms {
			send(`"method":"tools/call","params":{"name":"set_environment","arguments":%s}`, strings.ReplaceAll(line, "CANARY", form(canary)))
		}
	}
	for _, c := range credentials {
		secrets = append(secrets, c)
		for _, form := range forms {
			s := form(c)
			send(`"method":"tools/call","params":{"name":"%s","arguments":{"note":"%s","output_path":"/tmp/%s","%s":1,"operations":[{"tool":"%s","arguments":{"output_path":"%s"}}]}}`, s, s, s, s, s, s)
			send(`"method":"resources/read","params":{"uri":"https://ann:%s@example.com/%s","_meta":{"client_id":"%s","traceparent":"%s"}}`, canary, s, s, s)
			send(`"method":"%s","METHOD":"tools/call","method":"%s","params":{"name":"x","name":"%s"}`, s, s, s)
		}
	}
	send(`"method":"tools/call","params":{"name":"pipe_pane","arguments":{"output_path":"/tmp/%s"}}`, word)

	answer := fmt.Sprintf(`s/.*"id":\([0-9]*\),.*/{"jsonrpc":"2.0","id":\1,"error":{"code":-32000,"message":"password=%s %s","data":"%s"}}/`, canary, credentials[1], credentials[2])
	var events []byte
	n := 0
	for line := range bytes.Lines(record(t, client.Bytes(), sed, "-u", answer)) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if bytes.HasPrefix(line, []byte(`{"line":`)) {
			continue
		}
		r := parsed(t, line)
		event, err := ocsf.New(ocsf.Config{Raw: n%2 == 0}).Append(nil, &r)
		if err == nil {
			n++
			events = append(append(events, event...), '\n')
		}
	}
	if n < calls {
		t.Errorf("%d calls have %d events", calls, n)
	}
	if !bytes.Contains(events, []byte("/tmp/"+word)) {
		t.Error("the ordinary word is in no event")
	}
	folded := bytes.ToLower(bytes.ReplaceAll(events, []byte(`\\`), []byte(`\`)))
	for _, secret := range secrets {
		for i, form := range forms {
			text := form(secret)
			if i == 2 {
				text = strings.TrimRight(text, "=")[:len(secret)] // whole groups
			}
			if at := bytes.Index(folded, bytes.ToLower([]byte(text))); at >= 0 {
				t.Errorf("form %d of %.12s is in …%s…", i, secret, folded[max(0, at-100):at+len(text)])
			}
		}
	}
}

func escapes(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

// record returns the lines of a proxy that a client sends bytes to.
func record(t *testing.T, client []byte, command ...string) []byte {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	red, err := redact.New(redact.Config{Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	journal := &memory{}
	p, err := mcpproxy.New(mcpproxy.Config{
		Command: command, In: inR, Out: out, Journal: journal, Redactor: red, Drain: time.Minute,
		Base: audit.Record{SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab", Host: "build-7", User: "ann", PID: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.Run(context.Background())
		p.Close()
		done <- err
	}()
	if _, err := inW.Write(client); err != nil {
		t.Fatal(err)
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return journal.lines
}
