package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// existingTopics returns those of the configured topics that exist, and their
// partitions. It reports the others.
func (c *consumer) existingTopics(ctx context.Context) (there []string, partitions map[brokers.Partition]bool, err error) {
	partitions, names, err := c.client.Topics(ctx, c.k.Topics)
	if err != nil {
		return nil, nil, err
	}
	var missing []error
	for _, name := range names {
		missing = append(missing, fmt.Errorf("topic %q does not exist: create it, or name another", name))
	}
	there = slices.DeleteFunc(slices.Clone(c.k.Topics), func(name string) bool { return slices.Contains(names, name) })
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
	var before map[brokers.Partition]bool
	for {
		wait.For(ctx, topicsAgain)
		there, partitions, err := c.existingTopics(ctx)
		if ctx.Err() != nil || err == nil && !slices.Equal(there, topics) {
			return
		}
		c.lookRisks(ctx, topics)
		if err != nil || c.lookIDs(ctx, topics) != nil || c.removeAssigned(ctx, partitions) != nil {
			continue // reading reports it
		}
		var names []string
		for p := range partitions {
			if before[p] { // a first look may come before kafka-go's own, which finds new partitions
				names = append(names, fmt.Sprintf("topic %q, partition %d", p.Topic, p.Number))
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

// lookIDs looks whether a topic is another one than it was.
func (c *consumer) lookIDs(ctx context.Context, topics []string) error {
	ids, err := c.client.TopicIDs(ctx, topics)
	for topic, id := range ids {
		c.ids.See(topic, id)
	}
	return err
}

// lookRisks warns of the settings by which Kafka may lose records, of each when it is new:
// what compaction or retention removed is a gap only when it was not read.
func (c *consumer) lookRisks(ctx context.Context, topics []string) {
	risks, err := c.client.Risks(ctx, topics)
	if err != nil && c.risks == nil && ctx.Err() == nil {
		c.log.Info("the topics' settings cannot be looked at", reasonField(err), zap.Error(err))
		c.risks = map[brokers.Risk]bool{}
	}
	if risks == nil {
		return
	}
	for risk := range risks {
		if !c.risks[risk] {
			c.log.Warn("the topic may lose records", zap.String("topic", risk.Topic), zap.String("because", risk.Because))
		}
		c.metrics.topicRisks.WithLabelValues(risk.Topic, risk.Setting).Set(1)
	}
	for risk := range c.risks {
		if !risks[risk] {
			c.metrics.topicRisks.DeleteLabelValues(risk.Topic, risk.Setting)
		}
	}
	c.risks = risks
}

// removeAssigned removes the partitions that a member of the group has, all while the
// group assigns them. Its leader may do so while a topic is being made again: kafka-go
// watches for other partitions than its watcher first saw, not than the leader did.
func (c *consumer) removeAssigned(ctx context.Context, partitions map[brokers.Partition]bool) error {
	assigned, settled, err := c.client.Assigned(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(partitions, func(p brokers.Partition, _ bool) bool { return !settled || assigned[p] })
	return nil
}

// A consumer reads topics as a member of a group.
type consumer struct {
	source
	k         Kafka
	client    *brokers.Client
	ids       brokers.IDs
	committed map[brokers.Partition]int64                                         // offsets of this process; owned by the generation that runs
	reached   func(ctx context.Context, places []ingest.Source) ([]uint64, error) // see Config.Reached
	lacks     func(ctx context.Context, list []ingest.Stored) ([]bool, error)     // see Config.Lacks
	unfilled  func(ctx context.Context, topics []string) ([]ingest.Gap, error)    // see Config.Unfilled
	fill      func(ctx context.Context, gaps []ingest.Gap) error
	missing   *health                                                                     // the topics that do not exist, and partitions that no member has
	risks     map[brokers.Risk]bool                                                       // as of the last look; owned by watchTopics
	rejoined  time.Time                                                                   // the group was joined again because of these; owned by watchTopics
	pipeline  func(commit func(marks []partitionOffset) error) *pipeline[partitionOffset] // for one generation
}

// fillGaps stores what came later of gaps, before it is committed: after that it is not
// read again. gaps are those that are not stored yet.
func (c *consumer) fillGaps(gaps []ingest.Gap, marks []partitionOffset) (left []ingest.Gap, err error) {
	for _, m := range marks {
		for _, g := range m.filled {
			gaps = slices.DeleteFunc(gaps, func(old ingest.Gap) bool { old.ReadTo = g.ReadTo; return old == g })
			gaps = append(gaps, g)
		}
	}
	if len(gaps) == 0 {
		return nil, nil
	}
	if err := c.fill(context.Background(), gaps); err != nil { // also while the collector stops
		return gaps, err
	}
	for _, g := range gaps {
		if g.ReadTo > g.To {
			c.log.Info("missing records were read", zap.String("topic", g.Topic), zap.Uint32("partition", g.Partition), zap.Uint64("from", g.From), zap.Uint64("to", g.To))
		}
	}
	return nil, nil
}

// commit commits the last of marks of each partition as the member of a generation.
func (c *consumer) commit(gen *kafka.Generation, marks []partitionOffset) error {
	last := map[brokers.Partition]brokers.Offset{}
	for _, m := range marks { // ascending in each partition
		last[m.Partition] = brokers.Offset{Next: m.next, ID: m.id, Stored: m.stored}
	}
	return c.client.Commit(context.Background(), gen, last) // also while the collector stops
}

// findJumps finds whether the group's offset of a partition is of another topic that had
// its name, and what the store has of partitions whose offset another program set, or
// of which the group has none or one beyond what the store has, so that their readers
// report what they will never read. It tries until ctx ends: nothing could be stored
// meanwhile.
func (c *consumer) findJumps(ctx context.Context, readers []*partition) {
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
	doubt := func(r *partition, before int64, jump string) {
		r.jump = jump
		set = append(set, r)
		places = append(places, ingest.Source{Topic: r.Topic, Partition: uint32(r.Number), Offset: uint64(before)})
	}
	var topics []string
	var given []brokers.Partition
	of := map[brokers.Partition]*partition{}
	for _, r := range readers {
		topics = append(topics, r.Topic)
		switch {
		case r.next > 0:
			given = append(given, r.Partition)
			of[r.Partition] = r
		case r.next < 0:
			doubt(r, math.MaxInt64, "")
		}
	}
	slices.Sort(topics)
	topics = slices.Compact(topics)
	ids, err := c.client.TopicIDs(ctx, topics)
	if err != nil {
		return err
	}
	var gaps []ingest.Gap
	if c.unfilled != nil && len(topics) > 0 {
		if gaps, err = c.unfilled(ctx, topics); err != nil {
			return err
		}
	}
	for _, r := range readers {
		r.unfilled = slices.DeleteFunc(slices.Clone(gaps), func(g ingest.Gap) bool {
			return g.Topic != r.Topic || int(g.Partition) != r.Number || brokers.TopicID(g.TopicID) != ids[r.Topic]
		})
		r.id, r.old, r.stored, r.jump, r.doubtful = ids[r.Topic], false, "", "", false
		c.ids.Set(r.Topic, r.id)
	}
	var last []*partition
	var stored []ingest.Stored
	if len(given) > 0 {
		committed, err := c.client.Committed(ctx, given...)
		if err != nil {
			return err
		}
		for p, offset := range committed {
			r := of[p]
			switch {
			case r == nil || offset.Next != r.next:
			case !offset.ByCollector:
				doubt(r, r.next, ingest.OffsetWasSet)
			case brokers.IsOther(offset.ID, r.id):
				r.old = true
			default:
				if s, ok := ingest.ParseStored(offset.Stored); ok {
					s.Topic, s.Partition = r.Topic, uint32(r.Number)
					last, stored, r.stored = append(last, r), append(stored, s), offset.Stored
					r.doubtful = true // the log may have lost records and got others meanwhile
				}
			}
		}
	}
	if c.reached == nil {
		return nil
	}
	if c.lacks != nil && len(last) > 0 {
		lacks, err := c.lacks(ctx, stored)
		if err != nil {
			return err
		}
		for i, r := range last {
			if lacks[i] {
				r.stored, r.doubtful = "", false
				doubt(r, r.next, ingest.StoreIsOlder)
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
	var none []brokers.Partition // without an offset of the group
	for i, r := range set {
		r.reached = int64(reached[i])
		switch {
		case r.jump == "" && r.reached > 0:
			none = append(none, r.Partition)
		case r.jump != "" && r.reached == 0: // the store has nothing of it, and the brokers may have removed some long ago
			if r.reached, _, err = r.bounds(ctx); err != nil {
				return err
			}
		}
	}
	if len(none) == 0 {
		return nil
	}
	return c.reachRepeats(ctx, set, none)
}

// reachRepeats finds how far partitions without an offset of the group were read, by
// records too that came again: the store knows these up to the end of a log.
func (c *consumer) reachRepeats(ctx context.Context, readers []*partition, of []brokers.Partition) error {
	known, err := c.client.Bounds(ctx, of...)
	if err != nil {
		return err
	}
	var again []*partition
	var places []ingest.Source
	for _, r := range readers {
		log, ok := known[r.Partition]
		if log.Err != nil {
			return log.Err
		}
		if ok && r.reached <= log.End && slices.Contains(of, r.Partition) {
			again = append(again, r)
			places = append(places, ingest.Source{Topic: r.Topic, Partition: uint32(r.Number), Offset: uint64(log.End)})
		}
	}
	if len(again) == 0 {
		return nil
	}
	reached, err := c.reached(ctx, places)
	if err != nil {
		return err
	}
	for i, r := range again {
		r.reached = int64(reached[i])
	}
	return nil
}
