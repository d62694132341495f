package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestOversize follows a call that is larger than Limit: the name comes after
// the arguments.
func TestOversize(t *testing.T) {
	const size = 40 << 20
	head := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":{"small":[1],"k":"`
	tail := `","after":true},"name":"evil"}}`
	text := strings.Repeat("s3cret", size/6)
	f := newFeeder(Limit)
	begun := -1
	f.check = func() {
		if begun < 0 && len(f.told) > 0 {
			begun = len(f.ready)
		}
		if len(f.told) == 0 && len(f.ready) > 0 {
			t.Fatal("passed on before it was told")
		}
	}
	told := f.feed(t, []byte(head+text+tail+"\n"+call+"\n"), 100_000)
	if begun > Limit+maxRead {
		t.Errorf("told after %d bytes", begun)
	}
	sum := func(s string) string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(s))) }
	small := `"small" array 3 ` + sum("[1]") + ";"
	want := []seen{
		{State: Begun, End: Limit, ID: "2", Method: `"tools/call"`, Parts: small + `"k" string 0 ;`, Anomalies: Oversize, Open: true},
		{State: Ended, End: int64(len(head + text + tail)), ID: "2", Method: `"tools/call"`, Name: `"evil"`,
			ArgsBytes: int64(len(head[68:]+text+tail) - len(`,"name":"evil"}}`)),
			Parts:     small + fmt.Sprintf(`"k" string %d %s;"after" boolean 4 %s;`, len(text)+2, sum(`"`+text+`"`), sum("true")), Anomalies: Oversize},
	}
	if len(told) != 3 || told[2].State != Complete {
		t.Fatalf("%d messages", len(told))
	}
	for i, w := range want {
		if told[i] != w {
			t.Errorf("told %+v\nwant %+v", told[i], w)
		}
	}
}

// TestOversizeCandidates has arguments of other readings in an oversize
// message: before the limit, across it and after it.
func TestOversizeCandidates(t *testing.T) {
	digest := func(s string) string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(s))) }
	long := strings.Repeat("x", 200)
	for _, tt := range []struct{ params, parts, candidates string }{
		{`"Arguments":{"a":[1]},"arguments":{"k":"` + long + `"},"name":"n"`,
			`"k" string 202 ` + digest(`"`+long+`"`) + ";",
			`"tools/call" "n" with "a" array 3 ` + digest("[1]") + ",;"},
		{`"arguments":{"a":[1]},"ARGUMENTS":{"b":true,"k":"` + long + `"},"name":"n"`,
			`"a" array 3 ` + digest("[1]") + ";",
			`"tools/call" "n" with "b" boolean 4 ` + digest("true") + `,"k" string 202 ` + digest(`"`+long+`"`) + ",;"},
		{`"arguments":{"k":"` + long + `"},"name":"n"},"Params":{"arguments":{"a":1}`,
			`"k" string 202 ` + digest(`"`+long+`"`) + ";",
			`"tools/call"  with "a" number 1 ` + digest("1") + `,;"tools/call" "n" with "a" number 1 ` + digest("1") + ",;"},
	} {
		told := newFeeder(128).feed(t, []byte(with("{"+tt.params+"}")+"\n"))
		last := told[len(told)-1]
		if last.State != Ended || last.Parts != tt.parts || last.Candidates != tt.candidates {
			t.Errorf("%s:\ntold %+v", tt.params, last)
		}
		for _, m := range told {
			if strings.Contains(tt.params[:60], "Arguments") && !strings.Contains(m.Candidates+m.Parts, `"a" array 3`) {
				t.Errorf("%s: not told in %+v", tt.params, m)
			}
		}
	}
}

// TestOversizeIsBroken ends a Begun call when its line breaks off.
func TestOversizeIsBroken(t *testing.T) {
	for _, tail := range []string{"\n", "", "\"}]", "\"}]\n", "\r\n" + ping + "\n"} {
		f := newFeeder(64)
		told := f.feed(t, []byte(`{"method":"tools/call","params":{"name":"evil","arguments":{"k":"`+strings.Repeat("x", 100)+tail))
		if told[0].State != Begun || told[1].State != Ended || told[1].Anomalies&NotJSON == 0 ||
			told[1].Method != "" || told[1].Candidates != `"tools/call" "evil";` {
			t.Errorf("%q: told %v", tail, told)
		}
	}
}

