package mcpproxy

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// JSON-RPC error codes of a refusal.
const (
	codeInvalidRequest = "-32600" // JSON-RPC 2.0, section 5.1
	codeRefused        = "-31001" // outside the range that JSON-RPC reserves
)

// reasons are the explanations sent to a client, by the error type of a
// refusal.
var reasons = map[string]string{
	audit.ErrAmbiguousRequest:    "its bytes can be read in more than one way",
	audit.ErrApprovalUnavailable: "it needs an approval, which cannot be recorded",
	audit.ErrAuditFailure:        "it cannot be recorded: the audit trail takes no more lines",
}

// A refusal is why a frame was not forwarded.
type refusal struct {
	reason string // "" for the rest of a refused line
	answer string // the whole answer instead, "" for none
}

// appendRefusal appends the answers to the requests of a frame that was not
// forwarded, one line: an array if the frame was a batch.
func appendRefusal(dst []byte, f *wire.Frame, why refusal) []byte {
	batch := f.Anomalies&wire.Batch != 0
	from := len(dst)
	for i := range f.Messages {
		m := &f.Messages[i]
		n := len(dst)
		if n > from {
			if batch {
				dst = append(dst, ',')
			} else {
				dst = append(dst, '\n')
			}
		}
		before := len(dst)
		if dst = appendAnswer(dst, m, why); len(dst) == before {
			dst = dst[:n] // a notification: no answer, no separator
		}
	}
	if len(dst) == from {
		return dst
	}
	if batch {
		dst = append(slices.Insert(dst, from, '['), ']')
	}
	return append(dst, '\n')
}

func appendAnswer(dst []byte, m *wire.Message, why refusal) []byte {
	switch {
	case m.State == wire.Begun:
		return dst // answered at its end, which may have the id
	case m.State == wire.Opaque || m.ID == nil && m.Method == nil && !m.HasResult && !m.HasError:
		return appendError(dst, []byte("null"), codeInvalidRequest, why, m.Anomalies)
	case m.ID == nil || m.HasResult || m.HasError:
		return dst
	case !jsontext.Valid(m.ID):
		return appendError(dst, []byte("null"), codeInvalidRequest, why, m.Anomalies)
	case m.Method == nil || string(jsontext.AppendUnquote(nil, m.Method)) != "tools/call" || asksForTask(m):
		return appendError(dst, m.ID, codeRefused, why, m.Anomalies)
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, m.ID...)
	dst = append(dst, `,"result":{`...)
	if wire.Member(m.Meta, metaProtocolVersion) != nil {
		// Required since 2026-07-28 ("Result"), whose requests name their version.
		// Its clients take no result without it.
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(dst, `"content":[{"type":"text","text":`...)
	dst = jsontext.AppendQuote(dst, why.sentence(m.Anomalies))
	return append(dst, `}],"isError":true}}`...)
}

// asksForTask reports whether a call asks for a task (MCP 2025-11-25). Its client takes
// no result but a task, and shows an error. A client of 2026-07-28 leaves that to the
// server and takes any result.
func asksForTask(m *wire.Message) bool {
	task := wire.Member(m.Params, "task")
	return len(task) > 0 && task[0] == '{' && wire.Member(m.Meta, metaProtocolVersion) == nil
}

func appendError(dst, id []byte, code string, why refusal, a wire.Anomaly) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"error":{"code":`...)
	dst = append(dst, code...)
	dst = append(dst, `,"message":`...)
	dst = jsontext.AppendQuote(dst, why.sentence(a))
	return append(dst, `}}`...)
}

func (r refusal) sentence(a wire.Anomaly) string {
	if r.answer != "" {
		return r.answer
	}
	if r.reason == "" {
		r.reason = "it is part of a refused line"
	}
	s := "auditproxy refused this request: " + r.reason
	if words := (a & wire.Ambiguous).Append(nil); len(words) > 0 {
		s += " (" + strings.Join(words, ", ") + ")"
	}
	return s
}
