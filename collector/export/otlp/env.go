package otlp

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A LoadTLS returns the configuration that is in files at the time of a connection; ""
// for no file.
type LoadTLS func(roots, cert, key string) (func() *tls.Config, error)

// FromEnv returns c with the standard variables OTEL_EXPORTER_OTLP_* where c is
// not set. The timeout and compression apply to each receiver that has none. The
// others describe a connection: a receiver with an endpoint of its own takes
// neither headers nor certificates from the environment, so that no receiver gets
// the key of another, unless it is the Standard one. PerSignal must be empty. Every
// problem is reported, without values that may be secret.
func (c Config) FromEnv(getenv func(string) string, load LoadTLS) (Config, error) {
	e := environment{getenv: getenv, load: load, own: c.Endpoint != "" && !c.Standard}
	base := c.Target
	c.PerSignal = nil
	e.overlay(&c.Target, base, "")
	if !e.own {
		for _, s := range c.signals() {
			t := c.Target
			if !e.overlay(&t, base, strings.ToUpper(string(s))+"_") {
				continue
			}
			// The URL of a signal is used as it is, the general one has the signal's
			// path appended.
			if (base.Endpoint != "" || e.get(strings.ToUpper(string(s))+"_ENDPOINT") == "") && t.Protocol != GRPC {
				if u, err := url.Parse(t.Endpoint); err == nil {
					u.Path = signalPath(u.Path, s)
					t.Endpoint = u.String()
				}
			}
			if c.PerSignal == nil {
				c.PerSignal = map[Signal]Target{}
			}
			c.PerSignal[s] = t
		}
	}
	c.Insecure = withoutTLS(c.Target, base)
	for s, t := range c.PerSignal {
		t.Insecure = withoutTLS(t, base)
		c.PerSignal[s] = t
	}
	if base.TLS == nil {
		// Certificates of the environment are for the endpoints that use them.
		c.TLS = certificatesFor(c.Target)
		for s, t := range c.PerSignal {
			t.TLS = certificatesFor(t)
			c.PerSignal[s] = t
		}
	}
	return c, errors.Join(e.problems...)
}

// withoutTLS returns Insecure of a target. The variable is for endpoints without a
// scheme; the scheme of the environment's says what is wanted, also for headers.
func withoutTLS(t, base Target) bool {
	switch {
	case base.Insecure:
		return true
	case strings.HasPrefix(t.Endpoint, "https://"):
		return false
	case strings.HasPrefix(t.Endpoint, "http://") && base.Endpoint == "":
		return true
	}
	return t.Insecure
}

func certificatesFor(t Target) func() *tls.Config {
	if t.Insecure || strings.HasPrefix(t.Endpoint, "http://") {
		return nil
	}
	return t.TLS
}

// unlimited is the timeout for 0, which the specification calls no limit. The caller
// of Send has one.
const unlimited = math.MaxInt32 * time.Millisecond

type environment struct {
	getenv   func(string) string
	load     LoadTLS
	own      bool // the connection is the receiver's own
	problems []error
}

func (e *environment) get(name string) string {
	return strings.TrimSpace(e.getenv("OTEL_EXPORTER_OTLP_" + name))
}

func (e *environment) bad(name, format string, args ...any) {
	e.problems = append(e.problems, fmt.Errorf("variable OTEL_EXPORTER_OTLP_%s "+format, append([]any{name}, args...)...))
}

// overlay sets in t what variables with a prefix say and base does not set. It
// reports whether there is one.
func (e *environment) overlay(t *Target, base Target, prefix string) (found bool) {
	value := func(name string, unset bool) string {
		if !unset {
			return ""
		}
		v := e.get(prefix + name)
		found = found || v != ""
		return v
	}
	if v := value("COMPRESSION", base.Compression == ""); v != "" {
		if t.Compression = v; v != NoCompression && v != GzipCompression {
			e.bad(prefix+"COMPRESSION", "is %q, want %q or %q", v, NoCompression, GzipCompression)
		}
	}
	if v := value("TIMEOUT", base.Timeout == 0); v != "" {
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			e.bad(prefix+"TIMEOUT", "is %q, want milliseconds", v)
		}
		if t.Timeout = time.Duration(ms) * time.Millisecond; ms == 0 {
			t.Timeout = unlimited
		}
	}
	if e.own {
		return found
	}
	if v := value("ENDPOINT", base.Endpoint == ""); v != "" {
		t.Endpoint = v
	}
	if v := value("PROTOCOL", base.Protocol == ""); v != "" {
		if t.Protocol = v; v != GRPC && v != HTTP {
			e.bad(prefix+"PROTOCOL", "is %q, want %q or %q", v, GRPC, HTTP)
		}
	}
	if v := value("INSECURE", !base.Insecure); v != "" {
		t.Insecure = strings.EqualFold(v, "true")
	}
	if v := value("HEADERS", len(base.Headers) == 0); v != "" {
		t.Headers, t.CurrentHeaders = e.headers(prefix+"HEADERS", v), nil
	}
	if base.TLS == nil {
		e.certificates(t, prefix, value)
	}
	return found
}

// headers reads a list of name=value, of which the values are percent-encoded.
func (e *environment) headers(name, list string) map[string]string {
	headers := map[string]string{}
	for i, pair := range strings.Split(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			e.bad(name, "has no name=value at number %d", i+1)
			continue
		}
		headers[key] = value
	}
	return headers
}

func (e *environment) certificates(t *Target, prefix string, value func(string, bool) string) {
	first := ""
	for _, f := range []struct {
		name string
		path *string
	}{{"CERTIFICATE", &t.roots}, {"CLIENT_CERTIFICATE", &t.cert}, {"CLIENT_KEY", &t.key}} {
		if path := value(f.name, true); path != "" { // a signal's replaces the general one
			*f.path, first = path, cmp.Or(first, prefix+f.name)
		}
	}
	if first == "" {
		return
	}
	var err error
	if t.TLS, err = e.load(t.roots, t.cert, t.key); err != nil {
		e.bad(first, "names a file that cannot be used: %w", err)
	}
}
