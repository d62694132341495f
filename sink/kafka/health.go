package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"time"

	"go.uber.org/zap"
)

// fails logs a new problem, and repeats it while it lasts.
func (p *Producer) fails(err error) {
	class, text := explain(err)
	p.count(class)
	now := time.Now()
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
	_, text := explain(err)
	return text
}

// explain returns a word for the cause of an error too, for metrics.
func explain(err error) (class, text string) {
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
		return "login", "Kafka does not take this user name and password"
	case errors.Is(err, unsupportedSASLMechanism):
		return "login", "Kafka does not offer this login mechanism"
	case errors.Is(err, illegalSASLState):
		return "login", "the broker has no login on this port: name the port that has, or no kafka.sasl"
	case errors.Is(err, topicAuthorizationFailed), errors.Is(err, clusterAuthorizationFailed):
		return "rights", "this user has no right to the topic"
	case errors.Is(err, unknownTopicOrPartition):
		return "topic", "the topic does not exist, and is not created here"
	case errors.Is(err, notEnoughReplicas), errors.Is(err, notEnoughReplicasAfterAppend):
		return "replicas", "too few replicas of the topic are in sync"
	case errors.Is(err, kafkaStorageError):
		return "disk", "the disk of a broker is full or broken: free space there, and start the broker again if it ended"
	case errors.Is(err, invalidTimestamp):
		return "clock", "Kafka does not take the time of this host: correct its clock, or set the topic's message.timestamp.type to LogAppendTime"
	case errors.As(err, &authority):
		return "tls", "the broker's certificate is not signed by an authority that is trusted here: set ca_file, as kafka.tls.ca_file, to that authority"
	case errors.As(err, &name):
		return "tls", "the broker's certificate is for another host"
	case errors.As(err, &invalid):
		return "tls", "the broker's certificate is not valid now: renew it, or correct the clock of this host"
	case errors.As(err, &plain):
		return "tls", "the broker does not speak TLS on this port"
	case errors.As(err, &alert):
		return "tls", "the broker does not accept the TLS connection"
	case errors.As(err, &dns):
		return "network", "the broker's name is not known"
	case errors.Is(err, context.DeadlineExceeded), timeout(err):
		return "timeout", "no broker answers in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "network", "the broker closes the connection, as it does when one side speaks TLS or logs in and the other does not"
	case errors.As(err, &op):
		return "network", "no broker can be reached"
	}
	return "other", "Kafka does not serve this client now"
}

// ErrorClasses are the keys of Stats.Errors.
func ErrorClasses() []string {
	return []string{"login", "rights", "topic", "replicas", "disk", "clock", "tls", "timeout", "network", "refused", "other"}
}

// Stats is what a producer has done so far.
type Stats struct {
	Requests int64            // produce requests
	Errors   map[string]int64 // failures of a partition's batch, by ErrorClasses
	Stalled  string           // why something cannot be shipped, as Explain says it; "" if all can
	Since    time.Time        // it cannot
}

// Stats returns what the producer has done so far.
func (p *Producer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Requests: p.requests, Errors: maps.Clone(p.errors), Stalled: p.health.said, Since: p.health.since}
}

// count counts a failure.
func (p *Producer) count(class string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors[class]++
}

func timeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
