package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/redact"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"
)

// mcpRemote is the npm package that speaks to remote servers, in the version
// that was read and tested. Before 0.1.16 a server could run commands on the
// client's machine (CVE-2025-6514).
const mcpRemote = "mcp-remote@0.15.1"

// nodeVersion is the oldest version that mcpRemote's dependencies run on.
const nodeVersion = "Node.js 20.18.1 or newer"

// remoteNotice is what wrap --remote shows before it asks.
const remoteNotice = `
Remote servers run through ` + mcpRemote + ` from now on:
  * npx fetches it from the npm registry on the first start. It needs ` + nodeVersion + `.
  * A server with a login asks for one more, in the browser. mcp-remote keeps
    that login in ~/.mcp-auth; the client's own login is no longer used.
  * Headers move into the environment of the server's entry. The URL becomes an
    argument, which every user of this machine can read.

`

// The flags that wrap --remote writes and unwrap reads. A header's value never
// becomes an argument, and neither does a ${NAME} in the client's file: Claude
// Code would fill it in, or drop a server whose ${NAME} it does not have.
const (
	remoteFlag       = "remote"        // MEMBER[:TYPE]: where the URL was, and what "type" was
	remoteHeaderFlag = "remote-header" // NAME=VARIABLE
)

func addRemoteFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.String(remoteFlag, "", "the entry that \"wrap --remote\" replaced, as `MEMBER[:TYPE]`")
	flags.StringArray(remoteHeaderFlag, nil, "pass a header to mcp-remote from a variable, as `NAME=VARIABLE`")
	for _, name := range []string{remoteFlag, remoteHeaderFlag} {
		flags.MarkHidden(name)
	}
}

// remoteCommand returns what to run for args under the flags of wrap --remote,
// and in which directory. An empty dir is the working directory. env is what the
// command will have.
func remoteCommand(cmd *cobra.Command, args, env []string) (command []string, dir string, err error) {
	remote, _ := cmd.Flags().GetString(remoteFlag)
	headers, _ := cmd.Flags().GetStringArray(remoteHeaderFlag)
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
			return nil, "", fmt.Errorf("--%s %q is not of the form NAME=VARIABLE", remoteHeaderFlag, h)
		case !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, variable+"=") }):
			return nil, "", fmt.Errorf("the variable %q with the value of the header %q is not set; write it under \"env\" in the client's configuration, and not in child.hide_env", variable, name)
		}
		// Without a space, because some clients on Windows break arguments there.
		command = append(command, "--header", name+":${"+variable+"}")
	}
	return command, dir, nil
}

// headerName matches the names that mcp-remote passes on; it drops others.
var headerName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// urlMembers are the names under which clients have a server's URL.
var urlMembers = []string{"url", "serverUrl", "httpUrl"}

// remoteTypes are the values of "type" that mcp-remote can stand in for.
var remoteTypes = []string{"http", "sse", "streamable-http", "streamableHttp", "streamable_http"}

