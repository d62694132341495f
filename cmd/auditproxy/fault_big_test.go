package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// TestBatchLongerThanASegment sends one line whose records are longer than a
// segment of the spool. Each of its calls has a record, under every policy:
// nothing failed.
func TestBatchLongerThanASegment(t *testing.T) {
	const n = 900
	var args, line strings.Builder
	for i := range 60 {
		fmt.Fprintf(&args, `,"a%d":"%s"`, i, strings.Repeat("a", 180))
	}
	for i := range n {
		fmt.Fprintf(&line, `,{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work","arguments":{%s}}}`, i+1, args.String()[1:])
	}
	batch := "[" + line.String()[1:] + "]\n"
	for _, policy := range []string{"deny", "allow"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := wrap(t, setup{flags: []string{"--on-audit-failure", policy}, argv: []string{"cat"}})
			must(t, w.send([]byte(batch)))
			got, err := w.out.ReadString('\n')
			must(t, err)
			if got != batch {
				t.Errorf("the server got %.200q…, %d bytes, want all %d", got, len(got), len(batch))
			}
			w.end()
			tr := readTrail(t, w.spool)
			if len(tr.finals) != n || len(tr.kind(audit.KindGap)) != 0 {
				t.Errorf("%d calls have records, %d gaps; want %d and none", len(tr.finals), len(tr.kind(audit.KindGap)), n)
			}
		})
	}
}

// TestManyTools lists more tools than a segment of the spool has room for. The
// calls after that are recorded, and cost as much space as others do.
func TestManyTools(t *testing.T) {
	const calls = 6
	var list strings.Builder
	for i := range 13000 {
		fmt.Fprintf(&list, `,{"name":"%05d%s","annotations":{"readOnlyHint":true}}`, i, strings.Repeat("€", 195))
	}
	script := `{"jsonrpc":"2.0","id":0,"result":{"tools":[` + list.String()[1:] + "]}}\n\x00"
	for id := range calls {
		script += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`+"\n\x00", id+1)
	}
	dir := t.TempDir()
	file, server := filepath.Join(dir, "script"), filepath.Join(dir, "scripted-server")
	must(t, os.WriteFile(file, []byte(script), 0o600))
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, server))

	w := wrap(t, setup{argv: []string{server, file}})
	must(t, w.send([]byte(`{"jsonrpc":"2.0","id":0,"method":"tools/list"}`+"\n")))
	w.next(0)
	for id := 1; id <= calls; id++ {
		must(t, w.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"12999%s"}}`+"\n", id, strings.Repeat("€", 195))))
		if w.next(id).refused() {
			t.Errorf("call %d is refused", id)
		}
	}
	w.end()
	tr := readTrail(t, w.spool)
	for id := 1; id <= calls; id++ {
		if list := tr.finals[id]; len(list) != 1 || list[0].Outcome != audit.OutcomeOK || list[0].Tier != "readonly" {
			t.Errorf("call %d has records %+v", id, list)
		}
	}
	entries, err := spool.List(w.spool)
	must(t, err)
	if len(entries) != 1 || len(entries[0].Segments) > 3 || entries[0].Bytes > 24<<20 {
		t.Errorf("the spool has %+v, want one session of a few segments", entries)
	}
}
