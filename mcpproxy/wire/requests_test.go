package wire

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"auditproxy/schemas/jsontext"
)

// A seen is a Message in text, so that it outlives the window.
type seen struct {
	State                                                          State
	Off, End                                                       int64
	Raw, Sum, ID, VariantID, Method, Params, Name, URI, Args, Meta string
	Response                                                       [2]bool
	ArgsBytes                                                      int64
	Parts, Candidates                                              string
	Anomalies                                                      Anomaly
	Open                                                           bool
}

func copyOf(m Message) seen {
	s := seen{
		State: m.State, Off: m.Off, End: m.End,
		Raw: string(m.Raw), Sum: fmt.Sprintf("%.4x", m.Sum), ID: string(m.ID), VariantID: string(m.VariantID), Method: string(m.Method), Params: string(m.Params),
		Name: string(m.Name), URI: string(m.URI), Args: string(m.Arguments), Meta: string(m.Meta),
		Response: [2]bool{m.HasResult, m.HasError}, ArgsBytes: m.ArgumentsBytes, Anomalies: m.Anomalies, Open: m.Open,
	}
	for _, p := range m.Parts {
		s.Parts += fmt.Sprintf("%s %s %d %.4x;", p.Name, p.Type, p.Bytes, p.Sum)
	}
	for _, c := range m.Candidates {
		s.Candidates += fmt.Sprintf("%s %s", c.Method, c.Name)
		if c.Differs {
			s.Candidates += fmt.Sprintf(" with %s", c.Arguments)
			for _, p := range c.Parts {
				s.Candidates += fmt.Sprintf("%s %s %d %.4x,", p.Name, p.Type, p.Bytes, p.Sum)
			}
		}
		s.Candidates += ";"
	}
	return s
}

// A feeder sends a stream through a Requests and keeps the messages it reports.
type feeder struct {
	q        *Requests
	told     []seen
	ready    []byte
	calls    map[[2]string]bool // method and name, decoded
	readings [][2]string        // name, decoded, and arguments
	check    func()             // after every Scan
}

func newFeeder(limit int64) *feeder {
	f := &feeder{q: NewRequests(Config{Hash: sha256.New}), calls: map[[2]string]bool{}, check: func() {}}
	f.q.limit = limit
	return f
}

func (f *feeder) take(t *testing.T, frames []Frame) {
	t.Helper()
	var all []byte
	for _, fr := range frames {
		all = append(all, fr.Bytes...)
		if fr.Complete != bytes.HasSuffix(fr.Bytes, []byte{'\n'}) && !fr.Complete {
			t.Fatalf("frame %q ends a line and is not complete", fr.Bytes)
		}
		var flags Anomaly
		for _, m := range fr.Messages {
			f.told = append(f.told, copyOf(m))
			flags |= m.Anomalies
			f.calls[[2]string{text(m.Method), text(m.Name)}] = true
			f.readings = append(f.readings, [2]string{text(m.Name), string(m.Arguments)})
			for _, c := range m.Candidates {
				f.calls[[2]string{text(c.Method), text(c.Name)}] = true
				args := m.Arguments
				if c.Differs {
					args = c.Arguments
				}
				f.readings = append(f.readings, [2]string{text(c.Name), string(args)})
			}
		}
		if flags&^fr.Anomalies != 0 {
			t.Fatalf("frame %q lacks anomalies of its messages", fr.Bytes)
		}
	}
	if !bytes.Equal(all, f.q.Ready()) {
		t.Fatalf("frames %q, ready %q", all, f.q.Ready())
	}
	f.ready = append(f.ready, all...)
	f.check()
}

func text(lit []byte) string { return string(jsontext.AppendUnquote(nil, lit)) }

// feed feeds data in reads of the given sizes, the last of which repeats.
func (f *feeder) feed(t *testing.T, data []byte, sizes ...int) []seen {
	t.Helper()
	for rest := data; len(rest) > 0; {
		// As with Limit itself, no read is larger than the limit.
		n := min(len(rest), int(f.q.limit))
		if len(sizes) > 0 {
			n = min(n, max(sizes[0], 1))
			if len(sizes) > 1 {
				sizes = sizes[1:]
			}
		}
		n = copy(f.q.Space(), rest[:n])
		f.take(t, f.q.Scan(n))
		for f.q.More() {
			f.take(t, f.q.Scan(0))
		}
		rest = rest[n:]
	}
	f.q.Space()
	f.take(t, f.q.End())
	if !bytes.Equal(f.ready, data) {
		t.Fatalf("ready %d bytes of %d, or not the same", len(f.ready), len(data))
	}
	slices.SortStableFunc(f.told, func(a, b seen) int {
		return strings.Compare(fmt.Sprintf("%09d %09d %d", a.End, a.Off, a.State), fmt.Sprintf("%09d %09d %d", b.End, b.Off, b.State))
	})
	return f.told
}

