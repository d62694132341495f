package main

import (
	"fmt"
	"strings"
	"time"

	"auditproxy/schemas/audit"
)

// A step is one call of the stories that the page's tests read.
type step struct {
	tool, tier string
	args       string
	errorType  string // "": it went well
	took       time.Duration

	risk   audit.Risk
	found  []audit.Detection
	policy audit.Policy // the zero value: it allows the call
}

// The risks of the calls.
var (
	reads       = audit.Risk{Category: "read", Level: "low", Source: "annotation"}
	writes      = audit.Risk{Category: "write", Level: "medium", Source: "name"}
	executes    = audit.Risk{Category: "execute", Level: "high", Source: "schema"}
	destroys    = audit.Risk{Category: "destructive", Level: "critical", Source: "name"}
	destroysNow = audit.Risk{Category: "destructive", Level: "critical", Source: "detection"}
)

const (
	digest   = `{"len":38,"hmac_sha256_prefix":"8d1f0c2b9a7e4f31"}`
	typed    = `{"len":41,"hmac_sha256_prefix":"51aa07cc93d2e860"}`
	pipedTo  = "/var/log/agents/deploy.log" // allowed
	pipedOut = "/home/ann/.ssh/authorized_keys"

	policyHash = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
)

// deploy is a session in which something is wrong: inside a batch, a pane is
// piped to where keys are kept.
var deploy = []step{
	{"list_sessions", "readonly", `{}`, "", 3 * time.Millisecond, reads, nil, audit.Policy{}},
	{"create_session", "mutating", `{"session_name":"deploy","environment":{"API_TOKEN":` + digest + `}}`, "", 21 * time.Millisecond, writes, nil, audit.Policy{}},
	{"send_keys", "mutating", `{"pane_id":"%1","keys":` + typed + `}`, "", 6 * time.Millisecond, destroysNow, []audit.Detection{{Detector: "recursive_delete", At: "args.keys"}},
		audit.Policy{Decision: audit.DecisionDeny, Rule: "/auditproxy/deny_detections/0", Reason: "Nothing is deleted here."}},
	{"set_environment", "mutating", `{"name":"DB_PASSWORD","value":` + digest + `,"session_name":"deploy"}`, "", 4 * time.Millisecond, writes, nil, audit.Policy{}},
	{"pipe_pane", "mutating", `{"pane_id":"%1","output_path":"` + pipedTo + `"}`, "", 8 * time.Millisecond, writes, nil, audit.Policy{}},
	{"wait_for_text", "readonly", `{"pane_id":"%1","patterns":["deployed"],"timeout":30}`, "", 4210 * time.Millisecond, reads, nil, audit.Policy{}},
	{"capture_pane", "readonly", `{"pane_id":"%1"}`, "", 5 * time.Millisecond, reads, nil, audit.Policy{}},
	{"capture_pane", "readonly", `{"pane_id":"%99"}`, "PaneNotFound", 2 * time.Millisecond, reads, nil, audit.Policy{}},
	{"call_mutating_tools_batch", "mutating", `{"operations":[{"tool":"split_window","arguments":{"pane_id":"%1"}},{"tool":"pipe_pane","arguments":{"pane_id":"%2","output_path":"` + pipedOut + `"}}]}`, "", 17 * time.Millisecond, executes, []audit.Detection{{Detector: "path_sensitive", At: "args.operations[1].arguments.output_path"}}, audit.Policy{}},
	{"kill_pane", "destructive", `{"pane_id":"%2"}`, audit.ErrPolicyDenied, 4 * time.Millisecond, destroys, nil,
		audit.Policy{Decision: audit.DecisionDeny, Applied: true, Rule: "/tools/kill_pane", Reason: "Somebody may be working there."}},
}

// watch is an ordinary session.
var watch = []step{
	{"list_panes", "readonly", `{"session_name":"build"}`, "", 4 * time.Millisecond, reads, nil, audit.Policy{}},
	{"capture_pane", "readonly", `{"pane_id":"%4"}`, "", 6 * time.Millisecond, reads, nil, audit.Policy{}},
	{"search_panes", "readonly", `{"pattern":"FAIL"}`, "", 31 * time.Millisecond, reads, nil, audit.Policy{}},
	{"send_keys", "mutating", `{"pane_id":"%4","keys":` + typed + `}`, "", 5 * time.Millisecond, executes, nil, audit.Policy{Decision: audit.DecisionAsk, Rule: "/auditproxy/approval"}},
	{"wait_for_text", "readonly", `{"pane_id":"%4","patterns":["ok"],"timeout":60}`, "", 2380 * time.Millisecond, reads, nil, audit.Policy{}},
	{"get_pane_info", "readonly", `{"pane_id":"%4"}`, "", 3 * time.Millisecond, reads, nil, audit.Policy{}},
}