// TestOversizeOpaque reports an unreadable line before more than the limit of
// it is forwarded.
func TestOversizeOpaque(t *testing.T) {
	junk := strings.Repeat("}", Limit+100)
	told := newFeeder(Limit).feed(t, []byte(junk+"\n"+call+"\n"), 50_000)
	want := []seen{
		{State: Begun, End: Limit, Sum: fmt.Sprintf("%.4x", sha256.Sum256([]byte(junk[:Limit]))), Anomalies: NotJSON | Oversize, Open: true},
		{State: Opaque, End: Limit + 100, Sum: fmt.Sprintf("%.4x", sha256.Sum256([]byte(junk))), Anomalies: NotJSON | Oversize},
	}
	if len(told) != 3 || !slices.Equal(told[:2], want) || told[2].State != Complete {
		t.Errorf("told %+v", told)
	}
}

// TestOversizeBlank reports white space that JSON does not have once it is longer
// than what is kept, and counts it with what follows. Before a message it is
// dropped.
func TestOversizeBlank(t *testing.T) {
	digest := func(s string) string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(s))) }
	nuls := strings.Repeat("\x00", 100)
	for _, tt := range []struct {
		line string
		want []seen
	}{
		{nuls, []seen{
			{State: Begun, End: 64, Sum: digest(nuls[:64]), Anomalies: NotRPC | ControlCharacter | Oversize, Open: true},
			{State: Opaque, End: 100, Sum: digest(nuls), Anomalies: NotRPC | ControlCharacter | Oversize}}},
		{nuls[:60] + "}xxxx", []seen{
			{State: Begun, End: 64, Sum: digest(nuls[:60] + "}xxx"), Anomalies: NotJSON | ControlCharacter | Oversize, Open: true},
			{State: Opaque, End: 65, Sum: digest(nuls[:60] + "}xxxx"), Anomalies: NotJSON | ControlCharacter | Oversize}}},
		{nuls[:60] + `{"a":}x`, []seen{
			{State: Opaque, Off: 60, End: 67, Raw: `{"a":}x`, Anomalies: NotJSON | ControlCharacter}}},
		{nuls[:30] + `{"a":}` + nuls[:30], []seen{
			{State: Begun, End: 64, Sum: digest(nuls[:30] + `{"a":}` + nuls[:28]), Anomalies: NotJSON | ControlCharacter | Oversize, Open: true},
			{State: Opaque, End: 66, Sum: digest(nuls[:30] + `{"a":}` + nuls[:30]), Anomalies: NotJSON | ControlCharacter | Oversize}}},
		{`{"method":"m",` + nuls[:90] + `"a":1}`, []seen{
			{State: Begun, End: 64, Method: `"m"`, Anomalies: ControlCharacter | Oversize, Open: true},
			{State: Ended, End: 110, Method: `"m"`, Anomalies: NotRPC | NoID | ControlCharacter | Oversize}}},
	} {
		for _, cuts := range [][]int{nil, {1, 1, 1, 1}, {63}, {64}, {61, 1, 1, 1}} {
			if told := newFeeder(64).feed(t, []byte(tt.line+"\n"), cuts...); !slices.Equal(told, tt.want) {
				t.Errorf("%q cut at %d:\ntold %+v\nwant %+v", tt.line, cuts, told, tt.want)
			}
		}
	}
}

// TestOversizeOverLines has reads that end with a line, or a CR, in digested
// bytes.
func TestOversizeOverLines(t *testing.T) {
	digest := func(s string) string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(s))) }
	for _, end := range []string{"\n", "\r", "\r\n", "\n\n"} {
		head := "[" + strings.Repeat("1,", 100) + end
		told := newFeeder(64).feed(t, []byte(head+"2]\n"), 64, 64, 64, len(head)-3*64)
		line := strings.TrimSuffix(head, "\n")
		line = strings.TrimSuffix(line, "\n")
		if end == "\r" {
			line += "2]"
		}
		if first := told[1]; told[0].State != Begun || first.State != Opaque || first.Sum != digest(line) {
			t.Errorf("after %q: told %v", end, told)
		}
		start := `{"method":"tools/call","params":{"name":"evil","arguments":{"k":`
		told = newFeeder(64).feed(t, []byte(start+head+"2]}}}\n"), 64, 64, 64, 64, len(start+head)-4*64)
		want := fmt.Sprintf(`"k" array %d %s;`, len(head)+2, digest(head+"2]"))
		if last := told[len(told)-1]; last.State != Ended || last.Parts != want {
			t.Errorf("after %q: told %v, want parts %s", end, told, want)
		}
	}
}

