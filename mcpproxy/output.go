package mcpproxy

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// output is the client's end: the server's bytes as they come, and the proxy's
// refusals between its lines. A client that does not read blocks writers until
// the server has ended. From then on unread bytes wait in tail and writers
// continue, so that the records are complete before the process ends. The rest
// of tail is then lost.
type output struct {
	mu    sync.Mutex
	flush sync.Cond // on mu: replies or tail became shorter, or the output ended

	file *os.File
	conn syscall.RawConn // of file; nil if a write to it cannot be tried
	over atomic.Bool     // the server has ended

	// mu guards the rest, over the writes to file.
	midLine   bool   // the server's last byte was not LF
	replies   []byte // refusals that wait for the end of the server's line
	tail      []byte // bytes the client has not read since the server ended
	cut       bool   // nothing more goes to tail
	lost      bool   // bytes that the client could have read did not go there, or were removed
	closed    bool
	writeFail bool // the client is gone; records are still made
	tried     int  // by try

	trying  []byte                // owned by try
	attempt func(fd uintptr) bool // allocated once
	done    chan struct{}         // closed with file
}

// maxReplies is how many bytes of refusals may wait for a server's line to end.
const maxReplies = 1 << 20

// maxTail is how much may wait for the client once the server has ended: more
// than its pipe and the proxy's buffer hold, so that only a descendant of the
// server that keeps writing has to wait.
const maxTail = 1 << 20

func newOutput(f *os.File) *output {
	o := &output{file: f, done: make(chan struct{})}
	o.flush.L = &o.mu
	o.attempt = func(fd uintptr) bool {
		n, err := syscall.Write(int(fd), o.trying)
		o.tried = max(n, 0)
		o.writeFail = err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		return true
	}
	// A file has deadlines if the poller has it, and then it does not block.
	if f.SetWriteDeadline(time.Time{}) == nil {
		o.conn, _ = f.SyscallConn()
	}
	return o
}

// try forwards those of the server's bytes that the client accepts without
// waiting, and returns the rest, for write. Only fromServer calls it.
func (o *output) try(b []byte) (rest []byte) {
	if o.conn == nil || !o.mu.TryLock() {
		return b
	}
	defer o.mu.Unlock()
	if len(o.replies) > 0 || len(o.tail) > 0 || o.writeFail || o.closed || o.over.Load() {
		return b
	}
	o.trying, o.tried = b, 0
	if o.conn.Write(o.attempt) != nil {
		return b
	}
	o.trying = nil
	if o.tried > 0 {
		o.midLine = b[o.tried-1] != '\n'
	}
	return b[o.tried:]
}

// write forwards the server's bytes. Only fromServer calls it.
func (o *output) write(b []byte) {
	if len(b) == 0 {
		return
	}
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
	for len(o.tail) > maxTail && !o.cut {
		o.flush.Wait()
	}
}

// reply queues the proxy's own lines. It waits while more than maxReplies wait
// for the server to end its line.
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
	for len(o.replies) > maxReplies && !o.closed && !o.over.Load() {
		o.flush.Wait()
	}
}

// close ends the client's stream. A server that ended in the middle of a line
// leaves that line unfinished; our replies follow on a line of their own.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.replies) > 0 && o.midLine {
		o.put([]byte{'\n'})
	}
	o.putReplies()
	o.closed = true
	o.closeFile()
}

// closeFile closes file once tail is empty. It is called with mu held.
func (o *output) closeFile() {
	if o.closed && len(o.tail) == 0 {
		o.file.Close()
		close(o.done)
	}
	o.flush.Broadcast()
}

// finish is called when the server has ended: writers no longer block, and the
// client has until deadline to read the rest. A write to a file that cannot be
// interrupted continues.
func (o *output) finish(deadline time.Time) {
	o.over.Store(true)
	if o.conn == nil || o.file.SetWriteDeadline(time.Now()) != nil {
		return // it blocks, or is closed
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush.Broadcast()
	// The write that was interrupted above may have been the last one, and close
	// called since: file is open until tail is empty.
	if !o.closed || len(o.tail) > 0 {
		o.file.SetWriteDeadline(deadline)
		go o.drain()
	}
}

// drain forwards tail until the output is closed, or the deadline.
func (o *output) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.tail) == 0 && !o.closed {
			o.flush.Wait()
		}
		if len(o.tail) == 0 {
			return
		}
		b := o.tail
		o.mu.Unlock()
		n, err := o.file.Write(b)
		o.mu.Lock()
		o.tail = o.tail[n:]
		if err != nil {
			o.lost = o.lost || errors.Is(err, os.ErrDeadlineExceeded)
			o.writeFail, o.cut, o.tail = true, true, nil
		}
		o.closeFile()
	}
}

// stop is called when nothing more is read from the server: it releases blocked
// writers.
func (o *output) stop() {
	if o.conn == nil {
		return // a write that cannot be interrupted may hold mu
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = true
	o.flush.Broadcast()
}

func (o *output) putReplies() {
	if len(o.replies) > 0 {
		o.put(o.replies)
		o.replies = o.replies[:0]
		if cap(o.replies) > maxReplies {
			o.replies = nil
		}
		o.midLine = false
	}
	o.flush.Broadcast()
}

func (o *output) put(b []byte) {
	if o.writeFail || o.closed {
		return
	}
	if !o.over.Load() || o.conn == nil {
		n, err := o.file.Write(b)
		switch {
		case err == nil:
			return
		case !o.over.Load() || !errors.Is(err, os.ErrDeadlineExceeded):
			o.writeFail = true
			return
		}
		b = b[n:] // finish interrupted it
	}
	if o.cut {
		o.lost = true
		return
	}
	o.tail = append(o.tail, b...)
	o.flush.Broadcast()
}

// unread reports whether a client that is there has not read all bytes, once the
// server has ended.
func (o *output) unread() bool {
	if o.conn == nil {
		return false // unknown: a write that cannot be interrupted may hold mu
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost || len(o.tail) > 0
}
