package main

import (
	"net"
	"path/filepath"

	"auditproxy/cmd/internal/cli"
)

// A checker finds problems in combinations of values that are valid one by one.
type checker struct{ cli.Checker }

func (c *checker) directories(key string) []string {
	list := c.List(key)
	for _, dir := range list {
		if !filepath.IsAbs(dir) {
			c.Problem(key, "%q: want an absolute path", dir)
		}
	}
	return list
}

// secrets finds a list of secrets that is given in two ways.
func (c *checker) secrets(key string) {
	if len(c.Secrets(key)) > 0 && c.String(key+"_file") != "" {
		c.Problem(key+"_file", "there is %s too: want one of them", key)
	}
}

// loopback reports whether only this machine reaches a host:port.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
