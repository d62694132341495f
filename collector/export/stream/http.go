package stream

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/internal/httperror"
	"auditproxy/internal/httptls"
	"auditproxy/internal/wait"

	"golang.org/x/net/http/httpguts"
)

// The bodies of a request.
const (
	NDJSON = "ndjson" // a line for each event
	Array  = "array"  // a JSON array
)

// An HTTP is an address that takes batches of events with POST. It has taken them
// when it answers with a status of 2xx.
type HTTP struct {
	URL         func() string      // http or https, at the time of a request; a secret. Required.
	Header      func() http.Header // more headers at the time of a request, secrets; nil: none
	Body        string             // NDJSON or Array. Zero: NDJSON
	Gzip        bool               // compress the body
	TLS         func() *tls.Config // of a new connection; nil: the host's authorities
	BatchBytes  int                // most bytes of a body before compression; a longer event is sent alone. Zero: 1 MiB
	BatchEvents int                // most events of a body. Zero: 1000
	Timeout     time.Duration      // of a request. Zero: 30 s
}

const (
	maxRetryAfter = 10 * time.Minute // a receiver cannot ask to be left alone for longer
	maxAnswer     = 64 << 10         // bytes of an answer that are read
)

// NewHTTP returns a Writer that posts to an address, through the proxy that the
// environment names for it.
func NewHTTP(c Config, h HTTP) (*Writer, error) {
	problems := c.problems()
	if h.Header == nil {
		h.Header = func() http.Header { return nil }
	}
	header := h.Header()
	if err := checkAddress(h.URL(), header); err != nil {
		problems = append(problems, err)
	}
	for name, values := range header {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			problems = append(problems, fmt.Errorf("headers: %q cannot be a header's name", name))
		case slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }):
			problems = append(problems, fmt.Errorf("headers: the value of %q has characters that a header cannot have", name))
		}
	}
	switch h.Body {
	case "":
		h.Body = NDJSON
	case NDJSON, Array:
	default:
		problems = append(problems, fmt.Errorf("body is %q, want %s or %s", h.Body, NDJSON, Array))
	}
	if h.BatchBytes < 0 || h.BatchEvents < 0 || h.Timeout < 0 {
		problems = append(problems, errors.New("the size and the number of events of a batch, and the timeout, cannot be negative"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring a stream by HTTP: %w", err)
	}
	if h.BatchBytes == 0 {
		h.BatchBytes = 1 << 20
	}
	if h.BatchEvents == 0 {
		h.BatchEvents = 1000
	}
	if h.Timeout == 0 {
		h.Timeout = 30 * time.Second
	}
	transport := httptls.New(&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSHandshakeTimeout: h.Timeout, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: maxAnswer,
	}, h.TLS)
	return newWriter(c, &address{
		config: h, transport: transport,
		client: &http.Client{
			Transport: transport,
			Timeout:   h.Timeout,
			// Another address is not the one that the administrator trusts with records.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}), nil
}

// checkAddress returns why nothing is sent to an address with headers. It does not quote it:
// it may have a password.
func checkAddress(address string, header http.Header) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want an address that begins with http:// or https://")
	case u.Scheme == "http" && (len(header) > 0 || u.User != nil) && !loopback(u.Hostname()):
		return errors.New("headers and passwords would be sent in clear: use https")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// address is the target of an HTTP.
type address struct {
	config    HTTP
	transport *httptls.Transport
	client    *http.Client
	notBefore time.Time // the receiver asked for no request until then
}

// limit leaves room for the brackets of an array.
func (a *address) limit() (bytes, events int) { return a.config.BatchBytes - 2, a.config.BatchEvents }

func (a *address) close() error {
	a.transport.CloseIdleConnections()
	return nil
}

func (a *address) write(ctx context.Context, b *batch) error {
	if d := time.Until(a.notBefore); d > 0 {
		if err := wait.For(ctx, d); err != nil {
			return fmt.Errorf("waiting as long as the receiver asked for: %w", err)
		}
	}
	req, err := a.request(ctx, b)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("sending: %w", httperror.Reason(err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // or the connection is not reused
	if resp.StatusCode/100 == 2 {
		return nil
	}
	a.notBefore = time.Now().Add(retryAfter(resp, time.Now()))
	return statusError(resp.StatusCode)
}

// request returns the request that sends b.
func (a *address) request(ctx context.Context, b *batch) (*http.Request, error) {
	body, contentType := b.text, "application/x-ndjson"
	if a.config.Body == Array {
		body, contentType = b.array(), "application/json"
	}
	if a.config.Gzip {
		var buf bytes.Buffer
		w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
		if err == nil {
			_, err = w.Write(body)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compressing: %w", err)
		}
		body = buf.Bytes()
	}
	to, header := a.config.URL(), a.config.Header() // others than at the start, perhaps
	if err := checkAddress(to, header); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("sending: the address cannot be asked")
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "auditcollector")
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if a.config.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	return req, nil
}

// array returns the events as a JSON array.
func (b *batch) array() []byte {
	list := make([]byte, 0, len(b.text)+2)
	list = append(list, '[')
	for i := range b.events {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, b.body(i)...)
	}
	return append(list, ']')
}

// statusError returns the error of a status that is not a success. The answer
// stays out of it, because it is untrusted and may repeat what was sent.
func statusError(status int) error {
	remedy := ""
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: status %d", receiver.ErrRefused, status)
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		remedy = ": check the headers that log in"
	case http.StatusForbidden:
		remedy = ": check the rights of this login"
	case http.StatusNotFound, http.StatusGone:
		remedy = ": check the path of the address"
	case http.StatusMethodNotAllowed:
		remedy = ": the address does not take POST, check its path"
	case http.StatusUnsupportedMediaType:
		remedy = ": try another body, or gzip off"
	}
	if status/100 == 3 {
		remedy = ": it redirects, which is not followed; set the address that it redirects to"
	}
	return fmt.Errorf("sending: status %d%s", status, remedy)
}

// retryAfter returns how long an answer asks to wait (RFC 9110, section 10.2.3).
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}
