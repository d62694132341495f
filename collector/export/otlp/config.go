package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Signal is a kind of telemetry.
type Signal string

// The signals.
const (
	Logs    Signal = "logs"
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
)

// The protocols and compressions.
const (
	GRPC            = "grpc"
	HTTP            = "http/protobuf"
	NoCompression   = "none"
	GzipCompression = "gzip"
)

// defaultTimeout is also the specification's.
const defaultTimeout = 10 * time.Second

// A Target is where and how a signal is sent.
type Target struct {
	// Endpoint is a URL with the scheme http or https. With HTTP, /v1/logs and the
	// like are appended to its path. With GRPC it may also be host:port, which uses
	// TLS unless Insecure.
	Endpoint string
	Protocol string            // GRPC or HTTP; "": HTTP
	Headers  map[string]string // of each request; the values are secrets
	// CurrentHeaders are Headers at the time of a request; nil: they do not change.
	CurrentHeaders func() map[string]string
	TLS            func() *tls.Config // of a new connection; nil: the system's certificates
	Insecure       bool               // no TLS, also for headers that go to another host
	Compression    string             // NoCompression or GzipCompression; "": none
	Timeout        time.Duration      // of one request with its repetitions; 0: 10 s

	roots, cert, key string // files that variables name, see FromEnv
}

// A Config configures a Receiver.
type Config struct {
	Name      string // of the receiver, for messages. Required.
	Target           // of all signals. Endpoint is required, unless PerSignal has all.
	PerSignal map[Signal]Target
	Signals   []Signal // that are sent; none: all
	Standard  bool     // it is the receiver that the standard variables are about, see FromEnv
	Arguments bool     // send the redacted arguments too; the conventions make them opt-in
	Version   string   // of this program
}

// A target is a valid Target.
type target struct {
	name        string // of the receiver
	signal      Signal
	grpc        bool
	url         url.URL                  // of gRPC without a path
	headers     map[string]string        // of the connection, by lower case names
	current     func() map[string]string // those of the time; nil: the same
	tls         func() *tls.Config       // of a new connection; nil without TLS
	compression string
	timeout     time.Duration
}

// signals returns the signals in the order of sending.
func (c *Config) signals() (list []Signal) {
	for _, s := range []Signal{Logs, Traces, Metrics} {
		if len(c.Signals) == 0 || slices.Contains(c.Signals, s) {
			list = append(list, s)
		}
	}
	return list
}

// targets returns the target of each signal in the order of sending, or all
// problems of the configuration.
func (c *Config) targets() (list []target, err error) {
	var problems []error
	if c.Name == "" {
		problems = append(problems, errors.New("name is empty: set it"))
	}
	for i, s := range c.Signals {
		switch {
		case s != Logs && s != Traces && s != Metrics:
			problems = append(problems, fmt.Errorf("signals[%d] is %q, want %q, %q or %q", i, s, Logs, Traces, Metrics))
		case slices.Contains(c.Signals[:i], s):
			problems = append(problems, fmt.Errorf("signals[%d] repeats %q", i, s))
		}
	}
	general := false // the general target is used, and checked once
	for _, s := range c.signals() {
		if own, ok := c.PerSignal[s]; ok {
			t, bad := own.check()
			for _, err := range bad {
				problems = append(problems, fmt.Errorf("%s: %w", s, err))
			}
			t.name, t.signal = c.Name, s
			list = append(list, t)
			continue
		}
		t, bad := c.Target.check()
		if !general {
			problems = append(problems, bad...)
		}
		general = true
		t.name, t.signal = c.Name, s
		if !t.grpc {
			t.url.Path = signalPath(t.url.Path, s)
		}
		list = append(list, t)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return list, nil
}

// signalPath returns the path of a signal below that of a general endpoint.
func signalPath(base string, s Signal) string {
	return strings.TrimSuffix(base, "/") + "/v1/" + string(s)
}

func (t *Target) check() (out target, problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch t.Protocol {
	case GRPC:
		out.grpc = true
	case "", HTTP:
	default:
		bad("protocol is %q, want %q or %q", t.Protocol, GRPC, HTTP)
	}
	switch t.Compression {
	case "", NoCompression:
		out.compression = NoCompression
	case GzipCompression:
		out.compression = GzipCompression
	default:
		bad("compression is %q, want %q or %q", t.Compression, NoCompression, GzipCompression)
	}
	if out.timeout = t.Timeout; t.Timeout < 0 {
		bad("timeout is negative")
	} else if t.Timeout == 0 {
		out.timeout = defaultTimeout
	}
	for name, value := range t.Headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name) || strings.HasPrefix(strings.ToLower(name), "grpc-"):
			bad("headers: %q cannot be a header's name", name)
		case !httpguts.ValidHeaderFieldValue(value):
			bad("headers: the value of %q has characters that a header cannot have", name)
		}
	}
	out.headers, out.current = lowerNames(t.Headers), t.CurrentHeaders
	if err := t.address(&out); err != nil {
		problems = append(problems, err)
	} else if len(out.headers) > 0 && out.tls == nil && !t.Insecure && !loopback(out.url.Hostname()) {
		bad("headers would be sent in clear: use https, or set insecure")
	}
	return out, problems
}

// lowerNames never returns nil: for that the library would read the environment's
// headers.
func lowerNames(headers map[string]string) map[string]string {
	lower := map[string]string{}
	for name, value := range headers {
		lower[strings.ToLower(name)] = value
	}
	return lower
}

// loopback reports whether a host is this one.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// address sets the URL and TLS of out.
func (t *Target) address(out *target) error {
	endpoint := t.Endpoint
	if endpoint == "" {
		return errors.New("endpoint is empty: set it to the receiver's URL, as in https://otel.example.com:4318")
	}
	if !strings.Contains(endpoint, "://") {
		if strings.Contains(endpoint, "@") {
			return errors.New("endpoint has a user name: give credentials as a header")
		}
		if !out.grpc {
			return fmt.Errorf("endpoint %q has no scheme: write https://%s", endpoint, endpoint)
		}
		if t.Insecure {
			endpoint = "http://" + endpoint
		} else {
			endpoint = "https://" + endpoint
		}
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		// The error repeats the URL, which may hold a password.
		return errors.New("endpoint is not a URL")
	case u.User != nil:
		return errors.New("endpoint has a user name: give credentials as a header")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("endpoint has the scheme %q, want http or https", u.Scheme)
	case u.Hostname() == "":
		return errors.New("endpoint has no host")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint has a query or a fragment, which cannot be sent")
	case out.grpc && u.Path != "" && u.Path != "/":
		return fmt.Errorf("endpoint has the path %q, which gRPC has not: remove it, or set protocol to %q", u.Path, HTTP)
	case u.Scheme == "https" && t.Insecure:
		return errors.New("endpoint has the scheme https, and insecure is set: change one")
	case u.Scheme == "http" && t.TLS != nil:
		return errors.New("endpoint has the scheme http, and TLS is configured: change one")
	}
	out.url = url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if out.grpc {
		if out.url.Path = ""; u.Port() == "" {
			out.url.Host = net.JoinHostPort(u.Hostname(), "4317")
		}
	}
	if u.Scheme == "https" {
		if out.tls = t.TLS; out.tls == nil {
			out.tls = func() *tls.Config { return &tls.Config{} }
		}
	}
	return nil
}
