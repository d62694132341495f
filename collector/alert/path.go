package alert

import (
	"path"
	"strings"

	"auditproxy/redact/lex"
)

// under reports whether file surely is in one of dirs. Its meaning must not
// depend on context: relative paths, and those with a leading ~ or with ..,
// are in none. Nor are those with a redacted part, which may have had "..".
// Links are invisible here.
func under(file string, dirs []string) bool {
	if !strings.HasPrefix(file, "/") || strings.Contains(file, lex.RedactedMark) {
		return false
	}
	for part := range strings.SplitSeq(file, "/") {
		if part == ".." {
			return false
		}
	}
	return reaches(file, dirs)
}

// reaches reports whether the clear parts of file lead to one of dirs, or into
// one: it is read as the system would, without the links.
func reaches(file string, dirs []string) bool {
	if !strings.HasPrefix(file, "/") {
		return false
	}
	file = path.Clean(file)
	for _, dir := range dirs {
		dir = path.Clean(dir)
		if file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}
