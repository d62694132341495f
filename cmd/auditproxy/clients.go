package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A clientStatus says what a client's configuration runs.
type clientStatus struct {
	Client  string         // "Claude Code", "Cursor", …; empty for a file named by its path
	Path    string         // of the file
	Err     error          // why it could not be read; nil if it could
	Servers []serverStatus // in the order of the file
}

// A serverStatus says whether a server is recorded. All of it is what the file
// says, and an agent's repository can bring such a file along.
type serverStatus struct {
	Name    string
	Project string // the project directory it is for; empty unless the file has projects
	Wrapped bool
	Remote  bool   // it is reached by URL; if Wrapped, through mcp-remote
	Problem string // why it can be neither wrapped nor unwrapped; empty if it can
}

// label names the server in a message.
func (s serverStatus) label() string {
	if s.Project == "" {
		return fmt.Sprintf("%q", s.Name)
	}
	return fmt.Sprintf("%q of project %q", s.Name, s.Project)
}

// scanClients reads the configurations of the clients that are installed.
func scanClients(a *app) []clientStatus {
	self, _ := selfPath() // without it wraps are still known by their name
	var all []clientStatus
	for _, f := range existingConfigs(a) {
		status := clientStatus{Client: f.client, Path: f.path}
		var c clientConfig
		if c, status.Err = readClientConfig(f.path, self); status.Err == nil {
			for _, s := range c.servers {
				status.Servers = append(status.Servers, s.serverStatus)
			}
		}
		all = append(all, status)
	}
	return all
}

// A clientFile is where a client keeps its configuration.
type clientFile struct{ client, path string }

// existingConfigs returns those of the known configurations that exist, each
// once: in the home directory .cursor/mcp.json is also the user's own. A file
// that cannot be looked at counts as existing, so that reading it says why.
func existingConfigs(a *app) []clientFile {
	var files []clientFile
	var seen []fs.FileInfo
	for _, f := range knownConfigs(runtime.GOOS, a.getenv) {
		info, err := os.Stat(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
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
// directory, which is the project's, and in the user's directories on goos.
func knownConfigs(goos string, getenv func(string) string) []clientFile {
	home := getenv("HOME")
	var data string // where desktop programs keep their data
	switch goos {
	case "windows":
		home, data = getenv("USERPROFILE"), getenv("APPDATA")
	case "darwin":
		data = filepath.Join(home, "Library", "Application Support")
	default:
		if data = getenv("XDG_CONFIG_HOME"); data == "" && home != "" {
			data = filepath.Join(home, ".config")
		}
	}
	files := []clientFile{
		{"Claude Code", ".mcp.json"},
		{"Cursor", filepath.Join(".cursor", "mcp.json")},
		{"VS Code", filepath.Join(".vscode", "mcp.json")},
	}
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		files = append(files, clientFile{"Claude Code", filepath.Join(dir, ".claude.json")})
	}
	if home != "" {
		files = append(files,
			clientFile{"Claude Code", filepath.Join(home, ".claude.json")},
			clientFile{"Cursor", filepath.Join(home, ".cursor", "mcp.json")})
	}
	if data != "" {
		files = append(files,
			clientFile{"Claude Desktop", filepath.Join(data, "Claude", "claude_desktop_config.json")},
			clientFile{"VS Code", filepath.Join(data, "Code", "User", "mcp.json")},
			clientFile{"VS Code Insiders", filepath.Join(data, "Code - Insiders", "User", "mcp.json")})
	}
	return files
}

// A clientConfig is one configuration as it was read.
type clientConfig struct {
	path    string // as the user knows it
	target  string // what it leads to: links are followed, so that a write replaces no link
	info    fs.FileInfo
	data    []byte
	servers []clientServer // in the order of the file
}

// readClientConfig reads the configuration at path. A server that runs the
// program at self counts as wrapped, whatever that program is called.
func readClientConfig(path, self string) (clientConfig, error) {
	c := clientConfig{path: path}
	var err error
	if c.target, err = filepath.EvalSymlinks(path); errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("there is no file %q; name the configuration of an MCP client, and a server in it with --server", path)
	} else if err != nil {
		return c, fmt.Errorf("reading client configuration: %w", err)
	}
	if c.info, err = os.Stat(c.target); err != nil {
		return c, fmt.Errorf("reading client configuration: %w", err)
	}
	if !c.info.Mode().IsRegular() {
		return c, fmt.Errorf("reading client configuration %q: not a regular file", path)
	}
	if c.data, err = os.ReadFile(c.target); err != nil {
		return c, fmt.Errorf("reading client configuration: %w", err)
	}
	if c.servers, err = parseServers(c.data, self); err != nil {
		return c, fmt.Errorf("reading client configuration %q: %w", path, err)
	}
	return c, nil
}

// A clientServer is one server of a configuration, with the places of what
// wrapping changes. Offsets count from the start of the file.
type clientServer struct {
	serverStatus
	commandName int          // where the member "command" begins
	command     hujson.Value // a string
	args        hujson.Value // a list, or nothing if the server has none
	dashes      int          // index in args of the "--" before the server's command, if Wrapped
	entry       remoteEntry
	refusal     string // why wrap --remote leaves it alone, if Remote
}

// elements returns the server's arguments as they stand in the file.
func (s clientServer) elements() []hujson.Value {
	if list, ok := s.args.Value.(*hujson.Array); ok {
		return list.Elements
	}
	return nil
}

// parseServers finds the servers in a configuration. It accepts what the most
// lenient of the clients accepts: comments, trailing commas, a byte order mark.
func parseServers(data []byte, self string) ([]clientServer, error) {
	src := append(bytes.Clone(data), '\n') // a comment may end the file
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		copy(src, "   ") // of the same length, so that offsets stay right
	}
	v, err := hujson.Parse(src)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	var servers []clientServer
	add := func(project string, list *hujson.Object) {
		for _, m := range list.Members {
			servers = append(servers, newClientServer(project, m, self))
		}
	}
	for _, m := range root.Members {
		obj, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		switch text(m.Name) {
		case "mcpServers", "servers":
			add("", obj)
		case "mcp": // in the settings of older VS Code
			for list := range objects(obj, "servers") {
				add("", list)
			}
		case "projects":
			for _, p := range obj.Members {
				if project, ok := p.Value.Value.(*hujson.Object); ok {
					for list := range objects(project, "mcpServers") {
						add(text(p.Name), list)
					}
				}
			}
		}
	}
	return servers, nil
}

