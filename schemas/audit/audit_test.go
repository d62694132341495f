package audit_test

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

var update = flag.Bool("update", false, "rewrite golden files")

var start = time.Date(2026, 11, 20, 9, 14, 3, 123456000, time.UTC)

// full returns a record of a kind with every member set that the kind has.
func full(kind audit.Kind) audit.Record {
	code := int64(-32602)
	r := audit.Record{
		Kind:            kind,
		RecordID:        "019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e",
		SessionID:       "019e8b1c-0000-7aaa-8bbb-0123456789ab",
		Seq:             7,
		CallNo:          5,
		TS:              start,
		Method:          "tools/call",
		Tool:            "send_keys",
		Target:          "file:///etc/hosts",
		Candidates:      []audit.Candidate{{Method: "tools/call", Tool: "pipe_pane", Args: `{"output_path":"/etc/cron.d/x"}`}, {Method: "ping"}, {Method: "resources/read", Target: "file:///x"}},
		Outcome:         audit.OutcomeError,
		ErrorType:       "PaneNotFound",
		ErrorCode:       &code,
		ResultType:      "task",
		Forwarded:       true,
		CancelRequested: true,
		Recovered:       true,
		Duration:        1234567 * time.Microsecond,
		ClientID:        "agent-7",
		RequestID:       "9007199254740993",
		RequestIDType:   "number",
		Client:          audit.Peer{Name: "claude-code", Version: "2.1.0"},
		Server:          audit.Peer{Name: "libtmux", Version: "0.1.0a22"},
		ProtocolVersion: "2025-06-18",
		ServerCommand:   audit.Command{Command: "libtmux-mcp", ArgsDigest: `{"len":3,"hmac_sha256_prefix":"0123456789abcdef"}`},
		Tier:            "mutating",
		Annotations:     `{"readOnlyHint":false}`,
		ToolHash:        strings.Repeat("0f", 32),
		Args:            `{"pane_id":"%1","keys":{"len":4,"hmac_sha256_prefix":"89abcdef01234567"}}`,
		ArgsBytes:       42,
		Risk:            `{"category":"execute","level":"high","source":"schema"}`,
		Detections:      `[{"detector":"recursive_delete","at":"args.keys"}]`,
		Policy:          `{"hash":"0123456789abcdef","mode":"enforce","decision":"ask","applied":true,"rule":"/tools/send_keys/action"}`,
		Approval:        `{"outcome":"approved","scope":"once","by":"ann","user":"ann","channel":"files","request":"01","wait_ms":1500}`,
		ResultBytes:     137,
		ErrorDigest:     `{"len":18,"hmac_sha256_prefix":"fedcba9876543210"}`,
		TraceID:         "0af7651916cd43dd8448eb211c80319c",
		SpanID:          "b7ad6b7169203331",
		Host:            "build-7",
		User:            "ann",
		PID:             4711,
		Labels:          `{"team":"platform"}`,
		Tenant:          "acme",
		Anomalies:       []string{"batch", "duplicate_member"},
		NotDurable:      true,
		Proxy:           `{"version":"1.0.0"}`,
		Evidence:        `{"checkpoint":"o\n1\nAAAA\n"}`,
	}
	switch kind {
	case audit.KindAnomaly:
		r.At, r.Bytes, r.Digest = 4096, 17, `{"bytes":17,"hmac_sha256_prefix":"0011223344556677"}`
	case audit.KindGap:
		r.From, r.To, r.Count, r.Denied = start, start.Add(time.Second), 12, 11
	}
	return r
}

var kinds = []audit.Kind{
	audit.KindCall, audit.KindOpen, audit.KindSessionStart, audit.KindSessionEnd, audit.KindAnomaly, audit.KindGap, audit.KindPolicy, audit.KindCheckpoint,
}

