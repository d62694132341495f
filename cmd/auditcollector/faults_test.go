package main

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"auditproxy/cmd/internal/ledger"
)

// soak selects the long forms of the tests; see the Makefile.
func soak() bool { return os.Getenv("SOAK") != "" }

// newRandom takes its seed from FAULT_SEED, else from the clock; a failure
// prints it.
func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	text := cmp.Or(os.Getenv("FAULT_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10))
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("FAULT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A fault is a failure that is triggered several times.
type fault struct {
	what   string
	left   int                // remaining times
	ready  func() bool        // whether it would hit something now
	strike func(most int) int // returns how many times it did, 1 to most
}

// strikeAll triggers every fault, in random order, each when there is something
// to hit.
func strikeAll(t *testing.T, random *rand.Rand, faults []*fault) {
	t.Helper()
	const patience = 5 * time.Minute
	for last := time.Now(); ; {
		var waiting []string
		struck := false
		for _, i := range random.Perm(len(faults)) {
			f := faults[i]
			if f.left == 0 {
				continue
			}
			if !f.ready() {
				waiting = append(waiting, f.what)
				continue
			}
			t.Logf("%s, %d to come", f.what, f.left)
			f.left -= f.strike(f.left)
			last, struck = time.Now(), true
			break
		}
		switch {
		case !struck && len(waiting) == 0:
			return
		case time.Since(last) > patience:
			t.Fatalf("in %v nothing to hit for: %s", patience, strings.Join(waiting, ", "))
		}
		<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
	}
}

// since returns a function that reports whether a count has grown since its
// last true result.
func since(count func() int64) func() bool {
	last := int64(0)
	return func() bool {
		n := count()
		grown := n > last
		if grown {
			last = n
		}
		return grown
	}
}

// Times is how often each fault is triggered.
type times struct {
	proxies, shippers, engines, leaves, serverFaults int
	one, two                                         int           // collectors of the groups
	down                                             time.Duration // of the broker
	hang                                             time.Duration // of the server
	poison                                           int           // one record in so many
	ahead                                            int64         // calls that agents may be ahead of the slower group; 0: any number
}

// TestFaults kills and starves everything between an agent and the table while
// agents call: their proxies, the shipper, the broker, collectors of two groups,
// the engine and the server in front of it. The table refuses one record in so
// many. At the end executed calls, spools, topic and table must agree. SOAK=1
// triggers the faults as often as promised.
func TestFaults(t *testing.T) {
	t.Parallel()
	n := times{proxies: 2, shippers: 4, one: 1, two: 1, engines: 2, leaves: 1, serverFaults: 1, down: time.Second, hang: time.Second, poison: 1000, ahead: 2000}
	if soak() {
		// A server hangs for longer than a collector waits.
		n = times{proxies: 10, shippers: 50, one: 30, two: 20, engines: 20, leaves: 9, serverFaults: 6, down: time.Minute, hang: time.Minute, poison: 10_000}
	}
	random := newRandom(t)
	// An insert costs the engine the same for one record and for a hundred.
	c := newChain(t, n.poison, "AUDITCOLLECTOR_BATCH_WAIT=300ms")
	shipper := c.ship()
	working := []*agent{c.agents.start(), c.agents.start(), c.agents.start()}
	one := c.group("one", 3)
	two := c.group("two", 2) // both read from the start
	if n.ahead > 0 {
		defer c.holdBack(n.ahead, one, two)()
	}
	progress := func(g *group) func() bool {
		return since(func() int64 { n, _ := g.committed(); return n })
	}
	kill := func(g *group) func(int) int {
		return func(most int) int {
			n := min(most, 1+random.IntN(len(g.members)))
			g.kill(random, n)
			return n
		}
	}
	once := func(strike func()) func(int) int {
		return func(int) int { strike(); return 1 }
	}
	serverFault := func(f serverFault) func(int) int {
		return once(func() { c.server.fail(n.hang, f) })
	}
	progressOfOne := progress(one)
	faults := []*fault{
		{"a proxy is killed", n.proxies, since(c.written), once(func() {
			i := random.IntN(len(working))
			working[i].kill()
			working[i] = c.agents.start()
		})},
		{"the shipper is killed", n.shippers, since(c.written), once(func() {
			_ = shipper.Process.Kill()
			_ = shipper.Wait() // reports that it was killed
			shipper = c.ship()
		})},
		{"the shipper is killed before it hears of what it sent", 1, since(c.written), once(func() {
			c.killUnheard(shipper)
			shipper = c.ship()
		})},
		{"the broker is killed and stays down", 1, since(c.written), once(func() {
			c.broker.Kill()
			<-time.After(n.down)
			if err := c.broker.Start(); err != nil {
				t.Fatal(err)
			}
		})},
		{"collectors of the first group are killed", n.one, progressOfOne, kill(one)},
		{"a collector of the first group leaves, another joins", n.leaves, progressOfOne, once(one.leave)},
		{"collectors of the second group are killed", n.two, progress(two), kill(two)},
		{"the engine is killed", n.engines, since(func() int64 { return c.number(distinct) }), once(func() {
			_ = c.engine.Load().Process.Kill() // it may be about to start
		})},
		{"ClickHouse answers an error", n.serverFaults, c.server.failed, serverFault(answersError)},
		{"ClickHouse hangs", n.serverFaults, c.server.failed, serverFault(hangs)},
		{"ClickHouse stores and drops the reply", n.serverFaults, c.server.failed, serverFault(dropsReply)},
	}
	strikeAll(t, random, faults)
	eventually(t, "the last faults of the server have happened", c.server.failed)

	for _, a := range working {
		if err := a.end(); err != nil {
			t.Errorf("an agent ends with %v", err)
		}
	}
	_ = shipper.Process.Signal(syscall.SIGTERM)
	if err := shipper.Wait(); err != nil {
		t.Errorf("the shipper ends with %v", err)
	}
	if out, err := c.shipper().CombinedOutput(); err != nil {
		t.Errorf("ship: %v\n%s", err, out)
	}
	eventually(t, "both groups have all", func() bool { return one.hasAll() && two.hasAll() })
	one.disband()
	two.disband()
	c.settle(n.poison)
}

// holdBack makes agents wait while they are so many calls ahead of a group, until
// stop is called: a machine that is too busy for what they call would only have more
// to do at the end.
func (c *chain) holdBack(ahead int64, groups ...*group) (stop func()) {
	end, wait := make(chan struct{}), sync.WaitGroup{}
	wait.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		stored := make([]int64, len(groups)) // the last known number of each
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			for i, g := range groups {
				n, _ := g.committed()
				stored[i] = max(stored[i], n)
			}
			c.agents.waits.Store(c.agents.called()-slices.Min(stored) > ahead)
		}
	})
	return func() { close(end); wait.Wait() }
}

