package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An answered is an Answer in text, so that it outlives the Scan.
type answered struct {
	Off, Bytes                                                int64
	Raw, ID, Method, ErrorType, ResultType, Code, Message     string
	HasRaw, HasID, HasResult, HasError, IsError, Task, HasMsg bool
}

// listen feeds data to a in reads of the given sizes, the last of which
// repeats.
func listen(a *Answers, data []byte, sizes ...int) []answered {
	var out []answered
	for rest := data; len(rest) > 0; {
		n := len(rest)
		if len(sizes) > 0 {
			n = min(n, max(sizes[0], 1))
			if len(sizes) > 1 {
				sizes = sizes[1:]
			}
		}
		p := bytes.Clone(rest[:n])
		for _, m := range a.Scan(p) {
			out = append(out, answered{
				m.Off, m.Bytes, string(m.Raw), string(m.ID), string(m.Method), string(m.ErrorType), string(m.ResultType), string(m.Code), string(m.Message),
				m.Raw != nil, m.ID != nil, m.HasResult, m.HasError, m.IsError, m.Task, m.Message != nil,
			})
		}
		clear(p) // the caller's to use again
		rest = rest[n:]
	}
	return out
}

func TestAnswers(t *testing.T) {
	big := strings.Repeat(`x\"\\`, RetainSmall/4)
	for _, tt := range []struct {
		name, in string
		want     []answered
	}{
		{"a result", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"isError":true,"_meta":{"error_type":"no"}}]}}`, []answered{{ID: "1", HasResult: true}}},
		{"an error of a tool", `{"id":"a","result":{"isError":true,"_meta":{"error_type":"PaneNotFound","x":{"error_type":"no"}}}}`, []answered{
			{ID: `"a"`, HasResult: true, IsError: true, ErrorType: `"PaneNotFound"`}}},
		{"an error of the protocol", `{"id":1,"error":{"code":-32602,"message":"bad \"x\"","data":{"code":1}}}`, []answered{
			{ID: "1", HasError: true, Code: "-32602", Message: `"bad \"x\""`, HasMsg: true}}},
		{"an error that is null", `{"id":1,"result":{},"error":null}`, []answered{{ID: "1", HasResult: true}}},
		{"input is required", `{"id":1,"result":{"resultType":"input_required","inputRequests":{}}}`, []answered{
			{ID: "1", HasResult: true, ResultType: `"input_required"`}}},
		{"a task", `{"id":1,"result":{"task":{"taskId":"t","status":"working"}}}`, []answered{{ID: "1", HasResult: true, Task: true}}},
		{"a request", `{"id":1,"method":"sampling/createMessage","params":{"result":1}}`, []answered{{ID: "1", Method: `"sampling/createMessage"`}}},
		{"the last wins", `{"id":1,"id":2,"result":{"isError":true,"task":{},"_meta":{"error_type":"x"}},"result":{"isError":true,"isError":false}}`, []answered{
			{ID: "2", HasResult: true}}},
		{"the last _meta wins", `{"id":1,"result":{"_meta":{"error_type":"x"},"_meta":{}}}`, []answered{{ID: "1", HasResult: true}}},
		{"escaped names", `{"\u0069d":1,"res\u0075lt":{"is\u0045rror":true}}`, []answered{{ID: "1", HasResult: true, IsError: true}}},
		{"other cases do not count", `{"ID":1,"Result":{},"rESULT":{}}`, []answered{{}}},
		{"a batch", `[{"id":1,"result":{}},{"id":2,"result":{}}]`, []answered{{ID: "1", HasResult: true}, {ID: "2", HasResult: true}}},
		{"an odd id", `{"id":{"id":[2]},"result":{}}`, []answered{{ID: `{"id":[2]}`, HasResult: true}}},
		{"nothing", ` `, nil},
		{"a broken line", `{"id":1,"result":{`, nil},
		{"an open quote", `{"id":1,"x":"\`, nil},
		{"not JSON", `INFO starting`, nil},
		{"a large result", `{"id":7,"x":"` + big + `","result":{"isError":true,"a":["` + big + `"],"_meta":{"error_type":"T"}}}`, []answered{
			{ID: "7", HasResult: true, IsError: true, ErrorType: `"T"`}}},
		{"the id after a large result", `{"result":{"a":"` + big + `"},"id":"xy","method":null}`, []answered{{ID: `"xy"`, HasResult: true}}},
		{"a large message", `{"error":{"message":"` + strings.Repeat("m", 2*RetainSmall) + `","code":1},"id":3}`, []answered{
			{ID: "3", HasError: true, Code: "1", Message: `"` + strings.Repeat("m", RetainSmall-1), HasMsg: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The lines before and after must be reported, with any line
			// between.
			in := []byte(`{"id":"before","result":{}}` + "\n" + tt.in + "\n" + `{"id":"after","result":{}}` + "\n")
			sizes := [][]int{{1}, {2}, {7, 1 << 16}, {1 << 16}, {len(in) - 3, 1}}
			if len(in) > 4096 {
				sizes = [][]int{{4096}, {1 << 16}, {5, 1 << 16}}
			}
			for _, size := range sizes {
				got := listen(&Answers{}, in, size...)
				if len(got) < 2 || got[0].ID != `"before"` || got[len(got)-1].ID != `"after"` {
					t.Fatalf("in reads of %d: %d answers, want the ones before and after", size, len(got))
				}
				got = append([]answered(nil), got[1:len(got)-1]...)
				for i := range got {
					g := &got[i]
					whole := string(in[g.Off : g.Off+g.Bytes])
					if !json.Valid([]byte(whole)) || g.Bytes <= RetainSmall && g.Raw != whole || g.Raw != "" && g.Raw != whole {
						t.Errorf("in reads of %d: raw is %.100q, want %.100q", size, g.Raw, whole)
					}
					if len(g.Message) > RetainSmall { // it came whole
						g.Message = g.Message[:RetainSmall]
					}
					g.Off, g.Bytes, g.Raw, g.HasRaw, g.HasID = 0, 0, "", false, false
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("in reads of %d (-want +got):\n%s", size, d)
				}
			}
		})
	}
}

// TestLooseAnswers has lines that one kind of client takes an answer from and
// another skips.
func TestLooseAnswers(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{"id":1,"result":{}}`, "1 false"},
		{` [{"id":1,"result":{}},{"id":2,"result":{}}] ` + "\r", "1 false, 2 false"},
		{`{"id":1,"result":{"content":[` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `]}}`, "1 false"},
		{`not json {"id":1,"result":{}}`, "1 true"},
		{`7 {"id":1,"result":{}}`, "1 true"},
		{"junk\r" + `{"id":1,"result":{}}`, "1 true"},
		{"\uFEFF" + `{"id":1,"result":{}}`, "1 true"},
		{`{"id":1,"result":{},}`, "1 true"},
		{`{"id":1,"result":{}}}`, "1 true"},
		{`{"id":1,"result":{}} done`, "1 true"},
		{`{"id":1,"result":{}}{"id":2,"result":{}}`, "1 true, 2 true"},
		{`[{"id":1,"result":{}},]`, "1 true"},
	} {
		in := []byte(`{"id":0,"result":{}}` + "\n" + tt.line + "\n" + `{"id":9,"result":{}}` + "\n")
		var got []string
		for _, m := range new(Answers).Scan(in) {
			got = append(got, fmt.Sprintf("%s %t", m.ID, m.Loose))
		}
		if want := "0 false, " + tt.want + ", 9 false"; strings.Join(got, ", ") != want {
			t.Errorf("answers of %q are %q, want %q", tt.line, got, want)
		}
	}
}

func TestAnswersRetain(t *testing.T) {
	var a Answers
	line := []byte(`{"id":1,"result":{"x":"` + strings.Repeat("x", 3*RetainSmall) + "\"}}\n")
	if got := listen(&a, line, 1000); got[0].HasRaw {
		t.Error("kept, not retained")
	}
	a.Scan(line[:10])
	a.Retain(true) // counts from the next line on
	if got := listen(&a, line[10:], 1000); got[0].HasRaw {
		t.Error("the line under way was retained")
	}
	if got := listen(&a, line, 1000); got[0].Raw != string(line[:len(line)-1]) {
		t.Error("retained, not kept")
	}
	a.Retain(false)
	if got := listen(&a, line, 1000); got[0].HasRaw {
		t.Error("kept, no longer retained")
	}
}

// TestAnswersStay checks an answer of several reads after the next one replaced
// it in memory.
func TestAnswersStay(t *testing.T) {
	for _, n := range []int{0, 2 * RetainSmall} {
		var a Answers
		line := func(id string) string {
			return `{"id":"` + id + `","result":{"x":"` + strings.Repeat("x", n) + `"}}`
		}
		first, second := line("first"), line("second")
		a.Scan([]byte(first[:len(first)-1]))
		got := a.Scan([]byte("}\n" + second[:len(second)-1]))
		if len(got) != 1 || string(got[0].ID) != `"first"` || n == 0 && string(got[0].Raw) != first {
			t.Errorf("told %s, want %s", got[0].Raw, first)
		}
		if got = a.Scan([]byte("}\n")); len(got) != 1 || string(got[0].ID) != `"second"` {
			t.Errorf("told %v, want the second", got)
		}
	}
}

// TestAnswersMemory passes an answer of 256 MiB.
func TestAnswersMemory(t *testing.T) {
	var a Answers
	a.Scan([]byte(`{"id":1,"result":{"content":[{"text":"`))
	p := bytes.Repeat([]byte(`a\nb `), 1<<16/5)
	base := heap()
	for range 256 << 20 / len(p) {
		a.Scan(p)
	}
	got := a.Scan([]byte("\"}],\"_meta\":{\"error_type\":\"x\"}}}\n"))
	if len(got) != 1 || string(got[0].ErrorType) != `"x"` {
		t.Errorf("told %v", got)
	}
	if used := heap() - base; used > 2<<20 {
		t.Errorf("%d bytes of heap more than before", used)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys) - int64(m.HeapReleased)
}

func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"result":{"isError":true,"_meta":{"error_type":"X"}}}`, `[{"id":1,"error":{"code":1,"message":"\"m"}},{"id":"\\"}]` + "\r\n{}",
		"{\"id\":\n{\"id\":2}\n", `{"a":"\\\"` + "\n" + `{"result":{"task":{},"resultType":"x"},"id":1.5}`,
	} {
		f.Add([]byte(s), uint16(1), uint16(7))
	}
	f.Fuzz(func(t *testing.T, data []byte, x, y uint16) {
		data = append(data, '\n')
		whole := listen(&Answers{}, data)
		if d := cmp.Diff(whole, listen(&Answers{}, data, int(x), int(y))); d != "" {
			t.Fatalf("at once (-) and in pieces (+):\n%s", d)
		}
		var off int64
		for line := range bytes.Lines(data) {
			var here []answered
			for _, a := range whole {
				if off <= a.Off && a.Off < off+int64(len(line)) {
					here = append(here, a)
				}
			}
			agree(t, line, here)
			off += int64(len(line))
		}
	})
}

