package collector

import (
	"context"
	"net"
)

// A dialFunc connects to host:port.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialUntil returns a dialFunc whose connections are closed when until ends;
// later dials fail. It serves callers that cannot be cancelled: the consumer
// group joins over its own connection, and the answer may take as long as the
// slowest member.
func dialUntil(until context.Context) dialFunc {
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
