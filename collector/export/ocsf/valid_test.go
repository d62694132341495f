package ocsf_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/ocsf"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/jsontext"
)

var keep = flag.String("keep", "", "write the events of TestEventsAreValid to a file, for another validator")

// A generator makes lines that audit.Parse takes, also those that no proxy would
// write: each value at or beyond its bounds, duplicate members, JSON that readers
// differ on.
type generator struct{ *rand.Rand }

func pick[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

// text returns a JSON string.
func (g generator) text() string {
	switch g.IntN(8) {
	case 0:
		return `""`
	case 1:
		return `"` + strings.Repeat(pick(g, "a", "ä", "🦀", "\u2028", "\u202e", "\ufeff", "￿", " "), pick(g, 1, 1, 1, 2, 3, 200, 256)) + `"`
	case 2:
		return pick(g, `"\u0000"`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83e\udd80"`, `"\u000a\u000d\u0085\u2028"`, `"\n\r\t\b\f\/\\\""`, `"\\u000a"`, `"</script>"`)
	case 3:
		return pick(g, `"unknown"`, `"Read"`, `"0"`, `"null"`, `"{}"`, `"true"`, `"-1"`)
	}
	var b []byte
	for range g.IntN(20) {
		b = append(b, string(rune(g.IntN(0x11000)))...)
	}
	return string(jsontext.AppendQuote(nil, string(b)))
}

func (g generator) number() string {
	return pick(g, "0", "-0", "1", "-1", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296", "9007199254740993",
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "1e3", "1E400", "-1e-400", "0.001", "0.0000001", "1.5", "9223372036854.775")
}

func (g generator) space() string { return pick(g, "", "", "", " ", "\n", "\r\n", "\t") }

// value returns any JSON value.
func (g generator) value(depth int) string {
	if depth > 2 {
		return g.text()
	}
	switch g.IntN(9 + 3*depth) {
	case 0:
		return g.number()
	case 1:
		return pick(g, "true", "false", "null")
	case 2, 3:
		return g.object(depth)
	case 4:
		return g.list(depth, func() string { return g.value(depth + 1) })
	}
	return g.text()
}

func (g generator) list(depth int, of func() string) string {
	list := make([]string, g.IntN(4))
	for i := range list {
		list[i] = of()
	}
	return "[" + g.space() + strings.Join(list, ","+g.space()) + "]"
}

// object returns an object with the given names, some left out, some twice, and
// others.
func (g generator) object(depth int, names ...string) string {
	var list []string
	for _, name := range slices.Concat(names, []string{"a", pick(g, "tool", "arguments", "\\u0061", ""), pick(g, "output_path", "operations", "__proto__")}) {
		for range pick(g, 0, 0, 0, 1, 1, 1, 1, 1, 2) {
			v := g.value(depth + 1)
			switch name {
			case "operations":
				if depth > 2 {
					break
				}
				v = g.list(depth, func() string { return g.object(depth + 1) })
			case "decision":
				v = pick(g, `"allow"`, `"deny"`, `"ask"`, `"defer"`, v)
			case "applied", "conflict":
				v = pick(g, "true", "false", v)
			case "level":
				v = pick(g, `"low"`, `"medium"`, `"high"`, `"critical"`, v)
			case "category":
				v = pick(g, `"read"`, `"write"`, `"destructive"`, `"execute"`, `"financial"`, v)
			case "outcome":
				v = pick(g, `"approved"`, `"denied"`, `"timeout"`, `"unavailable"`, `"cancelled"`, v)
			case "event":
				v = pick(g, `"loaded"`, `"reload_failed"`, `"always_added"`, `"always_removed"`, v)
			case "wait_ms", "count", "max":
				v = pick(g, "0", "1", "9223372036854775807", v)
			case "hash", "version":
				v = pick(g, `"9f2c41d0"`, `""`, v)
			}
			list = append(list, `"`+name+`":`+g.space()+v)
		}
	}
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return "{" + g.space() + strings.Join(list, g.space()+","+g.space()) + g.space() + "}"
}

func (g generator) detections() string {
	list := make([]string, pick(g, 0, 1, 2, 31, 32, 33, 64))
	for i := range list {
		list[i] = fmt.Sprintf(`{"detector":%s,"at":%s}`, pick(g, `"path_sensitive"`, `"kill"`, `"more"`, g.text()), pick(g, `"args.output_path"`, g.text()))
	}
	if g.IntN(9) == 0 {
		list = append(list, g.value(0))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// member returns a value for a member, which is mostly one of its type.
func (g generator) member(m *audit.Member) string {
	switch m.Name {
	case "v":
		return "1"
	case "kind":
		if g.IntN(2) == 0 {
			return pick(g, `"call"`, `"open"`)
		}
		return pick(g, `"session_start"`, `"session_end"`, `"anomaly"`, `"gap"`, `"policy"`, `"checkpoint"`, `"forecast"`, `"-"`, `"`+strings.Repeat("k", 64)+`"`)
	case "risk":
		return g.object(0, "category", "level", "source", "conflict")
	case "detections":
		return g.detections()
	case "policy":
		return g.object(0, "hash", "mode", "decision", "applied", "rule", "reason", "counter", "count", "max", "window", "dialect", "source", "event", "detail")
	case "approval":
		return g.object(0, "outcome", "scope", "by", "user", "channel", "request", "wait_ms")
	case "error_type":
		return pick(g, `"PolicyDenied"`, `"ApprovalDenied"`, `"AmbiguousRequest"`, `"JSONRPCError"`, g.text())
	case "duration_ms":
		return pick(g, "0", "0.001", "40.873", "9223372036854.775", "1e-9", "9e12")
	}
	switch m.Type {
	case audit.TypeText:
		return g.text()
	case audit.TypeUUID, audit.TypeID:
		return pick(g, `"019e8b1c-4a10-7aaa-8bbb-0123456789ac"`, `""`, `"-"`, `"x"`, `"`+strings.Repeat("F", 300)+`"`)
	case audit.TypeWord:
		return pick(g, `"`+pick(g, m.Words...)+`"`, g.text())
	case audit.TypeWords:
		return pick(g, `["args_cut","not_json"]`, g.list(0, g.text))
	case audit.TypeTime:
		return pick(g, `"2026-11-20T09:14:03.123456Z"`, `"0000-01-01T00:00:00+23:59"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999-23:59"`, `"1969-12-31T23:59:59.9999Z"`, `"2016-02-29T23:59:59,5+05:30"`)
	case audit.TypeTrue, audit.TypeFalse:
		return pick(g, "true", "false")
	case audit.TypeObject, audit.TypeDigest:
		return g.object(0, "len", "version")
	case audit.TypePeer:
		if g.IntN(2) == 0 {
			return `{"name":` + g.text() + `,"version":` + g.text() + `}`
		}
		return pick(g, `{}`, `{"name":""}`, `{"version":"1"}`, `{"name":"n","version":"1","title":{}}`, `{"name":"n","n\u0061me":"m"}`)
	case audit.TypeCommand:
		return pick(g, `{}`, `{"command":`+g.text()+`,"args_digest":`+g.object(0)+`}`)
	case audit.TypeCandidates:
		return g.list(0, func() string {
			return `{"method":` + g.text() + `,"tool":` + g.text() + `,"target":` + g.text() + `,"args":` + g.object(0) + `}`
		})
	case audit.TypeList:
		return g.list(0, func() string { return g.object(0) })
	}
	return g.number()
}

// line returns a line that audit.Parse takes, without its line feed.
func (g generator) line() []byte {
	for {
		var list []string
		for _, m := range audit.RecordMembers() {
			times := pick(g, 0, 1, 1, 1, 1, 1, 2)
			if m.Name == "v" || m.Name == "kind" {
				times = 1
			}
			if m.Name == "crc" {
				times = 0
			}
			for range times {
				list = append(list, `"`+m.Name+`":`+g.space()+g.member(&m))
			}
		}
		for range g.IntN(5) {
			name := pick(g, "weather", "activity_id", "payload_hash", "k\\u0069nd", "crc2", "", fmt.Sprint("new", g.IntN(100)))
			list = append(list, `"`+name+`":`+g.value(0))
		}
		if g.IntN(100) == 0 {
			for i := range 200 {
				list = append(list, fmt.Sprintf(`"many%d":%d`, i%90, i))
			}
		}
		for range g.IntN(3) {
			i, j := g.IntN(len(list)), g.IntN(len(list))
			list[i], list[j] = list[j], list[i]
		}
		// A member that Parse refuses is left out, so that most lines stay.
		list = slices.DeleteFunc(list, func(member string) bool {
			one := member
			if !strings.HasPrefix(member, `"v":`) {
				one = `"v":1,` + member
			}
			if !strings.HasPrefix(member, `"kind":`) {
				one += `,"kind":"call"`
			}
			sealed := audit.Seal([]byte("{"+one+"}"), 0)
			_, err := audit.Parse(sealed[:len(sealed)-1])
			return err != nil
		})
		line := audit.Seal([]byte("{"+strings.Join(list, ","+g.space())+"}"), 0)
		line = line[:len(line)-1]
		if _, err := audit.Parse(line); err == nil && len(line) <= audit.MaxRecord {
			return line
		}
	}
}

// ordinary returns n lines as proxies write them, or a few more: of calls of each
// decision, and of whole sessions with evidence.
func ordinary(t *testing.T, g generator, n int) (lines [][]byte) {
	t.Helper()
	h := evidencetest.NewHost("build-7", time.Now())
	for len(lines) < n/2 {
		lines = append(lines, h.Session(evidencetest.Plan{Calls: 50, Every: 10}).Lines...)
	}
	for i := uint64(1); len(lines) < n; i++ {
		r := ingesttest.Call(int(i), pick(g, "send_keys", "capture_pane", "pipe_pane", "kill_server"), time.Now())
		r.Kind = pick(g, audit.KindCall, audit.KindCall, audit.KindCall, audit.KindOpen, audit.KindPolicy, audit.KindGap, audit.KindAnomaly)
		r.Client, r.Server = audit.Peer{Name: "claude-code", Version: "2.1.7"}, audit.Peer{Name: "libtmux-mcp", Version: "0.1.0a22"}
		r.Host, r.User, r.PID, r.Labels, r.Tenant = "build-7", "ann", 4211, `{"team":"platform"}`, "acme"
		r.From, r.To, r.Count, r.Denied = r.TS, r.TS.Add(time.Minute), 12, 3
		if r.Kind == audit.KindPolicy {
			r.Policy = audit.Policy{Hash: "9f2c41d0", Mode: "enforce", Dialect: "auditproxy", Event: pick(g, "loaded", "reload_failed", "always_added")}.JSON()
		} else if r.Kind == audit.KindCall || r.Kind == audit.KindOpen {
			r.Args = `{"pane_id":"%1","output_path":"/tmp/pane.log","keys":{"len":7,"hmac_sha256_prefix":"43c3bd85998c243f"}}`
			r.RequestID, r.RequestIDType = fmt.Sprint(i), "number"
			r.Risk = audit.Risk{Category: pick(g, "read", "write", "execute", "destructive", "financial"), Level: pick(g, "low", "medium", "high", "critical"), Source: "name"}.JSON()
			r.Policy = audit.Policy{Hash: "9f2c41d0", Mode: "enforce", Decision: pick(g, "allow", "deny", "ask"), Applied: g.IntN(2) == 0, Rule: "/tools/0"}.JSON()
			r.Approval = audit.Approval{Outcome: pick(g, "approved", "denied", "timeout"), WaitMS: 1200}.JSON()
			r.TraceID, r.SpanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
		}
		lines = append(lines, bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n")))
	}
	return lines
}

// TestEventsAreValid validates the events of ordinary and of hostile records, with
// and without attestations, and compares a second event with the first.
func TestEventsAreValid(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	lines := ordinary(t, g, 4000)
	for range 7000 {
		lines = append(lines, g.line())
	}
	v := newValidator(t)
	var file bytes.Buffer
	classes := map[string]int{}
	for i, line := range lines {
		cfg := ocsf.Config{Version: "1.4.0", Raw: i%3 == 0}
		if i%2 == 0 {
			cfg.Authority = "collector-1"
		}
		r := parsed(t, line)
		event, err := ocsf.New(cfg).Append(nil, &r)
		if errors.Is(err, ocsf.ErrNoEvent) {
			classes["none"]++
			continue
		}
		if err != nil {
			t.Fatalf("%s\n%v", line, err)
		}
		class, err := v.check(event)
		if err != nil {
			t.Fatalf("%s\n%s\n%v", line, event, err)
		}
		classes[class]++
		if bytes.Contains(event, []byte(`"attestation_list":`)) {
			classes["attested"]++
			at := bytes.LastIndex(event, []byte(`,"fingerprint":`))
			form, err := jcs.Transform(append(bytes.Clone(event[:at]), "}]}"...))
			if sum := fmt.Sprintf("%x", sha256.Sum256(form)); err != nil || !bytes.Contains(event[at:], []byte(sum)) {
				t.Fatalf("%s: the fingerprint is not %s, %v", event, sum, err)
			}
		}
		again := parsed(t, line)
		if second, err := ocsf.New(cfg).Append(nil, &again); err != nil || !bytes.Equal(event, second) {
			t.Fatalf("the second event of %s differs: %v\n%s\n%s", line, err, event, second)
		}
		file.Write(append(event, '\n'))
	}
	for range 1000 {
		a := g.alert()
		event, err := ocsf.New(ocsf.Config{Authority: "collector-1"}).AppendAlert(nil, &a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.check(event); err != nil {
			t.Fatalf("%+v\n%s\n%v", a, event, err)
		}
		classes["alert"]++
		file.Write(append(event, '\n'))
	}
	t.Log(classes)
	if n := bytes.Count(file.Bytes(), []byte("\n")) - classes["alert"]; n < 10_000 {
		t.Errorf("%d records have events, want 10 000", n)
	}
	for class := range schemaFiles {
		if classes[class] < 20 {
			t.Errorf("class %s has %d events", class, classes[class])
		}
	}
	if *keep != "" {
		if err := os.WriteFile(*keep, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// alert returns an alert of values that rules and records choose.
func (g generator) alert() alert.Alert {
	text := func() string { return jsontext.Unquote(g.text()) }
	when := func() time.Time {
		return pick(g, time.Time{}, time.UnixMilli(1795166043123), time.UnixMilli(-1), time.Unix(1<<40, 0))
	}
	return alert.Alert{
		ID: text(), Rule: text(), Severity: pick(g, alert.Info, alert.Warning, alert.Critical, "", "fatal"), Title: text(), Reason: text(),
		Tenant: text(), Host: text(), User: text(), SessionID: text(), RecordID: text(), CallNo: g.Uint64(), Operation: text(), Path: text(),
		TS: when(), WindowTo: when(), StoredAt: when(), Details: pick(g, "", "{", g.object(0), "{}"), Lasting: text(), Extent: g.Uint64(), Closes: pick(g, "", text()),
	}
}

// TestEveryMemberIsKept sets each member of a record of each kind to a distinctive
// value and finds it in the event: alone, and with all others, of which some have no
// room in an attribute.
func TestEveryMemberIsKept(t *testing.T) {
	e := ocsf.New(ocsf.Config{})
	find := func(kind, members string, want []string) {
		t.Helper()
		r := stored(t, []byte(`{"v":1,"kind":"`+kind+`"`+members+`}`))
		event, err := e.Append(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(want, `"`+kind+`"`) {
			if !bytes.Contains(event, []byte(want)) {
				t.Errorf("the event of %s has no %s\n%s", members, want, event)
			}
		}
	}
	for _, kind := range []string{"call", "open", "session_start", "session_end", "anomaly", "gap", "policy", "forecast"} {
		for round := range uint64(20) { // in the first all values are as usual, in the second none is
			var all string
			var wants []string
			for i, m := range audit.RecordMembers() {
				if m.Name == "kind" {
					continue
				}
				odd := round == 1 || round > 1 && rand.New(rand.NewPCG(round, uint64(i))).IntN(2) == 0
				if value, want := distinct(&m, i, odd); value != "" {
					if round < 2 {
						find(kind, `,"`+m.Name+`":`+value, want)
					}
					all += `,"` + m.Name + `":` + value
					wants = append(wants, want...)
				}
			}
			find(kind, all, wants)
		}
	}
}

// TestManyMembers has more members of newer proxies than most records have members,
// one of them twice: the last one counts.
func TestManyMembers(t *testing.T) {
	var line strings.Builder
	line.WriteString(`{"v":1,"kind":"call"`)
	for i := range 300 {
		fmt.Fprintf(&line, `,"new%d":"a"`, i)
	}
	line.WriteString(`,"new7":"b","new250":"b"}`)
	r := stored(t, []byte(line.String()))
	event, err := ocsf.New(ocsf.Config{}).Append(nil, &r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Unmapped map[string]string }
	if err := json.Unmarshal(event, &got); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(event, []byte(`"new`)); n != 300 || len(got.Unmapped) != 300 || got.Unmapped["new7"] != "b" || got.Unmapped["new250"] != "b" {
		t.Errorf("%d members, %q and %q\n%s", n, got.Unmapped["new7"], got.Unmapped["new250"], event)
	}
}

// distinct returns a value of a member and what its event has of it, "" for a member
// that is the same in all records. An odd value has no attribute.
func distinct(m *audit.Member, i int, odd bool) (value string, want []string) {
	word := fmt.Sprintf("marmalade%d", i)
	number := fmt.Sprint(1700000 + i)
	if odd {
		number = fmt.Sprint(5_000_000_000 + i)
	}
	switch {
	case odd && m.Type == audit.TypePeer:
		return `{"version":"` + word + `"}`, []string{`"` + word + `"`}
	case odd && m.Name == "labels":
		return `{"` + word + `":["` + word + `x"]}`, []string{`"` + word + `"`, `"` + word + `x"`}
	}
	switch m.Name {
	case "policy":
		if !odd {
			return `{"hash":"` + word + `","new":"` + word + `x"}`, []string{`"` + word + `"`, `"` + word + `x"`}
		}
	case "v", "crc":
		return "", nil
	case "outcome":
		return `"unknown"`, []string{`nknown"`}
	}
	switch m.Type {
	case audit.TypeText, audit.TypeID, audit.TypeUUID, audit.TypeWord:
		return `"` + word + `"`, []string{`"` + word + `"`}
	case audit.TypeWords:
		return `["` + word + `"]`, []string{`["` + word + `"]`}
	case audit.TypeTime:
		at := time.Date(2026, 11, 20, 9, 14, i, 123456000, time.UTC)
		return at.Format(`"2006-01-02T15:04:05.000000Z"`), []string{at.Format(`"2006-01-02T15:04:05.000000Z"`)}
	case audit.TypeTrue:
		return "true", []string{`"` + m.Name + `":true`}
	case audit.TypeFalse:
		return "false", []string{`"` + m.Name + `":false`}
	case audit.TypeObject, audit.TypeDigest:
		return `{"` + word + `":"` + word + `x"}`, []string{word + `"`, `"` + word + `x"`}
	case audit.TypeList:
		return `[{"detector":"` + word + `","new":"` + word + `x"}]`, []string{`"` + word + `"`, `"` + word + `x"`}
	case audit.TypePeer:
		return `{"name":"` + word + `","version":"` + word + `v","new":"` + word + `x"}`, []string{`"` + word + `"`, `"` + word + `v"`, `"` + word + `x"`}
	case audit.TypeCommand:
		return `{"command":"` + word + `","args_digest":{"` + word + `d":1}}`, []string{`"` + word + `"`, `"` + word + `d"`}
	case audit.TypeCandidates:
		return `[{"method":"` + word + `","args":{"` + word + `a":1}}]`, []string{`"` + word + `"`, `"` + word + `a"`}
	}
	return number, []string{number}
}

// TestSchemaFindsMistakes breaks an event as a wrong mapping would, and the schema
// refuses each.
func TestSchemaFindsMistakes(t *testing.T) {
	v := newValidator(t)
	r := stored(t, []byte(pipePane))
	event, err := ocsf.New(ocsf.Config{Version: "1.4.0", Authority: "collector-1"}).Append(nil, &r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.check(event); err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][2]string{
		{`"activity_id":99`, `"activity_id":2`},
		{`"activity_name":"Execute",`, ``},
		{`"type_uid":600399`, `"type_uid":600302`},
		{`"class_name":"API Activity"`, `"class_name":"API"`},
		{`"category_uid":6`, `"category_uid":3`},
		{`"severity":"High"`, `"severity":"high"`},
		{`"severity_id":4,`, ``},
		{`"disposition_id":8`, `"disposition_id":2`},
		{`"action_id":1`, `"action_id":5`},
		{`"risk_level":"High"`, `"risk_level":"Critical"`},
		{`"time":1795166043123`, `"time":"1795166043123"`},
		{`"time":1795166043123`, `"time":1795166043123.5`},
		{`"time":1795166043123,`, ``},
		{`"time_dt":"2026-11-20T09`, `"time_dt":"2026-11-20 09`},
		{`"uid":"7",`, ``},
		{`"uid":"7"`, `"uid":7`},
		{`"operation":"pipe_pane",`, ``},
		{`"src_endpoint":{"hostname":"build-7","svc_name":"example-agent"}`, `"src_endpoint":{}`},
		{`"type_id":0`, `"type_id":17`},
		{`"pid":4211`, `"pid":"4211"`},
		{`"ai_operation",`, ``},
		{`"datetime",`, ``},
		{`"host",`, ``},
		{`"security_control",`, ``},
		{`,"trace"]`, `]`},
		{`"record_integrity",`, ``},
		{`"type":"File Path"`, `"type":"File Name"`},
		{`"end_time":1795166051287,`, ``},
		{`"unmapped":{`, `"other":{`},
		{`"unmapped":{`, `"unmapped":[],"x":{`},
		{`"sequence":117`, `"sequence":117.25`},
		{`"tags":[{"name":"team","value":"platform"}]`, `"tags":{"team":"platform"}`},
		{`"version":"1.9.0",`, ``},
		{`"status":"Success"`, `"status":"ok"`},
		{`"algorithm":"SHA-256"`, `"algorithm":"SHA256"`},
		{`"decision":"approved"`, `"decision":"approved","by":"ann"`},
		{`"class_uid":6003`, `"class_uid":6004`},
	} {
		broken := bytes.Replace(event, []byte(tt[0]), []byte(tt[1]), 1)
		if bytes.Equal(broken, event) {
			t.Errorf("the event has no %s", tt[0])
		} else if _, err := v.check(broken); err == nil {
			t.Errorf("with %s for %s the event is valid", tt[1], tt[0])
		}
	}
}

// TestLineBreaks has a record with line breaks between tokens: its event has none,
// and the same values.
func TestLineBreaks(t *testing.T) {
	var spread bytes.Buffer
	if err := json.Indent(&spread, []byte(pipePane), "\r", "\n"); err != nil {
		t.Fatal(err)
	}
	e := ocsf.New(ocsf.Config{})
	var events [2]map[string]any
	for i, line := range [][]byte{[]byte(pipePane), spread.Bytes()} {
		r := stored(t, line)
		event, err := e.Append(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(event, "\r\n") {
			t.Errorf("the event has a line break: %q", event)
		}
		if err := json.Unmarshal(event, &events[i]); err != nil {
			t.Fatal(err)
		}
		delete(events[i], "raw_data_hash")
		delete(events[i], "raw_data_size")
	}
	if diff := cmp.Diff(events[0], events[1]); diff != "" {
		t.Errorf("(-plain +spread)\n%s", diff)
	}
}

// TestManyOperations has calls whose operations would take long to read, or would make
// an event much larger than their record.
func TestManyOperations(t *testing.T) {
	v := newValidator(t)
	operations := func(n int, of func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = of(i)
		}
		return `{"v":1,"kind":"call","args":{"operations":[` + strings.Join(list, ",") + `]}}`
	}
	for _, tt := range []struct {
		name, line string
		paths      int
	}{
		{"many", operations(3000, func(i int) string { return fmt.Sprintf(`{"tool":"t","arguments":{"output_path":"/tmp/%d"}}`, i) }), 32},
		{"one path", operations(3000, func(int) string { return `{"tool":"t","arguments":{"output_path":"/tmp/1"}}` }), 1},
		{"long", operations(2, func(i int) string {
			return fmt.Sprintf(`{"tool":"t","arguments":{"output_path":"/tmp/%s"}}`, strings.Repeat("x", 16380*i))
		}), 1},
		{"candidates", `{"v":1,"kind":"call","args":{"output_path":1,"fill":"` + strings.Repeat("x", 100<<10) + `"},"candidates":[` +
			strings.Repeat(`{"method":"m"},`, 9000) + `{"method":"m","args":{"output_path":"/tmp/late"}}]}`, 0},
	} {
		r := stored(t, []byte(tt.line))
		event, err := ocsf.New(ocsf.Config{}).Append(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.check(event); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if n := bytes.Count(event, []byte(`"type":"File Path"`)); n != tt.paths {
			t.Errorf("%s: the event has %d paths, want %d", tt.name, n, tt.paths)
		}
		if len(event) > 4*len(tt.line)+4096 {
			t.Errorf("%s: the event of %d bytes has %d", tt.name, len(tt.line), len(event))
		}
	}
}

// FuzzAppend makes events of whatever audit.Parse takes.
func FuzzAppend(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(1, 1))}
	for range 200 {
		line := g.line()
		if len(line) > 4<<10 {
			continue
		}
		f.Add(append(line[:bytes.LastIndex(line, []byte(`,"crc"`))], '}'))
	}
	f.Add([]byte(pipePane))
	v := newValidator(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) == 0 {
			return
		}
		sealed := audit.Seal(bytes.Clone(line), 0)
		sealed = sealed[:len(sealed)-1]
		record, err := audit.Parse(sealed)
		if err != nil {
			return
		}
		r := receiver.Record{}
		r.Record, r.Operations, r.Raw = record, audit.Operations(&record), string(sealed)
		event, err := ocsf.New(ocsf.Config{Authority: "a", Raw: true}).Append(nil, &r)
		if errors.Is(err, ocsf.ErrNoEvent) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.check(event); err != nil {
			t.Fatalf("%s\n%v", event, err)
		}
	})
}

// TestPageNamesMembers finds each member of a record on the page about the mapping.
func TestPageNamesMembers(t *testing.T) {
	page, err := os.ReadFile("../../../docs/ocsf.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range audit.RecordMembers() {
		if !bytes.Contains(page, []byte("`"+m.Name+"`")) {
			t.Errorf("docs/ocsf.md does not name %s", m.Name)
		}
	}
}
