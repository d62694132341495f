package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"auditproxy/cmd/internal/process"
)

// all makes all measurements.
func (b *bench) all(ctx context.Context) ([]row, error) {
	for _, m := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"send_keys round trip, dense CPU", b.roundTrip},
		{"send_keys round trip, busy neighbour", b.busyNeighbour},
		{"round trip, Kafka a black hole", b.withBlackHole},
		{"sparse CPU", b.sparse},
		{"pipelined calls", b.pipelined},
		{"evidence", b.evidence},
		{"policy of 200 rules", b.gate},
		{"approval", b.approval},
		{"8 KiB answer", b.transfer("8 KiB answer", capture(8<<10), 400, 31, 1.35)},
		{"1 MiB answer", b.transfer("1 MiB answer", capture(1<<20), 20, 21, 1.2)},
		{"64 MiB answer", b.transfer("64 MiB answer", capture(64<<20), 1, 11, 1.3)},
		{"64 MiB argument, keys", b.transfer("64 MiB argument, keys", under("keys", 64<<20), 1, 11, 0)}, // reported next to the row of all CPUs
		{"64 MiB argument, blob", b.transfer("64 MiB argument, blob", under("blob", 64<<20), 1, 11, 1.3)},
		{"64 MiB argument, keys, all CPUs", b.unpinned("64 MiB argument, keys, all CPUs", under("keys", 64<<20), 1, 11, 1.6)},
		{"64 MiB argument, blob, all CPUs", b.unpinned("64 MiB argument, blob, all CPUs", under("blob", 64<<20), 1, 11, 1.6)},
		{"start", b.starting},
		{"start with a policy", b.startingWithPolicy},
		{"peak RSS, ordinary", b.ordinaryMemory},
		{"peak RSS, 2 GiB line", b.hugeMemory},
		{"idle CPU", b.idle},
		{"log over 1 GB", b.logs},
	} {
		if !strings.Contains(m.name, b.only) {
			continue
		}
		began := time.Now()
		if err := m.run(ctx); err != nil {
			return nil, fmt.Errorf("measuring %s: %w", m.name, err)
		}
		fmt.Fprintf(b.progress, "bench: %s: %.1f s\n", m.name, time.Since(began).Seconds())
	}
	for i := range b.rows {
		b.rows[i].Pass = b.rows[i].pass()
	}
	return b.rows, nil
}

func (b *bench) roundTrip(ctx context.Context) error {
	got, err := b.compare(ctx, b.rounds(31), sequential(sendKeys, 1000), theRelay, interval, intent)
	if err != nil {
		return err
	}
	relay, proxy := got[theRelay], got[interval]
	b.ratio("send_keys round trip, p50", "µs", relay.wall*1e6, proxy.wall*1e6, 1.45)
	b.rows = append(b.rows, row{
		Name: "the same at intent, over interval", Unit: "µs", Relay: relay.wall * 1e6, Proxy: got[intent].wall * 1e6,
		Compare: more, Value: (got[intent].wall - proxy.wall) * 1e6, Target: 350,
	})
	b.ratio("CPU per call, dense", "µs", relay.cpu*1e6, proxy.cpu*1e6, 2.5)
	return nil
}