// settle replays the dead letters and the topic, and checks that all places
// agree. Nothing else may run.
func (c *chain) settle(poison int) {
	t := c.t
	t.Helper()
	spools, topic := c.spoolBook(t), c.topicBook()
	journal := c.agents.done()
	refused := 0 // each time that one appears in the topic
	for _, e := range topic.Entries {
		if no, err := strconv.Atoi(e.Call); err == nil && no%poison == 0 {
			refused++
		}
	}
	if got := c.number("SELECT count() FROM audit.dead_letters FINAL WHERE reason = 'insert'"); got != int64(refused) || refused == 0 {
		t.Errorf("%d dead letters, want %d", got, refused)
	}
	c.alter(t, "DROP CONSTRAINT poison")
	if r := c.run(t, "dead-letters", "replay"); r.code != 0 || r.stdout != strconv.Itoa(refused)+" stored, 0 remain\n" {
		t.Errorf("replay: %+v", r)
	}
	c.check(t, spools, topic)
	again := c.group("again", 1) // the topic from its first record
	eventually(t, "the third group has all", again.hasAll)
	again.disband()
	c.check(t, spools, topic)
	if found := ledger.Calls(journal, spools); len(found) > 0 {
		t.Errorf("calls: %v", found)
	}
	t.Logf("%d calls sent, %d executed, %d records in %d sessions, %d in the topic, %d of them refused by the table at first",
		len(journal.Sent), len(journal.Executed), len(spools.Entries), c.number("SELECT count() FROM audit.sessions"), len(topic.Entries), refused)
	if len(journal.Executed) == 0 || len(topic.Entries) == len(spools.Entries) {
		t.Error("the faults hit no load: nothing was sent twice")
	}
}