// TestFullIsFull keeps the tests of this package from passing over a member
// that is added to Record later.
func TestFullIsFull(t *testing.T) {
	set := make(map[string]bool)
	for _, kind := range kinds {
		r := full(kind)
		v := reflect.ValueOf(r)
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				set[v.Type().Field(i).Name] = true
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[audit.Record]()) {
		if !set[f.Name] {
			t.Errorf("no record of this test has a %s", f.Name)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	for _, kind := range kinds {
		want := full(kind)
		line := audit.AppendRecord([]byte("before"), &want)[len("before"):]
		if !jsontext.Valid(line) || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%s: not one line of JSON: %s", kind, line)
		}
		got, err := audit.Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Errorf("%s: Parse: %v", kind, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: parsed record differs (-want +got):\n%s", kind, diff)
		}
	}
}

// TestMembersAlone gives a record one member at a time: none leans on another.
func TestMembersAlone(t *testing.T) {
	for _, kind := range kinds {
		all := reflect.ValueOf(full(kind))
		for i := range all.NumField() {
			r := audit.Record{Kind: kind, TS: start, From: start, To: start, Duration: -1}
			reflect.ValueOf(&r).Elem().Field(i).Set(all.Field(i))
			got, err := parse(audit.AppendRecord(nil, &r))
			if err != nil {
				t.Errorf("%s with %s: %v", kind, all.Type().Field(i).Name, err)
				continue
			}
			if kind != audit.KindGap {
				r.From, r.To = time.Time{}, time.Time{}
			}
			if diff := cmp.Diff(r, got); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", kind, all.Type().Field(i).Name, diff)
			}
		}
	}
}

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{-1, ""},
		{0, `"duration_ms":0,`},
		{999 * time.Nanosecond, `"duration_ms":0,`},
		{time.Microsecond, `"duration_ms":0.001,`},
		{1500 * time.Microsecond, `"duration_ms":1.5,`},
		{time.Hour, `"duration_ms":3600000,`},
	} {
		r := audit.Record{Kind: audit.KindCall, Outcome: audit.OutcomeOK, Duration: tt.d, Host: "h"}
		got := regexp.MustCompile(`"duration_ms":[^,]*,`).FindString(string(audit.AppendRecord(nil, &r)))
		if got != tt.want {
			t.Errorf("%v is written %q, want %q", tt.d, got, tt.want)
		}
	}
}

