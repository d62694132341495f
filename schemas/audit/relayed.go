package audit

import (
	"strings"

	"auditproxy/schemas/jsontext"
)

// Bounds of RelayedOperations.
const (
	maxRelays   = 4  // inside each other
	maxReadings = 64 // of one relayed call
)

// RelayedOperations lists the operations of a call of a tool that calls other tools, such
// as {"name": "kill_server", "arguments": {}} of call_tool, and those that they relay. Each
// name and each value that some server could take is in it. ok is false if not all are
// listed. They may alias args, and have no Path.
func RelayedOperations(tool string, args JSON, relays func(tool string) bool) (ops []Operation, ok bool) {
	return appendRelayed(nil, tool, args, relays, 0)
}

// WithRelayed returns the operations of InnerOperations with those that the call of a tool,
// or one of them, relays, at most most.
func WithRelayed(ops []Operation, ok bool, tool string, args JSON, most int, relays func(tool string) bool) ([]Operation, bool) {
	relayed, all := RelayedOperations(tool, args, relays)
	ok = ok && all
	for _, op := range ops {
		if ok = ok && len(ops)+len(relayed) <= most; !ok {
			break
		}
		more, all := RelayedOperations(op.Tool, op.Args, relays)
		relayed, ok = append(relayed, more...), all
	}
	return append(ops, relayed...), ok
}

func appendRelayed(ops []Operation, tool string, args JSON, relays func(tool string) bool, depth int) (_ []Operation, ok bool) {
	if !relays(tool) {
		return ops, true
	}
	if depth == maxRelays {
		return ops, false
	}
	var tools []string
	var values []JSON
	err := jsontext.Members(string(args), func(name, value string) bool {
		name = folded(jsontext.Unquote(`"` + name + `"`))
		switch {
		case value[0] == '"' && isToolName(name):
			tool := jsontext.Unquote(value)
			tools = append(tools, tool)
			if before, _, cut := strings.Cut(tool, "\x00"); cut {
				tools = append(tools, before)
			}
		case isArguments(name):
			if inner := strings.TrimSpace(jsontext.Unquote(value)); value[0] == '"' && strings.HasPrefix(inner, "{") {
				value = inner // as Python's FastMCP decodes it
			}
			values = append(values, JSON(value))
		}
		return true
	})
	if len(values) == 0 {
		values = []JSON{""}
	}
	if err != nil && args != "" || len(tools)*len(values) > maxReadings-len(ops) {
		return ops, false
	}
	ok = true
	for _, tool := range tools {
		for _, value := range values {
			ops = append(ops, Operation{Tool: tool, Args: value})
			var all bool
			ops, all = appendRelayed(ops, tool, value, relays, depth+1)
			ok = ok && all
		}
	}
	return ops, ok
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
