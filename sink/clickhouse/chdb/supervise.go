package chdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"time"

	"go.uber.org/zap"
)

const (
	firstRestart = 100 * time.Millisecond
	lastRestart  = 30 * time.Second
	steady       = time.Minute // an engine that ran this long resets the pause

	startTimeout  = 2 * time.Minute // a large database takes its time
	probeInterval = 5 * time.Second
	probeTimeout  = 30 * time.Second
	endTimeout    = 10 * time.Second
	lockInterval  = 200 * time.Millisecond
)

// A Supervisor configures Supervise.
type Supervisor struct {
	Dir     string           // that of the engine. Required.
	Command func() *exec.Cmd // a process that calls Run and ends when its standard input does. Required.
	Log     *zap.Logger      // nil: none

	// Restarting is called before each start after the first; nil: nothing.
	Restarting func()

	// Patience is the time without an answer after which the engine counts as
	// hung and is killed; it is probed every 5 s. It is also the longest wait
	// for another engine in the directory: one whose parent was killed ends
	// within 15 s. Zero: 30 s.
	Patience time.Duration
}

// Supervise keeps an engine running until ctx ends: one that dies or does not
// answer is restarted, after a growing pause. It returns an error only if a
// restart would not help.
//
// The engine's standard input is a pipe without data. It closes when this
// process ends for any reason, and the engine then exits.
func Supervise(ctx context.Context, s Supervisor) error {
	if s.Log == nil {
		s.Log = zap.NewNop()
	}
	if s.Restarting == nil {
		s.Restarting = func() {}
	}
	if s.Patience == 0 {
		s.Patience = probeTimeout
	}
	for wait := firstRestart; ; wait = min(2*wait, lastRestart) {
		err := s.awaitDir(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("starting the local engine: %w: stop the auditcollector that has it, or choose another local.dir", err)
		}
		started := time.Now()
		err = s.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if exitCode(err) == ExitConfig {
			return fmt.Errorf("starting the local engine: %w, for the reason that it gave", err)
		}
		if time.Since(started) > steady {
			wait = firstRestart
		}
		s.Log.Warn("engine exited; restarting", zap.Error(err), zap.Duration("wait", wait))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		s.Restarting()
	}
}

// awaitDir waits until the directory is free or ctx ends. It returns an error
// if another process still has it after patience.
func (s Supervisor) awaitDir(ctx context.Context) error {
	end := time.Now().Add(s.Patience)
	for told := false; ; told = true {
		err := inUse(s.Dir)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return err
		}
		if !told {
			s.Log.Warn("waiting for another engine to end", zap.Error(err), zap.Duration("at_most", s.Patience))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lockInterval):
		}
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// once runs the engine until it ends, hangs or ctx ends.
func (s Supervisor) once(ctx context.Context) error {
	cmd := s.Command()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("making the engine's standard input: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the engine: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	hung := make(chan error, 1)
	go func() { hung <- s.probe(watch) }()

	select {
	case err := <-ended:
		cancel()
		<-hung
		if err == nil {
			err = errors.New("it ended by itself")
		}
		return err
	case err := <-hung:
		return errors.Join(err, end(cmd, stdin, ended))
	}
}

// end stops the engine: by closing its input, then by killing it.
func end(cmd *exec.Cmd, stdin io.Closer, ended <-chan error) error {
	stdin.Close()
	select {
	case err := <-ended:
		return err
	case <-time.After(endTimeout):
		// Acknowledged data are on disk; other data are sent again.
		_ = cmd.Process.Kill()
		return <-ended
	}
}

// probe pings the engine until it does not answer or ctx ends.
func (s Supervisor) probe(ctx context.Context) error {
	first, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := Ready(first, s.Dir); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(probeInterval):
		}
		probe, cancel := context.WithTimeout(ctx, s.Patience)
		err := ping(probe, s.Dir)
		cancel()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("the engine does not answer: %w", err)
		}
	}
}

// Ready waits until the engine of dir answers, and returns an error if ctx
// ends before that.
func Ready(ctx context.Context, dir string) error {
	for {
		err := ping(ctx, dir)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the engine: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ping pings the engine once.
func ping(ctx context.Context, dir string) error {
	dial := Dialer(dir, Reader)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) },
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/ping", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the engine answers %s", resp.Status)
	}
	return nil
}
