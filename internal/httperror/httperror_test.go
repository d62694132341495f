package httperror_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"auditproxy/internal/httperror"
)

// TestReason posts to receivers that answer with what was sent, in each place that
// package http reads.
func TestReason(t *testing.T) {
	const secret = "s3cret"
	for _, tt := range []struct {
		name, answer string // REQUEST, PATH and KEY are of the request
		want         string // in the error
	}{
		{"an echo", "REQUEST", "malformed HTTP status code (in the answer"},
		{"in the version", "HTTP/PATH 200 OK\r\n\r\n", "malformed HTTP version (in"},
		{"in the status", "HTTP/1.1 PATH\r\n\r\n", "malformed HTTP status code (in"},
		{"one word", "PATH\r\n\r\n", "malformed HTTP response (in"},
		{"in a header", "HTTP/1.1 200 OK\r\nKEY\r\n\r\n", "malformed header"},
		{"in a header's name", "HTTP/1.1 200 OK\r\n KEY PATH: x\r\n\r\n", "malformed header"},
		{"in the length", "HTTP/1.1 200 OK\r\nContent-Length: KEY\r\n\r\n", "Content-Length (in"},
		{"in the encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: KEY\r\n\r\n", "transfer encoding (in"},
		{"none", "", "EOF"},
		{"endless headers", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 1<<18), "headers exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				request := make([]byte, 64<<10)
				n, _ := conn.Read(request)
				_, _ = io.WriteString(conn, strings.NewReplacer("REQUEST", string(request[:n]), "PATH", "/"+secret, "KEY", "Bearer "+secret).Replace(tt.answer))
			}()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://user:"+secret+"@"+l.Addr().String()+"/"+secret, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+secret)
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 16}}
			_, err = client.Do(req) //nolint:bodyclose // it fails
			if err == nil {
				t.Fatal("the request did not fail")
			}
			got := httperror.Reason(err)
			if text := got.Error(); strings.Contains(text, secret) || !strings.Contains(text, tt.want) {
				t.Errorf("Reason(%q) = %q, want %q in it, and not the secret", err, text, tt.want)
			}
		})
	}
}

// TestReasonOfThisMachine keeps what happened on this side.
func TestReasonOfThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		ctx  context.Context
		want error
	}{{t.Context(), syscall.ECONNREFUSED}, {ended, context.Canceled}} {
		req, err := http.NewRequestWithContext(tt.ctx, http.MethodPost, "http://"+l.Addr().String()+"/s3cret", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_, err = http.DefaultClient.Do(req) //nolint:bodyclose // it fails
		if got := httperror.Reason(err); !errors.Is(got, tt.want) || !strings.Contains(got.Error(), tt.want.Error()) || strings.Contains(got.Error(), "s3cret") {
			t.Errorf("Reason(%q) = %q, want %q", err, got, tt.want)
		}
	}
}
