package mcpproxy

import (
	"errors"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// A Journal keeps sealed lines in order. Its methods may be called
// concurrently.
type Journal interface {
	// Append returns nil once the lines would survive the death of this
	// process. After an error none of them is in the journal; the caller writes
	// the same lines again or gives their numbers up. final means that they end
	// calls whose intents are in the journal.
	Append(lines []byte, final bool) (pos int64, err error)

	// Wait reports whether everything before pos would survive the death of
	// this machine, once that is so or after limit (0: no limit).
	Wait(pos int64, limit time.Duration) bool

	// Last says that the next lines are the last ones: a failure before does not
	// make them wait.
	Last()
}

// A Link is the session's place among those of its host. Close ends it at any
// point; before Written, another session gets the place.
type Link interface {
	// Enter says that a session_start with this leaf is about to be written.
	Enter(leaf evidence.Hash) error
	// Written says that it was.
	Written() error
	Close() error
}

// A Failure is the policy for calls while nothing can be recorded.
type Failure uint8

// The answers to an audit failure.
const (
	Deny  Failure = iota // refuse them
	Allow                // forward them; a gap record follows
)

// A Config holds a Proxy's settings.
type Config struct {
	Command []string // the server and its arguments. Required.
	Env     []string // the server's environment, see ChildEnv
	Dir     string   // the server's working directory; empty: this process's

	In     *os.File // from the client. Required.
	Out    *os.File // to the client. Required.
	Stderr *os.File // given to the server unchanged

	// Journal keeps the lines. With nil, nothing is recorded; OnAuditFailure
	// must then be Allow.
	Journal  Journal
	Redactor *redact.Redactor // Required.

	// Base holds the members that all records of the session share: SessionID,
	// Host, User, PID, Labels, Tenant, ServerCommand.
	Base audit.Record

	// Proxy makes the proxy member of session_start. It is called once, with
	// Evidence after the server has started. nil: there is no such member.
	Proxy func() audit.JSON

	// Evidence enters the session, whose verifier key is given, into the chain of
	// its host's sessions. nil: there is no evidence.
	Evidence func(key string) (Link, evidence.Session, error)

	SkipMethods []string // not recorded without a policy, in addition to the fixed list
	Tiers       []string // additional tier tags, least dangerous first

	WaitIntent bool          // a call waits for its intent's sync
	SyncWait   time.Duration // at most this long; 0: no bound
	WaitFinal  bool          // an answer waits for its record's sync

	OnAuditFailure Failure
	DenyAmbiguous  bool // refuse messages that two readers could read differently

	Approval Approval // of calls about which the gate's policy asks

	Gate Gate // at the start, see SetGate; without an assessor: one without configuration

	Drain   time.Duration    // limit for all steps after the server's exit; 0: 500 ms
	Signals <-chan os.Signal // signals to this process, forwarded to the server

	Log *zap.Logger // nil: none
}

// An Approval says how people are asked about calls. With its zero value nobody
// is asked, and calls that need an approval are refused.
type Approval struct {
	Channels  []string      // ChannelClient, ChannelFiles: the first that can ask is used
	Files     *approval.Dir // of ChannelFiles; nil: it cannot ask
	Timeout   time.Duration // for a person's answer; 0: 120 s
	ServerKey string        // says which server a lasting approval is for, see approval.Question
}

// The channels.
const (
	ChannelClient = "client" // a question in the MCP client, which may answer it itself
	ChannelFiles  = "files"  // a file, and another that the person owns
)

func (a Approval) asks() bool {
	return slices.ContainsFunc(a.Channels, func(name string) bool { return name == ChannelClient || name == ChannelFiles && a.Files != nil })
}

// A Gate assesses calls and decides about them. It is immutable; SetGate
// replaces it as a whole.
type Gate struct {
	Risk *risk.Assessor // Required.

	Policy   *policy.Policy // nil: nothing is decided
	Mode     policy.Mode    // Enforce, or Observe: decisions are recorded and not applied
	Counters policy.Counters
	Source   string // of the policy, for records: a path or the name of a preset
}

const (
	openAfter    = 60 * time.Second // without an answer: an interim record; after a cancel: the final one
	maxOpen      = 65536            // calls held open
	maxNameless  = 8192             // of them that have no id: lines of two bytes, of which each costs 1.5 KB
	maxOpenBytes = 32 << 20         // that they refer to: their records' members and their ids
	maxAppend    = 1 << 20          // bytes of lines in one write, except for its last line
	maxHead      = 1 << 20          // bytes that a segment of the journal starts with
	maxSpare     = 8 << 10          // bytes of a call's memory that are used again

	// grace is the time between the steps of the shutdown ladder. MCP SDKs send SIGKILL
	// 2 s after SIGTERM: a proxy that is killed leaves a server that ignores both SIGTERM
	// and the end of its input.
	grace = 1500 * time.Millisecond
)

// ErrNotRecorded means that nothing was started because nothing could be
// recorded.
var ErrNotRecorded = errors.New("the audit trail cannot be written")
