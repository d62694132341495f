package kafka

import (
	"context"
	"slices"
	"time"

	"auditproxy/sink/kafka/risks"

	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"go.uber.org/zap"
)

// inspectEvery is the time between two looks at a topic's settings: a shipper runs for
// months, in which they may be changed.
const inspectEvery = time.Hour

// look warns if the topic is unsafe, of each reason when it is new. It needs the right
// to describe it, which a producer may lack.
func (p *Producer) look(ctx context.Context) {
	now := time.Now()
	p.mu.Lock()
	first, due := p.looked.IsZero(), now.Sub(p.looked) >= p.every
	if due {
		p.looked = now
	}
	p.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	found, err := p.inspect(ctx)
	if err != nil {
		if first {
			p.log.Info("the topic's settings cannot be looked at", zap.Error(err))
		}
		return
	}
	p.mu.Lock()
	known := p.unsafe
	p.unsafe = found
	p.mu.Unlock()
	for _, risk := range found {
		if !slices.Contains(known, risk) {
			p.log.Warn("the topic may lose records", zap.String("because", risk.Because))
		}
	}
}

// inspect returns the reasons that the topic is unsafe.
func (p *Producer) inspect(ctx context.Context) ([]risks.Risk, error) {
	t, err := p.client.describe(ctx, p.topic)
	if err != nil {
		return nil, err
	}
	const topicResource = 2
	m, err := p.client.roundTrip(ctx, t.controller, &describeconfigs.Request{
		Resources: []describeconfigs.RequestResource{{ResourceType: topicResource, ResourceName: p.topic}},
	})
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, resource := range m.(*describeconfigs.Response).Resources {
		if err := errorOf(resource.ErrorCode, resource.ErrorMessage); err != nil {
			return nil, err
		}
		for _, entry := range resource.ConfigEntries {
			settings[entry.ConfigName] = entry.ConfigValue
		}
	}
	return risks.Of(t.replicas, settings), nil
}
