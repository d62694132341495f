package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"auditproxy/cmd/internal/process"
)

// options are the flags.
type options struct {
	proxy  string // path of auditproxy; empty: built from this tree
	before string // path of another auditproxy to compare it with; empty: none
	dir    string // where spools are made, on the disk to measure; empty: the temporary directory
	cpu    int    // the CPU to share
	only   string // measure only rows whose name contains this
	quick  bool   // fewer and shorter rounds
	json   bool
	itself bool // the relay in the proxy's place as well
}

// A bench makes the measurements.
type bench struct {
	options
	cpus     []int  // those that this program may use; all parts share one, options.cpu
	dir      string // everything of this run
	self     string // this program
	progress io.Writer
	rows     []row
	hole     string // host:port of a broker that never answers; while it is measured
	policy   string // path of a policy, once one was written
}

// rounds is how many rounds a measurement has.
func (b *bench) rounds(n int) int {
	if b.quick {
		return max(3, n/3)
	}
	return n
}

// The program between client and server.
const (
	theRelay = "relay"
	interval = "interval" // the proxy with this durability
	intent   = "intent"   // the proxy with this durability

	blackHole  = "black hole" // the proxy at interval, shipping to a broker that never answers
	withPolicy = "policy"     // the proxy at interval, with a policy
	before     = "before"     // the proxy of -before, at interval
	unsigned   = "unsigned"   // the proxy at interval, without evidence
)

// Proxies under a policy that has one rule, about a tool that no measured call
// names.
const (
	denies = "deny" // the rule refuses
	asks   = "ask"  // the rule has people asked, through files
	waits  = "wait" // as asks, and a call waits all the time
)