// TestOversizeBreaksOff has an oversize value break off in the middle of a
// read, when nothing of it is in the window any more.
func TestOversizeBreaksOff(t *testing.T) {
	junk := "[\n" + strings.Repeat("1,\n ", 45) + "2 "
	told := newFeeder(64).feed(t, []byte(junk+"3 [\n"+ping+"\n"), len("[\n")+60, 60, len(junk)+len("3 [")-122, 1)
	for i, s := range told[:len(told)-1] {
		if s.State != Opaque || s.Sum != "" || s.Off != int64(max(0, 4*i-2)) {
			t.Errorf("line %d: told %v", i, s)
		}
	}
	if told[len(told)-1].Method != `"ping"` {
		t.Errorf("told %v", told)
	}
}

// TestOversizeMembers keeps the last of very many small values.
func TestOversizeMembers(t *testing.T) {
	f := newFeeder(64)
	var b strings.Builder
	b.WriteString(`{"x":"` + strings.Repeat("x", 64) + `"`)
	for i := range 1000 {
		fmt.Fprintf(&b, `,"id":%d,"method":"m%d"`, i, i)
	}
	told := f.feed(t, []byte(b.String()+"}\n"))
	if last := told[len(told)-1]; last.ID != "999" || last.Method != `"m999"` {
		t.Errorf("told %v", last)
	}
	if n := cap(f.q.readings[0].outer.part); n > 1 {
		t.Errorf("a stack of %d words", n)
	}
}

// TestOversizeValues has long values in an oversize message: they are reported
// cut and forwarded whole.
func TestOversizeValues(t *testing.T) {
	name := strings.Repeat("é", keptValue)
	in := with(`{"arguments":{"k":"`+strings.Repeat("x", 64)+`"},"name":"`+name+`","uri":"`+strings.Repeat("é\xFF", 100)+`"}`) + "\n"
	for _, size := range []int{1, 7, 64} {
		told := newFeeder(64).feed(t, []byte(in), size)
		last := told[len(told)-1]
		if last.State != Ended || last.Name != `"`+name[:keptValue-1] || last.Anomalies != Oversize|InvalidUTF8 {
			t.Errorf("in reads of %d: a name of %d bytes, %v", size, len(last.Name), last.Anomalies.Append(nil))
		}
	}
}

// TestBatchDoesNotWait reports the first members of a very long batch before
// its end, unless it has anything else in it.
func TestBatchDoesNotWait(t *testing.T) {
	q := NewRequests(Config{Hash: sha256.New})
	members := []byte("[" + strings.Repeat(`{"method":"m"},`, MaxBatch))
	if q.Scan(copy(q.Space(), members)); len(q.Ready()) > 0 {
		t.Error("passed on before the end of the batch")
	}
	if q.Scan(copy(q.Space(), members[1:])); len(q.Ready()) != 2*len(members)-1 {
		t.Errorf("%d bytes passed on, want all", len(q.Ready()))
	}
	q = NewRequests(Config{Hash: sha256.New})
	junk := []byte("[1," + strings.Repeat(`{"method":"m"},`, MaxBatch+1))
	if q.Scan(copy(q.Space(), junk)); len(q.Ready()) > 0 {
		t.Error("members behind junk are passed on before it is told")
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"evil","arguments":{"k":` +
			strings.Repeat("[", n) + strings.Repeat("]", n) + "}}}\n" + ping + "\n"
	}
	const deepest = 1 << 12
	limited := func() *feeder {
		f := newFeeder(Limit)
		for i := range f.q.readings {
			f.q.readings[i].maxDepth = deepest
		}
		return f
	}
	for _, tt := range []struct {
		depth int
		want  Anomaly
		tail  State // of the second message
	}{
		{plainDepth - 3, 0, Complete},
		{plainDepth - 2, Depth, Complete},
		{deepest - 3, Depth, Complete},
	} {
		told := limited().feed(t, []byte(nested(tt.depth)), 100_000)
		if told[0].Name != `"evil"` || told[0].Anomalies != tt.want || told[1].State != tt.tail || told[len(told)-1].Method != `"ping"` {
			t.Errorf("depth %d: told %s, then %s", tt.depth, brief(told[0]), brief(told[1]))
		}
	}
	for _, depth := range []int{deepest - 2, deepest + 1000} {
		told := limited().feed(t, []byte(nested(depth)), 100_000)
		if told[0].State != Opaque || told[0].Anomalies != Depth || len(told) != 2 || told[1].Method != `"ping"` {
			t.Errorf("depth %d: told %s, then %s", depth, brief(told[0]), brief(told[1]))
		}
	}
	told := newFeeder(Limit).feed(t, []byte(strings.Repeat("[", 10<<20)+"\n"+ping+"\n"), 100_000)
	slices.SortFunc(told, func(a, b seen) int { return cmp.Compare(a.Off, b.Off) })
	if len(told) != 2 || told[0].State != Opaque || told[1].Method != `"ping"` {
		t.Errorf("told %d messages", len(told))
	}
}

// TestMembersBehindDepth has a call's deciding members after nesting that is
// deeper than most readers accept: V8 reads on.
func TestMembersBehindDepth(t *testing.T) {
	deep := strings.Repeat("[", 1<<20+70) + strings.Repeat("]", 1<<20+70)
	for _, tt := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":2,"x":` + deep + `,"method":"tools/call","params":{"name":"evil"}}`, `"tools/call" "evil": depth`},
		{with(`{"arguments":{"k":` + deep + `},"name":"evil"}`), `"tools/call" "evil": depth`},
		{with(`{"name":"list_panes","arguments":{"k":` + deep + `},"name":"evil"}`), `"tools/call" "evil" or "tools/call" "list_panes": duplicate_member depth`},
		{`{"jsonrpc":"2.0","id":2,"x":` + deep + `,"method":"ping","y":` + strings.ReplaceAll(strings.ReplaceAll(deep, "[", `{"":[`), "]", "]}") + `,"method":"tools/call","params":{"name":"evil"}}`,
			`"tools/call" "evil" or "ping" : duplicate_member depth`},
	} {
		for _, size := range []int{1 << 16, 1<<16 - 1} {
			told := newFeeder(Limit).feed(t, []byte(tt.in+"\n"+ping+"\n"), size)
			_, got, _ := strings.Cut(brief(told[0]), fmt.Sprintf("complete 0-%d ", len(tt.in)))
			if got != tt.want || len(told) != 2 || told[1].Method != `"ping"` {
				t.Errorf("told %.200s, want %s", got, tt.want)
			}
		}
	}
}

