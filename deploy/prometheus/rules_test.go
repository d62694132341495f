// Package prometheus holds what Prometheus is configured with; its tests evaluate
// the rules with Prometheus' own engine. What the rules ask for is compared with
// the programs in cmd.
package prometheus

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	step  = time.Minute // between two samples, and two evaluations
	steps = 300
)

// healthy are the series of a pipeline that works, one sample each step.
const healthy = `
up{job="auditcollector",instance="c"} 1x300
auditcollector_failing_parts{instance="c"} 0x300
auditcollector_oldest_unacknowledged_seconds{instance="c"} 0 1 0 2 0 3 0 1x300
auditcollector_kafka_lag{instance="c",topic="t",partition="0"} 0 500 20000 3000 0 40 90 10000 0x300
auditcollector_kafka_errors_total{instance="c",topic="t",partition="0"} 0x60 1x90
auditcollector_kafka_topic_risk{instance="c",topic="t",setting="replicas"} 1x300
auditcollector_dead_letters_total{instance="c",reason="schema"} 4x300
auditcollector_gaps_total{instance="c"} 2x300
auditcollector_missing_records{instance="c"} 0x300
auditcollector_failing_rules{instance="c"} 0x20 1 0x130
auditcollector_rule_lag_seconds{instance="c",rule="r"} 0 1 0 2x300
auditcollector_alert_lag_seconds{instance="c"} 300 0 1 0x300
auditcollector_failing_sweeps{instance="c"} 0x20 1 0x130
auditcollector_alert_outbox_seconds{instance="c",receiver="log"} 0 5 120 0x300
auditcollector_export_up{instance="c",receiver="r"} 1x20 0x5 1x300
auditcollector_export_lag_seconds{instance="c",receiver="r"} 0 6 0 2000 0x300
auditcollector_export_sending{instance="c",receiver="r"} 1x20 0x300
auditcollector_export_sending{instance="d",receiver="r"} 0x20 1x300
auditcollector_export_refused_total{instance="c",receiver="r"} 4x300
auditcollector_export_behind_retention{instance="c",receiver="r"} 0x300
auditcollector_engine_restarts_total{instance="c"} 0x50 1x100
auditcollector_table_refusals_total{instance="c"} 0x300
auditcollector_commit_errors_total{instance="c"} 0x50 1x100
auditcollector_disk_free_bytes{instance="c",dir="/s"} 50x300
auditcollector_disk_size_bytes{instance="c",dir="/s"} 100x300
auditcollector_spool_unread_seconds{instance="c",dir="/s"} 0 5 60 0x300
auditcollector_spool_unread_bytes{instance="c",dir="/s"} 0 50000 900000000 100 0x300
auditcollector_unrecovered_sessions{instance="c",dir="/s"} 0 1 1 0x300
auditcollector_retention_success_timestamp_seconds{instance="c"} 0x300
auditcollector_log_up{instance="c"} 0x8 1x300
auditcollector_log_contradictions_total{instance="c",what="forked"} 2x300
auditcollector_log_witness_failing_seconds{instance="c",witness="w"} 0 60 600 0x300
process_start_time_seconds{instance="c"} -86400x300
process_start_time_seconds{instance="h"} -86400x300
up{job="auditproxy-ship",instance="h"} 1x20 0 1x300
auditproxy_ship_oldest_unshipped_seconds{instance="h"} 0 1 0 60 0x300
auditproxy_ship_stalled_seconds{instance="h"} 0 0 10 70 0x300
auditproxy_ship_failing_sessions{instance="h"} 0 1 0x300
auditproxy_ship_set_aside_total{instance="h"} 3x300
auditproxy_ship_unshipped_bytes{instance="h"} 0 90000000 0x300
`

