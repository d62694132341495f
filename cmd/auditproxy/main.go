// Command auditproxy runs next to an agent: it wraps MCP servers that use
// standard input and output, and prints what it recorded of their calls.
//
// The files, from the top: main, run, proxy, tidy, process_linux,
// process_portable, wrap, log, show, verify, prove, evidence, digest, recover,
// ship, doctor, doctorpolicy, doctorapproval, doctorserver, kafka, start,
// diagnosis, report, approvals, policycmd, policycheck, policyeval, policyreplay, policyinit,
// policy, commandline, config, approval, checker, app.
package main

import (
	"context"
	"os"

	"auditproxy/cmd/internal/cli"
)

// systemConfig is the administrator's file. No flag or variable moves it: the
// user who starts this program must not be able to replace it.
const systemConfig = "/etc/auditproxy/config.yaml"

func main() {
	a := newApp(streams{os.Stdin, os.Stdout, os.Stderr}, os.Environ())
	a.systemConfig = systemConfig
	code := a.run(context.Background(), os.Args[1:])
	os.Stdout.Close() // a read that hangs in the kernel may keep the process; its client sees the end
	os.Exit(code)
}

// run executes args and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.keys = proxyKeys(cli.StateDir("auditproxy", a.env, os.Getuid()))
	root := newRootCmd(a)
	cli.CompleteFlags(root, a.keys, args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return cli.Execute(ctx, root, args, a.say)
}
