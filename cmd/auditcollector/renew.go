package main

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"slices"
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

	failed func(error) // is called when reading begins to fail; nil: no callback

	mu      sync.Mutex // guards all below
	last    T          // what was read last
	failing bool
}

// renew reads a value of files for the first time. The name of a file that is not
// configured is "".
func renew[T any](read func() (T, error), files ...string) (*renewed[T], error) {
	last, err := read()
	files = slices.DeleteFunc(files, func(name string) bool { return name == "" })
	if len(files) == 0 {
		read = func() (T, error) { return last, nil }
	}
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
	} else if !r.failing && r.failed != nil {
		r.failed(err)
	}
	r.failing = err != nil
	return r.last
}

// renewPassword reads the password of a key of cli.PasswordKeys. A file that is empty
// later is being written.
func renewPassword(v cli.Values, key string, failed func(error)) (*renewed[cli.Secret], error) {
	file := v.String(key + "_file")
	r, err := renew(func() (cli.Secret, error) { return cli.LoadPassword(v, key) }, file)
	if file == "" {
		return r, err
	}
	read := r.read
	r.read = func() (cli.Secret, error) {
		s, err := read()
		if err == nil && s.Reveal() == "" {
			err = errors.New("the file is empty")
		}
		return s, err
	}
	r.failed = failed
	return r, err
}

// renewPair reads a certificate and its key.
func renewPair(cert, key string) (*renewed[tls.Certificate], error) {
	return renew(func() (tls.Certificate, error) { return tls.LoadX509KeyPair(cert, key) }, cert, key)
}

// renewTLS returns what is in the files at the time of a connection; nil without files.
// prefix is that of their keys, for messages.
func renewTLS(f *cli.TLSFiles, prefix string, failed func(error)) (func() *tls.Config, error) {
	if f == nil {
		return nil, nil
	}
	r, err := renew(func() (*tls.Config, error) { return f.Load(prefix) }, f.CA, f.Cert, f.Key)
	if err != nil {
		return nil, err
	}
	r.failed = failed
	return r.get, nil
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
