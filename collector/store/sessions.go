package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"auditproxy/schemas/audit"
)

// A Session summarizes one run of a proxy.
type Session struct {
	SessionID     string    `ch:"session_id"`
	Tenant        string    `ch:"tenant"`
	FirstTS       time.Time `ch:"first_ts"`
	LastTS        time.Time `ch:"last_ts"`
	LastIngested  time.Time `ch:"last_ingested"`
	Host          string    `ch:"host"`
	User          string    `ch:"user"`
	ClientID      string    `ch:"client_id"`
	ClientName    string    `ch:"client_name"`
	ServerName    string    `ch:"server_name"`
	ServerCommand string    `ch:"server_command"`
	Ended         bool      `ch:"ended"`
	Died          bool      `ch:"died"` // its end was written by recovery
	Records       uint64    `ch:"records"`
	Calls         uint64    `ch:"calls_n"`
	Errors        uint64    `ch:"errors_n"` // calls whose outcome is not ok
	Open          uint64    `ch:"open_n"`
	Missing       uint64    `ch:"missing_n"` // records
	Anomalies     uint64    `ch:"anomalies_n"`
	Gaps          uint64    `ch:"gaps_n"`
}

// State returns the session's state in a word.
func (s Session) State(now time.Time) string {
	switch {
	case s.Died:
		return "died"
	case s.Ended:
		return "ended"
	case s.LastIngested.Before(now.Add(-quietAfter)):
		return "quiet"
	default:
		return "running"
	}
}

// quietAfter is the time without a record after which an open session is
// quiet: an agent may wait for long, and its end may be lost.
const quietAfter = time.Hour

const sessionColumns = `session_id, tenant, first_ts, last_ts, last_ingested, host, user, client_id, client_name, server_name, server_command,
	toBool(ended) AS ended, toBool(died) AS died,
	bitmapCardinality(seqs) AS records, bitmapCardinality(calls) AS calls_n, bitmapCardinality(errors) AS errors_n,
	bitmapAndnotCardinality(opened, calls) AS open_n, ` + missingSQL + ` AS missing_n,
	bitmapCardinality(anomalies) AS anomalies_n, bitmapCardinality(gaps) AS gaps_n`

// A SessionFilter chooses sessions.
type SessionFilter struct {
	Window  Window // in which they were active
	Host    string
	User    string
	Client  string // the name that it gives, or its client_id
	Problem string // "": all; quiet, died, open, missing, anomalies, gaps, errors
	After   string // a session_id: only those that began before it, by their id
}

// problems are conditions on a session.
var problems = map[string]string{
	"quiet":     "NOT ended AND last_ingested < fromUnixTimestamp64Micro({quiet:Int64}, 'UTC')",
	"running":   "NOT ended AND last_ingested >= fromUnixTimestamp64Micro({quiet:Int64}, 'UTC')",
	"died":      "died",
	"open":      "bitmapAndnotCardinality(opened, calls) > 0",
	"missing":   holedSQL,
	"anomalies": "bitmapCardinality(anomalies) > 0",
	"gaps":      "bitmapCardinality(gaps) > 0",
	"errors":    "bitmapCardinality(errors) > 0",
	"unknown":   "bitmapCardinality(unknown) > 0",
}

// Sessions returns up to limit sessions, the last ones first. Their ids are
// UUIDv7, so their order is that of their beginnings.
func (r *Reader) Sessions(ctx context.Context, f SessionFilter, limit int) ([]Session, error) {
	a := f.Window.bounded().args(args{"limit": limit, "quiet": micros(time.Now().Add(-quietAfter))})
	where := sessionActive
	and := func(value, name, condition string) {
		if value != "" {
			where += " AND " + condition
			a[name] = value
		}
	}
	and(f.Host, "host", "host = {host:String}")
	and(f.User, "user", "user = {user:String}")
	and(f.Client, "client", "(client_name = {client:String} OR client_id = {client:String})")
	and(f.After, "after", "session_id < {after:String}")
	if p := problems[f.Problem]; p != "" {
		where += " AND " + p
	}
	// The sets of numbers are most of a row, and need many times more memory than
	// on disk: only those of the chosen sessions are read.
	return ask[Session](ctx, r, "sessions", "SELECT "+sessionColumns+` FROM session_states FINAL
		PREWHERE (tenant, session_id) IN (SELECT tenant, session_id FROM session_states FINAL WHERE `+where+`
			ORDER BY session_id DESC, tenant LIMIT {limit:UInt32})
		ORDER BY session_id DESC, tenant`, a)
}

