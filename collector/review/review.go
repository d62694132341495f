// Package review is the page on which a reviewer reads what agents did.
//
// All text in a record is untrusted. It reaches a page through html/template,
// with control and hiding characters escaped first, and the pages run no
// script and load nothing from elsewhere: their Content-Security-Policy
// allows neither.
//
// A Server does not control access: an Access wraps it.
package review

import (
	"bytes"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"auditproxy/collector/store"

	"go.uber.org/zap"
)

// A Config configures a Server.
type Config struct {
	Reader *store.Reader // answers the questions of the pages. Required.
	Store  *store.Store  // keeps what reviewers do about alerts. Required.
	Tenant string        // shown on every page; "": there is one tenant

	// Who returns the sender of a request, for the history of an alert. Nil:
	// users are not distinguished.
	Who func(*http.Request) string

	// Approvals are directories of calls that wait for an approval, absolute.
	// Everyone who may see the pages may answer. None: there is no page for it.
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

//go:embed templates/*.html static
var files embed.FS

// New checks c and returns a server.
func New(c Config) (*Server, error) {
	if c.Reader == nil || c.Store == nil {
		return nil, errors.New("configuring the review page: want a reader and a store")
	}
	return newServer(c, sources{c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Store})
}

// sources are what the pages need, each declared where it is used.
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

func newServer(c Config, data sources) (*Server, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Who == nil {
		c.Who = func(*http.Request) string { return "" }
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	templates, err := template.New("").Funcs(functions).ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parsing the pages: %w", err)
	}
	s := &Server{c: c, data: data, mux: http.NewServeMux(), templates: templates, formKey: make([]byte, 32)}
	rand.Read(s.formKey)
	if len(c.Approvals) > 0 {
		s.desk = newDesk(c.Approvals, c.Now, c.Log)
	}
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	pages := map[string]func(*http.Request) (page, error){
		"GET /{$}":           s.overview,
		"GET /calls":         s.calls,
		"GET /calls/{id}":    s.call,
		"GET /sessions":      s.sessions,
		"GET /sessions/{id}": s.session,
		"GET /decisions":     s.decisions,
		"GET /destinations":  s.destinations,
		"GET /environment":   s.environment,
		"GET /tools":         s.tools,
		"GET /alerts":        s.alerts,
		"GET /alerts/{id}":   s.alert,
	}
	if s.desk != nil {
		pages["GET /waiting"] = s.waiting
		pages["GET /waiting/{key}"] = s.asked
		s.mux.HandleFunc("POST /waiting/{key}", s.answer)
	}
	for pattern, handler := range pages {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p, err := handler(r)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			s.render(w, r, http.StatusOK, p)
		})
	}
	s.mux.HandleFunc("POST /alerts/{id}", s.actOnAlert)
	s.mux.HandleFunc("GET /calls.csv", s.exportCSV)
	s.mux.HandleFunc("GET /calls.ndjson", s.exportNDJSON)
	static := http.FileServerFS(files)
	s.mux.HandleFunc("GET /static/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=3600")
		static.ServeHTTP(w, r)
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, mistake{http.StatusNotFound, "There is no such page."})
	})
}

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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	s.mux.ServeHTTP(w, r)
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
	default:
		s.c.Log.Error("store not read", zap.String("path", r.URL.Path), zap.Error(err))
		m = mistake{http.StatusBadGateway, "The records cannot be read now. This does not mean that there are none. " + err.Error()}
	}
	s.render(w, r, m.code, page{Template: "error", Title: http.StatusText(m.code), Body: m.message})
}
