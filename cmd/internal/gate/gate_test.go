package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"auditproxy/mcpproxy/policy"
)

const (
	allowing  = `{"version":"1","default":"allow"}`
	denying   = `{"version":"1","default":"deny"}`
	observing = `{"version":"1","default":"deny","auditproxy":{"mode":"observe"}}`
)

func write(t *testing.T, file, text string) {
	t.Helper()
	// As editors do: another file takes the place of this one.
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// TestWatch replaces the file of a policy: by another policy, by one that does
// not load, by nothing, by the one before and again by another.
func TestWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	write(t, file, allowing)
	c := Config{File: file}
	now, err := c.Load()
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		l   Loaded
		err error
	}
	changes := make(chan change)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		c.Watch(ctx, now, func(l Loaded, err error) {
			select {
			case changes <- change{l, err}:
			case <-ctx.Done():
			}
		})
	})
	defer func() {
		cancel()
		wg.Wait()
	}()
	next := func() change {
		t.Helper()
		select {
		case got := <-changes:
			return got
		case <-time.After(3 * time.Minute):
			t.Fatal("no change is told")
		}
		return change{}
	}
	write(t, file, denying)
	denies := next()
	if denies.err != nil || denies.l.Policy.Hash == now.Policy.Hash || denies.l.Mode != policy.Enforce {
		t.Errorf("after another policy: %+v, %v", denies.l, denies.err)
	}
	write(t, file, `{"version":"1"`)
	if got := next(); got.err == nil {
		t.Error("a policy that does not load is not reported")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := next(); got.err == nil || !strings.Contains(got.err.Error(), "no such file") {
		t.Errorf("after the file is gone: %v", got.err)
	}
	write(t, file, denying) // in force all the time: nothing to report
	write(t, file, allowing)
	if got := next(); got.err != nil || got.l.Policy.Hash != now.Policy.Hash {
		t.Errorf("after the first policy came back: %+v, %v", got.l, got.err)
	}
}

// loadOnce writes a policy, to watch it until the context ends, before the next periodic
// read.
func loadOnce(t *testing.T, file string) (c Config, now Loaded, ctx context.Context, cancel func()) {
	t.Helper()
	write(t, file, allowing)
	c = Config{File: file}
	now, err := c.Load()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), look-5*time.Second)
	t.Cleanup(cancel)
	return c, now, ctx, cancel
}

// TestWatchBusyDirectory writes into the policy's directory without a pause: a
// policy that replaces the one before comes into force nevertheless, long before
// the next periodic read.
func TestWatchBusyDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.json")
	c, now, ctx, cancel := loadOnce(t, file)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			write(t, filepath.Join(dir, "other"), "")
			<-time.After(settle / 10)
		}
	})
	write(t, file, denying)
	changed := false
	c.Watch(ctx, now, func(l Loaded, err error) {
		changed = err == nil && l.Policy.Hash != now.Policy.Hash
		cancel()
	})
	wg.Wait()
	if !changed {
		t.Error("the policy did not come into force")
	}
}

// TestWatchReplacedDirectory puts another directory in the place of the policy's.
// The policy in it comes into force long before the next periodic read, and so
// does one that is written there later.
func TestWatchReplacedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	next := dir + ".next"
	for _, d := range []string{dir, next} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "policy.json")
	write(t, filepath.Join(next, "policy.json"), denying)
	c, now, ctx, cancel := loadOnce(t, file)
	changes := 0
	write(t, file, observing) // which the first read finds
	c.Watch(ctx, now, func(_ Loaded, err error) {
		if err != nil {
			t.Errorf("change %d: %v", changes, err)
		}
		switch changes++; changes {
		case 1: // the directory is watched
			if err := errors.Join(os.Rename(dir, dir+".old"), os.Rename(next, dir)); err != nil {
				t.Error(err)
			}
		case 2:
			write(t, file, allowing)
		case 3:
			cancel()
		}
	})
	if changes != 3 {
		t.Errorf("%d changes are told, want 3", changes)
	}
}

// TestWatchMissingDirectory removes the policy's directory and makes it again when that
// is reported. The policy in it comes into force long before the next periodic read, and
// so does one that is written there later.
func TestWatchMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	file := filepath.Join(dir, "policy.json")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c, now, ctx, cancel := loadOnce(t, file)
	changes := 0
	write(t, file, observing) // which the first read finds
	c.Watch(ctx, now, func(_ Loaded, err error) {
		changes++
		if missing := changes == 2; errors.Is(err, fs.ErrNotExist) != missing || err != nil != missing {
			t.Errorf("change %d: %v", changes, err)
		}
		switch changes {
		case 1: // the directory is watched
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		case 2:
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Error(err)
			}
			write(t, file, denying)
		case 3:
			write(t, file, allowing)
		case 4:
			cancel()
		}
	})
	if changes != 4 {
		t.Errorf("%d changes are told, want 4", changes)
	}
}

// TestCheckEachRead checks that Load checks an enforced file before each read.
func TestCheckEachRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	write(t, file, allowing)
	checks := 0
	c := Config{File: file, Check: func(path string) error {
		if checks++; path != file || checks > 1 {
			return os.ErrPermission
		}
		return nil
	}}
	if _, err := c.Load(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(); err == nil || !strings.Contains(err.Error(), "reading policy") {
		t.Errorf("got %v, want an error: the file is not to be used now", err)
	}
}

// TestLoadReadWithoutEnd lets the first read wait, as a file server that does not answer does.
func TestLoadReadWithoutEnd(t *testing.T) {
	t.Parallel()
	answers := make(chan struct{})
	t.Cleanup(func() { close(answers) })
	file := filepath.Join(t.TempDir(), "policy.json")
	loaded := make(chan error, 1)
	go func() {
		_, err := Config{File: file, Check: func(string) error { <-answers; return nil }}.Load()
		loaded <- err
	}()
	select {
	case err := <-loaded:
		if err == nil || !strings.Contains(err.Error(), "no answer within 10s: check its file system") {
			t.Errorf("got %v, want an error that says what hangs", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Load does not end")
	}
}

// TestWatchReadWithoutEnd lets a read wait, as a file server that does not answer
// does: it is reported, Watch ends all the same, and a policy that is there when the
// read ends, or that is written meanwhile, comes into force.
func TestWatchReadWithoutEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		want []string
	}{{"answers late", []string{"no answer", "denying"}}, {"is replaced", []string{"no answer", "denying"}}, {"never answers", []string{"no answer"}}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "policy.json")
			write(t, file, allowing)
			now, err := Config{File: file}.Load()
			if err != nil {
				t.Fatal(err)
			}
			answers := make(chan struct{})
			answer := sync.OnceFunc(func() { close(answers) })
			t.Cleanup(answer)
			var reads atomic.Int32
			c := Config{File: file, Check: func(string) error {
				if tt.name != "is replaced" || reads.Add(1) == 1 {
					<-answers
				}
				return nil
			}}
			write(t, file, denying)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got []string
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.Watch(ctx, now, func(l Loaded, err error) {
					switch {
					case err == nil && l.Policy.Hash != now.Policy.Hash:
						got = append(got, "denying")
					case err != nil && strings.Contains(err.Error(), "no answer within 10s: check its file system"):
						got = append(got, "no answer")
					default:
						got = append(got, fmt.Sprint(err))
					}
					switch {
					case len(got) == len(tt.want):
						cancel()
					case tt.name == "is replaced":
						write(t, file, denying)
					default:
						answer()
					}
				})
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("Watch does not end")
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("changes are %q, want %q", got, tt.want)
			}
		})
	}
}
