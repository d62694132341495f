package review

import (
	"context"
	"crypto/hmac"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"

	"auditproxy/collector/store"
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	historyTime = 2 * time.Second // for the last calls of all sessions of a page

	maxShown     = 50 // questions on a page
	maxHistories = 5  // sessions on a page whose last calls are read
	lastCalls    = 3  // of each of them
	moreCalls    = 10 // on the page of one question
)

type waitingPage struct {
	State *deskState
	Shown []question
	Hold  bool   // the page is not refreshed
	Done  string // the answer that was given just now
}

// Refresh reports whether the browser loads the page again by itself.
func (p waitingPage) Refresh() bool { return !p.Hold }

// Hidden returns how many questions are not shown.
func (p waitingPage) Hidden() int { return len(p.State.Calls) - len(p.Shown) }

type questionPage struct {
	Question question
	Deaf     string // why the proxy would not accept an answer from here; "" if it would
}

// A question is a question as pages show it.
type question struct {
	waiting
	Left    string // time to answer, in words
	Over    string // why an answer has no effect, "" if it has one
	Asks    []askedCall
	History history
	Token   string
}

// An askedCall is a call that waits. Its members are untrusted and not checked.
type askedCall struct {
	approval.Call
	Title      string
	Sentence   sentence
	Inside     []sentence // of the operations in it
	Assessed   audit.Risk
	Detections []audit.Detection
}

// Tree returns the arguments.
func (a askedCall) Tree() *node { return newTree(string(a.Args)) }

// A history is the last calls of a session, as stored.
type history struct {
	Lines   []neighbour
	Problem string // why they are not known; "" if they are
}

// dones are the answers, and what the page says once they are given.
var dones = map[string]string{
	"once":    "Allowed once. The proxy takes the answer within a second.",
	"session": "Allowed for the session. The proxy takes the answer within a second.",
	"deny":    "Denied. The proxy takes the answer within a second.",
}

// waiting shows the calls that wait. It has no button that allows a call: the
// page is refreshed, and an agent can cancel a call to move another one under a
// button that is about to be pressed.
func (s *Server) waiting(r *http.Request) (page, error) {
	st := s.desk.state()
	list := st.Calls[:min(len(st.Calls), maxShown)]
	body := waitingPage{State: st, Hold: r.URL.Query().Has("hold"), Done: dones[r.URL.Query().Get("done")]}
	histories := s.histories(r.Context(), list, lastCalls)
	for _, w := range list {
		body.Shown = append(body.Shown, s.question(r, w, histories))
	}
	return page{Template: "waiting", Title: "Waiting", Section: "waiting", Body: body, Refresh: body.Refresh()}, nil
}

// gone is the text about a call that does not wait.
const gone = "This call no longer waits: it was answered or cancelled, or its time is over."

// over returns the error about a call that is not found.
func (st *deskState) over(code int, more string) mistake {
	if len(st.Problems) > 0 {
		return mistake{code, "This call is not among those that could be read; the page of waiting calls says why." + more}
	}
	return mistake{code, gone + more}
}

// abandoned is the text about a call whose proxy has ended without an end to its
// question.
const abandoned = "The proxy of this call has ended, so an answer has no effect."

const notGiven = " Your answer was not given."

// asked shows one question. It is not refreshed, so that a half-made choice is
// kept.
func (s *Server) asked(r *http.Request) (page, error) {
	st := s.desk.state()
	w := st.find(r.PathValue("key"))
	if w == nil {
		return page{}, st.over(http.StatusNotFound, "")
	}
	body := questionPage{Question: s.question(r, *w, s.histories(r.Context(), []waiting{*w}, moreCalls))}
	if body.Question.Over != "" {
		body.Deaf = body.Question.Over
	} else if err := w.Allows(os.Geteuid()); err != nil {
		body.Deaf = err.Error()
	}
	return page{Template: "question", Title: clipName(200, body.Question.Asks[0].Title) + " waits", Section: "waiting", Body: body}, nil
}

func (s *Server) question(r *http.Request, w waiting, histories map[string]history) question {
	left, over := remaining(w.Expires.Sub(s.c.Now())), ""
	if w.Abandoned {
		left, over = "abandoned", abandoned
	}
	q := question{waiting: w, Left: left, Over: over, Token: s.formToken(r, w.Key, w.Digest)}
	for _, c := range w.Calls {
		rec := audit.Record{Kind: audit.KindCall, Method: c.Method, Tool: c.Tool, Target: c.Target, Args: c.Args}
		a := askedCall{Call: c, Title: recordTitle(rec)}
		a.Assessed, _ = audit.ParseRisk(c.Risk)
		a.Detections, _ = audit.ParseDetections(c.Detections)
		for i, op := range audit.Operations(&rec) {
			if i == 0 {
				a.Sentence = narrate(op)
			} else {
				a.Inside = append(a.Inside, narrate(op))
			}
		}
		q.Asks = append(q.Asks, a)
	}
	var known bool
	if q.History, known = histories[w.SessionID]; !known {
		q.History.Problem = "The last calls of this session are on the page of the call."
	}
	return q
}

