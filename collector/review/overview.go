package review

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"auditproxy/collector/store"
)

// overviewPage shows what may be wrong first, then all activity.
type overviewPage struct {
	When      when
	Attention []finding // what may be wrong, the worst first
	Quiet     []finding // checks without a finding
	Overview  store.Overview
	Sessions  store.SessionsState
	Arrival   store.Arrival
	Chart     chart
	MaxTool   uint64 // operations of the most used tool
	Failed    []store.Failure
	Unread    struct{ Activity, Latency, Sessions, Arrival bool } // by a failure
}

// A finding is the result of one check.
type finding struct {
	Mark mark
	N    uint64
	One  string // what N is of, if it is 1: "open alert"
	Many string // and otherwise
	Why  string // what it means, or what to do
	Link string
}

// Label returns the noun for f's number.
func (f finding) Label() string {
	if f.N == 1 {
		return f.One
	}
	return f.Many
}

func (s *Server) overview(r *http.Request) (page, error) {
	q := r.URL.Query()
	if err := known(q, timeNames...); err != nil {
		return page{}, err
	}
	w, err := s.when(q, "24h")
	if err != nil {
		return page{}, err
	}
	var o store.Overview
	var at store.Attention
	var noActivity, noAttention error // one does not end the other: a reviewer sees what can be read
	var g sync.WaitGroup
	g.Go(func() { o, noActivity = s.data.Overview(r.Context(), w.Window) })
	g.Go(func() { at, noAttention = s.data.Attention(r.Context(), w.Window) })
	g.Wait()
	if err := cmp.Or(noAttention, r.Context().Err()); err != nil {
		return page{}, err
	}
	body := overviewPage{When: w, Overview: o, Sessions: at.Sessions, Arrival: at.Arrival, Chart: newChart(o), Failed: append(at.Failed, o.Failed...)}
	body.Unread.Activity, body.Unread.Latency = noActivity != nil, !o.Has(store.PartLatency)
	body.Unread.Sessions, body.Unread.Arrival = !at.Has(store.PartSessions), !at.Has(store.PartArrival)
	if noActivity != nil {
		body.Failed = append(body.Failed, store.Failure{Part: "calls over time", Err: noActivity})
		body.Overview.Window = w.Window
	}
	for _, f := range body.Failed {
		s.c.Log.Error("part of the overview not read", zap.String("part", f.Part), zap.Error(f.Err))
	}
	for _, f := range s.findings(w, at) {
		if f.N > 0 {
			body.Attention = append(body.Attention, f)
		} else {
			body.Quiet = append(body.Quiet, f)
		}
	}
	if len(o.Tools) > 0 {
		body.MaxTool = o.Tools[0].Operations
	}
	return page{Template: "overview", Title: "Overview", Section: "overview", Body: body}, nil
}

// findings lists the results of all checks, the gravest first.
func (s *Server) findings(w when, at store.Attention) []finding {
	sessions := func(problem string) string { return with("/sessions", w.values(), "problem", problem) }
	calls := func(pairs ...string) string { return with("/calls", w.values(), pairs...) }
	bad, warn := mark{"▲", "wrong", "bad"}, mark{"▲", "look at it", "warn"}
	st := at.Sessions
	var list []finding
	if a := at.Alerts; a != nil && at.Has(store.PartAlerts) {
		list = append(list,
			finding{bad, a.Critical, "open critical alert", "open critical alerts", "of any time, not acknowledged", "/alerts?state=open&severity=critical"},
			finding{warn, a.Warning, "open warning alert", "open warning alerts", "of any time, not acknowledged", "/alerts?state=open&severity=warning"},
			finding{mark{"●", "know it", "faint"}, a.Info, "open info alert", "open info alerts", "of any time, not acknowledged", "/alerts?state=open&severity=info"})
	}
	if at.Has(store.PartSessions) {
		list = append(list,
			finding{bad, st.Missing, "record missing", "records missing", "their numbers are not here, in " + plural(st.Holed, "session") + ": lost, removed, or still on their host", sessions("missing")},
			finding{bad, st.Gaps, "gap in recording", "gaps in recording", "calls could not be recorded for some time; each gap has their number", calls("kind", "gap")})
	}
	if at.Has(store.PartRewrites) {
		list = append(list, finding{bad, at.Rewrites.Records, "record in two versions", "records in two versions", "one place in a session, two contents: looked at from " + stamp(at.Rewrites.Window.From), ""})
	}
	if o := at.Offsets; o != nil && at.Has(store.PartOffsets) {
		list = append(list, finding{bad, o.Missing, "offset never received", "offsets never received", "removed from the topic or the spool before they were read", ""})
	}
	if at.Has(store.PartSessions) {
		list = append(list,
			finding{warn, st.Unknown, "call with unknown outcome", "calls with unknown outcome", "the proxy died before the answer; the server may have done it", calls("outcome", "unknown")},
			finding{warn, st.Died, "session that died", "sessions that died", "their proxy was killed; recovery wrote their end", sessions("died")},
			finding{warn, st.Quiet, "session without an end", "sessions without an end", "no records for an hour", sessions("quiet")},
			finding{warn, st.Open, "call still open", "calls still open", "no answer for a minute or more", sessions("open")},
			finding{warn, st.Anomalies, "anomaly", "anomalies", "bytes that servers may read differently, answers out of turn, records cut", calls("kind", store.AnyKind, "anomalous", "1")})
	}
	if at.Has(store.PartDecisions) {
		decisions := func(decision string) string { return with("/decisions", w.values(), "decision", decision) }
		note := mark{"●", "know it", "faint"}
		list = append(list,
			finding{warn, at.Decided.Denied, "call denied", "calls denied", "a policy refused them", decisions(store.Denied)},
			finding{note, at.Decided.Asked, "call asked for", "calls asked for", "a policy wants an approval", decisions(store.Asked)},
			finding{note, at.Decided.WouldDeny, "call that would be denied", "calls that would be denied", "the policy only observes", decisions(store.WouldDeny)},
			finding{note, at.Decided.WouldAsk, "call that would be asked for", "calls that would be asked for", "the policy only observes", decisions(store.WouldAsk)})
	}
	if l := at.Letters; l != nil && at.Has(store.PartLetters) {
		list = append(list, finding{warn, l.Waiting, "dead letter", "dead letters", "refused by the collector: auditcollector dead-letters has their reasons", ""})
	}
	return list
}

