package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// An Approval says how people are asked about calls. With its zero value nobody
// is asked, and calls that need an approval are refused.
type Approval struct {
	Channels  []string      // ChannelClient, ChannelFiles: the first that can ask is used
	Files     *approval.Dir // of ChannelFiles; nil: it cannot ask
	Timeout   time.Duration // for a person's answer; 0: 120 s
	ServerKey string        // says which server a lasting approval is for, see approval.Question
}

// The channels.
const (
	ChannelClient = "client" // a question in the MCP client, which may answer it itself
	ChannelFiles  = "files"  // a file, and another that the person owns
)

const (
	maxWaiting      = 100                    // calls that wait for a person
	maxWaitingBytes = 64 << 20               // of their frames
	answerTime      = 120 * time.Second      // the default of Approval.Timeout
	pollEvery       = 200 * time.Millisecond // for an answer in a file, while a call waits
)

func (a Approval) asks() bool {
	return slices.ContainsFunc(a.Channels, func(name string) bool { return name == ChannelClient || name == ChannelFiles && a.Files != nil })
}

// approvals are the frames that wait until a person has answered, and the
// answers that hold for later calls. run asks and applies the answers, so that
// the directions wait for neither people nor files.
type approvals struct {
	s    *session
	out  *output
	cfg  Approval
	wake chan struct{} // has run look at what is new
	pass chan struct{} // has forwardAll look at what is approved
	ids  string        // what the ids of requests to the client start with; nobody else knows it before

	// mu is never held while files are read or bytes forwarded. It is taken after
	// input.mu and before session.mu.
	mu      sync.Mutex
	waiting []*waiting           // oldest first
	calls   int                  // in waiting
	bytes   int                  // in waiting
	over    []*waiting           // that have a question to withdraw
	asked   uint64               // requests to the client
	results map[string]*result   // by id of the question: calls that were answered by a question
	ended   bool                 // no frame waits from here on
	session map[string][]granted // by tool
	always  map[string]bool      // by tool: those with a lasting approval, by the records
	told    string               // the last problem with lasting approvals that was logged
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

// operation is what a person is asked about.
type operation struct {
	tool       string
	detections []string
}

func newApprovals(s *session, out *output, cfg Approval) *approvals {
	if cfg.Timeout == 0 {
		cfg.Timeout = answerTime
	}
	return &approvals{s: s, out: out, cfg: cfg, wake: make(chan struct{}, 1), pass: make(chan struct{}, 1), ids: "auditproxy-" + rand.Text() + "-",
		session: make(map[string][]granted), always: make(map[string]bool), results: make(map[string]*result)}
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

func (w *waiting) calls() (n int) {
	for i := range w.items {
		if w.items[i].isCall() {
			n++
		}
	}
	return n
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

// cancel ends the wait of the call with this id, and with it that of its frame.
// It reports whether a call waited. Only fromClient calls it.
func (a *approvals) cancel(id []byte) bool {
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
		return true
	}
	return false
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
