package mcpproxy

import (
	"bytes"
	"errors"
	"hash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// session is the state shared by both directions: open calls, numbers given,
// lines not yet written.
type session struct {
	cfg Config
	red *redact.Redactor

	// wanted counts open requests whose answers the proxy reads whole.
	wanted atomic.Int32
	// head holds the first lines of a journal segment.
	head atomic.Pointer[[]byte]
	gate atomic.Pointer[gate]
	// listed counts what was learned from listings of tools.
	listed atomic.Uint64
	// proxy is Config.Proxy, made once.
	proxy func() audit.JSON

	mu     sync.Mutex // guards all below; held while the journal is written, so that seq is in file order
	base   audit.Record
	seq    uint64 // of the next record
	callNo uint64 // of the last call
	open   calls
	free   []*call
	// waiting are the calls that wait for a person, in the order of their numbers.
	waiting []*call
	tools   tools

	expired  expiredCalls
	answered answeredCalls
	unasked  uint64 // answers to nothing that is known
	unlisted int64  // answers to calls without a record that may still come

	capabilities []byte // of the client, from initialize

	unrecorded []*early         // answers that finish is about to get
	refunds    []policy.Counter // that finish is about to give back
	noRest     bool             // the server has ended: the rest of no call can reach it

	forgetful bool // expired forgot a call, and a record reports it

	ended bool

	newContext bool // base changed: a context line goes before the next intents

	pos     int64        // of the journal, after the last lines written
	lines   []byte       // scratch: lines being written
	whole   audit.Record // scratch: see recordOf
	backlog []byte       // record lines whose write failed; they keep their numbers and come before any other line
	gap     gap
	failing bool // it is logged that the journal fails

	timer *time.Timer
	armed bool

	first      *audit.Record // session_start, until begin writes it
	afterFirst []byte        // lines that begin writes after it

	proof prover // has mutexes of its own, too
}

// gap counts the calls not recorded since from.
type gap struct {
	from          time.Time
	count, denied int64
}

var errEnded = errors.New("the session has ended")

func newSession(c Config, g *gate) *session {
	s := &session{cfg: c, red: c.Redactor, base: c.Base, open: newCalls(), tools: newTools(c.Tiers)}
	s.base.Duration = -1
	s.proxy = func() audit.JSON { return "" }
	if c.Proxy != nil {
		s.proxy = sync.OnceValue(c.Proxy)
	}
	s.proof.init(c)
	s.gate.Store(g)
	s.setHead()
	return s
}

func (s *session) wireHash() hash.Hash { return s.red.NewHash(redact.Wire) }

func (s *session) wantsAnswers() bool { return s.wanted.Load() > 0 }

func (s *session) appendHead(dst []byte) []byte { return append(dst, *s.head.Load()...) }

// setHead rebuilds the head after base or tools changed. Definitions that do
// not fit are left out: they are in the segments before.
func (s *session) setHead() {
	head := s.tools.appendLines(audit.AppendContext(nil, &s.base), maxHead)
	s.head.Store(&head)
}

// record is a record of the session's own, with the next number.
func (s *session) record(k audit.Kind, now time.Time) audit.Record {
	r := s.base
	r.Kind, r.RecordID, r.TS, r.Seq = k, audit.NewID(now), now, s.seq
	s.seq++
	return r
}

// append writes session_start, if it is still to come, the backlog, then lines.
func (s *session) append(lines []byte, final bool) (int64, error) {
	if s.cfg.Journal == nil {
		return 0, ErrNotRecorded
	}
	s.begin()
	for len(s.backlog) > 0 {
		n := wholeLines(s.backlog)
		if _, err := s.cfg.Journal.Append(s.backlog[:n], true); err != nil {
			return 0, err
		}
		s.proof.add(s.backlog[:n])
		if s.backlog = s.backlog[n:]; len(s.backlog) == 0 {
			s.backlog = nil
		}
	}
	pos, err := s.cfg.Journal.Append(lines, final)
	if err == nil {
		s.pos = pos
		s.proof.add(lines)
	}
	return pos, err
}

// appendStart appends the session's first record and what belongs to it. What
// cannot be written now is kept.
func (s *session) appendStart(lines []byte) error {
	_, err := s.append(lines, false)
	if err != nil {
		s.backlog = append(s.backlog, lines...)
		s.logJournalState(err)
	}
	return err
}

// begin writes session_start with its evidence, if start has left that to it: after
// beginAfter, or before the first other line. A crash before it leaves a session
// without a record, of which no call was forwarded.
// The session's mutex is held.
func (s *session) begin() {
	r, rest := s.first, s.afterFirst
	if r == nil {
		return
	}
	s.first, s.afterFirst = nil, nil
	r.Proxy = s.proxy()
	link := s.beginEvidence(r)
	first := audit.AppendRecord(nil, r)
	if link != nil {
		err := s.writeStart(link, slices.Concat(first, rest), evidence.Leaf(first[:len(first)-1]))
		if err == nil {
			return
		}
		s.cfg.Log.Error("session has no evidence", zap.Error(err))
		s.proof.signer, r.Evidence = nil, ""
		first = audit.AppendRecord(nil, r)
	}
	_ = s.appendStart(append(first, rest...)) // logged, and kept
}

// beginEvidence sets the evidence of the session's first record. It returns nil if
// there is none: then no record of the session can be proved, and verification says
// so.
func (s *session) beginEvidence(r *audit.Record) Link {
	link, err := s.makeEvidence(r)
	if err != nil {
		s.cfg.Log.Error("session has no evidence", zap.Error(err))
		return nil
	}
	return link
}

func (s *session) makeEvidence(r *audit.Record) (Link, error) {
	k, err := s.proof.keys()
	if err != nil {
		return nil, err
	}
	link, e, err := s.cfg.Evidence(k.public)
	if err != nil {
		return nil, err
	}
	s.proof.signer = k.signer
	r.Evidence = e.JSON()
	return link, nil
}

// writeStart writes the session's first lines, which have its evidence, between the
// link's two steps.
func (s *session) writeStart(link Link, lines []byte, leaf evidence.Hash) error {
	defer link.Close()
	// A crash from here on leaves the number pending. The next session looks
	// whether this one wrote its first line.
	if err := link.Enter(leaf); err != nil {
		return err
	}
	if _, err := s.append(lines, false); err != nil {
		return err
	}
	if err := link.Written(); err != nil {
		s.cfg.Log.Warn("number of the session is pending until the next one starts", zap.Error(err))
	}
	return nil
}

// appendFinal writes record lines that already have their numbers. Lines that
// cannot be written now are kept and retried before any others.
func (s *session) appendFinal(lines []byte) (pos int64) {
	for len(lines) > 0 {
		n := wholeLines(lines)
		var err error
		if pos, err = s.append(lines[:n], true); err != nil && s.cfg.Journal != nil {
			s.backlog = append(s.backlog, lines...)
			s.logJournalState(err)
			return 0
		}
		lines = lines[n:]
	}
	return pos
}

// logJournalState logs the first failed append and the recovery, not each call between.
func (s *session) logJournalState(err error) {
	switch {
	case err != nil && !s.failing && !s.ended && s.cfg.Journal != nil:
		s.cfg.Log.Error("spool not writable", zap.Bool("calls refused", s.cfg.OnAuditFailure == Deny), zap.Error(err))
	case err == nil && s.failing:
		s.cfg.Log.Warn("spool writable again", zap.Int64("calls not recorded", s.gap.count))
	}
	s.failing = err != nil
}

// wholeLines is how much of lines one Append may get: maxAppend, if the last
// line ends there, or the first line.
func wholeLines(lines []byte) int {
	if len(lines) <= maxAppend {
		return len(lines)
	}
	if i := bytes.LastIndexByte(lines[:maxAppend], '\n'); i >= 0 {
		return i + 1
	}
	return bytes.IndexByte(lines, '\n') + 1
}

// take returns an empty call.
func (s *session) take() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		c := s.free[n-1]
		s.free = s.free[:n-1]
		return c
	}
	return new(call)
}