// A chart is bars over time, stacked by outcome.
type chart struct {
	Width, Height int
	Bars          []bar
	Ticks         []tick // of the time
	Top           uint64 // calls at the upper edge
	Step          string
	From, To      string
}

type bar struct {
	X, Width                  float64
	OKY, OKHeight             float64
	ErrorY, ErrorHeight       float64
	UnknownY, UnknownHeight   float64
	Label, Link               string
	Calls, OK, Error, Unknown uint64
	Start                     string
}

type tick struct {
	X     float64
	Label string
}

const (
	chartWidth  = 960
	chartHeight = 160
)

// newChart lays out o's series. A nonzero count is at least a pixel high.
func newChart(o store.Overview) chart {
	c := chart{Width: chartWidth, Height: chartHeight, From: stamp(o.Window.From), To: stamp(o.Window.To), Step: stepName(o)}
	for _, n := range o.Series {
		c.Top = max(c.Top, n.Calls())
	}
	if len(o.Series) == 0 {
		return c
	}
	slot := float64(chartWidth) / float64(len(o.Series))
	every := (len(o.Series) + 7) / 8
	layout := "15:04"
	if o.Step >= day || o.Window.To.Sub(o.Window.From) > 3*day {
		layout = "01-02"
	}
	for i, n := range o.Series {
		b := bar{X: float64(i)*slot + slot*0.1, Width: slot * 0.8, Calls: n.Calls(), OK: n.OK, Error: n.Error, Unknown: n.Unknown, Start: stamp(n.Start)}
		y := float64(chartHeight)
		stack := func(n uint64) (top, height float64) {
			if n > 0 {
				height = max(float64(n)/float64(c.Top)*(chartHeight-2), 1)
			}
			y -= height
			return y, height
		}
		b.OKY, b.OKHeight = stack(n.OK)
		b.ErrorY, b.ErrorHeight = stack(n.Error)
		b.UnknownY, b.UnknownHeight = stack(n.Unknown)
		b.Link = link("/calls", "from", n.Start.Format(time.RFC3339), "to", n.Start.Add(o.Step).Format(time.RFC3339))
		b.Label = stamp(n.Start) + ": " + plural(b.Calls, "call") + ", " + count(n.Error) + " failed, " + count(n.Unknown) + " unknown"
		c.Bars = append(c.Bars, b)
		if i%every == 0 {
			c.Ticks = append(c.Ticks, tick{float64(i) * slot, n.Start.Format(layout)})
		}
	}
	return c
}

func stepName(o store.Overview) string {
	hours := int(o.Step.Hours())
	switch {
	case hours == 1:
		return "hour"
	case hours < 24:
		return strconv.Itoa(hours) + " hours"
	case hours == 24:
		return "day"
	}
	return strconv.Itoa(hours/24) + " days"
}
