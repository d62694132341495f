package clients

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"auditproxy/internal/lazyregexp"
	"auditproxy/redact"
)

// filledIn matches what the client expands: ${API_KEY}, ${input:token}.
var filledIn = lazyregexp.New(`\$\{[^}]*\}`)

// urlRefusal returns why a URL cannot become an argument of mcp-remote, or "".
// It quotes nothing of a URL that may hold a credential.
func urlRefusal(raw string) string {
	const visible = ", and every user of this machine can read it once it is an argument; use a header"
	filled := filledIn.ReplaceAllLiteralString(raw, "$")
	scheme, rest, ok := strings.Cut(filled, "://")
	if !ok && strings.HasPrefix(filled, "$") {
		rest, ok = filled, true // the client fills in scheme and host
		scheme = "https"
	}
	scheme = strings.ToLower(scheme)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, tail := rest[:end], rest[end:]
	switch {
	case !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(raw, " \t\r\n"):
		return "its URL is not an http:// or https:// URL"
	case strings.Contains(host, "@"):
		return "its URL holds a password or user name" + visible
	case strings.Contains(tail, "$") && filled != raw:
		return "the client fills in a part of its URL after the host" + visible
	case hasCredential(raw, tail):
		return "its URL holds a credential" + visible
	case scheme == "http" && !loopback(host):
		return "its URL is http:// to another machine, where a login would be readable on the way; use https://"
	}
	return ""
}

// hasCredential reports whether a URL, or its part after the host, contains
// something that a record of a call would not show.
func hasCredential(raw, tail string) bool {
	red, err := redact.New(redact.Config{Digest: redact.SHA256})
	if err != nil {
		return true
	}
	if string(red.AppendMessage(nil, []byte(raw))) != raw {
		return true
	}
	tail, fragment, _ := strings.Cut(tail, "#")
	_, query, _ := strings.Cut(tail, "?")
	_, fragmentQuery, _ := strings.Cut(fragment, "?")
	for _, part := range []string{query, fragment, fragmentQuery} {
		values, err := url.ParseQuery(part)
		if err != nil {
			return true
		}
		for name, texts := range values {
			for _, v := range texts {
				if v == "" {
					continue
				}
				if slices.Contains(urlSecrets, strings.ToLower(name)) || string(red.AppendNamed(nil, []byte(name), []byte(v))) != v {
					return true
				}
			}
		}
	}
	return false
}

// urlSecrets are parameters that hold credentials in URLs and nowhere else:
// function keys, signed links, API keys.
var urlSecrets = []string{"key", "k", "code", "sig", "signature"}

// loopback reports whether host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost")
}
