package target

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Directory returns the components of an absolute path, nil for anything else.
func Directory(s string) []string {
	if !strings.HasPrefix(s, "/") {
		return nil
	}
	clean, _, _ := join([]string{}, components(nil, s))
	return clean
}

// Own returns an absolute path of this program's own files.
func Own(own string) []string {
	clean, _, _ := join(nil, components(nil, own))
	return system(folded(nil, clean))
}

// isVariable reports whether a shell would replace a component.
func isVariable(part string) bool {
	if strings.IndexByte(part, '$') < 0 && strings.IndexByte(part, '`') < 0 && strings.IndexByte(part, '%') < 0 {
		return false
	}
	if strings.Contains(part, "${") || strings.Contains(part, "$(") || strings.IndexByte(part, '`') >= 0 {
		return true
	}
	if name, ok := strings.CutPrefix(part, "%"); ok && strings.HasSuffix(name, "%") && len(name) > 1 {
		return true
	}
	name, ok := strings.CutPrefix(part, "$")
	return ok && name != "" && strings.IndexFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
}

// components appends the parts of a path between its slashes, at least one.
func components(parts []string, s string) []string {
	n := len(parts)
	for s != "" {
		part := s
		if i := strings.IndexByte(s, '/'); i >= 0 {
			part, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if len(parts) == n {
		parts = append(parts, ".")
	}
	return parts
}

// rootUps is how often a path with an unknown start must go up to be taken for
// one from the root.
const rootUps = 3

// join appends parts to clean and resolves dots as texts. ups is how often the
// parts leave it, popped that they leave a directory that they entered.
func join(clean, parts []string) (_ []string, ups int, popped bool) {
	entered := 0
	for _, part := range parts {
		switch {
		case part == ".":
		case part != "..":
			clean = append(clean, part)
			entered++
		default:
			if entered > 0 {
				popped = true
				entered--
			} else {
				ups++
			}
			if len(clean) > 0 {
				clean = clean[:len(clean)-1]
			}
		}
	}
	return clean, ups, popped
}

// folded appends the parts as file systems that ignore case compare them, and
// without the invisible characters that some of them ignore too. Others would
// tell more paths apart; a path that only such a system could confuse is judged
// like the one that it could be confused with.
func folded(out, parts []string) []string {
	for _, part := range parts {
		if part = fold(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func fold(part string) string {
	lower := true
	for i := range len(part) {
		c := part[i]
		lower = lower && !('A' <= c && c <= 'Z')
		if c >= utf8.RuneSelf {
			return strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Cf, r) {
					return -1
				}
				return unicode.ToLower(r)
			}, part)
		}
	}
	if lower {
		return part
	}
	return strings.ToLower(part)
}

// system undoes the aliases that macOS has for directories of the system.
func system(parts []string) []string {
	if hasPrefix(parts, []string{"system", "volumes", "data"}) {
		parts = parts[3:]
	}
	if len(parts) > 1 && parts[0] == "private" && (parts[1] == "etc" || parts[1] == "var" || parts[1] == "tmp") {
		parts = parts[1:]
	}
	return parts
}

func hasPrefix(parts, prefix []string) bool {
	if len(prefix) == 0 || len(parts) < len(prefix) {
		return false
	}
	for i := range prefix {
		if parts[i] != prefix[i] {
			return false
		}
	}
	return true
}

// matchPrefix is hasPrefix with patterns.
func matchPrefix(parts, patterns []string) bool {
	if len(patterns) == 0 || len(parts) < len(patterns) {
		return false
	}
	for i := range patterns {
		if ok, err := path.Match(patterns[i], parts[i]); !ok || err != nil {
			return false
		}
	}
	return true
}
