package clients

import (
	"fmt"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/tailscale/hujson"
)

// RemotePackage is the npm package that speaks to remote servers, in the version
// that was read and tested. Before 0.1.16 a server could run commands on the
// client's machine (CVE-2025-6514).
const RemotePackage = "mcp-remote@0.15.1"

// nodeVersion is the oldest version that RemotePackage's dependencies run on.
const nodeVersion = "Node.js 20.18.1 or newer"

// remoteNotice is the text that wrap --remote shows before it asks.
const remoteNotice = `
Remote servers run through ` + RemotePackage + ` from now on:
  * npx fetches it from the npm registry on the first start. It needs ` + nodeVersion + `.
  * A server with a login asks for one more, in the browser. mcp-remote keeps
    that login in ~/.mcp-auth; the client's own login is no longer used.
  * Headers move into the environment of the server's entry. The URL becomes an
    argument, which every user of this machine can read.

`

// RemoteCommand returns the command to run for args under the values of
// RemoteFlag and RemoteHeaderFlag, and its directory. An empty dir is the
// working directory. env is the command's environment.
func RemoteCommand(remote string, headers, args, env []string) (command []string, dir string, err error) {
	if remote != "" {
		// Clients start servers in the agent's project. There npx would run the
		// project's own mcp-remote or node, with the headers in its environment,
		// and fetch from the registry that the project's .npmrc names.
		dir = "/"
	}
	command = slices.Clone(args)
	for _, h := range headers {
		name, variable, ok := strings.Cut(h, "=")
		switch {
		case !ok || !headerName.MatchString(name) || variable == "":
			return nil, "", fmt.Errorf("--%s %q is not of the form NAME=VARIABLE", RemoteHeaderFlag, h)
		case !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, variable+"=") }):
			return nil, "", fmt.Errorf("the variable %q with the value of the header %q is not set; write it under \"env\" in the client's configuration, and not in child.hide_env", variable, name)
		}
		// Without a space, because some clients on Windows break arguments there.
		command = append(command, "--header", name+":${"+variable+"}")
	}
	return command, dir, nil
}

// wrapRemoteEdits makes a server with a URL one that runs mcp-remote. Values
// are moved as they are written, and never copied: unwrapRemoteEdits must
// restore the entry from the result alone.
func wrapRemoteEdits(data []byte, s server, self string) []udiff.Edit {
	e := s.entry
	at := e.urls[0]
	raw := at.Value
	marker := "--" + RemoteFlag + "=" + text(at.Name)
	var edits []udiff.Edit
	if len(e.types) == 1 {
		t := e.types[0].Value
		marker += ":" + text(t)
		edits = append(edits, replaced(t, `"stdio"`))
	}
	args := []string{string(hujson.String(marker))}
	names, variables, moved := e.moveHeaders(data)
	for i, name := range names {
		args = append(args, string(hujson.String("--"+RemoteHeaderFlag+"="+name+"="+variables[i])))
	}
	// Without --prefer-offline npx asks the registry on each start, and waits a
	// minute without a network.
	args = append(args, `"--"`, `"npx"`, `"-y"`, `"--prefer-offline"`, `"`+RemotePackage+`"`, string(data[raw.StartOffset:raw.EndOffset]))
	if scheme, _, _ := strings.Cut(text(raw), ":"); strings.EqualFold(scheme, "http") {
		args = append(args, `"--allow-http"`)
	}
	if len(e.types) == 1 && text(e.types[0].Value) == "sse" {
		args = append(args, `"--transport"`, `"sse-only"`)
	}
	edits = append(edits, replaced(at.Name, `"command"`),
		replaced(raw, string(hujson.String(self))+","+gap(data, at.Name.StartOffset)+`"args": [`+strings.Join(args, ", ")+"]"))
	return append(edits, moved...)
}

