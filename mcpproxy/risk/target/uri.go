package target

import (
	"strings"
)

// CutFile cuts the scheme of a file URI, and that before it with which a browser shows its
// source.
func CutFile(s string) (rest string, ok bool) {
	const scheme, source = "file:", "view-source:"
	if len(s) > len(source) && s[len(source)-1] == ':' && strings.EqualFold(s[:len(source)], source) {
		if rest, ok := CutFile(s[len(source):]); ok {
			return rest, true
		}
	}
	if len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return s, false
	}
	return s[len(scheme):], true
}

// IsPath reports whether a value is a path where its name does not tell.
func IsPath(s string) bool {
	if _, ok := CutFile(s); ok {
		return true
	}
	return strings.IndexByte(s, '/') >= 0 && !strings.Contains(s, "://") && !strings.ContainsAny(s, " \t\r\n") || s == "~"
}

// fileURI returns the path of a URI (RFC 8089) behind its scheme.
func fileURI(rest string) string {
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	if host, ok := strings.CutPrefix(rest, "//"); ok {
		// Any host: those who ignore it read the local file.
		if i := strings.IndexAny(host, `/\`); i >= 0 {
			rest = host[i:]
		} else {
			rest = "/" + host
		}
	}
	return unescape(rest)
}

// unescape decodes percent-encoding once and keeps what is not valid.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi < 16 && lo < 16 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}
