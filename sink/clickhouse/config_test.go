package clickhouse_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"auditproxy/sink/clickhouse"
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
