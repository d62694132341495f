package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/export"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/deploy/dev"
	"auditproxy/sink/kafka/kafkatest"

	"go.uber.org/zap"
)

// TestReceiversTLSIsReadAgain replaces the authority that receivers' certificates are
// checked by, and the certificates that these ask for, while receivers exist.
func TestReceiversTLSIsReadAgain(t *testing.T) {
	t.Parallel()
	b := startBroker(t, kafkatest.Config{Secure: true})
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: "events"}); err != nil {
		t.Fatal(err)
	}
	// Each in a directory of its own: they have the same names.
	made := func(name string) (certFile, keyFile string, pool *x509.CertPool) {
		return home{dir: t.TempDir()}.certificate(t, name)
	}
	serverCert, serverKey, _ := made("localhost")
	clientCert, clientKey, clients := made("client")
	otherCert, otherKey, _ := made("other")
	grpcAddr := startTLSCollector(t, serverCert, serverKey, clientCert)
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	server.StartTLS()
	t.Cleanup(server.Close)
	httpURL := "https://localhost:" + server.URL[strings.LastIndexByte(server.URL, ':')+1:]

	row := ingesttest.Row(t, ingesttest.Call(1, "pipe_pane", time.Now()), ingest.Source{})
	records := []receiver.Record{{Row: row, Arrived: time.Now().Truncate(time.Millisecond)}}
	for _, tt := range []struct {
		name string
		env  []string // %s: the directory of ca, cert and key
		file string   // of receivers
		ca   string   // that is right
	}{
		{"the keys otlp.tls, by HTTP", []string{"AUDITCOLLECTOR_OTLP_ENDPOINT=" + httpURL, "AUDITCOLLECTOR_OTLP_TLS_ENABLED=true",
			"AUDITCOLLECTOR_OTLP_TLS_CA_FILE=%s/ca", "AUDITCOLLECTOR_OTLP_TLS_CERT_FILE=%s/cert", "AUDITCOLLECTOR_OTLP_TLS_KEY_FILE=%s/key"}, "", serverCert},
		{"the keys otlp.tls, by gRPC", []string{"AUDITCOLLECTOR_OTLP_ENDPOINT=https://" + grpcAddr, "AUDITCOLLECTOR_OTLP_PROTOCOL=grpc", "AUDITCOLLECTOR_OTLP_TLS_ENABLED=true",
			"AUDITCOLLECTOR_OTLP_TLS_CA_FILE=%s/ca", "AUDITCOLLECTOR_OTLP_TLS_CERT_FILE=%s/cert", "AUDITCOLLECTOR_OTLP_TLS_KEY_FILE=%s/key"}, "", serverCert},
		{"the variables", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + httpURL, "OTEL_EXPORTER_OTLP_CERTIFICATE=%s/ca", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=%s/cert",
			"OTEL_EXPORTER_OTLP_CLIENT_KEY=%s/key"}, "", serverCert},
		{"a receiver by OTLP", nil, "otlp: {endpoint: '" + httpURL + "', tls: {ca_file: %[1]s/ca, cert_file: %[1]s/cert, key_file: %[1]s/key}}", serverCert},
		{"a receiver by HTTP", nil, "http: {url: '" + httpURL + "', tls: {ca_file: %[1]s/ca, cert_file: %[1]s/cert, key_file: %[1]s/key}}", serverCert},
		{"a receiver by Kafka", nil, "kafka: {brokers: ['" + b.SecureAddr + "'], topic: events, tls: {ca_file: %[1]s/ca}, " +
			"sasl: {mechanism: scram-sha-512, username: " + kafkatest.User + ", password_file: %[1]s/password}}", b.CAFile},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			replace := func(name, from string) {
				text, err := os.ReadFile(from)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			replace("ca", otherCert)
			replace("cert", otherCert)
			replace("key", otherKey)
			if err := os.WriteFile(filepath.Join(dir, "password"), []byte(kafkatest.Password), 0o600); err != nil {
				t.Fatal(err)
			}
			r := onlyReceiver(t, withReceiver(t, tt.env, tt.file, dir))
			if err := r.To.Send(t.Context(), records); err == nil || !strings.Contains(err.Error(), "authority") {
				t.Fatalf("Send with another authority: %v", err)
			}
			replace("ca", tt.ca)
			replace("cert", clientCert)
			replace("key", clientKey)
			// kafka-go keeps an error for some seconds.
			eventually(t, "it sends with the right authority", func() bool { return r.To.Send(t.Context(), records) == nil })
		})
	}
}

