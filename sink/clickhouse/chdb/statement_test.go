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
	if st, err := parse(ended{}, "SELECT 1", false); err == nil || !strings.Contains(err.Error(), "the statement was ended") {
		t.Errorf("parse: %+v, %v", st, err)
	}
}
