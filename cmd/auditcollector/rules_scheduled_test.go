package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/google/go-cmp/cmp"
)

// A history is records as they arrived.
type history struct {
	t    *testing.T
	now  time.Time
	rows map[time.Duration][]ingest.Row // by how long ago they happened and arrived
	seq  uint64

	number uint32 // of the history among those that are stored together
	tenant string // what the name of each of its tenants ends with

	statements []string // after the records
}

// add adds a call of a time ago.
func (h *history) add(age time.Duration, change ...func(*audit.Record)) {
	ts := h.now.Add(-age)
	r := audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(ts), SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab",
		Seq: h.seq, CallNo: h.seq + 1, TS: ts, Method: "tools/call", Tool: "list_panes", Args: "{}",
		Outcome: audit.OutcomeOK, Duration: time.Millisecond, Host: "h1", User: "ann", Tenant: "acme",
		Server: audit.Peer{Name: "tmux", Version: "1"}, ToolHash: strings.Repeat("a", 64),
	}
	h.seq++
	for _, c := range change {
		c(&r)
	}
	r.Tenant += h.tenant
	raw := audit.AppendRecord(nil, &r)
	decoder := ingest.Decoder{Keep: 400 * day}
	row, err := decoder.Retry(ingest.DeadLetter{
		Source: ingest.Source{Topic: "t", Partition: 10 * h.number, Offset: h.seq}, Key: r.SessionID, Raw: raw[:len(raw)-1],
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.rows[age] = append(h.rows[age], row)
}

// session adds the calls of an agent with libtmux-mcp, as make demo drives it.
func (h *history) session(age time.Duration) {
	lines, err := os.ReadFile("../../collector/alert/testdata/ordinary.jsonl")
	if err != nil {
		h.t.Fatal(err)
	}
	id := audit.NewID(h.now)
	h.seq = 0
	for line := range strings.Lines(string(lines)) {
		recorded, err := audit.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			h.t.Fatal(err)
		}
		h.add(age, func(r *audit.Record) {
			ts := r.TS
			*r = recorded
			r.SessionID, r.RecordID, r.TS = id, audit.NewID(ts), ts
		})
	}
}

// skipped adds offsets that a collector found, a time ago, not to have been read, of which
// those up to one were read later.
func (h *history) skipped(age time.Duration, from, readTo int) {
	h.statements = append(h.statements, fmt.Sprintf("INSERT INTO audit.gaps (seen_at, kafka_topic, kafka_partition, from_offset, to_offset, reason, read_to) VALUES (fromUnixTimestamp64Milli(%d), 't', 1, %d, %d, 'offset was set', %d)",
		h.now.Add(-age).UnixMilli(), from, from+4, readTo))
}

// neverRead returns how many gaps and offsets that were never read the page shows of a day.
func neverRead(t *testing.T, r *store.Reader, now time.Time) [2]uint64 {
	t.Helper()
	seen, err := r.Attention(t.Context(), store.Window{From: now.Add(-day), To: now.Add(hour)})
	if err != nil || seen.Offsets == nil {
		t.Fatal(err, seen.Failed)
	}
	return [2]uint64{seen.Offsets.Gaps, seen.Offsets.Missing}
}

// verified adds what a verification of a time ago found.
func (h *history) verified(state string, age time.Duration, findings string) {
	h.statements = append(h.statements, fmt.Sprintf("INSERT INTO audit.verifications (tenant, session_id, state, at, first_ts, findings) VALUES ('acme%s', 's', '%s', fromUnixTimestamp64Milli(%d), now() - INTERVAL 1 DAY, '%s')",
		h.tenant, state, h.now.Add(-age).UnixMilli(), findings))
}

func (h *history) many(n int, age time.Duration, change ...func(*audit.Record)) {
	for range n {
		h.add(age, change...)
	}
}

const (
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * hour
)

// behind is of a host whose clock is so much behind.
func behind(by time.Duration) func(*audit.Record) {
	return func(r *audit.Record) { r.TS = r.TS.Add(-by) }
}

func tool(name string) func(*audit.Record) { return func(r *audit.Record) { r.Tool = name } }
func arguments(args string) func(*audit.Record) {
	return func(r *audit.Record) { r.Args = audit.JSON(args) }
}
func number(seq uint64) func(*audit.Record) { return func(r *audit.Record) { r.Seq = seq } }
func failed(r *audit.Record) {
	r.Outcome, r.ErrorType = audit.OutcomeError, audit.ErrToolError
}
func kind(k audit.Kind) func(*audit.Record) {
	return func(r *audit.Record) {
		if r.Kind = k; k != audit.KindOpen {
			r.CallNo, r.Method, r.Tool, r.Args = 0, "", "", ""
		}
		r.Outcome = ""
	}
}

