package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"time"

	"auditproxy/collector/store"
)

// A row is the measurement of one page.
type row struct {
	name           string
	median, target time.Duration
}

// The targets at ten million records.
const (
	overviewTarget = time.Second
	listTarget     = 300 * time.Millisecond
	callTarget     = 100 * time.Millisecond
)

// measure requests each page several times. The pages alternate, so that other
// load on the machine affects all alike. prefix begins the rows' names.
func measure(ctx context.Context, r *store.Reader, pages http.Handler, rounds int, prefix string) ([]row, error) {
	newest, err := r.Calls(ctx, store.Filter{}, store.Page{Limit: 2000})
	if err != nil {
		return nil, err
	}
	if len(newest.Lines) < 2000 {
		return nil, fmt.Errorf("there are %d calls, want 2000 or more", len(newest.Lines))
	}
	l := newest.Lines[1999]
	before := "&before=" + url.QueryEscape(l.Cursor().String())
	rows := []struct {
		row
		path string
	}{
		{row{"overview, 24 hours", 0, overviewTarget}, "/"},
		{row{"overview, 30 days", 0, overviewTarget}, "/?span=30d"},
		{row{"calls", 0, listTarget}, "/calls"},
		{row{"calls, a later page", 0, listTarget}, "/calls?span=30d" + before},
		{row{"calls, a word in arguments", 0, listTarget}, "/calls?span=30d&text=ticket777"},
		{row{"calls, two common words", 0, listTarget}, "/calls?span=30d&text=deploy+release"},
		{row{"calls, a word that is nowhere", 0, listTarget}, "/calls?span=30d&text=nowhere"},
		{row{"calls, a tool", 0, listTarget}, "/calls?span=30d&op=pipe_pane"},
		{row{"calls, failed on a host", 0, listTarget}, "/calls?span=30d&outcome=error&host=host-3"},
		{row{"calls, of a session", 0, listTarget}, "/calls?span=30d&session=" + l.SessionID},
		{row{"calls, of a tier with a word", 0, listTarget}, "/calls?span=30d&tier=execute&text=logs"},
		{row{"calls, denied", 0, listTarget}, "/calls?span=30d&decision=denied"},
		{row{"calls, of a rule on a host", 0, listTarget}, "/calls?span=30d&rule=%2Ftools%2Fkill_pane%2Fdeny_if%2F1&host=host-3"},
		{row{"calls, of a rare detector", 0, listTarget}, "/calls?span=30d&detector=fork_bomb"},
		{row{"calls, of a detector that is nowhere", 0, listTarget}, "/calls?span=30d&detector=device_write"},
		{row{"calls, of a decision that is nowhere", 0, listTarget}, "/calls?span=30d&decision=any&risk=financial"},
		{row{"decisions, 7 days", 0, listTarget}, "/decisions"},
		{row{"decisions, 30 days", 0, overviewTarget}, "/decisions?span=30d"},
		{row{"decisions, of a user", 0, overviewTarget}, "/decisions?span=30d&user=user3&decision=denied"},
		{row{"a call", 0, callTarget}, "/calls/" + l.RecordID.String()},
		{row{"a session", 0, listTarget}, "/sessions/" + l.SessionID},
		{row{"sessions", 0, listTarget}, "/sessions?span=30d"},
		{row{"destinations", 0, listTarget}, "/destinations"},
		{row{"environment", 0, listTarget}, "/environment"},
		{row{"tools", 0, listTarget}, "/tools"},
		{row{"alerts", 0, listTarget}, "/alerts"},
	}
	times := make([][]time.Duration, len(rows))
	for range rounds {
		for i, r := range rows {
			w := httptest.NewRecorder()
			start := time.Now()
			pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", r.path, nil))
			times[i] = append(times[i], time.Since(start))
			if w.Code != http.StatusOK {
				return nil, fmt.Errorf("page %q answers %d: %s", r.path, w.Code, w.Body)
			}
		}
	}
	list := make([]row, len(rows))
	for i, r := range rows {
		slices.Sort(times[i])
		r.median = times[i][len(times[i])/2]
		list[i] = r.row
		list[i].name = prefix + r.name
	}
	return list, nil
}