// TestAnswersBehindDepth has an answer's deciding members after deep nesting.
func TestAnswersBehindDepth(t *testing.T) {
	deep := strings.Repeat(`[{"":`, 1<<20) + "1" + strings.Repeat("}]", 1<<20)
	var a Answers
	got := a.Scan([]byte(`{"jsonrpc":"2.0","x":` + deep + `,"result":{"content":` + deep + `,"isError":true},"id":7}` + "\n"))
	if len(got) != 1 || string(got[0].ID) != "7" || !got[0].IsError {
		t.Errorf("got %d answers", len(got))
	}
}

// TestLevels pushes and pops as a slice would.
func TestLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	left := maxChunks
	l := levels{left: &left}
	var want []uint64
	for round := range 200 {
		word, same := r.Uint64(), r.IntN(2) == 0
		if n := r.IntN(4 * chunkWords); r.IntN(2) == 0 {
			for range n {
				if !same {
					word++
				}
				want = append(want, word)
				if !l.push(word) {
					t.Fatal("no room")
				}
			}
		} else {
			for range min(n, len(want)) {
				top := len(want) - 1
				if got := l.pop(); got != want[top] {
					t.Fatalf("round %d: level word %d is %x, want %x", round, top, got, want[top])
				}
				want = want[:top]
			}
		}
	}
	if l.clear(); left != maxChunks {
		t.Errorf("%d chunks are left of %d", left, maxChunks)
	}
	for i := range uint64(2 * maxChunks * chunkWords) {
		if !l.push(i) {
			if i < maxChunks*chunkWords {
				t.Errorf("room for %d words only", i)
			}
			return
		}
	}
	t.Error("room without end")
}

