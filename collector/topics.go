package collector

import (
	"context"
	"errors"
	"fmt"

	brokers "auditproxy/sink/kafka"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// missingTopics returns an error that names the topics that do not exist, nil
// if all do. To the group they are topics without partitions, which it does
// not report: it would rejoin as fast as it can, so a missing topic costs a
// pause.
func (c *Collector) missingTopics(ctx context.Context, client *kafka.Client) error {
	resp, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: c.config.Kafka.Topics})
	if err != nil {
		return nil // reads will report it
	}
	var missing []error
	for _, t := range resp.Topics {
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or name another", t.Name))
		}
	}
	if err = errors.Join(missing...); err != nil {
		c.metrics.sourceErrors.Inc()
		c.log.Warn("no records from topics that are not there", zap.Error(err))
		sleep(ctx, sourceRetry)
	}
	return err
}

// because describes why Kafka cannot be reached.
func because(err error) zap.Field {
	var told kafka.Error
	if errors.As(err, &told) {
		err = errors.Join(brokers.ErrorOf(int16(told)), err)
	}
	return zap.String("because", brokers.Explain(err))
}
