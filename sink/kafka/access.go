package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"auditproxy/internal/hostport"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	franz "github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// An Access configures the connection to a cluster. With TLS nothing is ever
// sent in clear: a broker without TLS counts as one that does not answer.
type Access struct {
	Brokers  []string           // host:port. Required.
	TLS      func() *tls.Config // of a new connection; nil: plain text
	Login    Login              // zero: no login
	ClientID string             // the client id in brokers' logs; "" for none
}

// A Login is a SASL mechanism with a name and a password.
type Login struct {
	Mechanism string // "plain", "scram-sha-256" or "scram-sha-512"; "" for none
	User      string
	Password  func() string // at the time of a login; nil: none. Safe for concurrent use.
}

// String omits the password.
func (l Login) String() string { return fmt.Sprintf("%s as %q", l.Mechanism, l.User) }

// GoString is String.
func (l Login) GoString() string { return l.String() }

// Validate returns all problems of a.
func (a Access) Validate() error {
	var problems []error
	if len(a.Brokers) == 0 {
		problems = append(problems, errors.New("no brokers"))
	}
	for _, broker := range a.Brokers {
		if !hostport.Is(broker) {
			broker = broker[strings.LastIndexByte(broker, '@')+1:] // before it there may be a password
			if at := strings.IndexAny(broker, "?#&; "); at >= 0 {  // and here parameters
				broker = broker[:at]
			}
			problems = append(problems, fmt.Errorf("broker %q: want host:port", broker))
		}
	}
	if a.Login.Mechanism == "plain" && a.TLS == nil {
		problems = append(problems, errors.New("logging in by plain without TLS would send the password in clear"))
	}
	_, err := a.Mechanism()
	return errors.Join(append(problems, err)...)
}

// Mechanism returns the SASL mechanism, nil without a login.
func (a Access) Mechanism() (sasl.Mechanism, error) {
	l := a.Login
	switch l.Mechanism {
	case "":
		return nil, nil
	case "plain":
		return plainLogin{login: l}, nil
	case "scram-sha-256":
		return scramLogin{scram.Sha256(l.scram)}, nil
	case "scram-sha-512":
		return scramLogin{scram.Sha512(l.scram)}, nil
	}
	return nil, fmt.Errorf("login mechanism %q: want plain, scram-sha-256 or scram-sha-512", l.Mechanism)
}

func (l Login) password() string {
	if l.Password == nil {
		return ""
	}
	return l.Password()
}

func (l Login) scram(context.Context) (scram.Auth, error) {
	return scram.Auth{User: l.User, Pass: l.password()}, nil
}

// plainLogin is PLAIN (RFC 4616) for kafka-go, with the password of the time.
type plainLogin struct{ login Login }

// Name returns the name of the mechanism.
func (plainLogin) Name() string { return plain.Mechanism{}.Name() }

// Start begins a login and returns the first message.
func (l plainLogin) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	return plain.Mechanism{Username: l.login.User, Password: l.login.password()}.Start(ctx)
}

// scramLogin is SCRAM (RFC 5802) for kafka-go. kafka-go's own builds its
// tables for SASLprep at every start of the program, which would delay every
// wrapped server; Kafka's brokers do not prepare names and passwords.
type scramLogin struct{ mechanism franz.Mechanism }

// Name returns the name of the mechanism.
func (l scramLogin) Name() string { return l.mechanism.Name() }

// Start begins a login and returns the first message.
func (l scramLogin) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	session, first, err := l.mechanism.Authenticate(ctx, "")
	return scramSession{session}, first, err
}

type scramSession struct{ session franz.Session }

// Next answers a challenge.
func (s scramSession) Next(_ context.Context, challenge []byte) (done bool, answer []byte, err error) {
	return s.session.Challenge(challenge)
}
