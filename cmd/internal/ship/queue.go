package ship

import (
	"io"

	"auditproxy/sink"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// A queue holds the records of a session that its one consumer has yet to ship.
type queue struct {
	consumer *spool.Consumer
	log      *zap.Logger
	first    func(line []byte) // called with the first record; nil: no longer, or not at all
	read     func(int64)       // called with how much was read; may be nil
	damaged  func()            // called for each place that cannot be read; may be nil
	end      spool.Position    // of the last result of Next
	acked    spool.Position
	left     int64 // bytes until Next returns io.EOF although there is more; 0: no limit
	full     bool  // it did
}

var _ sink.Queue = (*queue)(nil)

// Next returns the next record. A damaged line stays in the spool and is
// reported; a line that fails its checksum is kept next to it, where no
// retention removes it.
func (q *queue) Next() ([]byte, error) {
	for {
		if q.full {
			return nil, io.EOF
		}
		item, err := q.consumer.Next()
		if err != nil {
			return nil, err
		}
		if item.Damage != spool.Missing { // it has no bytes
			q.advance(item.End())
		}
		if q.first != nil && len(item.Line) > 0 {
			q.first(item.Line)
			q.first = nil
		}
		switch item.Damage {
		case spool.Intact:
			return item.Line, nil
		case spool.Conflicted:
			// Both are delivered: their readers see that they differ.
			q.log.Error("two records have the same id and differ", zap.Stringer("position", item.Pos))
			return item.Line, nil
		}
		if err := q.keep(item); err != nil {
			return nil, err
		}
	}
}

func (q *queue) advance(end spool.Position) {
	n := end.Offset
	if end.Segment == q.end.Segment {
		n -= q.end.Offset
	}
	if q.read != nil {
		q.read(n)
	}
	q.end = end
	if q.left > 0 {
		q.full = q.left <= n
		q.left -= n
	}
}

// keep sets a damaged line aside and reports it.
func (q *queue) keep(item spool.Item) error {
	fields := []zap.Field{zap.Stringer("damage", item.Damage), zap.Stringer("position", item.Pos), zap.Int64("length", item.Length)}
	if len(item.Line) > 0 {
		file, err := q.consumer.SetAside(item.Line)
		if err != nil {
			return err
		}
		fields = append(fields, zap.String("file", file))
	}
	if q.damaged != nil {
		q.damaged()
	}
	q.log.Error("a place in the spool cannot be delivered", fields...)
	return nil
}

// Ack keeps the place for Commit.
func (q *queue) Ack() { q.acked = q.end }

// Commit moves the cursor, never back.
func (q *queue) Commit() error {
	if !q.consumer.Shipped().Before(q.acked) {
		return nil
	}
	return q.consumer.Commit(q.acked)
}

// SetAside is that of the consumer.
func (q *queue) SetAside(line []byte) (string, error) {
	if q.damaged != nil {
		q.damaged()
	}
	return q.consumer.SetAside(line)
}