// waitingCall is a call that the rule is about. No answer comes while its
// session is measured.
const waitingCall = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"kill_session","arguments":{"session_name":"work"}}}` + "\n"

// command returns the command that starts one.
func (b *bench) command(between, spool string) []string {
	server := []string{b.self, "serve"}
	if between == theRelay || b.itself {
		return append([]string{b.self, "relay"}, server...)
	}
	argv := []string{b.proxy, "--durability", interval, "--spool-dir", spool}
	switch between {
	case before:
		argv[0] = b.before
	case blackHole:
		argv = append(argv, "--kafka-brokers", b.hole)
	case unsigned:
		argv = append(argv, "--evidence-enabled=false")
	case withPolicy:
		argv = append(argv, "--policy-file", b.policy)
	case denies, asks, waits:
		argv = append(argv, "--policy-file", b.rulePolicy(between), "--approval-channels", "files", "--approval-timeout", "10m")
	default:
		argv[2] = between
	}
	return append(append(argv, "--"), server...)
}

// rulePolicy is the policy file of one of these proxies.
func (b *bench) rulePolicy(between string) string { return filepath.Join(b.dir, between+".json") }

// environ is this process's environment without the variables that configure
// the proxy.
func (b *bench) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "AUDITPROXY_") || strings.HasPrefix(kv, "XDG_")
	})
	return append(env, "HOME="+b.dir)
}

// start starts a session over one, ready for calls.
func (b *bench) start(ctx context.Context, between, spool string) (*session, error) {
	s, err := start(ctx, b.command(between, spool), b.environ())
	if err != nil {
		return nil, err
	}
	if err = s.ready(); err == nil && between == waits {
		err = s.write([]byte(waitingCall))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// A sample is what one round measured.
type sample struct {
	wall float64 // seconds for one call
	cpu  float64 // seconds of the relay's or proxy's processor time for one call
}

// compare opens one session for each of between, lets each do round once to
// warm up, then rounds times in turn, and returns the medians.
func (b *bench) compare(ctx context.Context, rounds int, round func(*session) (float64, int, error), between ...string) (medians map[string]sample, err error) {
	spools, err := os.MkdirTemp(b.dir, "spool-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	sessions := make(map[string]*session)
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.close())
		}
		err = errors.Join(err, os.RemoveAll(spools))
	}()
	samples := make(map[string][]sample)
	for _, name := range between {
		if sessions[name], err = b.start(ctx, name, filepath.Join(spools, name)); err != nil {
			delete(sessions, name)
			return nil, err
		}
		if _, _, err := round(sessions[name]); err != nil {
			return nil, fmt.Errorf("over %s: %w", name, err)
		}
	}
	for range rounds {
		for _, name := range between {
			got, err := measureRound(sessions[name], round)
			if err != nil {
				return nil, fmt.Errorf("over %s: %w", name, err)
			}
			samples[name] = append(samples[name], got)
		}
		slices.Reverse(between) // the first may have the caches against it
	}
	medians = make(map[string]sample)
	for name, list := range samples {
		medians[name] = sample{
			wall: median(list, func(s sample) float64 { return s.wall }),
			cpu:  median(list, func(s sample) float64 { return s.cpu }),
		}
	}
	return medians, nil
}

// oneCPU is the reason why some rows cannot be measured.
const oneCPU = "this program may use one CPU only"

// onAll measures the row with that name while all parts may use all CPUs.
func (b *bench) onAll(name string, measure func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		if len(b.cpus) < 2 {
			b.missing(name, oneCPU)
			return nil
		}
		if err := process.Bind(b.cpus...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, process.Bind(b.cpu)) }()
		return measure(ctx)
	}
}

// measureRound runs a round, which returns the time of a call and the number of
// calls.
func measureRound(s *session, round func(*session) (float64, int, error)) (sample, error) {
	before, err := process.CPUTime(s.cmd.Process.Pid)
	if err != nil {
		return sample{}, err
	}
	wall, calls, err := round(s)
	if err != nil {
		return sample{}, err
	}
	after, err := process.CPUTime(s.cmd.Process.Pid)
	return sample{wall: wall, cpu: (after - before).Seconds() / float64(calls)}, err
}

func median[T any](list []T, of func(T) float64) float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = of(v)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// sequential is a round of n calls, each made when the one before is answered;
// its time is the median's.
func sequential(c call, n int) func(*session) (float64, int, error) {
	return func(s *session) (float64, int, error) {
		times := make([]float64, n)
		for i := range times {
			began := time.Now()
			if err := s.roundTrip(c); err != nil {
				return 0, 0, err
			}
			times[i] = time.Since(began).Seconds()
		}
		return median(times, func(t float64) float64 { return t }), n, nil
	}
}

// pipelinedCalls is a round of calls with 16 open at a time.
func pipelinedCalls(s *session) (float64, int, error) {
	const n, inFlight = 10_000, 16
	began := time.Now()
	err := s.pipeline(sendKeys, n, inFlight)
	return time.Since(began).Seconds() / n, n, err
}

// starts returns the medians of the milliseconds from the start of each process
// to the answer to initialize.
func (b *bench) starts(ctx context.Context, between ...string) (medians map[string]float64, err error) {
	times := make(map[string][]float64)
	spool := filepath.Join(b.dir, "spool-start")
	for i := range b.rounds(31) + 1 {
		for _, name := range between {
			began := time.Now()
			s, err := start(ctx, b.command(name, spool), b.environ())
			if err != nil {
				return nil, err
			}
			took := time.Since(began).Seconds()
			if err := s.close(); err != nil {
				return nil, err
			}
			if i > 0 { // the first start makes the spool and fills the page cache
				times[name] = append(times[name], took*1e3)
			}
		}
		between = append(between[1:], between[0]) // each is first as often as the others
	}
	medians = make(map[string]float64)
	for name, list := range times {
		medians[name] = median(list, func(t float64) float64 { return t })
	}
	return medians, os.RemoveAll(spool)
}

// missing adds a row that cannot be measured.
func (b *bench) missing(name, why string) {
	b.rows = append(b.rows, row{Name: name, Missing: why})
}

// ratio adds a row that compares by ratio.
func (b *bench) ratio(name, unit string, relay, proxy, target float64) {
	b.rows = append(b.rows, row{Name: name, Unit: unit, Relay: relay, Proxy: proxy, Compare: ratio, Value: proxy / relay, Target: target})
}
