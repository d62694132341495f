package elicitation

import "auditproxy/mcpproxy/approval"

// An Outcome is what a client did with a question.
type Outcome uint8

// The outcomes. The zero value approves nothing.
const (
	Malformed   Outcome = iota // it cannot be read, or in more than one way
	Answered                   // the answer counts, also as a denial
	Cancelled                  // the person dismissed the question without a choice
	Unsupported                // the client refused to ask: a JSON-RPC error
)

// The choices, as a person sees them. There are no names apart from the values:
// each version writes those differently (2025-11-25, "Enum Schema").
const (
	choiceOnce    = "allow once"
	choiceSession = "allow for this session"
	choiceDeny    = "deny"
)

// The member of the form that has the choice.
const decision = "decision"

// by is who answered, in a record: nobody verified that it was a person.
const by = "client"

// ParseResponse reads a client's response to a request of AppendRequest: the
// whole message, whose id the caller has compared. The answer approves only with
// Answered.
//
// "accept" without a readable choice is a denial: so says a client that shows
// two buttons and no form.
func ParseResponse(message []byte) (approval.Answer, Outcome) {
	denied := approval.Answer{By: by}
	if len(message) > maxMessage {
		return denied, Malformed
	}
	v, ok := members(string(message), "jsonrpc", "id", "method", "result", "error")
	if !ok {
		return denied, Malformed
	}
	version := text(v[0])
	id, method, result, failure := v[1], v[2], v[3], v[4]
	switch {
	case version != "2.0", isNull(id), method != "", result != "" && failure != "":
		return denied, Malformed
	case isObject(failure):
		return denied, Unsupported
	}
	return parseResult(result)
}

// parseResult reads an ElicitResult ("Response Actions" of all versions).
func parseResult(result string) (approval.Answer, Outcome) {
	denied := approval.Answer{By: by}
	v, ok := members(result, "action", "content")
	if !ok {
		return denied, Malformed
	}
	switch action := text(v[0]); action {
	case "accept":
	case "decline":
		return denied, Answered
	case "cancel":
		return denied, Cancelled
	default:
		return denied, Malformed
	}
	if !isObject(v[1]) {
		return denied, Answered
	}
	if v, ok = members(v[1], decision); !ok {
		return denied, Malformed
	}
	switch choice := text(v[0]); choice {
	case choiceOnce:
		return approval.Answer{Approved: true, Scope: approval.Once, By: by}, Answered
	case choiceSession:
		return approval.Answer{Approved: true, Scope: approval.Session, By: by}, Answered
	}
	return denied, Answered
}
