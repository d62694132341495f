package mcpproxy

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// run asks about what waits and applies the answers until done is closed.
func (a *approvals) run(server *input, done <-chan struct{}) {
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		a.forwardAll(server, done)
	}()
	defer func() { <-forwarded }()
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		select {
		case <-done:
			a.withdraw()
			return
		case <-a.wake:
		case <-poll.C:
		}
		a.mu.Lock()
		list := slices.Clone(a.waiting)
		a.mu.Unlock()
		for _, w := range list {
			a.look(w)
		}
		a.withdraw()
		if a.any() {
			poll.Reset(pollEvery)
		}
	}
}

// look does what is due about one frame.
func (a *approvals) look(w *waiting) {
	if w.approved != nil { // only run sets it
		// The server does not read, or the client is in the middle of a line: neither may
		// keep an approval for later.
		if !time.Now().Before(w.until) {
			a.turnDown(w, "timeout", audit.ErrApprovalTimeout, stuckText, nil)
		}
		return
	}
	// The answer to its own question comes first: one that always allows the tool is an
	// answer and an entry, and only an answer that was taken counts for who gave it.
	if w.channel != "" && a.decided(w) {
		return
	}
	if given, ok := a.has(w.about); ok { // by the answer to another question
		a.approve(w, &given)
		return
	}
	if w.channel == "" {
		if err := a.ask(w); err != nil {
			a.s.cfg.Log.Error("nobody can be asked about a call", zap.Error(err))
			a.turnDown(w, "unavailable", audit.ErrApprovalUnavailable, unavailableText, nil)
			return
		}
		a.decided(w)
	}
}

// decided ends the wait of a frame that was answered, or was not in time, and reports
// whether it did.
func (a *approvals) decided(w *waiting) bool {
	// What the proxy sees too late does not count, whenever it was given.
	if !time.Now().Before(w.until) {
		a.turnDown(w, "timeout", audit.ErrApprovalTimeout, lateText, nil)
		return true
	}
	answer, how := a.answer(w)
	switch {
	case how == elicitation.Cancelled:
		a.turnDown(w, "cancelled", audit.ErrCancelled, dismissedText, answer)
	case answer != nil && !answer.Approved:
		a.turnDown(w, "denied", audit.ErrApprovalDenied, deniedText, answer)
	case answer != nil:
		a.approve(w, a.accept(w.about, &w.question, w.outcome("approved", answer), answer.Scope))
	default:
		return false
	}
	return true
}

// ask asks about a frame through the first channel that can.
func (a *approvals) ask(w *waiting) error {
	err := errors.New("no channel can ask")
	for ; w.tried < len(a.cfg.Channels); w.tried++ {
		switch a.cfg.Channels[w.tried] {
		case ChannelClient:
			version, capabilities := a.s.clientCan()
			if elicitation.Support(version, capabilities) != elicitation.Request {
				continue
			}
			a.mu.Lock()
			a.asked++
			id := a.ids + strconv.FormatUint(a.asked, 10)
			a.published(w, ChannelClient, id)
			a.mu.Unlock()
			a.out.reply(elicitation.AppendRequest(nil, version, id, &w.question))
			return nil
		case ChannelFiles:
			if !a.files() {
				continue
			}
			// Before the file is there: its reader may cancel the call.
			if !a.setChannel(w, ChannelFiles) {
				return nil
			}
			if err = a.cfg.Files.Ask(&w.question); err == nil || !a.setChannel(w, "") {
				return nil
			}
		}
	}
	return err
}

// setChannel notes where a question is about to be, and reports whether the frame
// still waits: otherwise its owner reads w.
func (a *approvals) setChannel(w *waiting, channel string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.waiting, w) {
		return false
	}
	w.channel = channel
	return true
}

// published notes where a question is. mu is held.
func (a *approvals) published(w *waiting, channel, request string) {
	waits := slices.Contains(a.waiting, w)
	if !waits { // the wait ended meanwhile, and its owner reads w
		w = &waiting{question: w.question}
		a.over = append(a.over, w)
	}
	w.channel, w.request = channel, request
}

