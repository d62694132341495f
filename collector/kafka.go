package collector

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"auditproxy/collector/brokers"
	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// runKafka consumes until ctx ends.
func (c *Collector) runKafka(ctx context.Context) error {
	k := c.config.Kafka
	transport := k.transport()
	defer transport.CloseIdleConnections()
	client := &brokers.Client{Kafka: &kafka.Client{Addr: kafka.TCP(k.Brokers...), Timeout: dialTimeout + brokers.FetchWait, Transport: transport}, Group: k.Group}
	var deadTopic func(context.Context, []ingest.DeadLetter) error
	if k.DeadTopic != "" {
		w := deadLetterWriter(k, transport)
		defer w.Close()
		deadTopic = func(ctx context.Context, letters []ingest.DeadLetter) error { return writeLetters(ctx, w, letters) }
	}
	w := newWriter(c, deadTopic)
	m := consumer{source: c.source(), k: k, client: client, missing: &c.topics, reached: c.config.Reached, lacks: c.config.Lacks, unfilled: c.config.Unfilled, fill: c.config.Store.InsertGaps, committed: map[brokers.Partition]int64{}, pipeline: func(commit func([]partitionOffset) error) *pipeline[partitionOffset] {
		return newPipeline(c, w, commit)
	}}
	return m.run(ctx)
}

// run consumes the topics that exist, as a new member of the group whenever
// these change.
func (c *consumer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		topics, _, err := c.existingTopics(ctx)
		if err != nil {
			topics = c.k.Topics // joining the group reports it
		}
		if len(topics) == 0 {
			wait.For(ctx, sourceRetry)
			continue
		}
		if err := c.runGroup(ctx, topics); err != nil {
			return err
		}
	}
	return nil
}

// runGroup joins the group and consumes, one generation after another, until ctx
// ends or other topics exist than these. In a group with a missing topic
// kafka-go ends each generation immediately, and no other topic is read.
func (c *consumer) runGroup(ctx context.Context, topics []string) error {
	k := c.k
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer func() { end(); watching.Wait() }()
	watching.Go(func() {
		defer end()
		c.watchTopics(ctx, topics)
	})
	connected, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                    k.Group,
		Brokers:               k.Brokers,
		Topics:                topics,
		Dialer:                k.dialer(brokers.DialUntil(connected)),
		StartOffset:           kafka.FirstOffset, // the other choice loses records written before the group existed
		SessionTimeout:        sessionTimeout,
		RebalanceTimeout:      rebalanceTimeout,
		WatchPartitionChanges: true,
	})
	if err != nil {
		return fmt.Errorf("joining consumer group %q: %w", k.Group, err)
	}
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		group.Close() // ends the generation, and waits for its goroutines
	})
	memberID := c.consumeGenerations(ctx, group, topics)
	// Only now: the last inserts were committed over a connection of the group.
	cut()
	<-closed
	c.leave(ctx, memberID)
	return nil
}

// consumeGenerations consumes until ctx ends and running inserts are
// committed. It returns the last member ID, "" if it never joined the group.
func (c *consumer) consumeGenerations(ctx context.Context, group *kafka.ConsumerGroup, topics []string) (memberID string) {
	var consuming sync.WaitGroup
	defer consuming.Wait()
	unsure := true // the first assignment may have been made before a topic was
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return memberID
		case err != nil:
			err = fmt.Errorf("joining consumer group %q: %w", c.k.Group, err)
			c.health.tell(wholeSource, "joining the consumer group", err)
			c.metrics.sourceErrors.Inc()
			c.log.Warn("no partitions yet", reasonField(err), zap.Error(err))
			wait.For(ctx, sourceRetry)
			continue
		}
		memberID = gen.MemberID
		c.metrics.generations.Inc()
		c.health.tell(wholeSource, "", nil)
		// kafka-go watches for more partitions than its watcher first saw, not than
		// the group's leader assigned: a topic made between the two would not be read
		// until the next rebalance. Joining once more assigns it.
		again := unsure && lacks(gen, topics)
		unsure = false
		consuming.Add(1)
		// One function: the first that returns ends the generation for all.
		gen.Start(func(ctx context.Context) {
			defer consuming.Done()
			if !again {
				c.consume(ctx, gen)
			}
		})
	}
}

// lacks reports whether a generation has no partition of some topic for this
// member. Others may have them.
func lacks(gen *kafka.Generation, topics []string) bool {
	return slices.ContainsFunc(topics, func(topic string) bool { return len(gen.Assignments[topic]) == 0 })
}

// leave removes a member from the group, so that the others need not wait
// until its session ends. Usually the group has removed it already. A member
// that stops before its first assignment has no ID to leave by, and is
// removed after sessionTimeout.
func (c *consumer) leave(ctx context.Context, memberID string) {
	if memberID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := c.client.Leave(ctx, memberID); err != nil {
		c.log.Warn("leaving the consumer group failed; rebalance delayed", zap.Duration("for", sessionTimeout), reasonField(err), zap.Error(err))
	}
}

// consume reads the partitions of one generation until it ends. Then it waits
// for the inserts under way, and commits them with the generation that they
// were read in; the brokers accept that until all members have left.
func (c *consumer) consume(ctx context.Context, gen *kafka.Generation) {
	var filled []ingest.Gap
	p := c.pipeline(func(marks []partitionOffset) (err error) {
		if filled, err = c.fillGaps(filled, marks); err != nil {
			return err
		}
		if err := c.commit(gen, marks); err != nil {
			return err
		}
		for _, m := range marks {
			c.committed[m.Partition] = m.next
			c.metrics.unread.ack(m.Partition, m.next)
		}
		return nil
	})
	var wg sync.WaitGroup
	var turn sync.Mutex
	chunks := make(chan chunk[partitionOffset])
	var readers []*partition
	ours := map[any]bool{}
	for topic, assignments := range gen.Assignments {
		for _, a := range assignments {
			r := &partition{source: c.source, client: c.client, ids: &c.ids, partitionOffset: partitionOffset{Partition: brokers.Partition{Topic: topic, Number: a.ID}, next: a.Offset}, passed: a.Offset, last: -1, fetchBytes: fetchBytes, turn: &turn}
			if a.Offset >= 0 {
				r.hadOffset = true
			} else {
				r.forgotten = c.committed[r.Partition]
			}
			r.position.Store(a.Offset)
			r.metrics.partitionErrors.WithLabelValues(r.labels()...)
			r.metrics.unread.ack(r.Partition, a.Offset)
			ours[r.Partition] = true
			readers = append(readers, r)
		}
	}
	c.metrics.unread.keep(ours)
	wg.Go(func() {
		c.findJumps(ctx, readers)
		for _, r := range readers {
			wg.Go(func() { r.run(ctx, chunks) })
		}
	})
	wg.Go(func() { c.watchLag(ctx, readers) })
	c.log.Info("partitions assigned", zap.Int32("generation", gen.ID), zap.Any("partitions", assigned(gen)))
	p.run(ctx, chunks) // until ctx ends, also without a partition
	wg.Wait()
	c.metrics.lag.Reset()
	c.metrics.waiting.clear()
}

// assigned lists the partitions of a generation.
func assigned(gen *kafka.Generation) map[string][]int {
	list := map[string][]int{}
	for topic, assignments := range gen.Assignments {
		for _, a := range assignments {
			list[topic] = append(list[topic], a.ID)
		}
	}
	return list
}
