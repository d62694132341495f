// Package elicitation asks a person in the MCP client; pure.
//
// A client that declared the capability elicitation shows its user a form that a
// server asks for. Up to 2025-11-25 a server sends a request and gets a response
// (AppendRequest, ParseResponse). Since 2026-07-28 it answers the call itself with
// input_required, and the client calls again with what its user chose
// (AppendInputRequired, ParseRetry, AppendStripped).
//
// The client is the agent's side: its answer is its own account of what a person
// did. What is unclear in it is never an approval: it is read once, strictly, and
// a member that occurs twice on the way to the choice, also in another case, makes
// the whole answer Malformed.
//
// Sources: the sections "Elicitation" of MCP 2025-06-18, 2025-11-25 and
// 2026-07-28, and "Multi Round-Trip Requests" of 2026-07-28 (SEP-2322). The clients
// of these SDKs show and answer such questions in cmd/auditproxy's tests: Go 1.8.0,
// TypeScript 1.32.2 and 2.4.0, Python 1.29.0 and 2.3.0.
//
// The files, from the top: elicitation, retry, request, question, response,
// members.
package elicitation

// A Form is how a client can be asked.
type Form uint8

// The forms.
const (
	None          Form = iota
	Request            // by a request: 2025-06-18 and 2025-11-25
	InputRequired      // by the result of the call: 2026-07-28
)

// Asks reports whether a call of this method can be asked about. Since 2026-07-28
// a server may ask in the result of three methods only ("Supported Requests" of
// "Multi Round-Trip Requests").
func (f Form) Asks(method string) bool {
	switch f {
	case Request:
		return true
	case InputRequired:
		return method == "tools/call" || method == "prompts/get" || method == "resources/read"
	}
	return false
}

// Support returns how a client can be asked that speaks a version of the protocol
// and declares capabilities, which is JSON: the member of that name of initialize,
// or since 2026-07-28 the member io.modelcontextprotocol/clientCapabilities in the
// _meta of the call itself (MCP 2026-07-28, "RequestMetaObject": servers must not
// infer capabilities from prior requests). version is the one that the server
// answered initialize with, or the one in the same _meta.
//
// A version that is not known here is not asked: what it does with a question is
// not known either.
func Support(version string, capabilities []byte) Form {
	form := None
	switch version {
	case "2025-06-18", "2025-11-25":
		form = Request
	case "2026-07-28":
		form = InputRequired
	}
	if form == None || len(capabilities) > maxMessage {
		return None
	}
	v, ok := members(string(capabilities), "elicitation")
	if !ok {
		return None
	}
	// "For backwards compatibility, an empty capabilities object is equivalent to
	// declaring support for form mode only" (2025-11-25, "Capabilities"). Clients of
	// both modes declare {"form":{},"url":{}} in all versions.
	if v, ok = members(v[0], "form", "url"); !ok {
		return None
	}
	if isNull(v[0]) && isNull(v[1]) || isObject(v[0]) {
		return form
	}
	return None
}
