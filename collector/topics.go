package collector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// existingTopics returns those of the configured topics that exist, and their
// partitions. It reports the others.
func (c *consumer) existingTopics(ctx context.Context) (there []string, partitions map[partitionOffset]bool, err error) {
	resp, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: c.k.Topics})
	if err != nil {
		return nil, nil, fmt.Errorf("looking for topics: %w", err)
	}
	partitions = map[partitionOffset]bool{}
	var missing []error
	var names []string
	there = slices.Clone(c.k.Topics)
	for _, t := range resp.Topics {
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or name another", t.Name))
			names = append(names, t.Name)
			there = slices.DeleteFunc(there, func(name string) bool { return name == t.Name })
		}
		for _, p := range t.Partitions {
			partitions[partitionOffset{t.Name, p.ID, 0}] = true
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
	return there, partitions, nil
}

// watchTopics returns when other topics exist than these, when the group must assign
// their partitions again, or when ctx ends.
func (c *consumer) watchTopics(ctx context.Context, topics []string) {
	const part = "reading partitions that no collector has"
	var before map[partitionOffset]bool
	for {
		wait.For(ctx, topicsAgain)
		there, partitions, err := c.existingTopics(ctx)
		if ctx.Err() != nil || err == nil && !slices.Equal(there, topics) {
			return
		}
		if err != nil || c.removeAssigned(ctx, partitions) != nil {
			continue // reading reports it
		}
		var names []string
		for p := range partitions {
			if before[p] { // a first look may come before kafka-go's own, which finds new partitions
				names = append(names, fmt.Sprintf("topic %q, partition %d", p.topic, p.partition))
			}
		}
		before = partitions
		if len(names) == 0 {
			c.missing.tell(&c.rejoined, "", nil)
			continue
		}
		slices.Sort(names)
		err = fmt.Errorf("%s: %s", part, strings.Join(names, "; "))
		c.missing.tell(&c.rejoined, part, err)
		c.metrics.sourceErrors.Inc()
		if time.Since(c.rejoined) > rejoinAfter { // the whole group stops reading to join again
			c.rejoined = time.Now()
			c.log.Warn("partitions are not read, joining the consumer group again", zap.Error(err))
			return
		}
	}
}

// removeAssigned removes the partitions that a member of the group has, all while the
// group assigns them. Its leader may do so while a topic is being made again: kafka-go
// watches for other partitions than its watcher first saw, not than the leader did.
func (c *consumer) removeAssigned(ctx context.Context, partitions map[partitionOffset]bool) error {
	resp, err := c.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{c.k.Group}})
	if err != nil {
		return err
	}
	for _, group := range resp.Groups {
		if group.Error != nil || group.GroupState != "Stable" {
			clear(partitions)
			return group.Error
		}
		for _, member := range group.Members {
			for _, topic := range member.MemberAssignments.Topics {
				for _, id := range topic.Partitions {
					delete(partitions, partitionOffset{topic.Topic, id, 0})
				}
			}
		}
	}
	return nil
}

// A consumer reads topics as a member of a group.
type consumer struct {
	source
	k         Kafka
	client    *kafka.Client
	committed map[partitionOffset]int64                                                   // offsets of this process; owned by the generation that runs
	reached   func(ctx context.Context, places []ingest.Source) ([]uint64, error)         // see Config.Reached
	missing   *health                                                                     // the topics that do not exist, and partitions that no member has
	rejoined  time.Time                                                                   // the group was joined again because of these; owned by watchTopics
	pipeline  func(commit func(marks []partitionOffset) error) *pipeline[partitionOffset] // for one generation
}

// committedBy is the metadata of the offsets that a collector commits. Programs that
// set a group's offsets leave none.
const committedBy = "auditcollector"

// commit commits offsets as the member of a generation, and says that a collector did.
func (c *consumer) commit(gen *kafka.Generation, marks []partitionOffset) error {
	last := map[partitionOffset]int64{}
	for _, m := range marks { // ascending in each partition
		last[m.id()] = m.next
	}
	req := kafka.OffsetCommitRequest{GroupID: gen.GroupID, GenerationID: int(gen.ID), MemberID: gen.MemberID, Topics: map[string][]kafka.OffsetCommit{}}
	for id, next := range last {
		req.Topics[id.topic] = append(req.Topics[id.topic], kafka.OffsetCommit{Partition: id.partition, Offset: next, Metadata: committedBy})
	}
	// The generation may have ended: the brokers accept it until all members have left.
	resp, err := c.client.OffsetCommit(context.Background(), &req)
	if err != nil {
		return err
	}
	var errs []error
	for _, list := range resp.Topics {
		for _, p := range list {
			errs = append(errs, p.Error)
		}
	}
	return errors.Join(errs...)
}

// findJumps finds what the store has of partitions whose offset another program set, or
// of which the group has none, so that their readers report what they will never read. It
// tries until ctx ends: nothing could be stored meanwhile.
func (c *consumer) findJumps(ctx context.Context, readers []*partition) {
	if c.reached == nil {
		return
	}
	const part = "comparing the group's offsets with what is stored"
	defer c.health.tell(&c.committed, "", nil)
	for {
		err := c.compareOffsets(ctx, readers)
		if err == nil || ctx.Err() != nil {
			return
		}
		c.health.tell(&c.committed, part, fmt.Errorf("%s: %w", part, err))
		c.metrics.sourceErrors.Inc()
		c.log.Warn("nothing is read before the group's offsets are compared with what is stored", reasonField(err), zap.Error(err))
		wait.For(ctx, sourceRetry)
	}
}

func (c *consumer) compareOffsets(ctx context.Context, readers []*partition) error {
	var set []*partition
	var places []ingest.Source
	doubt := func(r *partition, before int64) {
		set = append(set, r)
		places = append(places, ingest.Source{Topic: r.topic, Partition: uint32(r.partition), Offset: uint64(before)})
	}
	req := kafka.OffsetFetchRequest{GroupID: c.k.Group, Topics: map[string][]int{}}
	of := map[partitionOffset]*partition{}
	for _, r := range readers {
		switch {
		case r.next > 0:
			req.Topics[r.topic] = append(req.Topics[r.topic], r.partition)
			of[r.id()] = r
		case r.next < 0:
			doubt(r, math.MaxInt64)
		}
	}
	if len(of) > 0 {
		resp, err := c.client.OffsetFetch(ctx, &req)
		if err == nil {
			err = resp.Error
		}
		if err != nil {
			return err
		}
		for topic, list := range resp.Topics {
			for _, o := range list {
				if o.Error != nil {
					return o.Error
				}
				r := of[partitionOffset{topic, o.Partition, 0}]
				if r != nil && o.CommittedOffset == r.next && o.Metadata != committedBy {
					doubt(r, r.next)
				}
			}
		}
	}
	if len(set) == 0 {
		return nil
	}
	reached, err := c.reached(ctx, places)
	if err != nil {
		return err
	}
	for i, r := range set {
		r.reached, r.wasSet = int64(reached[i]), r.next > 0
		if r.wasSet && r.reached == 0 { // the store has nothing of it, and the brokers may have removed some long ago
			if r.reached, _, err = r.bounds(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
