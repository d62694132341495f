package ship

import (
	"context"
	"errors"

	"auditproxy/sink"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// A sessionConfig selects how to ship one session.
type sessionConfig struct {
	dir, session string
	over         <-chan struct{} // closed once nothing more is written; nil: ship the present records
	again        bool            // from the start
	sink         sink.Sink
	log          *zap.Logger

	read    func(int64) // called with how many bytes were read; may be nil
	damaged func()      // called for each record or place that is not delivered as it is; may be nil
	sent    func(records int, bytes int64)
}

// shipSession ships one session until it is over. It returns spool.ErrBusy if
// another process does.
func shipSession(ctx context.Context, c sessionConfig) error {
	consumer, err := spool.OpenConsumer(spool.ReaderConfig{Dir: c.dir, Session: c.session})
	if err != nil {
		return err
	}
	q := &queue{consumer: consumer, log: c.log.With(zap.String("session", c.session)), read: c.read, damaged: c.damaged, end: consumer.Shipped()}
	if c.again {
		err, q.end = consumer.Rewind(), spool.Position{}
	}
	if err == nil {
		err = sink.Forward(ctx, sink.ForwardConfig{
			Session: c.session, Queue: q, Sink: c.sink, Done: c.over, Sent: c.sent, Log: c.log,
		})
	}
	return errors.Join(err, consumer.Close())
}
