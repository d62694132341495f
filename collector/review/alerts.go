package review

import (
	"cmp"
	"crypto/hmac"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/collector/alert"
	"auditproxy/collector/store"

	"github.com/google/uuid"
)

type alertsPage struct {
	State    string
	Severity string
	Rule     string
	Alerts   []store.Alert
	Older    string
	States   []problem
}

var alertStates = []string{"open", "acknowledged", "closed", "suppressed", "all"}

func (s *Server) alerts(r *http.Request) (page, error) {
	q := r.URL.Query()
	if err := cmp.Or(known(q, "state", "severity", "rule", "before"), oneOf(q, "state", alertStates...),
		oneOf(q, "severity", string(alert.Critical), string(alert.Warning), string(alert.Info))); err != nil {
		return page{}, err
	}
	f := store.AlertFilter{State: q.Get("state"), Severity: q.Get("severity"), Rule: q.Get("rule")}
	if f.State == "" {
		f.State = "open"
	}
	body := alertsPage{State: f.State, Severity: f.Severity, Rule: f.Rule}
	if f.State == "all" {
		f.State = ""
	}
	if text := q.Get("before"); text != "" {
		us, id, _ := strings.Cut(text, ".")
		n, err := strconv.ParseInt(us, 10, 64)
		if err != nil {
			return page{}, mistake{http.StatusBadRequest, "The link to this page is damaged."}
		}
		f.Before = &store.AlertPlace{TS: time.UnixMicro(n).UTC(), ID: id}
	}
	list, err := s.data.Alerts(r.Context(), f, pageSize+1)
	if err != nil {
		return page{}, err
	}
	if len(list) > pageSize {
		list = list[:pageSize]
		last := list[pageSize-1]
		body.Older = link("/alerts", "state", body.State, "severity", f.Severity, "rule", f.Rule, "before", fmt.Sprintf("%d.%s", last.TS.UnixMicro(), last.ID))
	}
	body.Alerts = list
	for _, state := range alertStates {
		body.States = append(body.States, problem{state, state, link("/alerts", "state", state, "severity", f.Severity, "rule", f.Rule)})
	}
	return page{Template: "alerts", Title: "Alerts", Section: "alerts", Body: body}, nil
}

type alertPage struct {
	store.Alert
	Events  []store.AlertEvent
	Details *node
	Token   string
	EventID string // of the event that the form adds: sending it twice adds one
	Act     string // what can be done now
}

func (s *Server) alert(r *http.Request) (page, error) {
	a, events, err := s.data.Alert(r.Context(), r.PathValue("id"))
	if err != nil {
		return page{}, err
	}
	body := alertPage{Alert: a, Events: events, Details: newTree(a.Details), EventID: uuid.NewString(), Act: store.Acknowledged}
	if a.State == store.Acknowledged {
		body.Act = store.Reopened
	}
	body.Token = s.formToken(r, a.ID, body.EventID)
	return page{Template: "alert", Title: clip(300, a.Title), Section: "alerts", Body: body}, nil
}

// maxComment is the most code points of a comment.
const maxComment = 4000

// actOnAlert adds an event and goes back to the alert. After a crash the
// event is stored or not, and the answer is missing: the form may be sent
// again, because its event has its own id.
func (s *Server) actOnAlert(w http.ResponseWriter, r *http.Request) {
	if err := s.addAlertEvent(w, r); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/alerts/"+url.PathEscape(r.PathValue("id")), http.StatusSeeOther)
}

func (s *Server) addAlertEvent(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	id := r.PathValue("id")
	want := s.formToken(r, id, r.PostForm.Get("event"))
	event, err := uuid.Parse(r.PostForm.Get("event"))
	if err != nil || !hmac.Equal([]byte(want), []byte(r.PostForm.Get("token"))) {
		return mistake{http.StatusForbidden, "This form was not made by this page, or the page was restarted since. Load the alert again."}
	}
	action, comment := r.PostForm.Get("action"), strings.TrimSpace(r.PostForm.Get("comment"))
	switch {
	case action != store.Acknowledged && action != store.Reopened:
		return mistake{http.StatusBadRequest, "An alert can be acknowledged or reopened."}
	case comment == "":
		return mistake{http.StatusBadRequest, "Write a comment: the next reviewer will ask why."}
	case !utf8.ValidString(comment) || utf8.RuneCountInString(comment) > maxComment:
		return mistake{http.StatusBadRequest, fmt.Sprintf("The comment is longer than %d characters, or no text.", maxComment)}
	}
	a, _, err := s.data.Alert(r.Context(), id)
	if err != nil {
		return err
	}
	return s.data.AddAlertEvent(r.Context(), a.Alert, store.AlertEvent{
		ID: event, AlertID: a.ID, At: s.c.Now().UTC(), Action: action, Who: s.c.Who(r), Comment: comment, Tenant: a.Tenant,
	})
}