func tell(t *testing.T, data string, sizes ...int) []seen {
	t.Helper()
	return newFeeder(Limit).feed(t, []byte(data), sizes...)
}

const (
	ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"evil","arguments":{"k":1}}}`
)

func with(params string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + params + `}`
}

// utf16of is s in UTF-16.
func utf16of(s string, bigEndian bool) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		if bigEndian {
			b = binary.BigEndian.AppendUint16(b, unit)
		} else {
			b = binary.LittleEndian.AppendUint16(b, unit)
		}
	}
	return string(b)
}

// brief is a message as the tables have it.
func brief(s seen) string {
	what := [...]string{"complete", "begun", "ended", "opaque"}[s.State]
	line := fmt.Sprintf("%s %d-%d", what, s.Off, s.End)
	if s.State != Opaque {
		line += " " + s.Method
		if s.Name != "" {
			line += " " + s.Name
		}
	}
	if s.Candidates != "" {
		line += " or " + strings.TrimSuffix(s.Candidates, ";")
	}
	if words := s.Anomalies.Append(nil); len(words) > 0 {
		line += ": " + strings.Join(words, " ")
	}
	return line
}

func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"one call", call + "\n", []string{`complete 0-91 "tools/call" "evil"`}},
		{"CRLF", call + "\r\n", []string{`complete 0-91 "tools/call" "evil"`}},
		{"no line end", call, []string{`complete 0-91 "tools/call" "evil"`}},
		{"blank lines", "\n \t\n\r\n", nil},
		{"bare CR between messages", ping + "\r" + call + "\n", []string{
			`complete 0-40 "ping"`, `complete 41-132 "tools/call" "evil": bare_cr multi_value`}},
		{"bare CR in a message, that is two broken ones for some", `{"a":` + "\r" + ping + "}\n", []string{
			`complete 6-46 "ping": bare_cr`, `opaque 0-47: not_rpc bare_cr`}},
		{"bare CR after what is broken", "xx}\r" + call + "\n", []string{
			`opaque 0-95: not_json bare_cr`, `complete 4-95 "tools/call" "evil": bare_cr`}},
		{"two values on a line", ping + ping + "\n", []string{
			`complete 0-40 "ping"`, `complete 40-80 "ping": multi_value`}},
		{"over lines", "{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"ping\"}\n", []string{
			`opaque 0-24: not_json`, `complete 0-41 "ping": multi_line`}},
		{"over lines, after a broken line", "xx}\n{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"ping\"}\n", []string{
			`opaque 0-3: not_json`, `opaque 4-28: not_json`, `complete 4-45 "ping": multi_line`}},
		{"broken, then a call", `{"jsonrpc":"2.0","x":[[[}` + "\n" + ping + "\n", []string{
			`opaque 0-25: not_json`, `complete 26-66 "ping"`}},
		{"unfinished, then a call", `{"jsonrpc":[` + "\n" + ping + "\n", []string{
			`opaque 0-12: not_json`, `complete 13-53 "ping"`}},
		{"a line in a value", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\n" + ping + "\n}\n", []string{
			`opaque 0-44: not_json`, `complete 45-85 "ping"`, `complete 0-87 "ping": multi_line`}},
		{"a member of a batch over lines is told once", "[\n" + ping + "\n]\n", []string{
			`opaque 0-1: not_json`, `complete 2-42 "ping": batch multi_line`}},
		{"every line of a value that goes on", "[\n1,\n{\"a\":2},\n]\n", []string{
			`opaque 0-1: not_json`, `opaque 2-4: not_json`, `opaque 5-13: not_json`}},
		{"UTF-16", utf16of(call+"\n"+ping+"\n", false), []string{
			`opaque 0-182: not_rpc control_character`, `opaque 183-264: not_rpc control_character`}},
		{"UTF-16 of the other order", utf16of(call+"\r\n", true), []string{`opaque 0-185: not_rpc control_character`}},
		{"UTF-16 with BOM", utf16of("\uFEFF"+call+"\n", false), []string{`opaque 0-184: not_json invalid_utf8`}},
		{"names without quotes", "{jsonrpc:'2.0'}\n" + ping + "\n", []string{`opaque 0-15: not_json`, `complete 16-56 "ping"`}},
		{"a comment", "/* x */ " + ping + "\n", []string{
			`opaque 0-8: not_json`, `complete 8-48 "ping": not_json`}},
		{"a call among what cannot be read", "1 " + ping + " x y " + ping + "\n", []string{
			`complete 2-42 "ping": multi_value`, `opaque 0-87: not_json multi_value`, `complete 47-87 "ping": multi_value`}},
		{"a NUL before what is no message", "\x00{\"a\":1}\n\x00[1]\n\x00x\n\x00}\n\x00 \x001\n", []string{
			`opaque 0-8: not_rpc control_character`, `opaque 9-13: not_rpc control_character`, `opaque 14-16: not_json control_character`,
			`opaque 17-19: not_json control_character`, `opaque 20-24: not_rpc control_character`}},
		{"a NUL before a message that goes on", "\x00{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"ping\"}\n", []string{
			`opaque 1-25: not_json control_character`, `complete 1-42 "ping": control_character multi_line`}},
		{"a NUL between messages", ping + "\x00" + ping + "\n", []string{
			`complete 0-40 "ping"`, `complete 41-81 "ping": control_character multi_value`}},
		{"white space only", "\uFEFF\n\x00\n\u2028\r\n", nil},
		{"open quote at a line end", `{"jsonrpc":"2.0","x":"abc` + "\n" + ping + "\n", []string{
			`opaque 0-25: not_json`, `complete 26-66 "ping"`}},
		{"batch", "[" + ping + "," + ping + "]\n", []string{
			`complete 1-41 "ping": batch`, `complete 42-82 "ping": batch`}},
		{"batch in a batch", "[[" + ping + "]]\n", []string{`complete 2-42 "ping": batch`}},
		{"batch with something else", "[1," + ping + "]\n", []string{
			`complete 3-43 "ping": batch`, `opaque 0-44: not_rpc`}},
		{"batch that is broken", "[" + ping + ",}\n", []string{
			`complete 1-41 "ping": batch`, `opaque 0-43: not_json`}},
		{"BOM", "\uFEFF" + ping + "\n", []string{`complete 3-43 "ping": bom`}},
		{"white space of other standards", ping + "\u2028\f" + ping + "\u0085\n", []string{
			`complete 0-40 "ping"`, `complete 44-84 "ping": not_json control_character multi_value`}},
		{"half of a BOM", "\xEF\xBB" + ping + "\n", []string{
			`opaque 0-2: not_json invalid_utf8`, `complete 2-42 "ping": not_json`}},
		{"trailing junk", ping + "//x\n", []string{`complete 0-40 "ping"`, `opaque 40-43: not_json`}},
		{"trailing comma in an array", with(`{"name":"a","arguments":{"k":[1,]}}`) + "\n", []string{
			`complete 0-91 "tools/call" "a": not_json`}},
		{"no object", `1 "x" [] [[]] {}` + "\n", []string{`opaque 0-16: not_rpc multi_value`}},
		{"words", "True\n", []string{`opaque 0-4: not_json`}},
		{"numbers", `{"jsonrpc":"2.0","id":1,"method":"ping","x":[01,.5,1.,0x1]}` + "\n", []string{
			`complete 0-59 "ping": not_json`}},
		{"infinite", `{"jsonrpc":"2.0","id":1,"method":"ping","x":[NaN,1e309]}` + "\n", []string{
			`complete 0-56 "ping": nan`}},
		{"invalid UTF-8", with(`{"name":"a`+"\xFF"+`"}`) + "\n", []string{
			`complete 0-69 "tools/call" "a` + "\xFF" + `": invalid_utf8`}},
		{"surrogates", with(`{"name":"\ud83d\ude00","x":"\ude00\ud83d"}`) + "\n", []string{
			`complete 0-98 "tools/call" "\ud83d\ude00": lone_surrogate`}},
		{"bad escapes", with(`{"name":"a\x41\u12"}`) + "\n", []string{
			`complete 0-76 "tools/call" "a\x41\u12": not_json`}},
		{"raw control characters", with("{\"name\":\"a\t\"}") + "\n", []string{
			"complete 0-69 \"tools/call\" \"a\t\": control_character"}},
		{"escaped names", `{"jsonrpc":"2.0","id":2,"m\u0065thod":"tools\/call"}` + "\n", []string{
			`complete 0-52 "tools\/call": not_rpc`}},
		{"last name null", with(`{"name":"evil","name":null}`) + "\n", []string{
			`complete 0-83 "tools/call" or "tools/call" "evil": duplicate_member not_rpc`}},
		{"last name of a prompt null", `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p","NAME":"q","name":null}}` + "\n", []string{
			`complete 0-92 "prompts/get" or "prompts/get" "p";"prompts/get" "q": duplicate_member case_variant_member`}},
		{"method in another case", `{"jsonrpc":"2.0","id":2,"Method":"tools/call","params":{"name":"evil"}}` + "\n", []string{
			`complete 0-71  "evil" or "tools/call" "evil": case_variant_member not_rpc`}},
		{"params with a long s", `{"jsonrpc":"2.0","id":2,"method":"tools/call","param\u017f":{"name":"evil"}}` + "\n", []string{
			`complete 0-76 "tools/call" or "tools/call" "evil": case_variant_member not_rpc`}},
		{"params twice", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":1},"params":{}}` + "\n", []string{
			`complete 0-94 "tools/call" or "tools/call"  with 1;"tools/call" "a" with 1;"tools/call" "a": duplicate_member not_rpc`}},
		{"arguments in another case", with(`{"name":"a","arguments":{"p":1},"Arguments":{"p":2}}`) + "\n", []string{
			`complete 0-108 "tools/call" "a" or "tools/call" "a" with {"p":2}: case_variant_member`}},
		{"arguments in another case alone", with(`{"name":"a","argument\u017f":{"p":2}}`) + "\n", []string{
			`complete 0-93 "tools/call" "a" or "tools/call" "a" with {"p":2}: case_variant_member`}},
		{"arguments twice", with(`{"name":"a","arguments":{"p":1},"arguments":{"p":2},"arguments":null}`) + "\n", []string{
			`complete 0-125 "tools/call" "a" or "tools/call" "a" with {"p":1};"tools/call" "a" with {"p":2}: duplicate_member`}},
		{"the same arguments twice", with(`{"name":"a","arguments":{"p":1},"Arguments":{"p":1}}`) + "\n", []string{
			`complete 0-108 "tools/call" "a": case_variant_member`}},
		{"params in another case", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"p":1}},"PARAMS":{"name":"a","ARGUMENTS":{"p":2}}}` + "\n", []string{
			`complete 0-130 "tools/call" "a" or "tools/call" "a" with {"p":2}: case_variant_member`}},
		{"params twice, arguments in the first", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"p":1}},"params":{"name":"b"}}` + "\n", []string{
			`complete 0-110 "tools/call" "b" or "tools/call" "b" with {"p":1};"tools/call" "a";"tools/call" "a" with {"p":1}: duplicate_member`}},
		{"the same twice", with(`{"name":"a","name":"\u0061"}`) + "\n", []string{
			`complete 0-84 "tools/call" "\u0061": duplicate_member`}},
		{"arguments twice in arguments", with(`{"name":"a","arguments":{"k":1,"\u006b":2}}`) + "\n", []string{
			`complete 0-99 "tools/call" "a": duplicate_member`}},
		{"params of another case without a tool", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"p":1}},"Params":null}` + "\n", []string{
			`complete 0-102 "tools/call" "a" or "tools/call" ;"tools/call"  with : case_variant_member`}},
		{"method with a NUL behind its name", `{"jsonrpc":"2.0","id":2,"method\u0000x":"tools/call","params":{"name":"evil"},"method":"ping"}` + "\n", []string{
			`complete 0-94 "ping" "evil" or "tools/call" "evil": case_variant_member`}},
		{"name with a NUL behind its name", with(`{"Name\u0000":"evil","name":"a"}`) + "\n", []string{
			`complete 0-88 "tools/call" "a" or "tools/call" "evil": case_variant_member`}},
		{"name that ends at a NUL", with(`{"name":"evil\u0000x"}`) + "\n", []string{
			`complete 0-78 "tools/call" "evil\u0000x" or "tools/call" "evil: control_character`}},
		{"name without a NUL", with(`{"name":"evil\\u0000"}`) + "\n", []string{
			`complete 0-78 "tools/call" "evil\\u0000"`}},
		{"method that ends at a NUL", `{"jsonrpc":"2.0","id":2,"method":"tools/call\u0000","params":{"name":"evil"}}` + "\n", []string{
			`complete 0-77 "tools/call\u0000" "evil" or "tools/call "evil": control_character`}},
		{"URI that ends at a NUL", `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"a:b\u0000"}}` + "\n", []string{
			`complete 0-79 "resources/read" or "resources/read" "a:b: control_character`}},
		{"no version", `{"id":2,"method":"ping"}` + "\n", []string{`complete 0-24 "ping": not_rpc`}},
		{"response", `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n", []string{`complete 0-36 `}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n", []string{`complete 0-44 "notifications/x"`}},
		{"no id", `{"jsonrpc":"2.0","method":"ping"}` + "\n", []string{`complete 0-33 "ping": no_id`}},
		{"odd progress token", with(`{"_meta":{"progressToken":1.5},"name":"a"}`) + "\n", []string{`complete 0-98 "tools/call" "a": odd_id`}},
		{"no tool", with(`{"arguments":{}}`) + "\n", []string{`complete 0-72 "tools/call": not_rpc`}},
		{"arguments in a list", with(`{"name":"a","arguments":[]}`) + "\n", []string{`complete 0-83 "tools/call" "a": not_rpc`}},
		{"an integer that not all take for one", `{"jsonrpc":"2.0","id":2.0,"method":"ping"}` + "\n", []string{`complete 0-42 "ping": odd_id`}},
		{"odd id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}` + "\n", []string{`complete 0-42 "ping": odd_id`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			told := tell(t, tt.in)
			var got []string
			for _, s := range told {
				got = append(got, brief(s))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("told (-want +got):\n%s", d)
			}
			if d := cmp.Diff(told, tell(t, tt.in, 1)); d != "" {
				t.Errorf("byte for byte (-at once +got):\n%s", d)
			}
		})
	}
}

