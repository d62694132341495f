package redact

import "testing"

// TestR11PanicLeavesShapes takes from the redactor what it needs.
func TestR11PanicLeavesShapes(t *testing.T) {
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
	const worse = `{"[arguments]":{"type":"unknown","redacted":true}}`
	got, flags = r.AppendArgs(nil, []byte(`{"TOKEN=x":"y"}`))
	if string(got) != worse || flags != Failed {
		t.Errorf("AppendArgs = %s, flags %b, want %s", got, flags, worse)
	}
}
