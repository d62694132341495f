package view

import (
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
)

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1:                            "",
		0:                             "0.00ms",
		9994 * time.Microsecond:       "9.99ms",
		9996 * time.Microsecond:       "10.0ms",
		99949 * time.Microsecond:      "99.9ms",
		999 * time.Millisecond:        "999ms",
		999600 * time.Microsecond:     "1.00s",
		12345 * time.Millisecond:      "12.3s",
		61 * time.Second:              "1m01s",
		25*time.Hour + 30*time.Second: "25h00m",
	} {
		if got := duration(d); got != want {
			t.Errorf("duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"it shows plain words as they are", `{"a":"b","n":-1.5,"t":true,"z":null}`, `a=b n=-1.5 t=true z=null`},
		{"it quotes what is not one word", `{"a b":"","c":"x=y","d":"say \"hi\""}`, `"a b"="" c="x=y" d="say \"hi\""`},
		{"it marks digests", `{"keys":{"len":1,"hmac_sha256_prefix":"0123456789abcdef"}}`, `keys=<1 char #01234567>`},
		{"it marks digests of the other kind", `{"keys":{"len":12,"sha256_prefix":"0123456789ab"}}`, `keys=<12 chars #01234567>`},
		{"it shows the beginning of a long text", `{"x":{"head":"abc d","len":300,"hmac_sha256_prefix":"0123456789abcdef"}}`, `x="abc d"…<300 chars #01234567>`},
		{"it shows what is left of a value", `{"x":{"type":"int","redacted":true}}`, `x=<int redacted>`},
		{"it shows what is left of an oversize value", `{"x":{"type":"str","bytes":17000000,"hmac_sha256_prefix":"0123456789abcdef"}}`, `x=<str 17000000 bytes #01234567>`},
		{"it takes no other object for a digest", `{"x":{"len":1,"other":2}}`, `x={len=1 other=2}`},
		{"it does not go deeper than asked", `{"a":{"b":{"c":{}}},"b":{"b":{"c":{"d":1}}},"l":[[[1]]]}`, `a={b={c={}}} b={b={c={…}}} l=[[[…]]]`},
		{"it names the operations of a batch", `{"operations":[{"tool":"a","arguments":{"x":1}},{"tool":"b"},{"keys":"c"}]}`, `operations=[a(x=1), b, {keys=c}]`},
		{"it shows letters that look like others", "{\"operations\":[{\"tool\":\"s\u0435nd_keys\"},{\"tool\":\"поиск\"}]}", `operations=["s\u0435nd_keys", поиск]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (summarizer{depth: 2, hex: 8}).arguments(audit.JSON(tt.in)); got != tt.want {
				t.Errorf("summary of %s is %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// TestUnknownKind checks that a record that only a newer proxy writes is shown
// like the others, with the command that prints it whole.
func TestUnknownKind(t *testing.T) {
	r := renderer{loc: time.UTC}
	line := string(r.record(&audit.Record{Kind: "future", RecordID: "0198", TS: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Duration: -1}, ""))
	if !strings.Contains(line, "12:00:00.000Z future ") || !strings.Contains(line, "auditproxy show 0198") {
		t.Errorf("the line is %q", line)
	}
}

// TestMixedNames checks that the name of a tool with letters that look like others is shown
// with their escapes, and an ordinary one in another script as it is.
func TestMixedNames(t *testing.T) {
	r := renderer{loc: time.UTC}
	for tool, want := range map[string]string{"s\u0435nd_keys": `s\u0435nd_keys`, "поиск": "поиск"} {
		rec := audit.Record{Kind: audit.KindCall, Method: "tools/call", Tool: tool, Duration: -1, Candidates: []audit.Candidate{{Method: "tools/call", Tool: tool, Target: "файл x"}}}
		line := string(r.record(&rec, "ok"))
		if !strings.Contains(line, " "+want+" ") || !strings.Contains(line, "!or:"+want+" файл x\n") {
			t.Errorf("the line is %q", line)
		}
		p := recordPage{loc: time.UTC}
		p.members([]byte(`{"tool":"` + tool + `"}`))
		p.operation(audit.Operation{Tool: tool})
		if page := string(p.out); strings.Count(page, " "+want+"\n") != 2 {
			t.Errorf("the page is %q", page)
		}
	}
}