// TestMembers reads every member of a message.
func TestMembers(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"_meta":{"a":[1]},"name":"n","uri":"u","arguments":{"name":"no","k":{"id":1}}},"error":{"id":3},"result":null}`
	want := []seen{{
		End: int64(len(in)), Raw: in, ID: `"x"`, Method: `"tools/call"`,
		Params: `{"_meta":{"a":[1]},"name":"n","uri":"u","arguments":{"name":"no","k":{"id":1}}}`,
		Name:   `"n"`, URI: `"u"`, Args: `{"name":"no","k":{"id":1}}`, Meta: `{"a":[1]}`, Response: [2]bool{true, true}, ArgsBytes: 26,
	}}
	if d := cmp.Diff(want, tell(t, in+"\n")); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

// TestMembersOfOtherReadings reads members that only some servers use.
func TestMembersOfOtherReadings(t *testing.T) {
	for _, tt := range []struct{ in, id, uri string }{
		{`{"Id":1,"method":"ping"}`, "1", ""},
		{`{"Id":1,"i\u0044":2,"method":"ping"}`, "2", ""},
		{`{"Id":1,"id":2,"ID":3,"method":"ping"}`, "2", ""},
		{`{"method":"resources/read","params":{"uri":"a","uri":null}}`, "", `"a"`},
		{`{"method":"resources/read","params":{"uri":"a","uri":1}}`, "", ""},
		{`{"method":"resources/read","params":{"uri":"a"},"params":{"uri":null}}`, "", ""},
	} {
		if m := tell(t, tt.in)[0]; m.ID != tt.id || m.URI != tt.uri {
			t.Errorf("%s has id %q, uri %q; want %q, %q", tt.in, m.ID, m.URI, tt.id, tt.uri)
		}
	}
}

// TestCandidatesAreFew gives more names than are kept: the choices of a reader
// that uses the last name, or the last that is not null, must be there.
func TestCandidatesAreFew(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"name":"first"`)
	for i := range 40 {
		fmt.Fprintf(&b, `,"name":"n%d"`, i)
	}
	b.WriteString(`,"name":"exact","name":null`)
	for i := range 40 {
		fmt.Fprintf(&b, `,"NAME":"v%d"`, i)
	}
	b.WriteString(`,"Name":"variant"}`)
	f := newFeeder(Limit)
	told := f.feed(t, []byte(with(b.String())+"\n"))
	if n := strings.Count(told[0].Candidates, ";"); n != maxCandidates {
		t.Errorf("%d candidates, want %d", n, maxCandidates)
	}
	for _, name := range []string{"first", "exact", "variant"} {
		if !f.calls[[2]string{methodCall, name}] {
			t.Errorf("no candidate %s: %s", name, told[0].Candidates)
		}
	}
}

