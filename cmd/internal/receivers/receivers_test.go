package receivers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/receivers"
	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const good = `
receivers:
  - name: siem
    since: 7d
    when: op.tool == "kill_server"
    alerts: false
    raw: true
    kafka:
      brokers: ["a:9092"]
      topic: audit.ocsf
      tls: {ca_file: /ca, cert_file: /c, key_file: /k}
      sasl: {mechanism: plain, username: u, password_file: /p}
  - {name: lines, format: ndjson, since: now, file: {path: /x, mode: "0640", max_size: 1MiB, keep: 3, keep_for: 30d}}
  - {name: post, http: {url_file: /u, headers_file: /h, body: array, gzip: true, batch_bytes: 64KiB, batch_events: 5, timeout: 5s, tls: {}}}
  - {name: traces, arguments: true, since: "2026-11-21", otlp: {endpoint: "https://c:4318", protocol: http/protobuf, compression: gzip, headers_file: /h, timeout: 5s, insecure: false, signals: [traces]}}
`

// TestLoad reads what is right, and names the place of what is wrong. The JSON Schema
// says the same, except where only CEL, or another receiver, can tell.
func TestLoad(t *testing.T) {
	list, err := receivers.Load([]receivers.File{{Name: "r.yaml", Text: []byte(good)}}, alert.Paths{}, now)
	if err != nil || len(list) != 4 {
		t.Fatalf("%d receivers, %v", len(list), err)
	}
	siem, lines, post, traces := list[0], list[1], list[2], list[3]
	record := audit.Record{Tool: "list_panes", Method: "tools/call"}
	row := ingest.Row{Record: record, Operations: audit.Operations(&record)}
	if siem.Filter.Match(&row) || siem.Format != receivers.OCSF || siem.Alerts || !siem.Raw || !siem.Since.Equal(now.Add(-7*24*time.Hour)) {
		t.Errorf("%+v", siem)
	}
	if siem.Kafka.TLS.CA != "/ca" || siem.Kafka.PasswordFile != "/p" || siem.Kafka.Topic != "audit.ocsf" {
		t.Errorf("%+v", siem.Kafka)
	}
	if lines.Alerts || !lines.Since.IsZero() || *lines.File != (receivers.FileTarget{Path: "/x", Mode: 0o640, MaxSize: 1 << 20, Keep: 3, KeepFor: 30 * 24 * time.Hour}) {
		t.Errorf("%+v %+v", lines, lines.File)
	}
	if !post.Alerts || post.HTTP.TLS == nil || post.HTTP.BatchBytes != 64<<10 || post.HTTP.URLFile != "/u" {
		t.Errorf("%+v %+v", post, post.HTTP)
	}
	if traces.Format != receivers.OTLP || traces.Alerts || !traces.Arguments || len(traces.OTLP.Signals) != 1 {
		t.Errorf("%+v %+v", traces, traces.OTLP)
	}
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/new", 0o700), os.Symlink("new", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	schema := compile(t)
	if err := validate(t, schema, good); err != nil {
		t.Errorf("the schema does not accept it: %v", err)
	}
	for _, tt := range []struct {
		text, want string
		schema     bool // accepts it
	}{
		{"", "r.yaml:1:1: there are no receivers", false},
		{"receivers: x", "r.yaml:1:12: want a list of receivers", false},
		{"x: 1", "r.yaml:1:1: \"x\" is not known here\nr.yaml:1:1: there are no receivers", false},
		{"receivers:\n- {name: a}", "r.yaml:2:3: the receiver goes nowhere: want one of otlp, kafka, file and http", false},
		{"receivers: [{name: A, file: {path: /x}}]", `r.yaml:1:20: "A" is not a name of a receiver, want lower-case letters, digits and hyphens`, false},
		{"receivers: [{name: otlp, file: {path: /x}}]", `r.yaml:1:20: "otlp" is the name of the receiver at the keys otlp.*`, false},
		{"receivers:\n- {name: a, file: {path: /x}}\n- {name: a, file: {path: /y}}", `r.yaml:3:10: "a" is the name of the receiver at r.yaml:2`, true},
		{"receivers:\n- {name: a, file: {path: /x}}\n- {name: b, file: {path: /y/../x}}", `r.yaml:3:26: "/y/../x" is the file of the receiver at r.yaml:2: name another file`, true},
		{"receivers:\n- {name: a, file: {path: " + dir + "/new/x}}\n- {name: b, file: {path: " + dir + "/link/x}}", `r.yaml:3:26: "` + dir + `/link/x" is the file of the receiver at r.yaml:2: name another file`, true},
		{"receivers:\n- {name: a, file: {path: x}}", `r.yaml:2:26: "x" is not an absolute path`, false},
		{"receivers:\n- {name: a, file: {path: /x, mode: \"0666\"}}", `r.yaml:2:36: "0666" is not a mode here, want 0600 or 0640`, true},
		{"receivers:\n- {name: a, format: otlp, file: {path: /x}}", `r.yaml:2:3: the format otlp goes with otlp, not with kafka, file or http`, false},
		{"receivers:\n- {name: a, format: ndjson, otlp: {endpoint: \"http://x\"}}", `r.yaml:2:3: otlp goes with the format otlp, not ndjson`, false},
		{"receivers:\n- {name: a, format: ndjson, alerts: true, file: {path: /x}}", `r.yaml:2:3: alerts is for the format ocsf`, false},
		{"receivers:\n- {name: a, http: {url: \"http://u:p@h\"}}", `r.yaml:2:25: the address has a password: put it in a file, and name that in url_file`, true},
		{"receivers:\n- {name: a, http: {}}", `r.yaml:2:19: http needs url or url_file, one of them`, false},
		{"receivers:\n- {name: a, http: {url: \"http://h\", password: x}}", `r.yaml:2:37: "password" is not known here`, false},
		{"receivers:\n- {name: a, kafka: {brokers: [\"a:1\"], topic: t, sasl: {mechanism: plain}}}", `r.yaml:2:55: sasl needs mechanism, username and password_file`, false},
		{"receivers:\n- {name: a, since: soon, file: {path: /x}}", `r.yaml:2:20: "soon" is not a time; use "2026-11-21 10:00", 10:00, 7d, "2 days ago", today or yesterday`, true},
		{"receivers:\n- name: a\n  file: {path: /x}\n  when: |\n    true &&\n    nothing", `r.yaml:6:5: undeclared reference to 'nothing'`, true},
		{"receivers:\n- {name: a, file: {path: /x, max_size: 1}}", `r.yaml:2:40: "1" is not a size here, want at least 64KiB, such as 1MiB`, true},
	} {
		_, err := receivers.Load([]receivers.File{{Name: "r.yaml", Text: []byte(tt.text)}}, alert.Paths{}, now)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s\n(-want +got)\n%s", tt.text, diff)
		}
		if err := validate(t, schema, tt.text); (err == nil) != tt.schema {
			t.Errorf("%s\nthe schema says %v", tt.text, err)
		}
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.ReceiversV1()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	const url = "urn:auditproxy:receivers:v1"
	if err := c.AddResource(url, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate reads YAML as JSON.
func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}
