package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"go.uber.org/zap"
)

// fails logs a new problem, and repeats it while it lasts.
func (p *Producer) fails(err error) {
	text, now := Explain(err), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health.said == "" {
		p.health.since = now
	}
	if p.health.said == text && now.Sub(p.health.saidAt) < sayEvery {
		return
	}
	p.health.said, p.health.saidAt = text, now
	p.log.Warn("shipping stalled", zap.String("because", text), zap.Duration("since", now.Sub(p.health.since)), zap.Error(err))
}

// works logs that the problem is over.
func (p *Producer) works() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health.said != "" {
		p.log.Warn("shipping resumed", zap.Duration("after", time.Since(p.health.since)))
	}
	p.health = health{}
}

// Explain describes the cause of an error of Kafka, and its remedy.
func Explain(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		plain     tls.RecordHeaderError
		alert     tls.AlertError
		dns       *net.DNSError
		op        *net.OpError
	)
	switch {
	case errors.Is(err, saslAuthenticationFailed):
		return "Kafka does not take this user name and password"
	case errors.Is(err, unsupportedSASLMechanism):
		return "Kafka does not offer this login mechanism"
	case errors.Is(err, topicAuthorizationFailed), errors.Is(err, clusterAuthorizationFailed):
		return "this user has no right to the topic"
	case errors.Is(err, unknownTopicOrPartition):
		return "the topic does not exist, and is not created here"
	case errors.Is(err, notEnoughReplicas), errors.Is(err, notEnoughReplicasAfterAppend):
		return "too few replicas of the topic are in sync"
	case errors.As(err, &authority):
		return "the broker's certificate is not signed by an authority that is trusted here"
	case errors.As(err, &name):
		return "the broker's certificate is for another host"
	case errors.As(err, &invalid):
		return "the broker's certificate is not valid"
	case errors.As(err, &plain):
		return "the broker does not speak TLS on this port"
	case errors.As(err, &alert):
		return "the broker does not accept the TLS connection"
	case errors.As(err, &dns):
		return "the broker's name is not known"
	case errors.Is(err, context.DeadlineExceeded), timeout(err):
		return "no broker answers in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the broker closes the connection, as it does when one side speaks TLS or logs in and the other does not"
	case errors.As(err, &op):
		return "no broker can be reached"
	}
	return "Kafka does not serve this client now"
}

func timeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
