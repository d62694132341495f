package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"

	"github.com/google/go-cmp/cmp"
)

// TestDiagnosisMembers has each member of doctor's JSON once: programs rely on
// their names.
func TestDiagnosisMembers(t *testing.T) {
	d := &diagnosis{
		Version:  "1.2.3",
		Config:   []cli.Setting{{Key: "drain", Value: "1s", Source: cli.Source{Name: "/etc/auditproxy/config.yaml"}}},
		Policy:   &policyDiagnosis{"preset:libtmux-readonly", true, "hosted", "0a1b", "enforce", 7, true, "no one: it is part of auditproxy"},
		Approval: &approvalDiagnosis{[]string{"client", "files"}, "2m0s", "/var/lib/approvals", "root may answer", true, 2},
		Spool:    &spoolDiagnosis{"/var/lib/spool", 1000, 50_000_000, 1, 2, 3, 4},
		Clients: []client{{"Cursor", "/home/ann/.cursor/mcp.json", []server{
			{"tmux", "/srv/project", "wrapped", false, "does not start"}, {"linear", "", "remote", true, ""},
		}}},
		Problems: []finding{}, Findings: []string{}, Unclear: []string{},
	}
	d.find("disk_space_low", "only %s of disk space is free for the spool", "47.7 MiB")
	d.unclear("client_unreadable", "client configuration %q: %v", "/home/ann/.claude.json", "permission denied")
	d.conclude()
	var got strings.Builder
	must(t, terminal.PrintJSON(&got, d))
	// A line for each member of the object.
	text := regexp.MustCompile(`,"(version|status|config|policy|approval|spool|clients|problems|findings|unclear)":([\[{])`).ReplaceAllString(got.String(), ",\n\"$1\":$2")
	const golden = "testdata/diagnosis.json"
	if *update {
		must(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDiagnosisStatus checks that something to do outweighs what could not be
// checked.
func TestDiagnosisStatus(t *testing.T) {
	for _, tt := range []struct {
		todo, unclear bool
		want          status
	}{
		{false, false, statusOK}, {false, true, statusUnclear}, {true, false, statusTodo}, {true, true, statusTodo},
	} {
		d := new(diagnosis)
		if tt.todo {
			d.find("code", "text")
		}
		if tt.unclear {
			d.unclear("code", "text")
		}
		if d.conclude(); d.Status != tt.want {
			t.Errorf("todo %v, unclear %v: %q, want %q", tt.todo, tt.unclear, d.Status, tt.want)
		}
	}
}

// TestDiagnosisCodes compares the codes with their documentation.
func TestDiagnosisCodes(t *testing.T) {
	names, err := filepath.Glob("doctor*.go")
	must(t, err)
	inCode := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		must(t, err)
		for _, m := range regexp.MustCompile(`d\.(?:find|unclear)\("([a-z_]+)", `).FindAllStringSubmatch(string(text), -1) {
			inCode[m[1]] = true
		}
	}
	page, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	_, table, _ := strings.Cut(string(page), "<!-- doctor's codes -->")
	table, _, _ = strings.Cut(table, "<!-- end of the codes -->")
	inPage := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		inPage[m[1]] = true
	}
	if diff := cmp.Diff(inCode, inPage); diff != "" || len(inCode) < 10 {
		t.Errorf("%d codes (-code +docs/operations.md):\n%s", len(inCode), diff)
	}
}

// TestDoctorFullDisk prints the report to where there is no space.
func TestDoctorFullDisk(t *testing.T) {
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}} {
		var stderr strings.Builder
		a := &app{env: []string{"HOME=" + t.TempDir()}, stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &stderr}
		const want = "auditproxy: printing the report: no space left on device\n"
		if code := a.run(t.Context(), args); code != 2 || stderr.String() != want {
			t.Errorf("%q: exit code %d and %q, want 2 and %q", args, code, stderr.String(), want)
		}
	}
}
