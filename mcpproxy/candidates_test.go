package mcpproxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// TestArgumentsOfEveryReadingFit sends calls that servers can read in more ways
// than a record has room for.
func TestArgumentsOfEveryReadingFit(t *testing.T) {
	if testing.Short() {
		t.Skip("one call at a time has nothing for the race detector")
	}
	set := func(i int) string {
		var b strings.Builder
		for j := range 3000 {
			fmt.Fprintf(&b, `"set %d member %d":"clear text number %[2]d",`, i, j)
		}
		return fmt.Sprintf(`{"output_path":"/etc/cron.d/%d",%s"last":{}}`, i, b.String())
	}
	for name, format := range map[string]string{
		"in one params": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pipe_pane"%s}}`,
		"several names": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b","nAme":"c","name":"pipe_pane"%s}}`,
	} {
		for _, n := range []int{2, 5, 20} {
			var sets string
			for i := range n {
				sets += `,"` + [...]string{"arguments", "Arguments"}[i%2] + `":` + set(i)
			}
			_, records := sent(t, nil, func(p *peer) {
				p.send(fmt.Sprintf(format, sets) + "\n")
			})
			for i := range records {
				r := &records[i]
				if r.Kind != audit.KindCall {
					continue
				}
				if size := len(audit.AppendRecord(nil, r)); size > audit.MaxRecord {
					t.Errorf("%s: record of %d readings has %d bytes", name, n, size)
				}
				var paths []string
				for _, op := range audit.Operations(r) {
					if i := strings.Index(string(op.Args), "/etc/cron.d/"); op.Tool == "pipe_pane" && i >= 0 {
						paths = append(paths, string(op.Args[i:i+14]))
					}
				}
				all := strings.Join(paths, " ")
				cut := strings.Contains(strings.Join(r.Anomalies, " "), "candidates_cut")
				if wantCut := n > 15 || n == 5 && name == "several names"; cut != wantCut {
					t.Errorf("%s: %d sets, anomalies %q", name, n, r.Anomalies)
				}
				for i := range n {
					// The last exact and the last other are there in any case.
					if path := fmt.Sprintf("/etc/cron.d/%d", i); !strings.Contains(all, path) && (!cut || i >= n-2) {
						t.Errorf("%s: no reading with %s among %s", name, path, all)
					}
				}
			}
		}
	}
}

// TestArgumentsWithMoreReadings sends names that some servers treat as one: the
// anomaly reports missing readings, not missing arguments. Names that every
// server distinguishes have none, in any number.
func TestArgumentsWithMoreReadings(t *testing.T) {
	many := func(name string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"%s%d":0,`, name, i)
		}
		return b.String()
	}
	var set strings.Builder
	for i := range 30 {
		fmt.Fprintf(&set, `"output_path":"/etc/cron.d/%d",`, i)
	}
	params := func(args string) string { return `"params":{"name":"pipe_pane","arguments":` + args + "}" }
	part := set.String()[:strings.Index(set.String(), `"output_path":"/etc/cron.d/10"`)] // its readings fit
	for _, tt := range []struct {
		name, params, want string
	}{
		{"one name often", params(`{` + set.String() + `"last":1}`), "candidates_cut duplicate_member"},
		{"one name a few times", params(`{` + part + `"last":1}`), "duplicate_member"},
		{"and in the other params, too", params(`{`+part+`"last":1}`) + "," + params(`{`+part+`"last":2}`), "candidates_cut duplicate_member"},
		{"many names in camel case", params(`{` + many("itemNumber") + `"last":1}`), ""},
		{"many names in another alphabet", params(`{` + many("\u540d") + many("\u00fc") + `"last":1}`), ""},
	} {
		_, records := sent(t, nil, func(p *peer) {
			p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call",` + tt.params + "}\n")
		})
		for i := range records {
			if r := &records[i]; r.Kind == audit.KindCall {
				slices.Sort(r.Anomalies)
				if got := strings.Join(r.Anomalies, " "); got != tt.want {
					t.Errorf("%s: anomalies %q, want %q", tt.name, got, tt.want)
				}
			}
		}
	}
}

// TestOversizePartsOfEveryReading sends arguments that are too long to be kept,
// with a name twice and in another case: each part is in the record.
func TestOversizePartsOfEveryReading(t *testing.T) {
	args := `{"output_path":"/srv/pane-logs/ok.log","output_path":"/etc/cron.d/x","Output_Path":"/etc/cron.d/yy","last":"` + strings.Repeat("x", wire.Limit) + `"}`
	_, records := sent(t, nil, func(p *peer) {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pipe_pane","arguments":` + args + "}}\n")
	})
	i := slices.IndexFunc(records, func(r audit.Record) bool { return r.Kind == audit.KindCall })
	if i < 0 {
		t.Fatalf("records %+v, want a call", records)
	}
	var all strings.Builder
	for _, o := range audit.Operations(&records[i]) {
		fmt.Fprintln(&all, o.Tool, o.Args)
	}
	for _, path := range []string{"/srv/pane-logs/ok.log", "/etc/cron.d/x", "/etc/cron.d/yy"} {
		if part := fmt.Sprintf(`"bytes":%d,`, len(path)+2); !strings.Contains(all.String(), part) {
			t.Errorf("no operation has a part with %s:\n%s", part, all.String())
		}
	}
}
