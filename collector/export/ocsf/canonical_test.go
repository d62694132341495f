package ocsf

import (
	"bytes"
	"testing"

	"github.com/gowebpki/jcs"

	"auditproxy/schemas/jsontext"
)

// canonicalCases are texts, and whether they are simple.
var canonicalCases = []struct {
	text   string
	simple bool
}{
	{`{}`, true},
	{`{"b":1,"a":2}`, true},
	{`{"b":{"d":[],"c":[{"z":1,"y":2},3]},"a":"x","ab":"\"\\\b\f\n\r\t"}`, true},
	{` { "b" : [ 1 , 2 ] , "a" : { } , "c" : [ ] } `, true},
	{`{"a b":1,"a":2,"a!":3}`, true},
	{`{"a":"ä\u007f"}`, false},
	{`{"a":"ä🦀 "}`, true},
	{`{"a":0,"b":-1,"c":123456789012345,"d":40.873,"e":-0.00001,"f":999999999999.999,"g":0.5}`, true},
	{`{"a":0.000001}`, false},
	{`{"a":-0}`, false},
	{`{"a":-0.0}`, false},
	{`{"a":1.0}`, false},
	{`{"a":1.50}`, false},
	{`{"a":0.0000001}`, false},
	{`{"a":1e3}`, false},
	{`{"a":1.5E3}`, false},
	{`{"a":1234567890123456}`, false},
	{`{"a":9007199254740993}`, false},
	{`{"a":1e999}`, false},
	{`{"ä":1,"b":2}`, false},
	{`{"\u0061":1}`, false},
	{`{"a":"\/"}`, false},
	{`{"a":"\ud800"}`, false},
	{`{"a":1,"a":2}`, false},
	{`{"a":1,"b":{"c":2,"d":3,"c":4}}`, false},
	{`{"c":[true,false,null],"b":null,"a":true}`, true},
}

// TestCanonical compares the simple form with that of the library.
func TestCanonical(t *testing.T) {
	var c canonical
	for _, tt := range canonicalCases {
		if !jsontext.Valid([]byte(tt.text)) {
			t.Fatalf("%s is not JSON", tt.text)
		}
		got, ok := c.transform([]byte(tt.text))
		if ok != tt.simple {
			t.Errorf("%s: simple = %v", tt.text, ok)
		}
		want, err := jcs.Transform([]byte(tt.text))
		if ok && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("%s is %s, want %s, %v", tt.text, got, want, err)
		}
	}
}

// FuzzCanonical compares the two for any JSON.
func FuzzCanonical(f *testing.F) {
	for _, tt := range canonicalCases {
		f.Add([]byte(tt.text))
	}
	var c canonical
	f.Fuzz(func(t *testing.T, text []byte) {
		if !jsontext.Valid(text) {
			return
		}
		if text = bytes.TrimSpace(text); text[0] != '{' {
			return
		}
		got, ok := c.transform(text)
		if !ok {
			return
		}
		if want, err := jcs.Transform(text); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is %s, want %s, %v", text, got, want, err)
		}
	})
}
