package main_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// These tests run the real npx and mcp-remote, with a registry that only has
// the one package, and a home of its own.
const mcpRemote = "mcp-remote@0.15.1"

// TestRemoteHeaders wraps the official "everything" server behind a gate that
// wants a header, and works in a project that would like to have that header.
func TestRemoteHeaders(t *testing.T) {
	t.Parallel()
	const secret = "Bearer hunter2 in-two-words"
	addr := dev.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	serve(t, []string{"PORT=" + port}, dev.Fetched(t, "remote", "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"), "streamableHttp")
	target := waitFor(t, "http://"+addr)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	var mu sync.Mutex
	var refused []string
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/.well-known/"): // mcp-remote looks for a login
			http.NotFound(w, r)
			return
		case r.Header.Get("Authorization") != secret || r.Header.Get("X-Team") != "platform":
			mu.Lock()
			refused = append(refused, r.Method+" "+r.URL.Path)
			mu.Unlock()
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer gate.Close()

	r := newRemoteHome(t)
	config := fmt.Sprintf("{\n  \"mcpServers\": {\n    \"everything\": {\n      \"type\": \"http\",\n      \"url\": %q,\n      \"headers\": {\"Authorization\": %q, \"X-Team\": \"platform\"}\n    }\n  }\n}\n", gate.URL+"/mcp", secret)
	calls := []mcp.CallToolParams{
		{Name: "echo", Arguments: map[string]any{"message": "hello \u2028 \U0001f600"}},
		{Name: "get-sum", Arguments: map[string]any{"a": 1, "b": 2.5}},
		{Name: "get-structured-content", Arguments: map[string]any{"location": "New York"}},
		{Name: "get-annotated-message", Arguments: map[string]any{"messageType": "error", "includeImage": true}},
		{Name: "get-tiny-image"},
		{Name: "no-such-tool"},
	}
	header := http.Header{"Authorization": {secret}, "X-Team": {"platform"}}
	want := answers(t, &mcp.StreamableClientTransport{Endpoint: gate.URL + "/mcp", HTTPClient: &http.Client{Transport: withHeader{header}}}, calls, nil)
	r.check(t, config, calls, want, []string{secret, "hunter2"})
	mu.Lock()
	defer mu.Unlock()
	if len(refused) > 0 {
		t.Errorf("without the headers came %q", refused)
	}
}

// TestRemoteLogin wraps the official SDK's example server with OAuth. A script
// in the place of the browser follows the demo's login.
func TestRemoteLogin(t *testing.T) {
	t.Parallel()
	ports, err := dev.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	port, authPort := strconv.Itoa(ports[0]), strconv.Itoa(ports[1])
	example := dev.Fetched(t, "remote", "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm", "examples", "server", "simpleStreamableHttp.js")
	serve(t, []string{"MCP_PORT=" + port, "MCP_AUTH_PORT=" + authPort}, example, "--oauth")
	endpoint := waitFor(t, "http://localhost:"+port).String() + "/mcp"
	waitFor(t, "http://localhost:"+authPort)
	if code := status(t, endpoint); code != http.StatusUnauthorized {
		t.Fatalf("the server answers %d without a login, want 401", code)
	}

	r := newRemoteHome(t)
	calls := []mcp.CallToolParams{
		{Name: "greet", Arguments: map[string]any{"name": "Ann"}},
		{Name: "list-files", Arguments: map[string]any{}},
		{Name: "no-such-tool"},
	}
	// The first run logs in. Its token then opens the straight way.
	config := fmt.Sprintf("{\"mcpServers\": {\"example\": {\"url\": %q}}}\n", endpoint)
	got, logged := r.run(t, config, calls, nil)
	token := r.token(t)
	holdsNot(t, r.spool, token)
	if strings.Contains(logged, token) {
		t.Errorf("the token is in the logs:\n%s", logged)
	}
	want := answers(t, &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: withHeader{http.Header{"Authorization": {"Bearer " + token}}}}}, calls, nil)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers after the login (-straight +wrapped)\n%s", d)
	}
	if logins := r.logins(t); logins != 1 {
		t.Errorf("the browser was opened %d times, want 1", logins)
	}
	// The second one is logged in already.
	if err := os.RemoveAll(r.spool); err != nil {
		t.Fatal(err)
	}
	r.check(t, config, calls, want, []string{token})
	if logins := r.logins(t); logins != 1 {
		t.Errorf("the browser was opened %d times, want no second login", logins)
	}
}

