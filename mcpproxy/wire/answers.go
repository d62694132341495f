package wire

import (
	"bytes"

	"auditproxy/schemas/jsontext"
)

// An Answer is one JSON object of a server's stream, or one member of a batch.
// Slices are good until the next Scan.
type Answer struct {
	Off   int64  // offset in the stream
	Bytes int64  // length of the object on the wire
	Raw   []byte // the object; nil if it was longer than RetainSmall and Retain was not on

	ID     []byte // as written; nil for none
	Method []byte // a string literal; nil for none
	// HasResult or HasError, and no Method: it answers a request.
	HasResult, HasError bool
	// Loose: its line is more than one JSON value. The Kotlin SDK takes such an
	// answer and go-sdk several of a line, other clients skip the line. What
	// comes in a later Scan does not count.
	Loose bool

	IsError    bool   // result.isError is true
	ErrorType  []byte // result._meta.error_type, a string literal
	ResultType []byte // result.resultType, a string literal (MCP 2026-07-28)
	Task       bool   // result.task is an object (MCP 2025-11-25)
	Code       []byte // error.code, as written
	Message    []byte // error.message, a string literal, at most RetainSmall of it
}

// RetainSmall is the size up to which an answer that comes in several reads is
// kept whole.
const RetainSmall = 256 << 10

// maxCarry is how much memory an Answers keeps for the next answer.
const maxCarry = 4 * RetainSmall

// Roles of containers in a server's message.
const (
	roleResult = roleInner + iota
	roleResultMeta
	roleError
)

// The members of a server's message that matter, at any position. The first
// have a place in Answers.values.
const (
	fieldID = iota
	fieldMethod
	fieldErrorType
	fieldResultType
	fieldCode
	fieldMessage
	fields // how many have a place
	fieldResult
	fieldError
	fieldIsError
	fieldMeta
	fieldTask
	none
)

// Answers reads a server's stream after it was forwarded. It is used by one
// goroutine. An answer of any length needs constant memory.
//
// It restarts at every LF, so that a broken line does not hide the next. The
// zero value is at the start of a stream.
type Answers struct {
	// All of this is the caller's goroutine's.
	scanner scanner
	window  window // the bytes being scanned: those given to Scan, or carry
	chunks  int    // of levels that the scanner may still allocate
	size    int64  // of the stream so far
	inLine  bool   // the last byte was not LF
	tops    int    // values that began on this line, outside of others
	retain  bool   // from the next line on
	limit   int64  // up to which an answer of this line is kept whole

	// The kept part of the line under way. After a line that needed it, the
	// other side is used: the answers returned last alias this one.
	carry [2]window
	side  int

	inMessage bool
	large     bool // the message is larger than limit: its values are copied
	cur       Answer
	values    [fields]value
	field     [inner]int  // of the value under way, for each level
	first     [inner]byte // its first byte
	copies    [2][fields][]byte
	copySide  int // changes with each large message, as side does

	busy     int     // the one of values that is under way, or none
	busyFrom int64   // where it starts
	busyHead bool    // its first RetainSmall bytes are in copies, the rest is needed only for id
	id       *idKeys // of that value if it is an id, else nil
	idTo     int64   // the bytes before it have been written to id

	answers []Answer
	scratch []byte
}

// Retain sets whether to keep answers up to Limit whole from the next line on,
// for a result that the proxy wants to read itself.
func (a *Answers) Retain(on bool) { a.retain = on }

// Scan reads the next bytes of the stream and returns the answers that end in
// them. It allocates nothing once warm.
func (a *Answers) Scan(p []byte) []Answer {
	if a.scanner.v == nil {
		a.scanner = scanner{v: (*answerVisitor)(a), w: &a.window, maxDepth: MaxDepth, quick: true}
		a.chunks = maxChunks
		a.scanner.outer.left = &a.chunks
	}
	a.answers = a.answers[:0]
	base := a.size
	a.size += int64(len(p))
	for i := 0; i < len(p); {
		if !a.inLine {
			a.startLine()
		}
		n := bytes.IndexByte(p[i:], '\n')
		line := p[i:]
		if n >= 0 {
			line = p[i : i+n]
		}
		from := base + int64(i)
		a.window = window{buf: p, off: base}
		c := &a.carry[a.side]
		if c.trim(a.keep(from)); len(c.buf) > 0 {
			c.buf = append(c.buf, line...)
			a.window = *c
		}
		a.inLine = true
		first := len(a.answers)
		a.scanner.run(line, from)
		if a.isLoose() {
			for i := range a.answers[first:] {
				a.answers[first+i].Loose = true
			}
		}
		if n < 0 {
			a.save()
			break
		}
		a.scanner.lineFeed(from + int64(n))
		a.inLine = false
		i += n + 1
	}
	a.window = window{}
	return a.answers
}

