package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"auditproxy/sink"
	"auditproxy/sink/kafka"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// How long a session waits after something on this machine went wrong, while
// another process ships it, and for its shipper at the end.
const (
	shipAgain = 10 * time.Second
	shipBusy  = time.Second
	shipLast  = 100 * time.Millisecond // for a cursor to be kept, once the time is over
)

// A shipper takes the session of this process to Kafka. It reads what the
// session has written to the disk, and no call waits for it.
type shipper struct {
	over   chan struct{} // closed once nothing more is written
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// shipBeside starts a shipper where records go to Kafka, else it returns nil.
func shipBeside(session string, cfg config, log *zap.Logger) *shipper {
	if cfg.consumer != "kafka" {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &shipper{over: make(chan struct{}), cancel: cancel}
	s.wait.Go(func() {
		producer, err := newProducer(cfg, log)
		if err != nil {
			log.Error("nothing is shipped to Kafka; the records stay in the spool", zap.Error(err))
			return
		}
		defer producer.Close()
		s.run(ctx, session, cfg, producer, log)
	})
	return s
}

// finish ends the shipper once it has shipped the whole session, or when ctx
// ends: then the rest stays in the spool for auditproxy ship. A client of Kafka
// that does not end within shipLast after ctx ends with the process, which
// leaves records that were sent and are sent again.
func (s *shipper) finish(ctx context.Context) {
	if s == nil {
		return
	}
	close(s.over)
	defer s.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wait.Wait()
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.cancel()
	select {
	case <-done:
	case <-time.After(shipLast):
	}
}

func (s *shipper) run(ctx context.Context, session string, cfg config, producer *kafka.Producer, log *zap.Logger) {
	for {
		pause, err := shipBusy, shipSession(ctx, shipConfig{
			dir: cfg.spoolDir, session: session, over: s.over, sink: producer, log: log,
		})
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case !errors.Is(err, spool.ErrBusy):
			pause = shipAgain
			log.Error("shipping the session failed and is tried again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.over: // what is left is for another process
			return
		case <-time.After(pause):
		}
	}
}

// A shipConfig says how to ship one session.
type shipConfig struct {
	dir, session string
	over         <-chan struct{} // closed once nothing more is written; nil: ship what is there
	again        bool            // from the start
	sink         sink.Sink
	log          *zap.Logger

	read    func(int64) // told how many bytes were read; nil: nobody
	damaged func()      // told of each record or place that is not delivered as it is; nil: nobody
	sent    func(records int, bytes int64)
}

// shipSession ships one session until it is over. It returns spool.ErrBusy if
// another process does.
func shipSession(ctx context.Context, c shipConfig) error {
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