// TestReady lists for each read the bytes that may be forwarded.
func TestReady(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reads []string
		want  []string
	}{
		{"a line waits for its end", []string{`{"method":`, `"ping"`, "}\n"}, []string{"", "", "{\"method\":\"ping\"}\n"}},
		{"a value goes, its line end follows", []string{`{"method":"ping"} `, "\n"}, []string{`{"method":"ping"}`, " \n"}},
		{"a CR may be half of a line end", []string{"{\"method\":\"ping\"}\r", "\n"}, []string{`{"method":"ping"}`, "\r\n"}},
		{"an unfinished value goes at a line end", []string{"{\n", `"method":"ping"`, "}"}, []string{"{\n", "", `"method":"ping"}`}},
		{"a batch waits for its end", []string{`[{"method":"ping"}`, `]`}, []string{"", `[{"method":"ping"}]`}},
		{"junk waits for its line end", []string{"}", "}", "\n"}, []string{"", "", "}}\n"}},
		{"junk before an unfinished value goes with its line, told", []string{"1 {\n"}, []string{"1 {\n"}},
		{"a message behind junk waits for the line end", []string{`1 {"method":"ping"}`, "\n"}, []string{"", "1 {\"method\":\"ping\"}\n"}},
		{"a message before junk goes", []string{`{"method":"ping"} 1`, "\n"}, []string{`{"method":"ping"}`, " 1\n"}},
		{"too much goes", []string{`{"method":"ping","x":"` + strings.Repeat("x", 70), "y", `"}`}, []string{
			`{"method":"ping","x":"` + strings.Repeat("x", 70), "y", `"}`}},
		{"too much junk goes", []string{strings.Repeat("}", 70), "}", "\n"}, []string{strings.Repeat("}", 70), "}", "\n"}},
		{"too much white space goes", []string{strings.Repeat(" ", 70), "\n"}, []string{strings.Repeat(" ", 70), "\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := NewRequests(Config{Hash: sha256.New})
			q.limit = 64
			var got []string
			for _, r := range tt.reads {
				for _, f := range q.Scan(copy(q.Space(), r)) {
					if strings.HasSuffix(tt.name, "told") && len(f.Messages) == 0 {
						t.Errorf("nothing told of %q", f.Bytes)
					}
				}
				got = append(got, string(q.Ready()))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("ready (-want +got):\n%s", d)
			}
		})
	}
}

