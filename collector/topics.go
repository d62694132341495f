package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// existingTopics returns those of the configured topics that exist. It reports
// the others.
func (c *consumer) existingTopics(ctx context.Context) (there []string, err error) {
	resp, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: c.k.Topics})
	if err != nil {
		return nil, fmt.Errorf("looking for topics: %w", err)
	}
	var missing []error
	var names []string
	there = slices.Clone(c.k.Topics)
	for _, t := range resp.Topics {
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or name another", t.Name))
			names = append(names, t.Name)
			there = slices.DeleteFunc(there, func(name string) bool { return name == t.Name })
		}
	}
	problem := errors.Join(missing...)
	if problem != nil {
		c.metrics.sourceErrors.Inc()
		if last := errorsOf(c.missing.failures()); last == nil || last.Error() != problem.Error() {
			c.log.Warn("no records from topics that are not there", zap.Error(problem))
		}
	}
	c.missing.tell(wholeSource, fmt.Sprintf("reading topics %q", names), problem)
	return there, nil
}

// watchTopics returns when other topics exist than these, or when ctx ends.
func (c *consumer) watchTopics(ctx context.Context, topics []string) {
	for {
		wait.For(ctx, topicsAgain)
		there, err := c.existingTopics(ctx)
		if ctx.Err() != nil || err == nil && !slices.Equal(there, topics) {
			return
		}
	}
}

// A consumer reads topics as a member of a group.
type consumer struct {
	source
	k         Kafka
	client    *kafka.Client
	committed map[partitionOffset]int64                                                   // offsets of this process; owned by the generation that runs
	reached   func(ctx context.Context, places []ingest.Source) ([]uint64, error)         // see Config.Reached
	missing   *health                                                                     // the topics that do not exist
	pipeline  func(commit func(marks []partitionOffset) error) *pipeline[partitionOffset] // for one generation
}
