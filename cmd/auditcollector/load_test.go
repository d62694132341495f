package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/cmd/internal/samples"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/kafka"
)

// TestPageUnderLoad keeps the review page open while shippers fill the topic and
// collectors, broker and inserts fail. No part of the page fails, no record is
// lost or shown twice, and with SOAK set, for half an hour of 20 000 records a
// second and a page every second, the rules are never ten seconds late.
func TestPageUnderLoad(t *testing.T) {
	t.Parallel()
	l := load{rate: 2000, records: 30_000, faults: 4, pause: time.Second / 2}
	random := newRandom(t)
	if soak() {
		l = load{rate: 20_000, records: 36_000_000, faults: 60, late: 10, pause: time.Second}
	}
	// batch.wait is the default, since no test waits for a record.
	c := newChain(t, 1, "AUDITCOLLECTOR_BATCH_WAIT=1s", "AUDITCOLLECTOR_LOG_LEVEL=info")
	g := c.group("load", 2)
	page := newReviewer(t, "", &http.Transport{})
	page.open(c.page(t, "--review-listen", "127.0.0.1:0"))
	started := time.Now().Add(-time.Second)
	filled := c.fill(l)

	strikes := []struct {
		what   string
		strike func()
	}{
		{"collectors are killed", func() { g.kill(random, 1+random.IntN(len(g.members))) }},
		{"a collector leaves, another joins", g.leave},
		{"the broker is killed", func() {
			c.broker.Kill()
			if err := c.broker.Start(); err != nil {
				t.Fatal(err)
			}
		}},
		{"ClickHouse answers an error", func() { c.server.fail(time.Second, answersError) }},
		{"ClickHouse hangs", func() { c.server.fail(time.Second, hangs) }},
		{"ClickHouse stores and drops the reply", func() { c.server.fail(time.Second, dropsReply) }},
	}
	views, struck, latest := 0, 0, 0.0
	lags := ruleLags{t: t, at: map[int]string{}}
	paths := []string{"/", "/calls", "/sessions", "/decisions", "/destinations", "/tools", "/alerts"}
	for at := range filled.progress {
		if views >= len(paths) {
			<-time.After(l.pause)
		}
		path := paths[views%len(paths)]
		status, text := page.get(path)
		if status != http.StatusOK || strings.Contains(text, "Not read: ") {
			t.Errorf("after %v, %d records and %d faults, %s answers %d:\n%s", time.Since(started), at, struck, path, status, text)
		}
		views++
		for _, m := range g.members {
			latest = max(latest, lags.of(m))
		}
		if struck < l.faults*at/l.records {
			s := strikes[random.IntN(len(strikes))]
			t.Logf("after %d records, %s", at, s.what)
			s.strike()
			struck++
		}
	}
	eventually(t, "all is committed", g.hasAll)
	g.disband()
	if len(lags.at) == 0 || views < len(paths) {
		t.Errorf("%d collectors told how late their rules are, %d pages were read", len(lags.at), views)
	}
	t.Logf("%d records in %v, %d pages, %d faults, rules late by %.1f s at most", l.records, time.Since(started), views, struck, latest)
	if l.late > 0 && latest > l.late {
		t.Errorf("the rules were %.1f s late, at most %.0f are allowed", latest, l.late)
	}
	want := strconv.Itoa(l.records)
	// Of rows with distinct places in their sessions, whose last ones are known,
	// the number tells that none is missing. A set of them would not fit in memory,
	// and a reader has not the time to count so many.
	text, err := c.query(chdb.Writer, "SELECT count(), (SELECT sum(n) FROM (SELECT max(seq) + 1 AS n FROM audit.events GROUP BY session_id)), (SELECT count() FROM audit.dead_letters), (SELECT count() FROM audit.gaps) FROM audit.events FINAL")
	if got := strings.Join(strings.Fields(text), " "); err != nil || got != want+" "+want+" 0 0" {
		t.Errorf("records, places, dead letters and gaps: %v, %v, want %s, %s, 0 and 0", got, err, want, want)
	}
}

// A load is what is sent to the topic.
type load struct {
	rate    int // records a second
	records int
	faults  int
	late    float64       // seconds that rules may be late; 0: not checked
	pause   time.Duration // before each page after the first of each kind
}

// filled is a topic that is being filled.
type filled struct {
	progress <-chan int // how many records were sent; closed when all were
}

// fill sends the records of sessions in turn, the way a shipper does: what the
// broker did not acknowledge is sent again.
func (c *chain) fill(l load) filled {
	const sessions, batch = 8, 100
	p, err := kafka.New(kafka.Config{Access: kafka.Access{Brokers: []string{c.broker.Addr}}, Topic: chainTopic, Source: "/load"})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	var sent atomic.Int64
	var writing sync.WaitGroup
	for i := range sessions {
		writing.Go(func() {
			s := samples.New(600)
			tick := time.NewTicker(time.Second * sessions * batch / time.Duration(l.rate))
			defer tick.Stop()
			for n := l.records/sessions + (sessions-i-1)/sessions; n > 0; {
				var lines [][]byte
				for range min(batch, n) {
					lines = append(lines, s.Next(nil))
				}
				for p.Write(ctx, s.ID, lines) != nil && ctx.Err() == nil {
					<-tick.C
				}
				if ctx.Err() != nil {
					return
				}
				n -= len(lines)
				sent.Add(int64(len(lines)))
				<-tick.C
			}
		})
	}
	done, progress := make(chan struct{}), make(chan int)
	go func() {
		writing.Wait()
		close(done)
	}()
	go func() {
		defer close(progress)
		for {
			select {
			case <-done:
				return
			case progress <- int(sent.Load()):
			}
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		<-done
		for range progress {
		}
		p.Close()
	})
	return filled{progress}
}

// ruleLags asks collectors how late their rules are.
type ruleLags struct {
	t  *testing.T
	at map[int]string // by process: where its metrics are
}

// of returns how late the rules of a collector are, in seconds, 0 if it does not
// answer.
func (l ruleLags) of(p process) float64 {
	pid := p.cmd.Process.Pid
	if l.at[pid] == "" {
		addr := servesMetrics.FindStringSubmatch(p.stderr.String())
		if addr == nil {
			return 0
		}
		l.at[pid] = "http://" + addr[1] + "/metrics"
	}
	resp, err := http.Get(l.at[pid])
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	found := alertLag.FindSubmatch(text)
	if found == nil {
		l.t.Fatalf("no lag in\n%s", text)
	}
	lag, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return lag
}

var (
	servesMetrics = regexp.MustCompile(`serving metrics.*"addr": ?"([^"]+)"`)
	alertLag      = regexp.MustCompile(`(?m)^auditcollector_alert_lag_seconds (\S+)$`)
)