// answer returns the answer to a frame's question, nil while there is none.
func (a *approvals) answer(w *waiting) (*approval.Answer, elicitation.Outcome) {
	if w.channel == ChannelFiles {
		answer, err := a.cfg.Files.Answer(w.question.ID)
		var rejected *approval.Rejected
		switch {
		case errors.As(err, &rejected):
			a.s.cfg.Log.Warn("answer about a call does not count", zap.Error(err))
			a.s.amendWaiting(w, "answer_rejected")
		case err != nil && !w.unread: // tried again, and logged once
			a.s.cfg.Log.Error("answer about a call not readable", zap.Error(err))
		}
		w.unread = err != nil && rejected == nil
		return answer, elicitation.Answered
	}
	a.mu.Lock()
	message := w.response
	a.mu.Unlock()
	if message == nil {
		return nil, elicitation.Answered
	}
	answer, how := elicitation.ParseResponse(message)
	if how != elicitation.Unsupported {
		return &answer, how
	}
	// The client cannot ask after all; the next channel may.
	a.mu.Lock()
	if slices.Contains(a.waiting, w) { // else its new owner reads it
		w.channel, w.response = "", nil
	}
	a.mu.Unlock()
	w.tried++
	signal(a.wake)
	return nil, how
}

// owns reports whether a response of the client has the id of a request of the
// proxy. The server knows nothing of it.
func (a *approvals) owns(id []byte) bool {
	return id[0] == '"' && strings.HasPrefix(jsontext.Unquote(id), a.ids)
}

// respond takes the client's response to a request of the proxy.
func (a *approvals) respond(id, message []byte) {
	a.mu.Lock()
	i := slices.IndexFunc(a.waiting, func(w *waiting) bool {
		return w.request != "" && w.response == nil && jsontext.Unquote(id) == w.request
	})
	if i >= 0 {
		a.waiting[i].response = slices.Clone(message)
	}
	a.mu.Unlock()
	if i < 0 {
		a.s.cfg.Log.Info("answer about a call came too late")
		return
	}
	signal(a.wake)
}

// approve hands a frame to forwardAll.
func (a *approvals) approve(w *waiting, given *audit.Approval) {
	a.mu.Lock()
	w.approved = given
	a.mu.Unlock()
	signal(a.pass)
}

// forwardAll forwards what is approved until done is closed. A server that does
// not read keeps only this waiting, and the client's other calls to it.
func (a *approvals) forwardAll(server *input, done <-chan struct{}) {
	again := time.NewTimer(pollEvery)
	defer again.Stop()
	for {
		select {
		case <-done:
			return
		case <-a.pass:
		case <-again.C:
		}
		for _, w := range a.toForward() {
			a.forward(w, server)
		}
		if len(a.toForward()) > 0 {
			again.Reset(pollEvery)
		}
	}
}

func (a *approvals) toForward() []*waiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.waiting), func(w *waiting) bool { return w.approved == nil })
}

// forward forwards an approved frame between the client's lines. It is tried
// again until the client has ended its line.
func (a *approvals) forward(w *waiting, server *input) {
	given := *w.approved
	given.WaitMS = time.Since(w.since).Milliseconds()
	taken, recorded := false, false
	tried, n, err := server.between(w.bytes, func() bool {
		// A cancel comes before this or, forwarded, after the bytes.
		if taken = a.take(w); taken {
			signal(a.wake) // its question is over
			var pos int64
			pos, recorded = a.s.admit(w, given, time.Now())
			if recorded && a.s.cfg.WaitIntent && pos > 0 && !a.s.cfg.Journal.Wait(pos, a.s.cfg.SyncWait) {
				a.s.amend(w.items, func(r *facts) { r.NotDurable = true })
			}
		}
		return recorded
	})
	switch {
	case !tried || !taken:
	case !recorded:
		a.refuse(w, given, audit.ErrAuditFailure, unrecordedText)
	case err != nil:
		if n == 0 {
			a.s.amend(w.items, func(r *facts) { r.Forwarded = false })
		}
		a.s.cfg.Log.Debug("the server takes no more input", zap.Error(err))
	}
}

// withdraw removes the questions that are over. After a crash before this the
// question remains and expires; an answer to it is not read.
func (a *approvals) withdraw() {
	a.mu.Lock()
	over := a.over
	a.over = nil
	ended := a.ended
	a.mu.Unlock()
	for _, w := range over {
		switch {
		case w.channel == ChannelFiles:
			if err := a.cfg.Files.Withdraw(w.question.ID); err != nil {
				a.s.cfg.Log.Warn("question about a call not removed", zap.Error(err))
			}
		case w.response == nil && !ended:
			a.out.reply(elicitation.AppendCancel(nil, w.request, "The call no longer waits."))
		}
	}
}
