package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/stream"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka/kafkatest"
)

// cluster is the broker of this test binary.
var cluster kafkatest.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

var start = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// record returns the record with a number, in one of three sessions.
func record(t testing.TB, no int) receiver.Record {
	t.Helper()
	r := ingesttest.Call(no, "list_keys", start)
	r.SessionID = fmt.Sprintf("019e8b1c-0000-7aaa-8bbb-%012d", no%3)
	r.RecordID = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012d", no)
	row := ingesttest.Row(t, r, ingest.Source{})
	return receiver.Record{Row: row, Arrived: start}
}

func records(t testing.TB, from, n int) []receiver.Record {
	t.Helper()
	var list []receiver.Record
	for i := range n {
		list = append(list, record(t, from+i))
	}
	return list
}

// raw encodes a record as its line.
func raw(dst []byte, r *receiver.Record) ([]byte, error) { return append(dst, r.Raw...), nil }

// texts are the events of records.
func texts(list []receiver.Record) []string {
	var all []string
	for _, r := range list {
		all = append(all, r.Raw)
	}
	return all
}

// must returns the Writer that was made.
func must(t testing.TB) func(*stream.Writer, error) *stream.Writer {
	t.Helper()
	return func(w *stream.Writer, err error) *stream.Writer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		return w
	}
}

// TestHostileEncodings checks what is refused, left out and kept together.
func TestHostileEncodings(t *testing.T) {
	var got bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(&got, r.Body) }))
	defer server.Close()
	broken := errors.New("cannot be encoded")
	for _, tt := range []struct {
		name   string
		encode func(dst []byte, r *receiver.Record) ([]byte, error)
		want   string
		err    error
	}{
		{"each record", func(dst []byte, r *receiver.Record) ([]byte, error) {
			return fmt.Appendf(dst, "{%d}", r.Record.Seq), nil
		}, "{0}\n{1}\n{2}\n", nil},
		{"a record without an event", func(dst []byte, r *receiver.Record) ([]byte, error) {
			if r.Record.Seq == 1 {
				return dst, nil
			}
			return fmt.Appendf(dst, "{%d}", r.Record.Seq), nil
		}, "{0}\n{2}\n", nil},
		{"no event", func(dst []byte, _ *receiver.Record) ([]byte, error) { return dst, nil }, "", nil},
		{"a line feed", func(dst []byte, r *receiver.Record) ([]byte, error) {
			return append(dst, strings.Repeat("\n", int(r.Record.Seq))+"{}"...), nil
		}, "", receiver.ErrRefused},
		{"a line feed at the end", func(dst []byte, _ *receiver.Record) ([]byte, error) { return append(dst, "{}\n"...), nil }, "", receiver.ErrRefused},
		{"an error", func(_ []byte, _ *receiver.Record) ([]byte, error) { return nil, broken }, "", receiver.ErrRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got.Reset()
			w := must(t)(stream.NewHTTP(stream.Config{Encode: tt.encode}, stream.HTTP{URL: at(server.URL)}))
			if err := w.Send(t.Context(), records(t, 0, 3)); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if got.String() != tt.want {
				t.Errorf("sent %q, want %q", got.String(), tt.want)
			}
		})
	}
}

// TestInvalid checks that each problem of a configuration is named, and no secret.
func TestInvalid(t *testing.T) {
	ok := stream.Config{Encode: raw}
	for _, tt := range []struct {
		name string
		make func() (*stream.Writer, error)
		want []string
	}{
		{"nothing", func() (*stream.Writer, error) { return stream.NewFile(stream.Config{}, stream.File{}) }, []string{"no encoding", `path is ""`}},
		{"a file", func() (*stream.Writer, error) {
			return stream.NewFile(ok, stream.File{Path: "events.ndjson", Mode: 0o666, Keep: -1})
		}, []string{"want an absolute path", "mode is 0666", "cannot be negative"}},
		{"HTTP", func() (*stream.Writer, error) {
			return stream.NewHTTP(ok, stream.HTTP{URL: at("ftp://user:secret@h/"), Body: "xml", BatchBytes: -1})
		}, []string{"begins with http:// or https://", `body is "xml"`, "cannot be negative"}},
		{"a secret in clear", func() (*stream.Writer, error) {
			return stream.NewHTTP(ok, stream.HTTP{URL: at("http://siem.example"), Header: fixed("Authorization", "secret")})
		}, []string{"use https"}},
		{"headers that cannot be sent", func() (*stream.Writer, error) {
			return stream.NewHTTP(ok, stream.HTTP{URL: at("https://siem.example"), Header: fixed("a b", "secret", "C", "secret\x01")})
		}, []string{`"a b" cannot be`, `the value of "C"`}},
		{"a password in clear", func() (*stream.Writer, error) {
			return stream.NewHTTP(ok, stream.HTTP{URL: at("http://user:secret@siem.example")})
		}, []string{"use https"}},
		{"Kafka", func() (*stream.Writer, error) { return stream.NewKafka(ok, stream.Kafka{}) }, []string{"no topic", "no brokers"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.make()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q has the secret", err)
			}
		})
	}
}

// large returns a record with so many bytes of arguments.
func large(t testing.TB, no, size int) receiver.Record {
	t.Helper()
	r := ingesttest.Call(no, "send_keys", start)
	r.RecordID = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012d", no)
	r.Args = audit.JSON(`{"keys":"` + strings.Repeat("x", size) + `"}`)
	return receiver.Record{Row: ingesttest.Row(t, r, ingest.Source{}), Arrived: start}
}
