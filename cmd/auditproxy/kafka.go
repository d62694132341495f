package main

import (
	"errors"
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
	failed := func(err error) {
		log.Warn("a file cannot be read again; what was read of it before counts", zap.Error(err))
	}
	secure, tlsErr := cli.RenewTLS(cli.TLSOf(v, "kafka.tls"), "kafka.tls.", failed)
	password, err := cli.RenewPassword(v, "kafka.sasl.password", failed)
	if err := errors.Join(tlsErr, err); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	access := kafka.Access{
		Brokers: v.List("kafka.brokers"),
		TLS:     secure,
		Login: kafka.Login{
			Mechanism: v.String("kafka.sasl.mechanism"),
			User:      v.String("kafka.sasl.username"),
			Password:  password,
		},
		ClientID: "auditproxy",
	}
	return kafka.New(kafka.Config{
		Access: access,
		Topic:  v.String("kafka.topic"),
		Source: "/auditproxy/" + url.PathEscape(host),
		Log:    log,
	})
}
