//go:build !race

package mcpproxy

import (
	"testing"
	"time"

	"auditproxy/mcpproxy/wire"
)

// An ordinary call allocates nothing once warm.
func TestCallAllocatesNothing(t *testing.T) {
	c, j := testSession(t)
	m := wire.Message{
		Raw: []byte(`{}`), ID: []byte("17"), Method: []byte(`"tools/call"`), Name: []byte(`"send_keys"`),
		Arguments: []byte(`{"keys":"ls -la","pane_id":"%1"}`), ArgumentsBytes: 32,
	}
	got := answer("17")
	call := func() {
		c.items = c.items[:0]
		now := time.Now()
		c.read(0, &m, 0, now, "")
		if _, err := c.s.intend(c.items, now); err != nil {
			t.Fatal(err)
		}
		c.s.finish(got, false)
		j.b.Reset()
	}
	for range 100 {
		call()
	}
	if n := testing.AllocsPerRun(1000, call); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}
