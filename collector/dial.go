package collector

import (
	"context"
	"net"
)

// A dialFunc connects to host:port.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialUntil returns a dialFunc whose connections are cut when until ends; from
// then on there are no more. It is for who cannot be told to stop waiting: the
// consumer group asks to join over a connection of its own, and the answer may
// take as long as the slowest member.
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

// A cutConn is a connection that somebody else may close.
type cutConn struct {
	net.Conn
	forget func() bool // gives up the other's hold of the connection
}

func (c *cutConn) Close() error {
	c.forget()
	return c.Conn.Close()
}
