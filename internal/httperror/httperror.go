// Package httperror removes secrets from errors of package http.
package httperror

import (
	"errors"
	"net"
	"net/textproto"
	"net/url"
	"strings"
)

// Reason returns why a request failed, without its address and without text of the
// answer. The address may be a secret, and an answer may repeat what was sent: package
// http quotes what it cannot read. The result is what errors.Is found in err.
func Reason(err error) error {
	for e := (*url.Error)(nil); errors.As(err, &e); {
		err = e.Err
	}
	text := err.Error()
	switch quoted := strings.IndexAny(text, "\"'`"); {
	case errors.As(err, new(net.Error)): // of this machine, such as what an address is refused for
		return err
	case errors.As(err, new(textproto.ProtocolError)):
		text = "the answer has a malformed header"
	case quoted >= 0:
		text = strings.TrimRight(text[:quoted], " :=") + " (in the answer, which is left out)"
	default:
		return err
	}
	return reason{text, err}
}

type reason struct {
	text string
	err  error
}

func (r reason) Error() string { return r.text }
func (r reason) Unwrap() error { return r.err }
