package alert

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// One producer chooses how many alerts there are, and receivers take some dozens a
// second: without a bound, the alerts of all others would wait for hours behind those of
// one session.
const (
	ofSession = 100            // alerts of one rule in an hour that are sent
	ofUser    = 10 * ofSession // of a user on a host, in all sessions
	floodFor  = time.Hour
	floodMost = 100_000 // alerts that are remembered; beyond, counting begins again
)

// A Flood counts the alerts of one rule that are sent, by their producers. It is of this
// process: after a restart, as many are sent again. Its methods may be called
// concurrently. The zero value has counted nothing.
type Flood struct {
	mu    sync.Mutex
	since time.Time                    // guarded by mu
	sent  map[[5]string]map[string]int // the number of an alert by its id; guarded by mu
	n     int                          // alerts in sent; guarded by mu
}

// Bound suppresses a if it is one too many, and notes in the last one before that others
// may follow. An alert that could not be stored is the same one when it is tried again. It
// leaves alone what lasts, and what is about several producers.
func (f *Flood) Bound(a *Alert, now time.Time) {
	if a.Lasting != "" || a.SessionID == "" && a.Host == "" && a.User == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.since); age < 0 || age >= floodFor || f.n >= floodMost {
		f.since, f.sent, f.n = now, map[[5]string]map[string]int{}, 0
	}
	user := [5]string{a.Rule, a.Tenant, a.Host, a.User}
	session := [5]string{a.Rule, a.Tenant, a.Host, a.User, "session " + a.SessionID}
	a.Suppressed = f.full(user, a.ID, ofUser) || f.full(session, a.ID, ofSession)
	if a.Suppressed {
		return
	}
	const text = "the rule has found %d operations of this %s within an hour: what else it finds is stored as suppressed"
	if f.count(user, a.ID) == ofUser {
		a.note("not_sent", fmt.Sprintf(text, ofUser, "user on this host"))
	}
	if f.count(session, a.ID) == ofSession {
		a.note("not_sent", fmt.Sprintf(text, ofSession, "session"))
	}
}

func (f *Flood) full(key [5]string, id string, most int) bool {
	_, known := f.sent[key][id]
	return !known && len(f.sent[key]) >= most
}

// count returns the number of an alert among those of key.
func (f *Flood) count(key [5]string, id string) int {
	if n, known := f.sent[key][id]; known {
		return n
	}
	if f.sent[key] == nil {
		f.sent[key] = map[string]int{}
	}
	n := len(f.sent[key]) + 1
	f.sent[key][id] = n
	f.n++
	return n
}

// note adds a text to a's details.
func (a *Alert) note(name, text string) {
	before, ok := strings.CutSuffix(a.Details, "}")
	if !ok {
		return
	}
	if before != "{" {
		before += ","
	}
	a.Details = before + string(quoteJSON(name)) + ":" + string(quoteJSON(text)) + "}"
}
