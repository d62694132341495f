package review

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/store"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// A Config configures a Server.
type Config struct {
	Reader *store.Reader // answers the questions of the pages. Required.
	Store  *store.Store  // keeps what reviewers do about alerts. Required.
	Tenant string        // shown on every page; "": the store has one tenant

	// Who returns the sender of a request, for the history of an alert. Nil:
	// users are not distinguished.
	Who func(*http.Request) string

	// Approvals are directories of calls that wait for an approval, absolute.
	// Everyone who may see the pages may answer. None: calls are not answered here.
	Approvals []string

	Now func() time.Time // nil: time.Now
	Log *zap.Logger      // nil: none
}

// A Server serves the pages.
type Server struct {
	c         Config
	data      sources
	mux       *http.ServeMux
	desk      *desk // nil without Config.Approvals
	templates *template.Template
	formKey   []byte // of the tokens in forms
}

// sources are what the pages need of the store.
type sources struct {
	overviewReader
	callReader
	recordReader
	sessionReader
	timelineReader
	decisionReader
	inventoryReader
	alertReader
	alertWriter
}

type overviewReader interface {
	Overview(ctx context.Context, w store.Window) (store.Overview, error)
	Attention(ctx context.Context, w store.Window) (store.Attention, error)
}

type callReader interface {
	Calls(ctx context.Context, f store.Filter, p store.Page) (store.Lines, error)
}

type recordReader interface {
	Record(ctx context.Context, id uuid.UUID) ([]store.Stored, error)
	Neighbours(ctx context.Context, se store.Session, r store.Stored) ([]store.Line, error)
}

type sessionReader interface {
	Sessions(ctx context.Context, f store.SessionFilter, limit int) ([]store.Session, error)
	Session(ctx context.Context, id string) (store.Session, error)
	Verifications(ctx context.Context, ids []string) (map[string]store.Verification, error)
}

type timelineReader interface {
	Timeline(ctx context.Context, se store.Session, seq uint64, limit int) ([]store.Line, error)
	Summary(ctx context.Context, se store.Session, seq uint64, n int) (store.Summary, error)
}

type decisionReader interface {
	Decisions(ctx context.Context, f store.DecisionFilter) (store.Decisions, error)
	SessionDecisions(ctx context.Context, se store.Session) (store.DecisionCount, error)
}

type inventoryReader interface {
	Effects(ctx context.Context, f store.EffectFilter, limit int) ([]store.Effect, error)
	Definitions(ctx context.Context) (list []store.Definition, more bool, err error)
}

type alertReader interface {
	Alerts(ctx context.Context, f store.AlertFilter, limit int) ([]store.Alert, error)
	Alert(ctx context.Context, id string) (store.Alert, []store.AlertEvent, error)
}

// An alertWriter keeps what a reviewer does about an alert.
type alertWriter interface {
	AddAlertEvent(ctx context.Context, a alert.Alert, e store.AlertEvent) error
}

// A page is the data of one template.
type page struct {
	Template string // its file, without extension
	Title    string
	Section  string // the entry of the menu it belongs to
	Body     any
	Refresh  bool // the browser loads the page of waiting calls by itself, after a while

	Tenant string    // set by render, as what follows
	Who    string    // the user
	Now    time.Time // when the page was made

	Waiting *waitingCount // nil: calls are not answered here
}

// Percentiles names the latencies of an overview.
func (page) Percentiles() []string { return []string{"p50", "p95", "p99"} }

func (s *Server) render(w http.ResponseWriter, r *http.Request, code int, p page) {
	p.Tenant, p.Who, p.Now = s.c.Tenant, s.c.Who(r), s.c.Now().UTC()
	p.Waiting = s.waitingCount()
	// Into memory first: half a page would look like a whole one.
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, p.Template+".html", p); err != nil {
		s.c.Log.Error("page not made", zap.String("page", p.Template), zap.Error(err))
		http.Error(w, "This page could not be made; the collector's log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = b.WriteTo(w) // the client has gone
	}
}

// waitingCount returns nil where calls are not answered here.
func (s *Server) waitingCount() *waitingCount {
	if s.desk == nil {
		return nil
	}
	st := s.desk.state()
	return &waitingCount{st.waiting(), len(st.Problems) > 0}
}

// A mistake is an error in the request, with the answer to it.
type mistake struct {
	code    int
	message string
}

func (m mistake) Error() string { return m.message }

// fail answers with err. An unreadable store must not look like an empty one.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var m mistake
	switch {
	case errors.As(err, &m):
	case errors.Is(err, store.ErrNotFound):
		m = mistake{http.StatusNotFound, "There is no such record, or this page may not show it."}
	case r.Context().Err() != nil:
		return // the client has gone
	case errors.Is(err, store.ErrTooMuch):
		// The question is at fault, and the store answers others.
		s.c.Log.Warn("a question reached a limit", zap.String("path", r.URL.Path), zap.Error(err))
		m = mistake{http.StatusUnprocessableEntity, "Not read: this page. This does not mean that there is nothing. " + err.Error() + "."}
	case errors.Is(err, store.ErrBusy):
		s.c.Log.Warn("the store had no memory for a question", zap.String("path", r.URL.Path), zap.Error(err))
		m = mistake{http.StatusServiceUnavailable, "Not read: this page. This does not mean that there is nothing. " + err.Error() + "."}
	default:
		s.c.Log.Error("store not read", zap.String("path", r.URL.Path), zap.Error(err))
		m = mistake{http.StatusBadGateway, "The records cannot be read now. This does not mean that there are none. " + err.Error()}
	}
	s.render(w, r, m.code, page{Template: "error", Title: http.StatusText(m.code), Body: m.message})
}

//go:embed templates/*.html static
var files embed.FS

// policy allows the pages their own stylesheet, their own icon and their own
// forms, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the headers of every answer.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store") // records must not reach a shared disk
}
