package audit

import (
	"strings"

	"auditproxy/schemas/jsontext"
)

// Bounds of relayed calls.
const (
	maxRelays   = 4  // inside each other
	maxReadings = 64 // of what one call of a client relays, where servers may differ
)

// Relays reports whether a tool's name says that it calls any other tool, which its
// arguments name, and does nothing else: call_tool, invokeTool, use_mcp_tool. The server
// chooses the name.
func Relays(tool string) bool {
	verb, noun := false, false
	for tool != "" {
		n := humpEnd(tool)
		if n == 0 {
			tool = tool[1:]
			continue
		}
		switch strings.ToLower(tool[:n]) {
		case "call", "invoke", "execute", "exec", "run", "use", "dispatch", "forward", "proxy", "relay":
			verb = true
		case "tool", "tools", "mcp":
			noun = true
		case "server", "remote", "by", "name", "with", "args", "arguments", "direct", "a", "any", "the":
		default:
			return false
		}
		tool = tool[n:]
	}
	return verb && noun
}

// humpEnd returns the length of the word that s begins with, 0 for none: callTool and
// MCPTool have two.
func humpEnd(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || s[n] >= 0x80 || '0' <= s[n] && s[n] <= '9') {
		if n > 0 && isUpper(s[n]) && (!isUpper(s[n-1]) || n+1 < len(s) && isLetter(s[n+1]) && !isUpper(s[n+1])) {
			break
		}
		n++
	}
	return n
}

func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// A member is one of the arguments of a tool that relays: the name of another one, or
// the arguments of that.
type member struct{ name, text string }

// relayed returns the tools that arguments name, and the arguments that these may get,
// empty if there are none. Those are last that most servers take. ok is false for what is
// no object.
func relayed(args JSON) (tools, values []member, ok bool) {
	err := jsontext.Members(string(args), func(name, value string) bool {
		name = folded(jsontext.Unquote(`"` + name + `"`))
		switch {
		case value[0] == '"' && isToolName(name):
			tool := jsontext.Unquote(value)
			if before, _, cut := strings.Cut(tool, "\x00"); cut {
				tools = append(tools, member{name, before})
			}
			tools = append(tools, member{name, tool})
		case isArguments(name):
			if inner := strings.TrimSpace(jsontext.Unquote(value)); value[0] == '"' && strings.HasPrefix(inner, "{") {
				value = inner // as Python's FastMCP decodes it
			}
			values = append(values, member{name, value})
		}
		return true
	})
	if len(values) == 0 {
		values = []member{{}}
	}
	return tools, values, err == nil || args == ""
}

// fold makes one form of the ways to write a name of several words.
var fold = strings.NewReplacer("_", "", "-", "", "ſ", "s", "\u212a", "k")

// IsToolName reports whether an argument names the tool that a relaying tool calls.
func IsToolName(name string) bool { return isToolName(folded(name)) }

// IsToolArguments reports whether an argument has those of that tool.
func IsToolArguments(name string) bool { return isArguments(folded(name)) }

func folded(name string) string {
	name, _, _ = strings.Cut(name, "\x00") // where strings of C end
	return strings.ToLower(fold.Replace(name))
}

func isToolName(name string) bool {
	switch name {
	case "name", "tool", "toolname", "toolid", "toolslug":
		return true
	}
	return false
}

func isArguments(name string) bool {
	switch name {
	case "arguments", "args", "params", "parameters", "input", "inputs", "toolinput", "toolargs", "toolarguments", "toolparams", "payload":
		return true
	}
	return false
}