type frame struct {
	Name     string
	B64      []byte `json:"b64"`
	ZlibB64  []byte `json:"zlib_b64"`
	Executed map[string][]string
	// Arguments has those of Executed, for the servers whose are known.
	Arguments map[string][]json.RawMessage
	Tools     []string
}

func (f frame) bytes(t *testing.T) []byte {
	if f.ZlibB64 == nil {
		return f.B64
	}
	z, err := zlib.NewReader(bytes.NewReader(f.ZlibB64))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func eachLine(t *testing.T, name string, use func(line []byte)) (n int) {
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for s.Buffer(nil, 1<<20); s.Scan(); n++ {
		use(s.Bytes())
	}
	return n
}

// sameInPieces compares told with the messages of the same bytes in other
// reads.
func sameInPieces(t *testing.T, data []byte, told []seen) {
	t.Helper()
	same := func(sizes ...int) {
		t.Helper()
		if d := cmp.Diff(told, newFeeder(Limit).feed(t, data, sizes...)); d != "" {
			t.Errorf("in reads of %d (-at once +got):\n%s", sizes, d)
		}
	}
	if len(data) < 500 {
		for i := range data {
			same(i, len(data))
		}
		same(1)
		return
	}
	r := rand.New(rand.NewPCG(1, uint64(len(data))))
	for range 3 {
		var sizes []int
		for range 5 {
			sizes = append(sizes, r.IntN(len(data)/5+1))
		}
		same(append(sizes, 1<<20)...)
	}
}

// hasArguments reports whether a reading that names tool has every name and
// value of want in its arguments. Servers write numbers and bytes that are not
// UTF-8 in their own ways, and keep one of two equal names.
func (f *feeder) hasArguments(tool string, want json.RawMessage) bool {
	for _, r := range f.readings {
		if r[0] == tool && hasWords([]byte(r[1]), want) {
			return true
		}
	}
	return false
}

func hasWords(b, want []byte) bool {
	have := words(b)
	return !slices.ContainsFunc(words(want), func(word string) bool { return !slices.Contains(have, word) })
}

// words returns the strings, numbers and words of JSON, or nearly JSON, in one
// form.
func words(b []byte) (list []string) {
	for i := 0; i < len(b); {
		end := i + 1
		switch c := b[i]; {
		case c == '"':
			if _, end = jsontext.Lenient(b).String(i); end < 0 {
				return append(list, "unterminated")
			}
			list = append(list, fold(text(b[i:end])))
		case bareByte(c):
			for end < len(b) && bareByte(b[end]) {
				end++
			}
			word := string(b[i:end])
			if x, err := strconv.ParseFloat(word, 64); err == nil || errors.Is(err, strconv.ErrRange) {
				word = strconv.FormatFloat(x+0, 'g', -1, 64) // JavaScript writes -0 as 0
			}
			if word != "null" {
				list = append(list, word)
			}
		}
		i = end
	}
	return list
}

// TestFrames reads frames that were sent to servers, see testdata/README.md:
// each tool that one of them ran must be reported, with its arguments.
func TestFrames(t *testing.T) {
	n := eachLine(t, "frames.jsonl", func(line []byte) {
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		t.Run(f.Name, func(t *testing.T) {
			data := f.bytes(t)
			fd := newFeeder(Limit)
			told := fd.feed(t, data)
			for _, tool := range f.Tools {
				found := false
				for c := range fd.calls { // the vectors cut a name of 1 MiB short
					found = found || c[0] == methodCall && (c[1] == tool || len(c[1]) > 1<<19 && strings.HasPrefix(c[1], tool))
				}
				if !found {
					t.Errorf("a server ran %q, told %v", tool, told)
				}
			}
			for server, list := range f.Arguments {
				for i, want := range list {
					if !fd.hasArguments(f.Executed[server][i], want) {
						t.Errorf("%s ran %q with %s, told %v", server, f.Executed[server][i], want, told)
					}
				}
			}
			if len(told) == 0 {
				t.Error("nothing told")
			}
			sameInPieces(t, data, told)
		})
	})
	if n != 269 {
		t.Errorf("%d frames", n)
	}
}

// TestManyLinesInOneRead reads more lines than one Scan reports.
func TestManyLinesInOneRead(t *testing.T) {
	for _, line := range []string{"x\n", "\n", "[\n", "x\r\n", "[1,\r\n"} {
		data := []byte(strings.Repeat(line, 60<<10/len(line)) + call + "\n")
		fd := newFeeder(Limit)
		frames := 0
		for _, told := range [][]seen{fd.feed(t, data, len(data)), newFeeder(Limit).feed(t, data, 1000)} {
			if frames == 0 {
				frames = len(told)
			}
			if last := told[len(told)-1]; len(told) != frames || last.Name != `"evil"` {
				t.Errorf("%q often: %d messages, the last of %q; at once %d", line, len(told), last.Name, frames)
			}
		}
		q := NewRequests(Config{Hash: sha256.New})
		if n := len(q.Scan(copy(q.Space(), data))); n > maxFrames || n < maxFrames == q.More() {
			t.Errorf("%q often: one Scan returns %d frames, more: %t", line, n, q.More())
		}
	}
}

// TestLibtmuxLines reads lines that were sent to libtmux-mcp: each call that it
// audited is reported, and any other is reported with the reason for the
// difference.
func TestLibtmuxLines(t *testing.T) {
	n := eachLine(t, "libtmux_wire_edge.jsonl", func(line []byte) {
		var v struct {
			Name      string
			LineB64   string `json:"line_b64"`
			Responses []any
			Audits    []struct{ Tool string }
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.Name, func(t *testing.T) {
			data, err := base64.StdEncoding.DecodeString(v.LineB64)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, '\n')
			told := newFeeder(Limit).feed(t, data)
			sameInPieces(t, data, told)
			audits, plain := v.Audits, true
			for _, s := range told {
				plain = plain && s.Anomalies == 0
			}
			for _, s := range told {
				if s.State == Opaque || s.Method != `"tools/call"` {
					continue
				}
				if len(audits) > 0 && text([]byte(s.Name)) == audits[0].Tool {
					audits = audits[1:]
				} else if plain {
					t.Logf("EXTRA %v %v", v.Name, v.Responses)
				}
			}
			if len(audits) > 0 {
				t.Errorf("not told: %v", audits)
			}
		})
	})
	if n != 75 {
		t.Errorf("%d lines", n)
	}
}

