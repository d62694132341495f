package cli

import (
	"path/filepath"
	"slices"
	"strings"
)

// An environment maps the names of a list of NAME=value to values.
type environment struct {
	names  []string // in the order of the list, each once
	values map[string]string
}

// newEnvironment uses the last of two equal names, as os/exec does.
func newEnvironment(list []string) environment {
	e := environment{values: make(map[string]string, len(list))}
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		if _, twice := e.values[name]; !twice {
			e.names = append(e.names, name)
		}
		e.values[name] = value
	}
	return e
}

func (e environment) home() string { return e.values["HOME"] }

// configHome returns the directory of the user's configuration, "" if it is
// unknown. A relative one is ignored (XDG Base Directory Specification): it would
// be relative to the working directory, which the agent chooses.
func (e environment) configHome() string {
	if dir := e.values["XDG_CONFIG_HOME"]; filepath.IsAbs(dir) {
		return dir
	}
	if home := e.home(); filepath.IsAbs(home) {
		return filepath.Join(home, ".config")
	}
	return ""
}

// ConfigHome returns the directory of the configuration of the user with that
// environment, "" if it is unknown.
func ConfigHome(list []string) string { return newEnvironment(list).configHome() }

// Getenv is os.Getenv for a list such as os.Environ returns. The last of
// several equal names wins, as in os/exec.
func Getenv(list []string, name string) string {
	for _, kv := range slices.Backward(list) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// StateDir returns where a program keeps its data: the first directory of
// $STATE_DIRECTORY, as systemd sets it, otherwise UserStateDir.
func StateDir(program string, env []string, uid int) string {
	// systemd.exec(5): several directories are separated by colons.
	if dir, _, _ := strings.Cut(Getenv(env, "STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir
	}
	return UserStateDir(program, env, uid)
}

// UserStateDir returns where a program of a user keeps its data, "" if it is
// unknown. As ConfigHome it ignores a variable that is not absolute.
func UserStateDir(program string, env []string, uid int) string {
	state, home := Getenv(env, "XDG_STATE_HOME"), Getenv(env, "HOME")
	switch {
	case uid == 0:
		return filepath.Join("/var/lib", program)
	case filepath.IsAbs(state):
		return filepath.Join(state, program)
	case filepath.IsAbs(home):
		return filepath.Join(home, ".local", "state", program)
	}
	return ""
}
