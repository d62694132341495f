package redact_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"auditproxy/redact"
)

// key is the HMAC key of the tests; the golden files depend on it.
var key = bytes.Repeat([]byte{7}, 32)

func newRedactor(t testing.TB, c redact.Config) *redact.Redactor {
	t.Helper()
	if c.Key == nil {
		c.Key = key
	}
	r, err := redact.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func BenchmarkArgs(b *testing.B) {
	for _, bb := range []struct{ name, args string }{
		{"send_keys", `{"keys":"ls -la","pane_id":"%1"}`},
		{"clear", `{"pane_id":"%1","start":-100,"session_name":"build"}`},
		{"text", `{"format_string":"#{pane_id} of the window named build"}`},
		{"batch", `{"operations":[{"tool":"send_keys","arguments":{"keys":"x"}},{"tool":"pipe_pane","arguments":{"pane_id":"%1","output_path":"/tmp/x"}}]}`},
		{"secret16MiB", `{"content":"` + strings.Repeat("The quick brown fox. ", 16<<20/21) + `"}`},
		{"clear16MiB", `{"note":"` + strings.Repeat("The quick brown fox. ", 16<<20/21) + `"}`},
		{"keys1e5", `{` + strings.Repeat(`"abcdefgh":1,`, 1e5) + `"x":1}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := newRedactor(b, redact.Config{})
			raw, out := []byte(bb.args), make([]byte, 0, 256<<10)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				out, _ = r.AppendArgs(out[:0], raw)
			}
		})
	}
}

// ordinaryTexts measure calls of several words, scripts and prose.
var ordinaryTexts = []struct{ name, text string }{
	{"format", "#{pane_id} of the window named build"},
	{"words", "the tests of package collector fail on main"},
	{"path", "/srv/projects/web/src/components/Header.tsx"},
	{"command", "git commit -m 'Add a test for it' && go test ./..."},
	{"script2KiB", strings.Repeat(script, 2<<10/len(script)+1)[:2<<10]},
	{"prose4KiB", strings.Repeat(prose, 4<<10/len(prose)+1)[:4<<10]},
}

const (
	script = `#!/bin/sh
set -eu
cd "$(dirname "$0")/.."
for f in *.txt; do
	if [ -f "$f" ]; then
		sort -u "$f" > "out/${f%.txt}.lst"
	fi
done
go build -o bin/server ./cmd/server
make -j4 all || exit 1
tar czf "dist/app-$VERSION.tar.gz" bin docs
git tag -a "v$VERSION" -m "Release $VERSION"
docker build --tag app:latest .
echo "built in ${SECONDS}s"
`
	prose = `The window that holds the editor is in the second row. When a build
fails, look at the last lines of its pane first; the cause is there more often
than not. A session goes on after its client is gone, so nothing is lost if a
connection breaks (see "Detaching"). Two panes can share one history, but each
has its own size: the smaller one decides what both of them show.
`
)

// BenchmarkOrdinary redacts texts without secrets, whole.
func BenchmarkOrdinary(b *testing.B) {
	for _, bb := range ordinaryTexts {
		b.Run(bb.name, func(b *testing.B) {
			r := newRedactor(b, redact.Config{})
			text, out := []byte(bb.text), make([]byte, 0, 8<<10)
			b.ReportAllocs()
			for b.Loop() {
				out = r.AppendText(out[:0], text)
			}
		})
	}
}

// BenchmarkHostile redacts 64 KiB of text that makes the redactor scan around.
func BenchmarkHostile(b *testing.B) {
	for _, unit := range []string{"key", "ghp_abc1", "telegram=", "sk-", "curl -u ", "eyJaaaaaaaa.ey", "AKIA", "password ", "password \"", "sk", "curl -u ' ", "token=\"\\", "nmcli password 'a' ", "password%3Dname=password ",
		"name: \"a,\\\\isql ", "token=`API key: ", "tokens:\n - Fernet('", "fill('token= ", "(password)VALUES('",
		"out=put \"tokensa\\bmaide:n='", "token=[}-a'", "pwd=show?[1]: \"", "PASSWORD=a'a, ", "fill(\\'\"token= ", "LOGIN pw?=sh(url -u w?n==\\'\\\":a key: a\n"} {
		b.Run(unit, func(b *testing.B) {
			r := newRedactor(b, redact.Config{})
			raw, out := fmt.Appendf(nil, `{"a":%q}`, strings.Repeat(unit, 64<<10/len(unit))), make([]byte, 0, 256<<10)
			for b.Loop() {
				out, _ = r.AppendArgs(out[:0], raw)
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	r := newRedactor(b, redact.Config{})
	text, out := []byte("capture_pane"), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		out = r.AppendText(out[:0], text)
	}
}
