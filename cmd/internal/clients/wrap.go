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

func wrapEdits(data []byte, s server, self string) []udiff.Edit {
	if s.Remote {
		return wrapRemoteEdits(data, s, self)
	}
	return wrapCommand(data, s, self)
}