// TestMemory passes very long lines.
func TestMemory(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	many := bytes.Repeat([]byte(`{},`), 20<<10)
	for _, tt := range []struct {
		name, head string
		body       []byte
		tail       string
		mib        int
	}{
		{"a string", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":{"k":"`, text, `"},"name":"evil"}}` + "\n", 96},
		{"a number", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":{"k":`, bytes.Repeat([]byte("1"), 64<<10), `},"name":"evil"}}` + "\n", 96},
		{"a name", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"evil","arguments":{"`, text, `":1}}}` + "\n", 96},
		{"a value that is kept", `{"method":"tools/call","params":{"uri":"`, text, `","name":"evil"}}` + "\n", 96},
		{"many names", `{"method":"tools/call","params":{"name":"evil"},"id":2`, bytes.Repeat([]byte(`,"id":2`), 9<<10), "}\n", 20},
		{"a batch", "[", many, `{"method":"tools/call","params":{"name":"evil"}}]` + "\n", 20},
		{"values", "", bytes.Repeat([]byte(`{} `), 20<<10), `{"method":"tools/call","params":{"name":"evil"}}` + "\n", 20},
		{"words", "", bytes.Repeat([]byte(`1 `), 30<<10), `{"method":"tools/call","params":{"name":"evil"}}` + "\n", 20},
		{"lines of a value", `{"method":"tools/call","params":{"name":"evil","arguments":[1` + "\n", bytes.Repeat([]byte(",1\n"), 20<<10), "]}}\n", 20},
		{"a NUL in a message", `{"jsonrpc":"2.0",` + "\x00" + `"id":2,"method":"tools/call","params":{"arguments":{"k":"`, text, `"},"name":"evil"}}` + "\n", 96},
		{"a NUL in what cannot be read", "\x00}", text, "\n" + call + "\n", 96},
		{"a NUL in a value over lines", "{\"a\":\n\x00\"", text, "\"}\n" + call + "\n", 96},
		{"NULs", "", make([]byte, 64<<10), "\n" + call + "\n", 96},
		{"parts between CRs", "", bytes.Repeat([]byte("[\r"), 30<<10), "\n" + call + "\n", 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFeeder(Limit)
			pass := func(b []byte) {
				n := copy(f.q.Space(), b)
				for more := true; more; n, more = 0, f.q.More() {
					for _, fr := range f.q.Scan(n) {
						for _, m := range fr.Messages {
							f.calls[[2]string{start(m.Method), start(m.Name)}] = true
						}
					}
				}
			}
			debug.FreeOSMemory()
			base, top := heap(), int64(0)
			pass([]byte(tt.head))
			for i := range tt.mib << 20 / len(tt.body) {
				if pass(tt.body); i%64 == 0 {
					top = max(top, heap())
				}
			}
			pass([]byte(tt.tail))
			if !f.calls[[2]string{methodCall, "evil"}] {
				t.Error("the call was not told")
			}
			if used := (top - base) >> 20; used > 64 {
				t.Errorf("%d MiB of heap", used)
			}
		})
	}
}

// start is the start of a string.
func start(lit []byte) string { return text(lit[:min(len(lit), 100)]) }

// TestWindowShrinks lets the memory of a large message go, but not before the
// message has passed: another may follow.
func TestWindowShrinks(t *testing.T) {
	for _, size := range []int{8 << 20, 2 * Limit} {
		q := NewRequests(Config{Hash: sha256.New})
		for rest := with(`{"name":"evil","arguments":{"k":"`+strings.Repeat("x", size)+`"}}`) + "\n"; rest != ""; {
			n := copy(q.Space(), rest)
			q.Scan(n)
			rest = rest[n:]
		}
		if n := cap(q.window.buf); n < min(size, Limit) {
			t.Fatalf("after %d bytes, the window has %d", size, n)
		}
		for range idleReads + 1 {
			q.Scan(copy(q.Space(), call+"\n"))
		}
		if n := cap(q.window.buf); n > maxRead {
			t.Errorf("after %d bytes and others, the window has %d", size, n)
		}
	}
}

func benchmarkRequests(b *testing.B, stream []byte) {
	q := NewRequests(Config{Hash: sha256.New})
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := stream; len(rest) > 0; {
			n := copy(q.Space(), rest)
			q.Scan(n)
			rest = rest[n:]
		}
	}
}

// BenchmarkRequestsSmall is one call of about 300 bytes; a part of the time is
// the copy into the window.
func BenchmarkRequestsSmall(b *testing.B) {
	benchmarkRequests(b, []byte(`{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"_meta":{"progressToken":1234},"name":"send_keys",`+
		`"arguments":{"keys":"make test 2>&1 | tee /tmp/out.log","pane_id":"%12","session_name":"work","socket_name":"default","enter":true,`+
		`"literal":false,"suppress_history":true,"comment":"run the tests once more"}}}`+"\n"))
}

// BenchmarkRequestsMany has 256 short calls to a read.
func BenchmarkRequestsMany(b *testing.B) {
	benchmarkRequests(b, bytes.Repeat([]byte(call+"\n"), 256))
}

func BenchmarkRequestsLarge(b *testing.B) {
	for _, size := range []int{8 << 10, 1 << 20, 12 << 20, 64 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchmarkRequests(b, []byte(with(`{"name":"x","arguments":{"k":"`+strings.Repeat("x", size)+`"}}`)+"\n"))
		})
	}
}
