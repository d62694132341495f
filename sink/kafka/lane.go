package kafka

import (
	"time"
)

// Limits on one batch, as those of sink.Forward.
const (
	batchRecords = 1000
	batchBytes   = 512 << 10 // after which a batch is full
)

// A write is a call of Batcher.Write.
type write struct {
	session string
	key     []byte
	lines   [][]byte
	next    int       // the lines before it are stored
	since   time.Time // it was given to the batcher
	done    chan error
}

// A lane holds the writes to one partition. Its batches follow each other, so
// that the records of a session stay in order. It is owned by Batcher.Run.
type lane struct {
	partition int
	queue     []*write // in the order in which they came
	records   int      // of queue
	bytes     int64    // of queue
	inFlight  int      // records of the batch on its way, 0: none
	limit     int      // records in one batch; less than batchRecords while Kafka refuses some

	// After a failure one write at a time tries whether the partition works
	// again; the others wait where they are kept.
	failures int
	retry    time.Time // no attempt before
}

func newLane(partition int) *lane { return &lane{partition: partition, limit: batchRecords} }

func (l *lane) add(w *write) {
	l.queue = append(l.queue, w)
	l.records += len(w.lines)
	for _, line := range w.lines {
		l.bytes += int64(len(line))
	}
}

// idle reports whether a batch of the lane can be sent.
func (l *lane) idle() bool { return len(l.queue) > 0 && l.inFlight == 0 }

// due returns when the next batch is to be sent: at once if waiting does not
// make it larger.
func (l *lane) due(linger time.Duration) time.Time {
	first := l.queue[0]
	if l.failures > 0 || l.records >= l.limit || l.bytes >= batchBytes {
		return first.since
	}
	return first.since.Add(linger)
}

// A line is a line of a session.
type line struct {
	key, text []byte
}

// batch returns the next batch, at least one line.
func (l *lane) batch() (list []line, bytes int) {
	for _, w := range l.queue {
		for _, text := range w.lines[w.next:] {
			if len(list) == l.limit || bytes >= batchBytes {
				return list, bytes
			}
			list = append(list, line{w.key, text})
			bytes += len(text)
		}
	}
	return list, bytes
}

// stored completes the writes whose last line is among the next n, which Kafka
// has stored.
func (l *lane) stored(n int) {
	for n > 0 {
		w := l.queue[0]
		k := min(n, len(w.lines)-w.next)
		w.next += k
		n -= k
		l.records -= k
		for _, text := range w.lines[w.next-k : w.next] {
			l.bytes -= int64(len(text))
		}
		if w.next == len(w.lines) {
			l.queue = l.queue[1:]
			w.done <- nil
		}
	}
}

// drop ends the first write with an error.
func (l *lane) drop(err error) {
	w := l.queue[0]
	l.queue = l.queue[1:]
	l.records -= len(w.lines) - w.next
	for _, text := range w.lines[w.next:] {
		l.bytes -= int64(len(text))
	}
	w.done <- err
}

// dropAll ends all writes with an error.
func (l *lane) dropAll(err error) {
	for len(l.queue) > 0 {
		l.drop(err)
	}
}
