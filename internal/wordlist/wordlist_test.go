package wordlist_test

import (
	"fmt"
	"strings"
	"testing"

	"auditproxy/internal/wordlist"
)

func TestList(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("w", i))
	}
	table := wordlist.New("a an the", " is  was a ", "", strings.Join(many, " "), "für")
	for _, tt := range []struct {
		word string
		want int
	}{
		{"a", 1}, {"an", 1}, {"the", 1}, {"is", 2}, {"was", 2}, {"w0", 4}, {"w999", 4}, {"für", 5},
		{"", 0}, {"th", 0}, {"them", 0}, {"w1000", 0}, {"a an", 0}, {" ", 0}, {"A", 0}, {"f", 0}, {strings.Repeat("w", 300), 0},
	} {
		if got := table.List(tt.word); got != tt.want {
			t.Errorf("List(%q) = %d, want %d", tt.word, got, tt.want)
		}
	}
	if got := wordlist.New().List("a"); got != 0 {
		t.Errorf("List of no lists = %d, want 0", got)
	}
}

func TestHas(t *testing.T) {
	for _, tt := range []struct {
		list, word string
		want       bool
	}{
		{"get set unset", "get", true}, {"get set unset", "set", true}, {"get set unset", "unset", true}, {"unset set", "set", true},
		{"unset reset", "set", false}, {"getter", "get", false}, {"get", "get", true}, {"", "get", false}, {"get set", "", false},
		{"get  set", "", false}, {"get set", "get set", false}, {"get set", " ", false}, {"aa a", "a", true}, {"aaa", "aa", false},
	} {
		if got := wordlist.Has(tt.list, tt.word); got != tt.want {
			t.Errorf("Has(%q, %q) = %t", tt.list, tt.word, got)
		}
	}
}
