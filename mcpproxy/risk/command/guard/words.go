package guard

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
)

// verb returns operand n.
func verb(args []shell.Field, n int) string {
	for _, a := range args {
		if len(a.Text) > 0 && a.Text[0] == '-' {
			continue
		}
		if n--; n < 0 {
			return a.Text
		}
	}
	return ""
}

func hasAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
