package cmd

import (
	"regexp"
	"strings"
	"testing"
)

// TestRedactionDocument checks that docs/redaction.md has each section of
// redact/names/names.txt, and no other.
func TestRedactionDocument(t *testing.T) {
	_, table, _ := strings.Cut(readFile(t, "../docs/redaction.md"), "<!-- sections of names.txt -->")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = true
	}
	sections := regexp.MustCompile(`(?m)^\[([a-z]+)\]$`).FindAllStringSubmatch(readFile(t, "../redact/names/names.txt"), -1)
	if len(sections) == 0 {
		t.Fatal("found no sections in redact/names/names.txt")
	}
	for _, s := range sections {
		if !documented[s[1]] {
			t.Errorf("docs/redaction.md has no row for section %q of redact/names/names.txt", s[1])
		}
		delete(documented, s[1])
	}
	for name := range documented {
		t.Errorf("docs/redaction.md has section %q, which redact/names/names.txt does not have", name)
	}
}
