package collector

import (
	"context"
	"fmt"
	"time"

	"auditproxy/collector/ingest"

	"github.com/segmentio/kafka-go"
)

func deadLetterWriter(k Kafka, transport *kafka.Transport) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(k.Brokers...),
		Topic:        k.DeadTopic,
		Transport:    transport,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 10 * time.Millisecond,
		MaxAttempts:  2,
		WriteTimeout: 5 * time.Second,
	}
}

func writeLetters(ctx context.Context, w *kafka.Writer, letters []ingest.DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	messages := make([]kafka.Message, len(letters))
	for i, l := range letters {
		messages[i] = kafka.Message{Key: []byte(l.Key), Value: l.Raw, Headers: []kafka.Header{
			{Key: "reason", Value: []byte(l.Reason)},
			{Key: "error", Value: []byte(l.Error)},
			{Key: "source", Value: fmt.Appendf(nil, "%s/%d/%d", l.Topic, l.Partition, l.Offset)},
		}}
	}
	if err := w.WriteMessages(ctx, messages...); err != nil {
		return fmt.Errorf("writing to topic %q: %w", w.Topic, err)
	}
	return nil
}
