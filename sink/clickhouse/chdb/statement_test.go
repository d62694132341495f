//go:build linux || darwin

package chdb

import (
	"strings"
	"testing"
)

// FuzzTokenize holds the tokens to the text: they stand in order, nothing but
// space is between them, and a string is one token however it is escaped.
func FuzzTokenize(f *testing.F) {
	f.Add("SELECT 'it\\'s', `a b`.c, file('/etc') FROM t SETTINGS x = 1 FORMAT JSON", "a'b\\")
	f.Add("'", "")
	f.Add("`\\", "`")
	f.Fuzz(func(t *testing.T, sql, value string) {
		end := 0
		for _, token := range tokenize(sql) {
			if gap := sql[end:token.at]; strings.Trim(gap, " \n") != "" || token.end <= token.at {
				t.Fatalf("%q is left out of %q before %+v", gap, sql, token)
			}
			end = token.end
		}
		if strings.Trim(sql[end:], " \n") != "" {
			t.Fatalf("%q is left out at the end of %q", sql[end:], sql)
		}
		if got := tokenize("a" + quote(value) + "b" + quoteName(value) + "c"); len(got) != 5 || got[3].text != value || !got[3].quoted {
			t.Fatalf("%q in quotes became %+v", value, got)
		}
	})
}

// An ended is a parser whose statements are ended before they have an answer, as those of
// a client that is gone. The engine has no error for that.
type ended struct{}

func (ended) classify(string) (classification, bool) {
	return classification{class: classRead, statements: 1}, true
}

func (ended) canonical(string) (string, error) { return "", nil }

func TestParseWhileEnded(t *testing.T) {
	if st, err := parse(ended{}, "SELECT 1", false, Reader); err == nil || !strings.Contains(err.Error(), "the statement was ended") {
		t.Errorf("parse: %+v, %v", st, err)
	}
}

// A spelled is a parser that counts the spellings that it is asked for.
type spelled struct{ n int }

func (*spelled) classify(string) (classification, bool) {
	return classification{class: classRead, statements: 1}, true
}

func (s *spelled) canonical(text string) (string, error) { s.n++; return text, nil }

// TestParseOfWriter: a SELECT without a FORMAT is run as it is, but only a writer's.
func TestParseOfWriter(t *testing.T) {
	for _, tt := range []struct {
		text  string
		asked bool // of a writer
	}{
		{"SELECT 1", false},
		{" \n\tselect formatDateTime(now(), 'x') -- a comment", false},
		{"SELECT 1 format CSV", true},
		{"SELECT 1 FORMAT/**/CSV", true},
		{"SELECT 1;", true},
		{"/* a comment */ SELECT 1", true},
		{"WITH 1 AS x SELECT x", true},
		{"SELECTED", true},
		{"SHOW TABLES", true},
	} {
		for role, asked := range map[Role]bool{Writer: tt.asked, Reader: true} {
			var p spelled
			st, err := parse(&p, tt.text, false, role)
			if err != nil || (p.n > 0) != asked || !asked && (st.sql != tt.text || st.kind != selects) {
				t.Errorf("%q of role %d: %+v, %v, spelled %d times, want that: %t", tt.text, role, st, err, p.n, asked)
			}
		}
	}
}