// scheduled are histories, and how many alerts the shipped rule of this name
// finds in what arrived in the last two hours.
var scheduled = []struct {
	rule, what string
	want       int
	history    func(h *history)
}{
	{"retry-loop", "the same call 60 times in a minute", 1, func(h *history) { h.many(60, hour) }},
	{"retry-loop", "inside batches", 1, func(h *history) {
		h.many(30, hour, tool("call_tools_batch"), func(r *audit.Record) {
			r.Args = audit.JSON(fmt.Sprintf(`{"n":%d,"operations":[{"tool":"x","arguments":{}},{"tool":"x","arguments":{}}]}`, r.Seq))
		})
	}},
	{"retry-loop", "59 times", 0, func(h *history) { h.many(59, hour) }},
	{"retry-loop", "100 different calls", 0, func(h *history) {
		h.many(100, hour, func(r *audit.Record) { r.Args = audit.JSON(fmt.Sprintf(`{"n":%d}`, r.Seq)) })
	}},
	{"retry-loop", "over many minutes", 0, func(h *history) {
		for i := range 8 {
			h.many(10, hour-time.Duration(i)*minute)
		}
	}},
	{"retry-loop", "open and final records of the same calls", 0, func(h *history) {
		for range 40 {
			h.add(hour, kind(audit.KindOpen))
			h.add(hour)
		}
	}},
	{"retry-loop", "long ago", 0, func(h *history) { h.many(60, day) }},
	{"tool-changed", "another definition", 1, func(h *history) {
		h.add(2*day, func(r *audit.Record) { r.ToolHash = strings.Repeat("b", 64) })
		h.add(hour)
	}},
	{"tool-changed", "by a clock that is behind", 1, func(h *history) {
		h.add(2 * day)
		h.add(hour, behind(300*day), func(r *audit.Record) { r.ToolHash = strings.Repeat("b", 64) })
	}},
	{"tool-changed", "another definition of another version", 0, func(h *history) {
		h.add(2*day, func(r *audit.Record) { r.ToolHash, r.Server.Version = strings.Repeat("b", 64), "2" })
		h.add(hour)
	}},
	{"tool-changed", "known for long", 0, func(h *history) {
		h.add(2*day, func(r *audit.Record) { r.ToolHash = strings.Repeat("b", 64) })
		h.add(day)
		h.add(hour)
	}},
	{"tool-changed", "the first definition", 0, func(h *history) { h.many(3, hour) }},
	{"new-tool", "after a week", 1, func(h *history) {
		h.add(8 * day)
		h.add(hour, tool("kill_server"))
	}},
	{"new-tool", "after a week, by a clock that is behind", 1, func(h *history) {
		h.add(8 * day)
		h.add(hour, behind(300*day), tool("kill_server"))
	}},
	{"new-tool", "in the first week, by a clock that is behind", 0, func(h *history) {
		h.add(6 * day)
		h.add(hour, behind(6*day), tool("kill_server"))
	}},
	{"new-tool", "inside a batch", 2, func(h *history) { // the batch itself is new too
		h.add(8 * day)
		h.add(hour, tool("batch"), arguments(`{"operations":[{"tool":"kill_server","arguments":{}}]}`))
	}},
	{"new-tool", "in the first week", 0, func(h *history) {
		h.add(6 * day)
		h.add(hour, tool("kill_server"))
	}},
	{"new-tool", "of another tenant's server", 0, func(h *history) {
		h.add(8*day, func(r *audit.Record) { r.Tenant = "other" })
		h.add(hour)
	}},
	{"new-destination", "after a week", 1, func(h *history) {
		h.add(8*day, tool("pipe_pane"), arguments(`{"output_path":"/a"}`))
		h.add(hour, tool("batch"), arguments(`{"operations":[{"tool":"pipe_pane","arguments":{"output_path":"/b"}}]}`))
	}},
	{"new-destination", "after a week, by a clock that is behind", 1, func(h *history) {
		h.add(8*day, tool("pipe_pane"), arguments(`{"output_path":"/a"}`))
		h.add(hour, behind(300*day), tool("pipe_pane"), arguments(`{"output_path":"/b"}`))
	}},
	{"new-destination", "a known one, and the end of a pipe", 0, func(h *history) {
		h.add(8*day, tool("pipe_pane"), arguments(`{"output_path":"/a"}`))
		h.add(hour, tool("pipe_pane"), arguments(`{"output_path":"/a"}`))
		h.add(hour, tool("pipe_pane"), arguments(`{"pane_id":"%1"}`))
	}},
	{"error-rate", "half fail", 1, func(h *history) { h.many(10, hour); h.many(10, hour, failed) }},
	{"error-rate", "fewer fail", 0, func(h *history) { h.many(30, hour); h.many(20, hour, failed) }},
	{"error-rate", "few calls", 0, func(h *history) { h.many(19, hour, failed) }},
	{"sequence-gap", "a number is missing", 1, func(h *history) { h.add(hour); h.seq++; h.add(hour) }},
	{"sequence-gap", "the first is missing", 1, func(h *history) { h.seq = 1; h.add(hour) }},
	{"sequence-gap", "none is missing", 0, func(h *history) { h.add(2 * day); h.many(3, hour) }},
	{"sequence-gap", "and others keep coming", 1, func(h *history) { h.add(hour); h.seq++; h.add(hour); h.add(time.Second) }},
	{"sequence-gap", "another tenant has the number", 1, func(h *history) {
		other := func(r *audit.Record) { r.Tenant = "other" }
		h.add(hour)
		h.seq = 0
		h.many(2, hour, other)
		h.add(hour)
	}},
	{"sequence-gap", "and a record has the highest number", 1, func(h *history) { h.add(hour); h.seq++; h.add(hour); h.add(hour, number(math.MaxUint64)) }},
	{"sequence-gap", "and a record has the highest but one", 1, func(h *history) { h.add(hour); h.seq++; h.add(hour); h.add(hour, number(math.MaxUint64-1)) }},
	{"sequence-gap", "and a record that just came has the highest", 1, func(h *history) { h.add(hour); h.seq++; h.add(hour); h.add(time.Second, number(math.MaxUint64)) }},
	{"sequence-gap", "none is missing, and a record that just came has the highest", 0, func(h *history) { h.many(2, hour); h.add(time.Second, number(math.MaxUint64)) }},
	{"sequence-gap", "it may still come", 0, func(h *history) { h.add(hour); h.seq++; h.add(time.Second) }},
	{"records-not-read", "an offset was set", 1, func(h *history) { h.skipped(time.Hour, 5, 0) }},
	{"records-not-read", "a part was read later", 1, func(h *history) { h.skipped(time.Hour, 5, 8) }},
	{"records-not-read", "one of two was read later", 1, func(h *history) { h.skipped(time.Hour, 5, 10); h.skipped(3*hour, 15, 0) }},
	{"records-not-read", "all was read later", 0, func(h *history) { h.skipped(time.Hour, 5, 10) }},
	{"records-not-read", "weeks ago", 0, func(h *history) { h.skipped(14*day, 5, 0) }},
	{"records-tampered", "found an hour ago, and in order since", 1, func(h *history) {
		h.verified("tampered", hour, `[{"what":"edited","seq":3}]`)
		h.verified("ok", minute, "[]")
	}},
	{"records-tampered", "in order", 0, func(h *history) { h.verified("ok", minute, "[]"); h.verified("unsigned", minute, "[]") }},
	{"records-tampered", "found days ago", 0, func(h *history) { h.verified("tampered", 4*hour, `[{"what":"edited","seq":3}]`) }},
	{"central-log-damaged", "it is damaged", 1, func(h *history) {
		h.verified("log_ok", hour, "[]")
		h.verified("log_damaged", minute, `[{"detail":"x"}]`)
	}},
	{"central-log-damaged", "in order", 0, func(h *history) { h.verified("log_ok", hour, "[]") }},
	{"session-without-end", "silent for a day", 1, func(h *history) { h.add(30 * hour) }},
	{"session-without-end", "ended", 0, func(h *history) { h.add(30 * hour); h.add(29*hour, kind(audit.KindSessionEnd)) }},
	{"session-without-end", "idle since this morning", 0, func(h *history) { h.add(10 * hour) }},
	{"call-open", "for ten minutes", 1, func(h *history) { h.add(10*minute, kind(audit.KindOpen)) }},
	{"call-open", "for two minutes", 0, func(h *history) { h.add(2*minute, kind(audit.KindOpen)) }},
	{"call-open", "a subscription", 0, func(h *history) {
		h.add(10*minute, kind(audit.KindOpen), func(r *audit.Record) { r.Method, r.Tool = "subscriptions/listen", "" })
	}},
	{"call-open", "answered after ten minutes", 0, func(h *history) {
		h.add(10*minute, kind(audit.KindOpen))
		h.add(10*minute, func(r *audit.Record) { r.CallNo = 1 })
	}},
	{"denial-burst", "10 in five minutes, also of several sessions", 1, func(h *history) {
		h.many(5, hour, decision("deny", true))
		h.many(5, hour, decision("deny", true), func(r *audit.Record) { r.SessionID = audit.NewID(h.now) })
	}},
	{"denial-burst", "9", 0, func(h *history) { h.many(9, hour, decision("deny", true)) }},
	{"denial-burst", "of another user", 0, func(h *history) {
		h.many(5, hour, decision("deny", true))
		h.many(5, hour, decision("deny", true), func(r *audit.Record) { r.User = "bob" })
	}},
	{"denial-burst", "would have been denied, or asked for", 0, func(h *history) {
		h.many(20, hour, decision("deny", false))
		h.many(20, hour, decision("ask", true))
	}},
	{"denial-burst", "three calls with many operations", 0, func(h *history) {
		h.many(3, hour, decision("deny", true), tool("batch"), arguments(`{"operations":[`+strings.Repeat(`{"tool":"x","arguments":{}},`, 20)+`{"tool":"x"}]}`))
	}},
	{"refused-approvals", "11 in ten minutes, by a person or by the time, also of several sessions", 1, func(h *history) {
		h.many(6, hour, refusal("ApprovalDenied"))
		h.many(5, hour, refusal("ApprovalTimeout"), func(r *audit.Record) { r.SessionID = audit.NewID(h.now) })
	}},
	{"refused-approvals", "10", 0, func(h *history) { h.many(10, hour, refusal("ApprovalDenied")) }},
	{"refused-approvals", "of another user", 0, func(h *history) {
		h.many(6, hour, refusal("ApprovalDenied"))
		h.many(6, hour, refusal("ApprovalDenied"), func(r *audit.Record) { r.User = "bob" })
	}},
	{"refused-approvals", "denied by the policy, nobody to ask, cancelled", 0, func(h *history) {
		h.many(20, hour, refusal("PolicyDenied"))
		h.many(20, hour, refusal("ApprovalUnavailable"))
		h.many(20, hour, refusal("Cancelled"))
	}},
	{"refused-approvals", "three calls with many operations", 0, func(h *history) {
		h.many(3, hour, refusal("ApprovalDenied"), tool("batch"), arguments(`{"operations":[`+strings.Repeat(`{"tool":"x","arguments":{}},`, 20)+`{"tool":"x"}]}`))
	}},
	{"denial-burst", "refused approvals", 0, func(h *history) {
		h.many(20, hour, decision("ask", true), refusal("ApprovalDenied"))
	}},
	{"always-allowed", "added and removed, by two approvers, of two tools", 4, func(h *history) {
		h.always(hour, "always_added", "kill_pane, approved by ann")
		h.always(hour-minute, "always_added", "kill_pane, approved by root")
		h.always(hour-2*minute, "always_removed", "kill_pane")
		h.always(hour-3*minute, "always_added", "x, approved by y, approved by root")
	}},
	{"always-allowed", "added again", 3, func(h *history) {
		h.always(hour, "always_added", "kill_pane, approved by ann")
		h.always(hour-minute, "always_removed", "kill_pane")
		h.always(hour-2*minute, "always_added", "kill_pane, approved by ann")
	}},
	{"always-allowed", "reported by every session", 1, func(h *history) {
		for i := range 5 {
			h.always(hour-time.Duration(i)*minute, "always_added", "kill_pane, approved by ann")
		}
	}},
	{"always-allowed", "known for a week", 0, func(h *history) {
		h.always(7*day, "always_added", "kill_pane, approved by ann")
		h.always(hour, "always_added", "kill_pane, approved by ann")
	}},
	{"always-allowed", "on another host, of another server", 2, func(h *history) {
		h.always(7*day, "always_added", "kill_pane, approved by ann")
		h.always(hour, "always_added", "kill_pane, approved by ann", func(r *audit.Record) { r.Host = "h2" })
		id := h.start(hour, "", "", func(r *audit.Record) { r.ServerCommand = audit.Command{Command: "files"} })
		h.always(hour, "always_added", "kill_pane, approved by ann", func(r *audit.Record) { r.SessionID = id })
	}},
	{"always-allowed", "known for a week, and a session of another tenant has its id", 0, func(h *history) {
		h.always(7*day, "always_added", "kill_pane, approved by ann")
		id := h.start(hour, "", "", func(r *audit.Record) { r.ServerCommand, r.Tenant = audit.Command{Command: "zsh"}, "umbrella" })
		h.always(hour, "always_added", "kill_pane, approved by ann", func(r *audit.Record) { r.SessionID = id })
	}},
	{"always-allowed", "a policy that came into force", 0, func(h *history) { h.start(hour, "a", "enforce") }},
	{"policy-changed", "a tool that is always allowed", 0, func(h *history) {
		h.start(2*day, "a", "enforce")
		h.add(hour, kind(audit.KindPolicy), func(r *audit.Record) {
			r.ServerCommand, r.Policy = audit.Command{Command: "tmux"}, audit.Policy{Hash: "b", Mode: "observe", Event: "always_added"}.JSON()
		})
	}},
	{"policy-switched-off", "a tool that is always allowed", 0, func(h *history) {
		h.start(2*day, "a", "enforce")
		h.add(hour, kind(audit.KindPolicy), func(r *audit.Record) {
			r.ServerCommand, r.Policy = audit.Command{Command: "tmux"}, audit.Policy{Hash: "a", Mode: "observe", Event: "always_removed"}.JSON()
		})
	}},
	{"policy-changed", "another text", 1, func(h *history) { h.start(2*day, "a", "enforce"); h.start(hour, "b", "enforce") }},
	{"policy-changed", "reloaded", 1, func(h *history) {
		id := h.start(2*day, "a", "enforce")
		h.load(hour, "b", "enforce", func(r *audit.Record) { r.SessionID = id })
	}},
	{"policy-changed", "back to one that was in force long ago", 1, func(h *history) {
		h.start(20*day, "a", "enforce")
		h.start(2*day, "b", "enforce")
		h.start(hour, "a", "enforce")
	}},
	{"policy-changed", "two at the same time", 0, func(h *history) {
		h.start(3*day, "a", "enforce")
		h.start(2*day, "b", "enforce")
		h.start(hour, "a", "enforce")
	}},
	{"policy-changed", "the first", 0, func(h *history) {
		h.start(2*day, "", "")
		h.start(hour, "a", "enforce")
		h.start(hour-minute, "a", "observe")
	}},
	{"policy-changed", "of another server, user, host or tenant", 0, func(h *history) {
		h.start(2*day, "a", "enforce")
		h.start(hour, "b", "enforce", func(r *audit.Record) { r.User = "bob" })
		h.start(hour, "b", "enforce", func(r *audit.Record) { r.Host = "h2" })
		h.start(hour, "b", "enforce", func(r *audit.Record) { r.ServerCommand = audit.Command{Command: "files"} })
	}},
	{"policy-changed", "long ago", 0, func(h *history) { h.start(3*day, "a", "enforce"); h.start(2*day, "b", "enforce") }},
	{"policy-switched-off", "a session without one", 1, func(h *history) {
		h.start(2*day, "a", "enforce")
		h.start(hour, "", "")
		h.start(hour-minute, "", "")
	}},
	{"policy-switched-off", "it only observes", 1, func(h *history) { h.start(2*day, "a", "enforce"); h.start(hour, "a", "observe") }},
	{"policy-switched-off", "by a reload", 1, func(h *history) {
		id := h.start(2*day, "a", "enforce")
		h.load(hour, "a", "observe", func(r *audit.Record) { r.SessionID = id })
	}},
	{"policy-switched-off", "by a reload without one", 1, func(h *history) {
		id := h.start(2*day, "a", "enforce")
		h.load(hour, "", "", func(r *audit.Record) { r.SessionID = id })
	}},
	{"policy-changed", "after a time without one", 1, func(h *history) {
		h.start(3*day, "a", "enforce")
		h.load(2*day, "", "")
		h.start(hour, "b", "enforce")
	}},
	{"policy-switched-off", "the record may still come", 0, func(h *history) { h.start(2*day, "a", "enforce"); h.start(time.Second, "", "") }},
	{"policy-switched-off", "there was none, or it observed", 0, func(h *history) {
		h.start(3*day, "", "")
		h.start(2*day, "a", "observe")
		h.start(hour, "", "")
	}},
	{"policy-switched-off", "another server's", 0, func(h *history) {
		h.start(2*day, "a", "enforce")
		h.start(hour, "", "", func(r *audit.Record) { r.ServerCommand = audit.Command{Command: "files"} })
	}},
	{"policy-switched-off", "and a session of another tenant with its id has one that observes", 1, func(h *history) {
		h.start(2*day, "a", "enforce")
		id := h.start(hour, "", "")
		other := func(r *audit.Record) { r.SessionID, r.Tenant = id, "umbrella" }
		h.add(hour, kind(audit.KindSessionStart), other, func(r *audit.Record) { r.ServerCommand = audit.Command{Command: "zsh"} })
		h.load(hour, "b", "observe", other)
	}},
	{"policy-changed", "and a session of another tenant has its id and another server", 1, func(h *history) {
		h.start(2*day, "a", "enforce")
		id := h.start(hour, "b", "enforce")
		h.start(hour, "b", "enforce", func(r *audit.Record) {
			r.SessionID, r.Tenant, r.ServerCommand = id, "umbrella", audit.Command{Command: "zsh"}
		})
	}},
	{"policy-switched-off", "switched on", 0, func(h *history) { h.start(2*day, "", ""); h.start(hour, "a", "enforce") }},
}

