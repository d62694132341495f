package counter_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/policy/counter"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("COUNTER_CHILD"); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child makes calls as it is told: each line of its input has a time, a maximum
// and a number of calls. It answers with a line for each call that passes, and an
// empty line.
func child(dir string) {
	s := counter.New(dir, "server")
	defer s.Close()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var at, most int64
		var calls int
		fmt.Sscan(in.Text(), &at, &most, &calls)
		for range calls {
			if ok, _ := count(s, time.Unix(at, 0), most); ok {
				fmt.Println("passed")
			}
		}
		fmt.Println()
	}
}

func one() []policy.Counter {
	return []policy.Counter{{Scope: policy.User, Key: "/tools/send/limits/rate@60", Window: 60}}
}

// count counts one call if the limit allows it.
func count(s policy.Counters, at time.Time, most int64) (ok bool, err error) {
	counters := one()
	err = s.Update(at, counters, func(values []int64) bool {
		ok = values[0] < most
		counters[0].Amount = 1
		return ok
	})
	return ok && err == nil, err
}

// A process is a child.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

func start(t *testing.T, dir string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), "COUNTER_CHILD="+dir)
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stdin.Close()
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p
}

// call tells p to make calls.
func (p *process) call(at, most int64, calls int) {
	fmt.Fprintln(p.stdin, at, most, calls)
}

// passed counts the calls that passed, up to the empty line or the end.
func (p *process) passed() (n int) {
	for {
		line, err := p.out.ReadString('\n')
		if err != nil || line == "\n" {
			return n
		}
		n++
	}
}

// TestEightProcesses makes calls of eight processes at a time: ten of each
// minute pass, never an eleventh.
func TestEightProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	var all []*process
	for range 8 {
		all = append(all, start(t, dir))
	}
	for minute := range int64(10) {
		passed := 0
		for _, p := range all {
			p.call(1_700_000_000+minute*60, 10, 5)
		}
		for _, p := range all {
			passed += p.passed()
		}
		if passed != 10 {
			t.Errorf("minute %d: %d calls passed, want 10", minute, passed)
		}
	}
}