// busyNeighbour measures the round trip while another CPU, if possible of the
// same core, uses the caches and the memory for itself.
func (b *bench) busyNeighbour(ctx context.Context) (err error) {
	const name = "send_keys round trip, busy neighbour"
	cpu, ok := process.Sibling(b.cpu, b.cpus)
	if !ok {
		b.missing(name, oneCPU)
		return nil
	}
	end, err := startNeighbour(b.self, cpu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	got, err := b.compare(ctx, b.rounds(31), sequential(sendKeys, 1000), theRelay, interval)
	if err != nil {
		return err
	}
	b.ratio(name, "µs", got[theRelay].wall*1e6, got[interval].wall*1e6, 1.7)
	return nil
}

// unpinned is transfer while all parts may use all CPUs.
func (b *bench) unpinned(name string, c call, perRound, rounds int, target float64) func(context.Context) error {
	return b.onAll(name, b.transfer(name, c, perRound, rounds, target))
}

// withBlackHole measures the round trip while the shipper finds a broker that
// accepts connections and data, and never answers. That is the kernel: no
// process accepts, so none uses time of the CPU that all share.
func (b *bench) withBlackHole(ctx context.Context) (err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("making a black hole: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	b.hole = l.Addr().String()
	got, err := b.compare(ctx, b.rounds(31), sequential(sendKeys, 1000), interval, blackHole)
	if err != nil {
		return err
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if conn, err := l.Accept(); err == nil {
		conn.Close()
	} else if !b.itself {
		return fmt.Errorf("waiting for the shipper, which should have connected: %w", err)
	}
	with, without := got[blackHole].wall, got[interval].wall
	b.rows = append(b.rows, row{
		Name: "Kafka a black hole, over no Kafka", Unit: "µs", Relay: without * 1e6, Proxy: with * 1e6,
		Compare: ratio, Value: with / without, Target: 1.05,
	})
	return nil
}

// sparse makes one call every 2 ms.
func (b *bench) sparse(ctx context.Context) error {
	const n, pause = 300, 2 * time.Millisecond
	round := func(s *session) (float64, int, error) {
		began := time.Now()
		for i := range n {
			if err := process.SleepThread(time.Until(began.Add(time.Duration(i) * pause))); err != nil {
				return 0, 0, err
			}
			if err := s.roundTrip(sendKeys); err != nil {
				return 0, 0, err
			}
		}
		return 0, n, nil
	}
	got, err := b.compare(ctx, b.rounds(9), round, theRelay, interval)
	if err != nil {
		return err
	}
	b.ratio("CPU per call, one every 2 ms", "µs", got[theRelay].cpu*1e6, got[interval].cpu*1e6, 2.5)
	return nil
}

func (b *bench) pipelined(ctx context.Context) error {
	got, err := b.compare(ctx, b.rounds(31), pipelinedCalls, theRelay, interval)
	if err != nil {
		return err
	}
	relay, proxy := 1/got[theRelay].wall, 1/got[interval].wall
	b.rows = append(b.rows, row{
		Name: "pipelined calls, 16 in flight", Unit: "/s", Relay: relay, Proxy: proxy,
		Compare: atLeast, Value: proxy, Target: 150_000,
	})
	return nil
}

// transfer measures calls with large arguments or answers, perRound of them in
// a round. With a target of 0 the ratio is only reported.
func (b *bench) transfer(name string, c call, perRound, rounds int, target float64) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := b.compare(ctx, b.rounds(rounds), sequential(c, perRound), theRelay, interval)
		if err != nil {
			return err
		}
		unit, seconds := "ms", 1e-3
		if got[theRelay].wall < seconds {
			unit, seconds = "µs", 1e-6
		}
		b.ratio(name, unit, got[theRelay].wall/seconds, got[interval].wall/seconds, target)
		if target == 0 {
			b.rows[len(b.rows)-1].Compare = told
		}
		return nil
	}
}

// starting measures from the start of the process to the answer to initialize.
func (b *bench) starting(ctx context.Context) error {
	got, err := b.starts(ctx, theRelay, intent)
	if err != nil {
		return err
	}
	relay, proxy := got[theRelay], got[intent]
	b.rows = append(b.rows, row{
		Name: "start to initialize", Unit: "ms", Relay: relay, Proxy: proxy,
		Compare: more, Value: proxy - relay, Target: 3,
	})
	return nil
}

// ordinaryMemory measures a day's use: calls, some of them pipelined, and
// answers of usual lengths.
func (b *bench) ordinaryMemory(ctx context.Context) error {
	return b.memory(ctx, "peak RSS, ordinary use", 16<<20, func(s *session) error {
		for range 1000 {
			if err := s.roundTrip(sendKeys); err != nil {
				return err
			}
			if err := s.roundTrip(capture(8 << 10)); err != nil {
				return err
			}
		}
		return s.pipeline(sendKeys, 10_000, 16)
	})
}

// hugeMemory measures one line of 2 GiB each way.
func (b *bench) hugeMemory(ctx context.Context) error {
	return b.memory(ctx, "peak RSS, 2 GiB lines", 96<<20, func(s *session) error {
		if err := s.roundTrip(under("keys", 2<<30)); err != nil {
			return err
		}
		return s.roundTrip(capture(2 << 30))
	})
}

func (b *bench) memory(ctx context.Context, name string, target float64, use func(*session) error) error {
	peaks := make(map[string]int64)
	for _, between := range []string{theRelay, intent} {
		spool := filepath.Join(b.dir, "spool-memory")
		s, err := b.start(ctx, between, spool)
		if err != nil {
			return err
		}
		err = use(s)
		if err == nil {
			peaks[between], err = process.PeakRSS(s.cmd.Process.Pid)
		}
		if err := errors.Join(err, s.close(), os.RemoveAll(spool)); err != nil {
			return fmt.Errorf("over %s: %w", between, err)
		}
	}
	const mib = 1 << 20
	b.rows = append(b.rows, row{
		Name: name, Unit: "MiB", Relay: float64(peaks[theRelay]) / mib, Proxy: float64(peaks[intent]) / mib,
		Compare: atMost, Value: float64(peaks[intent]) / mib, Target: target / mib,
	})
	return nil
}

// idle measures the processor time of a session without traffic, once the work
// after its last call is done.
func (b *bench) idle(ctx context.Context) (err error) {
	settle, watch := 2*time.Second, 5*time.Second
	if b.quick {
		settle, watch = time.Second, 2*time.Second
	}
	spool := filepath.Join(b.dir, "spool-idle")
	sessions, used := make(map[string]*session), make(map[string]time.Duration)
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.close())
		}
		err = errors.Join(err, os.RemoveAll(spool))
	}()
	for _, name := range []string{theRelay, intent} {
		s, err := b.start(ctx, name, spool)
		if err != nil {
			return err
		}
		sessions[name] = s
		if err := s.pipeline(sendKeys, 100, 1); err != nil {
			return err
		}
	}
	for _, pause := range []time.Duration{settle, watch} {
		time.Sleep(pause)
		for name, s := range sessions {
			now, err := process.CPUTime(s.cmd.Process.Pid)
			if err != nil {
				return err
			}
			used[name] = now - used[name]
		}
	}
	const ms = float64(time.Millisecond)
	b.rows = append(b.rows, row{
		Name: "idle CPU, per second", Unit: "ms", Relay: float64(used[theRelay]) / ms / watch.Seconds(), Proxy: float64(used[intent]) / ms / watch.Seconds(),
		Compare: atMost, Value: float64(used[intent]) / ms / watch.Seconds(), Target: 0,
	})
	return nil
}
