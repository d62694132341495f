package mcpproxy

import (
	"io"
	"sync"
)

// input is the server's end: the client's bytes as they come, and between its
// lines the frames that were approved.
type input struct {
	mu      sync.Mutex // held over writes; taken before session.mu
	to      io.WriteCloser
	midLine bool // the last byte written was no LF
}

// Write forwards the client's bytes. Only fromClient calls it.
func (in *input) Write(b []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.write(b)
}

func (in *input) write(b []byte) (n int, err error) {
	if n, err = in.to.Write(b); n > 0 {
		in.midLine = b[n-1] != '\n'
	}
	return n, err
}

// between forwards whole lines unless the client is in the middle of one, and
// reports whether it was not. before is called first, and may return false: then
// nothing is forwarded.
func (in *input) between(lines []byte, before func() bool) (tried bool, n int, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.midLine {
		return false, 0, nil
	}
	if !before() {
		return true, 0, nil
	}
	n, err = in.write(lines)
	return true, n, err
}

// Close ends the server's input after the frame that is being forwarded: the client
// may end its stream while the server is slow to read an approved one.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.to.Close()
}
