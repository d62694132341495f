package main

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"auditproxy/deploy/dev"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/kafka/kafkatest"
)

// TestBadConnections starts collectors that cannot reach one of their ends:
// each reports the cause, keeps running, and ends on a signal.
func TestBadConnections(t *testing.T) {
	t.Parallel()
	b := startBroker(t, kafkatest.Config{Secure: true})
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: chainTopic}); err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	reader := dev.FreeAddr(t)
	h.env = append(h.env, "AUDITCOLLECTOR_LOCAL_LISTEN="+reader, "AUDITCOLLECTOR_LOCAL_PASSWORD="+kafkatest.Password)
	h.engine(t)
	server := h.serve(t).addr
	wrong, right := filepath.Join(h.dir, "wrong"), filepath.Join(h.dir, "right")
	forKafka, forClickHouse := filepath.Join(h.dir, "kafka"), filepath.Join(h.dir, "clickhouse")
	oldCA, _, _ := h.certificate(t, "old")
	other, err := os.ReadFile(oldCA)
	if err != nil {
		t.Fatal(err)
	}
	kafkaCA, clickHouseCA := filepath.Join(h.dir, "kafka-ca"), filepath.Join(h.dir, "clickhouse-ca")
	secure, secureCA := h.secured(t, server)
	for file, password := range map[string]string{wrong: "wrong", right: kafkatest.Password, forKafka: "old", forClickHouse: "old", kafkaCA: string(other), clickHouseCA: string(other)} {
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = "127.0.0.1:1"
	const mismatch = "the broker closes the connection, as it does when one side speaks TLS or logs in and the other does not"
	login := []string{"--kafka-sasl-mechanism", "scram-sha-512", "--kafka-sasl-username", kafkatest.User, "--kafka-sasl-password-file"}
	ca := []string{"--kafka-tls-enabled", "--kafka-tls-ca-file", b.CAFile}
	for _, tt := range []struct {
		name               string
		broker, clickhouse string
		args               [][]string
		want               string // then the password of the test's own file is replaced
	}{
		{"it says that no broker is there", nobody, server, nil, "no broker can be reached"},
		{"it says that the password is wrong", b.SecureAddr, server, [][]string{ca, login, {wrong}}, "Kafka does not take this user name and password"},
		{"it says that the authority is not trusted", b.SecureAddr, server, [][]string{{"--kafka-tls-enabled"}, login, {right}}, "the broker's certificate is not signed by an authority that is trusted here"},
		{"it says that the broker has no login", b.Addr, server, [][]string{login, {right}}, "the broker has no login on this port: name the port that has, or no kafka.sasl"},
		{"it says that the broker speaks TLS", b.SecureAddr, server, nil, mismatch},
		{"it says that the broker does not speak TLS", b.Addr, server, [][]string{{"--kafka-tls-enabled"}}, mismatch},
		{"it says that there is no topic", b.Addr, server, [][]string{{"--kafka-topic", "absent"}}, `topic \"absent\" does not exist: create it, or name another`},
		{"it says that ClickHouse is not there", b.Addr, nobody, nil, "dial tcp 127.0.0.1:1: connect: connection refused: start ClickHouse there, or set clickhouse.addr to where it runs"},
		{"it says that ClickHouse does not speak TLS", b.Addr, server, [][]string{{"--clickhouse-tls-enabled"}}, "check that clickhouse.tls.enabled, clickhouse.protocol and the port match"},
		{"it reads the authority of Kafka again", b.SecureAddr, server, [][]string{{"--kafka-tls-enabled", "--kafka-tls-ca-file", kafkaCA}, login, {right}, {"--log-level", "info"}}, "the broker's certificate is not signed by an authority that is trusted here"},
		{"it reads the authority of ClickHouse again", b.Addr, secure, [][]string{{"--clickhouse-tls-enabled", "--clickhouse-tls-ca-file", clickHouseCA, "--log-level", "info"}}, "set clickhouse.tls.ca_file to the authority that signed the server's certificate"},
		{"it reads a password again that Kafka does not take", b.SecureAddr, server, [][]string{ca, login, {forKafka}, {"--log-level", "info"}}, "Kafka does not take this user name and password"},
		{"it reads a password again that ClickHouse does not take", b.Addr, reader, [][]string{{"--clickhouse-user", "u", "--clickhouse-password-file", forClickHouse, "--clickhouse-database", "absent"}}, "check clickhouse.user and its password"},
		{"it says that ClickHouse does not take the password", b.Addr, reader, [][]string{{"--clickhouse-user", "u", "--clickhouse-password-file", wrong}}, "check clickhouse.user and its password"},
		{"it says that there is no database and that it may not make one", b.Addr, reader, [][]string{{"--clickhouse-user", "u", "--clickhouse-password-file", right, "--clickhouse-database", "absent"}},
			"a user with that right has to grant it, or to run auditcollector migrate"},
		{"it says nothing of what is right", b.SecureAddr, server, [][]string{ca, login, {right}, {"--log-level", "info"}}, `"partitions": {"mcp.audit.v1":[0]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			args := []string{"--kafka-group", t.Name(), "--kafka-brokers", tt.broker, "--clickhouse-addr", tt.clickhouse, "--clickhouse-protocol", "http"}
			for _, more := range tt.args {
				args = append(args, more...)
			}
			p := h.collect(t, args...)
			eventually(t, tt.want, func() bool { return p.stderr.has(tt.want) })
			const reads = `"partitions": {"mcp.audit.v1":[0]}`
			for file, then := range map[string]string{forKafka: reads, forClickHouse: "a user with that right has to grant it", kafkaCA: reads, clickHouseCA: reads} {
				if !slices.Contains(args, file) {
					continue
				}
				text := []byte(kafkatest.Password)
				if from := map[string]string{kafkaCA: b.CAFile, clickHouseCA: secureCA}[file]; from != "" {
					// As it is while it is written.
					const said = "a file cannot be read again; what was read of it before counts"
					if err := os.Truncate(file, 0); err != nil {
						t.Fatal(err)
					}
					eventually(t, said, func() bool { return p.stderr.has(said) })
					var err error
					if text, err = os.ReadFile(from); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				eventually(t, then, func() bool { return p.stderr.has(then) })
			}
			if code := p.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// secured serves with TLS what a server does without it, and returns its address and the
// file of its authority.
func (h home) secured(t *testing.T, server string) (addr, caFile string) {
	t.Helper()
	caFile, key, _ := h.certificate(t, "localhost")
	pair, err := tls.LoadX509KeyPair(caFile, key)
	if err != nil {
		t.Fatal(err)
	}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
	s := httptest.NewUnstartedServer(to)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that trust another one
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "localhost:" + port, caFile
}

// TestNewerSchema checks that a program older than the tables does not touch
// them.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	server := h.serve(t).addr
	if _, err := h.query(chdb.Writer, "INSERT INTO audit.migrations (number, name, sha256, applied_at) VALUES (1000, '1000_future', 'x', now64(3))"); err != nil {
		t.Fatal(err)
	}
	got := h.run(t, "run", "--clickhouse-addr", server, "--clickhouse-protocol", "http")
	if got.code != 78 || !strings.Contains(got.stderr, "migration 1000: the schema is newer than this program: install the version that made it") {
		t.Errorf("run: %+v", got)
	}
}