// agree compares the answers of a line with encoding/json's.
func agree(t *testing.T, line []byte, got []answered) {
	t.Helper()
	var m map[string]json.RawMessage
	if bytes.ContainsRune(line, '\uFFFD') || json.Unmarshal(line, &m) != nil || m == nil {
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d answers in %q", len(got), line)
	}
	g := got[0]
	_, hasResult := m["result"]
	e, hasError := m["error"]
	want := []any{string(m["id"]), hasResult, hasError && e[0] != 'n'}
	if d := cmp.Diff(want, []any{g.ID, g.HasResult, g.HasError}); d != "" {
		t.Fatalf("%q (-encoding/json +got):\n%s", line, d)
	}
	var result, meta map[string]json.RawMessage
	if json.Unmarshal(m["result"], &result) == nil {
		json.Unmarshal(result["_meta"], &meta) // an error leaves it nil, as intended
	}
	if et := string(meta["error_type"]); strings.HasPrefix(et, `"`) != (g.ErrorType != "") || g.ErrorType != "" && g.ErrorType != et {
		t.Fatalf("error_type %s of %q, want %s", g.ErrorType, line, et)
	}
	if is := string(result["isError"]) == "true"; is != g.IsError {
		t.Fatalf("isError %v of %q", g.IsError, line)
	}
}

