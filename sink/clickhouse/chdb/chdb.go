// Package chdb serves ClickHouse's engine on one machine: libchdb behind
// ClickHouse's HTTP interface, in its own process.
//
// Run is that process. It serves two Unix sockets in its directory: clients
// of the writer's may do everything, those of the reader's may only read.
// Supervise starts that process and restarts it; Dialer reaches it, for
// clickhouse-go's Options.DialContext with the HTTP protocol.
//
// The engine has no users, and readonly = 1 alone does not restrict a reader:
// a subquery may lift it with SETTINGS, and the function file() reads any
// file. So statement.go checks a reader's statement in the engine's own
// spelling, and runs that spelling.
//
// The files, from the top: supervise, run, run_other, handler, statement,
// engine, answer, request, conn, library, chdb, find, native, exception.
package chdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"go.uber.org/zap"
)

// Version is the oldest supported libchdb.
const Version = "26.7.3"

// A Role is the rights of a client. The zero value has the fewest.
type Role uint8

// The roles.
const (
	Reader Role = iota
	Writer
)

// socket returns the path of the socket for r.
func (r Role) socket(dir string) string {
	if r == Writer {
		return filepath.Join(dir, "writer.sock")
	}
	return filepath.Join(dir, "reader.sock")
}

// Dialer returns a function that connects to the engine of dir for any
// address.
func Dialer(dir string, r Role) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", r.socket(dir))
	}
}

// DataDir is where in Config.Dir the engine has its data, once it has run.
const DataDir = "data"

// A Config configures Run.
type Config struct {
	Dir      string // of the data, the sockets and the lock; made if missing. Required, absolute.
	Library  string // path of libchdb; "": searched, see findLibrary
	Memory   int64  // bytes at which the engine refuses queries; 0: 1 GiB. Its code needs some 200 MiB more.
	Database string // the reader's, if it names none; "": audit

	Listen   string        // loopback host:port at which the reader's interface is served too; "": nowhere
	Password func() string // of Listen at the time of a request, for any user name; required with it

	Log *zap.Logger // nil: none
}

const (
	// MinMemory is the least Config.Memory.
	MinMemory = 256 << 20

	defaultMemory = 1 << 30
	maxSocketPath = 107 // sockaddr_un of Linux, without its NUL; 103 elsewhere
)

// withDefaults returns c with defaults, or all its problems.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	if !filepath.IsAbs(c.Dir) {
		errs = append(errs, fmt.Errorf("directory %q: want an absolute path", c.Dir))
	} else if n := len(Writer.socket(c.Dir)); n > maxSocketPath {
		errs = append(errs, fmt.Errorf("directory %q: its sockets would have paths of %d bytes, want at most %d", c.Dir, n, maxSocketPath))
	}
	switch {
	case c.Memory == 0:
		c.Memory = defaultMemory
	case c.Memory < MinMemory:
		errs = append(errs, fmt.Errorf("memory is %d bytes, want at least %d", c.Memory, MinMemory))
	}
	if c.Listen != "" {
		host, _, err := net.SplitHostPort(c.Listen)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			errs = append(errs, fmt.Errorf("listening at %q: want host:port of this machine's loopback", c.Listen))
		}
		if c.Password == nil || c.Password() == "" {
			errs = append(errs, errors.New("listening at a port needs a password"))
		}
	}
	if c.Database == "" {
		c.Database = "audit"
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, errors.Join(errs...)
}

// Check returns the problems that keep Run from starting and can be found
// without starting: those of c, or a missing library.
func (c Config) Check() error {
	if _, err := c.withDefaults(); err != nil {
		return err
	}
	_, err := findLibrary(c.Library)
	return err
}

// errInUse means that another process has the directory.
var errInUse = errors.New("is in use")

// The exit codes of a process that runs the engine (sysexits.h).
const (
	ExitConfig = 78 // EX_CONFIG: starting it again would not help
	ExitInUse  = 75 // EX_TEMPFAIL: another process has the directory
	ExitFailed = 1
)

// A setupError would recur at every start.
type setupError struct{ error }

func (e setupError) Unwrap() error { return e.error }

// ExitCode returns the exit code of a process whose Run returned err.
func ExitCode(err error) int {
	var setup setupError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInUse):
		return ExitInUse
	case errors.As(err, &setup):
		return ExitConfig
	default:
		return ExitFailed
	}
}
