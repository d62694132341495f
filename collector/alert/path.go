package alert

import (
	"path"
	"strings"
)

// under reports whether file surely lies in one of dirs. What it names must not
// depend on anything: a relative path, one that begins with ~ and one with ..
// in it lie nowhere. Links cannot be seen from here.
func under(file string, dirs []string) bool {
	if !strings.HasPrefix(file, "/") {
		return false
	}
	for part := range strings.SplitSeq(file, "/") {
		if part == ".." {
			return false
		}
	}
	return reaches(file, dirs)
}

// reaches reports whether file may lie in one of dirs, or be one: it is read as
// the system would, without the links.
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
