package ocsf_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/tools/txtar"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/ocsf"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
)

var update = flag.Bool("update", false, "write the golden events")

// schemaFiles are the schemas of OCSF's classes, by class_uid. testdata/schema has
// the program that made them.
var schemaFiles = map[string]string{
	"0": "base_event", "2004": "detection_finding", "3004": "entity_management", "6002": "application_lifecycle", "6003": "api_activity",
}

// A validator checks events by the schema of their class.
type validator map[string]*jsonschema.Schema

func newValidator(t testing.TB) validator {
	t.Helper()
	v := validator{}
	for class, name := range schemaFiles {
		text, err := os.ReadFile("testdata/schema/" + name + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource(name, doc); err != nil {
			t.Fatal(err)
		}
		if v[class], err = c.Compile(name); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// check returns why an event is not one, and its class.
func (v validator) check(event []byte) (class string, err error) {
	if bytes.ContainsAny(event, "\r\n") {
		return "", errors.New("the event has a line break")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(event))
	if err != nil {
		return "", err
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return "", errors.New("the event is no object")
	}
	uid, _ := object["class_uid"].(json.Number)
	schema := v[string(uid)]
	if schema == nil {
		return "", errors.New("the event's class is " + string(uid))
	}
	return string(uid), schema.Validate(doc)
}

// stored returns a record as the collector reads it back, from its line without a
// checksum.
func stored(t testing.TB, line []byte) receiver.Record {
	t.Helper()
	line = bytes.TrimSpace(line)
	sealed := audit.Seal(bytes.Clone(line), 0)
	return parsed(t, sealed[:len(sealed)-1])
}

func parsed(t testing.TB, line []byte) receiver.Record {
	t.Helper()
	r, err := audit.Parse(line)
	if err != nil {
		t.Fatalf("%.2000q: %v", line, err)
	}
	sum := sha256.Sum256(line)
	return receiver.Record{Row: ingest.Row{Record: r, Operations: audit.Operations(&r), Raw: string(line), Hash: [16]byte(sum[:])}}
}

// TestGolden compares events with those of testdata/golden. A file has a record
// without its checksum, or an alert, and the event; -update writes the event.
func TestGolden(t *testing.T) {
	v := newValidator(t)
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := map[string][]byte{}
			for _, f := range archive.Files {
				part[f.Name] = f.Data
			}
			cfg := ocsf.Config{Version: "1.4.0"}
			if text, ok := part["config"]; ok {
				if err := json.Unmarshal(text, &cfg); err != nil {
					t.Fatal(err)
				}
			}
			var got []byte
			if text, ok := part["alert"]; ok {
				var a alert.Alert
				if err := json.Unmarshal(text, &a); err != nil {
					t.Fatal(err)
				}
				got, err = ocsf.New(cfg).AppendAlert(nil, &a)
			} else {
				r := stored(t, part["record"])
				got, err = ocsf.New(cfg).Append(nil, &r)
			}
			if err != nil {
				got = []byte(err.Error())
			} else {
				if _, err := v.check(got); err != nil {
					t.Errorf("%s\n%v", got, err)
				}
				var b bytes.Buffer
				if err := json.Indent(&b, got, "", "  "); err != nil {
					t.Fatal(err)
				}
				got = b.Bytes()
			}
			got = append(got, '\n')
			if *update {
				last := &archive.Files[len(archive.Files)-1]
				if last.Name != "event" {
					archive.Files = append(archive.Files, txtar.File{Name: "event"})
					last = &archive.Files[len(archive.Files)-1]
				}
				last.Data = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(part["event"]), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAttestation recomputes an attestation as a receiver would: the event without
// the fingerprint, canonical, hashed.
func TestAttestation(t *testing.T) {
	r := stored(t, []byte(pipePane))
	with, err := ocsf.New(ocsf.Config{Authority: "collector-1"}).Append([]byte("before"), &r)
	if err != nil {
		t.Fatal(err)
	}
	var event map[string]any
	d := json.NewDecoder(bytes.NewReader(with[len("before"):]))
	d.UseNumber()
	if err := d.Decode(&event); err != nil {
		t.Fatal(err)
	}
	one := event["attestation_list"].([]any)[0].(map[string]any)
	got := one["fingerprint"].(map[string]any)["value"]
	delete(one, "fingerprint")
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = jcs.Transform(text); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if want := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the fingerprint is %v, want %s", got, want)
	}
}

// TestNoAttestation has values without a canonical form: the event has no
// attestation and does not claim to have one.
func TestNoAttestation(t *testing.T) {
	v := newValidator(t)
	for _, args := range []string{`{"a":1e999}`, `{"a":1,"a":2}`} {
		r := stored(t, []byte(strings.Replace(pipePane, `"args":{`, `"args":{"x":`+args+`,`, 1)))
		with, err := ocsf.New(ocsf.Config{Authority: "collector-1"}).Append(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(with, []byte("attestation")) || bytes.Contains(with, []byte("record_integrity")) {
			t.Errorf("%s: %s", args, with)
		}
		if _, err := v.check(with); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestHalfAPair has escapes for half a surrogate pair, which strict readers refuse
// with the whole event: they are replaced, and all else stays.
func TestHalfAPair(t *testing.T) {
	v := newValidator(t)
	for in, want := range map[string]string{
		`"\ud800"`: `"\ufffd"`, `"x\uDFFFy"`: `"x\ufffdy"`, `"\udc00\ud83d\ude00"`: `"\ufffd\ud83d\ude00"`, `"\ud83d\ud83d\ude00"`: `"\ufffd\ud83d\ude00"`,
		`"\ud800\u0041"`: `"\ufffd\u0041"`, `"\ud800\n"`: `"\ufffd\n"`, `"\\ud800"`: `"\\ud800"`, `"\\\ud800"`: `"\\\ufffd"`, `"\u00e9\uD83D\uDE00"`: `"\u00e9\uD83D\uDE00"`,
		`{"\ud801":1}`: `{"\ufffd":1}`,
	} {
		r := stored(t, []byte(strings.Replace(pipePane, `"args":{`, `"args":{"x":`+in+`,`, 1)))
		for _, c := range []ocsf.Config{{}, {Raw: true}, {Authority: "collector-1"}} {
			event, err := ocsf.New(c).Append([]byte(`"\ud800"`), &r)
			if err != nil {
				t.Fatal(err)
			}
			event, before := bytes.CutPrefix(event, []byte(`"\ud800"`))
			if !before || !bytes.Contains(event, []byte(`"x":`+want+`,`)) {
				t.Errorf("%s: want %s in %s", in, want, event)
			}
			if c.Raw && !bytes.Contains(event, []byte(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(`"x":`+in))) {
				t.Errorf("%s: the raw record is not as it arrived: %s", in, event)
			}
			if _, err := v.check(event); err != nil {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
}

// TestNoEvent has what OCSF has no event for.
func TestNoEvent(t *testing.T) {
	e := ocsf.New(ocsf.Config{})
	r := stored(t, []byte(`{"v":1,"kind":"checkpoint","record_id":"019e8b1c-4a10-7aaa-8bbb-0123456789ac","session_id":"019e8b1c-0000-7aaa-8bbb-0123456789ab","seq":3,"ts":"2026-11-20T09:14:03.123456Z","evidence":{"checkpoint":"x"}}`))
	if b, err := e.Append([]byte("before"), &r); string(b) != "before" || !errors.Is(err, ocsf.ErrNoEvent) {
		t.Errorf("Append = %q, %v", b, err)
	}
	if b, err := e.AppendAlert([]byte("before"), &alert.Alert{ID: "a", TS: time.Now(), Suppressed: true}); string(b) != "before" || !errors.Is(err, ocsf.ErrNoEvent) {
		t.Errorf("AppendAlert = %q, %v", b, err)
	}
}

// pipePane is a call with most of what a call has.
const pipePane = `{"v":1,"kind":"call","record_id":"019e8b1c-4a10-7aaa-8bbb-0123456789ac","session_id":"019e8b1c-0000-7aaa-8bbb-0123456789ab","seq":117,"call_no":58,"ts":"2026-11-20T09:14:03.123456Z",` +
	`"method":"tools/call","tool":"pipe_pane","outcome":"ok","forwarded":true,"duration_ms":40.873,"request_id":"7","request_id_type":"number",` +
	`"client":{"name":"example-agent","version":"2.1.7"},"server":{"name":"libtmux-mcp","version":"0.1.0a22"},"protocol_version":"2025-06-18","server_command":{"command":"libtmux-mcp"},` +
	`"tier":"mutating","annotations":{"readOnlyHint":false},"tool_hash":"6f1ed002ab5595859014ebf0951522d9a9b2d8c1b2d5a6d8f1a1f1b1c1d1e1f1","args":{"output_path":"/home/ann/.bashrc","pane_id":"%1"},"args_bytes":57,` +
	`"risk":{"category":"execute","level":"high","source":"detection"},"detections":[{"detector":"path_sensitive","at":"args.output_path"}],` +
	`"policy":{"hash":"9f2c41d0","mode":"enforce","decision":"ask","applied":true,"rule":"/auditproxy/ask_detections","reason":"A sensitive path."},` +
	`"approval":{"outcome":"approved","scope":"once","by":"ann","user":"ann","channel":"terminal","request":"q1","wait_ms":8123},"result_bytes":240,` +
	`"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","host":"build-7","user":"ann","pid":4211,"labels":{"team":"platform"},"tenant":"acme"}`

// BenchmarkAppend reports the processor time too, of the collector's garbage as well:
// the rest of a busy machine does not count.
func BenchmarkAppend(b *testing.B) {
	for _, bb := range []struct {
		name string
		line string
		cfg  ocsf.Config
	}{
		{"call", plainCall, ocsf.Config{Version: "1.4.0"}},
		{"decided", pipePane, ocsf.Config{Version: "1.4.0"}},
		{"attested", pipePane, ocsf.Config{Version: "1.4.0", Authority: "collector-1"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r, e := stored(b, []byte(bb.line)), ocsf.New(bb.cfg)
			var dst []byte
			var err error
			var from, to syscall.Rusage
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == 0 {
					_ = syscall.Getrusage(syscall.RUSAGE_SELF, &from)
				}
				if dst, err = e.Append(dst[:0], &r); err != nil {
					b.Fatal(err)
				}
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &to)
			used := to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano()
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
			b.SetBytes(int64(len(dst)))
		})
	}
}

// plainCall is a call of a proxy without a policy.
const plainCall = `{"v":1,"kind":"call","record_id":"019e8b1c-4a10-7aaa-8bbb-0123456789ac","session_id":"019e8b1c-0000-7aaa-8bbb-0123456789ab","seq":117,"call_no":58,"ts":"2026-11-20T09:14:03.123456Z",` +
	`"method":"tools/call","tool":"send_keys","outcome":"ok","forwarded":true,"duration_ms":40.873,"request_id":"7","request_id_type":"number",` +
	`"client":{"name":"claude-code","version":"2.1.7"},"server":{"name":"libtmux-mcp","version":"0.1.0a22"},"protocol_version":"2025-06-18","server_command":{"command":"libtmux-mcp"},` +
	`"tier":"execute","annotations":{"readOnlyHint":false,"destructiveHint":true},"tool_hash":"6f1ed002ab5595859014ebf0951522d9a9b2d8c1b2d5a6d8f1a1f1b1c1d1e1f1","args":{"keys":{"len":46,"hmac":"00f067aa0ba902b7"},"pane_id":"%3","enter":true},"args_bytes":130,` +
	`"risk":{"category":"execute","level":"high","source":"tier"},"result_bytes":2240,"host":"build-07","user":"agent","pid":41237,"labels":{"team":"platform"}}`
