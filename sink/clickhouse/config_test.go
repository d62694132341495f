package clickhouse_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/ch-go/compress"
)

// TestErrorHasNoLogin has something before the server answer with the request, as pages
// about errors do.
func TestErrorHasNoLogin(t *testing.T) {
	const password = "s3cr3t-pw"
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, sent, _ := r.BasicAuth()
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintf(w, "no upstream: %v, password %q", r.Header, sent)
	}))
	defer echo.Close()
	db, err := clickhouse.Open(clickhouse.Config{Addrs: []string{strings.TrimPrefix(echo.URL, "http://")}, HTTP: true, Database: "audit", User: "ann", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), `Authorization:[Basic <secret>]`) || !strings.Contains(err.Error(), `password \"<secret>\"`) || strings.Contains(err.Error(), password) {
		t.Errorf("Ping = %v, want the answer without the login", err)
	}
}

// TestCompressedError has a server answer a query with a compressed error that has
// the password in it, as it has one that is also the user's name.
func TestCompressedError(t *testing.T) {
	const password = "collector"
	text := "Code: 497. DB::Exception: " + password + ": Not enough privileges to read session_states of session_states. (ACCESS_DENIED)"
	for name, method := range map[string]compress.Method{"LZ4": compress.LZ4, "ZSTD": compress.ZSTD, "none": compress.None} {
		t.Run(name, func(t *testing.T) {
			w := compress.NewWriter(compress.LevelZero, method)
			if err := w.Compress([]byte(text)); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("X-ClickHouse-Exception-Code", "497")
				out.WriteHeader(http.StatusInternalServerError)
				_, _ = out.Write(w.Data) // the client sees what is missing
			}))
			defer server.Close()
			db, err := clickhouse.Open(clickhouse.Config{Addrs: []string{strings.TrimPrefix(server.URL, "http://")}, HTTP: true, Database: "audit", User: password, Password: password})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			err = db.Ping(t.Context())
			if err == nil || !strings.Contains(err.Error(), "<secret>: Not enough privileges to read session_states of session_states. (ACCESS_DENIED)") {
				t.Errorf("Ping = %v, want the server's words", err)
			}
		})
	}
}
