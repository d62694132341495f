package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/escape"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	maxAnswer  = 64 << 10 // bytes of an answer that are read for its meaning
	maxMessage = 300      // bytes of the receiver's text in an error
)

// An answer is what the receiver said. The library puts it into texts, whose parts
// the receiver chooses.
type answer struct {
	taken    bool   // it answered with success
	rejected int64  // of a partial success
	code     string // of a failure
	refused  bool   // the failure is about what was sent
	remedy   string
	message  string // the receiver's text
}

// verdict returns what came of a request to t whose upload ended with err.
func (a *answer) verdict(ctx context.Context, t *target, err error) error {
	host := url.URL{Scheme: t.url.Scheme, Host: t.url.Host} // a path may be a secret
	to := fmt.Sprintf("sending %s to %q at %s", t.signal, t.name, host.String())
	a.code, a.message = cut(t.withoutSecrets(a.code)), t.withoutSecrets(a.message)
	switch {
	case a.taken && a.rejected != 0:
		return fmt.Errorf("%s: it rejected %d of them%s: %w", to, a.rejected, a.said(), receiver.ErrRefused)
	case err == nil, a.taken && a.message != "":
		return nil // a partial success that rejects nothing is a warning
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", to, context.Canceled)
	case a.refused:
		return fmt.Errorf("%s: %s%s: %w", to, a.code, a.said(), receiver.ErrRefused)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer within %v%s: check that the receiver is up and not overloaded: %w", to, t.timeout, a.said(), context.DeadlineExceeded)
	case a.code != "":
		return fmt.Errorf("%s: %s%s: %s", to, a.code, a.said(), a.remedy)
	}
	return fmt.Errorf("%s: %s: check the endpoint, and that the receiver is up", to, cut(t.withoutSecrets(err.Error())))
}

// withoutSecrets returns a receiver's or the library's text without the values of headers
// and the path of the endpoint, which it may repeat: errors are logged and stored. Of a
// value such as "Bearer KEY" the key may be there alone.
func (t *target) withoutSecrets(s string) string {
	const shortest = 6 // shorter ones are words of the text too
	for _, value := range t.headers {
		_, key, _ := strings.Cut(value, " ")
		for _, secret := range []string{value, key} {
			if len(secret) >= shortest {
				s = strings.ReplaceAll(s, secret, "<secret>")
			}
		}
	}
	for _, path := range []string{t.url.Path, t.url.EscapedPath()} {
		if path = strings.TrimSuffix(path, signalPath("", t.signal)); len(path) >= shortest {
			s = strings.ReplaceAll(s, path, "/<secret>")
		}
	}
	return s
}

// said returns the receiver's text for an error, if it gave one.
func (a *answer) said() string {
	if a.message == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", cut(a.message))
}

func cut(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return escape.Text(s)
}

func grpcAnswer(reply any, err error) answer {
	if err == nil {
		p := reply.(*coltracepb.ExportTraceServiceResponse).GetPartialSuccess()
		return answer{taken: true, rejected: p.GetRejectedSpans(), message: p.GetErrorMessage()}
	}
	s := status.Convert(err)
	a := answer{code: s.Code().String(), message: s.Message()}
	switch s.Code() {
	case codes.InvalidArgument:
		a.refused = true
	case codes.ResourceExhausted:
		// gRPC's libraries use this code for a message that is too large, and receivers
		// for too many requests. Only the text differs.
		m := strings.ToLower(a.message)
		a.refused = strings.Contains(m, "larger than max") || strings.Contains(m, "exceeds max") || strings.Contains(m, "too large")
		a.remedy = "check the receiver's limits and quota"
	case codes.Unauthenticated, codes.PermissionDenied:
		a.remedy = "check the headers and certificates"
	case codes.Unimplemented, codes.NotFound:
		a.remedy = "check the endpoint and protocol, or remove the signal if the receiver does not take it"
	default:
		a.remedy = "check the endpoint, and that the receiver is up"
	}
	return a
}

// A watcher is a transport of HTTP that keeps what the receiver answered.
type watcher struct {
	http.RoundTripper
	answer *answer
}

// RoundTrip implements http.RoundTripper.
func (w watcher) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		if request.Context().Err() == nil { // else the answer before says why it was repeated
			*w.answer = answer{message: err.Error()}
		}
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
	*w.answer = httpAnswer(response, head)
	return response, nil
}

func httpAnswer(response *http.Response, head []byte) answer {
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	isProto := kind == "application/x-protobuf"
	if c := response.StatusCode; c >= 200 && c <= 299 {
		a := answer{taken: true}
		var reply coltracepb.ExportTraceServiceResponse
		switch {
		case isProto && proto.Unmarshal(head, &reply) == nil:
			a.rejected, a.message = reply.GetPartialSuccess().GetRejectedSpans(), reply.GetPartialSuccess().GetErrorMessage()
		case kind == "application/json":
			// Not as the specification says, but some answer so, and the library reads it.
			a.rejected, a.message = jsonAnswer(head)
		}
		return a
	}
	a := answer{code: response.Status, message: strings.TrimSpace(string(head))}
	if isProto {
		var s spb.Status
		a.message = ""
		if proto.Unmarshal(head, &s) == nil {
			a.message = s.GetMessage()
		}
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		a.refused = true
	case http.StatusUnauthorized, http.StatusForbidden:
		a.remedy = "check the headers and certificates"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		a.remedy = "check the endpoint and protocol, or remove the signal if the receiver does not take it"
	case http.StatusTooManyRequests:
		a.remedy = "check the receiver's limits and quota"
	default:
		a.remedy = "check the endpoint, and that the receiver is up"
		if response.StatusCode/100 == 3 {
			a.remedy = "redirects are not followed: set the endpoint to where it leads"
		}
	}
	return a
}

// jsonAnswer reads a partial success, in which each signal has its own name for the
// number.
func jsonAnswer(head []byte) (rejected int64, message string) {
	var reply struct {
		PartialSuccess struct {
			RejectedLogRecords, RejectedSpans, RejectedDataPoints json.Number
			ErrorMessage                                          string
		}
	}
	if json.Unmarshal(head, &reply) != nil {
		return 0, ""
	}
	p := &reply.PartialSuccess
	for _, n := range []json.Number{p.RejectedLogRecords, p.RejectedSpans, p.RejectedDataPoints} {
		if n, err := n.Int64(); err == nil && n != 0 {
			rejected = n
		}
	}
	return rejected, p.ErrorMessage
}
