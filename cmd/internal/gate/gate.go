// Package gate loads the policy that a program applies, and watches its file.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"auditproxy/deploy/policies"
	"auditproxy/internal/wait"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
)

// maxFile is the size limit of a policy, in bytes.
const maxFile = 4 << 20

// A Config selects a policy and says where its server runs.
type Config struct {
	File string      // absolute path, or "preset:NAME"; "" for none
	Mode policy.Mode // in place of the policy's own; "" for that, or else policy.Enforce

	// Check returns an error if the file at an absolute path must not be used:
	// one that the administrator enforces must not be writable by others. nil
	// checks nothing. It is called before each read.
	Check func(path string) error

	Risk risk.Config // without what the policy itself configures

	// UserHome is the home directory that the system has for the user, "" if
	// unknown. "~/" in the policy stands for it and for Risk.Home, which is the
	// server's and may be chosen by the user.
	UserHome string
}

// A Loaded is a loaded policy.
type Loaded struct {
	Risk   *risk.Assessor
	Policy *policy.Policy // nil for none
	Mode   policy.Mode
	Source string // Config.File
}

// LoadNamed loads a policy that a command line names: a preset, or a file.
func LoadNamed(file string, r risk.Config) (Loaded, error) {
	if !strings.HasPrefix(file, policies.Prefix) {
		abs, err := filepath.Abs(file)
		if err != nil {
			return Loaded{}, fmt.Errorf("reading policy %q: %w", file, err)
		}
		file = abs
	}
	return Config{File: file, Risk: r}.Load()
}

// Load reads and compiles the policy. The error of one that does not load is, or
// wraps, a *policy.Error. A read that does not end, as of a file server that does not
// answer, is an error after 10 s.
func (c Config) Load() (Loaded, error) { return wait.Limit(silent, c.noAnswer(), c.load) }

// noAnswer is the error of a read that does not end.
func (c Config) noAnswer() error {
	return fmt.Errorf("reading policy %q: no answer within %v: check its file system", c.File, silent)
}

func (c Config) load() (Loaded, error) {
	l := Loaded{Source: c.File}
	r := c.Risk
	if c.File != "" {
		source, err := c.read()
		if err != nil {
			return Loaded{}, err
		}
		p, err := policy.Load(source, strings.TrimPrefix(c.File, policies.Prefix))
		if err != nil {
			return Loaded{}, err
		}
		l.Policy, l.Mode = p, cmp.Or(c.Mode, p.Mode, policy.Enforce)
		for _, o := range p.Risk {
			r.Risk = append(r.Risk, risk.Override(o))
		}
		r.Commands = risk.Commands{Arguments: p.Commands.Names, Patterns: p.Commands.Patterns}
		r.Paths = risk.Paths{Arguments: p.Paths.Names, Sensitive: slices.Clone(p.Paths.Patterns)}
		for _, pattern := range p.Paths.Patterns {
			if rest, ok := strings.CutPrefix(pattern, "~/"); ok && filepath.IsAbs(c.UserHome) {
				r.Paths.Sensitive = append(r.Paths.Sensitive, c.UserHome+"/"+rest)
			}
		}
	}
	var err error
	if l.Risk, err = risk.New(r); err != nil {
		if l.Policy != nil { // which it is from, as nothing else can be wrong here
			in := &policy.Error{Name: c.File}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				in.Problems = append(in.Problems, policy.Problem{Text: line})
			}
			err = in
		}
		return Loaded{}, err
	}
	return l, nil
}

func (c Config) read() ([]byte, error) {
	if name, ok := strings.CutPrefix(c.File, policies.Prefix); ok {
		return policies.Preset(name)
	}
	if c.Check != nil {
		if err := c.Check(c.File); err != nil {
			return nil, fmt.Errorf("reading policy %q: %w", c.File, err)
		}
	}
	return readFile(c.File)
}

// readFile reads a regular file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	// O_NONBLOCK: a FIFO in the file's place must not hang the program.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading policy %q: %w: check the name", path, errors.Unwrap(err))
	}
	if err != nil {
		return nil, fmt.Errorf("reading policy %q: %w", path, errors.Unwrap(err))
	}
	defer f.Close()
	i, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading policy %q: %w", path, err)
	case !i.Mode().IsRegular():
		return nil, fmt.Errorf("reading policy %q: it is not a file: name a file, or a preset such as preset:observe", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading policy %q: %w", path, err)
	case len(b) > maxFile:
		return nil, fmt.Errorf("reading policy %q: it has more than %d MiB: a policy has at most 512 KiB", path, maxFile>>20)
	}
	return b, nil
}

