package mcpproxy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
)

// With any number of declared tools, the first maxTools are kept, and kept up
// to date.
func TestMoreToolsThanAreKept(t *testing.T) {
	c, _ := testSession(t)
	listing := func(tier string) []byte {
		var b strings.Builder
		for i := range maxTools + 10 {
			fmt.Fprintf(&b, `,{"name":"t%d","_meta":{"fastmcp":{"tags":[%q]}}}`, i, tier)
		}
		return []byte(`{"tools":[` + b.String()[1:] + `]}`)
	}
	for _, tier := range []string{"readonly", "destructive"} {
		tools := &c.s.tools
		tools.told(len(tools.fresh))
		if tools.read(c.s.red, listing(tier), ""); len(tools.fresh) != maxTools {
			t.Errorf("%d new definitions of tools that are %s now, want %d", len(tools.fresh), tier, maxTools)
		}
		if len(tools.byRaw) != maxTools {
			t.Fatalf("%d tools are known, want %d", len(tools.byRaw), maxTools)
		}
		if got := tools.byRaw["t0"].tier; got != tier {
			t.Errorf("tier %q, want %q", got, tier)
		}
	}
}

// A definition that is not strict JSON hides neither itself nor the ones after
// it: Python servers write NaN, and Python clients read it. Some read an answer behind
// words, too.
func TestToolsInLenientJSON(t *testing.T) {
	c, _ := testSession(t)
	tools := &c.s.tools
	tools.read(c.s.red, []byte(`{"tools":[{"name":"a","inputSchema":{"default":NaN}},`+
		`{"name":"b","_meta":{"fastmcp":{"tags":["readonly","destructive",]}}},]}`), "")
	if tools.byRaw["a"] == nil || tools.byRaw["b"] == nil || tools.byRaw["b"].tier != "destructive" {
		t.Errorf("tools %v, want a, and b that is destructive", tools.byRaw)
	}
	intend(t, c, &wire.Message{ID: []byte("1"), Method: []byte(`"tools/list"`)})
	c.s.finish([]wire.Answer{{Raw: []byte(`{"result":{"tools":[{"name":"c"}]}}`), ID: []byte("1"), HasResult: true, Loose: true}}, false)
	if tools.byRaw["c"] == nil {
		t.Error("tools in an answer behind words are not known")
	}
	answer := `{"result":{"content":[{"type":"text","text":"x","score":NaN},{"type":"image"},{"text":5},{"type":"text","text":"y"}]}}`
	if got := string(contentText([]byte(answer))); got != "x\ny" {
		t.Errorf("text of a failed call is %q, want %q", got, "x\ny")
	}
}

// Dropped tools are reported once in a session.
func TestDroppedToolsAreTold(t *testing.T) {
	c, j := testSession(t)
	var b strings.Builder
	for i := range maxTools + 10 {
		fmt.Fprintf(&b, `,{"name":"t%d"}`, i)
	}
	for id := range 3 {
		m := wire.Message{Raw: []byte(`{}`), ID: fmt.Append(nil, id), Method: []byte(`"tools/list"`)}
		intend(t, c, &m)
		raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}`, id, b.String()[1:])
		c.s.finish([]wire.Answer{{Raw: []byte(raw), ID: fmt.Append(nil, id), HasResult: true, Bytes: int64(len(raw))}}, false)
	}
	c.s.end(audit.ErrNoResponse)
	told := 0
	records := j.records(t)
	for _, r := range records {
		if slices.Contains(r.Anomalies, "tools_dropped") && r.Kind == audit.KindAnomaly {
			told++
		}
	}
	if told != 1 {
		t.Errorf("dropped tools are told %d times, want once", told)
	}
	dense(t, records)
}

// A page that a client skips, or asks for in another order, makes no tool of the
// others unknown. A listing that was read whole does.
func TestSkippedPagesAreKept(t *testing.T) {
	c, _ := testSession(t)
	page := func(tool, next string) []byte {
		if next == "" {
			return []byte(`{"tools":[{"name":"` + tool + `"}]}`)
		}
		return []byte(`{"tools":[{"name":"` + tool + `"}],"nextCursor":"` + next + `"}`)
	}
	long := strings.Repeat("x", 2000)
	first, second, third := page("a", "two"), page("b", "three"), page("c", "")
	for _, tt := range []struct {
		name  string
		reads func(tools *tools)
		known bool // the tool of the second page, that was read before
	}{
		{"the second left out", func(tools *tools) {
			tools.read(c.s.red, first, "")
			tools.read(c.s.red, third, cursorOf([]byte(`"three"`)))
		}, true},
		{"another cursor", func(tools *tools) {
			tools.read(c.s.red, first, "")
			tools.read(c.s.red, third, cursorOf([]byte(`2`)))
		}, true},
		{"cursors that are too long", func(tools *tools) {
			tools.read(c.s.red, page("a", long), "")
			tools.read(c.s.red, third, cursorOf([]byte(`"`+long+`y"`)))
		}, true},
		{"all in order", func(tools *tools) {
			tools.read(c.s.red, first, "")
			tools.read(c.s.red, page("d", "three"), cursorOf([]byte(`"t\u0077o"`)))
			tools.read(c.s.red, third, cursorOf([]byte(`"three"`)))
		}, false},
		{"one page", func(tools *tools) { tools.read(c.s.red, third, "") }, false},
	} {
		tools := newTools(nil)
		tools.read(c.s.red, first, "")
		tools.read(c.s.red, second, cursorOf([]byte(`"two"`)))
		tools.read(c.s.red, third, cursorOf([]byte(`"three"`)))
		if len(tools.byRaw) != 3 {
			t.Fatalf("%d tools after a whole listing", len(tools.byRaw))
		}
		if tt.reads(&tools); (tools.byRaw["b"] != nil) != tt.known {
			t.Errorf("%s: the tool of the second page is known: %t, want %t", tt.name, !tt.known, tt.known)
		}
	}
}

// TestHeldListingIsReadOnce sends a listing a byte at a time: it would take a quarter of
// an hour if all that is held were looked at again for each read, as it does beside the
// race detector, which does so. That gets a short one.
func TestHeldListingIsReadOnce(t *testing.T) {
	a, err := risk.New(risk.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load([]byte(`{"version":"1","default":"allow","hide":["b"]}`), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	c := testClient(t, Config{Redactor: red, Journal: &lines{}, Log: zap.NewNop(), Gate: Gate{Risk: a, Policy: p, Mode: policy.Enforce, Counters: &policy.Memory{}}})
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	v := &serverSide{s: c.s, out: newOutput(file)}
	intend(t, c, &wire.Message{Raw: []byte(`{}`), ID: []byte("1"), Method: []byte(`"tools/list"`)})
	size := 2 << 20
	if testing.Short() {
		size = 32 << 10
	}
	long := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"` + strings.Repeat("x", size) + `"}`
	for _, read := range bytewise([]byte(long + `,{"name":"b"}]}}` + "\n")) {
		v.answered(read)
	}
	got, err := os.ReadFile(file.Name())
	if want := long + "]}}\n"; err != nil || string(got) != want {
		t.Errorf("the client gets %d bytes, %v, want the %d without the hidden tool", len(got), err, len(want))
	}
}
