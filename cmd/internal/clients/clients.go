// Package clients rewrites the configurations of MCP clients, so that their
// servers run through the proxy, and back.
//
// It finds configurations (clients.go, file.go) and reads their servers with the
// offsets of the parts that wrapping changes (server.go, toml.go, yaml.go,
// remoteentry.go). Wrap and Unwrap choose the edits (command.go, remote.go);
// rewrite.go shows the change, asks, and replaces the file (replace.go).
//
// The files, from the top: unwrap, wrap, rewrite, replace, remote, clients,
// self, file, yaml, toml, command, server, remoteentry, url, edit.
package clients

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
	config := pathIn(home, ".config")
	xdg := cmp.Or(getenv("XDG_CONFIG_HOME"), config)
	data, dot, system := xdg, xdg, "/etc" // data is where desktop programs keep theirs
	if goos == "darwin" {
		data, dot, system = pathIn(home, "Library/Application Support"), config, "/Library/Application Support"
	}
	files := locations{
		{"Claude Code", ".mcp.json"}, // of VS Code too
		{"Cursor", ".cursor/mcp.json"},
		{"VS Code", ".vscode/mcp.json"},
		{"Gemini CLI", ".gemini/settings.json"},
		{"Zed", ".zed/settings.json"},
		{"Codex", ".codex/config.toml"},
		{"opencode", "opencode.json"},
		{"opencode", "opencode.jsonc"},
		{"opencode", ".opencode/opencode.json"},
		{"opencode", ".opencode/opencode.jsonc"},
		{"Amp", ".amp/settings.json"},
		{"Amp", ".amp/settings.jsonc"},
		{"Roo Code", ".roo/mcp.json"},
		{"Kiro", ".kiro/settings/mcp.json"},
		{"Amazon Q", ".amazonq/mcp.json"},
		{"Antigravity", ".agents/mcp_config.json"},
		{"Junie", ".junie/mcp/mcp.json"},
		{"Qwen Code", ".qwen/settings.json"},
		{"Qwen Code", ".qwen/settings.local.json"},
		{"Crush", "crush.json"},
		{"Crush", ".crush.json"},
		{"Crush", ".crush/crush.json"},
		{"Factory", ".factory/mcp.json"},
		{"Kilo Code", ".kilo/mcp.json"},
		{"Kilo Code", ".kilocode/mcp.json"},
		{"Kilo Code", "kilo.json"},
		{"Kilo Code", "kilo.jsonc"},
	}
	files.add("Claude Code", getenv("CLAUDE_CONFIG_DIR"), ".claude.json")
	files.add("Claude Code", home, ".claude.json")
	files.add("Cursor", home, ".cursor/mcp.json")
	files.add("Gemini CLI", home, ".gemini/settings.json")
	files.add("Windsurf", home, ".codeium/windsurf/mcp_config.json")
	files.add("Zed", dot, "zed/settings.json")
	files.add("GitHub Copilot", getenv("COPILOT_HOME"), "mcp-config.json") // in VS Code and as a command
	files.add("GitHub Copilot", home, ".copilot/mcp-config.json")
	for _, dir := range []string{getenv("CODEX_HOME"), pathIn(home, ".codex")} {
		files.add("Codex", dir, "config.toml")
		files.addAll("Codex", dir, ".config.toml") // of profiles
	}
	files.add("opencode", xdg, "opencode/config.json", "opencode/opencode.json", "opencode/opencode.jsonc")
	files.add("opencode", home, ".opencode/opencode.json", ".opencode/opencode.jsonc")
	files.add("opencode", getenv("OPENCODE_CONFIG_DIR"), "opencode.json", "opencode.jsonc")
	files.add("opencode", getenv("OPENCODE_CONFIG"), ".")
	files.add("Amp", config, "amp/settings.json", "amp/settings.jsonc")
	files.add("Amp", getenv("AMP_SETTINGS_FILE"), ".")
	files.add("Kiro", home, ".kiro/settings/mcp.json")
	files.addAll("Kiro", ".kiro/agents", ".json")
	files.addAll("Kiro", pathIn(home, ".kiro/agents"), ".json")
	files.add("Amazon Q", home, ".aws/amazonq/mcp.json")
	files.addAll("Amazon Q", ".amazonq/cli-agents", ".json")
	files.addAll("Amazon Q", pathIn(home, ".aws/amazonq/cli-agents"), ".json")
	files.addAll("Amazon Q", pathIn(home, ".aws/amazonq/agents"), ".json") // of its plug-ins for editors
	files.add("Antigravity", home, ".gemini/config/mcp_config.json", ".gemini/antigravity/mcp_config.json", ".gemini/antigravity-cli/mcp_config.json")
	files.add("Junie", home, ".junie/mcp/mcp.json")
	files.add("Qwen Code", home, ".qwen/settings.json")
	files.add("Crush", xdg, "crush/crush.json")
	files.add("Crush", home, ".local/share/crush/crush.json")
	files.add("Factory", home, ".factory/mcp.json")
	files.add("Kilo Code", home, ".kilocode/mcp.json")
	files.add("Kilo Code", xdg, "kilo/kilo.json", "kilo/kilo.jsonc")
	files.add("LM Studio", home, ".lmstudio/mcp.json", ".cache/lm-studio/mcp.json")
	files.add("goose", dot, "goose/config.yaml")
	files.add("Continue", home, ".continue/config.yaml")
	for _, dir := range []string{".continue/mcpServers", pathIn(home, ".continue/mcpServers")} {
		files.addAll("Continue", dir, ".yaml", ".yml", ".json")
	}
	files.add("Cline", getenv("CLINE_MCP_SETTINGS_PATH"), ".")
	files.add("Cline", home, ".cline/data/settings/cline_mcp_settings.json")
	for _, editor := range []string{"Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf"} {
		storage := pathIn(data, editor+"/User/globalStorage")
		files.add("Cline", storage, "saoudrizwan.claude-dev/settings/cline_mcp_settings.json")
		files.add("Kilo Code", storage, "kilocode.kilo-code/settings/mcp_settings.json")
		files.add("Roo Code", storage, "rooveterinaryinc.roo-cline/settings/mcp_settings.json")
	}
	files.add("Claude Desktop", data, "Claude/claude_desktop_config.json")
	for _, c := range []location{{"VS Code", "Code"}, {"VS Code Insiders", "Code - Insiders"}} {
		user := pathIn(data, c.path+"/User")
		files.add(c.client, user, "mcp.json")
		for _, profile := range names(pathIn(user, "profiles")) {
			files.add(c.client, user, filepath.Join("profiles", profile, "mcp.json"))
		}
	}
	if goos == "darwin" {
		files.add("Claude Code", system, "ClaudeCode/managed-mcp.json")
	} else {
		files.add("Claude Code", system, "claude-code/managed-mcp.json")
	}
	files.add("Codex", "/etc/codex", "config.toml", "managed_config.toml")
	files.add("Crush", "/etc/crush", "crush.json")
	files.add("opencode", system, "opencode/opencode.json", "opencode/opencode.jsonc")
	files.add("Amp", system, "ampcode/managed-settings.json")
	return files
}

// locations are where clients keep their configurations.
type locations []location

func (l *locations) add(client, dir string, names ...string) {
	for _, name := range names {
		if path := pathIn(dir, name); path != "" {
			*l = append(*l, location{client, path})
		}
	}
}

// addAll adds the files in a directory with one of the endings.
func (l *locations) addAll(client, dir string, endings ...string) {
	for _, name := range names(dir) {
		if slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(name, ending) }) {
			l.add(client, dir, name)
		}
	}
}

// pathIn returns a name in a directory, "" if there is none.
func pathIn(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// names returns the names in a directory, which mostly is not there.
func names(dir string) (all []string) {
	if dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
