// Package brokers asks Kafka's brokers for what the collector decides by, and decides
// nothing: which topics and partitions there are, which of them the members of a group
// have, how far the group is, what a partition has from an offset on, and by which settings
// a topic may lose records.
//
// It owns what is special about these questions: offsets that a collector commits say so,
// and of which topic they are, since another one may get its name, which counts once it was
// seen twice; aborted records and markers of transactions are told from others, and batches
// that become too large when they are decompressed are replaced. It connects to brokers too,
// with the certificates of the time.
//
// The files, from the top: brokers, topicid, ids, fetch, inflate, client, dial.
package brokers

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"auditproxy/sink/kafka/risks"

	"github.com/segmentio/kafka-go"
)

// Topics returns the partitions of topics, and which of the topics do not exist.
func (c *Client) Topics(ctx context.Context, names []string) (partitions map[Partition]bool, missing []string, err error) {
	resp, err := c.Kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, nil, fmt.Errorf("looking for topics: %w", err)
	}
	partitions = map[Partition]bool{}
	for _, t := range resp.Topics {
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			missing = append(missing, t.Name)
		}
		for _, p := range t.Partitions {
			partitions[Partition{t.Name, p.ID}] = true
		}
	}
	return partitions, missing, nil
}

// A Risk is a setting by which Kafka may lose records of a topic.
type Risk struct {
	Topic string
	risks.Risk
}

// Risks returns the settings by which Kafka may lose records of topics. It needs the right to
// describe their settings: with an error there are those of the others, nil if there is no
// answer.
func (c *Client) Risks(ctx context.Context, names []string) (map[Risk]bool, error) {
	resp, err := c.Kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, fmt.Errorf("looking for topics: %w", err)
	}
	var req kafka.DescribeConfigsRequest
	replicas := map[string]int{} // of the partition with the fewest
	for _, t := range resp.Topics {
		if t.Error != nil || len(t.Partitions) == 0 {
			continue
		}
		fewest := slices.MinFunc(t.Partitions, func(a, b kafka.Partition) int { return cmp.Compare(len(a.Replicas), len(b.Replicas)) })
		replicas[t.Name] = len(fewest.Replicas)
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: t.Name})
	}
	described, err := c.Kafka.DescribeConfigs(ctx, &req)
	if err != nil {
		return nil, fmt.Errorf("asking for the settings of topics: %w", err)
	}
	found := map[Risk]bool{}
	var errs []error
	for _, r := range described.Resources {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("asking for the settings of topic %q: %w", r.ResourceName, r.Error))
			continue
		}
		settings := map[string]string{}
		for _, entry := range r.ConfigEntries {
			settings[entry.ConfigName] = entry.ConfigValue
		}
		for _, risk := range risks.Of(replicas[r.ResourceName], settings) {
			found[Risk{r.ResourceName, risk}] = true
		}
	}
	return found, errors.Join(errs...)
}

// Assigned returns the partitions that members of the group have. settled is false while
// the group assigns them.
func (c *Client) Assigned(ctx context.Context) (partitions map[Partition]bool, settled bool, err error) {
	resp, err := c.Kafka.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{c.Group}})
	if err != nil {
		return nil, false, err
	}
	partitions = map[Partition]bool{}
	for _, group := range resp.Groups {
		if group.Error != nil || group.GroupState != "Stable" {
			return nil, false, group.Error
		}
		for _, member := range group.Members {
			for _, topic := range member.MemberAssignments.Topics {
				for _, number := range topic.Partitions {
					partitions[Partition{topic.Topic, number}] = true
				}
			}
		}
	}
	return partitions, true, nil
}

// Leave removes a member from the group, so that the others need not wait until its
// session ends.
func (c *Client) Leave(ctx context.Context, memberID string) error {
	_, err := c.Kafka.LeaveGroup(ctx, &kafka.LeaveGroupRequest{GroupID: c.Group, Members: []kafka.LeaveGroupRequestMember{{ID: memberID}}})
	return err
}

// committedBy begins the metadata of the offsets that a collector commits; the topic's id
// follows, and what the offset has as Stored. Programs that set a group's offsets leave
// none.
const committedBy = "auditcollector"

// noID takes the place of an id that is not known.
const noID = "-"

// Commit commits the offsets of partitions as the member of a generation, and says
// that a collector did. The generation may have ended: the brokers accept it until all
// members have left.
func (c *Client) Commit(ctx context.Context, gen *kafka.Generation, offsets map[Partition]Offset) error {
	req := kafka.OffsetCommitRequest{GroupID: gen.GroupID, GenerationID: int(gen.ID), MemberID: gen.MemberID, Topics: map[string][]kafka.OffsetCommit{}}
	for p, o := range offsets {
		by := committedBy
		switch {
		case o.ID != (TopicID{}):
			by += " " + hex.EncodeToString(o.ID[:])
		case o.Stored != "":
			by += " " + noID
		}
		if o.Stored != "" {
			by += " " + o.Stored
		}
		req.Topics[p.Topic] = append(req.Topics[p.Topic], kafka.OffsetCommit{Partition: p.Number, Offset: o.Next, Metadata: by})
	}
	resp, err := c.Kafka.OffsetCommit(ctx, &req)
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

// A Committed is the offset that a group has of a partition.
type Committed struct {
	Offset
	ByCollector bool // not by a program that sets offsets
}

// Committed returns the offsets that the group has of partitions.
func (c *Client) Committed(ctx context.Context, partitions ...Partition) (map[Partition]Committed, error) {
	req := kafka.OffsetFetchRequest{GroupID: c.Group, Topics: map[string][]int{}}
	for _, p := range partitions {
		req.Topics[p.Topic] = append(req.Topics[p.Topic], p.Number)
	}
	resp, err := c.Kafka.OffsetFetch(ctx, &req)
	if err == nil {
		err = resp.Error
	}
	if err != nil {
		return nil, err
	}
	found := map[Partition]Committed{}
	for topic, list := range resp.Topics {
		for _, o := range list {
			if o.Error != nil {
				return nil, o.Error
			}
			by, rest, _ := strings.Cut(o.Metadata, " ")
			id, stored, _ := strings.Cut(rest, " ")
			committed := Committed{Offset{Next: o.CommittedOffset, Stored: stored}, by == committedBy}
			if b, err := hex.DecodeString(id); err == nil && len(b) == len(committed.ID) {
				committed.ID = TopicID(b)
			}
			found[Partition{topic, o.Partition}] = committed
		}
	}
	return found, nil
}

// Bounds are the first offset of a partition and the one after the last.
type Bounds struct {
	First, End int64
	Err        error // they are not known now
}

// Bounds returns the bounds of partitions, without those that do not exist.
func (c *Client) Bounds(ctx context.Context, partitions ...Partition) (map[Partition]Bounds, error) {
	req := kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
	for _, p := range partitions {
		req.Topics[p.Topic] = append(req.Topics[p.Topic], kafka.FirstOffsetOf(p.Number), kafka.LastOffsetOf(p.Number))
	}
	resp, err := c.Kafka.ListOffsets(ctx, &req)
	if err != nil {
		return nil, err
	}
	known := map[Partition]Bounds{}
	for topic, list := range resp.Topics {
		for _, o := range list {
			known[Partition{topic, o.Partition}] = Bounds{o.FirstOffset, o.LastOffset, o.Error}
		}
	}
	return known, nil
}