// TestReceiversSecretsAreReadAgain replaces headers and a password while receivers exist.
func TestReceiversSecretsAreReadAgain(t *testing.T) {
	t.Parallel()
	b := startBroker(t, kafkatest.Config{Secure: true})
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: "events"}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	row := ingesttest.Row(t, ingesttest.Call(1, "pipe_pane", time.Now()), ingest.Source{})
	records := []receiver.Record{{Row: row, Arrived: time.Now().Truncate(time.Millisecond)}}
	const oldHeader, newHeader = "Authorization: Bearer old", "Authorization: Bearer new"
	for _, tt := range []struct {
		name string
		env  []string // %s: the file
		file string   // of receivers

		old, new, empty string
	}{
		{"the keys otlp", []string{"AUDITCOLLECTOR_OTLP_ENDPOINT=" + server.URL, "AUDITCOLLECTOR_OTLP_HEADERS_FILE=%s"}, "", oldHeader, newHeader, "# the token\n"},
		{"by OTLP", nil, "otlp: {endpoint: '" + server.URL + "', headers_file: %s}", oldHeader, newHeader, "# the token\n"},
		{"by HTTP", nil, "http: {url: '" + server.URL + "', headers_file: %s}", oldHeader, newHeader, "# the token\n"},
		{"by Kafka", nil, "kafka: {brokers: ['" + b.SecureAddr + "'], topic: events, tls: {ca_file: " + b.CAFile + "}, " +
			"sasl: {mechanism: scram-sha-512, username: " + kafkatest.User + ", password_file: %s}}", "old", kafkatest.Password, " \n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := withReceiver(t, tt.env, tt.file, file)
			write(tt.empty)
			if _, err := outputsOf(t, env); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("starting with an empty file: %v", err)
			}
			write(tt.old)
			r := onlyReceiver(t, env)
			if err := r.To.Send(t.Context(), records); err == nil {
				t.Fatal("Send with the old secret succeeded")
			}
			write(tt.new)
			// kafka-go keeps an error for some seconds.
			eventually(t, "it sends with the new secret", func() bool { return r.To.Send(t.Context(), records) == nil })
			write(tt.empty) // as while it is written
			if err := r.To.Send(t.Context(), records); err != nil {
				t.Errorf("Send while the file is empty: %v", err)
			}
		})
	}
}

// TestAddressIsReadAgain replaces the address of a receiver, and what readers of the local
// engine log in with. An address to which headers would be sent in clear gets nothing.
func TestAddressIsReadAgain(t *testing.T) {
	file, headers := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "headers")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Path) }))
	defer server.Close()
	row := ingesttest.Row(t, ingesttest.Call(1, "pipe_pane", time.Now()), ingest.Source{})
	records := []receiver.Record{{Row: row, Arrived: time.Now().Truncate(time.Millisecond)}}
	write(headers, "Authorization: Bearer secret")
	write(file, server.URL+"/old\n")
	r := onlyReceiver(t, withReceiver(t, nil, "http: {url_file: %s, headers_file: '"+headers+"'}", file))
	for _, tt := range []struct{ text, problem string }{
		{server.URL + "/old", ""}, {server.URL + "/new", ""}, {"", ""}, {"http://siem.example/x?token=secret", "use https"}, {"ftp://secret", "https://"}, {server.URL + "/again", ""},
	} {
		write(file, tt.text)
		err := r.To.Send(t.Context(), records)
		if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.problem)
		}
	}
	if want := []string{"/old", "/new", "/new", "/again"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	write(file, "old")
	a := &app{env: []string{"AUDITCOLLECTOR_LOCAL_LISTEN=127.0.0.1:1", "AUDITCOLLECTOR_LOCAL_PASSWORD_FILE=" + file}, keys: collectorKeys("/local", "/spool"), systemUID: os.Getuid()}
	newRootCmd(a)
	cfg, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := cfg.engine(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][2]string{{"old", "old"}, {"new", "new"}, {"", "new"}} {
		write(file, tt[0])
		if got := engine.Password(); got != tt[1] {
			t.Errorf("with %q in the file the password is %q, want %q", tt[0], got, tt[1])
		}
	}
}

// withReceiver returns the environment of a collector with one receiver, of env or of a
// file, in which %s is a path.
func withReceiver(t *testing.T, env []string, file, path string) (list []string) {
	t.Helper()
	for _, v := range env {
		list = append(list, strings.ReplaceAll(v, "%s", path))
	}
	if file != "" {
		flag := home{dir: t.TempDir()}.receivers(t, "receivers: [{name: r, "+fmt.Sprintf(file, path)+"}]")
		list = append(list, "AUDITCOLLECTOR_EXPORT_RECEIVERS="+flag[strings.Index(flag, "=")+1:])
	}
	return list
}

// onlyReceiver returns the receiver of a configuration that has one.
func onlyReceiver(t *testing.T, env []string) export.Receiver {
	t.Helper()
	o, err := outputsOf(t, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.close)
	if len(o.list) != 1 {
		t.Fatalf("there are %d receivers, want 1", len(o.list))
	}
	return o.list[0]
}

func outputsOf(t *testing.T, env []string) (*outputs, error) {
	t.Helper()
	a := &app{env: env, keys: collectorKeys("/local", "/spool"), systemUID: os.Getuid()}
	newRootCmd(a)
	cfg, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	return a.outputs(cfg, zap.NewNop())
}

// startTLSCollector starts an OpenTelemetry Collector that wants a client's certificate,
// and returns its address for gRPC.
func startTLSCollector(t *testing.T, cert, key, client string) string {
	t.Helper()
	dir, addr := t.TempDir(), "localhost:"+strings.TrimPrefix(dev.FreeAddr(t), "127.0.0.1:")
	config := fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %q, tls: {cert_file: %q, key_file: %q, client_ca_file: %q}}}}}\n"+
		"exporters: {file: {path: %q}}\nservice: {pipelines: {logs: {receivers: [otlp], exporters: [file]}, traces: {receivers: [otlp], exporters: [file]}, metrics: {receivers: [otlp], exporters: [file]}}}\n",
		addr, cert, key, client, filepath.Join(dir, "out"))
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dev.Fetched(t, "otelcol"), file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "the OpenTelemetry Collector listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return addr
}
