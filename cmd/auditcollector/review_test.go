package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/audit"
)

// A reviewer is a browser without a screen.
type reviewer struct {
	t *testing.T
	http.Client
	base string
}

func newReviewer(t *testing.T, base string, transport *http.Transport) *reviewer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &reviewer{t, http.Client{Transport: transport, Jar: jar, Timeout: time.Minute}, base}
}

// open presses the button of a link.
func (r *reviewer) open(link string) {
	r.t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Query().Get("code") == "" {
		r.t.Fatalf("the link is %q, %v", link, err)
	}
	r.base = u.Scheme + "://" + u.Host
	if status, page := r.send("POST", "/login", u.Query().Encode()); status != http.StatusOK {
		r.t.Fatalf("opening %s: %d\n%s", link, status, page)
	}
}

func (r *reviewer) get(path string, change ...func(*http.Request)) (status int, page string) {
	r.t.Helper()
	return r.send("GET", path, "", change...)
}

func (r *reviewer) send(method, path, form string, change ...func(*http.Request)) (status int, page string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(form))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range change {
		c(req)
	}
	resp, err := r.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// link asks the running page for a link.
func (h home) link(t *testing.T) string {
	t.Helper()
	var got result
	eventually(t, "there is a link", func() bool {
		got = h.run(t, "review", "link", "--as", "ann")
		return got.code == 0
	})
	return strings.TrimSpace(got.stdout)
}

// TestReview checks that a collector serves the page, and shows what it
// collected to the holder of its link only.
func TestReview(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if none := h.run(t, "review", "link"); none.code != cli.ExitUnclear || !strings.Contains(none.stderr, "no review page is running") {
		t.Errorf("without a page: exit code %d, %s", none.code, none.stderr)
	}
	if none := h.run(t, "review", "--review-listen", "127.0.0.1:0"); none.code != cli.ExitUnclear || !strings.Contains(none.stderr, "no collector with a local engine is running") {
		t.Errorf("without records: exit code %d, %s", none.code, none.stderr)
	}
	w := h.writer(t)
	for range 3 {
		w.call(func(r *audit.Record) { r.Tool = "swap_pane" })
	}
	p := h.collect(t, "--batch-wait", "20ms", "--review-listen", "127.0.0.1:0")
	eventually(t, "the records are there", h.counts(t, distinct, 3))

	link := h.link(t)
	ann := newReviewer(t, "", &http.Transport{})
	ann.open(link)
	for _, path := range []string{"/", "/calls", "/sessions", "/destinations", "/environment", "/tools", "/alerts"} {
		if status, page := ann.get(path); status != http.StatusOK || !strings.Contains(page, "</html>") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if _, page := ann.get("/calls"); strings.Count(page, "swap_pane") < 3 {
		t.Errorf("the calls are not all on the page:\n%s", page)
	}

	stranger := newReviewer(t, ann.base, &http.Transport{})
	if status, page := stranger.get("/calls.csv"); status != http.StatusForbidden || strings.Contains(page, "swap_pane") {
		t.Errorf("without a link: %d\n%s", status, page)
	}
	if status, page := stranger.get("/healthz"); status != http.StatusOK || page != "ok\n" {
		t.Errorf("/healthz: %d %s", status, page)
	}
	if status, _ := stranger.send("POST", "/login", strings.SplitN(link, "?", 2)[1]); status != http.StatusForbidden {
		t.Errorf("the link once more: %d", status)
	}
	// A name of the attacker's that leads to this machine, and a form elsewhere.
	if status, _ := ann.get("/calls", func(r *http.Request) { r.Host = "rebound.example" }); status != http.StatusForbidden {
		t.Errorf("under another name: %d", status)
	}
	if status, _ := ann.send("POST", "/alerts/x", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }); status != http.StatusForbidden {
		t.Errorf("from another site: %d", status)
	}

	// Another page at a place of its own, over the same engine.
	addr := strings.TrimPrefix(ann.base, "http://")
	if twice := h.run(t, "review", "--review-listen", addr); twice.code != cli.ExitUnclear || !strings.Contains(twice.stderr, "review link") {
		t.Errorf("at the same port: exit code %d, %s", twice.code, twice.stderr)
	}
	second := newReviewer(t, "", &http.Transport{})
	second.open(h.page(t, "--review-listen", "127.0.0.1:0"))
	if _, page := second.get("/calls"); !strings.Contains(page, "swap_pane") {
		t.Errorf("the second page has no calls:\n%s", page)
	}
	w.stop()
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// page starts auditcollector review, which ends with the test, and returns the
// link that it prints.
func (h home) page(t *testing.T, args ...string) (link string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, h.exe, append([]string{"review"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	stderr := new(bytes.Buffer)
	cmd.Env, cmd.Stderr = h.env, stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("the page ended with %v:\n%s", cmd.ProcessState, stderr)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http") {
			return lines.Text()
		}
	}
	t.Fatal("it printed no link")
	return ""
}

// TestReviewProxied checks that a proxy at a Unix socket names the user.
func TestReviewProxied(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	socket := filepath.Join(h.dir, "page.sock")
	link := h.page(t, "--review-listen", "unix:"+socket, "--review-url", "https://audit.example.org", "--review-trusted-header", "X-Forwarded-User")
	if !strings.HasPrefix(link, "https://audit.example.org/login?code=") {
		t.Errorf("the link is %q", link)
	}
	proxy := newReviewer(t, "http://audit.example.org", &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}})
	if status, _ := proxy.get("/alerts"); status != http.StatusForbidden {
		t.Errorf("without a name: %d", status)
	}
	named := func(r *http.Request) { r.Header.Set("X-Forwarded-User", "ann") }
	if status, page := proxy.get("/alerts", named); status != http.StatusOK {
		t.Errorf("with a name: %d\n%s", status, page)
	}
}