// remaining returns a time in words.
func remaining(d time.Duration) string {
	switch {
	case d <= 0:
		return "no time left"
	case d > time.Hour:
		return "more than an hour left"
	case d >= time.Minute:
		return plainNumber(int64(d/time.Minute)) + " min " + plainNumber(int64(d%time.Minute/time.Second)) + " s left"
	}
	return plainNumber(int64(d/time.Second)) + " s left"
}

// histories returns the last calls of the sessions of a list, of the first
// sessions only. It waits at most historyTime, so that people can answer while the
// store does not.
func (s *Server) histories(ctx context.Context, list []waiting, calls int) map[string]history {
	found := map[string]history{}
	var ids []string
	for _, w := range list {
		if _, err := uuid.Parse(w.SessionID); err != nil {
			found[w.SessionID] = history{Problem: "The question names no session."}
		} else if len(ids) < maxHistories && !slices.Contains(ids, w.SessionID) {
			ids = append(ids, w.SessionID)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	results := make([]history, len(ids))
	var g errgroup.Group
	now := s.c.Now()
	for i, id := range ids {
		g.Go(func() error {
			lines, err := s.data.Calls(ctx, store.Filter{Session: id, Window: store.Window{From: now.Add(-day), To: now.Add(time.Minute)}}, store.Page{Limit: calls})
			if err != nil {
				s.c.Log.Warn("last calls of a session not read", zap.Error(err))
				results[i].Problem = "The last calls of this session cannot be read now. This does not mean that there are none."
				return nil
			}
			for _, l := range lines.Lines {
				results[i].Lines = append(results[i].Lines, neighbour{Line: l, Mark: newMark(l.Kind, l.Outcome), Sentence: narrateLine(l)})
			}
			return nil
		})
	}
	_ = g.Wait() // it has no errors
	for i, id := range ids {
		found[id] = results[i]
	}
	return found
}

// answer gives a reviewer's answer and goes back to the calls that wait. After a
// crash the answer is given or not, and sending the form again says which.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	choice, err := s.giveAnswer(w, r)
	s.desk.forget()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/waiting?done="+choice, http.StatusSeeOther)
}

func (s *Server) giveAnswer(w http.ResponseWriter, r *http.Request) (choice string, err error) {
	if err := readForm(w, r); err != nil {
		return "", err
	}
	key, digest := r.PathValue("key"), r.PostForm.Get("question")
	if !hmac.Equal([]byte(s.formToken(r, key, digest)), []byte(r.PostForm.Get("token"))) {
		return "", mistake{http.StatusForbidden, "This form was not made by this page, or the page was restarted since. Load the waiting calls again."}
	}
	choice = r.PostForm.Get("answer")
	if dones[choice] == "" {
		return "", mistake{http.StatusBadRequest, "A call can be allowed once or for its session, or denied."}
	}
	st := s.desk.state()
	waits := st.find(key)
	if waits == nil {
		return "", st.over(http.StatusConflict, notGiven)
	}
	q := waits.Question
	q.Digest = digest // what the reviewer saw: the file may be another one since
	a := approval.Answer{Approved: choice != "deny", Scope: approval.Once, By: s.c.Who(r)}
	if choice == "session" {
		a.Scope = approval.Session
	}
	log := s.c.Log.With(zap.String("who", a.By), zap.String("question", q.ID), zap.String("directory", waits.Dir), zap.Bool("approved", a.Approved), zap.String("scope", string(a.Scope)))
	dir, err := openDir(waits.Dir)
	if err == nil {
		err = dir.Give(&q, a)
	}
	if err != nil {
		log.Warn("answer not given", zap.Error(err))
		return "", refusal(err)
	}
	log.Warn("waiting call answered") // an answer must be in the log, whose default level is warn
	return choice, nil
}

// refusal explains why an answer was not given.
func refusal(err error) error {
	var over *approval.Gone
	var answered *approval.Answered
	var barred *approval.NotAllowed
	switch {
	case errors.As(err, &over) && over.Changed:
		return mistake{http.StatusConflict, "The question has changed since this page was made. Your answer was not given; look at the call again."}
	case errors.As(err, &over):
		return mistake{http.StatusConflict, gone + notGiven}
	case errors.As(err, &answered):
		who := answered.User
		if answered.By != "" && answered.By != who {
			who += " (" + answered.By + ")"
		}
		return mistake{http.StatusConflict, "The call is already answered by " + who + "." + notGiven}
	case errors.As(err, &barred):
		return mistake{http.StatusForbidden, "The proxy does not accept answers from this page: " + barred.Error()}
	}
	return mistake{http.StatusInternalServerError, "Your answer was not given: " + err.Error()}
}
