package elicitation

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/jsontext"
)

// The members of a call's params that answer an input_required (MCP 2026-07-28,
// "InputResponseRequestParams"), and the one that differs between a call and its
// repetition: it has the progress token.
const (
	inputResponses = "inputResponses"
	requestState   = "requestState"
	meta           = "_meta"
)

// key is the proxy's own in inputRequests. It is alone there: a question is the
// whole result of its call.
const key = "auditproxy"

// stateOf is the requestState of a question, which the client repeats exactly. It
// says whose question it is, so that of two proxies in a row each takes the answer
// to its own. It is no proof: the caller knows which questions it asked.
func stateOf(session, id string) string { return prefixOf(session) + id }

func prefixOf(session string) string { return "auditproxy:" + session + ":" }

// AppendInputRequired appends the answer to a call that asks q, one line with its
// line feed, for a client that Support returned InputRequired for. requestID is
// the call's id, strict JSON on one line. q.SessionID and q.ID name the question
// in the client's repetition of the call.
func AppendInputRequired(dst, requestID []byte, q *approval.Question) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, requestID...)
	dst = append(dst, `,"result":{"resultType":"input_required","inputRequests":{"`+key+`":{`...)
	dst = appendElicitation(dst, true, q)
	dst = append(dst, `}},"`+requestState+`":`...)
	dst = jsontext.AppendQuote(dst, stateOf(q.SessionID, q.ID))
	return append(dst, "}}\n"...)
}

// ParseRetry reads the params of a call for an answer to a question of the
// session. has reports whether there is one; id is then the question's, which the
// caller must have asked, not yet had answered, and about a call with the same
// Subject. The answer approves only with Answered.
//
// A client answers what the last result asked for and nothing else ("Client
// Requirements"), which was the question alone: further entries of inputResponses
// are Malformed. Nobody was asked about them.
func ParseRetry(params []byte, session string) (id string, a approval.Answer, o Outcome, has bool) {
	denied := approval.Answer{By: by}
	v, ok := members(string(params), inputResponses, requestState)
	if !ok {
		return "", denied, Malformed, false
	}
	state := text(v[1])
	if id, has = strings.CutPrefix(state, prefixOf(session)); !has {
		return "", denied, Malformed, false
	}
	own, others := "", 0
	err := jsontext.Members(v[0], func(name, value string) bool {
		if jsontext.Unquote(name) == key && own == "" {
			own = value
		} else {
			others++
		}
		return true
	})
	if err != nil || others > 0 || len(own) > maxMessage {
		return id, denied, Malformed, true
	}
	a, o = parseResult(own)
	return id, a, o, true
}

// maxSubject bounds the members of a call's params. The protocol has six.
const maxSubject = 32

// Subject returns a digest of what a call asks for. It is the same for a call and
// its repetition: a client repeats the call as it was, with another _meta and with
// the members that answer. It reports false for params that cannot be read in one
// way only, or that have more than 32 members.
func Subject(method string, params []byte) (sum [sha256.Size]byte, ok bool) {
	names, list := []string{meta, inputResponses, requestState}, []string{}
	clear := true
	err := jsontext.Members(string(params), func(name, value string) bool {
		name = jsontext.Unquote(name)
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		switch {
		case i < 0:
			names = append(names, name)
			list = append(list, string(binary.AppendUvarint(nil, uint64(len(name))))+name+value)
		case i > 2 || names[i] != name:
			clear = false
		}
		clear = clear && len(list) <= maxSubject
		return clear
	})
	if err != nil || !clear {
		return sum, false
	}
	slices.Sort(list) // a client may write the members in another order
	h := sha256.New()
	for _, entry := range append(list, method) {
		h.Write(binary.AppendUvarint(nil, uint64(len(entry))))
		h.Write([]byte(entry))
	}
	return [sha256.Size]byte(h.Sum(nil)), true
}

// A Carried is what a call has for the server: the answers to what the server
// asked before, and its state. The client does not repeat them together with the
// answer to the proxy's question; the proxy keeps them as long as its question.
type Carried struct{ inputResponses, requestState string }

// maxCarried bounds a Carried, in bytes.
const maxCarried = 64 << 10

// CarriedBy returns what the params of a call have for the server, without what
// was for the proxy itself. It reports false where there is too much to keep, more
// than 64 KiB, or where the params can be read in more than one way: the client
// cannot be asked about this call without loss.
func CarriedBy(params []byte, session string) (c Carried, ok bool) {
	v, ok := members(string(params), inputResponses, requestState)
	if !ok || len(v[0])+len(v[1]) > maxCarried {
		return Carried{}, false
	}
	if strings.HasPrefix(text(v[1]), prefixOf(session)) {
		return Carried{}, true // an old answer: it never reaches the server
	}
	return Carried{inputResponses: strings.Clone(v[0]), requestState: strings.Clone(v[1])}, true
}

// AppendStripped appends a client's repetition of a call as the server gets it:
// frame with the inputResponses and requestState that the call had when the
// question was asked, which are c, in place of those for the proxy. Every other
// byte is unchanged. It reports false, and appends nothing, for a frame that is
// not one message with such params, and that only one reading.
func AppendStripped(dst, frame []byte, c Carried) ([]byte, bool) {
	s := jsontext.Strict(frame)
	if v, ok := members(string(s), "params", "method", "id"); !ok || !isObject(v[0]) || v[1] == "" || v[2] == "" {
		return dst, false
	} else if v, ok = members(v[0], inputResponses, requestState); !ok || v[0] == "" || v[1] == "" {
		return dst, false
	}
	// The frame was read whole above: no index below is -1.
	at, more := s.First(s.Start())
	for more {
		nameEnd, from := s.Name(at)
		to := s.Skip(from, 1)
		if jsontext.Unquote(string(s[at:nameEnd])) == "params" {
			dst = append(dst, s[:from]...)
			dst = appendParams(dst, s, from, c)
			return append(dst, s[to:]...), true
		}
		at, more = s.Next(to, '}')
	}
	return dst, false
}

// appendParams appends the object at s[i]. A member that is left out takes the
// comma before it along, the first one that after it.
func appendParams(dst []byte, s jsontext.Strict, i int, c Carried) []byte {
	at, more := s.First(i)
	dst = append(dst, s[i:at]...)
	end, kept := at, false // of the member before, whether there is one that stays
	for more {
		nameEnd, from := s.Name(at)
		to := s.Skip(from, 2)
		value, stays := string(s[from:to]), true
		switch jsontext.Unquote(string(s[at:nameEnd])) {
		case inputResponses:
			value, stays = c.inputResponses, c.inputResponses != ""
		case requestState:
			value, stays = c.requestState, c.requestState != ""
		}
		if stays {
			if kept {
				dst = append(dst, s[end:at]...)
			}
			dst = append(append(dst, s[at:from]...), value...)
			kept = true
		}
		end = to
		at, more = s.Next(to, '}')
	}
	return append(dst, s[end:at]...)
}
