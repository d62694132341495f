package clients

import (
	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/tailscale/hujson"
)

// Wrap puts this program in front of the servers in the configurations at
// paths, or in the known ones that exist. The error is a cli.ExitError where
// the exit code is not cli.ExitUnclear.
func Wrap(cfg Config, paths []string) error { return wrapRewrite(cfg).run(paths) }

func wrapRewrite(cfg Config) *rewrite {
	r := &rewrite{cfg: cfg, verb: "wrap", done: "wrapped", edits: wrapEdits}
	r.concerns = func(s server) bool { return !s.Wrapped && (!s.Remote || cfg.Remote && s.refusal == "") }
	r.remark = func(s server) string { return notWrapped(s, cfg.Remote) }
	return r
}

// notWrapped returns why wrap leaves s alone, with or without --remote.
func notWrapped(s server, remote bool) string {
	switch {
	case s.Wrapped:
		return "is already wrapped"
	case s.Remote && remote:
		return "is not wrapped, and its calls are not recorded: " + s.refusal
	case s.Remote:
		return "is not wrapped: it is a remote server, reached by URL, and its calls are not recorded; use --remote"
	}
	return "is not wrapped: " + s.Problem
}

// wrapEdits puts the program at self in front of s. unwrapEdits must restore the
// entry from the result alone. So the old command is moved as it is written. An
// empty list of arguments, a missing one and one with elements get three
// different shapes.
func wrapEdits(data []byte, s server, self string) []udiff.Edit {
	if s.Remote {
		return wrapRemoteEdits(data, s, self)
	}
	command := string(data[s.command.StartOffset:s.command.EndOffset])
	edits := []udiff.Edit{{Start: s.command.StartOffset, End: s.command.EndOffset, New: string(hujson.String(self))}}
	switch args := s.elements(); {
	case s.args.Value == nil:
		at := s.command.EndOffset
		return append(edits, udiff.Edit{Start: at, End: at, New: newArgs(data, s, command)})
	case len(args) == 0:
		at := s.args.StartOffset + len("[")
		return append(edits, udiff.Edit{Start: at, End: at, New: ` "--", ` + command})
	default:
		at := args[0].StartOffset
		sep := "," + gap(data, at)
		return append(edits, udiff.Edit{Start: at, End: at, New: `"--"` + sep + command + sep})
	}
}

// newArgs is the member that a server without arguments gets after its command.
func newArgs(data []byte, s server, command string) string {
	return "," + gap(data, s.commandName) + `"args": ["--", ` + command + `]`
}
