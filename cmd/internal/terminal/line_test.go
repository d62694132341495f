package terminal

import (
	"strings"
	"testing"
)

func TestLineFits(t *testing.T) {
	for _, tt := range []struct {
		limit int
		parts []string
		want  string
	}{
		{0, []string{"abc", "def"}, "abcdef"},
		{6, []string{"abc", "def"}, "abcdef"},
		{5, []string{"abc", "def", "ghi"}, "abcd…"},
		{3, []string{"abc", "def"}, "abc"},
		{4, []string{"你好吗"}, "你…"},
		{5, []string{"你好吗"}, "你好…"},
		{3, []string{"e\u0301e\u0301e\u0301"}, "e\u0301e\u0301e\u0301"},
		{4, []string{"a\x1bb"}, `a\x…`},
	} {
		l := Line{Limit: tt.limit}
		for _, p := range tt.parts {
			l.Put(Plain, p)
		}
		if got := strings.TrimSuffix(string(l.End()), "\n"); got != tt.want {
			t.Errorf("%q in %d cells is %q, want %q", tt.parts, tt.limit, got, tt.want)
		}
	}
}
