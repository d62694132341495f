package kafka

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"

	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"go.uber.org/zap"
)

// The settings that a topic needs to keep acknowledged records.
const (
	safeReplicas  = 3
	safeInSync    = 2
	safeRetention = 7 * 24 * time.Hour
	safeMessage   = audit.MaxRecord + 16<<10 // a record with its headers
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
	findings, err := p.inspect(ctx)
	if err != nil {
		if first {
			p.log.Info("the topic's settings cannot be looked at", zap.Error(err))
		}
		return
	}
	p.mu.Lock()
	known := p.unsafe
	p.unsafe = findings
	p.mu.Unlock()
	for _, finding := range findings {
		if !slices.Contains(known, finding) {
			p.log.Warn("the topic may lose records", zap.String("because", finding))
		}
	}
}

// inspect returns the reasons that the topic is unsafe.
func (p *Producer) inspect(ctx context.Context) ([]string, error) {
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
	return unsafeSettings(t.replicas, settings), nil
}

// unsafeSettings lists the unsafe settings of a topic. It ignores settings
// that a broker does not return.
func unsafeSettings(replicas int, settings map[string]string) []string {
	var findings []string
	number := func(name string) (int64, bool) {
		n, err := strconv.ParseInt(settings[name], 10, 64)
		return n, err == nil
	}
	if replicas < safeReplicas {
		findings = append(findings, "fewer than 3 replicas")
	}
	if n, ok := number("min.insync.replicas"); ok && n < safeInSync {
		findings = append(findings, "min.insync.replicas is below 2")
	}
	if n, ok := number("retention.ms"); ok && n >= 0 && n < safeRetention.Milliseconds() {
		findings = append(findings, "retention.ms is below 7 days")
	}
	if n, ok := number("retention.bytes"); ok && n >= 0 {
		findings = append(findings, "retention.bytes removes records of any age")
	}
	if n, ok := number("max.message.bytes"); ok && n < safeMessage {
		findings = append(findings, "max.message.bytes is below the longest record, "+strconv.Itoa(safeMessage))
	}
	if settings["message.timestamp.type"] == "CreateTime" {
		findings = append(findings, "message.timestamp.type is CreateTime: what a host sends whose clock is behind is removed early")
	}
	if settings["unclean.leader.election.enable"] == "true" {
		findings = append(findings, "unclean.leader.election.enable is true")
	}
	if strings.Contains(settings["cleanup.policy"], "compact") {
		findings = append(findings, "cleanup.policy compacts it: of a session only the last record would stay")
	}
	return findings
}
