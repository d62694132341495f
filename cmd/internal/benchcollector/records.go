package main

import (
	"context"
	"fmt"

	"auditproxy/cmd/internal/samples"
	"auditproxy/sink/kafka"
)

// preload writes n records to a topic the way a shipper does, from some
// sessions in turn.
func preload(ctx context.Context, addr, topic string, n, size int) error {
	const sessions, batch = 16, 1000
	p, err := kafka.New(kafka.Config{Access: kafka.Access{Brokers: []string{addr}}, Topic: topic, Source: "/benchcollector"})
	if err != nil {
		return err
	}
	defer p.Close()
	var list [sessions]*samples.Session
	for i := range list {
		list[i] = samples.New(size)
	}
	lines := make([][]byte, 0, batch)
	for i := 0; n > 0; i++ {
		s := list[i%sessions]
		lines = lines[:0]
		for range min(batch, n) {
			lines = append(lines, s.Next(nil))
		}
		if err := p.Write(ctx, s.ID, lines); err != nil {
			return fmt.Errorf("filling topic %q: %w", topic, err)
		}
		n -= len(lines)
	}
	return nil
}
