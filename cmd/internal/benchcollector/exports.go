package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/sink/kafka/kafkatest"
)

const (
	exportStored = 1_000_000 // records in the engine at most, that receivers do not have
	exportMost   = 300_000   // records of which the sending is measured
	exportTarget = 50_000    // a second of one core
	awayTarget   = 50        // MiB
	besideRounds = 6
	besideMost   = 500_000 // records of one round
	besideTarget = 5       // percent
)

// silent is a topic without records.
const silent = "silent"

// The metrics of the records that a receiver took, and of failed attempts.
const (
	sentTo   = "auditcollector_export_sent_total{receiver=%q}"
	failedTo = "auditcollector_export_failures_total{receiver=%q}"
)

// exports measures what it costs to send stored records to other systems.
func (b *bench) exports(ctx context.Context) error {
	for _, topic := range []string{silent, events} {
		if err := b.broker.CreateTopic(ctx, kafkatest.Topic{Name: topic, Partitions: 4}); err != nil {
			return err
		}
	}
	stored := filepath.Join(b.dir, "stored")
	if err := b.store(ctx, stored); err != nil {
		return err
	}
	r, err := newReceivers(ctx, b)
	if err != nil {
		return err
	}
	err = b.exportsTo(ctx, stored, r)
	return errors.Join(err, r.end())
}

