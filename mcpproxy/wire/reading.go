package wire

import (
	"bytes"
	"math"
)

// Roles of containers in a client's message.
const (
	roleParams      = roleInner + iota
	roleOtherParams // params in another case
	roleArguments
	roleMeta
)

// Members of a message and of its params, by their index in the tables below;
// 0 is any other.
const (
	memberVersion = 1 + iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

const (
	paramName = 1 + iota
	paramArguments
	paramMeta
	paramURI
)

var (
	memberNames = []string{"", "jsonrpc", "id", "method", "params", "result", "error"}
	paramNames  = []string{"", "name", "arguments", "_meta", "uri"}
)

const (
	maxNames     = 64       // of a container, are compared with each other and make the Parts
	keptValue    = 64 << 10 // of a member is kept of an oversize message
	methodCall   = "tools/call"
	methodPrompt = "prompts/get"
	notifPrefix  = "notifications/"
)

// A value locates a member's value in the window, or in the memory of an
// oversize message.
type value struct {
	from int64
	n    int32 // 0 for none
	own  int32 // 1 + index in oversize.owned, 0 if it is in the window
}

// told is a Message before its frame is ready.
type told struct {
	state     State
	off, end  int64
	anomalies Anomaly

	id, variantID, method, params, name, uri, arguments, meta value

	hasResult, hasError bool
	candidates          [2]int // in Requests.candidates
	open                bool
	whole               *Message
	sum                 []byte
}

// A level is a container on the way from a message to an argument.
type level struct {
	member int   // the value under way: index of its name, 0 for any
	exact  bool  // that name is not a variant
	from   int64 // where the value starts
	first  byte  // its first byte
	busy   bool  // it is under way

	known uint16 // names of the table that were there
	sums  [maxNames]uint64
	names int // other names
}

// An argument is a top-level member of arguments.
type argument struct {
	name, value value
	first       byte
}

// A reading parses the stream as one kind of server does: see Requests. It is
// the visitor of its own scanner.
type reading struct {
	scanner
	q *Requests

	open     bool    // a top-level value is under way
	item     int64   // where it starts
	first    byte    // its first byte
	oddities Anomaly // of the value, except for those in a message
	residue  bool    // an array has an element that is not a message
	members  int     // messages reported of an array
	values   int     // top-level values since the reading last restarted
	afterCR  bool    // there was a bare CR since

	inMessage bool
	cur       told
	version   bool // jsonrpc is "2.0"
	hasMethod bool // method is there, a string or not
	levels    [inner]level
	methods   occurrences
	toolNames occurrences // of prompts too
	uris      occurrences
	sets      argumentSets
	latest    latest
	args      [maxNames]argument // of the set under way, or of the last one
	argCount  int

	over *oversize // the message is larger than the limit

	crossed  bool  // the value under way started on an earlier line
	explains bool  // a message from an earlier line ended on this one
	failed   int64 // where the bytes could not be read, once dead

	opaque      bool // the line cannot be read from opaqueFrom on
	opaqueFrom  int64
	opaqueFlags Anomaly
	announced   bool    // it was reported as Begun
	opaqueSum   *digest // of bytes that are or may become opaque, larger than the limit
}

// reset makes p ready for the next value.
func (p *reading) reset() {
	p.restart()
	p.open, p.inMessage, p.residue = false, false, false
	p.crossed, p.explains, p.opaque, p.announced = false, false, false, false
	p.values, p.afterCR = 0, false
	p.oddities = 0
	p.over, p.opaqueSum = nil, nil
}

func (p *reading) fresh() bool { return p.st == atTop && !p.open }

func (p *reading) begin(r role, off int64, first byte) role {
	switch r {
	case roleTop:
		return p.beginTop(off, first)
	case roleMessage:
		l := p.beginValue(0, off, first)
		if l.member != memberParams {
			break
		}
		p.latest.name.params, p.latest.uri.params, p.latest.paramsSet = 0, 0, 0
		if !l.exact {
			if first == '{' {
				p.levels[1].clear()
				return roleOtherParams
			}
			break
		}
		p.cur.params, p.cur.name, p.cur.uri, p.cur.meta = value{}, value{}, value{}, value{}
		p.latest.name.exact, p.latest.uri.exact = 0, 0
		p.clearArguments()
		if first == '{' {
			p.levels[1].clear()
			return roleParams
		}
	case roleParams, roleOtherParams:
		l := p.beginValue(1, off, first)
		switch primary := l.exact && r == roleParams; {
		case l.member == paramMeta && primary && first == '{':
			return roleMeta
		case l.member == paramArguments:
			p.beginArguments(off, primary)
			if first == '{' {
				p.levels[2].clear()
				return roleArguments
			}
		}
	case roleArguments:
		p.beginValue(2, off, first)
		p.beginArgument(off, first)
	case roleMeta:
		p.beginValue(2, off, first)
	}
	return roleNone
}

func (p *reading) beginValue(i int, off int64, first byte) *level {
	l := &p.levels[i]
	l.from, l.first, l.busy = off, first, true
	if p.over != nil && p.captured(i) {
		p.over.keep, p.over.head, p.over.id = off, nil, nil
	}
	return l
}

func (p *reading) end(r role, off int64) {
	if r == roleTop {
		if p.inMessage {
			p.endMessage(off)
		}
		if p.depth == 0 {
			p.endItem(off)
		}
		return
	}
	switch r {
	case roleMessage:
		p.levels[0].busy = false
		p.endMember(&p.levels[0], off)
	case roleParams, roleOtherParams:
		p.levels[1].busy = false
		p.endParam(&p.levels[1], off, r == roleParams)
	case roleArguments:
		p.levels[2].busy = false
		p.endArgument(off)
	case roleMeta:
		p.levels[2].busy = false
		p.endMeta(&p.levels[2], off)
	}
	if p.over != nil {
		p.over.keep, p.over.head, p.over.id = -1, nil, nil
	}
}

func (p *reading) name(r role, off int64, lit []byte) {
	switch r {
	case roleMessage:
		p.member(&p.levels[0], memberNames, lit)
	case roleParams, roleOtherParams:
		p.member(&p.levels[1], paramNames, lit)
	case roleArguments:
		p.member(&p.levels[2], nil, lit)
		p.nameArgument(off, lit)
	case roleMeta:
		p.levels[2].exact = string(lit) == `"progressToken"`
	}
}

func (p *reading) beginTop(off int64, first byte) role {
	if p.depth == 0 {
		p.beginItem(off, first)
	}
	switch first {
	case '[':
		return roleTop
	case '{':
		p.beginMessage(off)
		return roleMessage
	}
	p.residue = true
	return roleNone
}

func (p *reading) beginItem(off int64, first byte) {
	p.open, p.item, p.first = true, off, first
	p.oddities, p.flags, p.odd = p.flags, 0, -1
	if p.values > 0 {
		p.oddities |= MultiValue
	}
	if p.afterCR {
		p.oddities |= BareCR
	}
	p.values++
	p.residue, p.members, p.crossed = false, 0, false
}

// endItem ends a top-level value before off.
func (p *reading) endItem(off int64) {
	p.oddities |= p.flags
	p.flags, p.odd = 0, -1
	if p.first != '{' && (p.residue || p.members == 0) {
		p.addOpaque(p.item, p.oddities|NotRPC)
	}
	if p.first != '{' {
		// The anomalies after the last message of a batch.
		p.q.lineFlags |= p.oddities
	}
	if p.members > 0 {
		p.q.done = max(p.q.done, off)
	}
	p.open, p.crossed = false, false
	if !p.opaque {
		p.opaqueSum = nil
	}
}

func (p *reading) beginMessage(off int64) {
	p.oddities |= p.flags
	p.flags = 0
	p.inMessage, p.version, p.hasMethod = true, false, false
	p.cur = told{off: off}
	p.levels[0].clear()
	p.methods.n, p.toolNames.n, p.uris.n, p.sets.n, p.argCount = 0, 0, 0, 0, 0
	p.latest = latest{}
	for i := range p.levels {
		p.levels[i].busy = false
	}
}

func (p *reading) endMessage(off int64) {
	if p.first == '[' {
		p.flags |= Batch
	}
	p.tellMessage(off)
	p.inMessage = false
}

// tellMessage reports the message under way, as far as it is known.
func (p *reading) tellMessage(off int64) {
	t := &p.cur
	rpc := p.hasMethod || p.methods.n > 0 || t.hasResult || t.hasError
	if t.method.n == 0 && !t.hasResult && !t.hasError || !p.version {
		p.flags |= NotRPC
	}
	if p.over == nil && p.equals(t.method, methodCall) && !p.callable() {
		p.flags |= NotRPC
	}
	p.idAnomalies()
	t.end, t.anomalies = off, p.oddities|p.flags
	p.flags = 0
	switch {
	case p.over != nil:
		p.tellOversize(Ended, off)
		p.over = nil
	case rpc:
		t.anomalies |= p.findCandidates()
		p.q.pending = append(p.q.pending, *t)
	case p.first == '[':
		p.residue = true
		p.oddities |= t.anomalies
		return
	default:
		p.addOpaque(t.off, t.anomalies)
		return
	}
	p.explains = p.explains || t.off < p.q.lineFrom
	p.members++
}

// callable reports whether a tools/call is one by MCP's schema. Some servers
// run others, too.
func (p *reading) callable() bool {
	args := p.bytes(p.cur.arguments)
	return p.cur.name.n > 0 && (args == nil || args[0] == '{' || string(args) == "null")
}

func (p *reading) idAnomalies() {
	id := p.bytes(p.cur.id)
	if id != nil && string(id) != "null" {
		if oddID(id) {
			p.flags |= OddID
		}
		return
	}
	for i := range p.methods.n {
		if !bytes.HasPrefix(p.text(p.methods.list[i].lit), []byte(notifPrefix)) {
			p.flags |= NoID
		}
	}
}

// bareCR reports a CR that is white space to this reading.
func (p *reading) bareCR(off int64) {
	p.carriageReturn(off)
	p.afterCR = true
	switch {
	case p.st == dead:
		p.opaqueFlags |= BareCR
	case p.open:
		p.flags |= BareCR
	}
}

// limit is the offset at which the message or line under way becomes oversize.
func (p *reading) limit() int64 {
	at := int64(math.MaxInt64)
	if p.inMessage && p.over == nil {
		at = p.cur.off + p.q.limit
	}
	if from := p.unread(); from >= 0 && p.opaqueSum == nil {
		at = min(at, from+p.q.limit)
	}
	return at
}

// unread is where the bytes of the line start that are opaque or may turn out
// to be, -1 for none. An object is a message as long as it can be.
func (p *reading) unread() int64 {
	switch {
	case p.opaque:
		return p.opaqueFrom
	case p.open && p.first != '{' && !p.crossed:
		return p.item
	}
	return -1
}

// held is the start of the bytes that must wait for the end of the line, where
// they are reported. A message behind opaque bytes waits with them: readers of
// lines need the LF, and go-sdk ends the connection at a value that another one
// follows on its line.
func (p *reading) held() int64 {
	switch {
	case p.announced:
	case p.opaque:
		return p.opaqueFrom
	case p.open && p.residue && !p.crossed:
		return p.item
	}
	return math.MaxInt64
}

// advance is called once everything before off was scanned.
func (p *reading) advance(off int64) {
	if p.limit() <= off {
		p.exceed(off)
	}
	if p.opaqueSum != nil {
		p.opaqueSum.write(p.w, off)
		p.announce(off)
	}
	if p.over != nil {
		p.trim(off)
	}
	if p.streaming() && off-p.tok > keptValue {
		p.tok = -1
	}
}

// exceed starts the handling of oversize bytes.
func (p *reading) exceed(off int64) {
	if from := p.unread(); from >= 0 && p.opaqueSum == nil && from+p.q.limit <= off {
		p.opaqueSum = newDigest(p.q.hash, from)
	}
	if p.inMessage && p.over == nil && p.cur.off+p.q.limit <= off {
		p.beginOversize(off)
	}
}

// streaming reports that more is under way than can be held back.
func (p *reading) streaming() bool { return p.over != nil || p.opaqueSum != nil }

// keep is the first offset of the bytes that p still needs.
func (p *reading) keep() int64 {
	at := int64(math.MaxInt64)
	if p.opaque && p.opaqueSum == nil {
		at = p.opaqueFrom
	}
	if p.odd >= 0 {
		at = min(at, p.odd)
	}
	if p.opaqueSum != nil {
		at = min(at, p.opaqueSum.from) // a line end is not in it yet
	}
	if p.over != nil && p.over.sum != nil {
		at = min(at, p.over.sum.from)
	}
	if p.st == dead {
		return at
	}
	if p.st >= inString && p.tok >= 0 {
		at = min(at, p.tok)
	}
	switch {
	case p.over != nil:
		if p.over.keep >= 0 && p.over.head == nil {
			at = min(at, p.over.keep)
		}
		if p.over.id != nil {
			at = min(at, p.over.idTo)
		}
		if p.over.digest != nil {
			at = min(at, p.over.digest.from)
		}
	case p.inMessage:
		at = min(at, p.cur.off)
	}
	if p.open && p.over == nil && p.opaqueSum == nil && !p.crossed {
		at = min(at, p.item)
	}
	return at
}
