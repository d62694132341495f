package service

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// isPageCode reports whether an argument is code that a page runs.
func isPageCode(name string) bool {
	switch name {
	case "function", "expression", "script", "code", "javascript", "js", "pagefunction", "page_function":
		return true
	}
	return false
}

// PageDoes judges code that runs in a page, with the rights of who is logged in there:
// whether it reads the page's cookies, and whether it sends what the page keeps.
func PageDoes(code string) (d detector.Set) {
	for rest := code; ; {
		var ok bool
		if _, rest, ok = strings.Cut(rest, "cookie"); !ok {
			break
		}
		after := strings.TrimLeft(strings.TrimLeft(rest, `'"]`), " ")
		if strings.HasPrefix(rest, "Store") || !strings.HasPrefix(after, "=") || strings.HasPrefix(after, "==") {
			d |= detector.CredentialRead // it does not only set one
		}
	}
	if !strings.Contains(code, "document") && !strings.Contains(code, "cookieStore") {
		d = 0
	}
	if (d != 0 || shell.HasAny(code, "localStorage", "sessionStorage", "indexedDB")) &&
		shell.HasAny(code, "fetch(", "XMLHttpRequest", "sendBeacon", "WebSocket", "new Image", ".src", "location=", "location =", "location.href", ".submit(") {
		d |= detector.Exfiltration
	}
	return d
}
