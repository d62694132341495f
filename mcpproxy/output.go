package mcpproxy

import (
	"bytes"
	"os"
	"sync"
)

// output is the client's end: the server's bytes as they come, and refusals of
// ours between its lines. A client that does not read stops whoever writes.
type output struct {
	mu    sync.Mutex
	flush sync.Cond // on mu: replies became shorter, or the output ended

	file      *os.File
	midLine   bool   // the server's last byte was no LF
	replies   []byte // refusals that wait for the end of the server's line
	closed    bool
	writeFail bool // the client is gone; records are still made
}

func newOutput(f *os.File) *output {
	o := &output{file: f}
	o.flush.L = &o.mu
	return o
}

// write passes on the server's bytes. Only fromServer calls it.
func (o *output) write(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.replies) > 0 {
		if i := bytes.LastIndexByte(b, '\n') + 1; i > 0 {
			o.put(b[:i])
			o.putReplies()
			b = b[i:]
		}
	}
	if len(b) > 0 {
		o.put(b)
		o.midLine = b[len(b)-1] != '\n'
	}
}

// reply queues lines of ours. It waits while more than maxReplies wait for the
// server to end its line.
func (o *output) reply(lines []byte) {
	if len(lines) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replies = append(o.replies, lines...)
	if !o.midLine || o.closed {
		o.putReplies()
		return
	}
	for len(o.replies) > maxReplies && !o.closed {
		o.flush.Wait()
	}
}

// close ends the client's stream. A server that ended in the middle of a line
// leaves that line unfinished; our replies follow on a line of their own.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.replies) > 0 && o.midLine {
		o.put([]byte{'\n'})
	}
	o.putReplies()
	o.closed = true
	o.file.Close()
}

func (o *output) putReplies() {
	if len(o.replies) > 0 {
		o.put(o.replies)
		o.replies = o.replies[:0]
		o.midLine = false
	}
	o.flush.Broadcast()
}

func (o *output) put(b []byte) {
	if o.writeFail || o.closed {
		return
	}
	if _, err := o.file.Write(b); err != nil {
		o.writeFail = true
	}
}
