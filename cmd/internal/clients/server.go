package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A Server describes a server and whether it is recorded. All of it is from the
// file, which may be untrusted: an agent's repository can contain one.
type Server struct {
	Name    string
	Project string // the project directory it is for; empty unless the file has projects
	Wrapped bool
	Remote  bool   // it is reached by URL; if Wrapped, through mcp-remote
	Problem string // why it can be neither wrapped nor unwrapped; empty if it can
	Unsure  string // what else its client looks at, so that the entry does not say what runs; may be empty

	Command string   // the proxy, if Wrapped
	Flags   []string // its arguments before "--"
	Env     []string // NAME=value, those that the entry adds or changes
}

// Label names the server in a message.
func (s Server) Label() string {
	if s.Project == "" {
		return fmt.Sprintf("%q", s.Name)
	}
	return fmt.Sprintf("%q of project %q", s.Name, s.Project)
}

// A server is one server of a configuration, with the offsets of the parts that
// wrapping changes. Offsets count from the start of the file.
type server struct {
	Server
	commandName int          // where the member "command" begins
	command     hujson.Value // a string
	args        hujson.Value // a list, or nothing if the server has none
	dashes      int          // index in args of the "--" before the server's command, if Wrapped
	entry       remoteEntry
	refusal     string // why wrap --remote leaves it alone, if Remote
}

// elements returns the server's arguments as written in the file.
func (s server) elements() []hujson.Value {
	if list, ok := s.args.Value.(*hujson.Array); ok {
		return list.Elements
	}
	return nil
}

// parseServers finds the servers in a configuration. It accepts everything that
// the most lenient of the clients accepts: comments, trailing commas, a byte
// order mark. The list is nil if no member of the file is for servers.
func parseServers(data []byte, self string) ([]server, error) {
	src := append(bytes.Clone(data), '\n') // a comment may end the file
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		copy(src, "   ") // of the same length, so that offsets stay right
	}
	if deep(src) {
		return nil, fmt.Errorf("its values are nested more than %d deep", maxDepth)
	}
	v, err := hujson.Parse(src)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	var servers []server
	add := func(project string, lists ...*hujson.Object) {
		if servers == nil {
			servers = []server{}
		}
		for _, list := range lists {
			for _, m := range list.Members {
				servers = append(servers, newServer(project, m, self))
			}
		}
	}
	for _, m := range root.Members {
		obj, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		switch text(m.Name) {
		case "mcpServers", "servers", "context_servers": // the last is Zed's
			add("", obj)
		case "mcp": // in the settings of older VS Code
			if lists := objects(obj, "servers"); lists != nil {
				add("", lists...)
			}
		case "projects":
			add("")
			for _, p := range obj.Members {
				if project, ok := p.Value.Value.(*hujson.Object); ok {
					add(text(p.Name), objects(project, "mcpServers")...)
				}
			}
		}
	}
	return servers, nil
}

// maxDepth is how deep a configuration may be nested: the parser calls itself, and
// one from an agent's repository would use up the stack. It is encoding/json's.
const maxDepth = 10000

// deep reports whether src is nested deeper than that.
func deep(src []byte) bool {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch rest := src[i:]; {
		case src[i] == '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += bytes.IndexByte(rest, '\n') // there is one at the end
		case bytes.HasPrefix(rest, []byte("/*")):
			if end := bytes.Index(rest[2:], []byte("*/")); end >= 0 {
				i += end + 3
			}
		case src[i] == '[', src[i] == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case src[i] == ']', src[i] == '}':
			depth--
		}
	}
	return false
}

func newServer(project string, m hujson.ObjectMember, self string) server {
	s := server{Server: Server{Name: text(m.Name), Project: project}}
	entry, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		s.Problem = "it is not an object"
		return s
	}
	s.entry = newRemoteEntry(entry)
	s.Env = s.entry.environment()
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
		case "envFile":
			s.Unsure = `an "envFile", which its client reads`
		}
	}
	switch {
	case len(s.entry.urls) > 0 && commands == 0, !slices.Contains([]string{"", "stdio", "local"}, transport):
		s.Remote, s.refusal = true, s.entry.refusal()
	case commands == 0:
		s.Problem = `it has neither "command" nor "url"`
	case commands > 1 || lists > 1:
		s.Problem = `it has a duplicate "command" or "args"`
	case text(s.command) == "":
		s.Problem = `its "command" is not a non-empty string`
	case lists == 1 && s.args.Value.Kind() != '[':
		s.Problem = `its "args" is not a list`
	case runsProxy(text(s.command), self):
		s.findWrapped()
	}
	if len(s.entry.urls) > 0 && commands > 0 && transport == "" {
		s.Unsure = "a URL too, which its client may use instead"
	}
	return s
}

// findWrapped finds the command that the proxy runs.
func (s *server) findWrapped() {
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
	s.Command = text(s.command)
	for _, arg := range args[:s.dashes] {
		s.Flags = append(s.Flags, text(arg))
	}
}

// runsProxy reports whether command starts this program: the one at self, or
// one of its name anywhere, because a binary that has moved is still a proxy.
func runsProxy(command, self string) bool {
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	return base == "auditproxy" || strings.EqualFold(base, "auditproxy.exe") || command == self
}
