package trigger

import (
	"path"
	"testing"
)

// FuzzShortest checks that no text that a pattern matches is shorter.
func FuzzShortest(f *testing.F) {
	for _, pattern := range []string{"", "*", "r?", "[r]m", "[^a]m", "r[a-z]*", `\r\m`, "[]r]m", "[", "[^", "[]", `[\]]m`, `\`, "*?*", "é?", "[é]m"} {
		for _, text := range []string{"", "rm", "r", "]m", "mkfs", "ém"} {
			f.Add(pattern, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if ok, err := path.Match(pattern, text); ok && err == nil && len(text) < Shortest(pattern) {
			t.Errorf("%q matches %q, want %d bytes at least", pattern, text, Shortest(pattern))
		}
	})
}
