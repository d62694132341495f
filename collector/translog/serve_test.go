package translog

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/collector/translog/tiles"
)

// TestHandler reads a log over HTTP, and checks that nothing else is served.
func TestHandler(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := opened(t, Config{Dir: dir})
	add(t, l, texts(0, 600))
	covered(t, l, 600)
	mux := http.NewServeMux()
	mux.Handle("/log/", http.StripPrefix("/log", l.Handler()))
	server := httptest.NewServer(mux)
	defer server.Close()
	get := func(method, path string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, server.URL+"/log/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}

	r, tree := checkpoint(t, server.URL+"/log", l.Status().Key)
	n := 0
	for e, err := range r.Entries(t.Context(), tree, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("entry %d", n); string(e.Data) != want {
			t.Fatalf("entry %d is %q", n, e.Data)
		}
		n++
	}
	if n != 600 {
		t.Errorf("read %d entries, want 600", n)
	}

	// What is on the disk, and not served.
	served := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		resp, body := get(http.MethodGet, path)
		_, tile := tiles.ParsePath(path)
		if want := !d.IsDir() && (tile || path == tiles.CheckpointFile); want != (resp.StatusCode == http.StatusOK) {
			t.Errorf("%s: %s", path, resp.Status)
		} else if want {
			served++
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if string(b) != body {
				t.Errorf("%s has other contents", path)
			}
		}
		return nil
	})
	if err != nil || served < 6 {
		t.Errorf("%d files are served: %v", served, err)
	}
	for path, want := range map[string]string{
		"checkpoint": "no-cache", "tile/0/000": "public, max-age=31536000, immutable", "tile/entries/001": "public, max-age=31536000, immutable",
	} {
		resp, _ := get(http.MethodGet, path)
		if got := resp.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{
		"", "tile", "tile/", "tile/0", "tile/0/", "tile/0/003", "tile/0/x001/000", "tile/00/000", "tile/64/000", "tile/0/000.p/256", "tile/0/000.p/0",
		"tile/0/002.p/89", "tile/7/000.p/1", "tile/63/000.p/1", "tile/data/000", "tile/8/0/000", ".state/treeState", ".state/", ".seen/",
		"../log.key", "%2e%2e/log.key", "tile/0/%2e%2e/000", "tile/0/..%2f..%2f..%2flog.key", "checkpoint/", "checkpoint.witnessed", "checkpoint.tmp",
		"tile/0/x999/x999/x999/x999/x999/999", "tile/0/x-01/000", "tile/entries/x000/000",
	} {
		if resp, body := get(http.MethodGet, path); resp.StatusCode == http.StatusOK || strings.Contains(body, "PRIVATE") {
			t.Errorf("%q is served: %q", path, body)
		}
	}
	if resp, _ := get(http.MethodPost, "checkpoint"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", resp.Status)
	}
	if resp, body := get(http.MethodHead, "checkpoint"); resp.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %s, %q", resp.Status, body)
	}

	// A tile that no checkpoint covers may change yet.
	full := filepath.Join(dir, "tile/0/002")
	if err := os.WriteFile(full, make([]byte, 8192), 0o644); err != nil {
		t.Fatal(err)
	}
	if resp, _ := get(http.MethodGet, "tile/0/002"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a tile without a checkpoint: %s", resp.Status)
	}
}
