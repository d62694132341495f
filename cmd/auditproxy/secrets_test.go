package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/schemas/jsontext"
)

// These tests put secrets into every place that a client, a server or the user
// who starts the proxy can write to, and search every byte that the proxy
// wrote.

// A credential has one of the recognised formats. It is put together here so
// that secret scanners do not report it.
type credential struct {
	format string
	text   string
	secret string // the part that must not leak; "": all
}

var credentials = []credential{
	{"AWS key id", "AKIA" + "Q3EGRZ5XHT7KXN2M", ""},
	{"AWS session key id", "ASIA" + "Q3EGRZ5XHT7KXN2M", ""},
	{"AWS key", "AKIA" + "Q3EGRZ5XHT7KXN2M wJalrXUtnFEMI/K7MDENG/bPxRfiCYzTUVWXYKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzTUVWXYKEY"},
	{"GitHub", "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx", ""},
	{"GitHub OAuth", "gho_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx", ""},
	{"GitHub fine-grained", "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567890abcdefgh", ""},
	{"GitLab", "glpat-" + "Zx8Yw7Vu6Ts5Rq4Po3Nm", ""},
	{"Slack bot", "xoxb-" + "2345678901-2345678901234-AbCdEfGhIjKlMnOpQrStUvWx", ""},
	{"Slack app", "xapp-" + "1-A0123456789-2345678901234-abcdef0123456789", ""},
	{"Slack webhook", "https://hooks.slack.com/services/" + "T02AB34CD/B05EF67GH/AbCdEfGhIjKlMnOpQrStUvWx", "AbCdEfGhIjKlMnOpQrStUvWx"},
	{"OpenAI", "sk-" + "proj-T3BlbkFJabc123DEF456ghi789JKL012mno345", ""},
	{"Anthropic", "sk-ant-" + "api03-Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1Hg0Fe9", ""},
	{"Stripe", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", ""},
	{"Google", "AIza" + "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe", ""},
	{"npm", "npm_" + "Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1Hg0Fe9Dc8B", ""},
	{"PyPI", "pypi-" + "AgEIcHlwaS5vcmcCJDc2YjQ4ZjJlLTQ2MjUtNDk4ZS1iZTU3", ""},
	{"SendGrid", "SG." + "ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr", ""},
	{"Hugging Face", "hf_" + "ZxYwVuTsRqPoNmLkJiHgFeDcBaZyXwVuTs", ""},
	{"JWT", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", ""},
	{"PEM", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"},
	{"Bearer", "Bearer Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1", "Zx8Yw7Vu6Ts5Rq4Po3NmLk2Ji1"},
	{"Basic", "Basic QWxhZGRpbjpPcGVuU2VzYW1lNDI=", "QWxhZGRpbjpPcGVuU2VzYW1lNDI="},
	{"userinfo", "https://ann:c0rrect-h0rse-battery@example.com/x", "c0rrect-h0rse-battery"},
	{"query parameter", "https://example.com/x?access_token=c0rrect-h0rse-battery", "c0rrect-h0rse-battery"},
	{"NAME=value", "DB_PASSWORD=c0rrect-h0rse-battery", "c0rrect-h0rse-battery"},
	{"--name=value", "--api-key=c0rrect-h0rse-battery", "c0rrect-h0rse-battery"},
	{"--name value", "--client-secret c0rrect-h0rse-battery", "c0rrect-h0rse-battery"},
}

func (c credential) hidden() string {
	if c.secret == "" {
		return c.text
	}
	return c.secret
}

// An encoding is a form in which a secret may try to pass, as the inside of a
// JSON string.
type encoding struct {
	name string
	of   func(string) string
}

var encodings = []encoding{
	{"as it is", quoteInner},
	{"escaped on the wire", unicodeEscapes},
	{"escaped in the text", func(s string) string { return quoteInner(unicodeEscapes(s)) }},
	{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
	{"percent-encoded", percent},
}

func quoteInner(s string) string {
	quoted := jsontext.AppendQuote(nil, s)
	return string(quoted[1 : len(quoted)-1])
}

func unicodeEscapes(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// leak returns in which form a part of secret occurs in text and the text
// around it, or "". Letters count in either case.
func leak(text []byte, secret string) string {
	text = unescaped(bytes.ToLower(text))
	const part = 16 // bytes: a credential that lost only its beginning is still one
	for _, s := range []string{secret[:min(part, len(secret))], secret[max(0, len(secret)-part):]} {
		for name, form := range forms(s) {
			if i := bytes.Index(text, bytes.ToLower(form)); i >= 0 {
				return fmt.Sprintf("%s: …%s…", name, text[max(0, i-60):min(len(text), i+len(form)+20)])
			}
		}
	}
	return ""
}

// unescaped makes one backslash of several, which strings in strings have.
func unescaped(text []byte) []byte {
	for bytes.Contains(text, []byte(`\\`)) {
		text = bytes.ReplaceAll(text, []byte(`\\`), []byte(`\`))
	}
	return text
}

func forms(s string) map[string][]byte {
	f := map[string][]byte{
		"as it is":        []byte(s),
		"hex":             []byte(hex.EncodeToString([]byte(s))),
		"percent-encoded": []byte(percent(s)),
		"escaped":         []byte(unicodeEscapes(s)),
	}
	for shift := range 3 {
		// Of a value encoded behind shift other bytes, only the digits that
		// these do not touch; and the same at the end.
		digits := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), s...))
		digits = digits[(shift*8+5)/6 : (shift+len(s))*8/6]
		f[fmt.Sprintf("base64 at %d", shift)] = []byte(digits)
		f[fmt.Sprintf("base64 for URLs at %d", shift)] = []byte(strings.NewReplacer("+", "-", "/", "_").Replace(digits))
	}
	return f
}

// A sweep is a proxy that is fed secrets.
type sweep struct {
	proxy  string // the program
	server string // a directory with scripted-server in it
	dir    string // of all that it writes
	spool  string

	args    []string // of the server
	env     []string
	config  map[string]any
	traffic traffic
}

func newSweep(t *testing.T, proxy string) *sweep {
	t.Helper()
	s := &sweep{proxy: proxy, dir: t.TempDir(), config: map[string]any{"log": map[string]any{"level": "debug"}}}
	s.spool, s.server = filepath.Join(s.dir, "spool"), filepath.Join(s.dir, "bin")
	return s
}

// traffic is what client and server send.
type traffic struct {
	client []byte
	server []byte // a part for each line feed of the client's, with a NUL behind it
	ids    int
	waits  []exchanged
}

// exchanged is how much of the traffic has passed when the client waits.
type exchanged struct{ client, answers int }

// wait makes the client wait for all answers before it sends more.
func (w *traffic) wait() {
	w.waits = append(w.waits, exchanged{len(w.client), len(w.answers())})
}

// say adds a position with its value, which is the inside of a JSON string.
func (w *traffic) say(p position, value string) {
	w.ids++
	r := strings.NewReplacer("VALUE", value, `"ID"`, fmt.Sprint(w.ids))
	client, server := r.Replace(p.client), r.Replace(p.server)
	w.client = append(append(w.client, client...), '\n')
	w.server = append(w.server, make([]byte, strings.Count(client, "\n"))...)
	if server != "" {
		w.server = append(append(w.server, server...), '\n')
	}
	w.server = append(w.server, 0)
}

// answers is all that the server sends.
func (w *traffic) answers() []byte { return bytes.ReplaceAll(w.server, []byte{0}, nil) }

// command returns the proxy in front of its server, with the files that they
// need in place.
func (s *sweep) command(t *testing.T) *exec.Cmd {
	t.Helper()
	server := s.server + "/scripted-server"
	script, config := filepath.Join(s.dir, "script"), filepath.Join(s.dir, "config.yaml")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.server, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, server); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	s.config["spool"] = map[string]any{"dir": s.spool}
	for path, content := range map[string][]byte{script: s.traffic.server, config: yaml(t, s.config)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"--config", config, "--", server, script}, s.args...)
	cmd := exec.CommandContext(t.Context(), s.proxy, args...)
	cmd.Env = environ(append(s.env, "HOME="+s.dir)...)
	return cmd
}

// yaml writes JSON, which is YAML if it has no invisible character.
func yaml(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return escape.AppendJSON(nil, b)
}

// run has client and server send all of it and returns the proxy's log.
func (s *sweep) run(t *testing.T) (logged []byte) {
	t.Helper()
	// The facts learnt from answers are written with the next call. With
	// durability always, they have been learnt once the answer is here.
	s.config["durability"], s.config["drain"] = "always", "1m" // the server ends with its last answer, which waits for a sync
	s.traffic.wait()
	s.traffic.say(call("last call", `{}`, false), "")
	cmd := s.command(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, stdout := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var got []byte
	var err error
	sent := 0
	for _, w := range s.traffic.waits {
		written := make(chan error, 1)
		go func() {
			_, err := stdin.Write(s.traffic.client[sent:w.client])
			written <- err
		}()
		answers := make([]byte, w.answers-len(got))
		_, err2 := io.ReadFull(stdout, answers)
		err = errors.Join(err, err2, <-written)
		got, sent = append(got, answers...), w.client
	}
	_, err2 := stdin.Write(s.traffic.client[sent:])
	err = errors.Join(err, err2, stdin.Close())
	rest, err2 := io.ReadAll(stdout)
	if err := errors.Join(err, err2, cmd.Wait()); err != nil {
		t.Fatalf("the proxy: %v\n%s", err, stderr.Bytes())
	}
	if got = append(got, rest...); !bytes.Equal(got, s.traffic.answers()) {
		t.Errorf("standard output has %d bytes, the server wrote %d", len(got), len(s.traffic.answers()))
	}
	return stderr.Bytes()
}

func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return stdin, stdout
}

// written returns everything in the spool, names of files included.
func (s *sweep) written(t *testing.T) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(s.spool, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all = append(append(all, strings.TrimPrefix(path, s.spool)...), '\n')
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		all = append(all, b...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prints runs another command of the program on the same spool and returns its
// output, ignoring the exit code.
func (s *sweep) prints(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(s.proxy, append(args, "--config", filepath.Join(s.dir, "config.yaml"))...)
	cmd.Env, cmd.Dir = environ("HOME="+s.dir), s.dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Errorf("auditproxy %s printed nothing", args)
	}
	return out
}

// TestCredentialsStayOut puts each credential in each encoding at each
// position, and everywhere in the proxy's arguments and environment.
func TestCredentialsStayOut(t *testing.T) {
	proxy := build(t, "./cmd/auditproxy")
	for _, c := range credentials {
		t.Run(c.format, func(t *testing.T) {
			t.Parallel()
			s := newSweep(t, proxy)
			s.surround(c.text)
			for _, e := range encodings {
				for _, p := range positions {
					s.traffic.say(p, e.of(c.text))
				}
			}
			logged := s.run(t)
			if form := leak(logged, c.hidden()); form != "" {
				t.Errorf("its log has %s", form)
			}
			form := leak(s.written(t), c.hidden())
			if form == "" {
				s.checkPrinted(t, c.hidden())
				return
			}
			t.Errorf("its spool has %s", form)
			for _, e := range encodings {
				for _, p := range positions {
					s := newSweep(t, proxy)
					s.traffic.say(p, e.of(c.text))
					s.run(t)
					if form := leak(s.written(t), c.hidden()); form != "" {
						t.Errorf("%s, at %s: %s", e.name, p.name, form)
					}
				}
			}
		})
	}
}

// surround puts text into the arguments and environment of the proxy and its
// server.
func (s *sweep) surround(text string) {
	s.server = s.dir + "/" + text + "/bin" // as it is: Join would make one slash of two
	s.args = []string{text, "--password", text, "--x=" + text}
	s.env = []string{"SECRET=" + text, text + "=1"}
	if !strings.Contains(text, "=") {
		s.env = append(s.env, "AUDITPROXY_CHILD_HIDE_ENV="+text)
	}
	labels := []string{text + "=1"}
	for i, e := range encodings[2:] {
		if label := fmt.Sprintf("l%d=%s", i, e.of(text)); len(label) <= 256 {
			labels = append(labels, label)
		}
	}
	s.config["labels"] = append(labels, "l="+text, "db_password="+text)
	s.config["tenant"] = text
	s.config["record"] = map[string]any{"skip_methods": []string{text + "/x"}}
	if len(text) <= 64 && !strings.ContainsAny(text, " \n") {
		s.config["tiers"] = []string{text}
	}
}

// checkPrinted checks the output of the commands that read the spool.
func (s *sweep) checkPrinted(t *testing.T, secret string) {
	t.Helper()
	for _, args := range [][]string{
		{"log"}, {"log", "-o", "wide"}, {"log", "-o", "json"}, {"verify", "--damage-only"}, {"doctor"}, {"doctor", "--json"},
	} {
		if form := leak(s.prints(t, args...), secret); form != "" {
			t.Errorf("auditproxy %s prints %s", args, form)
		}
	}
	for i, r := range records(t, s.spool) {
		if i%97 == 0 { // a process each
			if form := leak(s.prints(t, "show", r.RecordID), secret); form != "" {
				t.Errorf("auditproxy show prints %s", form)
			}
		}
	}
}

// TestSecretsByNameStayOut puts a secret of no format at each position that is
// sensitive by its name.
func TestSecretsByNameStayOut(t *testing.T) {
	const canary, number = "zk7QwX-canary-93vB", "90817263544"
	proxy := build(t, "./cmd/auditproxy")
	list, err := os.ReadFile(filepath.Join(root(t), "redact", "testdata", "positions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	leaks := func(t *testing.T, s *sweep) (found []string) {
		logged := append(s.run(t), s.written(t)...)
		for _, secret := range []string{canary, number} {
			if form := leak(logged, secret); form != "" {
				found = append(found, form)
			}
		}
		return found
	}
	var all []position
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(strings.ReplaceAll(line, "NUMBER", number))
		if jsontext.Valid([]byte(line)) { // what cannot be read would make another frame
			all = append(all, call("arguments "+line, strings.ReplaceAll(line, "CANARY", "VALUE"), false))
		}
	}
	s := newSweep(t, proxy)
	for _, e := range encodings {
		for _, p := range all {
			s.traffic.say(p, e.of(canary))
		}
	}
	if found := leaks(t, s); found == nil {
		for _, secret := range []string{canary, number} {
			s.checkPrinted(t, secret)
		}
		return
	}
	for _, e := range encodings {
		for _, p := range all {
			s := newSweep(t, proxy)
			s.traffic.say(p, e.of(canary))
			if found := leaks(t, s); found != nil {
				t.Errorf("%s, in %s: %s", e.name, p.name, found)
			}
		}
	}
}

// TestOrdinaryWordsAreFound proves that the other tests search the right
// places: an ordinary word at the same positions is found where it is clear by
// design, and only there.
func TestOrdinaryWordsAreFound(t *testing.T) {
	s := newSweep(t, build(t, "./cmd/auditproxy"))
	s.surround("Ordinary")
	word := func(i int) string { return fmt.Sprintf("Marmalade%03d", i) }
	for i, p := range positions {
		s.traffic.say(p, quoteInner(word(i)))
		if p.clear {
			// A value that the next message changes, before a call, was never in force.
			s.traffic.wait()
			s.traffic.say(call("next call", `{}`, false), "")
		}
	}
	logged := s.run(t)
	written := s.written(t)
	for i, p := range positions {
		if found := leak(written, word(i)) != ""; found != p.clear {
			t.Errorf("%s: found: %t, want %t", p.name, found, p.clear)
		}
	}
	if leak(logged, "Marmalade") != "" {
		t.Errorf("its log has a word of the traffic: %s", logged)
	}
	for _, want := range []string{`"tenant":"Ordinary"`, `"Ordinary":"1"`, `"l":"Ordinary"`, `Ordinary/bin/scripted-server`, `Ordinary/x`} {
		if !bytes.Contains(written, []byte(want)) {
			t.Errorf("the spool has no %s", want)
		}
	}
	if bytes.Contains(written, []byte(`"db_password":"Ordinary"`)) {
		t.Errorf("a label with a sensitive name is clear")
	}
	for _, args := range [][]string{{"log"}, {"log", "-o", "wide"}, {"log", "-o", "json"}, {"doctor"}} {
		want := "Marmalade"
		if args[0] == "doctor" {
			want = "Ordinary"
		}
		if !bytes.Contains(s.prints(t, args...), []byte(want)) {
			t.Errorf("auditproxy %s prints no %s", args, want)
		}
	}
	if slices.IndexFunc(records(t, s.spool), func(r audit.Record) bool { return r.Opaque() }) < 0 {
		t.Errorf("no record of a line that is not a message")
	}
}
