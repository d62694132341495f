package main

import (
	"context"
	"errors"
	"fmt"

	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka/kafkatest"
)

// The topics, by their usual names.
const (
	topic     = "mcp.audit.v1"
	deadTopic = "mcp.audit.v1.dead"
)

// startKafka starts a broker, if this run has one.
func (d *demo) startKafka(ctx context.Context) (err error) {
	if !d.kafka {
		return nil
	}
	d.out.heading("A Kafka broker")
	d.out.text("Apache Kafka on a free port of this machine, with one topic for the records\nand one for what cannot be stored.\n")
	if d.broker, err = kafkatest.Start(kafkatest.Config{}); err != nil {
		return err
	}
	d.undo = append(d.undo, d.broker.Stop)
	for _, name := range []string{topic, deadTopic} {
		if err := d.broker.CreateTopic(ctx, kafkatest.Topic{Name: name}); err != nil {
			return err
		}
		d.out.mark(true, "topic %s at %s", name, d.broker.Addr)
	}
	return nil
}

// brokers returns the arguments that name the broker.
func (d *demo) brokers() []string {
	if d.broker == nil {
		return nil
	}
	return []string{"--kafka-brokers", d.broker.Addr}
}

// showTopic compares the topic with the spool.
func (d *demo) showTopic(ctx context.Context) error {
	if d.broker == nil {
		return nil
	}
	d.out.heading("The records in Kafka")
	d.out.text("The proxy shipped them while the agent worked, without any call waiting for it.\n")
	spooled := map[string]bool{}
	if err := d.eachRecord(func(line []byte, _ *audit.Record) { spooled[string(line)] = true }); err != nil {
		return err
	}
	shipped, err := d.topicLines(ctx)
	if err != nil {
		return err
	}
	if len(shipped) < len(spooled) {
		d.out.text("Its last %d were not there in the half second that it has at its end;\nthey wait in the spool for this:\n", len(spooled)-len(shipped))
		if err := d.show(ctx, d.proxy, append([]string{"ship"}, d.brokers()...)...); err != nil {
			return err
		}
		if shipped, err = d.topicLines(ctx); err != nil {
			return err
		}
	}
	same := len(shipped) == len(spooled)
	for line := range shipped {
		same = same && spooled[line]
	}
	d.out.mark(same, "%d records in the spool, %d in the topic, byte for byte the same", len(spooled), len(shipped))
	if !same {
		return errors.New("the topic differs from the spool")
	}
	return nil
}

// topicLines returns the records in the topic, each once.
func (d *demo) topicLines(ctx context.Context) (map[string]bool, error) {
	messages, err := d.broker.Messages(ctx, topic)
	if err != nil {
		return nil, err
	}
	lines := map[string]bool{}
	for _, m := range messages {
		lines[string(m.Value)] = true
	}
	return lines, nil
}

// searchTopic searches keys, values and headers.
func (d *demo) searchTopic(ctx context.Context) (hits int, what string, err error) {
	if d.broker == nil {
		return 0, "", nil
	}
	for _, name := range []string{topic, deadTopic} {
		messages, err := d.broker.Messages(ctx, name)
		if err != nil {
			return 0, "", err
		}
		for _, m := range messages {
			hits += d.count(m.Key) + d.count(m.Value)
			for _, h := range m.Headers {
				hits += d.count(h.Value)
			}
		}
		what += fmt.Sprintf("%s: %d messages, ", name, len(messages))
	}
	return hits, what[:len(what)-len(", ")], nil
}
