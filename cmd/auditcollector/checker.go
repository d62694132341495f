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

// apart finds a directory among the sessions of a spool: proxies and collectors take all
// that is there for sessions.
func (c *checker) apart(key, dir string, spools []string) {
	for _, spool := range spools {
		sessions := filepath.Join(spool, "sessions")
		below, err := filepath.Rel(withoutLinks(sessions), withoutLinks(dir))
		if dir != "" && err == nil && filepath.IsLocal(below) {
			c.Problem(key, "%q is among the sessions of the spool %q: choose another directory", dir, spool)
		}
	}
}

// withoutLinks follows the links in the part of a path that exists.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(withoutLinks(parent), filepath.Base(path))
	}
	return path
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