// decision is a decision about a call.
func decision(decision string, applied bool) func(*audit.Record) {
	return func(r *audit.Record) { r.Policy = audit.Policy{Decision: decision, Applied: applied}.JSON() }
}

// refusal is a call that was not forwarded, with the type of its error.
func refusal(errorType string) func(*audit.Record) {
	return func(r *audit.Record) {
		r.Outcome, r.ErrorType, r.Forwarded = audit.OutcomeError, errorType, false
	}
}

// start adds a session of an agent, whose policy is in force if it has a hash.
func (h *history) start(age time.Duration, hash, mode string, change ...func(*audit.Record)) (id string) {
	id = audit.NewID(h.now.Add(-age))
	session := func(r *audit.Record) {
		r.SessionID, r.ServerCommand = id, audit.Command{Command: "tmux"}
		for _, c := range change {
			c(r)
		}
	}
	h.seq = 0
	h.add(age, kind(audit.KindSessionStart), session)
	if hash != "" {
		h.load(age-time.Second, hash, mode, session, func(r *audit.Record) { r.ServerCommand = audit.Command{} })
	}
	return id
}

// load adds a record of a policy that came into force.
func (h *history) load(age time.Duration, hash, mode string, change ...func(*audit.Record)) {
	h.add(age, append([]func(*audit.Record){kind(audit.KindPolicy), func(r *audit.Record) {
		r.Policy = audit.Policy{Hash: hash, Mode: mode, Event: "loaded", Source: "/etc/p.yaml"}.JSON()
	}}, change...)...)
}

