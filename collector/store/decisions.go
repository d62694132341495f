package store

import (
	"context"
	"strconv"
	"time"
)

// A DecisionCount is the number of calls by effect. A call counts once, also a
// batch.
type DecisionCount struct {
	Denied    uint64 `ch:"denied"`
	WouldDeny uint64 `ch:"would_deny"`
	Asked     uint64 `ch:"asked"`
	WouldAsk  uint64 `ch:"would_ask"`
}

// Calls is the sum of c.
func (c DecisionCount) Calls() uint64 { return c.Denied + c.WouldDeny + c.Asked + c.WouldAsk }

// A DecisionUse is the decisions by one rule, or about one tool or user.
type DecisionUse struct {
	Name    string   // the rule, tool or user
	Host    string   // of a user
	Reasons []string // of a rule: some texts of its decisions, in order
	DecisionCount
	Last time.Time
}

// A RiskUse is the calls with one category of risk, or with one detection.
type RiskUse struct {
	Name     string
	Calls    uint64
	Sessions uint64
}

// Decisions summarizes the decisions of a window, in whole hours.
type Decisions struct {
	Window     Window
	Total      DecisionCount
	First      time.Time // the hour of the first decision
	Last       time.Time // the last decision
	Rules      []DecisionUse
	Tools      []DecisionUse
	Users      []DecisionUse
	Categories []RiskUse // of all calls of the window and host, also without a policy
	Detectors  []RiskUse // likewise
}

// A DecisionFilter chooses decisions; zero values choose all.
type DecisionFilter struct {
	Window   Window
	Decision string // Denied and the like
	Rule     string
	Tool     string
	Host     string
	User     string
	Category string // of the risk
}

// maxDecisions is the most rules, tools and users of a summary.
const maxDecisions = 50

// maxReasons is the most texts of one rule. A reason can name a tool, and a policy's
// text can change; of those of an hour in one session the table has the last by alphabet.
const maxReasons = 4

// effectCounts are the columns of a DecisionCount. Each counts a bitmap, in which
// duplicates collapse.
const effectCounts = `sumIf(bitmapCardinality(decision_states.calls), effect = 'denied') AS denied,
	sumIf(bitmapCardinality(decision_states.calls), effect = 'would_deny') AS would_deny,
	sumIf(bitmapCardinality(decision_states.calls), effect = 'asked') AS asked,
	sumIf(bitmapCardinality(decision_states.calls), effect = 'would_ask') AS would_ask`

type decisionRow struct {
	By   string `ch:"by"`
	Rule string `ch:"rule"`
	Tool string `ch:"tool"`
	User string `ch:"user"`
	Host string `ch:"host"`
	DecisionCount
	Reasons []string  `ch:"why"`
	First   time.Time `ch:"first"`
	Last    time.Time `ch:"last"`
}

// withinDecisions reads a table of states for a window.
const withinDecisions = ` FINAL WHERE ` + hoursOfWindow

const hoursOfWindow = `hour >= fromUnixTimestamp({from:Int64}) AND hour < fromUnixTimestamp({to:Int64})`

// Decisions summarizes the decisions that match f, the most frequent first.
func (r *Reader) Decisions(ctx context.Context, f DecisionFilter) (Decisions, error) {
	w, _ := f.Window.bounded().hours()
	d := Decisions{Window: w}
	a := args{"from": w.From.Unix(), "to": w.To.Unix(), "limit": maxDecisions}
	where := ""
	for _, c := range []struct{ column, value string }{
		{"effect", f.Decision}, {"rule", f.Rule}, {"tool", f.Tool}, {"host", f.Host}, {"user", f.User}, {"category", f.Category},
	} {
		if c.value == "" || c.column == "effect" && c.value == AnyDecision {
			continue
		}
		// Clients and policies choose the texts of rules and tools. An unknown
		// effect finds nothing.
		where += " AND toString(" + c.column + ") = {" + c.column + ":String}"
		a[c.column] = c.value
	}
	rows, err := ask[decisionRow](ctx, r, "decisions", `
		SELECT multiIf(grouping(rule) = 0, 'rule', grouping(tool) = 0, 'tool', grouping(user) = 0, 'user', 'all') AS by,
		       rule, tool, user, host, `+effectCounts+`, arraySort(groupUniqArrayIf(`+strconv.Itoa(maxReasons)+`)(reason, reason != '')) AS why, min(hour) AS first, max(last_ts) AS last
		FROM decision_states`+withinDecisions+where+`
		GROUP BY GROUPING SETS ((rule), (tool), (user, host), ())
		ORDER BY by, denied + would_deny + asked + would_ask DESC, rule, tool, user, host
		LIMIT {limit:UInt32} BY by`, a)
	for _, row := range rows {
		use := DecisionUse{DecisionCount: row.DecisionCount, Last: row.Last}
		switch row.By {
		case "all":
			d.Total, d.First, d.Last = row.DecisionCount, row.First, row.Last
		case "rule":
			use.Name, use.Reasons = row.Rule, row.Reasons
			d.Rules = append(d.Rules, use)
		case "tool":
			use.Name = row.Tool
			d.Tools = append(d.Tools, use)
		case "user":
			use.Name, use.Host = row.User, row.Host
			d.Users = append(d.Users, use)
		}
	}
	if d.Total.Calls() == 0 {
		d.First, d.Last = time.Time{}, time.Time{}
	}
	if err != nil {
		return d, err
	}
	return d, r.risks(ctx, f, &d)
}

type riskRow struct {
	Category string `ch:"category"`
	Detector string `ch:"detector"`
	Calls    uint64 `ch:"n"`
	Sessions uint64 `ch:"sessions"`
}

// risks fills in the risks of d. They are of calls that no policy decided about
// too, so only the window and the host choose among them.
func (r *Reader) risks(ctx context.Context, f DecisionFilter, d *Decisions) error {
	where, a := "", args{"from": d.Window.From.Unix(), "to": d.Window.To.Unix(), "limit": maxDecisions}
	if f.Host != "" {
		where, a["host"] = " AND host = {host:String}", f.Host
	}
	rows, err := ask[riskRow](ctx, r, "risks", `
		SELECT if(detector = '', category, '') AS category, detector, sum(bitmapCardinality(risk_states.calls)) AS n, uniqExact(session_id) AS sessions
		FROM risk_states`+withinDecisions+where+`
		GROUP BY category, detector
		ORDER BY detector != '', n DESC, category, detector LIMIT {limit:UInt32} BY detector = ''`, a)
	for _, row := range rows {
		if row.Detector == "" {
			d.Categories = append(d.Categories, RiskUse{row.Category, row.Calls, row.Sessions})
		} else {
			d.Detectors = append(d.Detectors, RiskUse{row.Detector, row.Calls, row.Sessions})
		}
	}
	return err
}

// SessionDecisions counts the decisions about a session's calls.
func (r *Reader) SessionDecisions(ctx context.Context, se Session) (DecisionCount, error) {
	w, _ := Window{se.FirstTS, se.LastTS.Add(time.Microsecond)}.bounded().hours()
	return askOne[DecisionCount](ctx, r, "a session's decisions", "SELECT "+effectCounts+" FROM decision_states FINAL PREWHERE session_id = {session:String} WHERE "+hoursOfWindow,
		args{"from": w.From.Unix(), "to": w.To.Unix(), "session": se.SessionID})
}
