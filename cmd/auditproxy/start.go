package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"auditproxy/cmd/internal/cli"
)

// The exit codes of a server that did not start, as a shell gives them. They
// and those of cli are this program's own: once the server has started, its
// code or signal replaces them.
const (
	exitForbidden = 126 // the command cannot be executed
	exitNotFound  = 127 // the command does not exist
)

// cannotStart explains in one line why the command name did not start, with the
// exit code that a shell would give.
func cannotStart(name string, err error) error {
	if errors.Is(err, exec.ErrDot) || errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return cli.ExitError{Code: exitNotFound, Err: fmt.Errorf("command not found: %s", whyNotFound(name, err))}
	}
	var lookup *exec.Error
	var start *fs.PathError
	switch {
	case errors.As(err, &lookup):
		err = lookup.Err
	case errors.As(err, &start):
		err = start.Err
	}
	return cli.ExitError{Code: exitForbidden, Err: fmt.Errorf("starting %q: %w", name, err)}
}

// whyNotFound checks for the usual mistakes in a command that was not found.
func whyNotFound(name string, err error) string {
	switch {
	case errors.Is(err, exec.ErrDot):
		return fmt.Sprintf("%q is only in the working directory; write its absolute path", name)
	case strings.Contains(name, "://"):
		return fmt.Sprintf("%q is a URL; only a server that is started as a command can be wrapped", name)
	case strings.HasPrefix(name, "~/"):
		return fmt.Sprintf("\"~\" in %q is not expanded; use an absolute path", name)
	case strings.Contains(name, " "):
		return fmt.Sprintf("there is no %q; if that is a command with arguments, write each of them as a string of its own", name)
	case strings.Contains(name, "=") && !strings.Contains(name, "/"):
		variable, _, _ := strings.Cut(name, "=") // whose value may be a secret
		return fmt.Sprintf("%q is a variable, not a command; variables belong under \"env\" in the client's configuration", variable)
	case name == "npx":
		return fmt.Sprintf("%q is not in $PATH; install Node.js with npm, or write the absolute path of npx, desktop clients have a short $PATH", name)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("%q is not in $PATH; write its absolute path, desktop clients have a short $PATH", name)
	}
	return fmt.Sprintf("there is no %q, or what it names in its first line is missing", name)
}
