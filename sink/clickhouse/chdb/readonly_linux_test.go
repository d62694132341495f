package chdb_test

import (
	"strings"
	"testing"

	"auditproxy/deploy/dev"
)

// TestReadOnlyDirectory starts the engine on a disk that became read-only: it ends, and
// says what to do.
func TestReadOnlyDirectory(t *testing.T) {
	dir := shortDir(t)
	dev.ReadOnly(t, dir)
	cmd := engineCommand(t, dir)
	var said strings.Builder
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "mount it for writing") {
		t.Errorf("it ended with %v and said %q", err, &said)
	}
}
