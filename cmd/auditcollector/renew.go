package main

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"sync"

	"auditproxy/cmd/internal/cli"

	"github.com/segmentio/kafka-go/sasl"
)

// Files with passwords and certificates are replaced while this program runs, as
// Kubernetes and certificate managers do. They are read again for each new
// connection. What cannot be read then, as while it is being replaced, is as it was.
// Only regular files are read again: a pipe has its content once.

// A renewed is a value that is read again whenever it is needed.
type renewed[T any] struct {
	read func() (T, error)

	mu   sync.Mutex
	last T // what was read last; guarded by mu
}

// renew reads a value of files for the first time.
func renew[T any](read func() (T, error), files ...string) (*renewed[T], error) {
	last, err := read()
	for _, name := range files {
		if i, err := os.Stat(name); err != nil || !i.Mode().IsRegular() {
			read = func() (T, error) { return last, nil }
		}
	}
	return &renewed[T]{read: read, last: last}, err
}

func (r *renewed[T]) get() T {
	value, err := r.read()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.last = value
	}
	return r.last
}

// renewPassword reads the password of a key of cli.PasswordKeys. A file that is empty
// later is being written.
func renewPassword(v cli.Values, key string) (*renewed[cli.Secret], error) {
	r, err := renew(func() (cli.Secret, error) { return cli.LoadPassword(v, key) }, v.String(key+"_file"))
	read := r.read
	r.read = func() (cli.Secret, error) {
		s, err := read()
		if err == nil && s.Reveal() == "" {
			err = errors.New("the file is empty")
		}
		return s, err
	}
	return r, err
}

// renewPair reads a certificate and its key.
func renewPair(cert, key string) (*renewed[tls.Certificate], error) {
	return renew(func() (tls.Certificate, error) { return tls.LoadX509KeyPair(cert, key) }, cert, key)
}

// renewTLS is cli.LoadTLS for connections that are made for as long as this program
// runs.
func renewTLS(v cli.Values, prefix string) (*tls.Config, error) {
	c, err := cli.LoadTLS(v, prefix)
	if err != nil || c == nil {
		return c, err
	}
	return c, renewClientPair(c, v.String(prefix+".cert_file"), v.String(prefix+".key_file"))
}

// renewClientPair has c send the certificate that is in the files at the time.
func renewClientPair(c *tls.Config, cert, key string) error {
	if cert == "" {
		return nil
	}
	pair, err := renewPair(cert, key)
	c.Certificates = nil
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		p := pair.get()
		return &p, nil
	}
	return err
}

// A renewedLogin is a login to Kafka with the password of the time.
type renewedLogin struct {
	sasl.Mechanism // of the password at the start: its name
	current        func() (sasl.Mechanism, error)
}

func (l renewedLogin) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	m, err := l.current()
	if err != nil {
		return nil, nil, err
	}
	return m.Start(ctx)
}
