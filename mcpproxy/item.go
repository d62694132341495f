package mcpproxy

import (
	"crypto/sha256"
	"time"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// item is a call, a cancellation or a response in the frames of one read.
type item struct {
	frame   int
	call    *call            // a request
	id      []byte           // of the call, as on the wire
	variant []byte           // its other id, see wire.Message.VariantID
	tool    string           // its tool's name as the server has it
	off     int64            // of the call in the client's stream
	begun   bool             // an oversize call whose end is still to come
	earlier earlierCall      // the begin of the oversize call that this is the end of
	again   bool             // earlier had not ended when this was recorded
	refused string           // the error type of a refusal, "" for none
	why     string           // the answer to a refused call, "" for that of its error type
	held    []policy.Counter // what its frame added to counters
	waits   *waiting         // its frame waits for a person, nil if it does not
	ended   bool             // refused, and the final record is with the intent
	entered bool             // the call is in the table of open calls
	cancel  []byte           // the id of the call to cancel
	found   bool             // the call to cancel is in the table
	ours    []byte           // the id of the proxy's request that this is the response to
	strip   *result          // the call is the client's repetition of one, with an answer for the proxy
	open    bool             // an opaque line of which a message may become
	opaque  bool             // an answer without an id may be its answer
	line    int              // 1 + index of the item that this one continues, of the same read; 0 for none
	joined  bool             // an item of the same read continues this one and has its call
	callNo  uint64
}

// isCall reports whether the item is a request to record.
func (it *item) isCall() bool { return it.joined || it.call != nil && it.call.class == recorded }

func (it *item) begin() earlierCall {
	return earlierCall{it.call, it.callNo, it.refused, it.call != nil && it.call.class != recorded}
}

// earlierCall is a call whose end is still to come. It may be answered before that,
// and its memory be used for another call.
type earlierCall struct {
	call    *call
	callNo  uint64
	refused string // its error type
	other   bool   // it is a request without a record
}

// waiting is a frame that waits. Its first owner is fromClient, then run.
type waiting struct {
	question approval.Question
	about    []operation
	result   *result    // the question is the call's result; nil: it is asked about while it waits
	frame    wire.Frame // what the answers to its requests need; a copy, without its bytes
	bytes    []byte     // a copy
	items    []item
	counters policy.Counters
	since    time.Time
	until    time.Time
	tried    int  // channels that cannot ask; run's
	unread   bool // it is logged that its answer cannot be read; run's

	// approvals.mu guards these while the frame waits.
	channel  string          // that was asked, "" before
	request  string          // the id of the request to the client
	response []byte          // the client's to that
	approved *audit.Approval // it waits for the end of the client's line, and for the server to read
}

func (w *waiting) calls() (n int) {
	for i := range w.items {
		if w.items[i].isCall() {
			n++
		}
	}
	return n
}

// outcome is the member approval of the frame's calls.
func (w *waiting) outcome(outcome string, answer *approval.Answer) audit.Approval {
	v := audit.Approval{Outcome: outcome, Channel: w.channel, Request: w.question.ID, WaitMS: time.Since(w.since).Milliseconds()}
	if answer != nil {
		v.By, v.User = answer.By, answer.User
		if v.By == "" {
			v.By = answer.User
		}
		if answer.Approved {
			v.Scope = string(answer.Scope)
		}
	}
	return v
}

// operation is what a person is asked about.
type operation struct {
	about
	detections []string
	level      string // of its risk
}

// about is what an approval that holds for longer is for.
type about struct {
	tool string
	// of is what shows it to a person, if that is not a call of the tool itself: the
	// batch tool whose arguments have the operation, or the method that is judged as a
	// tool of that name.
	of string
}

// inner reports whether the tool is another one than what shows it.
func (a about) inner() bool { return a.of != "" && a.of != a.tool }

// result is a call whose result is the question about it: the client asks its
// user and repeats the call with the answer (MCP 2026-07-28, "Multi Round-Trip
// Requests"). The repetition is a call of its own.
type result struct {
	subject [sha256.Size]byte // of the call; it must be repeated as it was
	about   []operation       // what the question was about
	shown   approval.Question
	carried elicitation.Carried
	id      []byte // of the request, as on the wire
	since   time.Time
	until   time.Time

	stripped []byte // of a repetition: what the server gets
}
