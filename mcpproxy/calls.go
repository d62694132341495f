package mcpproxy

import (
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A call is a request that may still be answered. Its strings live in buf, so
// that an ordinary call allocates nothing; they are good until release.
type call struct {
	rec   facts
	start time.Time // with the monotonic clock

	waited time.Duration // for a person, from start on

	class    class
	interim  bool  // an open record was written
	part     bool  // an oversize call whose end is still to come
	nameless bool  // in the table under noID alone
	bytes    int32 // while it is in the table, see calls.bytes

	cancelled time.Duration // from start to when the client asked to, 0 if it did not
	cursor    string        // of a tools/list, "" for its first page; see cursorOf
	early     *early        // an answer that does not end it yet, nil for none

	refunds []policy.Counter // given back if the answer is a JSON-RPC error

	keys [3]key // under which table finds it
	// alias is in the table under another id that the call may be answered with,
	// nil for none. It is nothing but keys, and aliasOf the call.
	alias, aliasOf *call
	// older and newer are the order of arrival.
	older, newer *call

	buf   []byte
	words [3]string // backs rec.Anomalies while it is short
}

// facts are what the record of a call has of that call alone: an audit.Record
// without its time, its outcome, what all calls of a session share, and what
// only other kinds of records have. It is about half as large, and tens of
// thousands of calls may be open.
type facts struct {
	RecordID string
	CallNo   uint64

	Method, Tool, Target string
	Candidates           []audit.Candidate

	ErrorCode  *int64
	ResultType string

	ClientID, RequestID, RequestIDType string
	Client                             audit.Peer
	ProtocolVersion                    string

	Tier        string
	Annotations audit.JSON
	ToolHash    string

	Args      audit.JSON
	ArgsBytes int64

	Risk, Detections, Policy, Approval audit.JSON

	ResultBytes     int64
	ErrorDigest     audit.JSON
	TraceID, SpanID string
	Anomalies       []string

	At, Bytes int64
	Digest    audit.JSON

	Forwarded, CancelRequested, NotDurable bool
}

// text returns c.buf[from:] as a string, without a copy. buf only grows until
// the call is released, and a growth leaves the old array to the strings that
// point to it.
func (c *call) text(from int) string {
	if from == len(c.buf) {
		return ""
	}
	return unsafe.String(&c.buf[from], len(c.buf)-from)
}

func (c *call) json(from int) audit.JSON { return audit.JSON(c.text(from)) }

// anomaly adds a word to c's record.
func (c *call) anomaly(word string) {
	if c.rec.Anomalies == nil {
		c.rec.Anomalies = c.words[:0]
	}
	c.rec.Anomalies = append(c.rec.Anomalies, word)
}

// reuses marks c, whose answer may be that of another request with its id. Then no
// error gives back what it added to counters: the client could have chosen it.
func (c *call) reuses() {
	c.refunds = nil
	if !slices.Contains(c.rec.Anomalies, "id_reused") {
		c.anomaly("id_reused")
	}
}

// fillTask sets the digest of the id that a value, a request's params or an answer's
// task, has of a task. Whoever knows the id may have the result of the task, so
// records do not have it. An answer replaces no digest: neither that of an opaque
// call's bytes nor that of the task that the request names.
func (c *call) fillTask(red *redact.Redactor, v []byte) {
	if c.rec.Digest != "" {
		return
	}
	if id := wire.Member(v, "taskId"); len(id) > 0 && id[0] == '"' {
		from := len(c.buf)
		c.buf = red.AppendDigest(c.buf, redact.Argument, jsontext.AppendUnquote(nil, id))
		c.rec.Digest = c.json(from)
	}
}

// early holds an answer that came before the end of its call, or a loose one, which
// another may replace.
type early struct {
	loose      bool
	outcome    audit.Outcome
	errorType  string
	at         time.Time
	bytes      int64
	code       *int64
	digest     string
	resultType string
	recorded   chan struct{} // closed with the call's final record
}

// answered reports whether c only waits for its end.
func (c *call) answered() bool { return c.early != nil && !c.early.loose }

// earlyOf is the answer that c's record has.
func earlyOf(c *call, outcome audit.Outcome, errorType string, at time.Time) *early {
	r := &c.rec
	return &early{false, outcome, errorType, at, r.ResultBytes, r.ErrorCode, strings.Clone(string(r.ErrorDigest)), r.ResultType, make(chan struct{})}
}

// key is one of a call's entries in the table.
type key struct {
	from, to int // in buf; equal: no entry
	hash     uint64
	next     *call
}

// chain is the calls under one hash, oldest first, linked by key.next.
type chain struct{ first, last *call }

// calls are the open calls of a session: by id, and by arrival. Guarded by
// session.mu.
type calls struct {
	seed           maphash.Seed
	chains         map[uint64]chain
	oldest, newest *call
	n              int
	others         int // others that are requests without a record
	nameless       int // calls without an id
	bytes          int // that the calls refer to, at most maxOpenBytes
	inexact        int // keys in chains that are not exact
	scratch        []byte
}

func newCalls() calls {
	return calls{seed: maphash.MakeSeed(), chains: make(map[uint64]chain)}
}

// add appends c under the id as on the wire, nil for none.
func (t *calls) add(c *call, id []byte) {
	if c.older = t.newest; c.older != nil {
		c.older.newer = c
	} else {
		t.oldest = c
	}
	t.newest = c
	t.n++
	if c.class != recorded {
		t.others++
	}
	t.name(c, id)
	t.take(c, c.held())
}

// held is the memory that c refers to. The client controls all of it.
func (c *call) held() int {
	r := &c.rec
	n := cap(c.buf) + len(r.Method) + len(r.Tool) + len(r.Target) + len(r.ClientID) +
		len(r.Client.Name) + len(r.Client.Version) + len(r.ProtocolVersion)
	for i := range r.Candidates {
		k := &r.Candidates[i]
		n += int(unsafe.Sizeof(*k)) + len(k.Method) + len(k.Tool) + len(k.Target) + len(k.Args)
	}
	return n
}

// name enters c under its id, once it is known.
func (t *calls) name(c *call, id []byte) {
	for m := wire.ExactID; m <= wire.IntID; m++ {
		k := &c.keys[m]
		k.from = len(c.buf)
		c.buf = wire.AppendIDKey(c.buf, id, m, false)
		if k.to = len(c.buf); k.from == k.to {
			continue
		}
		if m != wire.ExactID {
			t.inexact++
		}
		k.hash = maphash.Bytes(t.seed, c.buf[k.from:k.to])
		ch := t.chains[k.hash]
		if ch.first == nil {
			ch.first = c
		} else {
			ch.last.link(k.hash).next = c
		}
		ch.last = c
		t.chains[k.hash] = ch
	}
}

// alias enters c, which is in the table, under a second id. An answer ends it
// by either.
func (t *calls) alias(c *call, id []byte) {
	if id != nil {
		c.alias = &call{aliasOf: c}
		t.name(c.alias, id)
		t.take(c, int(unsafe.Sizeof(*c))+cap(c.alias.buf))
	}
}

// take counts memory that c refers to.
func (t *calls) take(c *call, bytes int) {
	bytes = min(bytes, math.MaxInt32-int(c.bytes))
	c.bytes += int32(bytes)
	t.bytes += bytes
}

// link is c's entry in the chain of hash.
func (c *call) link(hash uint64) *key {
	for i := range c.keys {
		if k := &c.keys[i]; k.from != k.to && k.hash == hash {
			return k
		}
	}
	return nil
}

func (c *call) hasKey(hash uint64, text []byte) bool {
	k := c.link(hash)
	return k != nil && string(c.buf[k.from:k.to]) == string(text)
}

// find returns the oldest open call that an answer with this id answers, or
// that a cancel of this id names. Calls of that id come before aliases: most
// servers do not answer by those.
func (t *calls) find(id []byte) *call { return t.findOf(id, anyRequest) }

// A which selects what to find.
type which uint8

const (
	anyRequest which = iota
	onlyCalls        // requests with a record
	onlyOthers
)

func (w which) has(c *call) bool {
	return w == anyRequest || (c.class == recorded) == (w == onlyCalls)
}

// findOf is find among some of the open requests.
func (t *calls) findOf(id []byte, w which) *call {
	var aliased *call
	for m := wire.ExactID; m <= wire.IntID && (m == wire.ExactID || t.inexact > 0); m++ {
		t.scratch = wire.AppendIDKey(t.scratch[:0], id, m, true)
		if len(t.scratch) == 0 {
			continue
		}
		hash := maphash.Bytes(t.seed, t.scratch)
		for c := t.chains[hash].first; c != nil; c = c.link(hash).next {
			switch {
			case !c.hasKey(hash, t.scratch):
			case c.aliasOf == nil && w.has(c):
				return c
			case c.aliasOf != nil && aliased == nil && w.has(c.aliasOf):
				aliased = c.aliasOf
			}
		}
	}
	return aliased
}

// taken returns the oldest open call with whose answer one to a call with this id
// could be confused: some server would write both ids in the same way.
func (t *calls) taken(id []byte) *call {
	if t.n == 0 {
		return nil
	}
	if c := t.find(id); c != nil {
		return c
	}
	for _, echo := range wire.OddEchoes(id) {
		if c := t.find(echo); c != nil {
			return c
		}
	}
	return nil
}

// reuse marks c if an open call has one of its ids. That call keeps its record: most
// servers answer it first.
func (t *calls) reuse(c *call, ids ...[]byte) {
	for _, id := range ids {
		if open := t.taken(id); open != nil {
			open.refunds = nil
			c.reuses()
		}
	}
}

// remove removes c. It is quick for the oldest call of an id, which is the one
// that answers and time limits remove.
func (t *calls) remove(c *call) {
	t.unname(c)
	if c.alias != nil {
		t.unname(c.alias)
		c.alias = nil
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		t.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		t.newest = c.older
	}
	c.older, c.newer = nil, nil
	t.n--
	if c.class != recorded {
		t.others--
	}
	if c.nameless {
		t.nameless--
		c.nameless = false
	}
	t.bytes -= int(c.bytes)
	c.bytes = 0
}

// unname removes c from the calls of its id.
func (t *calls) unname(c *call) {
	for i := range c.keys {
		k := &c.keys[i]
		if k.from == k.to {
			continue
		}
		if wire.IDMatch(i) != wire.ExactID {
			t.inexact--
		}
		ch := t.chains[k.hash]
		if ch.first == c {
			ch.first = k.next
		} else {
			before := ch.first
			for before.link(k.hash).next != c {
				before = before.link(k.hash).next
			}
			before.link(k.hash).next = k.next
			if ch.last == c {
				ch.last = before
			}
		}
		if ch.first == nil {
			delete(t.chains, k.hash)
		} else {
			t.chains[k.hash] = ch
		}
		*k = key{}
	}
}
