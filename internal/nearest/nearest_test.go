package nearest_test

import (
	"strings"
	"testing"

	"auditproxy/internal/nearest"
)

func TestWord(t *testing.T) {
	long := strings.Repeat("a", 65)
	known := []string{"list", "show", "replay", "reply", "größe", "", long}
	for _, tt := range []struct {
		word string
		most int
		want string
	}{
		{"show", 0, "show"},
		{"SHOW", 0, "show"},
		{"shwo", 1, "show"},  // swapped
		{"sho", 1, "show"},   // a character is missing
		{"shoow", 1, "show"}, // one too many
		{"shaw", 1, "show"},  // another
		{"relpay", 1, "replay"},
		{"replxy", 2, "replay"}, // the first of two that are as near
		{"grösse", 2, "größe"},
		{"lits", 0, ""},
		{"foo", 1, ""},
		{"x", 1, ""}, // one change makes "" of it, which is no word to mean
		{long + "a", 3, ""},
		{"", 0, ""},
	} {
		if got := nearest.Word(tt.word, known, tt.most); got != tt.want {
			t.Errorf("Word(%q, at most %d) = %q, want %q", tt.word, tt.most, got, tt.want)
		}
	}
}
