package elicitation

import (
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/jsontext"
)

// AppendRequest appends the request that asks q of a client that Support returned
// Request for, one line with its line feed. No server and no client may use id.
func AppendRequest(dst []byte, version, id string, q *approval.Question) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = jsontext.AppendQuote(dst, id)
	dst = append(dst, ',')
	dst = appendElicitation(dst, version != "2025-06-18", q)
	return append(dst, "}\n"...)
}

// AppendCancel appends the notification that takes back the request with this id,
// one line with its line feed ("Cancellation" of both versions). reason is shown
// to people.
//
// A response can come all the same, so the caller must know the id for longer: the
// client of the Go SDK 1.8.0 sends the answer or an error, that of the Python SDK
// 1.29.0 reads nothing of its server, this notification included, until its user
// has answered. Those of TypeScript 1.32.2 and 2.4.0 and of Python 2.3.0 send
// nothing.
func AppendCancel(dst []byte, id, reason string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	dst = jsontext.AppendQuote(dst, id)
	dst = append(dst, `,"reason":`...)
	dst = jsontext.AppendQuote(dst, reason)
	return append(dst, "}}\n"...)
}

// appendElicitation appends the members method and params of elicitation/create.
//
// 2025-06-18 has no member mode, and no default of a choice. The denial is the
// first choice and the default, because forms come with one of these selected.
func appendElicitation(dst []byte, modes bool, q *approval.Question) []byte {
	dst = append(dst, `"method":"elicitation/create","params":{`...)
	if modes {
		dst = append(dst, `"mode":"form",`...)
	}
	dst = append(dst, `"message":`...)
	dst = jsontext.AppendQuote(dst, string(appendMessage(nil, q)))
	dst = append(dst, `,"requestedSchema":{"type":"object","properties":{"`+decision+`":{"type":"string","title":"Decision",`...)
	choices := `"` + choiceDeny + `","` + choiceOnce + `"`
	if len(q.Calls)+q.More == 1 { // of several calls, not all may be shown
		choices += `,"` + choiceSession + `"`
		dst = append(dst, `"description":"\"`+choiceSession+`\" also allows later calls of the same tool, unless something else is detected in them or their risk is higher.",`...)
	}
	dst = append(dst, `"enum":[`+choices+`]`...)
	if modes {
		dst = append(dst, `,"default":"`+choiceDeny+`"`...)
	}
	return append(dst, `}},"required":["`+decision+`"]}}`...)
}
