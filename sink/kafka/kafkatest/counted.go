package kafkatest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A counter forwards connections and counts the requests in them.
type counter struct {
	listener net.Listener
	to       string // the broker
	produced atomic.Int64
	conns    atomic.Int64
	wait     sync.WaitGroup
}

// startCounter forwards to a broker at an address.
func startCounter(to string) (*counter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{listener: l, to: to}
	c.wait.Go(c.serve)
	return c, nil
}

func (c *counter) serve() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.conns.Add(1)
		c.wait.Go(func() {
			defer client.Close()
			broker, err := net.Dial("tcp", c.to)
			if err != nil {
				return
			}
			c.wait.Go(func() {
				io.Copy(client, broker) // ends with the broker or the client
				client.Close()
			})
			c.forward(broker, client)
			broker.Close()
		})
	}
}

// forward forwards requests: each is its length and its bytes, which begin with
// the kind of request; that of produce is 0.
func (c *counter) forward(to io.Writer, from io.Reader) {
	r := bufio.NewReader(from)
	for {
		head, err := r.Peek(6)
		if err != nil {
			return
		}
		if binary.BigEndian.Uint16(head[4:]) == 0 {
			c.produced.Add(1)
		}
		if _, err := io.CopyN(to, r, 4+int64(binary.BigEndian.Uint32(head))); err != nil {
			return
		}
	}
}

func (c *counter) stop() {
	c.listener.Close()
	c.wait.Wait()
}
