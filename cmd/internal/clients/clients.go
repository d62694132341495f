// Package clients rewrites the configurations of MCP clients, so that their
// servers run through the proxy, and back.
//
// It finds configurations (clients.go, file.go) and reads their servers with the
// offsets of the parts that wrapping changes (server.go, remoteentry.go). Wrap
// and Unwrap choose the edits (wrap.go, unwrap.go, remote.go); rewrite.go shows
// the change, asks, and replaces the file (replace.go).
//
// The files, from the top: unwrap, wrap, rewrite, replace, remote, clients,
// self, file, server, remoteentry, url, edit.
package clients

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

// A Status is what a client's configuration runs.
type Status struct {
	Client  string   // "Claude Code", "Cursor", …; empty for a file named by its path
	Path    string   // of the file
	Err     error    // why it could not be read; nil if it could
	Servers []Server // in the order of the file
}

// Scan reads the configurations of the clients that are installed.
func Scan(getenv func(string) string) []Status {
	self, _ := selfPath() // without it wraps are still known by their name
	var all []Status
	for _, f := range existingConfigs(getenv) {
		status := Status{Client: f.client, Path: f.path}
		var c config
		if c, status.Err = readConfig(f.path, self); status.Err == nil {
			for _, s := range c.servers {
				status.Servers = append(status.Servers, s.Server)
			}
		}
		all = append(all, status)
	}
	return all
}

// A location is where a client keeps its configuration.
type location struct{ client, path string }

// existingConfigs returns the known configurations that exist, each once: in
// the home directory .cursor/mcp.json is also the user's own. An unreadable
// file counts as existing, so that reading it reports why. A file with several
// names counts under each, because a changed one has only one name.
func existingConfigs(getenv func(string) string) []location {
	var files []location
	var seen []fs.FileInfo
	for _, f := range knownConfigs(runtime.GOOS, getenv) {
		info, err := os.Stat(f.path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err == nil && linkCount(info) == 1 {
			if slices.ContainsFunc(seen, func(o fs.FileInfo) bool { return os.SameFile(o, info) }) {
				continue
			}
			seen = append(seen, info)
		}
		files = append(files, f)
	}
	return files
}

// knownConfigs lists where clients keep their configurations: in the working
// directory, which is the project's, in the user's directories on goos, and in the
// administrator's.
func knownConfigs(goos string, getenv func(string) string) []location {
	home := getenv("HOME")
	var data string // where desktop programs keep their data
	managed := "/etc/claude-code/managed-mcp.json"
	switch goos {
	case "windows":
		home, data = getenv("USERPROFILE"), getenv("APPDATA")
	case "darwin":
		data, managed = filepath.Join(home, "Library", "Application Support"), "/Library/Application Support/ClaudeCode/managed-mcp.json"
	default:
		if data = getenv("XDG_CONFIG_HOME"); data == "" && home != "" {
			data = filepath.Join(home, ".config")
		}
	}
	files := []location{
		{"Claude Code", ".mcp.json"},
		{"Cursor", filepath.Join(".cursor", "mcp.json")},
		{"VS Code", filepath.Join(".vscode", "mcp.json")},
	}
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		files = append(files, location{"Claude Code", filepath.Join(dir, ".claude.json")})
	}
	if home != "" {
		files = append(files,
			location{"Claude Code", filepath.Join(home, ".claude.json")},
			location{"Cursor", filepath.Join(home, ".cursor", "mcp.json")})
	}
	if data != "" {
		files = append(files, location{"Claude Desktop", filepath.Join(data, "Claude", "claude_desktop_config.json")})
		for _, c := range []location{{"VS Code", "Code"}, {"VS Code Insiders", "Code - Insiders"}} {
			user := filepath.Join(data, c.path, "User")
			files = append(files, location{c.client, filepath.Join(user, "mcp.json")})
			profiles, _ := os.ReadDir(filepath.Join(user, "profiles")) // mostly there are none
			for _, p := range profiles {
				files = append(files, location{c.client, filepath.Join(user, "profiles", p.Name(), "mcp.json")})
			}
		}
	}
	return append(files, location{"Claude Code", managed})
}