// A remoteHome is a user with a hostile project.
type remoteHome struct {
	exe, home, project, spool, browser string
	env                                []string
}

func newRemoteHome(t *testing.T) *remoteHome {
	t.Helper()
	dir := t.TempDir()
	r := &remoteHome{
		exe: build(t, "./cmd/auditproxy"), home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"),
		spool: filepath.Join(dir, "spool"), browser: filepath.Join(dir, "browser"),
	}
	cache := filepath.Join(dir, "npm")
	registry := npmRegistry(t, cache)
	files := map[string]string{
		// The browser: Node.js follows the redirects to mcp-remote's callback.
		r.browser: fmt.Sprintf("#!/usr/bin/env node\nrequire('fs').appendFileSync(%q, '.')\nfetch(process.argv[2]).then(r => r.text())\n", r.browser+".log"),
		// Files that npx would run or read if it ran in the project.
		filepath.Join(r.project, "node_modules", ".bin", "node"):               "#!/bin/sh\ntouch " + dir + "/hijacked\n",
		filepath.Join(r.project, "node_modules", "mcp-remote", "x.js"):         "#!/bin/sh\ntouch " + dir + "/hijacked\n",
		filepath.Join(r.project, "node_modules", ".bin", "mcp-remote"):         "#!/bin/sh\ntouch " + dir + "/hijacked\n",
		filepath.Join(r.project, "node_modules", "mcp-remote", "package.json"): `{"name":"mcp-remote","version":"0.15.1","bin":{"mcp-remote":"x.js"}}`,
		filepath.Join(r.project, "package.json"):                               `{"name":"p","version":"1.0.0","bin":{"mcp-remote@0.15.1":"node_modules/mcp-remote/x.js"}}`,
		filepath.Join(r.project, ".npmrc"):                                     "registry=http://127.0.0.1:9/\n",
		filepath.Join(r.home, "empty"):                                         "",
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(dir, "hijacked")); err == nil {
			t.Error("the project's files were run")
		}
	})
	r.env = environ("HOME="+r.home, "BROWSER="+r.browser, "DISPLAY=", "WAYLAND_DISPLAY=", "MCP_REMOTE_CONFIG_DIR=",
		"AUDITPROXY_SPOOL_DIR="+r.spool, "npm_config_cache="+cache, "npm_config_registry="+registry, "npm_config_update_notifier=false")
	return r
}

// npmRegistry answers npx's requests for mcp-remote, and puts the package
// fetched by make tools where npx keeps what it has installed.
func npmRegistry(t *testing.T, cache string) string {
	t.Helper()
	sum := sha512.Sum512([]byte(mcpRemote))
	dir := filepath.Join(cache, "_npx", hex.EncodeToString(sum[:])[:16])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	modules := dev.Fetched(t, "remote", "node_modules")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"dependencies":{"mcp-remote":"0.15.1"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(modules, "mcp-remote", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var version map[string]any
	if err := json.Unmarshal(manifest, &version); err != nil {
		t.Fatal(err)
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp-remote" {
			http.NotFound(w, r)
			return
		}
		version["dist"] = map[string]string{"tarball": "http://" + r.Host + "/mcp-remote.tgz", "shasum": strings.Repeat("0", 40)}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"name": "mcp-remote", "dist-tags": map[string]any{"latest": "0.15.1"}, "versions": map[string]any{"0.15.1": version}})
	}))
	t.Cleanup(registry.Close)
	return registry.URL
}