// TestLines shows the bytes that Kafka and ClickHouse get.
func TestLines(t *testing.T) {
	const file = "testdata/lines.txtar"
	arch, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for _, kind := range kinds {
		r := full(kind)
		got[string(kind)] = audit.AppendRecord(nil, &r)
	}
	r := full(audit.KindCall)
	got["intent"] = audit.AppendIntent(nil, &r)
	got["context"] = audit.AppendContext(nil, &r)
	got["tool"] = audit.AppendTool(nil, &r)
	got["least"] = audit.AppendRecord(nil, &audit.Record{Kind: audit.KindCall, TS: start, Duration: -1})
	for i, f := range arch.Files {
		if *update {
			arch.Files[i].Data = got[f.Name]
		} else if diff := cmp.Diff(string(f.Data), string(got[f.Name])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
		delete(got, f.Name)
	}
	for name := range got {
		t.Errorf("%s has no section %s", file, name)
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(arch), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOtherLines(t *testing.T) {
	call := full(audit.KindCall)
	for _, tt := range []struct {
		kind string
		line []byte
		keep []string // fields of Record that the line carries
	}{
		{audit.LineIntent, audit.AppendIntent(nil, &call), []string{"RecordID", "CallNo", "TS", "Method", "Tool", "Target", "Candidates",
			"ClientID", "RequestID", "RequestIDType", "Args", "ArgsBytes", "Risk", "Detections", "Policy", "Approval", "TraceID", "SpanID", "Anomalies"}},
		{audit.LineContext, audit.AppendContext(nil, &call), []string{"SessionID", "Client", "Server", "ProtocolVersion", "ServerCommand",
			"Host", "User", "PID", "Labels", "Tenant"}},
		{audit.LineTool, audit.AppendTool(nil, &call), []string{"Tool", "Tier", "Annotations", "ToolHash"}},
	} {
		want := audit.Record{Duration: -1}
		for _, name := range tt.keep {
			reflect.ValueOf(&want).Elem().FieldByName(name).Set(reflect.ValueOf(call).FieldByName(name))
		}
		line := bytes.TrimSuffix(tt.line, []byte("\n"))
		kind, got, err := audit.ParseLine(line)
		if err != nil || kind != tt.kind || !audit.Check(line) {
			t.Errorf("ParseLine(%s) = %q, %v, checksum %v", line, kind, err, audit.Check(line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s line (-want +got):\n%s", tt.kind, diff)
		}
		if _, err := audit.Parse(line); err == nil {
			t.Errorf("Parse takes the %s line for a record", tt.kind)
		}
	}
}

// parse is Parse of a line with its line feed.
func parse(line []byte) (audit.Record, error) {
	return audit.Parse(bytes.TrimSuffix(line, []byte("\n")))
}

func seal(s string) []byte {
	return bytes.TrimSuffix(audit.Seal([]byte(s), 0), []byte("\n"))
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"it reads a record", `{"v":1,"kind":"call"}`, ""},
		{"it passes over members it does not know", `{"v":1,"kind":"call","new":{"a":[1,"x"]},"tool":"x"}`, ""},
		{"it refuses another version", `{"v":2,"kind":"call"}`, `member "v": version 2 is not 1`},
		{"it refuses a record without a version", `{"kind":"call"}`, "not a record"},
		{"it refuses a record without a kind", `{"v":1}`, "not a record"},
		{"it refuses a line that is no record", `{"line":"intent","v":1,"kind":"call"}`, "not a record"},
		{"it refuses a line it does not know as a record", `{"line":"novelty","v":1,"kind":"call","seq":"x"}`, "not a record"},
		{"it refuses a number as text", `{"v":1,"kind":"call","tool":1}`, `member "tool": not a string`},
		{"it refuses an identifier that would need escaping", `{"v":1,"kind":"call","trace_id":"a\",\"seq\":9"}`, `member "trace_id": not an identifier`},
		{"it refuses a number as an identifier", `{"v":1,"kind":"call","record_id":12}`, `member "record_id": not a string`},
		{"it refuses text as a number", `{"v":1,"kind":"call","seq":"1"}`, `member "seq": strconv`},
		{"it refuses a number as a boolean", `{"v":1,"kind":"call","forwarded":1}`, `member "forwarded": not a boolean`},
		{"it refuses a negative seq", `{"v":1,"kind":"call","seq":-1}`, `member "seq": strconv`},
		{"it refuses a negative duration", `{"v":1,"kind":"call","duration_ms":-1}`, `member "duration_ms": not a duration`},
		{"it refuses an endless duration", `{"v":1,"kind":"call","duration_ms":1e300}`, `member "duration_ms": not a duration`},
		{"it refuses a list as arguments", `{"v":1,"kind":"call","args":[]}`, `member "args": not an object`},
		{"it refuses a number among the anomalies", `{"v":1,"kind":"call","anomalies":["batch",1]}`, `member "anomalies": not a string`},
		{"it refuses text as candidates", `{"v":1,"kind":"call","candidates":["x"]}`, `member "candidates": not strict JSON`},
		{"it refuses another time format", `{"v":1,"kind":"call","ts":"yesterday"}`, `member "ts": parsing time`},
		{"it refuses what is not JSON", `{"v":1,"kind":"call","x":NaN}`, "not strict JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := audit.Parse(seal(tt.in))
			if got := errText(err); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("Parse(%s): %q, want %q", tt.in, got, tt.want)
			}
		})
	}
	if _, err := audit.Parse([]byte(`{"v":1,"kind":"call"}`)); errText(err) != "line fails its checksum" {
		t.Errorf("Parse without a checksum: %v, want that it fails", err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseLinePassesOverUnknownLines(t *testing.T) {
	kind, _, err := audit.ParseLine(seal(`{"line":"novelty","v":9,"seq":"a","args":7}`))
	if kind != "novelty" || err != nil {
		t.Errorf("ParseLine = %q, %v, want a novelty", kind, err)
	}
}

func TestCheckFindsEveryBitFlip(t *testing.T) {
	r := full(audit.KindCall)
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	if !audit.Check(line) {
		t.Fatalf("Check refuses %s", line)
	}
	for i := range line {
		for bit := range 8 {
			line[i] ^= 1 << bit
			if audit.Check(line) {
				t.Errorf("bit %d of byte %d is flipped, and Check does not see it", bit, i)
			}
			line[i] ^= 1 << bit
		}
		if audit.Check(line[:i]) {
			t.Errorf("Check accepts the first %d bytes", i)
		}
		if i > 0 && audit.Check(line[i:]) {
			t.Errorf("Check accepts the bytes from %d", i)
		}
	}
}

// FuzzAppendParse writes what it read, byte for byte, for any values of client
// and server.
func FuzzAppendParse(f *testing.F) {
	f.Add("send_keys", "1", `{"a":1}`, "x", uint64(1), int64(1), int64(1500), byte(0))
	f.Add("\x00\x7f\xff\u2028\"\\", "", `{}`, "\xed\xa0\x80", uint64(1<<63), int64(-1), int64(0), byte(255))
	f.Fuzz(func(t *testing.T, a, b, object, c string, n uint64, m, us int64, bits byte) {
		if !jsontext.Valid([]byte(object)) || object[0] != '{' || strings.ContainsAny(object, "\r\n") {
			object = "{}"
		}
		r := audit.Record{
			Kind: kinds[int(bits)%len(kinds)], RecordID: audit.NewID(start), Seq: n, CallNo: n / 2,
			TS: time.UnixMicro(us % 1e15), Method: a, Tool: b, Target: c,
			Candidates: []audit.Candidate{{Method: b, Tool: c}, {Target: a, Args: audit.JSON(object)}}, Outcome: audit.Outcome(c), ErrorType: a, ErrorCode: &m,
			ResultType: b, Forwarded: bits&1 != 0, CancelRequested: bits&2 != 0, Recovered: bits&4 != 0, NotDurable: bits&8 != 0,
			Duration: time.Duration(us), ClientID: a, RequestID: b, RequestIDType: c, Client: audit.Peer{Name: a, Version: b},
			Server: audit.Peer{Version: c}, ServerCommand: audit.Command{Command: a, ArgsDigest: audit.JSON(object)}, Tier: a,
			Annotations: audit.JSON(object), Args: audit.JSON(object), ArgsBytes: m, ResultBytes: us, Host: a, User: b, PID: int(us),
			Tenant: c, Anomalies: []string{a, b, c}, At: m, Bytes: us, From: time.UnixMicro(m % 1e15), To: start, Count: m, Denied: us,
		}
		if strings.Count(object, "{")+strings.Count(object, "[") >= audit.MaxDepth-3 {
			return // a record's author answers for its depth
		}
		line := audit.AppendRecord(nil, &r)
		got, err := parse(line)
		if err != nil {
			t.Fatalf("parsing %s: %v", line, err)
		}
		if again := audit.AppendRecord(nil, &got); !bytes.Equal(line, again) {
			t.Fatalf("wrote\n%s, read it and wrote\n%s", line, again)
		}
	})
}

// FuzzParseAppend reads what it wrote, for any content of the file.
func FuzzParseAppend(f *testing.F) {
	for _, kind := range kinds {
		r := full(kind)
		line := audit.AppendRecord(nil, &r)
		f.Add(line[:len(line)-len(`,"crc":"00000000"}`+"\n")])
	}
	f.Add([]byte(`{"v":1,"kind":"call","duration_ms":1e3,"anomalies":[],"client":{},"ts":"2026-01-01T00:00:00+01:00"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		line := audit.Seal(append(slices.Clone(body), '}'), 0)
		want, err := parse(line)
		if err != nil || bytes.ContainsAny(body, "\r\n") {
			return
		}
		if y := want.TS.Year(); y < 0 || y > 9999 {
			return
		}
		got, err := parse(audit.AppendRecord(nil, &want))
		if err != nil {
			t.Fatalf("reading again: %v", err)
		}
		if again := audit.AppendRecord(nil, &got); !bytes.Equal(again, audit.AppendRecord(nil, &want)) {
			t.Fatalf("the record changed (-first +second):\n%s", cmp.Diff(want, got))
		}
	})
}

func TestErrorTypeOK(t *testing.T) {
	for s, want := range map[string]bool{
		"PaneNotFound": true, "a": true, "Z9_.x": true, strings.Repeat("x", 64): true,
		"": false, "9a": false, "_a": false, ".a": false, "a b": false, "a-b": false, "é": false, "a\n": false,
		"[": false, "a@": false, "`": false, strings.Repeat("x", 65): false,
	} {
		if got := audit.ErrorTypeOK(s); got != want {
			t.Errorf("ErrorTypeOK(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^019e([0-9a-f]{4})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	at := time.UnixMilli(0x019e_8b1c_5a2f)
	seen := make(map[string]bool)
	for range 1000 {
		id := audit.NewID(at)
		if m := form.FindStringSubmatch(id); m == nil || m[1] != "8b1c" || m[2] != "5a2f" {
			t.Fatalf("%s is no UUIDv7 of %v", id, at)
		}
		seen[id] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 identifiers are different", len(seen))
	}
}

func BenchmarkAppendRecord(b *testing.B) {
	r := full(audit.KindCall)
	dst := audit.AppendRecord(nil, &r)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = audit.AppendRecord(dst[:0], &r)
	}
}

func BenchmarkAppendIntent(b *testing.B) {
	r := full(audit.KindCall)
	dst := audit.AppendIntent(nil, &r)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = audit.AppendIntent(dst[:0], &r)
	}
}

func BenchmarkParse(b *testing.B) {
	r := full(audit.KindCall)
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := audit.Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	r := full(audit.KindCall)
	line := bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if !audit.Check(line) {
			b.Fatal("checksum")
		}
	}
}

func TestTimeOfID(t *testing.T) {
	at := time.UnixMilli(1795828778346)
	for id, want := range map[string]time.Time{
		"01a21fbc-856a-782c-ba78-44b847511c88": at,
		"01a21fbc856a782cba7844b847511c88":     at,
		"01a21fbc-856a-482c-ba78-44b847511c88": {}, // version 4
		"01a21fbg-856a-782c-ba78-44b847511c88": {},
		"01a21fbc-856a-782c-ba78-44b847511c8":  {},
		"build":                                {},
		"":                                     {},
	} {
		if got := audit.TimeOfID(id); !got.Equal(want) {
			t.Errorf("TimeOfID(%q) = %v, want %v", id, got, want)
		}
	}
	before := time.Now().Truncate(time.Millisecond)
	if got := audit.TimeOfID(string(audit.AppendNewID(nil, before))); !got.Equal(before) {
		t.Errorf("of a new id, TimeOfID = %v, want %v", got, before)
	}
}
