package main

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// A reviewConfig is the review page's part of the configuration, checked.
type reviewConfig struct {
	listen            string
	url               *url.URL // nil: as listen says
	certFile, keyFile string
	trustedHeader     string
	trustedProxies    []netip.Prefix
	tenant, user      string
	approvals         []string // directories
}

// off reports whether the page is disabled.
func (r reviewConfig) off() bool { return r.listen == "off" || r.listen == "" }

func (c *checker) review() reviewConfig {
	r := reviewConfig{
		listen:        c.String("review.listen"),
		certFile:      c.String("review.tls.cert_file"),
		keyFile:       c.String("review.tls.key_file"),
		trustedHeader: c.String("review.trusted_header"),
		tenant:        c.String("review.tenant"),
		user:          c.String("review.user"),
		approvals:     c.directories("review.approvals"),
	}
	c.reviewApprovals(r)
	if r.off() {
		return r
	}
	path, unix := strings.CutPrefix(r.listen, "unix:")
	c.reviewListen(r, path, unix)
	c.reviewURL(&r, unix)
	c.reviewProxies(&r, unix)
	c.Password("review.password")
	local := len(c.List("clickhouse.addr")) == 0
	if r.tenant != "" && local {
		c.Problem("review.tenant", "needs clickhouse.addr: the local engine has no users to hold to a tenant")
	}
	if r.user != "" && local {
		c.Problem("review.user", "would not be used: there is no clickhouse.addr")
	}
	if r.user == "" && c.Secret("review.password").Reveal()+c.String("review.password_file") != "" {
		c.Problem("review.user", "is not set, so review.password is not used")
	}
	return r
}

func (c *checker) reviewApprovals(r reviewConfig) {
	const key = "review.approvals"
	if r.off() && len(r.approvals) > 0 {
		c.Problem(key, "would not be used: review.listen is off")
	}
	for i, dir := range r.approvals {
		r.approvals[i] = filepath.Clean(dir)
		if slices.Contains(r.approvals[:i], r.approvals[i]) {
			c.Problem(key, "%q is listed twice", dir)
		}
	}
}

func (c *checker) reviewListen(r reviewConfig, path string, unix bool) {
	const key = "review.listen"
	if (r.certFile == "") != (r.keyFile == "") {
		c.Problem("review.tls.cert_file", "goes with review.tls.key_file: want both or none")
	}
	_, _, err := net.SplitHostPort(r.listen)
	switch {
	case unix && !filepath.IsAbs(path):
		c.Problem(key, "%q: want unix: and an absolute path", r.listen)
	case unix:
	case err != nil:
		c.Problem(key, "%q: want host:port, unix: and a path, or off", r.listen)
	case r.certFile == "" && !loopback(r.listen):
		c.Problem(key, "%q can be reached from other machines, and would be served unencrypted: set review.tls.cert_file and review.tls.key_file, or listen at 127.0.0.1", r.listen)
	}
}

func (c *checker) reviewURL(r *reviewConfig, unix bool) {
	const key = "review.url"
	text := c.String(key)
	if text == "" {
		if unix {
			c.Problem(key, "must say where browsers find the page: review.listen is a socket")
		}
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || *u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		c.Problem(key, "%q: want http or https, a host and nothing after it", text)
		return
	}
	if u.Scheme == "http" && (r.certFile != "" || !loopback(net.JoinHostPort(u.Hostname(), "0"))) {
		c.Problem(key, "%q: want https, because http is for pages without TLS on this machine", text)
	}
	r.url = u
}

func (c *checker) reviewProxies(r *reviewConfig, unix bool) {
	const key = "review.trusted_proxies"
	list := c.List(key)
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var ip netip.Addr
			if ip, err = netip.ParseAddr(text); err == nil {
				p, err = ip.Prefix(ip.BitLen())
			}
		}
		if err != nil {
			c.Problem(key, "%q: want an address such as 10.0.0.7 or a network such as 10.0.0.0/24", text)
		}
		r.trustedProxies = append(r.trustedProxies, p)
	}
	switch {
	case r.trustedHeader == "" && len(list) > 0:
		c.Problem(key, "would not be used: review.trusted_header is not set")
	case r.trustedHeader != "" && len(list) == 0 && !unix:
		c.Problem("review.trusted_header", "would not be used: name the proxy in review.trusted_proxies, or listen at a Unix socket")
	case r.trustedHeader != "" && !httpguts.ValidHeaderFieldName(r.trustedHeader):
		c.Problem("review.trusted_header", "%q: want the name of a header", r.trustedHeader)
	}
}
