package review

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
)

type sessionsPage struct {
	When     when
	Problem  string
	Problems []problem
	Host     string
	User     string
	Client   string
	Sessions []stated
	Older    string
}

// A problem is one of the questions that sessions can be listed by.
type problem struct{ Name, Label, Link string }

var problemNames = []problem{
	{"", "all", ""}, {"running", "running", ""}, {"quiet", "without an end", ""}, {"died", "died", ""}, {"open", "open calls", ""},
	{"missing", "records missing", ""}, {"gaps", "gaps", ""}, {"unknown", "unknown outcomes", ""}, {"errors", "errors", ""}, {"anomalies", "anomalies", ""},
}

func problemWords() (words []string) {
	for _, p := range problemNames[1:] {
		words = append(words, p.Name)
	}
	return words
}

// A stated is a session and its state.
type stated struct {
	store.Session
	State mark
	Proof proof
}

func (s *Server) stated(se store.Session, p proof) stated {
	return stated{se, map[string]mark{
		"running": {"▸", "running", "ok"}, "ended": {"▪", "ended", "faint"},
		"died": {"✕", "died", "bad"}, "quiet": {"?", "no end", "warn"},
	}[se.State(s.c.Now())], p}
}

func (s *Server) sessions(r *http.Request) (page, error) {
	q := r.URL.Query()
	if err := cmp.Or(known(q, slices.Concat(timeNames, []string{"host", "user", "client", "problem", "after"})...), oneOf(q, "problem", problemWords()...)); err != nil {
		return page{}, err
	}
	w, err := s.when(q, "7d")
	if err != nil {
		return page{}, err
	}
	f := store.SessionFilter{Window: w.ahead(), Host: q.Get("host"), User: q.Get("user"), Client: q.Get("client"), Problem: q.Get("problem"), After: q.Get("after")}
	list, err := s.data.Sessions(r.Context(), f, pageSize+1)
	if err != nil {
		return page{}, err
	}
	base := w.values()
	for name, v := range map[string]string{"host": f.Host, "user": f.User, "client": f.Client, "problem": f.Problem} {
		if v != "" {
			base.Set(name, v)
		}
	}
	body := sessionsPage{When: w, Problem: f.Problem, Host: f.Host, User: f.User, Client: f.Client}
	if len(list) > pageSize {
		list = list[:pageSize]
		body.Older = with("/sessions", base, "after", list[pageSize-1].SessionID)
	}
	proofs, err := s.proofs(r.Context(), list...)
	if err != nil {
		return page{}, err
	}
	for _, se := range list {
		body.Sessions = append(body.Sessions, s.stated(se, proofs[se.SessionID]))
	}
	for _, p := range problemNames {
		p.Link = with("/sessions", base, "problem", p.Name)
		body.Problems = append(body.Problems, p)
	}
	return page{Template: "sessions", Title: "Sessions", Section: "sessions", Body: body}, nil
}

type sessionPage struct {
	stated
	Summary store.Summary
	Part    bool   // Summary is only about the records From to Summary.Last
	After   string // then the page with those after them, if any
	NotRead error  // of Summary: a limit
	Decided store.DecisionCount
	Entries []entry
	From    uint64 // the number of the first record that is meant to be shown
	Next    string
	First   string
}

// An entry of a timeline is a record, or a run of missing records.
type entry struct {
	Missing string // their numbers; "" for a record
	neighbour
	Nested []operation
}

// timelineSize is how many records a timeline has on one page.
const timelineSize = 300

// summarySize is how many records are summarized on one page: more of them would
// need more time and memory than a query has.
const summarySize = 100_000

func (s *Server) session(r *http.Request) (page, error) {
	se, err := s.data.Session(r.Context(), r.PathValue("id"))
	if err != nil {
		return page{}, err
	}
	var from uint64
	if text := r.URL.Query().Get("seq"); text != "" {
		if from, err = strconv.ParseUint(text, 10, 64); err != nil {
			return page{}, mistake{http.StatusBadRequest, "seq is the number of a record in the session."}
		}
	}
	lines, err := s.data.Timeline(r.Context(), se, from, timelineSize+1)
	if err != nil {
		return page{}, err
	}
	proofs, err := s.proofs(r.Context(), se)
	if err != nil {
		return page{}, err
	}
	path := "/sessions/" + url.PathEscape(se.SessionID)
	body := sessionPage{stated: s.stated(se, proofs[se.SessionID]), From: from, Part: se.Records > summarySize}
	// An agent decides how many calls a session has; its records are read in pages.
	begin := uint64(0)
	if body.Part {
		begin = from
	}
	body.Summary, body.NotRead = s.data.Summary(r.Context(), se, begin, summarySize)
	if body.Summary.More {
		body.After = link(path, "seq", strconv.FormatUint(body.Summary.Last+1, 10))
	}
	if body.NotRead != nil && !errors.Is(body.NotRead, store.ErrTooMuch) && !errors.Is(body.NotRead, store.ErrBusy) {
		return page{}, body.NotRead
	}
	if body.Decided, err = s.data.SessionDecisions(r.Context(), se); err != nil {
		return page{}, err
	}
	if len(lines) > timelineSize {
		body.Next = link(path, "seq", strconv.FormatUint(lines[timelineSize].Seq, 10))
		lines = lines[:timelineSize]
	}
	if from > 0 {
		body.First = path
	}
	body.Entries = entries(lines, from)
	return page{Template: "session", Title: "Session " + shortID(se.SessionID), Section: "sessions", Body: body}, nil
}

// entries returns records in order, with an entry for each run of missing
// numbers.
func entries(lines []store.Line, from uint64) (list []entry) {
	next := from
	for _, l := range lines {
		if l.Seq > next {
			list = append(list, entry{Missing: numbers(next, l.Seq-1)})
		}
		next = l.Seq + 1
		e := entry{neighbour: neighbour{Line: l, Mark: newMark(l.Kind, l.Outcome), Sentence: narrateLine(l)}}
		e.Nested = nested(l)
		list = append(list, e)
	}
	return list
}

// nested lists the operations inside l's call. If its arguments were cut, or
// for another reading of its bytes, only the name is known here; the page of
// the call has the rest.
func nested(l store.Line) (list []operation) {
	if len(l.Ops) < 2 {
		return nil
	}
	rec := audit.Record{Kind: audit.KindCall, Method: l.Method, Tool: l.Tool, Args: audit.JSON(l.Args)}
	for i, op := range audit.Operations(&rec)[1:] {
		if i+1 < len(l.Ops) && op.Tool == l.Ops[i+1] {
			list = append(list, operation{Operation: op, Name: op.Tool, Sentence: narrate(op)})
		}
	}
	for _, name := range l.Ops[1+len(list):] {
		list = append(list, operation{Name: name, Sentence: say("or: ", name)})
	}
	return list
}

func numbers(from, to uint64) string {
	var b strings.Builder
	b.WriteString(plural(to-from+1, "record") + " missing: #" + strconv.FormatUint(from, 10))
	if to > from {
		b.WriteString(" to #" + strconv.FormatUint(to, 10))
	}
	return b.String()
}