// Session returns one session, or ErrNotFound.
func (r *Reader) Session(ctx context.Context, id string) (Session, error) {
	list, err := ask[Session](ctx, r, "a session", "SELECT "+sessionColumns+" FROM session_states FINAL PREWHERE session_id = {id:String} LIMIT 1", args{"id": id})
	if err == nil && len(list) == 0 {
		return Session{}, ErrNotFound
	}
	if err != nil {
		return Session{}, err
	}
	return list[0], nil
}

// A Verification is what checking the evidence of a session found last.
type Verification struct {
	SessionID string    `ch:"session_id"`
	State     string    `ch:"last_state"` // ok, tampered, incomplete, erased, unsigned, unknown_key, unreadable
	At        time.Time `ch:"last_at"`
	Records   uint64    `ch:"last_records"`
	Verified  uint64    `ch:"last_verified"` // so many of them, from the first on
	LogSize   uint64    `ch:"last_log_size"` // of the central log; 0: it was compared with none
	Unclear   string    `ch:"last_findings"` // JSON: of an incomplete one, why it is not clear what it was

	// Tampered is when it was last found to be tampered with, whatever was found
	// since; zero: never.
	Tampered time.Time `ch:"tampered_at"`
	Findings string    `ch:"tampered_findings"` // JSON, of then
}

