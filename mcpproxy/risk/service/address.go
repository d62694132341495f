package service

import (
	"net/url"
	"strings"

	"auditproxy/mcpproxy/risk/detector"
)

// AddressDoes judges an address that a browser opens: one that is code, or a page in which
// there is some, and pages of the browser itself that show passwords. Browsers ignore what
// is left out here (WHATWG URL).
func AddressDoes(address string) (d detector.Set) {
	const longest = 64 // of what is before the part that matters
	if !mayBeCode(address[:min(len(address), longest)]) {
		return 0
	}
	address = strings.TrimLeft(address, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
	if strings.ContainsAny(address, "\t\r\n") {
		address = breaks.Replace(address)
	}
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "view-source":
		return AddressDoes(rest)
	case "javascript", "vbscript":
		return detector.Opaque | PageDoes(unescaped(rest))
	case "data":
		kind, content, _ := strings.Cut(rest, ",")
		kind = strings.ToLower(kind)
		if !strings.Contains(kind, "html") && !strings.Contains(kind, "svg") && !strings.Contains(kind, "xml") && !strings.Contains(kind, "script") {
			return 0
		}
		if strings.Contains(kind, "base64") {
			return detector.DecodedExec
		}
		content = unescaped(content)
		if lower := strings.ToLower(content); strings.Contains(lower, "<script") || strings.Contains(lower, "javascript:") || strings.Contains(lower, "onload") ||
			strings.Contains(lower, "onerror") {
			return detector.Opaque | PageDoes(content)
		}
	case "chrome", "edge", "brave", "vivaldi", "opera", "about":
		if lower := strings.ToLower(rest); strings.Contains(lower, "password") || strings.Contains(lower, "logins") {
			return detector.CredentialRead
		}
	}
	return d
}

var breaks = strings.NewReplacer("\t", "", "\r", "", "\n", "")

// mayBeCode reports whether the start of an address has a scheme that AddressDoes judges:
// nearly all have another.
func mayBeCode(start string) bool {
	for i := range len(start) {
		switch c := start[i]; {
		case c <= ' ':
			continue
		case strings.IndexByte("jJvVdDcCeEbBoOaA", c) < 0:
			return false
		}
		return strings.IndexByte(start, ':') > 0
	}
	return false
}

func unescaped(text string) string {
	if out, err := url.PathUnescape(text); err == nil {
		return out
	}
	return text
}
