package cli

import (
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxQueued is how many bytes of messages wait for a reader that is slow.
const maxQueued = 64 << 10

// A LogQueue writes messages in a goroutine of its own: a reader of standard
// error that stopped reading must not stop the program. Messages that do not
// fit are counted, and a message in their place has the count. It may be called
// concurrently.
type LogQueue struct {
	w    io.Writer
	lost func(messages int) []byte

	mu      sync.Mutex
	queue   []queued
	bytes   int           // in queue, and of the message being written
	dropped int           // since the last one in queue
	done    chan struct{} // closed once nothing is left to write; nil: nothing is
}

// queued is a message, and how many were dropped before it.
type queued struct {
	dropped int
	text    []byte
}

// NewQueuedLogger is NewLogger for a program that must not wait for the reader
// of w.
func NewQueuedLogger(w io.Writer, v Values) (*zap.Logger, *LogQueue) {
	encoder, level := logFormat(v)
	q := &LogQueue{w: w, lost: func(messages int) []byte {
		entry := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), Message: "log messages lost, standard error was not read"}
		b, err := encoder.Clone().EncodeEntry(entry, []zapcore.Field{zap.Int("messages", messages)})
		if err != nil {
			return nil // no field of it can fail
		}
		return b.Bytes()
	}}
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(q), level)), q
}

// Write queues one message, or counts it.
func (q *LogQueue) Write(message []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes > 0 && q.bytes+len(message) > maxQueued {
		q.dropped++
		return len(message), nil
	}
	q.queue = append(q.queue, queued{q.dropped, append([]byte(nil), message...)})
	q.bytes, q.dropped = q.bytes+len(message), 0
	if q.done == nil {
		q.done = make(chan struct{})
		go q.run()
	}
	return len(message), nil
}

// run writes until nothing is left. A message that cannot be written is lost
// with the reader.
func (q *LogQueue) run() {
	for {
		next, ok := q.next()
		if !ok {
			return
		}
		if next.dropped > 0 {
			q.w.Write(q.lost(next.dropped))
		}
		if len(next.text) > 0 {
			q.w.Write(next.text)
		}
		q.mu.Lock()
		q.bytes -= len(next.text)
		q.mu.Unlock()
	}
}

func (q *LogQueue) next() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.queue) > 0:
		next := q.queue[0]
		q.queue = q.queue[1:]
		return next, true
	case q.dropped > 0:
		next := queued{dropped: q.dropped}
		q.dropped = 0
		return next, true
	}
	close(q.done)
	q.queue, q.done = nil, nil
	return queued{}, false
}

// Flush waits until all messages are written, at most limit. Messages that the
// reader has not taken by then are lost if the process ends.
func (q *LogQueue) Flush(limit time.Duration) {
	q.mu.Lock()
	done := q.done
	q.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(limit):
	}
}
