package review

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/store"
)

// A span is one of the time ranges that the pages offer.
type span struct {
	Name  string // in a URL
	Label string
	time.Duration
}

const day = 24 * time.Hour

var spans = []span{
	{"1h", "Last hour", time.Hour},
	{"24h", "Last 24 hours", day},
	{"7d", "Last 7 days", 7 * day},
	{"30d", "Last 30 days", 30 * day},
	{"90d", "Last 90 days", 90 * day},
	{"400d", "Last 400 days", 400 * day},
}

// A when is the time range of a page, as its URL gives it.
type when struct {
	Spans    []span
	Span     string // the name of a span; "" if From or To were given
	From, To string // as in a datetime-local field, UTC
	Window   store.Window
}

var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// parseTime reads a moment of a URL, in UTC where it names no zone, and returns
// it also as a datetime-local field has it.
func parseTime(name, text string) (t time.Time, field string, err error) {
	for _, layout := range layouts {
		if t, err = time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC(), t.UTC().Format("2006-01-02T15:04:05"), nil
		}
	}
	return t, text, mistake{http.StatusBadRequest, fmt.Sprintf("%s is %q: want a time as in 2026-11-21T09:30, in UTC.", name, text)}
}

// when reads the time range of a request; usual is the default span.
func (s *Server) when(q url.Values, usual string) (w when, err error) {
	now := s.c.Now().UTC()
	w = when{Spans: spans, Span: q.Get("span"), From: q.Get("from"), To: q.Get("to")}
	if err := oneOf(q, "shown", "range"); err != nil {
		return w, err
	}
	if w.Span != "" && q.Get("shown") != "" {
		w.From, w.To = "", "" // a form sends them too; the span is what was chosen now
	}
	if w.From == "" && w.To == "" {
		if w.Span == "" {
			w.Span = usual
		}
		for _, sp := range spans {
			if sp.Name == w.Span {
				// The clock of a record of the last day may be ahead of this
				// one.
				w.Window = store.Window{From: now.Add(-sp.Duration), To: now.Add(time.Minute)}
				return w, nil
			}
		}
		return w, mistake{http.StatusBadRequest, fmt.Sprintf("span is %q: want 1h, 24h, 7d, 30d, 90d or 400d.", w.Span)}
	}
	w.Span = ""
	// Without its beginning, all that is kept: a list of less would look whole.
	w.Window = store.Window{From: time.Unix(0, 0).UTC(), To: now.Add(day)}
	if w.From != "" {
		if w.Window.From, w.From, err = parseTime("from", w.From); err != nil {
			return w, err
		}
	}
	if w.To != "" {
		if w.Window.To, w.To, err = parseTime("to", w.To); err != nil {
			return w, err
		}
	}
	if !w.Window.From.Before(w.Window.To) {
		return w, mistake{http.StatusBadRequest, "The time begins after it ends: from must be before to."}
	}
	return w, nil
}

// ahead returns the window of a list. It ends with the records of a clock that is
// ahead of this one, by as much as the collector takes: a session's page has them,
// and a list without them would look whole.
func (w when) ahead() store.Window {
	if w.Span != "" {
		w.Window.To = w.Window.To.Add(day)
	}
	return w.Window
}

// values returns w as parameters of a URL.
func (w when) values() url.Values {
	q := url.Values{}
	for name, v := range map[string]string{"span": w.Span, "from": w.From, "to": w.To} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return q
}

// checkQuery reports a query of which net/url would leave out a part: a list or
// an export with a condition left out has more than was asked for.
func checkQuery(raw string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return mistake{http.StatusBadRequest, "The address cannot be read: " + err.Error() + "."}
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(q[name]) > 1 {
			return mistake{http.StatusBadRequest, fmt.Sprintf("%.40s is given twice: want one value.", name)}
		}
	}
	return nil
}

// timeNames are the parameters of a time range. A form that shows a beginning and an end,
// rather than a span, has shown=range.
var timeNames = []string{"span", "from", "to", "shown"}

// known reports a parameter that is none of names: a page or an export that left
// a condition out would have more than was asked for.
func known(q url.Values, names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(names, name) {
			return mistake{http.StatusBadRequest, fmt.Sprintf("%.40q is not a condition of this page: want %s.", name, strings.Join(names, ", "))}
		}
	}
	return nil
}

// oneOf reports a parameter that is given and none of words.
func oneOf(q url.Values, name string, words ...string) error {
	if v := q.Get(name); v != "" && !slices.Contains(words, v) {
		return mistake{http.StatusBadRequest, fmt.Sprintf("%s is %.40q: want %s.", name, v, strings.Join(words, ", "))}
	}
	return nil
}

// with returns path with the parameters of base, changed by pairs; an empty
// value removes a parameter.
func with(path string, base url.Values, pairs ...string) string {
	q := url.Values{}
	for name, v := range base {
		q[name] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// formToken binds a form to its user and its subject, so that another site
// cannot submit it.
func (s *Server) formToken(r *http.Request, parts ...string) string {
	sum := hmac.New(sha256.New, s.formKey)
	fmt.Fprintf(sum, "%q %q", s.c.Who(r), parts)
	return hex.EncodeToString(sum.Sum(nil))
}

// maxForm is the most bytes of a form.
const maxForm = 64 << 10

// readForm reads the form that a request sends as a browser does.
func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return mistake{http.StatusBadRequest, "The form could not be read: " + err.Error() + "."}
	}
	return nil
}
