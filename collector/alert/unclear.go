package alert

import (
	"slices"
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

// unclear reports whether a record has only a part of an argument, or of a value
// in it: package redact made it a digest, cut it, or replaced some of its text.
func unclear(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, lex.RedactedMark) || strings.HasSuffix(v, "...<truncated>")
	case []any:
		return slices.ContainsFunc(v, unclear)
	case map[string]any:
		_, length := v["len"].(float64)
		if length || v["redacted"] == true {
			return true
		}
		for _, member := range v {
			if unclear(member) {
				return true
			}
		}
	}
	return false
}