// objects yields the objects that stand in obj under name: which of several
// equal names counts is the client's choice.
func objects(obj *hujson.Object, name string) iter.Seq[*hujson.Object] {
	return func(yield func(*hujson.Object) bool) {
		for _, m := range obj.Members {
			if list, ok := m.Value.Value.(*hujson.Object); ok && text(m.Name) == name && !yield(list) {
				return
			}
		}
	}
}

func newClientServer(project string, m hujson.ObjectMember, self string) clientServer {
	s := clientServer{serverStatus: serverStatus{Name: text(m.Name), Project: project}}
	entry, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		s.Problem = "it is not an object"
		return s
	}
	s.entry = newRemoteEntry(entry)
	transport, commands, lists := "", 0, 0
	for _, m := range s.entry.types {
		transport = text(m.Value)
	}
	for _, m := range entry.Members {
		switch text(m.Name) {
		case "command":
			commands++
			s.commandName, s.command = m.Name.StartOffset, m.Value
		case "args":
			lists++
			s.args = m.Value
		}
	}
	switch {
	case len(s.entry.urls) > 0 && commands == 0, !slices.Contains([]string{"", "stdio", "local"}, transport):
		s.Remote, s.refusal = true, s.entry.refusal()
	case commands == 0:
		s.Problem = `it has neither "command" nor "url"`
	case commands > 1 || lists > 1:
		s.Problem = "a member of it stands twice"
	case text(s.command) == "":
		s.Problem = `its "command" is not a string with something in it`
	case lists == 1 && s.args.Value.Kind() != '[':
		s.Problem = `its "args" is not a list`
	case runsProxy(text(s.command), self):
		s.findWrapped()
	}
	return s
}

// findWrapped looks for the command that the proxy is told to run.
func (s *clientServer) findWrapped() {
	args := s.elements()
	s.dashes = slices.IndexFunc(args, func(v hujson.Value) bool { return text(v) == "--" })
	if s.dashes < 0 || s.dashes+1 >= len(args) || text(args[s.dashes+1]) == "" {
		s.Problem = `it runs auditproxy without "--" and a command after it`
		return
	}
	if err := s.entry.readWrapped(args, s.dashes); err != nil {
		s.Problem = err.Error()
		return
	}
	s.Wrapped, s.Remote = true, s.entry.wrapped != nil
}

// runsProxy reports whether command starts this program: the one at self, or
// one of its name at any place, for a binary that has moved is still a proxy.
func runsProxy(command, self string) bool {
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	return base == "auditproxy" || strings.EqualFold(base, "auditproxy.exe") || command == self
}

// text returns the text of a string, and nothing for any other value.
func text(v hujson.Value) string {
	if lit, ok := v.Value.(hujson.Literal); ok && lit.Kind() == '"' {
		return lit.String()
	}
	return ""
}
