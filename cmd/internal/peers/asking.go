package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
)

// An asker is a server that asks for approval as auditproxy does. It shows how
// clients handle the messages.
type asker struct {
	journal *journal

	form  elicitation.Form
	asked *askedCall // that waits
	calls uint64
}

type askedCall struct {
	question approval.Question
	id       json.RawMessage
	params   params
	subject  [32]byte
	carried  elicitation.Carried
}

type params struct {
	ProtocolVersion string
	Capabilities    json.RawMessage
	Name            string
	Arguments       json.RawMessage
	Meta            struct {
		Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
	RequestState   string
	InputResponses json.RawMessage
}

// A message is a line of the client.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

func serveAsking(j *journal) error {
	a := &asker{journal: j}
	in := bufio.NewReader(os.Stdin)
	version := ""
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil // the client is gone
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("reading %q: %w", line, err)
		}
		var p params
		if m.Params != nil {
			if err := json.Unmarshal(m.Params, &p); err != nil {
				return fmt.Errorf("reading params of %q: %w", line, err)
			}
		}
		switch m.Method {
		case "":
			if err := a.answered(m.ID, line); err != nil {
				return err
			}
		case "initialize":
			version = p.ProtocolVersion
			a.form = elicitation.Support(version, p.Capabilities)
			reply(m.ID, `{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}`)
		case "server/discover":
			reply(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
		case "tools/list":
			reply(m.ID, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"evil","inputSchema":{"type":"object"}},{"name":"safe","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			if p.Meta.Version != "" {
				version, a.form = p.Meta.Version, elicitation.Support(p.Meta.Version, p.Meta.Capabilities)
			}
			if err := a.call(version, &m, &p, line); err != nil {
				return err
			}
		default:
			if m.ID != nil {
				reply(m.ID, `{}`)
			}
		}
	}
}

func reply(id json.RawMessage, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

func text(id json.RawMessage, s string, isError bool) {
	reply(id, fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}],"isError":%v}`, s, isError))
}

// call asks about a call, or executes one that was asked about.
//
// The tool evil asks for input of its own before: a client that repeats the call
// must bring that back too.
func (a *asker) call(version string, m *message, p *params, line []byte) error {
	a.calls++
	if _, answer, outcome, has := elicitation.ParseRetry(m.Params, "S"); has {
		return a.repeated(m, answer, outcome, line)
	}
	if a.form == elicitation.InputRequired && p.Name == "evil" && p.RequestState != "OWN" {
		reply(m.ID, `{"resultType":"input_required","inputRequests":{"own":{"method":"elicitation/create","params":{"mode":"form","message":"The server asks.","requestedSchema":{"type":"object","properties":{"decision":{"type":"string"}}}}}},"requestState":"OWN"}`)
		return nil
	}
	w := &askedCall{id: m.ID, params: *p, question: approval.Question{ID: fmt.Sprint("Q", a.calls), SessionID: "S", Server: "asking", Client: "client",
		Calls: []approval.Call{{CallNo: a.calls, Method: m.Method, Tool: p.Name}}}}
	var known, kept bool
	w.subject, known = elicitation.Subject(m.Method, m.Params)
	w.carried, kept = elicitation.CarriedBy(m.Params, "S")
	if !known || !kept {
		return fmt.Errorf("the call %s cannot be asked about", line)
	}
	switch a.form {
	case elicitation.None:
		text(m.ID, "nobody can be asked", true)
		return nil
	case elicitation.Request:
		os.Stdout.Write(elicitation.AppendRequest(nil, version, requestID(w), &w.question))
	case elicitation.InputRequired:
		os.Stdout.Write(elicitation.AppendInputRequired(nil, m.ID, &w.question))
	}
	if pipe := w.pipe(); pipe != "" {
		f, err := os.Open(pipe) // when the test opens its other end
		os.Stdout.Write(elicitation.AppendCancel(nil, requestID(w), "Nobody answered."))
		text(m.ID, "too late", true)
		if err == nil {
			io.Copy(io.Discard, f) // until the test closes its end
			f.Close()
		}
		return err
	}
	a.asked = w
	return nil
}

func requestID(w *askedCall) string { return "auditproxy-" + w.question.ID }

// pipe returns the argument of a call whose question is withdrawn: a named pipe.
// The server withdraws when its other end is opened, and reads on when that is
// closed.
func (w *askedCall) pipe() string {
	var args struct{ TakenBack string }
	if json.Unmarshal(w.params.Arguments, &args) != nil {
		return ""
	}
	return args.TakenBack
}

// answered takes the response to a request.
func (a *asker) answered(id json.RawMessage, line []byte) error {
	answer, outcome := elicitation.ParseResponse(line)
	if a.asked == nil || string(id) != `"`+requestID(a.asked)+`"` {
		return nil // too late
	}
	return a.finish(a.asked.id, answer, outcome, a.asked.params.Arguments)
}

// repeated takes a call with an answer. What it executes is what the server
// would get.
func (a *asker) repeated(m *message, answer approval.Answer, outcome elicitation.Outcome, line []byte) error {
	w := a.asked
	if w == nil {
		text(m.ID, "too late", true)
		return nil
	}
	if again, _ := elicitation.Subject(m.Method, m.Params); again != w.subject {
		return fmt.Errorf("%s is not the call that was asked about", line)
	}
	frame, ok := elicitation.AppendStripped(nil, line, w.carried)
	if !ok {
		return fmt.Errorf("%s cannot be forwarded", line)
	}
	var forwarded struct{ Params params }
	if err := json.Unmarshal(frame, &forwarded); err != nil {
		return fmt.Errorf("reading %q: %w", frame, err)
	}
	p := &forwarded.Params
	if bytes.Contains(frame, []byte("auditproxy")) || p.RequestState != w.params.RequestState || !bytes.Equal(p.InputResponses, w.params.InputResponses) {
		return fmt.Errorf("%s would be forwarded", frame)
	}
	return a.finish(m.ID, answer, outcome, p.Arguments)
}

func (a *asker) finish(id json.RawMessage, answer approval.Answer, outcome elicitation.Outcome, arguments json.RawMessage) error {
	w := a.asked
	a.asked = nil
	if !answer.Approved {
		text(id, map[elicitation.Outcome]string{elicitation.Answered: "denied", elicitation.Cancelled: "dismissed", elicitation.Unsupported: "refused", elicitation.Malformed: "malformed"}[outcome], true)
		return nil
	}
	if err := a.journal.note(w.params.Name, arguments); err != nil {
		return err
	}
	text(id, "approved: "+string(answer.Scope), false)
	return nil
}
