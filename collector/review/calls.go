package review

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
)

// pageSize is how many records a page lists.
const pageSize = 50

type callsPage struct {
	When         when
	Filter       store.Filter
	Chosen       []chip // the active conditions, each with a link that removes it
	Lines        []store.Line
	Older, Newer string // links; "" for none
	Newest       string
	CSV, NDJSON  string
}

// More reports whether a condition with a folded field is active.
func (p callsPage) More() bool {
	f := p.Filter
	return p.When.From+p.When.To+f.Kind+f.ErrorType+f.Host+f.User+f.Client+f.Session+f.Server+f.Method+f.Tier+f.Decision+f.Rule+f.Risk+f.Detector+f.Approver != "" || f.Anomalous
}

// A chip is one active condition.
type chip struct{ Name, Value, Without string }

// filterNames are the parameters that select records.
var filterNames = []string{"text", "op", "outcome", "error", "host", "user", "client", "session", "server", "method", "tier", "kind", "anomalous", "decision", "rule", "risk", "detector", "by"}

// maxValue is the most bytes of a condition.
const maxValue = 8 << 10

// bounded checks the length of a request's conditions.
func bounded(q url.Values, names []string) error {
	for _, name := range names {
		if len(q.Get(name)) > maxValue {
			return mistake{http.StatusBadRequest, fmt.Sprintf("%s is longer than %d bytes.", name, maxValue)}
		}
	}
	return nil
}

// filter reads the filter of a request, whose other parameters are more.
func (s *Server) filter(q url.Values, more ...string) (store.Filter, when, error) {
	if err := cmp.Or(known(q, slices.Concat(timeNames, filterNames, more)...), bounded(q, filterNames), oneOf(q, "anomalous", "1"),
		oneOf(q, "outcome", string(audit.OutcomeOK), string(audit.OutcomeError), string(audit.OutcomeUnknown)), oneOf(q, "decision", store.DecisionWords()...)); err != nil {
		return store.Filter{}, when{}, err
	}
	if n := store.Words(q.Get("text")); n > store.MaxWords {
		return store.Filter{}, when{}, mistake{http.StatusBadRequest, fmt.Sprintf("text has %d words: want at most %d.", n, store.MaxWords)}
	}
	w, err := s.when(q, "30d")
	return store.Filter{
		Window:    w.ahead(),
		Kind:      q.Get("kind"),
		Operation: q.Get("op"),
		Method:    q.Get("method"),
		Outcome:   q.Get("outcome"),
		Tier:      q.Get("tier"),
		Host:      q.Get("host"),
		User:      q.Get("user"),
		Client:    q.Get("client"),
		Session:   strings.TrimSpace(q.Get("session")),
		Server:    q.Get("server"),
		ErrorType: q.Get("error"),
		Text:      q.Get("text"),
		Anomalous: q.Get("anomalous") == "1",
		Decision:  q.Get("decision"),
		Rule:      q.Get("rule"),
		Risk:      q.Get("risk"),
		Detector:  q.Get("detector"),
		Approver:  q.Get("by"),
	}, w, err
}

func (s *Server) calls(r *http.Request) (page, error) {
	q := r.URL.Query()
	f, w, err := s.filter(q, "before", "after")
	if err != nil {
		return page{}, err
	}
	p := store.Page{Limit: pageSize}
	if p.Before, err = cursor(q, "before"); err != nil {
		return page{}, err
	}
	if p.Before == nil {
		if p.After, err = cursor(q, "after"); err != nil {
			return page{}, err
		}
	}
	lines, err := s.data.Calls(r.Context(), f, p)
	if err != nil {
		return page{}, err
	}
	base := given(q, filterNames)
	body := callsPage{When: w, Filter: f, Chosen: chips("/calls", q, filterNames), Lines: lines.Lines, CSV: with("/calls.csv", base), NDJSON: with("/calls.ndjson", base)}
	if n := len(lines.Lines); n > 0 {
		if lines.Older {
			body.Older = with("/calls", base, "before", lines.Lines[n-1].Cursor().String())
		}
		if lines.Newer {
			body.Newer = with("/calls", base, "after", lines.Lines[0].Cursor().String())
		}
	}
	if p.Before != nil || p.After != nil {
		body.Newest = with("/calls", base)
	}
	return page{Template: "calls", Title: "Calls", Section: "calls", Body: body}, nil
}

func cursor(q url.Values, name string) (*store.Cursor, error) {
	text := q.Get(name)
	if text == "" {
		return nil, nil
	}
	c, err := store.ParseCursor(text)
	if err != nil {
		return nil, mistake{http.StatusBadRequest, "The link to this page is damaged: " + err.Error() + "."}
	}
	return &c, nil
}

// given returns the time and the named parameters of a request, without the
// empty ones that a form sends.
func given(q url.Values, names []string) url.Values {
	out := url.Values{}
	for _, name := range slices.Concat(timeNames, names) {
		if v := q.Get(name); v != "" {
			out.Set(name, v)
		}
	}
	return out
}

// chips returns the active conditions of a page.
func chips(path string, q url.Values, names []string) (list []chip) {
	base := given(q, names)
	for _, name := range slices.Concat([]string{"from", "to"}, names) {
		if v := q.Get(name); v != "" {
			list = append(list, chip{name, v, with(path, base, name, "")})
		}
	}
	return list
}
