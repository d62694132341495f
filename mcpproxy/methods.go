package mcpproxy

import (
	"slices"
	"strings"

	"auditproxy/redact"
	"auditproxy/schemas/jsontext"
)

// A class is how the proxy treats a method.
type class uint8

const (
	recorded   class = iota // a call
	skipped                 // a request that carries nothing of the agent's
	initialize              // skipped, but the answer names the server
	listTools               // skipped, but the answer defines the tools
	cancelled               // notifications/cancelled
	notified                // any other notification
)

// wanted reports whether the proxy reads the answer itself.
func (c class) wanted() bool { return c == initialize || c == listTools }

// unrecorded reports whether the proxy wants neither the request nor its answer.
func (c class) unrecorded() bool { return c == skipped || c == notified || c == cancelled }

// SkippedMethods are the requests that are never recorded, like all that end in
// "/list": they carry no data of the agent.
func SkippedMethods() []string {
	return []string{"initialize", "ping", "logging/setLevel", "server/discover", "tasks/get"}
}

type method struct {
	name    string
	class   class
	literal string // on the wire; "" if it is not kept
}

// text is the method as a record has it.
func (m method) text(red *redact.Redactor) string {
	if m.name == "tools/call" {
		return m.name
	}
	return string(red.AppendText(nil, []byte(m.name)))
}

// methods caches methods by their literal on the wire. fromClient owns it.
type methods struct {
	skip  []string
	known map[string]method
	last  method // that of most messages
}

// maxKnown bounds the names kept for a client.
const maxKnown = 1024

func newMethods(skip []string) *methods {
	return &methods{skip: skip, known: make(map[string]method)}
}

// of returns the method with this string literal.
func (m *methods) of(literal []byte) method {
	if m.last.literal != "" && string(literal) == m.last.literal {
		return m.last
	}
	if k, ok := m.known[string(literal)]; ok {
		m.last = k
		return k
	}
	name := string(jsontext.AppendUnquote(nil, literal))
	k := method{name: name, class: m.classOf(name)}
	if len(m.known) < maxKnown && len(literal) < 128 {
		k.literal = string(literal)
		m.known[k.literal] = k
	}
	return k
}

func (m *methods) classOf(name string) class {
	switch {
	case name == "initialize" || name == "server/discover":
		return initialize
	case name == "tools/list":
		return listTools
	case name == "notifications/cancelled":
		return cancelled
	case strings.HasPrefix(name, "notifications/"):
		return notified
	case strings.HasSuffix(name, "/list"), slices.Contains(SkippedMethods(), name), slices.Contains(m.skip, name):
		return skipped
	}
	return recorded
}

// The members of params._meta that MCP 2026-07-28 puts in place of initialize.
const (
	metaClientInfo      = "io.modelcontextprotocol/clientInfo"
	metaProtocolVersion = "io.modelcontextprotocol/protocolVersion"
)

// The member of params._meta that MCP 2026-07-28 has for what a client can.
const metaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
