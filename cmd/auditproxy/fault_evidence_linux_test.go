package main

import (
	"os"
	"path/filepath"
	"testing"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
)

// TestEvidenceFullDisk has no room for the evidence, and some for the sessions.
func TestEvidenceFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	must(t, os.MkdirAll(filepath.Join(dir, "evidence"), 0o700))
	must(t, os.Chmod(dir, 0o700))
	dev.SmallDisk(t, filepath.Join(dir, "evidence"), "16k")
	rubbish := filepath.Join(dir, "evidence", "rubbish")
	if err := os.WriteFile(rubbish, make([]byte, 64<<10), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	w := &wrapped{t: t, spool: dir}
	w.checkNextSession(nil, "", "no space left on device", "unsigned")
	must(t, os.Remove(rubbish))
	w = wrap(t, setup{spool: dir})
	w.answered(1, 100)
	w.end()
	if starts := readTrail(t, dir).kind(audit.KindSessionStart); len(starts) != 2 || starts[1].Evidence == "" {
		t.Errorf("once there is room, the sessions are %+v", starts)
	}
}
