package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"auditproxy/sink/kafka"
	"auditproxy/sink/kafka/kafkatest"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// cluster is the broker of this test binary.
var cluster = kafkatest.Shared{Config: kafkatest.Config{Secure: true}}

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// newTopic makes a topic of its own for a test.
func newTopic(t *testing.T, partitions int, settings map[string]string) string {
	t.Helper()
	return cluster.NewTopic(t, kafkatest.Topic{Partitions: partitions, Config: settings})
}

// newProducer returns a producer, and what it logs.
func newProducer(t *testing.T, c kafka.Config) (*kafka.Producer, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	c.Log = zap.New(core)
	if c.Brokers == nil {
		c.Brokers = []string{cluster.Broker(t).Addr}
	}
	c.Source = "/auditproxy/test"
	p, err := kafka.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, logs
}

// waitFor waits until a log line says why records wait.
func waitFor(t *testing.T, logs *observer.ObservedLogs, because string) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for logs.FilterField(zap.String("because", because)).Len() == 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("nothing is logged because %q, but: %v", because, logs.All())
		}
	}
}

// write writes lines in the background, until the test ends or what keeps it
// from doing so has gone.
func write(t *testing.T, p *kafka.Producer, session string, lines [][]byte) <-chan error {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Write(ctx, session, lines); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return done
}

// values are those in a topic now, by key, each in the order of its partition.
func values(t *testing.T, topic string) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	messages, err := cluster.Broker(t).Messages(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, m := range messages {
		all[string(m.Key)] = append(all[string(m.Key)], string(m.Value))
	}
	return all
}

// trusted is TLS that trusts the broker, with a login.
func trusted(t *testing.T) kafka.Access {
	t.Helper()
	b := cluster.Broker(t)
	pem, err := os.ReadFile(b.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool}
	return kafka.Access{
		Brokers: []string{b.SecureAddr},
		TLS:     func() *tls.Config { return config },
		Login:   kafka.Login{Mechanism: "scram-sha-512", User: kafkatest.User, Password: always(kafkatest.Password)},
	}
}

// always returns a password that does not change.
func always(password string) func() string { return func() string { return password } }
