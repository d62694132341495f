package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/process"
	"auditproxy/sink/clickhouse/chdb/chdbtest"
)

// TestTablesLeakNothing puts a credential into every place of the traffic, under
// a policy that has people asked, and has a collector store the spool. The
// credential is in no column of any table or view, the sets behind counts and
// dead letters included, and not in the collector's log.
func TestTablesLeakNothing(t *testing.T) {
	t.Parallel()
	library := chdbtest.Library(t)
	proxy, collector := build(t, "./cmd/auditproxy"), build(t, "./cmd/auditcollector")
	credential := "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	s := newSweep(t, proxy)
	policy := filepath.Join(s.dir, "policy.json")
	if err := os.WriteFile(policy, []byte(`{"version":"1","default":"allow","auditproxy":{"mode":"observe","approval":"ask"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.config["policy"] = map[string]any{"file": policy}
	piped := request("pipe_pane", `"tools/call","params":{"name":"pipe_pane","arguments":{"pane_id":"%1","output_path":"/etc/cron.d/VALUE"}}`, true)
	for _, form := range append([]string{"SECRET"}, said...) {
		for _, p := range append([]position{piped}, positions...) {
			s.traffic.say(p, quoteInner(strings.ReplaceAll(form, "SECRET", credential)))
		}
	}
	s.refused(t)
	stored := len(records(t, s.spool))

	home, err := os.MkdirTemp("", "ap") // short, for the sockets below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "AUDITCOLLECTOR_LOCAL_DIR=" + home + "/l", "AUDITCOLLECTOR_LOCAL_LIBRARY=" + library,
		"AUDITCOLLECTOR_SPOOL_DIRS=" + s.spool, "AUDITCOLLECTOR_METRICS_LISTEN=127.0.0.1:0", "AUDITCOLLECTOR_REVIEW_LISTEN=off"}
	run := exec.Command(collector, "run")
	var logged bytes.Buffer
	run.Env, run.Stderr = env, &logged
	process.EndWithParent(run, syscall.SIGTERM)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	query := func(sql string) string {
		cmd := exec.Command(collector, "query", "--format", "json", sql)
		cmd.Env = env
		out, _ := cmd.Output() // an error shows as an answer that never comes
		return string(out)
	}
	eventually(t, "all is stored and the alert is raised", func() bool {
		return query("SELECT toUInt32(count()) AS n FROM events") == `{"n":`+strconv.Itoa(stored)+"}\n" &&
			strings.HasPrefix(query("SELECT toUInt32(count()) AS n FROM open_alerts WHERE rule = 'pipe-pane-outside' HAVING n > 0"), "{")
	})
	tables, clear := 0, 0
	for _, table := range chdbtest.Query(t, home+"/l", "SELECT name FROM system.tables WHERE database = 'audit'") {
		tables++
		// This format has the sets as well.
		rows := strings.Join(chdbtest.QueryFormat(t, home+"/l", "RowBinary", "SELECT * FROM audit.`"+table+"`"), "\n")
		if form := leak([]byte(rows), credential); form != "" {
			t.Errorf("%s: %s", table, form)
		}
		if strings.Contains(rows, "/etc/cron.d/") {
			clear++
		}
	}
	if tables < 25 || clear < 5 {
		t.Errorf("%d tables and views were searched, and the directory was found in %d", tables, clear)
	}
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Errorf("the collector: %v\n%s", err, &logged)
	}
	if form := leak(logged.Bytes(), credential); form != "" {
		t.Errorf("the collector's log: %s", form)
	}
}