// TestKilledProcesses kills processes while they count. Each call that passed is
// counted, and no more pass than the limit allows.
func TestKilledProcesses(t *testing.T) {
	const most, at = 2000, 1_700_000_000
	dir := filepath.Join(t.TempDir(), "counters")
	rng := rand.New(rand.NewPCG(1, 2))
	passed, kills := 0, 0
	for range 12 {
		var all []*process
		for range 8 {
			p := start(t, dir)
			p.call(at, most, 40)
			all = append(all, p)
		}
		for _, i := range rng.Perm(8)[:6] {
			for range 1 + rng.IntN(8) { // of its calls, or all that pass
				line, err := all[i].out.ReadString('\n')
				if err != nil || line == "\n" {
					break
				}
				passed++
			}
			all[i].cmd.Process.Kill()
			kills++
		}
		for _, p := range all {
			passed += p.passed()
		}
	}
	s := counter.New(dir, "server")
	defer s.Close()
	var value int64
	if err := s.Update(time.Unix(at, 0), one(), func(values []int64) bool { value = values[0]; return false }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills, %d calls passed, %d counted", kills, passed, value)
	if passed > most || int64(passed) > value || value > most {
		t.Errorf("%d calls passed and %d are counted, want at most %d", passed, value, most)
	}
}

// TestThreads shares a store and a file between goroutines.
func TestThreads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 2 {
		s := counter.New(dir, "server")
		defer s.Close()
		for range 4 {
			wg.Go(func() {
				for range 10 {
					ok, err := count(s, time.Unix(600, 0), 25)
					mu.Lock()
					if err != nil {
						t.Error(err)
					}
					if ok {
						passed++
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if passed != 25 {
		t.Errorf("%d calls passed, want 25", passed)
	}
}

// TestEdge counts calls that wait for each other at the edge of a window in
// their own window, in whatever order they come.
func TestEdge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	a, b := counter.New(dir, "server"), counter.New(dir, "server")
	defer a.Close()
	defer b.Close()
	before, after := time.Unix(120, -1), time.Unix(120, 0)
	for i, step := range []struct {
		s    *counter.Store
		at   time.Time
		want bool
	}{
		{a, before, true}, {b, after, true}, {a, before, true}, {b, after, true}, {a, before, true},
		{b, before, false}, {a, after, true}, {b, after, false}, {a, before, false},
		{a, time.Unix(180, 0), true}, {b, time.Unix(179, 0), false},
	} {
		ok, err := count(step.s, step.at, 3)
		if err != nil || ok != step.want {
			t.Errorf("step %d: got %v, %v", i, ok, err)
		}
	}
	for _, at := range []int64{177, 60, 0} {
		if ok, err := count(a, time.Unix(at, 0), 3); ok || !errors.Is(err, policy.ErrClock) {
			t.Errorf("at %d: got %v, %v", at, ok, err)
		}
	}
}

// TestServersCountApart gives two servers counters of the same name, and a new
// store of one of them what the last one left.
func TestServersCountApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	for i, server := range []string{"a", "b", "a"} {
		s := counter.New(dir, server)
		ok, err := count(s, time.Unix(600, 0), 1)
		if err != nil || ok != (i < 2) {
			t.Errorf("server %s: got %v, %v", server, ok, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTogether updates counters of both scopes: all or none. Release takes back
// what was added.
func TestTogether(t *testing.T) {
	s := counter.New(filepath.Join(t.TempDir(), "counters"), "server")
	defer s.Close()
	counters := []policy.Counter{
		{Scope: policy.Session, Key: "a", Window: 60}, {Scope: policy.User, Key: "a", Window: 3600},
		{Scope: policy.User, Key: "b", Window: 60}, {Scope: policy.Session, Key: "b", Window: 60},
	}
	update := func(at int64, add bool, want ...int64) {
		t.Helper()
		for i := range counters {
			counters[i].Amount = 0 // decide says how much
		}
		err := s.Update(time.Unix(at, 0), counters, func(values []int64) bool {
			if !slices.Equal(values, want) {
				t.Errorf("got %d, want %d", values, want)
			}
			for i := range counters {
				counters[i].Amount = int64(i + 1)
			}
			return add
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	update(7205, false, 0, 0, 0, 0)
	update(7205, true, 0, 0, 0, 0)
	update(7206, true, 1, 2, 3, 4)
	update(7265, false, 0, 4, 0, 0)
	if starts := []int64{counters[0].Start, counters[1].Start, counters[2].Start, counters[3].Start}; !slices.Equal(starts, []int64{7260, 7200, 7260, 7260}) {
		t.Errorf("windows start at %d", starts)
	}
	update(7206, true, 2, 4, 6, 8)
	if err := s.Release(slices.Clone(counters)); err != nil {
		t.Fatal(err)
	}
	update(7206, true, 2, 4, 6, 8)
	held := slices.Clone(counters)
	update(7265, true, 0, 6, 0, 0)
	if err := s.Release(held); err != nil { // from the window before
		t.Fatal(err)
	}
	update(7265, false, 1, 6, 3, 4)
}

// TestNothingIsMadeBeforeItIsNeeded counts only by session.
func TestNothingIsMadeBeforeItIsNeeded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	s := counter.New(dir, "server")
	defer s.Close()
	err := s.Update(time.Unix(0, 0), []policy.Counter{{Scope: policy.Session, Key: "a", Window: 60, Amount: 1}}, func([]int64) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release([]policy.Counter{{Scope: policy.Session, Key: "a", Window: 60, Amount: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}

// TestReleaseWithoutTheFile takes back what a file had that was removed since.
func TestReleaseWithoutTheFile(t *testing.T) {
	dir, name := prepared(t)
	s := counter.New(dir, "server")
	defer s.Close()
	counters := one()
	if err := s.Update(time.Unix(600, 0), counters, func([]int64) bool { counters[0].Amount = 1; return true }); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(counters); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if ok, err := count(s, time.Unix(600, 0), 1); err != nil || ok != (i == 0) {
			t.Errorf("call %d: got %v, %v", i, ok, err)
		}
	}
}

// prepared returns a directory with a file in which two calls are counted, and
// the name of the file.
func prepared(t *testing.T) (dir, name string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "counters")
	s := counter.New(dir, "server")
	for range 2 {
		if ok, err := count(s, time.Unix(600, 0), 9); !ok {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("got files %q, want one", names)
	}
	return dir, names[0]
}

// TestDamage changes a file in every way. Calls are denied, and the file stays as
// it is.
func TestDamage(t *testing.T) {
	dir, name := prepared(t)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := counter.New(dir, "server")
		defer s.Close()
		for range 2 {
			if ok, err := count(s, time.Unix(600, 0), 9); ok || !errors.Is(err, policy.ErrDamaged) || !strings.Contains(err.Error(), name) {
				t.Errorf("with %d bytes: got %v, %v", len(text), ok, err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, text) {
			t.Errorf("with %d bytes: the file has changed: %v", len(text), err)
		}
	}
	for n := range whole {
		if n != 128 { // a header alone is a file without counters
			check(whole[:n])
		}
		flipped := bytes.Clone(whole)
		flipped[n] ^= 1
		check(flipped)
	}
	check(append(bytes.Clone(whole), whole[0]))
	check(make([]byte, 256))
	check(append(bytes.Clone(whole), make([]byte, 128)...)[128:])
	check(bytes.Repeat(whole, 10_000))

	// Of a file that was cut after it was read, nothing is known from before.
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	before := counter.New(dir, "server")
	defer before.Close()
	for i, size := range []int{len(whole), len(whole) - 1} {
		if err := os.Truncate(name, int64(size)); err != nil {
			t.Fatal(err)
		}
		if ok, err := count(before, time.Unix(600, 0), 9); ok != (i == 0) || i > 0 && !errors.Is(err, policy.ErrDamaged) {
			t.Errorf("cut to %d bytes: got %v, %v", size, ok, err)
		}
	}
	// The sum of a slot is right, and what it counts is not.
	for _, text := range []string{" 600 -5 0", " 600 2 -1", " 600 x 0", " x 2 0", " 600 2 0 0", " 600 2"} {
		slot := append([]byte(strings.Fields(string(whole[128:]))[0]), text...)
		slot = append(slot, bytes.Repeat([]byte(" "), 119-len(slot))...)
		slot = fmt.Appendf(slot, "%08x\n", crc32.Checksum(slot, crc32.MakeTable(crc32.Castagnoli)))
		check(append(bytes.Clone(whole[:128]), slot...))
	}

	// Of a very long file not all is read.
	if err := os.Truncate(name, 1<<40); err != nil {
		t.Fatal(err)
	}
	s := counter.New(dir, "server")
	defer s.Close()
	if _, err := count(s, time.Unix(600, 0), 9); !errors.Is(err, policy.ErrDamaged) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("with a terabyte: %v", err)
	}
}

// TestForeign puts something else in the file's place or the directory's. Calls
// are denied, and nothing is written.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir, name string) error
		want error
	}{
		{"symlink", func(dir, name string) error {
			return errors.Join(os.Rename(name, dir+"x"), os.Symlink(dir+"x", name))
		}, policy.ErrForeign},
		{"dangling symlink", func(dir, name string) error {
			return errors.Join(os.Remove(name), os.Symlink(dir+"x", name))
		}, policy.ErrForeign},
		{"directory", func(dir, name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) }, policy.ErrForeign},
		{"fifo", func(dir, name string) error { return errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600)) }, policy.ErrForeign},
		{"device", func(dir, name string) error {
			return errors.Join(os.Remove(name), os.Symlink("/dev/zero", name))
		}, policy.ErrForeign},
		{"open to others", func(dir, name string) error { return os.Chmod(name, 0o640) }, policy.ErrForeign},
		{"directory open to others", func(dir, name string) error { return os.Chmod(dir, 0o750) }, policy.ErrForeign},
		{"symlinked directory", func(dir, name string) error {
			return errors.Join(os.Rename(dir, dir+"x"), os.Symlink(dir+"x", dir))
		}, policy.ErrForeign},
		{"file for a directory", func(dir, name string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, policy.ErrForeign},
		{"another owner", func(dir, name string) error { return os.Chown(name, 12345, -1) }, policy.ErrForeign},
		{"another owner's directory", func(dir, name string) error { return os.Chown(dir, 12345, -1) }, policy.ErrForeign},
		{"device node", func(dir, name string) error {
			return errors.Join(os.Remove(name), unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))))
		}, policy.ErrForeign},
		{"no parent", func(dir, name string) error { return os.RemoveAll(filepath.Dir(dir)) }, policy.ErrFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, name := prepared(t)
			if err := c.make(dir, name); errors.Is(err, unix.EPERM) {
				dev.Superuser(t)
				t.Fatal(err)
			} else if err != nil {
				t.Fatal(err)
			}
			s := counter.New(dir, "server")
			defer s.Close()
			for range 2 {
				if ok, err := count(s, time.Unix(600, 0), 9); ok || !errors.Is(err, c.want) {
					t.Errorf("got %v, %v, want %v", ok, err, c.want)
				} else if said := err.Error(); c.want == policy.ErrForeign && !strings.HasSuffix(said, ": remove it") && !strings.HasSuffix(said, ": chmod it") {
					t.Errorf("%q says no remedy", said)
				}
			}
			if _, err := os.Lstat(dir + "x"); c.name == "dangling symlink" && err == nil {
				t.Error("the symlink's target was made")
			}
		})
	}
}

// TestReplaced removes or replaces the file while a store has it open.
func TestReplaced(t *testing.T) {
	dir, name := prepared(t)
	s := counter.New(dir, "server")
	defer s.Close()
	if ok, err := count(s, time.Unix(600, 0), 3); !ok {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	other := counter.New(dir, "server")
	defer other.Close()
	for i, step := range []*counter.Store{other, s, other, s} {
		ok, err := count(step, time.Unix(600, 0), 3)
		if err != nil || ok != (i < 3) {
			t.Errorf("call %d: got %v, %v", i, ok, err)
		}
	}
}

// TestLockedForEver has a process that holds the lock and does not go on.
func TestLockedForEver(t *testing.T) {
	dir, name := prepared(t)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s := counter.New(dir, "server")
	defer s.Close()
	if ok, err := count(s, time.Unix(600, 0), 9); ok || !errors.Is(err, policy.ErrBusy) {
		t.Errorf("got %v, %v", ok, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if ok, err := count(s, time.Unix(600, 0), 9); !ok {
		t.Error(err)
	}
}

// TestManyCounters fills a file with counters.
func TestManyCounters(t *testing.T) {
	s := counter.New(filepath.Join(t.TempDir(), "counters"), "server")
	defer s.Close()
	var all []policy.Counter
	for i := range 1024 {
		all = append(all, policy.Counter{Scope: policy.User, Key: strconv.Itoa(i), Window: 60, Amount: 1})
	}
	if err := s.Update(time.Unix(0, 0), all, func([]int64) bool { return true }); !errors.Is(err, policy.ErrFull) {
		t.Errorf("got %v", err)
	}
	if err := s.Update(time.Unix(0, 0), all[:1000], func(values []int64) bool { return values[0] == 1 && values[999] == 1 }); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestCountersOfOldPolicies: in a full file, a new counter takes the place of one
// whose windows are over, however long they are, and of no other.
func TestCountersOfOldPolicies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	s := counter.New(dir, "server")
	defer s.Close()
	of := func(policies string, n int) (all []policy.Counter) {
		for i := range n {
			all = append(all, policy.Counter{Scope: policy.User, Key: policies + strconv.Itoa(i), Window: 1, Amount: 1})
		}
		return all
	}
	values := func(at int64, list []policy.Counter) (got []int64, err error) {
		err = s.Update(time.Unix(at, 0), list, func(values []int64) bool {
			got = slices.Clone(values)
			return true
		})
		return got, err
	}
	if _, err := values(0, of("old", policy.MaxUser-2)); err != nil {
		t.Fatal(err)
	}
	if _, err := values(1, of("later", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := values(policy.Idle, of("new", 1)); !errors.Is(err, policy.ErrFull) {
		t.Errorf("a counter that may still count lost its place: %v", err)
	}
	for range 2 { // also from the file
		if _, err := values(policy.Idle+1, of("new", policy.MaxUser-2)); err != nil {
			t.Errorf("new counters: %v", err)
		}
		s.Close()
	}
	if got, err := values(policy.Idle+1, of("new", policy.MaxUser-2)); err != nil || slices.Min(got) != 2 {
		t.Errorf("counted %d at least, %v, want 2 of each", slices.Min(got), err)
	}
	if got, err := values(1, of("later", 2)); err != nil || slices.Min(got) != 1 {
		t.Errorf("the counters that were younger have %v, %v", got, err)
	}
}

// TestFilesOfOldServers: the file of a server that was not used while any window
// lasts is removed when the file of another one is made. Whoever has it open goes on.
func TestFilesOfOldServers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	now := time.Now()
	stores := map[string]*counter.Store{}
	for _, server := range []string{"old", "locked", "young"} {
		stores[server] = counter.New(dir, server)
		defer stores[server].Close()
		if ok, err := count(stores[server], now, 1); !ok || err != nil {
			t.Fatalf("%s: %v, %v", server, ok, err)
		}
	}
	names := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	var held *os.File
	for _, name := range names() {
		age := time.Duration(policy.Idle+60) * time.Second
		switch filepath.Base(name) {
		case counterFile("young"):
			age -= 2 * time.Minute
		case counterFile("locked"):
			var err error
			if held, err = os.Open(name); err == nil {
				err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
		}
		if err := os.Chtimes(name, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	new := counter.New(dir, "new")
	defer new.Close()
	if ok, err := count(new, now, 1); !ok || err != nil {
		t.Fatalf("new: %v, %v", ok, err)
	}
	for server, want := range map[string]bool{"old": false, "locked": true, "young": true, "new": true} {
		if got := slices.Contains(names(), filepath.Join(dir, counterFile(server))); got != want {
			t.Errorf("the file of server %q is there: %t, want %t", server, got, want)
		}
	}
	if ok, err := count(stores["old"], now, 1); !ok || err != nil {
		t.Errorf("after its file was removed: %v, %v", ok, err)
	}
}

func counterFile(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:16]) + ".counters"
}

// TestStoppedByASignal is TestLockedForEver with a process that was stopped: it
// does not hold the lock between calls.
func TestStoppedByASignal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	p := start(t, dir)
	p.call(600, 9, 1)
	if n := p.passed(); n != 1 {
		t.Fatalf("%d calls passed", n)
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s := counter.New(dir, "server")
	defer s.Close()
	if ok, err := count(s, time.Unix(600, 0), 9); !ok {
		t.Error(err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := counter.New(filepath.Join(b.TempDir(), "counters"), "server")
	defer s.Close()
	for b.Loop() {
		if ok, err := count(s, time.Unix(600, 0), 1<<40); !ok {
			b.Fatal(err)
		}
	}
}
