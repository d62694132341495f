package ship

import (
	"context"
	"errors"

	"auditproxy/sink"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/chain"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
)

// A sessionConfig selects how to ship one session.
type sessionConfig struct {
	dir, session string
	keyFile      string          // the host's, see chain.Config
	over         <-chan struct{} // closed once nothing more is written; nil: ship the present records
	again        bool            // from the start
	atMost       int64           // bytes, after which it returns; 0: no limit
	sink         sink.Sink
	log          *zap.Logger

	first   func(line []byte) // called with the first record; may be nil
	read    func(int64)       // called with how many bytes were read; may be nil
	damaged func()            // called for each record or place that is not delivered as it is; may be nil
	sent    func(records int, bytes int64)
}

// shipSession ships one session until it is over, and reports whether it ended
// at atMost instead. It returns spool.ErrBusy if another process ships it.
func shipSession(ctx context.Context, c sessionConfig) (more bool, err error) {
	consumer, err := spool.OpenConsumer(spool.ReaderConfig{Dir: c.dir, Session: c.session})
	if err != nil {
		return false, err
	}
	q := &queue{consumer: consumer, log: c.log.With(zap.String("session", c.session)), first: c.first, read: c.read, damaged: c.damaged, end: consumer.Shipped(), left: c.atMost}
	if c.again {
		err, q.end = consumer.Rewind(), spool.Position{}
	}
	if err == nil {
		err = sink.Forward(ctx, sink.ForwardConfig{
			Session: c.session, Queue: q, Sink: c.sink, Done: c.over, GiveUp: c.atMost > 0, Sent: c.sent, Log: c.log,
			HostKey: func() (note.Signer, error) {
				key, _, err := chain.Key(chain.Config{Dir: c.dir, KeyFile: c.keyFile})
				return key, err
			},
		})
	}
	return q.full, errors.Join(err, consumer.Close())
}
