package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector/export"
)

// TestReceiversHaveReasons checks that a reason is cut on a terminal only, and not
// to nothing on a narrow one.
func TestReceiversHaveReasons(t *testing.T) {
	reason := strings.Repeat("reason ", 20) + "at the end"
	var out strings.Builder
	if err := writeReceivers(&out, []receiverStatus{{Name: "siem", Error: reason}}, time.Now()); err != nil || !strings.HasSuffix(out.String(), reason+"\n") {
		t.Errorf("where no terminal is, %v and %q, want the whole reason", err, out.String())
	}
	rows := []string{"NAME\tERROR", "siem\t" + reason, "other\t-"}
	for _, tt := range []struct {
		cells int
		want  string
	}{
		{0, "siem   " + reason + "\n"},
		{200, "siem   " + reason + "\n"},
		{60, "siem   " + reason[:52] + "…\n"},
		{20, "siem   " + reason[:39] + "…\n"},
	} {
		if got := table(rows, tt.cells)[1]; got != tt.want {
			t.Errorf("on %d cells:\n%q, want\n%q", tt.cells, got, tt.want)
		}
	}
}

// TestReceiverStates checks what is said of receivers that this configuration names, and of
// those that it does not: another one may, and its collector sends.
func TestReceiverStates(t *testing.T) {
	now := time.Now()
	sends := export.Mark{Owner: "run", At: now.Add(-time.Second)}
	fails, ended, killed := sends, sends, sends
	fails.Failing, ended.Owner, killed.At = now.Add(-time.Minute), "", now.Add(-time.Hour)
	for _, tt := range []struct {
		mark        export.Mark
		known       bool
		here, there string // configured, and not
	}{
		{export.Mark{}, false, "new", unconfigured},
		{sends, true, "works", "works"},
		{fails, true, "fails", "fails"},
		{ended, true, "waits", unconfigured},
		{killed, true, "waits", unconfigured},
	} {
		f := export.Status{Mark: tt.mark, Known: tt.known}
		if here, there := receiverState(f, true, now), receiverState(f, false, now); here != tt.here || there != tt.there {
			t.Errorf("%+v: %s, and where it is not configured %s, want %s and %s", f, here, there, tt.here, tt.there)
		}
	}
	var out strings.Builder
	if err := writeReceivers(&out, []receiverStatus{{Name: "siem", State: unconfigured}}, now); err != nil || !strings.Contains(out.String(), "unconfigured: no collector sends") {
		t.Errorf("%v and %q, want what unconfigured means", err, out.String())
	}
}

// TestReceiversCheck checks a file with problems.
func TestReceiversCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "receivers.yaml")
	if err := os.WriteFile(file, []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
	code := a.run(t.Context(), []string{"receivers", "check", file})
	if want := "auditcollector: " + file + ":1:1: \"x\" is not known here\n" + file + ":1:1: there are no receivers\n"; code != cli.ExitFound || stdout.String() != "" || stderr.String() != want {
		t.Errorf("exit code %d, standard output %q, standard error %q,\nwant %d and %q", code, stdout.String(), stderr.String(), cli.ExitFound, want)
	}
}