// A remoteEntry holds the members of a server's entry that matter if it has, or
// had, a URL.
type remoteEntry struct {
	all                       []hujson.ObjectMember
	urls, types, headers, env []hujson.ObjectMember
	login                     string // a member that says how the client logs in

	// Of an entry that is wrapped already:
	wrapped   *hujson.Value // the URL among the arguments
	member    string        // where the URL was
	transport string        // what "type" was; empty if there was none
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
		case "env":
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

// unescaped reports whether a string is written without escapes.
func unescaped(v hujson.Value) bool {
	lit, ok := v.Value.(hujson.Literal)
	return ok && string(lit) == `"`+lit.String()+`"`
}

// filledIn matches what the client fills in: ${API_KEY}, ${input:token}.
var filledIn = regexp.MustCompile(`\$\{[^}]*\}`)

// urlRefusal returns why a URL cannot become an argument of mcp-remote, or "".
// It quotes nothing of a URL that may hold a credential.
func urlRefusal(raw string) string {
	const visible = ", and every user of this machine can read it once it is an argument; use a header"
	filled := filledIn.ReplaceAllLiteralString(raw, "$")
	scheme, rest, ok := strings.Cut(filled, "://")
	if !ok && strings.HasPrefix(filled, "$") {
		rest, ok = filled, true // the client fills in scheme and host
		scheme = "https"
	}
	scheme = strings.ToLower(scheme)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, tail := rest[:end], rest[end:]
	switch {
	case !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(raw, " \t\r\n"):
		return "its URL is not an http:// or https:// URL"
	case strings.Contains(host, "@"):
		return "its URL holds a password or user name" + visible
	case strings.Contains(tail, "$") && filled != raw:
		return "the client fills in a part of its URL after the host" + visible
	case hasCredential(raw, tail):
		return "its URL holds a credential" + visible
	case scheme == "http" && !loopback(host):
		return "its URL is http:// to another machine, where a login would be readable on the way; use https://"
	}
	return ""
}

// hasCredential reports whether a URL, or its part after the host, has in it
// what a record of a call would not show.
func hasCredential(raw, tail string) bool {
	red, err := redact.New(redact.Config{Digest: redact.SHA256})
	if err != nil {
		return true
	}
	if string(red.AppendMessage(nil, []byte(raw))) != raw {
		return true
	}
	tail, fragment, _ := strings.Cut(tail, "#")
	_, query, _ := strings.Cut(tail, "?")
	_, fragmentQuery, _ := strings.Cut(fragment, "?")
	for _, part := range []string{query, fragment, fragmentQuery} {
		values, err := url.ParseQuery(part)
		if err != nil {
			return true
		}
		for name, texts := range values {
			for _, v := range texts {
				if v == "" {
					continue
				}
				if slices.Contains(urlSecrets, strings.ToLower(name)) || string(red.AppendNamed(nil, []byte(name), []byte(v))) != v {
					return true
				}
			}
		}
	}
	return false
}

// urlSecrets are parameters that hold credentials in URLs and nowhere else:
// function keys, signed links, API keys.
var urlSecrets = []string{"key", "k", "code", "sig", "signature"}

// loopback reports whether host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost")
}

// wrapRemoteEdits makes a server with a URL one that runs mcp-remote. Values are
// moved as they are written, and never copied: unwrapRemoteEdits finds the way
// back from the result alone.
func wrapRemoteEdits(data []byte, s clientServer, self string) []udiff.Edit {
	e := s.entry
	at := e.urls[0]
	raw := at.Value
	marker := "--" + remoteFlag + "=" + text(at.Name)
	var edits []udiff.Edit
	if len(e.types) == 1 {
		t := e.types[0].Value
		marker += ":" + text(t)
		edits = append(edits, replaced(t, `"stdio"`))
	}
	args := []string{string(hujson.String(marker))}
	names, variables, moved := e.moveHeaders(data)
	for i, name := range names {
		args = append(args, string(hujson.String("--"+remoteHeaderFlag+"="+name+"="+variables[i])))
	}
	// Without --prefer-offline npx asks the registry on each start, and waits a
	// minute where there is no network.
	args = append(args, `"--"`, `"npx"`, `"-y"`, `"--prefer-offline"`, `"`+mcpRemote+`"`, string(data[raw.StartOffset:raw.EndOffset]))
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

// inside is an edit that empties an object.
func inside(obj hujson.Value) udiff.Edit {
	return udiff.Edit{Start: obj.StartOffset + len("{"), End: obj.EndOffset - len("}")}
}

// spliced returns data[start:end] after edits that lie in it, in their order.
func spliced(data []byte, start, end int, edits []udiff.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.Write(data[start:e.Start])
		b.WriteString(e.New)
		start = e.End
	}
	b.Write(data[start:end])
	return b.String()
}

func replaced(v hujson.Value, with string) udiff.Edit {
	return udiff.Edit{Start: v.StartOffset, End: v.EndOffset, New: with}
}

// readWrapped reads from the arguments of a wrapped server what wrap --remote
// left there. It does nothing for other servers.
func (e *remoteEntry) readWrapped(args []hujson.Value, dashes int) error {
	for _, arg := range args[:dashes] {
		flag, value, _ := strings.Cut(strings.TrimPrefix(text(arg), "--"), "=")
		switch flag {
		case remoteFlag:
			e.member, e.transport, _ = strings.Cut(value, ":")
		case remoteHeaderFlag:
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

// unwrapRemoteEdits reverses wrapRemoteEdits. The URL and the values of headers
// are those that the entry has now.
func unwrapRemoteEdits(data []byte, s clientServer) []udiff.Edit {
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

func (e remoteEntry) index(name string) int {
	return slices.IndexFunc(e.all, func(m hujson.ObjectMember) bool { return text(m.Name) == name })
}

// removal takes a member and one comma out.
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

// restoreHeaders is the way back of moveHeaders. If the variables are not where
// it left them, "headers" is written anew and "env" keeps the rest.
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
