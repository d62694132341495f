//go:build linux || darwin

package chdb

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"auditproxy/internal/crowd"
	"auditproxy/internal/diskfull"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 5 * time.Minute
	maxHeaderBytes = 1 << 20         // statements may be in the URL
	maxConns       = 128             // of the reader's port
	stopTimeout    = 5 * time.Second // for statements running when the engine ends
	goMemory       = 256 << 20       // in addition to the engine's: blocks in transit to clients
)

// Run serves the engine until ctx ends. A process can call it once. Killing
// it at any moment loses nothing that was acknowledged.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return setupError{err}
	}
	path, err := findLibrary(cfg.Library)
	if err != nil {
		return setupError{err}
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return setupError{err}
	}
	defer lock.Close()
	lib, err := load(path)
	if err != nil {
		return setupError{err}
	}
	// The library obeys a config.xml in the working directory, which may be
	// any directory, even the agent's repository. The engine's own directory
	// is safe.
	if err := os.Chdir(cfg.Dir); err != nil {
		return setupError{fmt.Errorf("entering the directory: %w", err)}
	}
	debug.SetMemoryLimit(goMemory) // a soft limit: Go collects more often beyond it
	e := &engine{cfg, lib, filepath.Join(cfg.Dir, DataDir)}
	// The first connection keeps the engine open, and the limits work only
	// here.
	keeper, err := e.open("--max_server_memory_usage="+strconv.FormatInt(cfg.Memory, 10), "--background_pool_size=2")
	if err != nil {
		return fmt.Errorf("opening %q: %w", e.data, err)
	}
	stopped, err := e.serve(ctx)
	if stopped {
		keeper.close()
	}
	return err
}

// AwaitEnd returns when the standard input of an engine's process ends. The library makes
// that non-blocking for moments. If the process is stopped in one of them, as with the
// machine or its container, a read fails when it goes on; that is no end.
func AwaitEnd(stdin io.Reader) {
	for {
		_, err := io.Copy(io.Discard, stdin)
		f, ok := stdin.(*os.File)
		if !ok || !errors.Is(err, unix.EAGAIN) {
			return
		}
		c, err := f.SyscallConn()
		if err != nil {
			return
		}
		_ = c.Control(func(fd uintptr) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) // the next read says what it is
		})
	}
}

// serve reports whether all statements have ended; a connection must not be
// closed under one that has not.
func (e *engine) serve(ctx context.Context) (stopped bool, err error) {
	listeners, err := e.listen()
	if err != nil {
		return true, err
	}
	// Running statements end with base: late, so that a running insert can
	// finish.
	base, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var running sync.WaitGroup
	failed := make(chan error, len(listeners))
	servers := make([]*http.Server, len(listeners))
	for i, l := range listeners {
		s := &http.Server{
			Handler:           l.handler,
			BaseContext:       func(net.Listener) context.Context { return base },
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          zap.NewStdLog(e.cfg.Log),
		}
		servers[i] = s
		if l.Addr().Network() != "unix" { // anyone on this machine may connect, without the password
			l.Listener = crowd.Bound(s, l.Listener, maxConns)
		}
		running.Go(func() {
			if err := s.Serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serving at %s: %w", l.Addr(), err)
			}
		})
	}
	e.cfg.Log.Info("engine serves", zap.String("dir", e.cfg.Dir), zap.String("libchdb", e.lib.version()))
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	context.AfterFunc(stop, kill)
	stopped = true
	for _, s := range servers {
		if s.Shutdown(stop) != nil {
			stopped = false
		}
	}
	running.Wait()
	return stopped, err
}

// A listener is an address that serves a role.
type listener struct {
	net.Listener
	handler http.Handler
}

// listen opens the sockets. Those that a killed process left behind can be
// removed, because this process has the lock.
func (e *engine) listen() (listeners []listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
		}
	}()
	reader := newHandler(e, Reader)
	for _, l := range []listener{{handler: newHandler(e, Writer)}, {handler: reader}} {
		path := l.handler.(*handler).role.socket(e.cfg.Dir)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return listeners, fmt.Errorf("removing an old socket: %w", err)
		}
		if l.Listener, err = net.Listen("unix", path); err != nil {
			return listeners, fmt.Errorf("opening the socket: %w", err)
		}
		listeners = append(listeners, l)
	}
	if e.cfg.Listen != "" {
		port, err := net.Listen("tcp", e.cfg.Listen)
		if err != nil {
			return listeners, fmt.Errorf("opening the reader's port: %w", err)
		}
		listeners = append(listeners, listener{port, withPassword(e.cfg.Password, reader)})
	}
	return listeners, nil
}

// withPassword admits requests with the password, under any name.
func withPassword(password func() string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, ok := r.BasicAuth()
		if !ok {
			given = r.Header.Get("X-ClickHouse-Key")
		}
		// A fixed length, so that comparing takes constant time.
		want, got := sha256.Sum256([]byte(password())), sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="ClickHouse"`)
			writeException(w, exceptionf(codeAuthentication, "wrong password"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// lockDir makes the directory and locks it. The engine has its own lock, but
// names its holder only on standard error.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the engine's directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at the engine's directory: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("directory %q: others may enter it, and the sockets ask for no password: choose another directory, or run chmod 700 %[1]s if no other user needs it", dir)
	}
	f, err := os.OpenFile(filepath.Join(dir, "engine.lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("directory %q is another user's: run as that user, or choose another local.dir: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the engine's lock: %w", diskfull.WithRemedy(err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking directory %q: %w", dir, err)
		}
		pid := make([]byte, 20)
		n, _ := f.ReadAt(pid, 0) // for the message only
		return nil, fmt.Errorf("directory %q %w by process %s", dir, errInUse, strings.TrimSpace(string(pid[:n])))
	}
	// The lock works without it; it names the holder to other processes.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// inUse returns errInUse if a process has the directory now. Run reports
// other problems.
func inUse(dir string) error {
	lock, err := lockDir(dir)
	if err == nil {
		lock.Close()
	}
	if errors.Is(err, errInUse) {
		return err
	}
	return nil
}
