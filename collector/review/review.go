// Package review is the page on which a reviewer reads what agents did.
//
// All text in a record is untrusted. It reaches a page through html/template,
// with control and hiding characters escaped first, and the pages run no
// script and load nothing from elsewhere: their Content-Security-Policy
// allows neither.
//
// A Server does not control access: an Access wraps it.
//
// The files, from the top: access, review, templates, overview, waiting,
// alerts, decisions, session, call, proof, narrate, tree, sentence, inventory, export,
// calls, request, serve, server, desk, format.
package review

import (
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// New checks c and returns a server.
func New(c Config) (*Server, error) {
	if c.Reader == nil || c.Store == nil {
		return nil, errors.New("configuring the review page: want a reader and a store")
	}
	return newServer(c, sources{c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Reader, c.Store})
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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if err := checkQuery(r.URL.RawQuery); err != nil {
		s.fail(w, r, err)
		return
	}
	s.mux.ServeHTTP(w, r)
}
