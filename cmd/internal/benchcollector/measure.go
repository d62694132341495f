package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/cmd/internal/samples"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/kafka"
	"auditproxy/sink/kafka/kafkatest"
)

// all makes all measurements.
func (b *bench) all(ctx context.Context) (err error) {
	if b.broker, err = kafkatest.Start(kafkatest.Config{Counted: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.broker.Stop()) }()
	if err := b.broker.CreateTopic(ctx, kafkatest.Topic{Name: waiting, Partitions: 4}); err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"records in Kafka", b.fill},
		{"shipper", b.shipper},
		{"one core", b.oneCore},
		{"inserts", b.inserts},
		{"evidence", b.evidence},
		{"alert rules", b.rules},
		{"outage", b.outage},
		{"end to end", b.endToEnd},
		{"exports", b.exports},
		{"storing beside", b.beside},
		{"queryable", b.queryable},
	} {
		if !strings.Contains(m.name, b.only) && m.name != "records in Kafka" {
			continue
		}
		began := time.Now()
		if err := m.run(ctx); err != nil {
			return fmt.Errorf("measuring %s: %w", m.name, err)
		}
		fmt.Fprintf(b.progress, "benchcollector: %s: %.1f s\n", m.name, time.Since(began).Seconds())
	}
	return nil
}

func (b *bench) fill(ctx context.Context) error {
	return preload(ctx, b.broker.Addr, waiting, b.records, b.size)
}

// oneCore measures how many records a second of one core's time moves from
// Kafka to a ClickHouse that accepts and discards them. It counts processor
// time: broker and server have a core to themselves only if one is free.
func (b *bench) oneCore(ctx context.Context) error {
	seconds, err := b.perRecord(ctx, "shipped", b.records)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, row{
		name: fmt.Sprintf("Kafka to a ClickHouse that forgets, %d bytes, one core", b.size), unit: "/s",
		value: 1 / seconds, compare: atLeast, target: 130_000,
	})
	return nil
}

// outage measures the memory of a collector whose ClickHouse refuses all, until
// it stops growing, and then while it catches up.
func (b *bench) outage(ctx context.Context) error {
	return b.discarding(ctx, true, func(p *instance, f *front) error {
		const refused = `auditcollector_insert_errors_total{class="retry"}`
		if err := wait(ctx, 200*time.Millisecond, "inserts were refused", func() bool { return p.metric(ctx, refused) >= 8 }); err != nil {
			return err
		}
		f.refuses.Store(false)
		if err := p.until(ctx, float64(min(b.records/2, 1_000_000))); err != nil {
			return err
		}
		peak, err := process.PeakRSS(p.cmd.Process.Pid)
		b.rows = append(b.rows, row{
			name: fmt.Sprintf("peak RSS, ClickHouse away, %d records waiting", b.records), unit: "MiB",
			value: float64(peak) / (1 << 20), compare: atMost, target: 300,
		})
		return err
	})
}

// endToEnd measures how fast records move from Kafka into an engine on this
// machine, with the broker on the same machine.
func (b *bench) endToEnd(ctx context.Context) error {
	p, err := b.collect(false, waiting)
	if err != nil {
		return err
	}
	first, last := b.records/20, min(b.records, 400_000)
	err = p.until(ctx, float64(first))
	began, from := time.Now(), p.metric(ctx, recordsStored)
	if err == nil {
		err = p.until(ctx, float64(last)*0.9)
	}
	b.rows = append(b.rows, row{
		name: "Kafka to the engine, everything on this machine", unit: "/s",
		value: (p.metric(ctx, recordsStored) - from) / time.Since(began).Seconds(), compare: atLeast, target: 60_000,
	})
	return errors.Join(err, p.end())
}

// queryable measures the time from the call of a producer's Write to an answer
// of the engine that has the record, one record every 10 ms.
func (b *bench) queryable(ctx context.Context) error {
	const topic, n, pause = "trickle", 1000, 10 * time.Millisecond
	if err := b.broker.CreateTopic(ctx, kafkatest.Topic{Name: topic, Partitions: 4}); err != nil {
		return err
	}
	p, err := b.collect(false, topic)
	if err != nil {
		return err
	}
	times, err := b.trickle(ctx, p, topic, n, pause)
	if err := errors.Join(err, p.end()); err != nil {
		return err
	}
	slices.Sort(times)
	b.rows = append(b.rows, row{
		name: "from produce to queryable, p95", unit: "s",
		value: times[len(times)*95/100].Seconds(), compare: atMost, target: 2,
	})
	return nil
}

// trickle writes one record after the other, and polls for their arrival. It
// returns how long each was on its way.
func (b *bench) trickle(ctx context.Context, p *instance, topic string, n int, pause time.Duration) ([]time.Duration, error) {
	producer, err := kafka.New(kafka.Config{Access: kafka.Access{Brokers: []string{b.broker.Addr}}, Topic: topic, Source: "/benchcollector"})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	s := samples.New(b.size)
	write := func() error { return producer.Write(ctx, s.ID, [][]byte{s.Next(nil)}) }
	// The first one waits for the engine and the consumer group to start.
	if err := write(); err != nil {
		return nil, err
	}
	if err := p.until(ctx, 1); err != nil {
		return nil, err
	}
	began := make([]time.Time, n)
	written := make(chan error, 1)
	go func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for i := range began {
			<-tick.C
			began[i] = time.Now()
			if err := write(); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	var times []time.Duration
	seen := []time.Time{} // by record, but the first
	err = wait(ctx, 20*time.Millisecond, "all records are there", func() bool {
		count := b.ask(ctx, "SELECT count() FROM audit.events WHERE session_id = '"+s.ID+"'")
		for now := time.Now(); len(seen) < count-1; {
			seen = append(seen, now)
		}
		return len(seen) == n
	})
	if err := errors.Join(err, <-written); err != nil {
		return nil, err
	}
	for i := range seen { // of one session, and so in order
		times = append(times, seen[i].Sub(began[i]))
	}
	return times, nil
}

// ask returns the number that answers a query to the engine, 0 without an
// answer.
func (b *bench) ask(ctx context.Context, sql string) int {
	dial := chdb.Dialer(filepath.Join(b.dir, "local"), chdb.Reader)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) },
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/", strings.NewReader(sql+" FORMAT TSV"))
	if err != nil {
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
