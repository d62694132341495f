package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/cli/clitest"

	"rsc.io/script"
	"rsc.io/script/scripttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain makes the test binary double as the program when it is called by
// the program's name, so that scripts run exactly this code, with -race and
// -cover applied. Only there can the administrator's file be moved and the
// spool's file system fail. By another name it is a server to wrap.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "auditproxy":
		a := newApp(streams{os.Stdin, os.Stdout, os.Stderr}, os.Environ())
		a.systemConfig, a.systemUID, a.spoolFS = os.Getenv("SYSTEM_CONFIG"), os.Getuid(), faultFSFromEnv()
		os.Exit(a.run(context.Background(), os.Args[1:]))
	case "journaling-server":
		os.Exit(journalingServer(os.Args[1:]))
	case "scripted-server":
		os.Exit(scriptedServer(os.Args[1:]))
	}
	if signal.Ignored(syscall.SIGHUP) {
		// Under nohup; a program that is started by one that catches a signal has
		// the default for it.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(clitest.Run(m))
}

// program returns a path at which the test binary is this program.
func program(t *testing.T) string {
	t.Helper()
	return clitest.Program(t, "auditproxy")
}

func TestScript(t *testing.T) {
	exe := program(t)
	engine := &script.Engine{Cmds: scripttest.DefaultCmds(), Conds: scripttest.DefaultConds(), Quiet: !testing.Verbose()}
	engine.Cmds["exec"] = script.Exec(nil, ceiling) // the default allows 100 ms for the output, too few for a busy machine
	engine.Cmds["auditproxy"] = script.Program(exe, nil, ceiling)
	engine.Cmds["feed"] = feed(exe)
	engine.Cmds["exits"] = exits(exe)
	// Nothing is inherited from the user who runs the test; a script sets its
	// HOME where it needs one.
	env := []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "NO_COLOR=1"}
	scripttest.Test(t, t.Context(), engine, env, "testdata/script/*.txt")
}

// feed runs a program with a file as its standard input. rsc.io/script runs
// every program with none, and standard input is half of a proxy's traffic.
func feed(exe string) script.Cmd {
	return script.Command(script.CmdUsage{
		Summary: "run a program with a file as its standard input",
		Args:    "file program [args...]",
		Async:   true,
	}, func(s *script.State, args ...string) (script.WaitFunc, error) {
		if len(args) < 2 {
			return nil, script.ErrUsage
		}
		in, err := os.ReadFile(s.Path(args[0]))
		if err != nil {
			return nil, err
		}
		return start(s, in, exe, args[1:])
	})
}

// exits runs a program and fails unless it ends with this exit code.
func exits(exe string) script.Cmd {
	return script.Command(script.CmdUsage{
		Summary: "run a program that ends with an exit code",
		Args:    "code program [args...]",
	}, func(s *script.State, args ...string) (script.WaitFunc, error) {
		if len(args) < 2 {
			return nil, script.ErrUsage
		}
		want, err := strconv.Atoi(args[0])
		if err != nil {
			return nil, err
		}
		wait, err := start(s, nil, exe, args[1:])
		if err != nil {
			return nil, err
		}
		return func(s *script.State) (string, string, error) {
			stdout, stderr, err := wait(s)
			var code int
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				return stdout, stderr, err
			}
			if code != want {
				return stdout, stderr, fmt.Errorf("exit code %d, want %d", code, want)
			}
			return stdout, stderr, nil
		}, nil
	})
}

// start runs args[0], which may be this program, with in as its input.
func start(s *script.State, in []byte, exe string, args []string) (script.WaitFunc, error) {
	name := args[0]
	if name == "auditproxy" {
		name = exe
	}
	var stdout, stderr strings.Builder
	c := exec.CommandContext(s.Context(), name, args[1:]...)
	c.Dir, c.Env = s.Getwd(), s.Environ()
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &stdout, &stderr
	c.WaitDelay = ceiling
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func(*script.State) (string, string, error) {
		err := c.Wait()
		return stdout.String(), stderr.String(), err
	}, nil
}