func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		call + "\n", ping + "\r" + call + "\n", "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"ping\"}\n", "[" + ping + ",\n" + call + "]\n",
		"\uFEFF" + call + "x\n", with(`{"name":"a","NAME":"\ud800","arguments":{"a":1e999,"b":[{}],"c":"`+strings.Repeat("x", 200)+`"}}`) + "\r\n" + call,
		"{\"a\":\r[" + ping + ",\n\"" + strings.Repeat("[", 100) + call, strings.Repeat("x", 100) + "}\n" + call,
		`{"a":"` + strings.Repeat("\\", 99) + "\n" + `{"method":"tools/call","params":{"name":"x","name":null}}`,
	} {
		f.Add([]byte(s), uint16(3), uint16(40))
	}
	f.Fuzz(func(t *testing.T, data []byte, a, b uint16) {
		for _, limit := range []int64{64, Limit} {
			fd := newFeeder(limit)
			fd.check = func() { executable(t, fd) }
			told := fd.feed(t, data, int(a), int(b))
			if d := cmp.Diff(told, newFeeder(limit).feed(t, data)); d != "" {
				t.Fatalf("limit %d: in pieces (-) and at once (+):\n%s", limit, d)
			}
			covered(t, data, told)
		}
	})
}

// executable checks that the bytes forwarded so far contain no unreported call
// for a reader of lines, a reader for which a CR ends a line too, and a reader
// of a stream.
func executable(t *testing.T, f *feeder) {
	t.Helper()
	line := func(b []byte) {
		var v json.RawMessage
		if json.Unmarshal(b, &v) == nil {
			mustKnow(t, f, v)
		}
	}
	for l := range bytes.SplitSeq(f.ready, []byte{'\n'}) {
		line(l)
		for c := range bytes.SplitSeq(l, []byte{'\r'}) {
			line(c)
		}
	}
	for dec := json.NewDecoder(bytes.NewReader(f.ready)); ; {
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return
		}
		mustKnow(t, f, v)
	}
}

