package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// An Access says how to reach a cluster. With TLS nothing is ever sent without
// it: a broker that does not speak it is a broker that does not answer.
type Access struct {
	Brokers  []string    // host:port. Required.
	TLS      *tls.Config // nil: plain text
	Login    Login       // zero: nobody logs in
	ClientID string      // what brokers call us in their logs; "" for nothing
}

// A Login is a SASL mechanism with a name and a password.
type Login struct {
	Mechanism string // "plain", "scram-sha-256" or "scram-sha-512"; "" for none
	User      string
	Password  string
}

// String leaves the password out.
func (l Login) String() string { return fmt.Sprintf("%s as %q", l.Mechanism, l.User) }

// GoString is String.
func (l Login) GoString() string { return l.String() }

// validate returns all problems of a.
func (a Access) validate() error {
	var problems []error
	if len(a.Brokers) == 0 {
		problems = append(problems, errors.New("no brokers"))
	}
	for _, broker := range a.Brokers {
		if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
			problems = append(problems, fmt.Errorf("broker %q: want host:port", broker))
		}
	}
	_, err := a.mechanism()
	if a.Login.Mechanism == "plain" && a.TLS == nil {
		err = errors.New("logging in by plain without TLS would send the password in clear")
	}
	return errors.Join(append(problems, err)...)
}

// mechanism returns nil if nobody logs in.
func (a Access) mechanism() (sasl.Mechanism, error) {
	l := a.Login
	switch l.Mechanism {
	case "":
		return nil, nil
	case "plain":
		return plain.Mechanism{Username: l.User, Password: l.Password}, nil
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, l.User, l.Password)
	case "scram-sha-512":
		return scram.Mechanism(scram.SHA512, l.User, l.Password)
	}
	return nil, fmt.Errorf("login mechanism %q: want plain, scram-sha-256 or scram-sha-512", l.Mechanism)
}

// Addr returns the brokers as kafka-go wants them.
func (a Access) Addr() net.Addr { return kafkago.TCP(a.Brokers...) }

// Transport returns a transport for requests about topic. Its connections and
// goroutines last until ctx ends.
func (a Access) Transport(ctx context.Context, topic string) (*kafkago.Transport, error) {
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("reaching Kafka at %s: %w", strings.Join(a.Brokers, ","), err)
	}
	mechanism, err := a.mechanism()
	if err != nil {
		return nil, err
	}
	return &kafkago.Transport{
		Dial:           dial,
		TLS:            a.tls(),
		SASL:           mechanism,
		ClientID:       a.ClientID,
		MetadataTopics: []string{topic},
		MetadataTTL:    time.Second, // how long a new leader stays unknown
		Context:        ctx,
	}, nil
}

// Dialer returns a dialer for consumers.
func (a Access) Dialer() (*kafkago.Dialer, error) {
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("reaching Kafka at %s: %w", strings.Join(a.Brokers, ","), err)
	}
	mechanism, err := a.mechanism()
	if err != nil {
		return nil, err
	}
	return &kafkago.Dialer{
		TLS:           a.tls(),
		SASLMechanism: mechanism,
		ClientID:      a.ClientID,
		Timeout:       10 * time.Second,
		DualStack:     true,
	}, nil
}

// tls returns a copy, for those who change what they are given.
func (a Access) tls() *tls.Config {
	if a.TLS == nil {
		return nil
	}
	return a.TLS.Clone()
}

// ioTimeout is how long a connection may be silent while something is read or
// written. kafka-go sets no limit of its own to a login or a request, and each
// that a broker leaves without an answer would hold a goroutine for ever.
const ioTimeout = 15 * time.Second

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return impatient{c}, nil
}

// impatient is a connection on which nothing takes longer than ioTimeout.
type impatient struct{ net.Conn }

func (c impatient) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(ioTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c impatient) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
