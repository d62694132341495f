package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

func encode64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// hostile returns records of all kinds, and such as no proxy would write.
func hostile() []audit.Record {
	code, low := int64(-32602), int64(math.MinInt64)
	list := []audit.Record{
		call(1), call(2, func(r *audit.Record) { r.Kind, r.Outcome = audit.KindOpen, "" }),
		call(3, func(r *audit.Record) { r.TraceID, r.SpanID = strings.Repeat("0", 32), "00f067aa0ba902b7" }),
		call(4, func(r *audit.Record) { r.TraceID, r.SpanID = strings.Repeat("z", 32), "zzf067aa0ba902b7" }),
		call(5, func(r *audit.Record) { r.TraceID, r.SpanID = "4bf92f3577b34da6a3ce929d0e0e4736", "" }),
		call(6, func(r *audit.Record) { r.TS = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC) }),
		call(7, func(r *audit.Record) { r.TS = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }),
		call(8, func(r *audit.Record) { r.Duration = math.MaxInt64 / 1000 * 1000 }),
		call(9, func(r *audit.Record) { r.Approval = `{"outcome":"approved","wait_ms":9223372036854775807}` }),
		call(10, func(r *audit.Record) { r.Seq, r.CallNo = math.MaxUint64, math.MaxUint64 }),
		call(11, func(r *audit.Record) {
			r.Outcome, r.ErrorType, r.ErrorCode = audit.OutcomeError, audit.ErrJSONRPC, &code
		}),
		call(12, func(r *audit.Record) { r.Outcome, r.ErrorCode = audit.OutcomeError, &low }),
		call(13, func(r *audit.Record) { r.Method, r.Tool, r.Target = "prompts/get", "", "greeting" }),
		call(14, func(r *audit.Record) { r.Method, r.Tool, r.Target = "resources/read", "", "file:///etc/passwd" }),
		call(15, func(r *audit.Record) { r.Method, r.Tool, r.At, r.Bytes = "", "", 7, 12 }),
		call(16, func(r *audit.Record) {
			r.Tool, r.Host = "a\x00b\x1b[2J\u202e\ufffd"+strings.Repeat("ü", 200), "\x00host\n"
		}),
		call(17, func(r *audit.Record) { r.Args = `{"a":"\ud800","\udfff":1,"b":"\u0000"}` }),
		call(18, func(r *audit.Record) {
			r.Policy = `{"decision":"allow","decision":"deny","reason":"\ud800x","unknown":{"a":1},"count":1.5,"max":null,"applied":"yes"}`
		}),
		call(19, func(r *audit.Record) { r.Risk, r.Detections = `{}`, `[]` }),
		call(20, func(r *audit.Record) { r.Args = audit.JSON(`{"x":"` + strings.Repeat("a", 255<<10) + `"}`) }),
		call(21, func(r *audit.Record) {
			r.Args = audit.JSON(`{"` + strings.Repeat("n", 5000) + `":{"operations":[` + strings.Repeat(`{"tool":"t"},`, 2000) + `{"tool":"t"}]}}`)
		}),
		call(22, func(r *audit.Record) { // 80 levels of operations
			r.Args = audit.JSON(strings.Repeat(`{"operations":[{"tool":"t","arguments":`, 80) + `{"x":"` + strings.Repeat("y", 100_000) + `"}` + strings.Repeat(`}]}`, 80))
		}),
		call(23, func(r *audit.Record) { r.SessionID = "not-a-uuid" }),
		{Kind: "future", SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab", RecordID: "019e8b1c-4a10-7aaa-8bbb-00000000ffff", TS: testStart},
	}
	for i, kind := range []audit.Kind{audit.KindSessionStart, audit.KindSessionEnd, audit.KindAnomaly, audit.KindGap, audit.KindPolicy, audit.KindCheckpoint} {
		list = append(list, audit.Record{
			Kind: kind, RecordID: fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012x", 1000+i), SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab", Seq: uint64(100 + i),
			TS: testStart, From: testStart, To: testStart.Add(time.Minute), Count: 3, Anomalies: []string{"late_answer"}, Host: fmt.Sprint("h", i),
			Evidence: `{"origin":"auditproxy/h"}`,
		})
	}
	return list
}

// TestSizes sends records that are as large as they can be, and such that have
// spans for megabytes. Every request is one that receivers take.
func TestSizes(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		f := &fake{}
		var list []audit.Record
		large := hostile()[19:22]
		for i := range 60 {
			r := large[i%3]
			r.RecordID, r.Host = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012x", i+1), fmt.Sprint(i/7)
			list = append(list, r)
		}
		for i := range 3000 { // streams that all differ
			list = append(list, call(1000+i, func(r *audit.Record) {
				r.Tool, r.ProtocolVersion = fmt.Sprint(i, strings.Repeat("𝄞", 250)), strings.Repeat("𝄞", 255)
			}))
		}
		sent := records(t, list...)
		if err := start(t, f, protocol).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		logsOnly := &fake{}
		if err := start(t, logsOnly, protocol, func(c *Config) { c.Signals = []Signal{Logs} }).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		for _, size := range append(logsOnly.sizes, f.sizes...) {
			if size > 4<<20 {
				t.Errorf("a request has %d bytes", size)
			}
		}
		if list, _ := f.logRecords(); len(list) != len(sent) {
			t.Errorf("%d log records of %d", len(list), len(sent))
		}
		// The receiver keeps each stream: there are not more than the limit.
		points, count := 0, uint64(0)
		for _, m := range f.metrics {
			for _, p := range m.ScopeMetrics[0].Metrics[0].GetHistogram().DataPoints {
				points++
				count += p.Count
			}
		}
		if points != maxStreams+1 || count != uint64(len(sent)) {
			t.Errorf("%d points of %d calls", points, count)
		}
	})
}

