package review

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"auditproxy/internal/crowd"

	"go.uber.org/zap"
)

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = time.Minute // also for each part of an export
	idleTimeout   = 2 * time.Minute
	endTimeout    = 3 * time.Second // for answers in progress when Serve ends

	maxHeader = 32 << 10 // bytes
	maxConns  = 128      // leaves files to the collector in the same process
)

// unixPrefix starts an address that is the path of a Unix socket.
const unixPrefix = "unix:"

// Listen opens a host:port or "unix:" and the path of a socket, to which the
// owner and the group may connect.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, unixPrefix)
	if !unix {
		return new(net.ListenConfig).Listen(ctx, "tcp", addr)
	}
	return ListenUnix(ctx, path, 0o660)
}

// ListenUnix opens a Unix socket with a mode. It replaces only a socket that
// a killed process left behind.
func ListenUnix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("listening at %q: another process does", path)
		}
		// Two processes that start concurrently may both get here: the later
		// one serves.
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("removing an old socket: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// Until here only the owner may connect, with any usual umask.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("setting who may connect: %w", err), l.Close())
	}
	return l, nil
}

// Serve serves h at l, with TLS unless c is nil, until ctx ends. It closes l.
func Serve(ctx context.Context, l net.Listener, c *tls.Config, h http.Handler, log *zap.Logger) error {
	server := &http.Server{
		Handler:           h,
		TLSConfig:         c,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:          zap.NewStdLog(log),
	}
	l = crowd.Bound(server, l, maxConns)
	ended := make(chan error, 1)
	go func() {
		if c != nil {
			ended <- server.ServeTLS(l, "", "")
		} else {
			ended <- server.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serving at %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if server.Shutdown(end) != nil {
		server.Close() // clients that are still reading see the answer break off
	}
	<-ended
	return nil
}
