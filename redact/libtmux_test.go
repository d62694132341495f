package redact_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"testing"

	"auditproxy/redact"
	"auditproxy/schemas/jsontext"
)

// A vector is one call's arguments and their summary in libtmux-mcp's own audit
// log.
type vector struct {
	name                string
	arguments, expected []byte
}

// vectors reads testdata/libtmux_args.jsonl, made by libtmux-mcp's code.
// It is read byte by byte: some lines are JSON only to Python.
func vectors(t testing.TB) []vector {
	f, err := os.Open("testdata/libtmux_args.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	form := regexp.MustCompile(`^{"tool":.*?,"class":"([a-z:_]*)","arguments":(.*),"expected":(.*)}$`)
	for lines.Scan() {
		m := form.FindSubmatch(bytes.Clone(lines.Bytes()))
		if m == nil {
			t.Fatalf("line %d is no vector: %.80s", len(all)+1, lines.Bytes())
		}
		all = append(all, vector{fmt.Sprintf("%d %s", len(all)+1, m[1]), m[2], m[3]})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

var stringLiteral = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// requote writes every string of a JSON text as records do, Python having
// escaped all but ASCII.
func requote(text []byte) string {
	return string(stringLiteral.ReplaceAllFunc(text, func(lit []byte) []byte {
		return jsontext.AppendQuote(nil, string(jsontext.AppendUnquote(nil, lit)))
	}))
}

func TestLibtmuxVectors(t *testing.T) {
	r, err := redact.New(redact.Config{Profile: redact.Libtmux})
	if err != nil {
		t.Fatal(err)
	}
	all := vectors(t)
	if len(all) != 408 {
		t.Errorf("%d vectors, want 408", len(all))
	}
	for _, v := range all {
		t.Run(v.name, func(t *testing.T) {
			got, flags := r.AppendArgs(nil, v.arguments)
			if want := requote(v.expected); string(got) != want {
				t.Errorf("AppendArgs(%.300s)\n got %.600s\nwant %.600s", v.arguments, got, want)
			}
			if flags&(redact.Cut|redact.Failed) != 0 {
				t.Errorf("flags = %b", flags)
			}
		})
	}
}
