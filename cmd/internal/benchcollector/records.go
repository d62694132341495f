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
	const sessions, batch, batchBytes = 16, 1000, 512 << 10 // a batch that is denser would be refused
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
		for bytes := 0; len(lines) < min(batch, n) && bytes < batchBytes; bytes += len(lines[len(lines)-1]) {
			lines = append(lines, s.Next(nil))
		}
		if err := p.Write(ctx, s.ID, lines); err != nil {
			return fmt.Errorf("filling topic %q: %w", topic, err)
		}
		n -= len(lines)
	}
	return nil
}
