package redact

import (
	"encoding/hex"
	"testing"
)

// TestPanicLeavesShapes makes the redactor panic.
func TestPanicLeavesShapes(t *testing.T) {
	r, err := New(Config{Profile: Strict, Digest: SHA256})
	if err != nil {
		t.Fatal(err)
	}
	r.names = nil
	const want = `before{"keys":{"type":"str","redacted":true},"a":{"type":"dict","redacted":true}}`
	got, flags := r.AppendArgs([]byte("before"), []byte(`{"keys":"x","a":{"b":1}}`))
	if string(got) != want || flags != Failed {
		t.Errorf("AppendArgs = %s, flags %b, want %s", got, flags, want)
	}
	const worse = unknownArgs
	got, flags = r.AppendArgs(nil, []byte(`{"TOKEN=x":"y"}`))
	if string(got) != worse || flags != Failed {
		t.Errorf("AppendArgs = %s, flags %b, want %s", got, flags, worse)
	}
}

// TestPanicLeavesNoText does the same to texts other than arguments.
func TestPanicLeavesNoText(t *testing.T) {
	r, err := New(Config{Profile: Strict, Digest: SHA256})
	if err != nil {
		t.Fatal(err)
	}
	r.names = nil
	const want = "before[redacted len=7 sha256=a7778f98b8e1]"
	if got := r.AppendText([]byte("before"), []byte("TOKEN=x")); string(got) != want {
		t.Errorf("AppendText = %s, want %s", got, want)
	}
	if got := r.AppendMessage([]byte("before"), []byte("TOKEN=x")); string(got) != want {
		t.Errorf("AppendMessage = %s, want %s", got, want)
	}
	room := WholeRoom()
	if got, flags := r.AppendPartsIn([]byte("before"), []Part{{Name: []byte("TOKEN=x")}}, &room); string(got) != "before"+unknownArgs || flags != Failed {
		t.Errorf("AppendPartsIn = %s, flags %b", got, flags)
	}
}

// TestKeyIDIsNoDigest compares the id of a key, which session_start reports,
// with the digests of values that are easily guessed.
func TestKeyIDIsNoDigest(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	f := hmacForm(key)
	for _, d := range []Domain{Argument, ErrorText, CommandLine, Wire} {
		for _, value := range []string{"", "\x00", "\x01", "id"} {
			h := f.newHash(d)
			h.Write([]byte(value))
			if hex.EncodeToString(h.Sum(nil)[:8]) == keyID(key) {
				t.Errorf("the key's id is the digest of %q in domain %d", value, d)
			}
		}
	}
}
