package clients

import (
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// Wrap puts this program in front of the servers in the configurations at
// paths, or in the known ones that exist. The error is a cli.ExitError where
// the exit code is not cli.ExitUnclear.
func Wrap(cfg Config, paths []string) error { return wrapRewrite(cfg).run(paths) }

func wrapRewrite(cfg Config) *rewrite {
	r := &rewrite{cfg: cfg, verb: "wrap", done: "wrapped", edits: wrapEdits}
	r.concerns = func(s server) bool { return !s.Wrapped && (!s.Remote || cfg.Remote && s.refusal == "") }
	r.remark = func(s server) string { return notWrapped(s, cfg) }
	r.warning = func(s server) string { return warnings(s, cfg.Getenv) }
	return r
}

// notWrapped returns why wrap leaves s alone, with or without --remote.
func notWrapped(s server, cfg Config) string {
	switch {
	case s.Wrapped && cfg.Check != nil:
		return strings.Join(append([]string{"is already wrapped"}, cfg.Check(s.Server)...), ", but ")
	case s.Wrapped:
		return "is already wrapped"
	case s.Remote && s.refusal != "":
		return "is not wrapped, and its calls are not recorded: " + s.refusal
	case s.Remote:
		return "is not wrapped: it is a remote server, reached by URL, and its calls are not recorded; use --remote"
	}
	return "is not wrapped: " + s.Problem
}

// PlaceVariables choose the directory of the records if spool.dir is not set: the
// first one that is set does.
var PlaceVariables = []string{"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"}

// warnings returns why calls of s may not be where its user looks, or "".
func warnings(s server, getenv func(string) string) string {
	warning := moved(s, getenv)
	if s.Unsure == "" {
		return warning
	}
	if warning != "" {
		warning += ", and "
	}
	return warning + "has " + s.Unsure + ": look whether its calls are recorded"
}

// moved returns a warning if the variables of s move its records away from those
// of this user's other servers.
func moved(s server, getenv func(string) string) string {
	var names []string
	for _, kv := range s.Env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == spoolVariable && value != "":
			return ""
		case slices.Contains(PlaceVariables, name) && value != getenv(name):
			names = append(names, name)
		}
	}
	has := "has " + strings.Join(names, " and ") + ` in its "env"`
	if len(names) == 0 {
		for _, name := range append([]string{spoolVariable}, PlaceVariables...) {
			if s.Passed != nil && !slices.Contains(s.Passed, name) && getenv(name) != "" {
				names = append(names, name)
			}
		}
		has = "does not get " + strings.Join(names, " and ") + " from its client"
	}
	if len(names) == 0 {
		return ""
	}
	return has + `, which can move its records to another directory, where auditproxy log does not look: add ` + spoolVariable + ` to its "env"`
}

// spoolVariable chooses the directory of the records.
const spoolVariable = "AUDITPROXY_SPOOL_DIR"

// wrapEdits puts the program at self in front of s. unwrapEdits must restore the
// entry from the result alone. So the old command is moved as it is written. An
// empty list of arguments, a missing one and one with elements get three
// different shapes.
func wrapEdits(data []byte, s server, self string) []udiff.Edit {
	if s.Remote {
		return wrapRemoteEdits(data, s, self)
	}
	if s.joined {
		at := s.command.StartOffset
		sep := "," + gap(data, at)
		return []udiff.Edit{{Start: at, End: at, New: s.quote(self) + sep + `"--"` + sep}}
	}
	command := string(data[s.command.StartOffset:s.command.EndOffset])
	edits := []udiff.Edit{{Start: s.command.StartOffset, End: s.command.EndOffset, New: s.quote(self)}}
	switch args := s.elements(); {
	case s.args.Value == nil:
		at := s.newList.at
		return append(edits, udiff.Edit{Start: at, End: at, New: newArgs(s, command)})
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
func newArgs(s server, command string) string { return s.newList.text + `["--", ` + command + `]` }