// TestReviewTLS checks that with a certificate link and cookie are for TLS, and that a
// certificate which is replaced is used.
func TestReviewTLS(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	cert, key, pool := h.certificate(t, "review.example")
	link := h.page(t, "--review-listen", "0.0.0.0:0", "--review-tls-cert-file", cert, "--review-tls-key-file", key)
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "https" || u.Hostname() != "review.example" {
		t.Fatalf("the link is %q, %v", link, err)
	}
	ann := newReviewer(t, "", &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+u.Port())
		},
	})
	ann.base = "https://" + u.Host
	if status, _ := ann.get("/"); status != http.StatusForbidden {
		t.Errorf("without a link: %d", status)
	}
	ann.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if status, _ := ann.send("POST", "/login", u.RawQuery); status != http.StatusSeeOther {
		t.Errorf("opening the link: %d", status)
	}
	if status, _ := ann.get("/"); status != http.StatusOK {
		t.Errorf("with the cookie: %d", status)
	}
	_, _, pool = h.certificate(t, "review.example")
	for range 2 {
		dial := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "review.example"}}
		conn, err := dial.DialContext(t.Context(), "tcp", "127.0.0.1:"+u.Port())
		if err != nil {
			t.Fatalf("with the new certificate: %v", err)
		}
		conn.Close()
		// Half of the next one.
		if err := os.WriteFile(cert, []byte("-----BEGIN CERT"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// certificate makes a certificate for name that only its pool trusts.
func (h home) certificate(t *testing.T, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(h.dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), pool
}

// TestReviewPortTaken checks that a page that cannot be served does not stop
// collection.
func TestReviewPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := newHome(t)
	w := h.writer(t)
	w.call()
	p := h.collect(t, "--batch-wait", "20ms", "--review-listen", l.Addr().String())
	eventually(t, "the record is there", h.counts(t, distinct, 1))
	w.stop()
	if code := p.end(syscall.SIGTERM); code != 0 || !strings.Contains(p.stderr.String(), "review page not served") || !strings.Contains(p.stderr.String(), "address already in use") {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// TestReviewConfig checks that an incomplete configuration neither opens the
// page to others nor trusts a proxy.
func TestReviewConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"it speaks TLS to other machines", []string{"--review-listen", "0.0.0.0:8686"}, []string{"review.listen", "other machines", "review.tls.cert_file"}},
		{"it knows that no address is every address", []string{"--review-listen", ":8686"}, []string{"other machines"}},
		{"it knows that a name may be any address", []string{"--review-listen", "audit.example.org:8686"}, []string{"other machines"}},
		{"it wants an address", []string{"--review-listen", "8686"}, []string{"want host:port"}},
		{"it wants a path", []string{"--review-listen", "unix:x", "--review-url", "https://a"}, []string{"absolute path"}},
		{"it wants to know who is before a socket", []string{"--review-listen", "unix:/x"}, []string{"review.url", "where browsers find the page"}},
		{"it wants a key with a certificate", []string{"--review-tls-cert-file", "/x"}, []string{"review.tls.key_file"}},
		{"it wants a URL without a path", []string{"--review-url", "https://a/audit"}, []string{"nothing after it"}},
		{"it wants TLS between browser and proxy", []string{"--review-url", "http://audit.example.org"}, []string{"want https"}},
		{"it wants proxies for a header", []string{"--review-trusted-header", "X-User"}, []string{"review.trusted_proxies"}},
		{"it wants a header for proxies", []string{"--review-trusted-proxies", "10.0.0.0/8"}, []string{"review.trusted_header is not set"}},
		{"it wants networks", []string{"--review-trusted-header", "X-User", "--review-trusted-proxies", "proxy"}, []string{`"proxy"`}},
		{"it wants the name of a header", []string{"--review-trusted-header", "X User", "--review-trusted-proxies", "::1"}, []string{"the name of a header"}},
		{"it wants absolute directories", []string{"--review-approvals", "approvals"}, []string{"review.approvals", "absolute path"}},
		{"it wants each directory once", []string{"--review-approvals", "/a/b,/a/./b"}, []string{"review.approvals", "listed twice"}},
		{"it answers only on a page", []string{"--review-listen", "off", "--review-approvals", "/a"}, []string{"review.approvals", "review.listen is off"}},
		{"it has users only at a server", []string{"--review-tenant", "acme", "--review-user", "ann"}, []string{"review.tenant", "review.user", "clickhouse.addr"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := emptyHome(t)
			got := h.run(t, append([]string{"review", "--review-listen", "127.0.0.1:0"}, tt.args...)...)
			if got.code != cli.ExitConfig {
				t.Errorf("exit code %d, want %d", got.code, cli.ExitConfig)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("standard error has no %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

func TestCheckTenant(t *testing.T) {
	for _, tt := range []struct{ name, want, sees, problem string }{
		{"it shows all to whom nothing is configured", "", "", ""},
		{"it shows what a tenant's user sees", "", "acme", ""},
		{"it shows the tenant", "acme", "acme", ""},
		{"it shows not all as if it were the tenant", "acme", "", "all tenants"},
		{"it shows no other tenant", "acme", "umbrella", `"umbrella"`},
	} {
		err := checkTenant(tt.want, tt.sees)
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
