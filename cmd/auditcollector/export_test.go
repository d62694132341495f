package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/cmd/internal/ledger"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/google/go-cmp/cmp"
)

// newStore returns the store of h's engine, with its tables.
func (h home) newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := config{database: "audit", localDir: h.dir + "/local"}.store()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Migrate(t.Context(), clickhouse.Retention{Events: 400 * day, DeadLetters: 400 * day}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExport checks each format against the table, by programs that others use.
func TestExport(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	s := h.newStore(t)
	host := evidencetest.NewHost("build-7", time.Now().Add(-72*time.Hour))
	signedSessions(t, s, host.Session(evidencetest.Plan{Calls: 25}), host.Session(evidencetest.Plan{Calls: 25}))
	// All types, and texts of a stranger.
	code := int64(-32600)
	hostile := audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(time.Now()), SessionID: audit.NewID(time.Now()), Seq: 1<<64 - 1, CallNo: 1 << 63, TS: time.Now().Truncate(time.Microsecond),
		Method: "tools/call", Tool: "=HYPERLINK(\"http://x\")\n\x1b[2J\u202e漢", Target: "a\"b,c", Outcome: audit.OutcomeError, ErrorType: "jsonrpc_error", ErrorCode: &code, Duration: -1,
		Args: `{"a":"\u0000\n"}`, ArgsBytes: 1 << 40, Anomalies: []string{"late", "x"}, NotDurable: true, Labels: `{"k":"v"}`,
	}
	if err := s.InsertRows(t.Context(), []ingest.Row{ingesttest.Row(t, hostile, ingest.Source{Topic: "t"})}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	export := func(name string, code int, args ...string) (string, result) {
		t.Helper()
		file := filepath.Join(dir, name)
		r := h.run(t, append([]string{"export", "--output", file}, args...)...)
		if r.code != code || r.stdout != "" {
			t.Errorf("export %q: %+v, want exit code %d", args, r, code)
		}
		return file, r
	}
	const total = 2*30 + 1

	file, r := export("records.ndjson", 0)
	if want := fmt.Sprintf("exported %d records to %s\n", total, file); r.stderr != want {
		t.Errorf("it says %q, want %q", r.stderr, want)
	}
	if found := ledger.Follow(h.tableBook(t), exportBook(t, file)); len(found) > 0 {
		t.Error(found)
	}
	signed := filepath.Join(dir, "signed.ndjson")
	const left = "can leave out records of a session: auditproxy verify --file may report these as deleted"
	if r := h.run(t, "export", "--until", "30m", "--output", signed); r.code != 0 || strings.Count(r.stderr, left) != 1 || !strings.Contains(r.stderr, "auditcollector: --until "+left) {
		t.Errorf("export --until: %+v", r)
	}
	trust := filepath.Join(dir, "trust")
	if err := os.WriteFile(trust, []byte(evidencetest.Trust(host)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(clitest.Build(t, "auditproxy/cmd/auditproxy"), "verify", "--trust", trust, "--file", signed).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "host build-7   sessions 2   records 60") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if r := h.run(t, "export", "--output", "-", "--when", `record.outcome == "error" && op.tool != ""`); r.code != 0 || !strings.Contains(r.stdout, hostile.RecordID) || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stderr, "--when "+left) {
		t.Errorf("export --when: %+v", r)
	}
	printed := h.run(t, "export")
	if text, err := os.ReadFile(file); err != nil || printed.code != 0 || printed.stdout != string(text) {
		t.Errorf("standard output differs from the file: %d bytes, %v, %+v", len(text), err, printed.code)
	}

	file, r = export("events.ocsf", 0, "--format", "ocsf")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for line := range strings.Lines(string(text)) {
		var e struct {
			Class int `json:"class_uid"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Class == 0 {
			t.Errorf("%v: %s", err, line)
		}
		events++
	}
	if checkpoints := int(h.number("SELECT count() FROM audit.events WHERE kind = 'checkpoint'")); events != total-checkpoints || !strings.Contains(r.stderr, fmt.Sprintf("%d without an event", checkpoints)) {
		t.Errorf("%d events of %d records with %d checkpoints, %q", events, total, checkpoints, r.stderr)
	}

	file, r = export("table.csv", 0, "--format", "csv", "--since", "30m")
	if strings.Contains(r.stderr, left) {
		t.Errorf("an export that cannot be verified says %q", r.stderr)
	}
	text, err = os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%q, %v", rows, err)
	}
	cell := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
	if cell("tool") != "'"+hostile.Tool || cell("error_code") != "-32600" || cell("anomalies") != `["late","x"]` || cell("durable") != "false" {
		t.Errorf("the cells are %q", rows[1])
	}

	file, _ = export("table.parquet", 0, "--format", "parquet")
	h.checkParquet(t, file, total)
	pyarrowReads(t, file, hostile, total)
	if r := h.run(t, "export", "--format", "parquet", "--output", file, "--resume"); r.code != 0 || !strings.Contains(r.stderr, "exported 0 records to "+file+"\n") {
		t.Errorf("nothing to add: %+v", r)
	}

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "xml"}, `--format is "xml", want ocsf, ndjson, csv, parquet`},
		{[]string{"--since", "x", "--until", "y"}, "--until:"},
		{[]string{"--since", "1h", "--until", "2h"}, "--until is before --since"},
		{[]string{"--when", "op.tool = 1"}, "--when is not a condition: 1:"},
		{[]string{"--output", signed, "--resume", "--when", "true"}, `begun with --when ""`},
		{[]string{"--resume"}, "--resume needs --output"},
		{[]string{"--format", "parquet", "--follow"}, "--follow is not for --format parquet"},
		{[]string{"--output", file}, "continue it with --resume"},
		{[]string{"--output", signed, "--resume", "--format", "csv"}, "begun with --format ndjson"},
		{[]string{"--output", "/proc/none"}, `exporting to "/proc/none"`},
	} {
		if r := h.run(t, append([]string{"export"}, tt.args...)...); r.code != 2 || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("export %q: %+v, want %q", tt.args, r, tt.want)
		}
	}
}

// checkParquet compares a file with the table, as ClickHouse reads it.
func (h home) checkParquet(t *testing.T, file string, total int) {
	t.Helper()
	var columns []string
	for _, m := range audit.RecordMembers() {
		for _, c := range m.Columns() {
			columns = append(columns, "ifNull(toString(`"+c.Name+"`), '-')")
		}
	}
	sum := fmt.Sprintf("SELECT count(), sum(cityHash64(%s, toString(raw))) FROM ", strings.Join(columns, ", "))
	want, err := h.query(chdb.Writer, sum+"audit.events")
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.query(chdb.Writer, sum+"file('"+file+"', Parquet)")
	if err != nil || got != want || !strings.HasPrefix(got, fmt.Sprint(total, "\t")) {
		t.Errorf("ClickHouse reads %q, %v, want %q", got, err, want)
	}
}

// pyarrowReads checks the types and values that pyarrow reads.
func pyarrowReads(t *testing.T, file string, want audit.Record, total int) {
	t.Helper()
	const script = `
import json, sys
import pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
table.validate(full=True)
row = next(r for r in table.to_pylist() if r["record_id"] == sys.argv[2])
names = ["arrived_at", "record_id", "seq", "call_no", "ts", "tool", "error_code", "duration_ms", "args_bytes", "anomalies", "durable", "raw"]
print(json.dumps({"rows": table.num_rows,
	"types": {n: str(table.schema.field(n).type) for n in names},
	"row": {n: row[n].isoformat() if n in ("ts",) else row[n] for n in names if n not in ("raw", "arrived_at")}}))
`
	out, err := exec.Command(dev.Fetched(t, "pyarrow-*", "bin", "python"), "-c", script, file, want.RecordID).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got map[string]any
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"rows": json.Number(fmt.Sprint(total)),
		"types": map[string]any{
			"arrived_at": "timestamp[us, tz=UTC]", "record_id": "string", "seq": "uint64", "call_no": "uint64", "ts": "timestamp[us, tz=UTC]", "tool": "string", "error_code": "int64",
			"duration_ms": "double", "args_bytes": "int64", "anomalies": "list<element: string not null>", "durable": "bool", "raw": "binary",
		},
		"row": map[string]any{
			"record_id": want.RecordID, "seq": json.Number("18446744073709551615"), "call_no": json.Number("9223372036854775808"), "ts": want.TS.UTC().Format("2006-01-02T15:04:05.000000+00:00"),
			"tool": want.Tool, "error_code": json.Number("-32600"), "duration_ms": nil, "args_bytes": json.Number("1099511627776"), "anomalies": []any{"late", "x"}, "durable": false,
		},
	}, got); diff != "" {
		t.Errorf("pyarrow reads (-want +got):\n%s", diff)
	}
}

// exportBook are the records of an export as ndjson.
func exportBook(t *testing.T, file string) ledger.Book {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := ledger.Book{Place: "export"}
	for line := range bytes.Lines(text) {
		b.Entries = append(b.Entries, entry(t, bytes.TrimSuffix(line, []byte("\n"))))
	}
	return b
}

// TestExportKilled kills exports on their way and continues them: each record is in
// the file once.
func TestExportKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	s := h.newStore(t)
	const total, batch = 30_000, 2000
	args := audit.JSON(`{"keys":"` + strings.Repeat("x", 1000) + `"}`)
	want := map[string]bool{}
	at := time.Now().Add(-time.Hour)
	for from := 0; from < total; from += batch {
		var rows []ingest.Row
		for i := from; i < from+batch; i++ {
			r := ingesttest.Call(i, "send_keys", at)
			r.SessionID, r.Args = fmt.Sprintf("019e8b1c-0000-7aaa-8bbb-%012d", i%7), args
			want[r.RecordID] = true
			rows = append(rows, ingesttest.Row(t, r, ingest.Source{Topic: "t", Offset: uint64(i)}))
		}
		if err := s.InsertRows(t.Context(), rows, at.Add(time.Duration(from)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	// The id of a record in a line of each format.
	recordID := regexp.MustCompile(`(?:"record_id":"|"profiles":\[[^\]]*\],"uid":"|,call,)([0-9a-f-]{36})`)
	for _, format := range []string{"ndjson", "ocsf", "csv"} {
		file := filepath.Join(dir, "records."+format)
		kills := 0
		for last := ""; ; {
			cmd := exec.Command(h.exe, "export", "--format", format, "--output", file, "--resume")
			cmd.Env, cmd.Stderr = h.env, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			// Killed at the next mark.
			var err error
			over := false
			for tick := time.NewTicker(time.Millisecond); !over; {
				select {
				case err = <-ended:
					over = true
				case <-tick.C:
					if text, readErr := os.ReadFile(file + ".mark"); readErr == nil && string(text) != last {
						last = string(text)
						_ = cmd.Process.Kill() // it may have ended
						if err = <-ended; err != nil {
							kills++
						}
						over = true
						tick.Stop()
					}
				}
			}
			if err == nil {
				break
			}
			if kills > 100 {
				t.Fatalf("it does not end: %v", err)
			}
		}
		if kills < 3 {
			t.Errorf("%s: killed only %d times", format, kills)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for line := range bytes.Lines(text) {
			if id := recordID.FindSubmatch(line); id != nil {
				got[string(id[1])]++
			}
		}
		for id := range want {
			if got[id] != 1 {
				t.Fatalf("%s: record %s is there %d times; %d records, %d kills", format, id, got[id], len(got), kills)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d records, want %d", format, len(got), len(want))
		}
		t.Logf("%s: %d kills", format, kills)
	}
}

// TestOlderTables checks what a command says of tables that an older version made.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	h.newStore(t)
	h.exec(t, "DROP TABLE audit.erased_sessions")
	h.exec(t, "ALTER TABLE audit.alert_marks DROP COLUMN closed")
	for _, command := range []string{"verify", "export"} {
		const want = "if the tables are of an older version, start auditcollector run, or run auditcollector migrate"
		if r := h.run(t, command); r.code != cli.ExitUnclear || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v", command, r)
		}
	}
}
