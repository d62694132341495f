package alert

import (
	"strings"

	"auditproxy/mcpproxy/risk/environment"
	"auditproxy/redact/lex"
)

// loaded reports whether a variable may be one that decides what later programs
// run: also if its name is redacted.
func loaded(name string) bool {
	name, _, _ = strings.Cut(name, "=")
	return environment.Loaded(name) || strings.Contains(name, lex.RedactedMark)
}
