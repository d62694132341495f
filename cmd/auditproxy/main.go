// Command auditproxy runs beside an agent: it wraps MCP servers that speak over
// standard input and output, and reads back what it recorded of their calls.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/redact"
	"auditproxy/sink/spool"

	"github.com/spf13/pflag"
)

// systemConfig is the administrator's file. No flag and no variable moves it:
// whoever starts this program must not be able to point it elsewhere.
const systemConfig = "/etc/auditproxy/config.yaml"

// The exit codes of a server that did not start, as a shell gives them. They
// and those of cli are this program's own: once the server has started, its
// code or signal takes their place.
const (
	exitForbidden = 126 // the command cannot be executed
	exitNotFound  = 127 // there is no such command
)

func main() {
	a := newApp(streams{os.Stdin, os.Stdout, os.Stderr}, os.Environ())
	a.systemConfig = systemConfig
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// streams are those of the process, through which a wrapped server is spoken to.
type streams struct{ in, out, err *os.File }

func newApp(std streams, env []string) *app {
	return &app{std: std, stdin: std.in, stdout: std.out, stderr: std.err, env: env}
}

// An app is all that this program touches of the world outside.
type app struct {
	std            streams   // of the client and the server; only to wrap a server
	stdin          io.Reader // of the other commands, as the next two
	stdout, stderr io.Writer
	env            []string // as os.Environ
	systemConfig   string   // the administrator's file
	systemUID      int      // who may own it beside root; not 0 in tests alone
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
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return cli.Execute(ctx, root, args, a.say)
}

// say writes a message of this program's own to standard error.
func (a *app) say(message error) {
	fmt.Fprintln(a.stderr, terminal.EscapeMessage(a.clean("auditproxy: "+message.Error())))
}

func (a *app) getenv(name string) string { return cli.Getenv(a.env, name) }

// defaultSpoolDir returns "" if there is no place for one.
func (a *app) defaultSpoolDir() string {
	dir, err := spool.DefaultDir(a.getenv, os.Getuid())
	if err != nil {
		return ""
	}
	return dir
}

// colours reports whether what is printed to w may have colours
// (https://no-color.org).
func (a *app) colours(w io.Writer) bool {
	return terminal.IsTerminal(w) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}