func mustKnow(t *testing.T, f *feeder, v json.RawMessage) {
	t.Helper()
	if v[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(v, &list); err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			mustKnow(t, f, v)
		}
		return
	}
	var m, params map[string]json.RawMessage
	var method, name string
	if json.Unmarshal(v, &m) != nil || json.Unmarshal(m["method"], &method) != nil || method != methodCall {
		return
	}
	if json.Unmarshal(m["params"], &params) != nil || json.Unmarshal(params["name"], &name) != nil {
		return
	}
	for c := range f.calls { // encoding/json replaces invalid UTF-8 by more characters
		if c[0] == methodCall && (c[1] == name || strings.Contains(name, "\uFFFD")) {
			return
		}
	}
	t.Fatalf("passed on and not told: %s", v)
}

// covered checks that each byte except white space and brackets belongs to a
// reported message.
func covered(t *testing.T, data []byte, told []seen) {
	t.Helper()
	rest := bytes.Clone(data)
	for _, s := range told {
		for i := s.Off; i < s.End; i++ {
			rest[i] = ' '
		}
	}
	for _, space := range []string{"\u0085", "\u00A0", "\u2028", "\u2029", "\uFEFF"} {
		rest = bytes.ReplaceAll(rest, []byte(space), nil)
	}
	rest = bytes.TrimFunc(rest, func(r rune) bool { return r <= ' ' || strings.ContainsRune("{[,:]}", r) })
	if len(rest) > 0 {
		t.Fatalf("not told: %q of %q, told %v", rest, data, told)
	}
}

