package main

import (
	"crypto/tls"
	"net/url"
	"os"

	"auditproxy/cmd/internal/cli"
	"auditproxy/sink/kafka"

	"go.uber.org/zap"
)

// newProducer returns a producer for the configured topic. It connects with
// its first write.
func newProducer(cfg config, log *zap.Logger) (*kafka.Producer, error) {
	v := cfg.values
	secure, err := cli.LoadTLS(v, "kafka.tls")
	if err != nil {
		return nil, err
	}
	password, err := cli.LoadPassword(v, "kafka.sasl.password")
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	access := kafka.Access{
		Brokers: v.List("kafka.brokers"),
		Login: kafka.Login{
			Mechanism: v.String("kafka.sasl.mechanism"),
			User:      v.String("kafka.sasl.username"),
			Password:  password.Reveal(),
		},
		ClientID: "auditproxy",
	}
	if secure != nil {
		access.TLS = func() *tls.Config { return secure }
	}
	return kafka.New(kafka.Config{
		Access: access,
		Topic:  v.String("kafka.topic"),
		Source: "/auditproxy/" + url.PathEscape(host),
		Log:    log,
	})
}
