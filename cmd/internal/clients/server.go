package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/internal/lazyregexp"

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
	Braces  bool   // the client replaces {env:NAME} and {file:PATH}, as opencode does

	Command string   // the proxy, if Wrapped
	Flags   []string // its arguments before "--"
	Env     []string // NAME=value, those that the entry adds or changes
	Passed  []string // the client's own variables that the server gets; nil: all
}

// FilledIn returns the first part of an entry's text that its client replaces
// before it starts the server, "" without one.
func (s Server) FilledIn(text string) string {
	if p := cli.Placeholder(text); p != "" || !s.Braces {
		return p
	}
	return braced.FindString(text)
}

// braced matches what opencode replaces in its file.
var braced = lazyregexp.New(`\{(env|file):[^}]+\}`)

// Environ returns the environment of the server if that of its client is env.
func (s Server) Environ(env []string) []string {
	if s.Passed != nil {
		env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return !slices.Contains(s.Passed, name)
		})
	}
	return slices.Concat(env, s.Env)
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
	command hujson.Value        // a string
	args    hujson.Value        // a list, or nothing if the server has none
	joined  bool                // the command is the first element of that list
	newList insertion           // where a list belongs if the server has none
	bullet  string              // separates the list's elements if each has a line and a dash, as in YAML
	quote   func(string) string // writes a string as the file does
	dashes  int                 // index in elements of the "--" before the server's command, if Wrapped
	entry   remoteEntry
	refusal string // why wrap --remote leaves it alone, if Remote
}

// An insertion is where a new member goes, and its text up to the value.
type insertion struct {
	at   int
	text string
}

// bounds returns where the server's entry starts, behind its name, and where its last member
// ends; nothing if it has no member. It starts at its "{", or in a table of TOML at the first
// member.
func (s server) bounds(data []byte) []int {
	from, to := len(data), 0
	for _, m := range s.entry.all {
		if m.Value.EndOffset > 0 { // 0: a table of its own
			from, to = min(from, m.Name.StartOffset), max(to, m.Value.EndOffset)
		}
	}
	if to == 0 {
		return nil
	}
	if before, ok := bytes.CutSuffix(bytes.TrimRight(data[:from], " \t\r\n"), []byte("{")); ok {
		from = len(before)
	}
	return []int{from, to}
}

// envValues returns the values of the server's variables if the file is TOML or YAML.
func (s server) envValues() (values []hujson.Value) {
	if s.entry.format == "" {
		return nil
	}
	for _, m := range s.entry.env {
		if env, ok := m.Value.Value.(*hujson.Object); ok {
			for _, m := range env.Members {
				values = append(values, m.Value)
			}
		}
	}
	return values
}

// elements returns the server's arguments as written in the file.
func (s server) elements() []hujson.Value {
	list, ok := s.args.Value.(*hujson.Array)
	switch {
	case !ok:
		return nil
	case s.joined:
		return list.Elements[1:]
	}
	return list.Elements
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
		if _, err := hujson.Parse(append(src, "null"...)); err == nil { // as clients leave it that have no servers
			return nil, nil
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	var servers []server
	joined := false // whether commands are lists, as opencode's
	add := func(project string, lists ...*hujson.Object) {
		if servers == nil {
			servers = []server{}
		}
		for _, list := range lists {
			for _, m := range list.Members {
				s := newServer(project, m, self, joined)
				if s.command.Value != nil {
					s.newList = insertion{s.command.EndOffset, "," + gap(data, s.entry.commandName()) + `"args": `}
				}
				s.quote = func(text string) string { return string(hujson.String(text)) }
				servers = append(servers, s)
			}
		}
	}
	for _, m := range root.Members {
		obj, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		switch text(m.Name) {
		case "mcpServers", "servers", "context_servers", "amp.mcpServers": // the last two are Zed's and Amp's
			add("", obj)
		case "mcp": // of opencode, or in the settings of older VS Code
			joined = true
			for _, m := range obj.Members {
				switch list, ok := m.Value.Value.(*hujson.Object); {
				case !ok:
				case isEntry(list):
					add("", &hujson.Object{Members: []hujson.ObjectMember{m}})
				case text(m.Name) == "servers":
					add("", list)
				}
			}
			joined = false
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

// isEntry reports whether obj is a server's entry, and no list of such: a server can
// be called "servers", and another "command".
func isEntry(obj *hujson.Object) bool {
	return slices.ContainsFunc(obj.Members, func(m hujson.ObjectMember) bool {
		switch kind := m.Value.Value.Kind(); text(m.Name) {
		case "type", "url":
			return kind == '"'
		case "command":
			return kind == '"' || kind == '['
		}
		return false
	})
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

func newServer(project string, m hujson.ObjectMember, self string, joined bool) server {
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
			s.command = m.Value
		case "args":
			lists++
			s.args = m.Value
		case "envFile":
			s.Unsure = `an "envFile", which its client reads`
		}
	}
	if list, ok := s.command.Value.(*hujson.Array); ok && joined && commands == 1 && lists == 0 && len(list.Elements) > 0 {
		s.joined, s.args, s.command, s.Braces = true, s.command, list.Elements[0], true
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
		if joined {
			s.Problem = `its "command" is not a list that begins with a non-empty string`
		}
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
	if !s.joined && s.entry.format == "" { // wrap --remote writes none of these
		if err := s.entry.readWrapped(args, s.dashes); err != nil {
			s.Problem = err.Error()
			return
		}
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