// broken has for each rule the series that make it fire, in place of healthy ones
// of the same name.
var broken = map[string][]string{
	"AuditCollectorDown":         {`up{job="auditcollector",instance="c"} 1x20 0x130`},
	"AuditCollectorNotReady":     {`auditcollector_failing_parts{instance="c"} 0x20 2x130`},
	"AuditRecordsWait":           {`auditcollector_oldest_unacknowledged_seconds{instance="c"} 0+60x300`},
	"AuditLagGrows":              {`auditcollector_kafka_lag{instance="c",topic="t",partition="0"} 2000+50x300`},
	"AuditPartitionFails":        {`auditcollector_kafka_errors_total{instance="c",topic="t",partition="0"} 0+1x300`},
	"AuditTopicLosesRecords":     {`auditcollector_kafka_topic_risk{instance="c",topic="t",setting="cleanup.policy"} 1x300`},
	"AuditDeadLetters":           {`auditcollector_dead_letters_total{instance="c",reason="schema"} 0x20 1x130`},
	"AuditOffsetsNeverReceived":  {`auditcollector_gaps_total{instance="c"} 0x20 1x130`},
	"AuditRecordsMissing":        {`auditcollector_missing_records{instance="c"} 0x20 3x130`},
	"AuditCompletenessUnknown":   {`auditcollector_missing_records{instance="c"} 0x20` + strings.Repeat(" NaN", 130)},
	"AuditRuleFails":             {`auditcollector_failing_rules{instance="c"} 0x20 1x130`},
	"AuditRuleLate":              {`auditcollector_rule_lag_seconds{instance="c",rule="r"} 0+60x300`},
	"AuditAlertsLate":            {`auditcollector_alert_lag_seconds{instance="c"} 0+60x300`},
	"AuditSweepsFail":            {`auditcollector_failing_sweeps{instance="c"} 0+3x300`},
	"AuditAlertsNotDelivered":    {`auditcollector_alert_outbox_seconds{instance="c",receiver="log"} 0+60x300`},
	"AuditReceiverFails":         {`auditcollector_export_up{instance="c",receiver="r"} 1x20 0x300`},
	"AuditReceiverBehind":        {`auditcollector_export_lag_seconds{instance="c",receiver="r"} 0+60x300`},
	"AuditReceiverUnserved":      {`auditcollector_export_sending{instance="c",receiver="r"} 1x20 0x300`},
	"AuditReceiverRefuses":       {`auditcollector_export_refused_total{instance="c",receiver="r"} 0x20 1x280`},
	"AuditReceiverLosesRecords":  {`auditcollector_export_behind_retention{instance="c",receiver="r"} 0x20 1x280`},
	"AuditEngineRestarts":        {`auditcollector_engine_restarts_total{instance="c"} 0x20 1+1x10 11x120`},
	"AuditTableRefuses":          {`auditcollector_table_refusals_total{instance="c"} 0x20 1+6x130`},
	"AuditCommitsFail":           {`auditcollector_commit_errors_total{instance="c"} 0+1x300`},
	"AuditDiskFull":              {`auditcollector_disk_free_bytes{instance="c",dir="/s"} 50x20 9x130`},
	"AuditSpoolWaits":            {`auditcollector_spool_unread_seconds{instance="c",dir="/s"} 0+60x300`},
	"AuditSpoolGrows":            {`auditcollector_spool_unread_bytes{instance="c",dir="/s"} 70000000+1000x300`},
	"AuditSessionsNotRecovered":  {`auditcollector_unrecovered_sessions{instance="c",dir="/s"} 1x300`},
	"AuditRetentionFails":        {`auditcollector_retention_success_timestamp_seconds{instance="c"} -90000x300`},
	"AuditLogNotWritten":         {`auditcollector_log_up{instance="c"} 1x20 0x280`},
	"AuditCheckpointsContradict": {`auditcollector_log_contradictions_total{instance="c",what="forked"} 0x20 1x280`},
	"AuditWitnessFails":          {`auditcollector_log_witness_failing_seconds{instance="c",witness="w"} 0+60x300`},
	"AuditShipperDown":           {`up{job="auditproxy-ship",instance="h"} 1x20 0x280`, `up{job="auditcollector",instance="c"} 1x300`},
	"AuditShipperBehind":         {`auditproxy_ship_oldest_unshipped_seconds{instance="h"} 0+60x300`},
	"AuditShipperStalled":        {`auditproxy_ship_stalled_seconds{instance="h"} 0+60x300`},
	"AuditShipperSessionsFail":   {`auditproxy_ship_failing_sessions{instance="h"} 0x20 1x280`},
	"AuditShipperSetAside":       {`auditproxy_ship_set_aside_total{instance="h"} 0x20 1x280`},
	"AuditShipperSpoolGrows":     {`auditproxy_ship_unshipped_bytes{instance="h"} 70000000+1000x300`},
}

// A memory is a store of series.
type memory []promql.Series

// read reads series as promtool's tests write them.
func read(t *testing.T, texts ...string) (m memory) {
	t.Helper()
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			metric, values, err := promQL().ParseSeriesDesc(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			s := promql.Series{Metric: metric}
			for i, v := range values {
				if !v.Omitted && i <= steps {
					s.Floats = append(s.Floats, promql.FPoint{T: time.Duration(i * int(step)).Milliseconds(), F: v.Value})
				}
			}
			m = append(m, s)
		}
	}
	return m
}

func promQL() parser.Parser { return parser.NewParser(parser.Options{}) }

// with returns m with other series in place of those of the same names.
func (m memory) with(others memory) memory {
	names := map[string]bool{}
	for _, s := range others {
		names[s.Metric.Get(labels.MetricName)] = true
	}
	kept := slices.DeleteFunc(slices.Clone(m), func(s promql.Series) bool { return names[s.Metric.Get(labels.MetricName)] })
	return append(kept, others...)
}

func (m memory) Querier(_, _ int64) (storage.Querier, error) { return m, nil }

