package mcpproxy

import (
	"testing"
	"time"
)

// TestServerEndsBeforeItsProxy: of a client that sends SIGTERM and, as MCP SDKs do, 2 s
// later SIGKILL, the proxy has killed a server that ignores SIGTERM some time before.
func TestServerEndsBeforeItsProxy(t *testing.T) {
	const patience, busy = 2 * time.Second, 500 * time.Millisecond
	if grace > patience-busy {
		t.Errorf("the proxy kills the server %v after SIGTERM, want at most %v", grace, patience-busy)
	}
}
