package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Status is how the server ended.
type Status struct {
	Code   int
	Signal syscall.Signal // 0 if it exited by itself

	// Ended is when the proxy saw it end. All later steps, the caller's
	// included, last at most Config.Drain.
	Ended time.Time
}

// ChildEnv is the server's environment: env without the proxy's own variables
// and without the names in hide.
func ChildEnv(env, hide []string) []string {
	var kept []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "AUDITPROXY_") || slices.Contains(hide, name) {
			continue
		}
		kept = append(kept, kv)
	}
	return kept
}

// child is the server process, leader of its own process group.
type child struct {
	cmd     *exec.Cmd
	in, out *os.File

	// signalled is owned by wait: this process was asked to stop.
	signalled bool
}

// pipeSize is the capacity asked for the pipes to the server. Fewer, larger
// reads make long messages cheaper; the kernel counts capacity per user
// (pipe-user-pages-soft), so not more than helps.
const pipeSize = 256 << 10

func startChild(c Config) (*child, error) {
	hideDescriptors()
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", c.Command[0], err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return nil, fmt.Errorf("starting %q: %w", c.Command[0], err)
	}
	for _, f := range []*os.File{inW, outW} {
		if raw, err := f.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { growPipe(fd, pipeSize) })
		}
	}
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdin, cmd.Stdout = inR, outW
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	inR.Close()
	outW.Close()
	if err != nil {
		inW.Close()
		outR.Close()
		return nil, fmt.Errorf("starting %q: %w", c.Command[0], err)
	}
	return &child{cmd: cmd, in: inW, out: outR}, nil
}

// wait returns when the server has ended. Signals to this process are forwarded
// to its group. A signal that asks to end, the end of ctx, and a client that is
// gone start the ladder: the signal asked for, SIGTERM, SIGKILL, with a grace
// period between.
func (c *child) wait(ctx context.Context, cfg Config, clientDone <-chan struct{}) Status {
	exited := make(chan error, 1)
	go func() { exited <- c.cmd.Wait() }()

	ladder := newLadder(c)
	defer ladder.stop()
	var look <-chan time.Time // for a client that is gone, once its input ended
	ctxDone := ctx.Done()
	for {
		select {
		case err := <-exited:
			c.killGroup(ladder)
			return statusOf(err)
		case sig := <-cfg.Signals:
			c.signal(sig.(syscall.Signal))
			switch sig {
			case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT:
				c.signalled = true
				ladder.start(sig.(syscall.Signal))
			}
		case <-ctxDone:
			ctxDone = nil
			c.signalled = true
			c.signal(syscall.SIGTERM)
			ladder.start(syscall.SIGTERM)
		case <-clientDone:
			clientDone = nil
			look = time.After(0)
		case <-look:
			// The server's input is closed. A client that still reads may wait
			// for an answer as long as it likes; one that is gone never will.
			if readerGone(cfg.Out) {
				look = nil
				ladder.start(0)
			} else {
				look = time.After(time.Second)
			}
		case <-ladder.next:
			ladder.climb()
		}
	}
}

func (c *child) signal(sig syscall.Signal) { syscall.Kill(-c.cmd.Process.Pid, sig) }

// killGroup kills the processes that the server left running in its group, if
// it was being shut down. After an exit of its own accord its children keep
// running.
func (c *child) killGroup(l *ladder) {
	if l.step > 0 {
		c.signal(syscall.SIGKILL)
	}
}

// ladder is owned by wait.
type ladder struct {
	c    *child
	step int // 0: not started
	sent syscall.Signal
	next <-chan time.Time
	t    *time.Timer
}

func newLadder(c *child) *ladder { return &ladder{c: c} }

func (l *ladder) start(sent syscall.Signal) {
	if l.step > 0 {
		return
	}
	l.step, l.sent = 1, sent
	l.t = time.NewTimer(grace)
	l.next = l.t.C
}

func (l *ladder) climb() {
	l.step++
	if l.step == 2 && l.sent != syscall.SIGTERM {
		l.c.signal(syscall.SIGTERM)
	} else {
		l.c.signal(syscall.SIGKILL)
	}
	l.t.Reset(grace)
}

func (l *ladder) stop() {
	if l.t != nil {
		l.t.Stop()
	}
}

func statusOf(err error) Status {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return Status{}
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Status{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}
	}
	return Status{Code: exit.ExitCode()}
}

// readerGone reports whether f is a pipe or socket whose other end is closed.
func readerGone(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true // closed: the server closed its output
	}
	gone := false
	raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			gone = fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
		}
	})
	return gone
}

// interruptRead reports whether a read of f ends now.
func interruptRead(f *os.File) bool { return f.SetReadDeadline(time.Now()) == nil }

// Pollable returns the standard stream f in a form whose reads and writes do
// not occupy a thread while they wait, if that can be had without changing f
// for other processes that share it; else f itself. The file behind f can then
// be closed: its descriptor becomes the null device, so that nothing else is
// ever opened under that number.
func Pollable(f *os.File, flag int) *os.File {
	fd := int(f.Fd())
	again, err := reopen(fd, flag)
	if err != nil {
		return f
	}
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		dup2(int(null.Fd()), fd)
		null.Close()
	}
	return again
}

func reopen(fd, flag int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return reopenPipe(fd, flag)
	case unix.S_IFSOCK:
		// A socket cannot be opened again. Its flags may be set unless another
		// standard stream, which the server gets, is the same socket.
		for other := range 3 {
			var o unix.Stat_t
			if other != fd && unix.Fstat(other, &o) == nil && o.Dev == st.Dev && o.Ino == st.Ino {
				return nil, errors.ErrUnsupported
			}
		}
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, err
		}
		if err := unix.SetNonblock(dup, true); err != nil {
			unix.Close(dup)
			return nil, err
		}
		return os.NewFile(uintptr(dup), fmt.Sprintf("descriptor %d", fd)), nil
	}
	return nil, errors.ErrUnsupported
}