// check wraps config's one server, calls it, unwraps it, and compares with what
// the client gets without it.
func (r *remoteHome) check(t *testing.T, config string, calls []mcp.CallToolParams, want []string, secrets []string) {
	t.Helper()
	got, logged := r.run(t, config, calls, secrets)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers (-straight +wrapped)\n%s", d)
	}
	var recorded, called []string
	for _, rec := range records(t, r.spool) {
		if rec.Kind == audit.KindCall && rec.Method == "tools/call" {
			recorded = append(recorded, rec.Tool)
		}
	}
	for _, c := range calls {
		called = append(called, c.Name)
	}
	if d := cmp.Diff(called, recorded); d != "" {
		t.Errorf("records of calls (-want +got)\n%s", d)
	}
	for _, secret := range secrets {
		if strings.Contains(logged, secret) {
			t.Errorf("%q is in the logs:\n%s", secret, logged)
		}
		holdsNot(t, r.spool, secret)
	}
}

// run wraps config, runs its server as a client would, and unwraps it again.
func (r *remoteHome) run(t *testing.T, config string, calls []mcp.CallToolParams, secrets []string) (got []string, logged string) {
	t.Helper()
	file := filepath.Join(r.project, ".mcp.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.auditproxy(t, "wrap", "--remote", "--yes", file)
	wrapped, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(wrapped, &c); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers {
		var stderr bytes.Buffer
		cmd := exec.Command(s.Command, s.Args...)
		cmd.Dir, cmd.Env, cmd.Stderr = r.project, r.env, &stderr
		for name, value := range s.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		got = answers(t, &mcp.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second}, calls, func() { argumentsHoldNot(t, secrets) })
		logged = stderr.String()
		if t.Failed() {
			t.Logf("standard error:\n%s", logged)
		}
	}
	r.auditproxy(t, "unwrap", "--yes", file)
	if back, err := os.ReadFile(file); err != nil || string(back) != config {
		t.Errorf("unwrap: %v, got %q, want %q", err, back, config)
	}
	return got, logged
}

func (r *remoteHome) auditproxy(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(r.exe, args...)
	cmd.Env = r.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("auditproxy %q: %v\n%s", args, err, out)
	}
}

// token returns the token that mcp-remote keeps after the login, in a file that
// is its user's own.
func (r *remoteHome) token(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.home, ".mcp-auth", "*", "*_tokens.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("tokens in ~/.mcp-auth: %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", files[0], info.Mode(), err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(data, &tokens); err != nil || tokens.Access == "" {
		t.Fatalf("no access token in %s: %v", data, err)
	}
	return tokens.Access
}

func (r *remoteHome) logins(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(r.browser + ".log")
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

// answers makes the calls in one session and returns the answers. While the
// session lasts it calls during.
func answers(t *testing.T, transport mcp.Transport, calls []mcp.CallToolParams, during func()) (got []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		if c, ok := transport.(*mcp.CommandTransport); ok {
			t.Logf("standard error:\n%s", c.Command.Stderr)
		}
		t.Fatalf("connecting: %v", err)
	}
	defer session.Close()
	add := func(v any, err error) {
		if err != nil {
			got = append(got, "error: "+err.Error())
			return
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b))
	}
	add(session.InitializeResult(), nil)
	add(session.ListTools(ctx, nil))
	add(session.ListPrompts(ctx, nil))
	add(session.ListResourceTemplates(ctx, nil))
	for _, c := range calls {
		add(session.CallTool(ctx, &c))
	}
	if during != nil {
		during()
	}
	return got
}

// withHeader adds headers to requests.
type withHeader struct{ header http.Header }

func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range w.header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

// argumentsHoldNot checks the arguments of every process of the machine but
// this one.
func argumentsHoldNot(t *testing.T, secrets []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	seen := false
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		seen = seen || bytes.Contains(args, []byte("mcp-remote"))
		for _, secret := range secrets {
			if bytes.Contains(args, []byte(secret)) {
				t.Errorf("%q is in %s: %q", secret, file, args)
			}
		}
	}
	if !seen {
		t.Error("no process has mcp-remote in its arguments")
	}
}

func holdsNot(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%q is in %s", secret, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// serve runs a server of Node.js until the test ends.
func serve(t *testing.T, env []string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(dev.Command(t, "node"), args...)
	cmd.Env = environ(env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("server %s:\n%s", filepath.Base(args[0]), &out)
		}
	})
}

// waitFor returns once something accepts connections at address.
func waitFor(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if c, err := net.Dial("tcp", u.Host); err == nil {
			c.Close()
			return u
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nothing listens at %s", address)
		}
	}
}

func status(t *testing.T, address string) int {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
