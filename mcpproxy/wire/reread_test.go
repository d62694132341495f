package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestReread has lines that only Kotlin or only Ruby reads.
func TestReread(t *testing.T) {
	const bare = `{jsonrpc:2.0,id:7,method:tools/call,params:{name:evil,arguments:{path:/etc/x}}}`
	for _, tt := range []struct {
		name, in string
		want     []string // of each message, its offsets and its tools; "junk" for Opaque
		args     string   // of the last message
	}{
		{"no quotes", bare, []string{`0-79 evil`}, `{"path":"/etc/x"}`},
		{"arguments without quotes are JSON", with(`{"name":"evil","arguments":{a:b c:1}}`), []string{"junk"}, ""},
		{"words and numbers", `{method:tools/call,params:{name:evil,arguments:{a:null,true:[true,01,1e9,-x,1e999]}}}`,
			[]string{"0-85 evil"}, `{"a":null,"true":[true,"01",1e9,"-x","1e999"]}`},
		{"a string beside them", `{method:tools/call,params:{"name":"e,}v\"",arguments:{"a":"//"}}}`, []string{`0-65 e,}v"`}, `{"a":"//"}`},
		{"prefix", "data: " + call, []string{"junk", "6-97 evil"}, `{"k":1}`},
		{"prefix that opens a string", `"` + bare, []string{"junk", "1-80 evil"}, `{"path":"/etc/x"}`},
		{"text behind it", bare + " x", []string{"junk"}, ""},
		{"comments", `/*"*/{"method"/**/:"tools/call","params":{"name":"evil"/*,"name":"safe"*/,"arguments":{"a":"/*"}}}//x`,
			[]string{"5-98 evil", "junk"}, `{"a":"/*"}`},
		{"a comment later in a batch", `[` + call + `,/*x*/` + call + `]`, []string{"1-92 evil", "junk", "98-189 evil"}, `{"k":1}`},
		{"a comment that does not end", `{"method":"tools/call",/*"params":{"name":"evil"}}`, []string{"junk"}, ""},
		{"no quotes and comments", `{method:tools/call,params:{"name":"evil"/**/}}`, []string{"junk"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(tt.in + "\n" + ping + "\n")
			told := newFeeder(Limit).feed(t, data)
			sameInPieces(t, data, told)
			var got []string
			var args string
			for _, s := range told[:len(told)-1] {
				got = append(got, "junk")
				if s.State != Opaque {
					got[len(got)-1] = strings.Fields(brief(s))[1] + " " + text([]byte(s.Name))
					args = s.Args
				}
			}
			if !slices.Equal(got, tt.want) || args != tt.args {
				t.Errorf("told %q %s, want %q %s", got, args, tt.want, tt.args)
			}
		})
	}
}

// TestNameIsNoString has names that Java and Kotlin make strings of.
func TestNameIsNoString(t *testing.T) {
	for name, want := range map[string]string{
		`5`: `"tools/call" 5;`, `true`: `"tools/call" true;`, `evil`: `"tools/call" evil;`, `null`: "", `{}`: "", `["evil"]`: "",
	} {
		in := with(`{"name":`+name+`}`) + "\n"
		told := newFeeder(Limit).feed(t, []byte(in))
		over := newFeeder(40).feed(t, []byte(in), 30) // oversize, in pieces
		if got := told[0]; got.Name != "" || got.Candidates != want {
			t.Errorf("%s: told %+v", name, got)
		}
		if got := over[len(over)-1]; got.State != Ended || got.Candidates != want {
			t.Errorf("%s: oversize, told %+v", name, got)
		}
	}
}

// TestRereadIsBounded reads long lines with many beginnings and no end.
func TestRereadIsBounded(t *testing.T) {
	for _, piece := range []string{"{method,", `{"method`, "{method:[a   ", "/*method", `method"/*`} {
		line := bytes.Repeat([]byte(piece), Limit/2/len(piece))
		n := len(newFeeder(Limit).feed(t, append(line, "\n"+ping+"\n"...), 1<<16))
		if n < 2 {
			t.Errorf("%s: told %d messages", piece, n)
		}
	}
}
