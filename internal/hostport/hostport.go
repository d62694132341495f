// Package hostport tells an address of a host and a port from anything else.
package hostport

import (
	"net"
	"strings"
)

// Is reports whether addr is a host and a port, of which the port may be a service's
// name, and nothing else: parameters or a login in it may be secrets, which the next
// attempt to connect would log.
func Is(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && host != "" && port != "" && !strings.ContainsFunc(host, isOther) && !strings.ContainsFunc(port, isOther)
}

// isOther reports whether no name of a host or a service has c. Those of IPv6 have ":"
// and, before a zone, "%".
func isOther(c rune) bool {
	return c < 0x80 && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && !strings.ContainsRune("-._:%", c)
}
