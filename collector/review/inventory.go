package review

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"auditproxy/collector/store"
)

// effectsSize is how many destinations or variables a page lists.
const effectsSize = 200

type effectsPage struct {
	Filter  store.EffectFilter
	Effects []store.Effect
	More    string
}

func (s *Server) destinations(r *http.Request) (page, error) {
	body, err := s.effects(r, store.Pipe, "/destinations")
	return page{Template: "destinations", Title: "Destinations", Section: "destinations", Body: body}, err
}

func (s *Server) environment(r *http.Request) (page, error) {
	body, err := s.effects(r, store.Variable, "/environment")
	return page{Template: "environment", Title: "Environment", Section: "environment", Body: body}, err
}

func (s *Server) effects(r *http.Request, kind store.EffectKind, path string) (body effectsPage, err error) {
	q := r.URL.Query()
	if err := known(q, "name", "host", "user", "after"); err != nil {
		return body, err
	}
	f := store.EffectFilter{Kind: kind, Name: q.Get("name"), Host: q.Get("host"), User: q.Get("user")}
	if text := q.Get("after"); text != "" {
		last, hash, _ := strings.Cut(text, ".")
		us, err := strconv.ParseInt(last, 10, 64)
		place := store.EffectPlace{LastTS: time.UnixMicro(us).UTC()}
		if err == nil {
			place.Hash, err = strconv.ParseUint(hash, 10, 64)
		}
		if err != nil {
			return body, mistake{http.StatusBadRequest, "The link to this page is damaged."}
		}
		f.After = &place
	}
	list, err := s.data.Effects(r.Context(), f, effectsSize+1)
	body = effectsPage{Filter: f, Effects: list}
	if len(list) > effectsSize {
		body.Effects = list[:effectsSize]
		last := list[effectsSize-1].Place()
		body.More = link(path, "name", f.Name, "host", f.Host, "user", f.User, "after", fmt.Sprintf("%d.%d", last.LastTS.UnixMicro(), last.Hash))
	}
	return body, err
}

type toolsPage struct {
	When    when // zero but for its spans: all time
	Servers []inventory
	More    bool // there are tools that are not here
	Changed int  // tools whose definition changed under one version
}

// An inventory is the tools of one server, over all its versions.
type inventory struct {
	Name  string
	Tools []toolHistory
}

// A toolHistory is the definitions of one tool, the last first.
type toolHistory struct {
	Tool        string
	Definitions []store.Definition
	Changed     bool // two definitions under one version of the server
}

// newIn reports whether the tool, or a definition that it did not have before, was
// first used in a window. A new version alone is nothing new.
func (t toolHistory) newIn(w store.Window) bool {
	known := map[string]bool{}
	for _, d := range slices.Backward(t.Definitions) { // the first one first
		if (len(known) == 0 || d.Hash != "" && !known[d.Hash]) && !d.FirstTS.Before(w.From) && d.FirstTS.Before(w.To) {
			return true
		}
		known[d.Hash] = true
	}
	return false
}

// Latest is the definition that was seen last.
func (t toolHistory) Latest() store.Definition { return t.Definitions[0] }

func (s *Server) tools(r *http.Request) (page, error) {
	q := r.URL.Query()
	if err := known(q, timeNames...); err != nil {
		return page{}, err
	}
	w := when{Spans: spans}
	chosen := q.Get("span")+q.Get("from")+q.Get("to") != ""
	if chosen {
		var err error
		if w, err = s.when(q, ""); err != nil {
			return page{}, err
		}
	}
	list, more, err := s.data.Definitions(r.Context())
	if err != nil {
		return page{}, err
	}
	body := toolsPage{When: w, More: more}
	for _, d := range list {
		if n := len(body.Servers); n == 0 || body.Servers[n-1].Name != d.Server {
			body.Servers = append(body.Servers, inventory{Name: d.Server})
		}
		tools := &body.Servers[len(body.Servers)-1].Tools
		if n := len(*tools); n == 0 || (*tools)[n-1].Tool != d.Tool {
			*tools = append(*tools, toolHistory{Tool: d.Tool})
		}
		t := &(*tools)[len(*tools)-1]
		for _, was := range t.Definitions {
			// A call before the list of tools was seen has no hash: no change.
			t.Changed = t.Changed || was.Version == d.Version && was.Hash != d.Hash && was.Hash != "" && d.Hash != ""
		}
		t.Definitions = append([]store.Definition{d}, t.Definitions...)
	}
	for i := range body.Servers {
		tools := &body.Servers[i].Tools
		*tools = slices.DeleteFunc(*tools, func(t toolHistory) bool { return chosen && !t.newIn(w.ahead()) })
		for _, t := range *tools {
			if t.Changed {
				body.Changed++
			}
		}
	}
	body.Servers = slices.DeleteFunc(body.Servers, func(s inventory) bool { return len(s.Tools) == 0 })
	return page{Template: "tools", Title: "Tools", Section: "tools", Body: body}, nil
}