// Verifications returns what was found of sessions, those that were verified.
func (r *Reader) Verifications(ctx context.Context, ids []string) (map[string]Verification, error) {
	found := map[string]Verification{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := ask[Verification](ctx, r, "verifications", `
		SELECT session_id, argMax(state, at) AS last_state, max(at) AS last_at, argMax(records, at) AS last_records, argMax(verified, at) AS last_verified,
		       argMax(log_size, at) AS last_log_size, argMax(findings, at) AS last_findings, maxIf(at, state = 'tampered') AS tampered_at, argMaxIf(findings, at, state = 'tampered') AS tampered_findings
		FROM verifications WHERE session_id IN {ids:Array(String)} GROUP BY session_id`, args{"ids": ids})
	for _, v := range list {
		v.Tampered = zeroTime(v.Tampered)
		found[v.SessionID] = v
	}
	return found, err
}

// sessionActive chooses the sessions of a window. Those that began in it have the greatest
// ids; the index finds the others.
const sessionActive = `(session_id >= {low:String} OR (tenant, session_id) IN (
	SELECT tenant, session_id FROM session_states WHERE bitXor(toUnixTimestamp64Micro(last_ts), 0) >= {from:Int64} AND session_id < {low:String}))
	AND last_ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND first_ts < fromUnixTimestamp64Micro({to:Int64}, 'UTC')`

func (w Window) args(a args) args {
	ms := uint64(w.From.UnixMilli()) // a UUIDv7 begins with it
	a["from"], a["to"], a["low"] = micros(w.From), micros(w.To), fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
	return a
}

// Timeline returns up to limit records of a session from the number seq on, in
// the order in which they were written.
func (r *Reader) Timeline(ctx context.Context, se Session, seq uint64, limit int) ([]Line, error) {
	// Some of the numbers may be of records that were removed since: then the same is
	// asked of more numbers.
	for n := limit; ; n *= 8 {
		in, err := r.reach(ctx, se, seq, n)
		if err != nil {
			return nil, err
		}
		list, err := ask[Line](ctx, r, "a session's records", "SELECT "+lineColumns+` FROM events FINAL
			PREWHERE session_id = {session:String} AND `+withinSession+` AND `+withinReach+`
			ORDER BY seq, payload_hash LIMIT {limit:UInt32}`, in.args(se.args(args{"limit": limit})))
		if err != nil || len(list) == limit || !in.More {
			return list, err
		}
	}
}

// A reach is a part of the numbers of a session. An agent decides how many records
// a session has, and FINAL needs memory for all that it reads.
type reach struct {
	first uint64
	Last  uint64 `ch:"last"` // of those that are known; without any, first
	More  bool   `ch:"more"` // there are some after Last
}

// reach returns up to n numbers of a session, from the number seq on.
func (r *Reader) reach(ctx context.Context, se Session, seq uint64, n int) (reach, error) {
	in, err := askOne[reach](ctx, r, "a session's numbers", `
		SELECT greatest(bitmapMax(bitmapSubsetLimit(seqs, {seq:UInt64}, {n:UInt64})), {seq:UInt64}) AS last, bitmapMax(seqs) > last AS more
		FROM session_states FINAL PREWHERE tenant = {tenant:String} AND session_id = {session:String}`,
		args{"tenant": se.Tenant, "session": se.SessionID, "seq": seq, "n": n})
	in.first = seq
	return in, err
}

// withinReach narrows reading to a reach. The last one has no end.
const withinReach = `seq >= {first:UInt64} AND (seq <= {last:UInt64} OR NOT {more:Bool})`

func (in reach) args(a args) args {
	a["first"], a["last"], a["more"] = in.first, in.Last, in.More
	return a
}

// withinSession narrows reading to the time of a session.
const withinSession = `ts >= fromUnixTimestamp64Micro({begin:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Micro({end:Int64}, 'UTC')`

func (s Session) args(a args) args {
	a["session"], a["begin"], a["end"] = s.SessionID, micros(s.FirstTS), micros(s.LastTS)
	return a
}

// A Summary lists operations and effects of a session, the most frequent first.
type Summary struct {
	Last       uint64 // the number of the last record that it is about
	More       bool   // the session has others after it
	Operations []NameCount
	Panes      []NameCount
	Pipes      []NameCount
	Variables  []NameCount
	Errors     []NameCount
}

// A NameCount is a name and its number of occurrences.
type NameCount struct {
	What string `ch:"what"`
	Name string `ch:"name"` // "": not given, or not in the record
	N    uint64 `ch:"n"`

	Refused uint64 `ch:"refused"` // of N: the server did not get these
}

// maxNames is the most names of each sort in a Summary.
const maxNames = 50

// Summary summarizes calls of a session: those of up to n records, from the number
// seq on.
func (r *Reader) Summary(ctx context.Context, se Session, seq uint64, n int) (Summary, error) {
	in, err := r.reach(ctx, se, seq, n)
	if err != nil {
		return Summary{}, err
	}
	rows, err := ask[NameCount](ctx, r, "what a session did", `
		SELECT item.1 AS what, item.2 AS name, count() AS n, countIf(not_passed) AS refused FROM (
			SELECT NOT forwarded AND error_type IN ('`+strings.Join(audit.Refusals(), "', '")+`') AS not_passed, arrayJoin(arrayConcat(
				[('operation', operation)],
				if(JSONExtractString(operation_args, 'pane_id') != '', [('pane', JSONExtractString(operation_args, 'pane_id'))], []),
				if(operation = 'pipe_pane' AND JSONExtractRaw(operation_args, 'output_path') != 'null', [('pipe', if(JSONType(operation_args, 'output_path') = 'String', JSONExtractString(operation_args, 'output_path'),
					JSONExtractRaw(operation_args, 'output_path')))], []),
				arrayMap(v -> ('variable', v), multiIf(operation = 'set_environment', [JSONExtractString(operation_args, 'name')],
					JSONType(operation_args, 'environment') = 'Object', JSONExtractKeys(operation_args, 'environment'), [])),
				if(path = '' AND outcome != 'ok', [('error', error_type)], []))) AS item
			FROM events FINAL
			ARRAY JOIN ops AS operation, ops_args AS operation_args, ops_path AS path
			PREWHERE session_id = {session:String} AND `+withinSession+` AND `+withinReach+` AND kind = 'call')
		GROUP BY what, name ORDER BY n DESC, name LIMIT {names:UInt32} BY what`, in.args(se.args(args{"names": maxNames})))
	e := Summary{Last: in.Last, More: in.More}
	lists := map[string]*[]NameCount{"operation": &e.Operations, "pane": &e.Panes, "pipe": &e.Pipes, "variable": &e.Variables, "error": &e.Errors}
	for _, row := range rows {
		*lists[row.What] = append(*lists[row.What], row)
	}
	return e, err
}
