// Package crowd bounds the connections of a server whose clients need no login to connect.
package crowd

import (
	"net"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/net/netutil"
)

// Bound lets most connections into s, which is to serve the listener that it returns.
func Bound(s *http.Server, l net.Listener, most int) net.Listener {
	s.ConnState = (&crowd{most: most}).changed
	return netutil.LimitListener(l, most)
}

// A crowd closes the connection that has been idle longest when as many are open as
// are served. Otherwise anyone who can reach the port, also without access, could
// block all others with idle connections.
type crowd struct {
	most int

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
	if c.open < c.most || len(c.idle) == 0 || state == http.StateNew && len(c.idle) == 1 {
		return nil
	}
	oldest := c.idle[0]
	c.idle = c.idle[1:]
	return oldest
}