// TestHostile sends records whose texts and times are the worst that a record can
// have.
func TestHostile(t *testing.T) {
	f := &fake{}
	r := start(t, f, GRPC)
	sent := records(t, hostile()...)
	sent[0].Record.User = "a\xff" // no parser gives this
	if err := r.Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	list, _ := f.logRecords()
	byID := map[string]map[string]string{}
	for _, l := range list {
		a := texts(l.Attributes)
		byID[a["log.record.uid"]] = a
		for k, v := range a {
			if strings.HasPrefix(v, "duplicate") {
				t.Errorf("%s of %s: %s", k, a["log.record.uid"], v)
			}
		}
		if l.TimeUnixNano > math.MaxInt64 {
			t.Errorf("the time of %s is %d", a["log.record.uid"], l.TimeUnixNano)
		}
	}
	if r := sent[23]; r.Record.Kind.Known() || byID[r.Record.RecordID]["log.record.original"] != r.Raw {
		t.Errorf("a newer proxy's record is %q", byID[r.Record.RecordID])
	}
	if got := byID[sent[0].Record.RecordID]["user.name"]; got != "a\uFFFD" {
		t.Errorf("the user is %q", got)
	}
	if len(byID) != len(sent) {
		t.Errorf("%d of %d records", len(byID), len(sent))
	}
	policy := byID[sent[17].Record.RecordID]
	if diff := cmp.Diff([]string{"deny", "\uFFFDx", "1.5", "", "yes"}, []string{
		policy["auditproxy.policy.decision"], policy["auditproxy.policy.reason"], policy["auditproxy.policy.count"], policy["auditproxy.policy.max"], policy["auditproxy.policy.applied"],
	}); diff != "" {
		t.Error("the policy (-want +got):\n" + diff)
	}
	seen := map[string]bool{}
	for _, s := range f.allSpans() {
		id := hex.EncodeToString(append(s.TraceId, s.SpanId...))
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || id == strings.Repeat("0", 48) || seen[id] || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("the span %v", s)
		}
		seen[id] = true
		if a := texts(s.Attributes); strings.HasPrefix(s.Name, "tools/call pipe_pane") && len(s.ParentSpanId) != 0 {
			t.Errorf("%s has a parent: %x", a["auditproxy.record_id"], s.ParentSpanId)
		}
	}
}

// TestOperations sends the operations of a batch call as child spans.
func TestOperations(t *testing.T) {
	f := &fake{}
	r := call(58, func(r *audit.Record) {
		r.Args = `{"operations":[{"tool":"a","arguments":{"k":1}},{"tool":"b","arguments":{"operations":[{"tool":"c","tool":"d","arguments":{}}]}}],"operations":[{"tool":"e"}]}`
		r.Candidates = []audit.Candidate{{Method: "tools/call", Tool: "other", Args: `{"operations":[{"tool":"x"}]}`}}
	})
	rec := start(t, f, HTTP)
	for range 2 { // the ids are those of the record
		if err := rec.Send(t.Context(), records(t, r)); err != nil {
			t.Fatal(err)
		}
	}
	type row struct{ Name, Path, Parent, Args string }
	var got []row
	names := map[string]string{}
	spans := f.allSpans()
	n := len(spans) / 2
	for i, s := range spans {
		if i >= n && (hex.EncodeToString(s.SpanId) != hex.EncodeToString(spans[i-n].SpanId)) {
			t.Errorf("the span %q has another id the second time", s.Name)
		}
		if i < n {
			a := texts(s.Attributes)
			names[hex.EncodeToString(s.SpanId)] = s.Name
			got = append(got, row{s.Name, a["auditproxy.operation.path"], names[hex.EncodeToString(s.ParentSpanId)], a["gen_ai.tool.call.arguments"]})
		}
	}
	call := "tools/call pipe_pane"
	want := []row{
		{call, "", "", string(r.Args)},
		{"tools/call a", "operations[0]", call, `{"k":1}`},
		{"tools/call b", "operations[1]", call, ""},
		{"tools/call d", "operations[1].arguments.operations[0]", "tools/call b", `{}`},
		{"tools/call e", "operations[0]", call, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(names) != len(want) {
		t.Errorf("%d different ids (-want +got):\n%s", len(names), diff)
	}
	if got := texts(spans[0].Attributes)["auditproxy.operations"]; got != "int_value:4" {
		t.Errorf("the number of operations is %s", got)
	}
}

// TestDocument compares the names in docs/opentelemetry.md with those in the code.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/opentelemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`[\x60"](auditproxy\.[a-z_.]+)[\x60"]`)
	names := func(text []byte) map[string]bool {
		m := map[string]bool{}
		for _, match := range name.FindAllSubmatch(text, -1) {
			m[string(match[1])] = true
		}
		return m
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			maps.Copy(code, names(text))
		}
	}
	if diff := cmp.Diff(code, names(page)); diff != "" || len(code) < 60 {
		t.Error("the attributes (-code +document):\n" + diff)
	}
}
