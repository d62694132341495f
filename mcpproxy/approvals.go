package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// approvals are the frames that wait until a person has answered, and the
// answers that hold for later calls. run asks and applies the answers, so that
// the directions wait for neither people nor files.
type approvals struct {
	s    *session
	out  *output
	cfg  Approval
	wake chan struct{} // has run look at what is new
	pass chan struct{} // has forwardAll look at what is approved
	ids  string        // the start of the ids of requests to the client; others learn it from the first

	// mu is never held while files are read or bytes forwarded. It is taken after
	// input.mu and before session.mu.
	mu      sync.Mutex
	waiting []*waiting         // oldest first
	calls   int                // in waiting
	bytes   int                // in waiting
	over    []*waiting         // that have a question to withdraw
	asked   uint64             // requests to the client
	results map[string]*result // by id of the question: calls that were answered by a question
	ended   bool               // no frame waits from here on
	session map[about][]granted
	always  map[string]bool // by tool: those with a lasting approval, by the records
	logged  string          // the last problem with lasting approvals that was logged
}

// granted is an approval that holds for later calls.
type granted struct {
	audit.Approval
	detections []string
	level      string // of its risk
	while      string // the tool that must be always allowed; "" for none
}

const (
	maxWaiting      = 100                    // calls that wait for a person
	maxWaitingBytes = 64 << 20               // of their frames
	answerTime      = 120 * time.Second      // the default of Approval.Timeout
	pollEvery       = 200 * time.Millisecond // for an answer in a file, while a call waits
)

// Texts of refusals, after policy.Denied's prefix.
const (
	deniedText      = "A person was asked about this call and denied it."
	dismissedText   = "A person was asked about this call and dismissed the question."
	lateText        = "Nobody approved this call in time."
	stuckText       = "A person approved this call, but it could not be forwarded in time."
	unavailableText = "This call needs the approval of a person, and nobody can be asked."
	cancelledText   = "A call of this batch was cancelled while the batch waited for an approval."
	endedText       = "The session ended while this call waited for an approval."
	unrecordedText  = "The approval cannot be recorded."
)

func newApprovals(s *session, out *output, cfg Approval) *approvals {
	if cfg.Timeout == 0 {
		cfg.Timeout = answerTime
	}
	return &approvals{s: s, out: out, cfg: cfg, wake: make(chan struct{}, 1), pass: make(chan struct{}, 1), ids: "auditproxy-" + rand.Text() + "-",
		session: make(map[about][]granted), always: make(map[string]bool), results: make(map[string]*result)}
}

// room reports whether a frame may wait.
func (a *approvals) room(calls, bytes int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls+calls <= maxWaiting && a.bytes+bytes <= maxWaitingBytes
}

// any reports whether a frame waits.
func (a *approvals) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) > 0
}

// add has a frame wait. Its calls have their intents in the journal; a crash
// from here until it is forwarded leaves them as calls whose outcome is unknown,
// which no server has seen.
func (a *approvals) add(w *waiting) {
	a.mu.Lock()
	ended := a.ended
	if !ended {
		a.waiting = append(a.waiting, w)
		a.calls += w.calls()
		a.bytes += len(w.bytes)
	}
	a.mu.Unlock()
	if ended {
		a.refuse(w, audit.Approval{Outcome: "cancelled"}, audit.ErrCancelled, endedText)
		return
	}
	signal(a.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take ends the wait of a frame, and reports whether it waited. Who takes it
// forwards or refuses it.
func (a *approvals) take(w *waiting) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, w)
	if i < 0 {
		return false
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	a.calls -= w.calls()
	a.bytes -= len(w.bytes)
	if w.channel != "" {
		a.over = append(a.over, w)
	}
	return true
}

// cancel ends the wait of the calls with this id, and with it that of their frames: of
// two with one id, which was meant is unknown. It reports whether one waited. Only
// fromClient calls it.
func (a *approvals) cancel(id []byte) (waited bool) {
	a.mu.Lock()
	list := slices.Clone(a.waiting)
	a.mu.Unlock()
	for _, w := range list {
		named := func(m wire.Message) bool { return m.ID != nil && sameID(m.ID, id) }
		if !slices.ContainsFunc(w.frame.Messages, named) || !a.take(w) {
			continue
		}
		w.frame.Messages = slices.DeleteFunc(w.frame.Messages, named) // who cancels wants no answer
		a.refuse(w, audit.Approval{Outcome: "cancelled"}, audit.ErrCancelled, cancelledText)
		signal(a.wake)
		waited = true
	}
	return waited
}

// sameID reports whether a cancel of one id means the request with the other.
func sameID(of, cancel []byte) bool {
	for m := wire.ExactID; m <= wire.IntID; m++ {
		if k := wire.AppendIDKey(nil, of, m, false); len(k) > 0 && bytes.Equal(k, wire.AppendIDKey(nil, cancel, m, true)) {
			return true
		}
	}
	return false
}

// end refuses all that waits: the client's input or the session has ended.
func (a *approvals) end() {
	a.mu.Lock()
	a.ended = true
	list := slices.Clone(a.waiting)
	a.mu.Unlock()
	for _, w := range list {
		if a.take(w) {
			a.refuse(w, audit.Approval{Outcome: "cancelled"}, audit.ErrCancelled, endedText)
		}
	}
	signal(a.wake)
}

// turnDown ends the wait of a frame that is not approved.
func (a *approvals) turnDown(w *waiting, outcome, errorType, text string, answer *approval.Answer) {
	if a.take(w) {
		a.refuse(w, w.outcome(outcome, answer), errorType, text)
	}
}

// refuse records that a frame was not approved, then answers its requests. The
// caller has taken it.
func (a *approvals) refuse(w *waiting, v audit.Approval, errorType, text string) {
	if v.Outcome == "cancelled" && v.Channel == "" {
		v = w.outcome("cancelled", nil)
	}
	a.s.turnDown(w, v, errorType, time.Now())
	a.giveBack(w)
	a.out.reply(appendRefusal(nil, &w.frame, refusal{answer: (&policy.Decision{Reason: text}).Denied()}))
}

// giveBack takes back what calls that are not forwarded added to counters.
func (a *approvals) giveBack(w *waiting) {
	var held []policy.Counter
	for i := range w.items {
		held = append(held, w.items[i].held...)
	}
	if len(held) > 0 {
		if err := w.counters.Release(held); err != nil {
			a.s.cfg.Log.Warn("policy counter not given back", zap.Error(err))
		}
	}
}

// askByResult ends a call with the question about it. Its intent is in the
// journal: a crash before the answer leaves it as a call whose outcome is unknown,
// which no server has seen.
func (a *approvals) askByResult(w *waiting) {
	r := w.result
	r.about, r.shown, r.since, r.until = w.about, w.question, w.since, w.until
	w.channel = ChannelClient
	a.mu.Lock()
	maps.DeleteFunc(a.results, func(_ string, old *result) bool { return !w.since.Before(old.until) })
	full := len(a.results) >= maxWaiting || a.ended
	if !full {
		a.results[w.question.ID] = r
	}
	a.mu.Unlock()
	if full {
		a.refuse(w, w.outcome("unavailable", nil), audit.ErrApprovalUnavailable, unavailableText)
		return
	}
	a.s.concludeAsked(w, time.Now())
	a.giveBack(w)
	a.out.reply(elicitation.AppendInputRequired(nil, r.id, &w.question))
}