// isLoose reports whether the line, as far as it is known, is more than one value.
func (a *Answers) isLoose() bool {
	return a.tops > 1 || a.scanner.st == dead || a.scanner.flags&(NotJSON|BOM) != 0
}

func (a *Answers) startLine() {
	a.scanner.restart()
	a.tops = 0
	a.inMessage, a.large = false, false
	a.limit = RetainSmall
	if a.retain {
		a.limit = Limit
	}
	c := &a.carry[a.side]
	if len(c.buf) == 0 {
		return
	}
	a.side ^= 1
	c = &a.carry[a.side]
	c.buf = c.buf[:0]
	if cap(c.buf) > maxCarry {
		c.buf = nil
	}
}

// save keeps the part of the line under way that scanning the rest needs.
func (a *Answers) save() {
	if a.inMessage && !a.large && a.size-a.cur.Off > a.limit {
		a.large = true
		a.copySide ^= 1
		for i, v := range a.values {
			if v.n > 0 {
				a.copyValue(i, v.from, v.from+int64(v.n))
			}
		}
	}
	if a.large && a.busy < fields && !a.busyHead && a.size-a.busyFrom > RetainSmall {
		if a.busy == fieldID {
			a.id, a.idTo = new(idKeys), a.busyFrom
		}
		a.copyHead(a.busy, a.busyFrom, a.size)
		a.busyHead = true
	}
	if a.large && a.busyHead && a.busy == fieldID {
		a.id.write(a.window.slice(a.idTo, a.size))
		a.idTo = a.size
	}
	c := &a.carry[a.side]
	if len(c.buf) > 0 {
		return // the next Scan trims it: the answers of this one alias it
	}
	from := a.keep(a.size)
	c.off = from
	c.buf = append(c.buf, a.window.slice(from, a.size)...)
}

// keep is the first offset before end that is still needed.
func (a *Answers) keep(end int64) int64 {
	s := &a.scanner
	switch {
	case s.st == dead:
		return end
	case a.inMessage && !a.large:
		return a.cur.Off
	case a.inMessage && a.busy < fields && !a.busyHead:
		return a.busyFrom
	case s.st == inSpace, s.st == inString && s.named && end-s.tok <= RetainSmall:
		return s.tok
	}
	if s.st == inString {
		s.tok = -1 // a name too long to matter
	}
	return end
}

// copyValue copies a value of a message that is not kept whole.
func (a *Answers) copyValue(field int, from, to int64) {
	if field == fieldID && to-from > RetainSmall {
		a.putCopy(field, KeepID(a.window.slice(from, to), RetainSmall))
		return
	}
	a.copyHead(field, from, to)
}

func (a *Answers) copyHead(field int, from, to int64) {
	a.putCopy(field, a.window.slice(from, min(to, from+RetainSmall)))
}

func (a *Answers) putCopy(field int, b []byte) {
	c := &a.copies[a.copySide][field]
	*c = append((*c)[:0], b...)
	a.values[field] = value{n: int32(len(*c)), own: 1}
}

// answerVisitor is the visitor of an Answers' scanner.
type answerVisitor Answers

