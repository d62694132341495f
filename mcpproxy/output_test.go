package mcpproxy

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"
)

// TestOutputEndsWithItsTail has the last write interrupted by the server's end,
// and the output closed, before finish gets its turn: the client still gets all
// bytes and the end of its stream.
func TestOutputEndsWithItsTail(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := newOutput(w)
	o.over.Store(true)
	if err := w.SetWriteDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("line\n"), 20_000) // more than a pipe holds
	o.write(want)
	o.close()
	o.finish(time.Now().Add(time.Minute))
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the client got %d of %d bytes, %v", len(got), len(want), err)
	}
	<-o.done
}
