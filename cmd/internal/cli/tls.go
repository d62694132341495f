package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// TLSOf returns the files in the keys below prefix, such as "kafka.tls": enabled,
// ca_file, cert_file, key_file and server_name. It returns nil if enabled is false.
func TLSOf(v Values, prefix string) *TLSFiles {
	if !v.Bool(prefix + ".enabled") {
		return nil
	}
	return &TLSFiles{CA: v.String(prefix + ".ca_file"), Cert: v.String(prefix + ".cert_file"), Key: v.String(prefix + ".key_file"), ServerName: v.String(prefix + ".server_name")}
}

// TLSFiles are the files of a client's TLS; "" for none.
type TLSFiles struct{ CA, Cert, Key, ServerName string }

// Load reads the files. prefix is that of their keys, for messages.
func (f TLSFiles) Load(prefix string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("reading %sca_file: %w", prefix, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading %sca_file: no certificate in PEM in %q", prefix, f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, fmt.Errorf("reading %scert_file and key_file: want both or none", prefix)
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("reading %scert_file and key_file: %w", prefix, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// LoadPassword returns the value of key or, if that is empty, the content of
// the file that key+"_file" names, without a line feed at its end and without the
// mark of its encoding that some editors write.
func LoadPassword(v Values, key string) (Secret, error) {
	s, name := v.Secret(key), v.String(key+"_file")
	if s.Reveal() != "" || name == "" {
		return s, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return Secret{}, fmt.Errorf("reading %s_file: %w", key, err)
	}
	return newSecret(strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), "\ufeff")), nil
}

// Files with passwords and certificates are replaced while a program runs, as
// Kubernetes and certificate managers do. They are read again for each new
// connection. What cannot be read then, as while it is being replaced, is as it was.
// Only regular files are read again: a pipe has its content once.

// Renew reads a value of files and returns a function that reads it again, safe for
// concurrent use. The name of a file that is not configured is "". failed is called
// when reading begins to fail; nil: no callback.
func Renew[T any](read func() (T, error), failed func(error), files ...string) (func() T, error) {
	last, err := read()
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == "" })
	if len(files) == 0 || slices.ContainsFunc(files, func(name string) bool {
		i, err := os.Stat(name)
		return err != nil || !i.Mode().IsRegular()
	}) {
		return func() T { return last }, nil
	}
	var mu sync.Mutex // guards last and failing
	failing := false
	return func() T {
		value, err := read()
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			last = value
		} else if !failing && failed != nil {
			failed(err)
		}
		failing = err != nil
		return last
	}, nil
}

// RenewPassword returns the password of a key of PasswordKeys at the time of a
// connection. A file that is empty later is being written.
func RenewPassword(v Values, key string, failed func(error)) (func() string, error) {
	file := v.String(key + "_file")
	started := false
	get, err := Renew(func() (*Secret, error) {
		s, err := LoadPassword(v, key)
		if err == nil && started && s.Reveal() == "" {
			err = fmt.Errorf("reading %s_file: %q is empty", key, file)
		}
		return &s, err
	}, failed, file)
	started = true
	return func() string { return get().Reveal() }, err
}

// RenewTLS returns what is in the files at the time of a connection; nil without files.
// prefix is that of their keys, for messages.
func RenewTLS(f *TLSFiles, prefix string, failed func(error)) (func() *tls.Config, error) {
	if f == nil {
		return nil, nil
	}
	return Renew(func() (*tls.Config, error) { return f.Load(prefix) }, failed, f.CA, f.Cert, f.Key)
}
