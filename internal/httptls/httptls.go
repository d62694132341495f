// Package httptls makes transports of HTTP whose TLS configuration may change.
package httptls

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"slices"
	"sync"
)

// A Transport is an http.Transport with the TLS configuration of the time. One of package
// http keeps the configuration that it began with, and a function that dials is not asked
// for connections through a proxy. So a change makes another one.
type Transport struct {
	base    *http.Transport
	current func() *tls.Config

	mu     sync.Mutex      // guards all below
	config *tls.Config     // of last
	last   *http.Transport // nil: none yet
}

// New returns a Transport with the settings of base, which it does not use itself.
// current returns the configuration; nil: the host's authorities.
func New(base *http.Transport, current func() *tls.Config) *Transport {
	return &Transport{base: base, current: current}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.now().RoundTrip(r) }

func (t *Transport) now() *http.Transport {
	var config *tls.Config
	if t.current != nil {
		config = t.current()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !same(t.config, config) {
		// A connection that was made by what counts no more is not used again.
		if t.last != nil {
			t.last.CloseIdleConnections()
		}
		t.config, t.last = config, t.base.Clone()
		t.last.TLSClientConfig = config.Clone()
	}
	return t.last
}

// CloseIdleConnections is http.Transport's.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil {
		t.last.CloseIdleConnections()
	}
}

// same reports whether two configurations are equal in what files may change.
func same(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.RootCAs.Equal(b.RootCAs) && slices.EqualFunc(a.Certificates, b.Certificates, func(a, b tls.Certificate) bool {
		return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
	})
}