// moveHeaders makes environment variables of the headers. An entry without
// "env" gets its "headers" renamed; with it, "headers" stays and is empty.
func (e remoteEntry) moveHeaders(data []byte) (names, variables []string, edits []udiff.Edit) {
	if len(e.headers) == 0 {
		return nil, nil, nil
	}
	from := e.headers[0]
	members := from.Value.Value.(*hujson.Object).Members
	if len(members) == 0 {
		return nil, nil, nil
	}
	var taken []string
	if len(e.env) == 1 {
		for _, m := range e.env[0].Value.Value.(*hujson.Object).Members {
			taken = append(taken, strings.ToUpper(text(m.Name)))
		}
	}
	var renames []udiff.Edit
	for _, m := range members {
		name := text(m.Name)
		variable := "MCP_HEADER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		for n := 2; slices.Contains(taken, variable); n++ {
			variable = fmt.Sprintf("MCP_HEADER_%s_%d", strings.ToUpper(strings.ReplaceAll(name, "-", "_")), n)
		}
		taken = append(taken, variable)
		names, variables = append(names, name), append(variables, variable)
		renames = append(renames, replaced(m.Name, `"`+variable+`"`))
	}
	if len(e.env) == 0 {
		return names, variables, append(renames, replaced(from.Name, `"env"`))
	}
	inner, env := inside(from.Value), e.env[0].Value
	moved := spliced(data, inner.Start, inner.End, renames)
	if len(env.Value.(*hujson.Object).Members) > 0 {
		moved += ","
	}
	into := inside(env).Start
	return names, variables, []udiff.Edit{inner, {Start: into, End: into, New: moved}}
}

// unwrapRemoteEdits reverses wrapRemoteEdits. The URL and the values of headers
// are those that the entry has now.
func unwrapRemoteEdits(data []byte, s server) []udiff.Edit {
	e := s.entry
	edits := []udiff.Edit{
		replaced(e.all[e.index("command")].Name, string(hujson.String(e.member))),
		replaced(s.command, string(data[e.wrapped.StartOffset:e.wrapped.EndOffset])),
		e.removal("args"),
	}
	if e.transport != "" && len(e.types) > 0 {
		edits = append(edits, replaced(e.types[0].Value, string(hujson.String(e.transport))))
	}
	return append(edits, e.restoreHeaders(data)...)
}

// restoreHeaders reverses moveHeaders. If the variables have moved since, it
// writes a new "headers" and "env" keeps the rest.
func (e remoteEntry) restoreHeaders(data []byte) []udiff.Edit {
	if len(e.names) == 0 || len(e.env) == 0 {
		return nil
	}
	env, ok := e.env[0].Value.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	inPlace := len(env.Members) >= len(e.names)
	var renames []udiff.Edit
	for i, variable := range e.variables {
		if inPlace = inPlace && text(env.Members[i].Name) == variable; !inPlace {
			break
		}
		renames = append(renames, replaced(env.Members[i].Name, string(hujson.String(e.names[i]))))
	}
	more := len(env.Members) - len(e.names)
	switch {
	case inPlace && len(e.headers) == 0 && more == 0:
		return append(renames, replaced(e.env[0].Name, `"headers"`))
	case inPlace && len(e.headers) == 1 && e.headers[0].Value.EndOffset-e.headers[0].Value.StartOffset == len("{}"):
		taken := inside(e.env[0].Value)
		end := taken.End
		if more > 0 {
			last := env.Members[len(e.names)-1].Value
			end = last.EndOffset + len(last.AfterExtra)
			taken.End = end + len(",")
		}
		into := inside(e.headers[0].Value).Start
		return []udiff.Edit{taken, {Start: into, End: into, New: spliced(data, taken.Start, end, renames)}}
	}
	var headers, rest []string
	for _, m := range env.Members {
		value := string(data[m.Value.StartOffset:m.Value.EndOffset])
		if i := slices.Index(e.variables, text(m.Name)); i >= 0 {
			headers = append(headers, string(hujson.String(e.names[i]))+": "+value)
		} else {
			rest = append(rest, string(data[m.Name.StartOffset:m.Name.EndOffset])+": "+value)
		}
	}
	if len(headers) == 0 {
		return nil
	}
	var edits []udiff.Edit
	written := "{" + strings.Join(headers, ", ") + "}"
	env0 := udiff.Edit{Start: e.env[0].Name.StartOffset, End: e.env[0].Value.EndOffset}
	if len(e.headers) > 0 {
		edits = append(edits, replaced(e.headers[0].Value, written))
	} else {
		env0.New = `"headers": ` + written
	}
	if len(rest) > 0 || env0.New == "" {
		if env0.New != "" {
			env0.New += "," + gap(data, env0.Start)
		}
		env0.New += `"env": {` + strings.Join(rest, ", ") + "}"
	}
	return append(edits, env0)
}

// checkNpx reports a missing npx before anything is changed to need it.
func checkNpx(look func(string) (string, error)) error {
	if _, err := look("npx"); err != nil {
		return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("finding npx, which runs mcp-remote: %w; install %s, with npm", err, nodeVersion)}
	}
	return nil
}