func (b *bench) exportsTo(ctx context.Context, stored string, r *receivers) error {
	for _, d := range r.list {
		if err := b.sending(ctx, stored, d); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return b.away(ctx, stored)
}

// store fills an engine in a directory.
func (b *bench) store(ctx context.Context, dir string) error {
	p, err := b.exporting(false, waiting, dir)
	if err != nil {
		return err
	}
	err = p.until(ctx, float64(min(b.records, exportStored)))
	return errors.Join(err, p.end())
}

// exporting starts a collector that sends what the engine in a directory has, and
// what it reads from a topic, to receivers.
func (b *bench) exporting(oneCPU bool, topic, dir string, list ...destination) (*instance, error) {
	// Alerts have a measurement of their own.
	rules, err := noRules(b.dir)
	if err != nil {
		return nil, err
	}
	env := []string{"AUDITCOLLECTOR_LOCAL_DIR=" + dir, "AUDITCOLLECTOR_ALERT_RULES=" + rules}
	if len(list) > 0 {
		path := filepath.Join(b.dir, "receivers.yaml")
		text := "receivers:\n"
		for _, d := range list {
			text += fmt.Sprintf("  - {name: %s, since: 1d, %s}\n", d.receiver, d.target)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
		env = append(env, "AUDITCOLLECTOR_EXPORT_RECEIVERS="+path)
	}
	return b.collect(oneCPU, topic, env...)
}

// sending measures the processor time for each record that is read and sent.
func (b *bench) sending(ctx context.Context, dir string, d destination) error {
	sentTo, failedTo := fmt.Sprintf(sentTo, d.receiver), fmt.Sprintf(failedTo, d.receiver)
	p, err := b.exporting(false, silent, dir, d)
	if err != nil {
		return err
	}
	n := float64(min(b.records, exportMost))
	var at [2]struct {
		records      float64
		self, engine time.Duration
	}
	began := time.Now()
	for i, sent := range []float64{n / 10, n * 0.9} {
		err = wait(ctx, 50*time.Millisecond, fmt.Sprintf("%.0f records are sent", sent), func() bool {
			return p.metric(ctx, sentTo) >= sent || p.metric(ctx, failedTo) > 0
		})
		if err == nil && p.metric(ctx, failedTo) > 0 {
			err = errors.New("the receiver fails")
		}
		if err != nil {
			break
		}
		if i == 0 {
			began = time.Now()
		}
		if at[i].self, at[i].engine, err = p.used(); err != nil {
			break
		}
		at[i].records = p.metric(ctx, sentTo)
	}
	took := time.Since(began)
	if err := errors.Join(err, p.end()); err != nil {
		return err
	}
	records := at[1].records - at[0].records
	fmt.Fprintf(b.progress, "benchcollector: %s: by the clock %.0f records/s, of the engine %.1f µs a record\n", d.name,
		records/took.Seconds(), float64((at[1].engine-at[0].engine).Microseconds())/records)
	b.rows = append(b.rows, row{
		name: "stored records " + d.name + ", one core", unit: "/s",
		value: records / (at[1].self - at[0].self).Seconds(), compare: atLeast, target: exportTarget,
	})
	return nil
}

// away measures how much more memory a collector has while records wait for a
// receiver that does not answer.
func (b *bench) away(ctx context.Context, dir string) error {
	var peaks [2]int64
	for i, list := range [][]destination{nil, {{receiver: "away", target: `otlp: {endpoint: "http://127.0.0.1:1"}`}}} {
		p, err := b.exporting(false, silent, dir, list...)
		if err != nil {
			return err
		}
		end := time.Now().Add(b.awayFor)
		err = wait(ctx, time.Second, "the receiver was away for long", func() bool { return time.Now().After(end) })
		if err == nil {
			peaks[i], err = process.PeakRSS(p.cmd.Process.Pid)
		}
		if err := errors.Join(err, p.end()); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, row{
		name: fmt.Sprintf("peak RSS more, receiver away for %v, %d records", b.awayFor, min(b.records, exportStored)), unit: "MiB",
		value: float64(peaks[1]-peaks[0]) / (1 << 20), compare: atMost, target: awayTarget,
	})
	return nil
}

// beside measures how much more processor time collector and engine, which have one
// CPU together, use for each record that they store while records wait in Kafka and
// are exported too.
func (b *bench) beside(ctx context.Context) error {
	r, err := newReceivers(ctx, b)
	if err != nil {
		return err
	}
	return errors.Join(b.besideTo(ctx, r.list[0], r.list[2]), r.end())
}

func (b *bench) besideTo(ctx context.Context, to ...destination) error {
	var costs [2][]float64
	var sums [2]float64
	lists := [2][]destination{nil, to}
	for round := -1; round < besideRounds; round++ {
		for _, i := range []int{round & 1, 1 - round&1} { // what changes steadily counts for both
			dir := filepath.Join(b.dir, "beside")
			cost, err := b.storing(ctx, dir, lists[i])
			if err != nil {
				return err
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if round >= 0 { // the first ones were a fifth faster
				costs[i], sums[i] = append(costs[i], cost), sums[i]+cost
			}
		}
	}
	without, with := sums[0], sums[1]
	fmt.Fprintf(b.progress, "benchcollector: storing a record takes %v without exports, %v µs with them\n", costs[0], costs[1])
	b.rows = append(b.rows, row{
		name: "storing while OTLP and OCSF run, processor time over none", unit: "%",
		value: 100 * (with - without) / without, compare: atMost, target: besideTarget,
	})
	return nil
}

// storing returns the microseconds of processor time for each record that is stored.
func (b *bench) storing(ctx context.Context, dir string, list []destination) (cost float64, err error) {
	p, err := b.exporting(true, waiting, dir, list...)
	if err != nil {
		return 0, err
	}
	n := float64(min(b.records, besideMost))
	var at [2]struct {
		records float64
		used    time.Duration
	}
	began := time.Now()
	for i, stored := range []float64{n / 5, n * 0.95} {
		if err = p.until(ctx, stored); err != nil {
			break
		}
		if i == 0 {
			began = time.Now()
		}
		var self, engine time.Duration
		if self, engine, err = p.used(); err != nil {
			break
		}
		at[i].used, at[i].records = self+engine, p.metric(ctx, recordsStored)
	}
	took, records := time.Since(began), at[1].records-at[0].records
	sent := 0.0
	for _, d := range list {
		sent += p.metric(ctx, fmt.Sprintf(sentTo, d.receiver))
	}
	fmt.Fprintf(b.progress, "benchcollector: stored by the clock %.0f records/s, %.0f sent\n", records/took.Seconds(), sent)
	return float64((at[1].used - at[0].used).Microseconds()) / records, errors.Join(err, p.end())
}

// used returns the processor time of a collector and of its engine.
func (p *instance) used() (self, engine time.Duration, err error) {
	if self, err = process.CPUTime(p.cmd.Process.Pid); err != nil {
		return 0, 0, err
	}
	children, err := process.Children(p.cmd.Process.Pid)
	for _, child := range children {
		one, childErr := process.CPUTime(child)
		engine += one
		err = errors.Join(err, childErr)
	}
	return self, engine, err
}
