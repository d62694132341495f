package clients

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"auditproxy/internal/lazyregexp"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/tailscale/hujson"
)

// The flags that wrap --remote writes and unwrap reads. A header's value never
// becomes an argument, and neither does a ${NAME} in the client's file: Claude
// Code would expand it, or drop a server whose ${NAME} it does not have.
const (
	RemoteFlag       = "remote"        // MEMBER[:TYPE]: where the URL was, and what "type" was
	RemoteHeaderFlag = "remote-header" // NAME=VARIABLE
)

// headerName matches the names that mcp-remote forwards; it drops others.
var headerName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// urlMembers are the names under which clients have a server's URL.
var urlMembers = []string{"url", "serverUrl", "httpUrl"}

// remoteTypes are the values of "type" that mcp-remote can replace.
var remoteTypes = []string{"http", "sse", "streamable-http", "streamableHttp", "streamable_http"}

// A remoteEntry holds the members of a server's entry that matter if it has, or
// had, a URL.
type remoteEntry struct {
	all                       []hujson.ObjectMember
	urls, types, headers, env []hujson.ObjectMember
	login                     string // a member that configures the client's login
	format                    string // of the file, "TOML" or "YAML"; empty: JSON

	// Of an entry that is wrapped already:
	wrapped   *hujson.Value // the URL among the arguments
	member    string        // where the URL was
	transport string        // what "type" was; empty without one
	names     []string      // of headers
	variables []string      // that hold their values, in the same order
}

// newRemoteEntry sorts the members of a server's entry.
func newRemoteEntry(entry *hujson.Object) remoteEntry {
	e := remoteEntry{all: entry.Members}
	for _, m := range entry.Members {
		switch name := text(m.Name); name {
		case "type", "transport":
			e.types = append(e.types, m)
		case urlMembers[0], urlMembers[1], urlMembers[2]:
			e.urls = append(e.urls, m)
		case "headers":
			e.headers = append(e.headers, m)
		case "env", "environment": // the latter is opencode's
			e.env = append(e.env, m)
		case "headersHelper", "oauth", "auth":
			e.login = name
		}
	}
	return e
}

// refusal returns why wrap --remote leaves the entry alone, or "". What it
// accepts can be restored byte for byte.
func (e remoteEntry) refusal() string {
	switch {
	case len(e.urls) == 0:
		return "it has no URL"
	case e.format != "":
		return "wrap --remote changes no " + e.format + ` file: give it "command" and "args" as in docs/wrapping.md`
	case len(e.types) == 1 && text(e.types[0].Value) == "remote":
		return `wrap --remote changes no entry of opencode: give it "command" as in docs/wrapping.md`
	case len(e.urls) > 1 || len(e.types) > 1 || len(e.headers) > 1 || len(e.env) > 1:
		return `it has a duplicate "url", "type", "headers" or "env"`
	case e.index("command") >= 0 || e.index("args") >= 0:
		return `it has "command" or "args" and a URL`
	case e.login != "":
		return fmt.Sprintf("mcp-remote does not support its %q", e.login)
	case !unescaped(e.urls[0].Name):
		return "the name of its URL has escapes"
	}
	if len(e.types) == 1 {
		if t := text(e.types[0].Value); !slices.Contains(remoteTypes, t) || !unescaped(e.types[0].Value) {
			return fmt.Sprintf("mcp-remote does not support its type %q", t)
		}
	}
	if why := urlRefusal(text(e.urls[0].Value)); why != "" {
		return why
	}
	return e.headersRefusal()
}

