package mcpproxy

import (
	"bytes"
	"strconv"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// finish writes the records of the calls that the server answered, and with
// wait waits until they are safe.
func (s *session) finish(answers []wire.Answer, wait bool) {
	if len(answers) == 0 {
		return
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return // session_end is the last line
	}
	now := time.Now()
	s.lines = s.lines[:0]
	for i := range answers {
		s.answer(&answers[i], now)
		s.spill()
	}
	pos := s.appendFinal(s.lines)
	unrecorded, refunds := s.unrecorded, s.refunds
	s.unrecorded, s.refunds = nil, nil
	s.mu.Unlock()
	if counters := s.gate.Load().Counters; len(refunds) > 0 && counters != nil {
		// A crash before this leaves the counts as they are.
		if err := counters.Release(refunds); err != nil {
			s.cfg.Log.Warn("policy counter not given back", zap.Error(err))
		}
	}
	if !wait {
		return
	}
	for _, e := range unrecorded {
		pos = s.awaitRecord(e)
	}
	if pos > 0 {
		s.cfg.Journal.Wait(pos, 0)
	}
}

// awaitRecord waits for the record of a call that was answered before its end,
// and returns how far the journal is written then. It does not wait longer than
// for any answer: a server may not read the rest before more of its output is
// read.
func (s *session) awaitRecord(e *early) int64 {
	limit := time.NewTimer(openAfter)
	defer limit.Stop()
	select {
	case <-e.recorded:
	case <-limit.C:
		s.concludeParts(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pos
}

// concludeParts ends the call that has this answer, or with nil all that were
// answered before their end, without their rest. A rest that still comes reads
// as a separate call.
func (s *session) concludeParts(e *early) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.noRest = s.noRest || e == nil
	now := time.Now()
	s.lines = s.lines[:0]
	for c, newer := s.open.oldest, (*call)(nil); c != nil; c = newer {
		newer = c.newer
		if c.answered() && (e == nil || c.early == e) {
			s.giveUp(c, audit.ErrNoResponse, now)
		}
	}
	s.appendFinal(s.lines)
}

func (s *session) answer(a *wire.Answer, now time.Time) {
	if a.Method != nil || !a.HasResult && !a.HasError {
		return
	}
	id := a.ID
	c := s.open.find(id)
	if c == nil && (len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || '9' < id[0])) {
		id = noID // the server could not read the request, or its id
		c = s.open.find(id)
	}
	if c != nil && s.open.others > 0 {
		c = s.pick(id, c, a)
	}
	switch {
	case c == nil:
		s.stray(id, a, now)
		return
	case a.Loose:
		s.loosely(c, a, now)
		return
	case c.alias != nil && c.class == recorded:
		s.remember(c, now) // a second answer, by the other id
	}
	if c.class == recorded {
		s.answered.add(c)
	}
	s.open.remove(c)
	if c.class != recorded {
		if c.class.wanted() {
			s.wanted.Add(-1)
			s.learn(c, a, now)
		}
		s.release(c)
		return
	}
	c.rec.ResultBytes = a.Bytes
	outcome, errorType := s.judge(c, a)
	if errorType == audit.ErrJSONRPC { // not of a call that the client cancelled
		s.refunds = append(s.refunds, c.refunds...)
	}
	if c.part && !s.noRest {
		// Its record waits for the rest of the call. It stays in the order of
		// arrival, where nothing finds it by its id.
		c.early = earlyOf(c, outcome, errorType, now)
		s.unrecorded = append(s.unrecorded, c.early)
		s.open.add(c, nil)
		return
	}
	s.conclude(c, outcome, errorType, now)
	s.release(c)
}

// loosely keeps an answer that most clients cannot read. It ends its request only
// if no other comes: a server must not close a call with words that the client
// skips.
func (s *session) loosely(c *call, a *wire.Answer, now time.Time) {
	switch {
	case c.class.wanted():
		s.learn(c, a, now)
	case c.class == recorded && c.early == nil:
		r, task := &c.rec, c.rec.Digest
		r.ResultBytes = a.Bytes
		outcome, errorType := s.judge(c, a)
		c.early = earlyOf(c, outcome, errorType, now)
		c.early.loose = true
		r.ResultBytes, r.ErrorCode, r.ErrorDigest, r.ResultType, r.Digest = 0, nil, "", "", task
		s.appendAnomaly(r.CallNo, a, "loose_answer", now)
	}
}

// stray records an answer that ends no open request. One to a call that has its
// record names it: the client may take the second of two answers, or one that
// comes late. Of answers to nothing that is known, the first, second, fourth and
// so on have a record, because a server can send any number of them.
func (s *session) stray(id []byte, a *wire.Answer, now time.Time) {
	callNo := s.expired.find(id)
	if callNo == 0 {
		callNo = s.answered.find(&s.open, id)
	}
	word := "late_answer"
	if callNo == 0 {
		switch {
		case s.open.nameless > 0 || string(id) == string(noID):
			return // to bytes whose id only the server could read, or no reader
		case s.unlisted > 0:
			s.unlisted--
			return // to a call that a gap counts
		}
		if s.unasked++; s.unasked&(s.unasked-1) != 0 {
			return
		}
		word = "unasked_answer"
	}
	s.appendAnomaly(callNo, a, word, now)
}

// appendAnomaly appends a record about an answer. callNo is 0 if it is to no call
// that is known.
func (s *session) appendAnomaly(callNo uint64, a *wire.Answer, word string, now time.Time) {
	r := s.record(audit.KindAnomaly, now)
	r.CallNo, r.At, r.Bytes, r.Anomalies = callNo, a.Off, a.Bytes, []string{word}
	s.lines = audit.AppendRecord(s.lines, &r)
}

// pick returns the request of an answer whose id several open requests may
// have; c is the oldest. A ping that has the id of a call must not end the
// call: where both are open, the content of the answer decides. The call then
// has the anomaly id_reused, as this can be wrong.
func (s *session) pick(id []byte, c *call, a *wire.Answer) *call {
	of, other := s.open.findOf(id, onlyCalls), s.open.findOf(id, onlyOthers)
	switch {
	case of == nil || other == nil:
		return c
	case answersCall(of.rec.Method, other.class, a):
		return of
	}
	return other
}

// answersCall reports whether an answer is one to a call of this method rather
// than to a request that is not recorded. Unrecorded requests mostly have empty
// results; one whose method the server does not know has the error for that, and a
// notification with an id is answered with any error.
func answersCall(method string, other class, a *wire.Answer) bool {
	switch {
	case other == notified || other == cancelled:
		return !a.HasError
	case a.HasError:
		return string(a.Code) != "-32601" // JSON-RPC 2.0, section 5.1: method not found
	}
	if a.Raw == nil || a.IsError || a.Task || a.ResultType != nil {
		return true
	}
	result := wire.Member(a.Raw, "result")
	has := func(name string) bool { return wire.Member(result, name) != nil }
	if method == "tools/call" {
		return has("content") || has("structuredContent")
	}
	return !has("tools") && !has("protocolVersion") && len(bytes.Trim(result, "{} \t\r")) > 0
}

// judge reads an answer as the design's table of outcomes has it.
func (s *session) judge(c *call, a *wire.Answer) (audit.Outcome, string) {
	r := &c.rec
	if a.HasError {
		r.ErrorCode = errorCode(a.Code)
		if a.Message != nil {
			r.ErrorDigest = s.digest(c, jsontext.AppendUnquote(nil, a.Message))
		}
		if r.CancelRequested {
			return audit.OutcomeError, audit.ErrCancelled
		}
		return audit.OutcomeError, audit.ErrJSONRPC
	}
	switch {
	case a.Task || string(a.ResultType) == `"task"`: // MCP 2025-11-25; the tasks extension of 2026-07-28
		r.ResultType = "task"
		result := wire.Member(a.Raw, "result")
		if a.Task {
			result = wire.Member(result, "task")
		}
		c.fillTask(s.red, result)
	case string(a.ResultType) == `"input_required"`:
		r.ResultType = "input_required"
	}
	if !a.IsError {
		return audit.OutcomeOK, ""
	}
	if text := contentText(a.Raw); text != nil {
		r.ErrorDigest = s.digest(c, text)
	}
	if a.ErrorType != nil {
		// The bytes around a removed credential are not well-formed.
		if t := clean(s.red, a.ErrorType); audit.ErrorTypeOK(t) && !audit.OwnErrorType(t) {
			return audit.OutcomeError, t
		}
	}
	return audit.OutcomeError, audit.ErrToolError
}

func (s *session) digest(c *call, text []byte) audit.JSON {
	from := len(c.buf)
	c.buf = s.red.AppendDigest(c.buf, redact.ErrorText, text)
	return c.json(from)
}

func errorCode(raw []byte) *int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// contentText is the text of a failed tool's result: its text blocks, a line
// feed between them. nil for none.
func contentText(answer []byte) (text []byte) {
	content := wire.Member(wire.Member(answer, "result"), "content")
	for block := range jsontext.Lenient(content).Elements() {
		if t := wire.Member(block, "text"); len(t) > 0 && t[0] == '"' {
			if text != nil {
				text = append(text, '\n')
			}
			text = jsontext.AppendUnquote(text, t)
		}
	}
	return text
}
