package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/store"
	"auditproxy/collector/translog"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/sink/clickhouse"
)

// signedSessions stores sessions of a host.
func signedSessions(t *testing.T, s *store.Store, list ...*evidencetest.Session) {
	t.Helper()
	var rows []ingest.Row
	for i, one := range list {
		for seq, line := range one.Lines {
			rows = append(rows, ingesttest.RowOf(t, append(line[:len(line):len(line)], '\n'), ingest.Source{Topic: one.ID, Partition: uint32(i), Offset: uint64(seq)}))
		}
	}
	if err := s.InsertRows(t.Context(), rows, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// TestVerify verifies records in ClickHouse, and against a log and checkpoints
// that were kept elsewhere.
func TestVerify(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	cfg := config{database: "audit", localDir: h.dir + "/local"}
	s, err := cfg.store()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context(), clickhouse.Retention{Events: 400 * day, DeadLetters: 400 * day}); err != nil {
		t.Fatal(err)
	}
	host := evidencetest.NewHost("build-7", time.Now().Add(-72*time.Hour))
	var all []*evidencetest.Session
	for range 4 {
		all = append(all, host.Session(evidencetest.Plan{Calls: 25}))
	}
	signedSessions(t, s, all...)
	dir := t.TempDir()
	trust := filepath.Join(dir, "trust")
	if err := os.WriteFile(trust, []byte(evidencetest.Trust(host)), 0o600); err != nil {
		t.Fatal(err)
	}
	want := func(code int, args []string, texts ...string) {
		t.Helper()
		r := h.run(t, append([]string{"verify"}, args...)...)
		for _, text := range texts {
			if !strings.Contains(r.stdout+r.stderr, text) {
				t.Errorf("verify %q: %+v, want %q", args, r, text)
			}
		}
		if r.code != code {
			t.Errorf("verify %q: %+v, want exit code %d", args, r, code)
		}
	}
	want(2, nil, "unknown", host.Key, "exit 2")
	want(0, []string{"--trust", trust}, "host build-7   sessions 4   records 120   checkpoints 12", "exit 0")
	want(0, []string{"--trust-on-first-use", "--trust", filepath.Join(dir, "kept")}, "exit 0")
	want(0, []string{"--trust", trust, "--session", all[1].ID, "--format", "json"}, `{"session_id":"`+all[1].ID+`","state":"ok","records":30,"verified":30,"findings":[]}`, `"exit":0`)
	want(2, []string{"--trust", trust, "--since", "30m"}, "there is no record to verify")
	want(0, []string{"--trust", trust, "--since", "2h"}, "sessions 4")

	// A log, and what somebody wrote down of it.
	log, err := translog.Open(t.Context(), translog.Config{Dir: filepath.Join(dir, "log"), Name: "auditproxy/log/c"})
	if err != nil {
		t.Fatal(err)
	}
	var entries [][]byte
	for _, one := range all {
		entries = append(append(entries, one.Start().Bytes()), one.Checkpoints()...)
	}
	if err := log.Add(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "log.key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	withLog := filepath.Join(dir, "with-log")
	if err := os.WriteFile(withLog, []byte(evidencetest.Trust(host)+"log "+string(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "log", "checkpoint")
	args := []string{"--trust", withLog, "--log", filepath.Join(dir, "log"), "--checkpoint", kept}
	want(0, args, fmt.Sprintf("log size %d", len(entries)), "exit 0")
	want(2, []string{"--trust", trust, "--log", filepath.Join(dir, "log")}, "name its key in the trust file")
	want(0, append([]string{"--since", "2h"}, args...), "sessions 4", "exit 0")
	want(2, append([]string{"--since", "30m"}, args...), "there is no record to verify")
	// A record with its proof, for somebody who sees nothing else.
	record, err := audit.Parse(all[2].Lines[13])
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := evidencereport.ReadTrust(withLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--log", filepath.Join(dir, "log")}} {
		r := h.run(t, append([]string{"prove", record.RecordID}, more...)...)
		p, err := evidence.ParseProof([]byte(r.stdout))
		if err != nil || r.code != 0 {
			t.Fatalf("prove: %+v, %v", r, err)
		}
		proved, err := p.Verify(trusted)
		if err != nil || proved.Record.RecordID != record.RecordID || (proved.LogCheckpoint != nil) != (more != nil) {
			t.Errorf("prove %q: %+v, %v", more, proved, err)
		}
		if extra := len(r.stdout) - len(p.Record) - len(p.Start); extra > 8<<10 {
			t.Errorf("a proof has %d bytes besides two records", extra)
		}
	}
	for id, code := range map[string]int{"019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e": cli.ExitFound, "x": cli.ExitUnclear} {
		if r := h.run(t, "prove", id); r.code != code || r.stdout != "" {
			t.Errorf("prove %q: %+v, want exit code %d", id, r, code)
		}
	}
	if r := h.run(t, "evidence", "key", "--evidence-log", filepath.Join(dir, "log")); r.code != 0 || r.stdout != "log "+string(key) {
		t.Errorf("evidence key: %+v", r)
	}
	// Rows and checkpoints of the end of a session are gone: the log knows it.
	h.exec(t, fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE session_id = '%s' AND seq > 14 SETTINGS mutations_sync = 2", all[3].ID))
	want(1, args, "tampered", all[3].ID+"  seq 15 to ", "truncated: the checkpoint from the log has size", "exit 1")
	// The log went with them: only the kept checkpoint knows it.
	older, err := translog.Open(t.Context(), translog.Config{Dir: filepath.Join(dir, "older"), Key: filepath.Join(dir, "log.key"), Last: filepath.Join(dir, "last"), Name: "auditproxy/log/c"})
	if err != nil {
		t.Fatal(err)
	}
	if err := older.Add(t.Context(), entries[:8]); err != nil {
		t.Fatal(err)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	want(1, []string{"--trust", withLog, "--log", filepath.Join(dir, "older"), "--checkpoint", kept}, "is rolled back: it has 8 entries, and had 16", "exit 1")
	want(1, []string{"--trust", withLog, "--log", filepath.Join(dir, "older"), "--checkpoint", kept, "--format", "json"}, `"what":"rolled_back"`, `"exit":1`)

	h.exec(t, fmt.Sprintf("ALTER TABLE audit.events UPDATE user = 'eve' WHERE session_id = '%s' AND seq = 4 SETTINGS mutations_sync = 2", all[0].ID))
	h.exec(t, fmt.Sprintf("ALTER TABLE audit.events DELETE WHERE session_id = '%s' SETTINGS mutations_sync = 2", all[1].ID))
	missing := "host_seq 2 is missing between " + all[0].ID + " and " + all[2].ID
	want(1, []string{"--trust", trust}, "seq 4 edited", "columns that differ from the record: user", missing, "exit 1")
	want(1, []string{"--trust", trust, "--since", "100h"}, missing, "exit 1")
	want(2, []string{"--trust", trust, "--session", all[1].ID}, "there is no record to verify")
	// What knows the session says that it is missing.
	of := filepath.Join(dir, "of-sessions")
	if err := os.WriteFile(of, slices.Concat(all[1].Checkpoints()[0], []byte("\n"), all[2].Checkpoints()[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	want(1, []string{"--trust", trust, "--session", all[1].ID, "--checkpoint", of}, "session "+all[1].ID+" is missing: it has a checkpoint", "exit 1")
	want(0, []string{"--trust", trust, "--session", all[2].ID, "--checkpoint", of}, "exit 0")
	missing = "host_seq 2 is missing: the log knows session " + all[1].ID
	want(1, append([]string{"--session", all[1].ID}, args...), missing, "exit 1")
	want(1, append([]string{"--since", "100h"}, args...), missing, "exit 1")
	want(1, append([]string{"--since", "100h", "--format", "json"}, args...), `"what":"missing_session"`)
	if r := h.run(t, append([]string{"verify", "--since", "2h"}, args...)...); strings.Contains(r.stdout, "missing") {
		t.Errorf("of the sessions of before some were selected: %+v", r)
	}
}
