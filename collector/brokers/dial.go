package brokers

import (
	"context"
	"crypto/tls"
	"net"
)

// A Dial connects to host:port.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// DialSecure returns dial with TLS as it is configured at the time; nil: plain text. The
// client would take the configuration of its start.
func DialSecure(dial Dial, config func() *tls.Config) Dial {
	if config == nil {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := config().Clone()
		if c.ServerName == "" {
			c.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Client(conn, c)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return secure, nil
	}
}

// DialUntil returns a Dial whose connections are closed when until ends;
// later dials fail. It serves callers that cannot be cancelled: the consumer
// group joins over its own connection, and the answer may take as long as the
// slowest member.
func DialUntil(until context.Context) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(until, cancel)()
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{conn, context.AfterFunc(until, func() { conn.Close() })}, nil
	}
}

// A cutConn is a connection that another goroutine may close.
type cutConn struct {
	net.Conn
	forget func() bool // releases the connection from until
}

func (c *cutConn) Close() error {
	c.forget()
	return c.Conn.Close()
}