// TestSoup reads random sequences of tokens: the messages do not depend on the
// reads, and every byte is forwarded, after it was reported.
func TestSoup(t *testing.T) {
	tokens := []string{
		"{", "}", "[", "]", ",", ":", "{", "}", "}", "\n", "\r", "\r\n", " ", `"method":"tools/call"`, `"method":`, `"method":null,`, `"tools/call"`,
		`"params":`, `"params":{"name":`, `"name":"a",`, `"name":`, `"NAME":"b"`, `"arguments":{`, `"a":1,`, `"b\u0063"`, `"id":`, `1`, `null`, `1e999`,
		ping, call, `"`, `\`, "\x01", "\xFF", "\xEF\xBB\xBF", "\xC2", "\u2028", `"x":"` + strings.Repeat("y", 70) + `",`, `"\ud800`, `{"jsonrpc":"2.0","id":1,`,
		`{"method":"tools/call","params":{"name":"c","arguments":{"k":"`, `[{"method":"m"},`, "Infinity", "x", "é",
		`{jsonrpc:2.0,id:7,method:tools/call,params:{name:d}}`, "{method:", "m,", "/*", "*/", "//", "/**/",
	}
	rounds := 5000
	if testing.Short() {
		rounds = 1000
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range rounds {
		var data []byte
		for range 1 + r.IntN(20) {
			data = append(data, tokens[r.IntN(len(tokens))]...)
		}
		for _, limit := range []int64{64, Limit} {
			f := newFeeder(limit)
			f.check = func() { executable(t, f) }
			told := f.feed(t, data, r.IntN(60), r.IntN(60), 1+r.IntN(60))
			if d := cmp.Diff(told, newFeeder(limit).feed(t, data)); d != "" {
				t.Fatalf("%q, limit %d: in pieces (-) and at once (+):\n%s", data, limit, d)
			}
			covered(t, data, told)
		}
		if t.Failed() {
			t.Fatalf("%q", data)
		}
	}
}
