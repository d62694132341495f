package review

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConns keeps hanging clients from using up the files that a collector in the
// same process needs.
const maxConns = 128

// A crowd makes room for the next client where there are as many connections as
// are served: it closes the one that has waited longest for a request. Otherwise
// who may see no page could keep everybody from it, with connections that are
// idle.
type crowd struct {
	mu   sync.Mutex // guards what follows
	open int
	idle []net.Conn // the longest idle first
}

// changed notes the state of a connection, as http.Server.ConnState.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	if idle := c.next(conn, state); idle != nil {
		idle.Close()
	}
}

// next notes the state and returns the connection to close, nil for none.
func (c *crowd) next(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = slices.DeleteFunc(c.idle, func(other net.Conn) bool { return other == conn })
	switch state {
	case http.StateNew:
		c.open++
		c.idle = append(c.idle, conn)
	case http.StateIdle:
		c.idle = append(c.idle, conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
	}
	// A client that was just let in is about to ask.
	if c.open < maxConns || len(c.idle) == 0 || state == http.StateNew && len(c.idle) == 1 {
		return nil
	}
	oldest := c.idle[0]
	c.idle = c.idle[1:]
	return oldest
}