func (m memory) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range m {
		if !slices.ContainsFunc(matchers, func(by *labels.Matcher) bool { return !by.Matches(s.Metric.Get(by.Name)) }) {
			found = append(found, promql.NewStorageSeries(s))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{found: found}
}

func (memory) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (memory) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (memory) Close() error { return nil }

// A set is an answer; found are the series from the current one on.
type set struct {
	found []storage.Series
	began bool
}

func (s *set) Next() bool {
	if s.began {
		s.found = s.found[1:]
	}
	s.began = true
	return len(s.found) > 0
}

func (s *set) At() storage.Series                { return s.found[0] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// fires returns when a rule fires first in the time of the series, and -1 if it
// does not.
func fires(t *testing.T, engine *promql.Engine, m memory, r rulefmt.Rule) time.Duration {
	t.Helper()
	since := map[uint64]time.Duration{} // by the labels of the alert
	for at := time.Duration(0); at <= steps*step; at += step {
		q, err := engine.NewInstantQuery(t.Context(), m, nil, r.Expr, time.UnixMilli(at.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		answer := q.Exec(t.Context())
		if answer.Err != nil {
			t.Fatalf("%s: %v", r.Alert, answer.Err)
		}
		vector, err := answer.Vector()
		if err != nil {
			t.Fatal(err)
		}
		now := map[uint64]time.Duration{}
		for _, sample := range vector {
			id := sample.Metric.Hash()
			began, ok := since[id]
			if !ok {
				began = at
			}
			now[id] = began
			if at-began >= time.Duration(r.For) {
				return at
			}
		}
		since = now
		q.Close()
	}
	return -1
}

func rules(t *testing.T) (list []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("rules.yaml", false, model.UTF8Validation, promQL(), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// TestRules loads the rules as Prometheus does. Each fires when something is
// broken, and none while all works.
func TestRules(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL()})
	defer engine.Close()
	works := read(t, healthy)
	measured := map[string]bool{}
	for _, s := range works {
		measured[s.Metric.Get(labels.MetricName)] = true
	}
	missing := maps.Clone(broken)
	for _, r := range rules(t) {
		t.Run(r.Alert, func(t *testing.T) {
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("severity %q, annotations %v", r.Labels["severity"], r.Annotations)
			}
			for _, name := range regexp.MustCompile(`\b(up|audit(collector|proxy)_\w+)\b`).FindAllString(r.Expr, -1) {
				if !measured[name] {
					t.Errorf("%s has no healthy series", name)
				}
			}
			if at := fires(t, engine, works, r); at >= 0 {
				t.Errorf("it fires after %v of a pipeline that works", at)
			}
			series := missing[r.Alert]
			delete(missing, r.Alert)
			if len(series) == 0 {
				t.Fatal("no series for it")
			}
			at := fires(t, engine, works.with(read(t, series...)), r)
			if at < time.Duration(r.For) {
				t.Errorf("it fires after %v", at)
			}
		})
	}
	for name := range missing {
		t.Errorf("there is no rule %s", name)
	}
}

// TestFirstSeconds checks the rules about what a program counts before Prometheus
// asks it for the first time: they fire, and not for longer than for later events.
func TestFirstSeconds(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL()})
	defer engine.Close()
	byName := map[string]rulefmt.Rule{}
	for _, r := range rules(t) {
		byName[r.Alert] = r
	}
	for name, series := range map[string]string{
		"AuditDeadLetters":           `auditcollector_dead_letters_total{instance="n",reason="schema"}`,
		"AuditOffsetsNeverReceived":  `auditcollector_gaps_total{instance="n"}`,
		"AuditReceiverRefuses":       `auditcollector_export_refused_total{instance="n",receiver="r"}`,
		"AuditCheckpointsContradict": `auditcollector_log_contradictions_total{instance="n",what="forked"}`,
		"AuditShipperSetAside":       `auditproxy_ship_set_aside_total{instance="n"}`,
	} {
		began := read(t, `process_start_time_seconds{instance="n"} _x99 5990x200`, series+` _x99 1x200`)
		if at := fires(t, engine, began, byName[name]); at != 99*step {
			t.Errorf("%s fires after %v, want %v", name, at, 99*step)
		}
		for i := range began {
			began[i].Floats = slices.DeleteFunc(began[i].Floats, func(p promql.FPoint) bool { return p.T < (170 * step).Milliseconds() })
		}
		if at := fires(t, engine, began, byName[name]); at >= 0 {
			t.Errorf("%s still fires after %v", name, at)
		}
	}
}

// TestGone checks the rules about programs that Prometheus does not find.
func TestGone(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL()})
	defer engine.Close()
	for _, r := range rules(t) {
		if r.Alert == "AuditCollectorDown" && fires(t, engine, nil, r) < 0 {
			t.Errorf("%s does not fire without any collector", r.Alert)
		}
	}
}