// A story is a session that contains it.
type story struct {
	steps      []step
	rounds     int
	host, user string
	client     audit.Peer
	begin      time.Duration // before now
	every      time.Duration
	unfinished bool // no end
}

var stories = []story{
	{watch, 14, "build-1", "ci", audit.Peer{Name: "nightly", Version: "4"}, 23 * time.Hour, 13 * time.Minute, false},
	{watch, 8, "ws-ann", "ann", audit.Peer{Name: "claude-code", Version: "2.1"}, 9 * time.Hour, 9 * time.Minute, false},
	{deploy, 1, "ws-ann", "ann", audit.Peer{Name: "claude-code", Version: "2.1"}, 95 * time.Minute, 70 * time.Second, false},
	{watch, 3, "ws-bob", "bob", audit.Peer{Name: "inspector", Version: "0.9"}, 40 * time.Minute, 2 * time.Minute, true},
}

// tell writes the records of a story as a proxy does, and returns their number.
func (w *writer) tell(s story) (records int) {
	at := time.Now().Add(-s.begin)
	place := func(r *audit.Record) {
		r.SessionID, r.TS, r.Host, r.User, r.PID = w.ID(), at, s.host, s.user, 4711
		r.Client, r.Server, r.ProtocolVersion = s.client, audit.Peer{Name: "libtmux-mcp", Version: "0.1.0a22"}, "2025-11-25"
		r.ServerCommand = audit.Command{Command: "libtmux-mcp"}
	}
	mark := func(kind audit.Kind) {
		w.call(func(r *audit.Record) {
			*r = audit.Record{Kind: kind, RecordID: r.RecordID, Seq: r.Seq}
			place(r)
			if kind == audit.KindPolicy {
				r.Policy = audit.Policy{Hash: policyHash, Mode: "enforce", Dialect: "hosted", Source: "/etc/auditproxy/policy.yaml", Event: "loaded"}.JSON()
			}
		})
		records++
	}
	mark(audit.KindSessionStart)
	mark(audit.KindPolicy)
	no := uint64(0)
	for range s.rounds {
		for _, st := range s.steps {
			at = at.Add(s.every)
			w.call(func(r *audit.Record) {
				place(r)
				no++
				r.CallNo, r.Tool, r.Tier, r.Args, r.Duration = no, st.tool, st.tier, audit.JSON(st.args), st.took+time.Duration(no%7)*time.Millisecond
				r.Annotations, r.ToolHash = audit.JSON(fmt.Sprintf(`{"readOnlyHint":%t,"destructiveHint":%t,"idempotentHint":false,"openWorldHint":true}`, st.tier == "readonly", st.tier == "destructive")), strings.Repeat("5e", 32)
				r.Forwarded, r.ArgsBytes, r.ResultBytes = true, int64(len(st.args)), 900
				if st.errorType != "" {
					r.Outcome, r.ErrorType = audit.OutcomeError, st.errorType
				}
				p := st.policy
				if p.Hash, p.Mode = policyHash, "enforce"; p.Decision == "" {
					p.Decision, p.Applied = audit.DecisionAllow, true
				}
				r.Forwarded = p.Decision == audit.DecisionAllow || !p.Applied
				r.Policy, r.Risk, r.Detections = p.JSON(), st.risk.JSON(), audit.DetectionsJSON(st.found)
			})
			records++
		}
	}
	if !s.unfinished {
		at = at.Add(s.every)
		mark(audit.KindSessionEnd)
	}
	return records
}

// hostile are texts that run, hide or break something in a page that trusts them.
var hostile = []string{
	`<img src=x onerror="document.title='pwned'">`,
	`</script><script>document.title='pwned'</script>`,
	`"><svg/onload=document.title='pwned'>`,
	`' onmouseover='document.title="pwned"' x='`,
	`javascript:document.title='pwned'`,
	"safe\u202egnp.exe\u2066\u200b",
	"\x1b]0;pwned\x07\x1b[2J",
	`{{.Tenant}}${7*7}`,
	`=HYPERLINK("http://evil.example","x")`,
	`../../etc/passwd?op=x#y`,
	strings.Repeat("W", 300),
	"\u05d0\u05d1\u05d2",
}
