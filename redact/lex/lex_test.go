package lex_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"auditproxy/redact/lex"
)

// TestElementEnd: the end of a credential in an element is the end of one, or the first "</"
// before that, however long the text is.
func TestElementEnd(t *testing.T) {
	parts := []string{"a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "<", "/", "</b>", "\\", "\\\\ ", "\\\"", " ", "\"", "&", "[redacted len=1 hmac=0123456789abcdef]"}
	random := rand.New(rand.NewPCG(1, 2))
	ends := 0
	for range 100_000 {
		var text []byte
		for range random.IntN(24) {
			text = append(text, parts[random.IntN(len(parts))]...)
		}
		i := random.IntN(len(text) + 1)
		want := lex.CredentialEnd(text, i)
		if n := bytes.Index(text[i:want], []byte("</")); n >= 0 {
			want = i + n
			ends++
		}
		if got := lex.ElementEnd(text, i); got != want {
			t.Fatalf("ElementEnd(%q, %d) = %d, not %d", text, i, got, want)
		}
	}
	if ends < 1000 {
		t.Errorf("%d texts had an element that ends", ends)
	}
}
