package clients

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// yamlRemedy is the problem of each server in YAML: no library says where the parts of an
// entry begin and end, so that the rest of the file would stay as it is.
const yamlRemedy = "its file is YAML, which is edited by hand: of a wrapped server the command is auditproxy, and the first arguments are \"--\" and its own command"

// A yamlEntry is a server's entry. The first names are goose's (docs of goose,
// "Using Extensions"), the others Continue's (docs.continue.dev, "config.yaml Reference").
type yamlEntry struct {
	Cmd     string            `yaml:"cmd"`
	Envs    map[string]string `yaml:"envs"`
	URI     string            `yaml:"uri"`
	Command string            `yaml:"command"`
	Env     map[string]string `yaml:"env"`
	URL     string            `yaml:"url"`
	Name    string            `yaml:"name"`
	Args    []string          `yaml:"args"`
}

// parseYAML finds the servers in a configuration of goose or Continue, as parseServers does
// in those of other clients. They are only read.
func parseYAML(data []byte, self string) ([]server, error) {
	var root struct {
		Extensions yaml.Node `yaml:"extensions"`
		MCPServers yaml.Node `yaml:"mcpServers"`
	}
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	var servers []server
	for _, list := range []*yaml.Node{&root.Extensions, &root.MCPServers} {
		for i, n := range list.Content {
			name := ""
			if list.Kind == yaml.MappingNode {
				if i%2 == 0 {
					continue
				}
				name = list.Content[i-1].Value
			}
			var e yamlEntry
			err := n.Decode(&e)
			if err == nil && e.Cmd+e.Command+e.URI+e.URL == "" {
				continue // it runs in the client, as goose's own do
			}
			servers = append(servers, newYAMLServer(name, e, err, self))
		}
	}
	return servers, nil
}

func newYAMLServer(name string, e yamlEntry, unread error, self string) server {
	if name == "" {
		name = e.Name
	}
	s := server{Server: Server{Name: name, Problem: yamlRemedy}}
	command := e.Cmd + e.Command
	switch dashes := slices.Index(e.Args, "--"); {
	case unread != nil:
		s.Problem = fmt.Sprintf("its entry cannot be read: %v", unread)
	case command == "":
		s.Remote, s.refusal = true, "its file is YAML"
	case runsProxy(command, self) && dashes >= 0 && dashes+1 < len(e.Args):
		s.Wrapped, s.Command, s.Flags = true, command, e.Args[:dashes]
	}
	for _, env := range []map[string]string{e.Envs, e.Env} {
		for name, value := range env {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	slices.Sort(s.Env)
	return s
}