// Intervals of Watch: from the last change to reading the file, so that an editor
// has finished; at most from the first change, because any process may write to
// the directory; between two reads, for changes without an event; and from the
// start of a read until it is reported as one without an end.
const (
	settle  = 100 * time.Millisecond
	longest = time.Second
	look    = 30 * time.Second
	silent  = 10 * time.Second
)

// Watch calls changed with each policy that replaces the one before, and with
// each new reason why the file cannot be loaded, until ctx ends. now is the
// policy in force. A preset never changes.
//
// It watches the file's directory: editors, and Kubernetes for mounted
// configuration, replace the file. If the directory cannot be watched, the file
// is read every 30 s, and every second while there is no directory. A read that does
// not end, as of a file server that does not answer, is reported after 10 s; the file
// is read again beside it, and Watch does not wait for it.
func (c Config) Watch(ctx context.Context, now Loaded, changed func(Loaded, error)) {
	if c.File == "" || strings.HasPrefix(c.File, policies.Prefix) {
		return
	}
	var w *fsnotify.Watcher // nil before the first read
	var events <-chan fsnotify.Event
	var lost <-chan error // events that did not fit: the file may have changed
	done := make(chan outcome, maxReads)
	reads, last, reading := 0, 0, false // those without an end so far, the number of the last one, and whether it goes on
	defer func() {
		switch {
		case w == nil:
		case reads > 0:
			go w.Close() // which waits for them
		default:
			w.Close()
		}
	}()
	s := state{hash: now.Policy.Hash}
	tick := time.NewTicker(look)
	defer tick.Stop()
	pause := time.NewTimer(settle) // the file may have changed since it was loaded
	defer pause.Stop()
	slow := time.NewTimer(silent)
	defer slow.Stop()
	slow.Stop()
	var since time.Time // of the first change after the last read; zero for none
	defers := func() {
		if since.IsZero() {
			since = time.Now()
		}
		pause.Reset(min(settle, longest-time.Since(since)))
	}
	// The watcher is not made at the start, since the kernel may need 10 ms or more to
	// watch a directory and to end that. The file is not read for each event, since any
	// process that writes to the directory causes events.
	read := func() {
		if reading || reads == maxReads {
			return
		}
		since = time.Time{}
		if w == nil {
			if made, err := fsnotify.NewWatcher(); err == nil {
				w, events, lost = made, made.Events, made.Errors
			}
		}
		reads, last, reading = reads+1, last+1, true
		go c.reread(w, last, done)
		slow.Reset(silent)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			defers()
		case <-lost:
			defers()
		case <-tick.C:
			read()
		case <-pause.C:
			read() // or, while one goes on, when that ends
		case <-slow.C:
			reading = false
			s.take(Loaded{}, c.noAnswer(), changed)
			if !since.IsZero() {
				defers()
			}
		case o := <-done:
			reads--
			late := !reading || o.number != last // a later one may have found another file
			if !late {
				reading = false
				slow.Stop()
				s.take(o.loaded, o.err, changed)
			}
			switch {
			case late || !since.IsZero():
				defers()
			case o.missing: // nothing tells when it is there again
				pause.Reset(longest)
			}
		}
	}
}

// maxReads bounds the reads that do not end: each has a thread.
const maxReads = 8

// outcome is what a read found.
type outcome struct {
	number  int
	missing bool // the directory
	loaded  Loaded
	err     error
}

// reread watches the file's directory, which may have been replaced since the last
// read, and reads the file.
func (c Config) reread(w *fsnotify.Watcher, number int, done chan<- outcome) {
	missing := false
	if w != nil {
		missing = errors.Is(w.Add(filepath.Dir(c.File)), fs.ErrNotExist)
	}
	l, err := c.load()
	done <- outcome{number, missing, l, err}
}

// state is what Watch reported last.
type state struct {
	hash    string // of the policy in force
	problem string // "" if it is what the file has
}

// take reports what a read found, if it is new.
func (s *state) take(l Loaded, err error, changed func(Loaded, error)) {
	switch {
	case err != nil && err.Error() != s.problem:
		s.problem = err.Error()
		changed(Loaded{}, err)
	case err != nil:
	case l.Policy.Hash != s.hash:
		s.hash, s.problem = l.Policy.Hash, ""
		changed(l, nil)
	default:
		s.problem = ""
	}
}