// always adds a record of a change of what is always allowed, of a session of its
// own.
func (h *history) always(age time.Duration, event, detail string, change ...func(*audit.Record)) {
	session := audit.NewID(h.now.Add(-age))
	h.add(age, append([]func(*audit.Record){kind(audit.KindPolicy), func(r *audit.Record) {
		r.SessionID, r.Policy = session, audit.Policy{Hash: "a", Mode: "enforce", Event: event, Detail: detail}.JSON()
	}}, change...)...)
}

// TestScheduledRules asks the questions of the shipped rules.
func TestScheduledRules(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.engine(t)
	cfg := config{database: "audit", localDir: h.dir + "/local"}
	store, err := cfg.store()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keep := clickhouse.Retention{Events: 400 * day, DeadLetters: 400 * day}
	if _, err := store.Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	reader, err := cfg.reader()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	rules, err := cfg.rules([]string{shippedRules})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*alert.Rule{}
	for _, r := range rules.All() {
		if r.Scheduled() {
			byName[r.Name] = r
		}
	}
	forget := func(t *testing.T) {
		t.Helper()
		for _, table := range []string{"events", "session_states", "verifications", "gaps"} {
			h.exec(t, "TRUNCATE TABLE audit."+table)
		}
	}
	// asked stores histories, and returns what a rule finds in them.
	asked := func(t *testing.T, rule string, list ...history) []alert.Alert {
		t.Helper()
		forget(t)
		for _, past := range list {
			for _, statement := range past.statements {
				h.exec(t, statement)
			}
		}
		together := map[time.Duration][]ingest.Row{}
		for _, past := range list {
			for age, rows := range past.rows {
				together[age] = append(together[age], rows...)
			}
		}
		for range 2 { // duplicates count once
			for age, rows := range together {
				for i := range rows {
					rows[i].Source.Partition++ // or the store would deduplicate it
				}
				if err := store.InsertRows(t.Context(), rows, list[0].now.Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var found [2][]alert.Alert
		for i := range found {
			err := alert.Ask(t.Context(), reader, byName[rule], time.Now().Add(-2*hour), func(a alert.Alert) error {
				found[i] = append(found[i], a)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if byName[rule].FirstSeen != nil {
			h.exec(t, "TRUNCATE TABLE audit.first_seen")
			for _, remembers := range []bool{false, true, true} { // as at first, later, and repeated
				var seen []alert.Alert
				err := alert.AskSeen(t.Context(), store, reader, byName[rule], time.Now().Add(-2*hour), remembers, func(a alert.Alert) error {
					seen = append(seen, a)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(ids(found[0]), ids(seen)); diff != "" {
					t.Errorf("what is remembered has other alerts (-all records +remembered, before %t):\n%s", remembers, diff)
				}
			}
		}
		if diff := cmp.Diff(ids(found[0]), ids(found[1])); diff != "" {
			t.Errorf("the same question has other alerts (-first +second):\n%s", diff)
		}
		return found[0]
	}
	newHistory := func(t *testing.T) history {
		return history{t: t, now: time.Now().UTC().Truncate(time.Microsecond), rows: map[time.Duration][]ingest.Row{}}
	}
	tested := map[string]bool{}
	for _, tt := range scheduled {
		tested[tt.rule] = true
		if tt.want == 0 {
			continue
		}
		t.Run(tt.rule+" "+tt.what, func(t *testing.T) {
			past := newHistory(t)
			tt.history(&past)
			found := asked(t, tt.rule, past)
			if len(found) != tt.want {
				t.Errorf("found %d, want %d: %+v", len(found), tt.want, found)
			}
			for _, a := range found {
				if a.Tenant != "acme" && tt.rule != "records-not-read" || a.TS.IsZero() { // offsets have no tenant
					t.Errorf("alert %+v", a)
				}
			}
		})
	}
	// An insert costs the engine more than a question. So the histories in which a rule
	// finds nothing are stored together, each with tenants of its own; those in which it
	// finds something are alone, so that no other one makes it look.
	for rule := range tested {
		t.Run(rule+" nothing", func(t *testing.T) {
			now := newHistory(t).now
			var list []history
			what := map[string]string{}
			for _, tt := range scheduled {
				if tt.rule == rule && tt.want == 0 {
					past := newHistory(t)
					past.now, past.number, past.tenant = now, uint32(len(list)), fmt.Sprint(" ", len(list))
					tt.history(&past)
					list, what[past.tenant] = append(list, past), tt.what
				}
			}
			if list == nil {
				t.Fatal("it has no history in which it finds nothing")
			}
			for _, a := range asked(t, rule, list...) {
				_, number, _ := strings.Cut(a.Tenant, " ")
				t.Errorf("%s: found %+v", what[" "+number], a)
			}
		})
	}
	// tell returns the details of the alerts that a rule raises, each once though it is asked twice.
	tell := func(t *testing.T, rule string) (told string) {
		t.Helper()
		var found []alert.Alert
		if err := alert.Ask(t.Context(), reader, byName[rule], time.Now().Add(-2*hour), func(a alert.Alert) error {
			found = append(found, a)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]alert.Alert{found, found} {
			fresh, err := store.InsertAlerts(t.Context(), list)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range fresh {
				told += a.Details
				if a.Closes != "" {
					told += " closes"
				}
			}
		}
		return told
	}
	t.Run("a gap that grows and closes", func(t *testing.T) {
		forget(t)
		past := history{t: t, now: time.Now().UTC().Truncate(time.Microsecond)}
		for i, step := range []struct {
			from, to uint64 // the numbers that arrive
			age      time.Duration
			want     string
		}{
			{0, 1, hour, ""},
			{2, 3, hour, `{"missing":1}`},
			{500, 501, hour, `{"missing":498}`},
			{1, 2, hour, ""},
			{600, 601, time.Second, ""}, // what is between may still come
			{3, 500, time.Second, ""},
			{501, 600, time.Second, `{"missing":0} closes`},
			{700, 701, hour, `{"missing":99}`}, // lost again
		} {
			past.rows = map[time.Duration][]ingest.Row{}
			for past.seq = step.from; past.seq < step.to; {
				past.add(step.age)
			}
			if err := store.InsertRows(t.Context(), past.rows[step.age], past.now.Add(-step.age)); err != nil {
				t.Fatal(err)
			}
			if told := tell(t, "sequence-gap"); told != step.want {
				t.Errorf("step %d: told %q, want %q", i, told, step.want)
			}
		}
	})
	t.Run("offsets that are read later", func(t *testing.T) {
		forget(t)
		past := history{t: t, now: time.Now().UTC().Truncate(time.Hour)}
		for i, step := range []struct {
			age          time.Duration
			from, readTo int
			want         string
			page         [2]uint64 // gaps and offsets
		}{
			{3*hour + 20*minute, 5, 0, `{"because":"offset was set","from_offset":5,"kafka_partition":1,"kafka_topic":"t","to_offset":9}`, [2]uint64{1, 5}},
			{3*hour + 10*minute, 15, 0, "", [2]uint64{2, 10}}, // in the same hour
			{3*hour + 20*minute, 5, 8, "", [2]uint64{2, 7}},
			{hour, 25, 0, `{"because":"offset was set","from_offset":8,"kafka_partition":1,"kafka_topic":"t","to_offset":29}`, [2]uint64{3, 12}},
			{hour, 25, 30, "", [2]uint64{2, 7}},
			{3*hour + 10*minute, 15, 20, "", [2]uint64{1, 2}},
			{3*hour + 20*minute, 5, 10, `{"because":"offset was set","from_offset":0,"kafka_partition":1,"kafka_topic":"t","to_offset":0} closes`, [2]uint64{}},
			{30 * minute, 35, 0, `{"because":"offset was set","from_offset":35,"kafka_partition":1,"kafka_topic":"t","to_offset":39}`, [2]uint64{1, 5}},
		} {
			past.statements = nil
			past.skipped(step.age, step.from, step.readTo)
			h.exec(t, past.statements[0])
			if told := tell(t, "records-not-read"); told != step.want {
				t.Errorf("step %d: told %q, want %q", i, told, step.want)
			}
			if seen := neverRead(t, reader, past.now); seen != step.page {
				t.Errorf("step %d: the page has %d, want %d", i, seen, step.page)
			}
		}
	})
	t.Run("a gap in a session of millions", func(t *testing.T) {
		forget(t)
		past := history{t: t, now: time.Now().UTC().Truncate(time.Microsecond), rows: map[time.Duration][]ingest.Row{}}
		const last = 20_000_000
		past.seq = last
		past.add(hour)
		if err := store.InsertRows(t.Context(), past.rows[hour], past.now.Add(-hour)); err != nil {
			t.Fatal(err)
		}
		h.exec(t, fmt.Sprintf("INSERT INTO audit.session_states (tenant, session_id, max_seq, seqs) SELECT tenant, session_id, %[1]d, (SELECT groupBitmapState(number) FROM numbers(%[1]d) WHERE number NOT IN (5, 7, 8)) FROM audit.events", last))
		told := ""
		err := alert.Ask(t.Context(), reader, byName["sequence-gap"], time.Now().Add(-2*hour), func(a alert.Alert) error {
			told += fmt.Sprint(a.Details, a.Extent)
			return nil
		})
		if want := `{"missing":3}9`; err != nil || told != want {
			t.Errorf("told %q, %v, want %q", told, err, want)
		}
	})
	t.Run("a gap up to the highest number", func(t *testing.T) {
		forget(t)
		past := history{t: t, now: time.Now().UTC().Truncate(time.Microsecond), rows: map[time.Duration][]ingest.Row{}}
		past.many(100, hour)
		past.add(hour, number(math.MaxUint64-1))
		past.add(hour, number(math.MaxUint64))
		if err := store.InsertRows(t.Context(), past.rows[hour], past.now.Add(-hour)); err != nil {
			t.Fatal(err)
		}
		told := ""
		err := alert.Ask(t.Context(), reader, byName["sequence-gap"], time.Now().Add(-2*hour), func(a alert.Alert) error {
			told += fmt.Sprint(a.Details, a.Extent)
			return nil
		})
		if want := `{"missing":18446744073709551514}18446744073709551614`; err != nil || told != want {
			t.Errorf("told %q, %v, want %q", told, err, want)
		}
	})
	t.Run("ordinary use", func(t *testing.T) {
		forget(t)
		past := history{t: t, now: time.Now().UTC().Truncate(time.Microsecond), rows: map[time.Duration][]ingest.Row{}}
		past.session(8 * day)
		for i := range 24 {
			past.session(time.Duration(i+1) * hour)
		}
		for age, rows := range past.rows {
			if err := store.InsertRows(t.Context(), rows, past.now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		for name, rule := range byName {
			err := alert.Ask(t.Context(), reader, rule, past.now.Add(-25*hour), func(a alert.Alert) error {
				t.Errorf("%s found %+v", name, a)
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	for name := range byName {
		if !tested[name] {
			t.Errorf("%s has no test", name)
		}
	}
}

func ids(alerts []alert.Alert) map[string]bool {
	set := map[string]bool{}
	for _, a := range alerts {
		set[a.ID] = true
	}
	return set
}

// exec runs a statement with the writer's rights.
func (h home) exec(t *testing.T, sql string) {
	t.Helper()
	dial := chdb.Dialer(h.dir+"/local", chdb.Writer)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	resp, err := client.Post("http://engine/", "text/plain", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", sql, resp.Status)
	}
}