// TestAnswersSoup is FuzzAnswers on sequences of tokens.
func TestAnswersSoup(t *testing.T) {
	tokens := []string{
		"{", "}", "[", "]", ",", ":", "}", "\n", "\r", " ", `"id":`, "1", `"result":{`, `"error":{"code":1}`, `"isError":true`, `"isError":`, `"_meta":{`,
		`"error_type":"x"`, `"\\\""`, `"`, `\`, "null", `{"id":1,"result":{}}`, "\xEF", "\xBB", "\xBF", `"task":{}`, `"message":"` + strings.Repeat("m", 50) + `"`,
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		var data []byte
		for range 1 + r.IntN(25) {
			data = append(data, tokens[r.IntN(len(tokens))]...)
		}
		whole := listen(&Answers{}, data)
		if d := cmp.Diff(whole, listen(&Answers{}, data, r.IntN(20), r.IntN(20), 1+r.IntN(20))); d != "" {
			t.Fatalf("%q at once (-) and in pieces (+):\n%s", data, d)
		}
		for _, line := range bytes.Split(data, []byte{'\n'}) {
			agree(t, append(line, '\n'), listen(&Answers{}, line))
		}
	}
}

func BenchmarkAnswers(b *testing.B) {
	for _, size := range []int{100, 8 << 10, 1 << 20, 64 << 20} {
		text := strings.Repeat("all work and no play makes jack a dull boy, ", size/44+1)[:size]
		line := []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"` + text + "\"}],\"isError\":false}}\n")
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var a Answers
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := line; len(rest) > 0; {
					n := min(len(rest), 64<<10)
					a.Scan(rest[:n])
					rest = rest[n:]
				}
			}
		})
	}
}

// BenchmarkAnswersEscapes has a text with many escapes.
func BenchmarkAnswersEscapes(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`{\"pane_id\":\"%1\"}\n`, 400) + "\"}]}}\n")
	var a Answers
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		a.Scan(line)
	}
}