// release ends the use of c and of every string in its record.
func (s *session) release(c *call) {
	buf := c.buf[:0]
	if cap(buf) > maxSpare {
		buf = nil
	}
	if len(s.free) < 256 {
		*c = call{buf: buf}
		s.free = append(s.free, c)
	}
}

// missed counts one thing that has no record.
func (s *session) missed(now time.Time, denied bool) {
	if s.gap.count == 0 {
		s.gap.from = now
	}
	s.gap.count++
	if denied {
		s.gap.denied++
	} else {
		s.unlisted++
	}
}

func (s *session) appendGap(now time.Time) {
	r := s.record(audit.KindGap, now)
	r.From, r.To, r.Count, r.Denied = s.gap.from, now, s.gap.count, s.gap.denied
	s.lines = audit.AppendRecord(s.lines, &r)
}

// spill writes final lines once they fill a write, so that memory stays
// bounded.
func (s *session) spill() {
	if len(s.lines) >= maxAppend {
		s.appendFinal(s.lines)
		s.lines = s.lines[:0]
	}
}

// learn reads the answer to initialize, server/discover or tools/list.
func (s *session) learn(c *call, a *wire.Answer, now time.Time) {
	result := wire.Member(a.Raw, "result")
	if result == nil {
		return
	}
	if list := wire.Member(result, "tools"); c.class == listTools && len(list) > 0 && list[0] == '[' {
		told := s.tools.full
		if s.tools.read(s.red, result, c.cursor); s.tools.full && !told {
			// Once per session: it explains what its calls lack.
			r := s.record(audit.KindAnomaly, now)
			r.At, r.Bytes, r.Anomalies = a.Off, a.Bytes, []string{"tools_dropped"}
			s.lines = audit.AppendRecord(s.lines, &r)
		}
		s.listed.Add(1)
	}
	before := s.base
	info := wire.Member(result, "serverInfo")
	if info == nil {
		info = wire.Member(wire.Member(result, "_meta"), "io.modelcontextprotocol/serverInfo")
	}
	if p := peerOf(s.red, info); p != (audit.Peer{}) {
		s.base.Server = p
	}
	if v := wire.Member(result, "protocolVersion"); v != nil {
		s.base.ProtocolVersion = clean(s.red, v)
	}
	if c.class == initialize && c.rec.Client != (audit.Peer{}) {
		s.base.Client = c.rec.Client
	}
	if s.base.Server != before.Server || s.base.ProtocolVersion != before.ProtocolVersion || s.base.Client != before.Client {
		s.newContext = true
	}
	s.setHead()
}

// setCapabilities keeps what a client says in initialize that it can.
func (s *session) setCapabilities(v []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(v) <= maxSpare {
		s.capabilities = slices.Clone(v)
	}
}

// clientCan returns the version that the client and the server agreed on, and
// what the client can, as JSON.
func (s *session) clientCan() (version string, capabilities []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base.ProtocolVersion, s.capabilities
}

// short is a name or a text of the configuration, as a record has it.
func (s *session) short(text string) string { return string(s.red.AppendText(nil, []byte(text))) }
