package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// LoadTLS returns the configuration in the keys below prefix, such as
// "kafka.tls": enabled, ca_file, cert_file, key_file and server_name. It
// returns nil if enabled is false.
func LoadTLS(v Values, prefix string) (*tls.Config, error) {
	f := TLSOf(v, prefix)
	if f == nil {
		return nil, nil
	}
	return f.Load(prefix + ".")
}

// TLSOf returns the files that LoadTLS reads, nil if enabled is false.
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