func (v *answerVisitor) name(r role, _ int64, lit []byte) {
	a := (*Answers)(v)
	if bytes.IndexByte(lit, '\\') >= 0 {
		a.scratch = jsontext.AppendUnquote(append(a.scratch[:0], '"'), lit)
		a.scratch = append(a.scratch, '"')
		lit = a.scratch
	}
	f := none
	switch r {
	case roleMessage:
		switch string(lit) {
		case `"id"`:
			f = fieldID
		case `"method"`:
			f = fieldMethod
		case `"result"`:
			f = fieldResult
		case `"error"`:
			f = fieldError
		}
	case roleResult:
		switch string(lit) {
		case `"isError"`:
			f = fieldIsError
		case `"_meta"`:
			f = fieldMeta
		case `"resultType"`:
			f = fieldResultType
		case `"task"`:
			f = fieldTask
		}
	case roleResultMeta:
		if string(lit) == `"error_type"` {
			f = fieldErrorType
		}
	case roleError:
		switch string(lit) {
		case `"code"`:
			f = fieldCode
		case `"message"`:
			f = fieldMessage
		}
	}
	a.field[levelOf(r)] = f
}

// levelOf returns the depth in a message of a container with role r.
func levelOf(r role) int {
	switch r {
	case roleMessage:
		return 0
	case roleResultMeta:
		return 2
	}
	return 1
}

func (v *answerVisitor) begin(r role, off int64, first byte) role {
	a := (*Answers)(v)
	if r == roleTop {
		if a.scanner.depth == 0 {
			a.tops++
		}
		switch first {
		case '[':
			return roleTop
		case '{':
			a.inMessage, a.large, a.busy = true, false, none
			a.cur = Answer{Off: off}
			a.values = [fields]value{}
			return roleMessage
		}
		return roleNone
	}
	level := levelOf(r)
	f := a.field[level]
	a.first[level] = first
	switch f {
	case fieldResult:
		a.cur.IsError, a.cur.Task = false, false
		a.values[fieldErrorType], a.values[fieldResultType] = value{}, value{}
		if first == '{' {
			return roleResult
		}
	case fieldMeta:
		a.values[fieldErrorType] = value{}
		if first == '{' {
			return roleResultMeta
		}
	case fieldError:
		a.values[fieldCode], a.values[fieldMessage] = value{}, value{}
		if first == '{' {
			return roleError
		}
	case fieldID, fieldCode:
		a.busy, a.busyFrom, a.busyHead = f, off, false
	case fieldMethod, fieldErrorType, fieldResultType, fieldMessage:
		a.values[f] = value{}
		if first == '"' {
			a.busy, a.busyFrom, a.busyHead = f, off, false
		}
	}
	return roleNone
}

func (v *answerVisitor) end(r role, off int64) {
	a := (*Answers)(v)
	if r == roleTop {
		if a.inMessage {
			a.tell(off)
		}
		return
	}
	level := levelOf(r)
	first := a.first[level]
	switch a.field[level] {
	case fieldResult:
		a.cur.HasResult = true
	case fieldError:
		a.cur.HasError = first != 'n'
	case fieldIsError:
		a.cur.IsError = first == 't'
	case fieldTask:
		a.cur.Task = first == '{'
	}
	if a.busy >= fields {
		return
	}
	switch {
	case !a.large:
		a.values[a.busy] = value{from: a.busyFrom, n: int32(off - a.busyFrom)}
	case !a.busyHead:
		a.copyValue(a.busy, a.busyFrom, off)
	case a.busy == fieldID:
		a.id.write(a.window.slice(a.idTo, off))
		a.putCopy(fieldID, a.id.keep(a.copies[a.copySide][fieldID]))
	}
	a.busy = none
}

func (v *answerVisitor) fail(int64) { v.inMessage = false }

// tell reports the message that ends before off.
func (a *Answers) tell(off int64) {
	a.inMessage = false
	a.cur.Bytes = off - a.cur.Off
	if !a.large {
		a.cur.Raw = a.window.slice(a.cur.Off, off)
	}
	for i, to := range [fields]*[]byte{&a.cur.ID, &a.cur.Method, &a.cur.ErrorType, &a.cur.ResultType, &a.cur.Code, &a.cur.Message} {
		switch v := a.values[i]; {
		case v.n == 0:
		case v.own > 0:
			*to = a.copies[a.copySide][i]
		default:
			*to = a.window.slice(v.from, v.from+int64(v.n))
		}
	}
	a.answers = append(a.answers, a.cur)
}
