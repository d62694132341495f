package clickhouse

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"auditproxy/collector/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func TestOutdated(t *testing.T) {
	for code, want := range map[int32]bool{47: true, 60: true, 81: false, 497: false} {
		if err := fmt.Errorf("verifying: %w", &clickhouse.Exception{Code: code}); Outdated(err) != want {
			t.Errorf("Outdated(%v) = %v", err, !want)
		}
	}
	if Outdated(nil) || Outdated(io.EOF) {
		t.Error("another error is of older tables")
	}
}

func TestExplain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9000}, Err: syscall.ECONNREFUSED}
	request := func(err error) error {
		return fmt.Errorf("sendQuery: %w", &url.Error{Op: "Post", URL: "http://user@host:1?database=audit", Err: err})
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"a server that is not there", refused, "dial tcp 127.0.0.1:9000: connection refused: start ClickHouse there, or set clickhouse.addr to where it runs"},
		{"the same by HTTP", request(refused), "dial tcp 127.0.0.1:9000: connection refused: start ClickHouse there, or set clickhouse.addr to where it runs"},
		{"an engine that is not there", request(&net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/s"}, Err: syscall.ENOENT}), "dial unix /s: no such file or directory: the local engine does not run"},
		{"an engine of somebody else", request(&net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/s"}, Err: syscall.EACCES}), "dial unix /s: permission denied: the local engine is another user's: ask as that user"},
		{"a name that nobody has", &net.DNSError{Err: "no such host", Name: "h"}, "lookup h: no such host: correct clickhouse.addr, or the name service"},
		{"a server that hangs", request(context.DeadlineExceeded), "context deadline exceeded: the server hangs, or is not ClickHouse: check its load, and clickhouse.addr"},
		{"a server that answers no connection", request(clickhouse.ErrAcquireConnTimeout), "no connection in time: the server hangs, or is not ClickHouse: check its load, and clickhouse.addr"},
		{"an engine that hangs", &net.OpError{Op: "read", Net: "unix", Err: os.ErrDeadlineExceeded}, "read unix: i/o timeout: the server hangs, or is not ClickHouse: check its load, and clickhouse.addr"},
		{"an engine that ended", &net.OpError{Op: "read", Net: "unix", Err: syscall.ECONNRESET}, "read unix: connection reset by peer: the local engine does not run"},
		{"a server that hangs up", request(io.EOF), "EOF: the server restarts, or clickhouse.tls.enabled, clickhouse.protocol and the port do not match"},
		{"another server", fmt.Errorf("server hello: %w", &clickhouse.HTTPError{StatusCode: 404, Err: errors.New("response body: \"<html>\"")}),
			"[HTTP 404] response body: \"<html>\": check that clickhouse.tls.enabled, clickhouse.protocol and the port match"},
		{"an authority that nobody knows", request(x509.UnknownAuthorityError{}), "x509: certificate signed by unknown authority: set clickhouse.tls.ca_file to the authority that signed the server's certificate"},
		{"a certificate that has ended", request(x509.CertificateInvalidError{Reason: x509.Expired, Detail: "then"}),
			"x509: certificate has expired or is not yet valid: then: renew the server's certificate, or correct the clock of this host"},
		{"a wrong password", &clickhouse.Exception{Code: 516, Message: "no"}, "code: 516, message: no: check clickhouse.user and its password"},
		{"a user whose time is over", &clickhouse.Exception{Code: 720, Message: "no"}, "code: 720, message: no: extend VALID UNTIL of clickhouse.user"},
		{"a column that was dropped", &clickhouse.Exception{Code: 16, Message: "No such column span_id in table audit.events"},
			"code: 16, message: No such column span_id in table audit.events: add the column again, of the type that it has where auditcollector migrate makes the tables in another database"},
		{"no rights", fmt.Errorf("sendQuery: %w", &clickhouse.HTTPError{StatusCode: 403, Err: &clickhouse.Exception{Code: 497, Message: "no"}}),
			"[HTTP 403] code: 497, message: no: a user with that right has to grant it, or to run auditcollector migrate"},
		{"a disk that became read-only", &clickhouse.Exception{Code: 1002, Message: `filesystem error: in create_directories: Read-only file system ["/d"]`},
			`code: 1002, message: filesystem error: in create_directories: Read-only file system ["/d"]: mount its disk for writing; after an error of the disk, dmesg has the reason`},
		{"the server's own words", &clickhouse.Exception{Code: 60, Message: "no table"}, "code: 60, message: no table"},
		{"an end that we asked for", request(context.Canceled), "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Explain(tt.err)
			if got.Error() != tt.want {
				t.Errorf("Explain = %q,\nwant      %q", got, tt.want)
			}
			if codeOf(got) != codeOf(tt.err) {
				t.Errorf("Explain has code %d, want %d", codeOf(got), codeOf(tt.err))
			}
		})
	}
	if got := Explain(nil); got != nil {
		t.Errorf("Explain of nothing = %v", got)
	}
}

// TestClassifySaysNoURL: what the driver wraps in a request goes without it.
func TestClassifySaysNoURL(t *testing.T) {
	s, err := Open(Config{Addrs: []string{"127.0.0.1:1"}, HTTP: true, Database: "audit"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "http://") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("Ping = %v, want the address and no URL", err)
	}
}

// TestClassify: only an error about a row's contents makes a dead letter of it, and
// what is not known is tried again.
func TestClassify(t *testing.T) {
	for code, want := range map[int32]ingest.Class{
		0: ingest.Retry, 999: ingest.Retry, 210: ingest.Retry, 252: ingest.Retry, 319: ingest.Retry,
		69: ingest.Poison, 349: ingest.Poison, 469: ingest.Poison, 691: ingest.Poison,
		241: ingest.Oversize,
		16:  ingest.Configuration, 60: ingest.Configuration, 164: ingest.Configuration, 497: ingest.Configuration, 516: ingest.Configuration, 720: ingest.Configuration,
	} {
		for _, err := range []error{&clickhouse.Exception{Code: code}, &clickhouse.HTTPError{StatusCode: 500, Err: &clickhouse.Exception{Code: code}}} {
			if got := Classify("inserting", err); ingest.ClassOf(got) != want || !strings.HasPrefix(got.Error(), "inserting: ") {
				t.Errorf("code %d: %v of class %v, want %v", code, got, ingest.ClassOf(got), want)
			}
		}
	}
	own := &ingest.Error{Class: ingest.Poison, Err: errors.New("own")}
	if got := Classify("inserting", own); ingest.ClassOf(got) != ingest.Poison {
		t.Errorf("an error with a class has the class %v", ingest.ClassOf(got))
	}
	if got := Classify("inserting", nil); got != nil {
		t.Errorf("nothing is %v", got)
	}
}
