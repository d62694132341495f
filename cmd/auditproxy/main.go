// Command auditproxy runs beside an agent: it wraps MCP servers that speak over
// standard input and output, and reads back what it recorded of their calls.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"auditproxy/cmd/internal/cli"
	"auditproxy/redact"
	"auditproxy/sink/spool"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// systemConfig is the administrator's file. No flag and no variable moves it:
// whoever starts this program must not be able to point it elsewhere.
const systemConfig = "/etc/auditproxy/config.yaml"

// The exit codes of this program itself. A wrapped server's own code or signal
// takes their place once the server has started.
const (
	exitFound     = 1   // what a command was asked to look for is there
	exitUnclear   = 2   // it could not tell, or was not understood
	exitConfig    = 78  // EX_CONFIG of sysexits.h: no start with this configuration
	exitForbidden = 126 // as a shell: the command cannot be executed
	exitNotFound  = 127 // as a shell: there is no such command
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: env, systemConfig: systemConfig}
	return a.run(ctx, args)
}

// An app is all that this program touches of the world outside.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string // as os.Environ
	systemConfig   string   // the administrator's file
	spoolFS        spool.FS // of the session that is written; nil: the real one

	// Owned by run, which fills them in before any command runs.
	keys  []cli.Key
	flags *pflag.FlagSet // those of the configuration

	redactor     *redact.Redactor // made by redactorOnce, see messages
	redactorOnce sync.Once
}

// run does what args say and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.keys = proxyKeys(a.defaultSpoolDir())
	root := newRootCmd(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		exit = exitError{exitUnclear, err}
	}
	if exit.err != nil {
		a.say("%v", exit.err)
	}
	return exit.code
}

// say writes a sentence of this program's own to standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, printable(a.clean("auditproxy: "+fmt.Sprintf(format, args...))))
}

// printable escapes what would steer a terminal in a message. What the message
// quotes is escaped already, so a backslash stays as it is.
func printable(message string) string {
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(cli.Escape(line), `\\`, `\`)
	}
	return strings.Join(lines, "\n")
}

// An exitError ends the program with a code. Its cause is printed unless nil.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// getenv is os.Getenv for the environment that a was given. Of a name that
// stands twice the last counts, as in os/exec.
func (a *app) getenv(name string) string {
	for _, kv := range slices.Backward(a.env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// defaultSpoolDir returns "" if there is no place for one.
func (a *app) defaultSpoolDir() string {
	dir, err := spool.DefaultDir(a.getenv, os.Getuid())
	if err != nil {
		return ""
	}
	return dir
}

// isTerminal reports whether stream, one of a's three, is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colours reports whether what is printed to w may have colours
// (https://no-color.org).
func (a *app) colours(w io.Writer) bool {
	return isTerminal(w) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// interruptible returns a context that ends with SIGINT or SIGTERM, for the
// commands that read; the proxy handles its signals itself.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
