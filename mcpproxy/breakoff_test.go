package mcpproxy

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"auditproxy/mcpproxy/wire"
)

// The first line of a value over several lines was forwarded and the second is
// refused: a server that reads values over lines must not complete it with what
// comes later.
func TestRefusedValueDoesNotGoOn(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c, j := testSession(t)
	var server bytes.Buffer
	c.server, c.out = &server, newOutput(out)
	q := wire.NewRequests(wire.Config{Hash: c.s.wireHash})
	for _, read := range []struct {
		line   string
		broken bool
	}{
		{`{"jsonrpc":"2.0","id":1,"params":{"name":"late"},`, false},
		{`"id":2,"method":"tools/call","params":{"name":"late"}`, true},
		{`"id":1,"method":"tools/call"}`, false},
	} {
		j.fail(read.broken)
		c.forward(q.Scan(copy(q.Space(), read.line+"\n")), q.Ready())
	}
	stream := server.String()
	for dec := json.NewDecoder(&server); ; {
		var m struct{ Method string }
		if err := dec.Decode(&m); err != nil {
			break
		}
		if m.Method != "" {
			t.Errorf("a server that reads values over lines executes %+v of %q", m, stream)
		}
	}
}