func (e remoteEntry) headersRefusal() string {
	if len(e.env) == 1 && e.env[0].Value.Value.Kind() != '{' {
		return `its "env" is not an object`
	}
	if len(e.headers) == 0 {
		return ""
	}
	headers, ok := e.headers[0].Value.Value.(*hujson.Object)
	switch {
	case !ok:
		return `its "headers" is not an object`
	case !unescaped(e.headers[0].Name):
		return `the name of its "headers" has escapes`
	}
	var seen []string
	for _, m := range headers.Members {
		name := text(m.Name)
		switch {
		case !headerName.MatchString(name) || !unescaped(m.Name):
			return fmt.Sprintf("mcp-remote does not support the header name %q", name)
		case m.Value.Value.Kind() != '"':
			return fmt.Sprintf("the value of its header %q is not a string", name)
		case slices.Contains(seen, strings.ToLower(name)):
			return fmt.Sprintf("it has a duplicate header %q", name)
		}
		seen = append(seen, strings.ToLower(name))
	}
	if len(headers.Members) > 0 && len(e.env) == 1 {
		env := e.env[0].Value
		switch {
		case len(env.Value.(*hujson.Object).Members) == 0 && env.EndOffset-env.StartOffset > len("{}"):
			return `its "env" has no members; remove it`
		case headers.Members[len(headers.Members)-1].Value.AfterExtra != nil:
			return `its "headers" end with a comma; remove it`
		}
	}
	return ""
}

// readWrapped reads what wrap --remote left in the arguments of a wrapped
// server. It does nothing for other servers.
func (e *remoteEntry) readWrapped(args []hujson.Value, dashes int) error {
	for _, arg := range args[:dashes] {
		flag, value, _ := strings.Cut(strings.TrimPrefix(text(arg), "--"), "=")
		switch flag {
		case RemoteFlag:
			e.member, e.transport, _ = strings.Cut(value, ":")
		case RemoteHeaderFlag:
			name, variable, _ := strings.Cut(value, "=")
			e.names, e.variables = append(e.names, name), append(e.variables, variable)
		}
	}
	switch {
	case e.member == "":
		return nil
	case !slices.Contains(urlMembers, e.member) || e.transport != "" && !slices.Contains(remoteTypes, e.transport),
		slices.ContainsFunc(e.names, func(name string) bool { return !headerName.MatchString(name) }) || slices.Contains(e.variables, ""):
		return errors.New("its flags are not those that wrap --remote writes")
	case len(e.types) > 1 || len(e.headers) > 1 || len(e.env) > 1:
		return errors.New(`it has a duplicate "type", "headers" or "env"`)
	}
	for i, arg := range args[dashes+1:] {
		if name := text(arg); name == "mcp-remote" || strings.HasPrefix(name, "mcp-remote@") {
			if i := dashes + 1 + i + 1; i < len(args) && text(args[i]) != "" {
				e.wrapped = &args[i]
				return nil
			}
		}
	}
	return errors.New(`it has no URL after "mcp-remote"`)
}

// environment returns the variables of the entry. A null is one that the client
// removes.
func (e remoteEntry) environment() (env []string) {
	for _, m := range e.env {
		obj, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		for _, v := range obj.Members {
			value := ""
			if lit, ok := v.Value.Value.(hujson.Literal); ok && lit.Kind() != 'n' {
				value = lit.String()
			}
			env = append(env, text(v.Name)+"="+value)
		}
	}
	return env
}

// commandName returns where the member "command" begins.
func (e remoteEntry) commandName() int { return e.all[e.index("command")].Name.StartOffset }

func (e remoteEntry) index(name string) int {
	return slices.IndexFunc(e.all, func(m hujson.ObjectMember) bool { return text(m.Name) == name })
}

// removal removes a member and one comma.
func (e remoteEntry) removal(name string) udiff.Edit {
	i := e.index(name)
	m := e.all[i]
	switch {
	case i > 0:
		return udiff.Edit{Start: e.all[i-1].Value.EndOffset, End: m.Value.EndOffset}
	case len(e.all) > 1:
		return udiff.Edit{Start: m.Name.StartOffset, End: e.all[1].Name.StartOffset}
	}
	return udiff.Edit{Start: m.Name.StartOffset, End: m.Value.EndOffset}
}
