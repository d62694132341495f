package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	"golang.org/x/sys/unix"
)

// TestEvidenceFiles replaces the files that sessions are signed with by everything
// that can be in their place, after a first session has made them. No proxy waits,
// and all calls are recorded. A session without evidence says so in the log; verify
// and doctor report it.
func TestEvidenceFiles(t *testing.T) {
	write := func(text string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			must(t, os.WriteFile(name, []byte(text), 0o600))
			must(t, os.Chmod(name, mode))
		}
	}
	fifo := func(t *testing.T, name string) { must(t, unix.Mkfifo(name, 0o600)) }
	directory := func(t *testing.T, name string) { must(t, os.Mkdir(name, 0o700)) }
	full := func(t *testing.T, name string) {
		must(t, os.Mkdir(name, 0o700))
		must(t, os.Mkdir(filepath.Join(name, "more"), 0o700))
	}
	huge := func(t *testing.T, name string) {
		must(t, os.WriteFile(name, nil, 0o600))
		must(t, os.Truncate(name, 1<<40))
	}
	symlink := func(t *testing.T, name string) {
		must(t, os.Symlink(filepath.Join(filepath.Dir(name), ".old-"+filepath.Base(name)), name))
	}
	for _, tt := range []struct {
		file, what string
		replace    func(t *testing.T, name string)
		says       string // why the second session has no evidence; "" if it has
		verify     string // the state of the second session, "" for ok
	}{
		{"host.key", "FIFO", fifo, "is not a regular file", "unsigned"},
		{"host.key", "symbolic link", symlink, "is a symbolic link", "unsigned"},
		{"host.key", "directory", directory, "is not a regular file", "unsigned"},
		{"host.key", "unreadable", write("", 0o000), "permission denied", "unsigned"},
		{"host.key", "empty", write("", 0o600), "", "unknown_key"},
		{"host.key", "garbage", write("\x00PRIVATE+KEY+x+y+z\xff", 0o600), "has no private key", "unsigned"},
		{"host.key", "readable for others", write("x", 0o644), "can be read by others", "unsigned"},
		{"host.key", "huge", huge, "more than any key", "unsigned"},
		{"host.key.pub", "FIFO", fifo, "", ""},
		{"host.key.pub", "symbolic link", symlink, "", ""},
		{"host.key.pub", "directory", full, "", ""},
		{"host.key.pub", "garbage", write("\x00", 0o666), "", ""},
		{"host.key.tmp", "directory", full, "", ""},
		{"sessions", "FIFO", fifo, "is not a regular file", "unsigned"},
		{"sessions", "symbolic link", symlink, "is a symbolic link", "unsigned"},
		{"sessions", "directory", directory, "is a directory", "unsigned"},
		{"sessions", "unreadable", write("", 0o000), "permission denied", "unsigned"},
		{"sessions", "empty", write("", 0o600), "", ""}, // looks like another spool directory of this host
		{"sessions", "garbage", write(strings.Repeat("garbage\n", 500), 0o600), "is damaged", "unsigned"},
		{"sessions", "huge", huge, "is damaged", "unsigned"},
		{"", "file", write("x", 0o600), "not a directory", "unsigned"},
		{"", "FIFO", fifo, "not a directory", "unsigned"},
		{"", "symbolic link", symlink, "is a symbolic link", "unsigned"},
		{"", "writable for others", func(t *testing.T, name string) {
			must(t, os.Rename(filepath.Join(filepath.Dir(name), ".old-evidence"), name))
			must(t, os.Chmod(name, 0o777))
		}, "can be written by others", "unsigned"},
	} {
		t.Run(strings.TrimSpace(tt.file+" "+tt.what), func(t *testing.T) {
			t.Parallel()
			var before []string
			if tt.what == "unreadable" && os.Geteuid() == 0 { // root without what lets it read everything
				before = []string{dev.Command(t, "setpriv"), "--bounding-set", "-dac_override,-dac_read_search"}
			}
			first := wrap(t, setup{})
			first.answered(1, 100)
			first.end()
			trust := first.trustItself()
			name := filepath.Join(first.spool, "evidence", tt.file)
			if err := os.Rename(name, filepath.Join(filepath.Dir(name), ".old-"+filepath.Base(name))); !errors.Is(err, fs.ErrNotExist) {
				must(t, err)
			}
			tt.replace(t, name)
			first.checkNextSession(before, trust, tt.says, tt.verify)
		})
	}
}

// trustItself returns the name of a trust file with the key of the spool's host.
func (w *wrapped) trustItself() string {
	w.t.Helper()
	trust := filepath.Join(w.t.TempDir(), "trusted-keys")
	must(w.t, os.WriteFile(trust, []byte(runApp(w.t, w.spool, "evidence", "key")), 0o600))
	return trust
}

// checkNextSession starts another session in the spool, whose evidence has the given
// fault. before is that of setup. says is in the log; "" for a session that has
// evidence. state is that of the session for verify; "" if it prints nothing of it.
func (w *wrapped) checkNextSession(before []string, trust, says, state string) {
	t := w.t
	t.Helper()
	earlier := len(readTrail(t, w.spool).kind(audit.KindSessionStart))
	w = wrap(t, setup{before: before, spool: w.spool})
	for id := range 3 {
		if a := w.answered(id, 100); a.refused() {
			t.Errorf("call %d is refused: %+v", id, a)
		}
	}
	if status := w.end(); status != 0 {
		t.Errorf("the proxy ends with the status %#x\n%s", status, &w.stderr)
	}
	if out := w.stderr.String(); says != "" && (!strings.Contains(out, "session has no evidence") || !strings.Contains(out, says)) {
		t.Errorf("the log does not say that the session has no evidence because of %q:\n%s", says, out)
	} else if says == "" && strings.Contains(out, "session has no evidence") {
		t.Errorf("the session has no evidence:\n%s", out)
	}
	tr := readTrail(t, w.spool)
	for id := range 3 {
		if n := len(tr.finals[id]); n == 0 {
			t.Errorf("call %d is not recorded", id)
		}
	}
	starts := tr.kind(audit.KindSessionStart)
	if len(starts) != earlier+1 || (starts[earlier].Evidence == "") != (says != "") {
		t.Fatalf("the sessions are %+v", starts)
	}
	args := []string{"verify"}
	if trust != "" {
		args = append(args, "--trust", trust)
	}
	out := runApp(t, w.spool, args...)
	if want := regexp.MustCompile(`(?m)^` + state + ` +(1 session: host|` + starts[earlier].SessionID + `)`); state != "" && !want.MatchString(out) {
		t.Errorf("verify does not report the session as %s:\n%s", state, out)
	} else if state == "" && strings.Contains(out, "exit") != strings.Contains(out, "exit 0") {
		t.Errorf("verify reports:\n%s", out)
	}
	command := slices.Concat(before, []string{w.proxy, "doctor", "--json"})
	doctor := exec.Command(command[0], command[1:]...)
	doctor.Env = []string{"HOME=" + t.TempDir(), "AUDITPROXY_SPOOL_DIR=" + w.spool}
	report, err := doctor.Output()
	if doctor.ProcessState == nil {
		t.Fatal(err)
	}
	if out, found := string(report), says != ""; strings.Contains(out, "evidence_unusable") != found && !strings.Contains(says, "no space") {
		t.Errorf("doctor reports evidence_unusable: %v, want %v\n%s", !found, found, out)
	}
}
