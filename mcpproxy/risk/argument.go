package risk

import (
	"strings"

	"auditproxy/mcpproxy/risk/detector"
)

// An argument says how to look at the value of a name. The zero value is that
// of an ordinary one.
type argument uint16

const (
	commandLine argument = 1 << iota // a shell or an interpreter runs it
	typed                            // a command if the tool executes
	pathname                         // a path
	maybePath                        // a path if it looks like one
	address                          // a URL or a host
	variables                        // an object of environment variables
	variable                         // the name of one, if the tool sets them
	list                             // operations: each item is a call
	encoded                          // a string may hold JSON that the server reads
	setting                          // a command if the tool sets options
	program                          // a command, without its words
	operands                         // the words of the command beside it
	hostRights                       // true gives a container what is its host's
	mounts                           // what a container has of its host
	manifest                         // of Kubernetes
	statement                        // SQL
)

// argumentBy says how to look at the values of a property by its schema.
func argumentBy(sub []byte) (arg argument) {
	switch text(memberOf(sub, "format")) {
	case "uri", "url", "uri-reference", "hostname":
		arg |= address
	case "path", "file-path", "directory-path":
		arg |= pathname
	}
	lit := memberOf(sub, "description")
	const longest = 1 << 10
	if len(lit) > longest {
		lit = lit[:longest]
	}
	description := strings.ToLower(text(lit))
	for _, phrase := range [...]string{"shell command", "command to run", "command to execute", "command line", "bash command",
		"sql query", "sql statement", "sql to ", "script to run", "script to execute", "code to run", "code to execute", "code to evaluate",
		"terminal command", "shell script", "commands to run", "commands to execute"} {
		if strings.Contains(description, phrase) {
			arg |= commandLine
		}
	}
	for _, phrase := range [...]string{"file path", "path to ", "path of ", "absolute path", "directory to ", "filesystem path", "path on disk"} {
		if strings.Contains(description, phrase) {
			arg |= maybePath
		}
	}
	return arg
}

// maxName is the longest name that is looked at; of a longer one it is the end.
const maxName = 64

// argumentOf says how to look at the values of a name, in any case: servers in
// Go ignore it. It allocates nothing.
func argumentOf(name []byte) (arg argument) {
	for len(name) > 1 && (name[len(name)-1] == '_' || '0' <= name[len(name)-1] && name[len(name)-1] <= '9') {
		name = name[:len(name)-1] // global_, path2
	}
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var buf [maxName]byte
	lower := appendLower(buf[:0], name)
	switch string(lower) {
	case "operations":
		return list | encoded
	case "privileged", "hostpid", "host_pid", "hostipc", "host_ipc":
		return hostRights
	case "volumes", "volume", "binds", "bind", "mounts", "mount", "hostpath", "host_path":
		return mounts
	case "manifest", "manifests", "yaml", "patch":
		return manifest
	case "resource":
		return maybePath | manifest
	case "arguments", "params":
		return encoded | operands
	case "tool_input", "toolinput", "tool_arguments":
		return encoded
	case "args", "parameters":
		return operands
	case "program", "executable", "exe":
		return program
	case "path", "paths", "file", "files", "filename", "filenames", "directory", "directories", "dir", "dirs", "folder", "folders",
		"cwd", "workdir", "filepath", "dirname":
		return pathname
	case "source":
		return maybePath | typed
	case "destination", "src", "dest", "dst", "target", "from", "to", "base", "root", "location", "output", "input_file",
		"save_to", "where", "old", "new", "attachment", "attachments":
		return maybePath
	case "uri", "uris", "url", "urls", "endpoint", "host", "hostname", "hosts", "base_url", "baseurl", "href", "webhook", "origin",
		"proxy", "link":
		return address
	case "environment", "env", "envs", "environ":
		return variables | encoded
	case "name", "variable", "key", "var":
		return variable
	case "value":
		return setting
	case "keys", "command", "cmd", "shell", "script", "code", "commands", "cmds", "scripts", "keystrokes", "cmdline", "cmd_line", "commandline", "command_line", "command-line", "exec", "bash", "powershell":
		return commandLine
	case "sql":
		return commandLine | statement
	case "argv":
		return commandLine | operands
	case "text", "input", "content", "contents", "data", "stdin", "query", "statement", "lines", "expression", "snippet", "run":
		return typed
	}
	// The last word of a longer name: outputPath, base-url, shell_command.
	from := len(name)
	for from > 0 {
		c := name[from-1]
		if c == '_' || c == '-' || c == '.' || c == ' ' {
			break
		}
		if from--; 'A' <= c && c <= 'Z' && from > 0 && !('A' <= name[from-1] && name[from-1] <= 'Z') {
			break
		}
	}
	if from == 0 {
		return 0
	}
	last := appendLower(buf[:0], name[from:])
	switch string(last) {
	case "path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder", "cwd":
		return pathname
	case "url", "urls", "uri", "uris", "host", "hostname", "endpoint", "webhook":
		return address
	case "command", "commands", "cmd", "cmds", "script", "scripts", "shell", "keystrokes", "bash", "cmdline":
		return commandLine
	case "sql":
		return commandLine | statement
	case "vars", "env", "variables", "environment":
		return variables | encoded
	case "text", "input", "code", "query", "stdin":
		return typed
	}
	return 0
}

// operatorDoes judges an operator of MongoDB that has the server run code, or that replaces
// a collection.
func operatorDoes(name string) detector.Set {
	switch name {
	case "$where", "$function", "$accumulator":
		return detector.PrivilegeEscalation
	case "$out":
		return detector.SQLUnfiltered
	}
	return 0
}

// appendLower appends name in lower case, where it is or folds to ASCII.
func appendLower(dst, name []byte) []byte {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			dst = append(dst, c|0x20)
		case c == 0xc5 && i+1 < len(name) && name[i+1] == 0xbf: // long s
			dst = append(dst, 's')
			i++
		case c == 0xe2 && i+2 < len(name) && name[i+1] == 0x84 && name[i+2] == 0xaa: // Kelvin
			dst = append(dst, 'k')
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
