package wire

import (
	"bytes"
	"hash/maphash"
	"math"
	"slices"

	"auditproxy/schemas/jsontext"
)

const (
	minRead   = 64 << 10
	maxRead   = 128 << 10   // the most that Space returns; also the window's first size
	maxFrames = 4096        // of one Scan: lines can be shorter than their messages in memory
	growth    = 4           // of the window, as large buffers are slow to be collected
	aside     = 4 * maxRead // bytes of the window that are filled before its start is used again, while its end is hashed
	idleReads = 32          // that need little of a large window, until it is released
)

// MaxBatch is how many messages of a batch wait for its end. A longer one may
// come in several frames.
const MaxBatch = 1024

// Requests reads a client's stream. It is used by one goroutine:
//
//	for {
//		n, err := client.Read(q.Space())
//		for more := n > 0; more; n = 0 {
//			frames := q.Scan(n)     // record their messages, then
//			server.Write(q.Ready()) // pass the same bytes on
//			more = q.More()
//		}
//	}
//
// Bytes that could complete a message for any reader are never ready before the
// Scan that reports the message.
//
// Servers read the stream in three ways, and Requests follows each:
//
//   - most restart at every LF;
//   - Python and Java also end a message at a bare CR;
//   - go-sdk decodes a stream of JSON values, of which a line can have several
//     and which can span lines. If such a value is broken, the next line is
//     read as if it were the first.
//
// As long as all agree there is one reading. It forks at a CR and at a LF
// inside a value, and messages at one offset are reported once. A line that
// cannot be read is read again as Kotlin and Ruby do: see reread.
type Requests struct {
	// All of this is the caller's goroutine's.
	shared
	window window
	pos    int64 // the bytes before it were scanned
	inside bool  // the line under way starts inside a value
	first  int64 // start of the bytes that became ready in the last Scan
	passed int64 // end of it
	chunks int   // of levels that the readings may still allocate
	idle   int   // calls of Space in a row with a window too large
	more   bool  // the last Scan left lines

	readings [3]reading
	forked   bool    // pending may have messages that two of them reported
	early    []int64 // offsets of line's messages that frames before its end have
	hashing  hashing
	rereader *Requests
	rereads  bool // this is a rereader

	results // of the last Scan
}

// NewRequests returns a Requests at the start of a stream.
func NewRequests(c Config) *Requests {
	q := &Requests{shared: shared{hash: c.Hash, seed: maphash.MakeSeed(), limit: Limit}, chunks: maxChunks}
	q.window.hashing = &q.hashing
	for i := range q.readings {
		p := &q.readings[i]
		p.shared, p.v, p.w, p.maxDepth = &q.shared, p, &q.window, MaxDepth
		p.outer.left = &q.chunks
		p.reset()
	}
	q.line = &q.readings[0]
	q.cr, q.stream = q.line, q.line
	return q
}

// Space returns room for the next bytes of the stream, at least 64 KiB of it.
// The results of earlier calls become invalid; bytes that were ready count as
// forwarded or refused.
func (q *Requests) Space() []byte {
	w := &q.window
	keep := min(q.passed, q.keep())
	live := w.buf[keep-w.off:]
	size := cap(w.buf)
	switch {
	case len(live) > size/4 || size <= 4*maxRead:
		q.idle = 0
	case q.chunks < maxChunks:
		q.idle = idleReads // deep nesting needs the memory
	case q.streaming():
		q.idle = 0 // another large message may follow the one that passes
	case len(live) <= minRead:
		q.idle++
	}
	switch {
	case size == 0 || q.idle == idleReads:
		size, q.idle = maxRead, 0
		for size < len(live)+minRead {
			size *= 2
		}
		w.move(make([]byte, 0, size), keep)
	case len(live) == 0 && !(w.hashing.handed && len(w.buf) < aside && size >= aside+maxRead):
		w.move(w.buf[:0], keep)
	case size-len(w.buf) >= minRead:
	case len(live) <= size/2 && len(live)+minRead <= size:
		w.move(w.buf[:0], keep)
	default:
		w.move(make([]byte, 0, max(min(growth*size, int(q.limit)+4*maxRead), len(live)+maxRead)), keep)
	}
	q.first = q.passed
	n := len(w.buf)
	return w.buf[n:min(n+maxRead, cap(w.buf))]
}

// keep is the first offset that a reading or a pending message needs.
func (q *Requests) keep() int64 {
	at := min(q.pos, q.line.keep())
	if q.pos-q.lineFrom <= q.limit {
		at = min(at, q.lineFrom) // reread may need all of the line
	}
	if q.cr != q.line {
		at = min(at, q.cr.keep())
	}
	if q.stream != q.line {
		at = min(at, q.stream.keep())
	}
	for i := range q.pending {
		if q.pending[i].whole == nil && q.pending[i].sum == nil {
			at = min(at, q.pending[i].off)
		}
	}
	return at
}

// Scan reads the n bytes just read into Space and returns the frames that are
// ready, in order: maxFrames of them at most, see More. Both Space and Scan
// allocate nothing once warm.
func (q *Requests) Scan(n int) []Frame {
	q.window.buf = q.window.buf[:len(q.window.buf)+n]
	q.clear()
	q.read(false)
	ready := max(q.done, q.passed)
	if q.streaming() || q.pos-ready > q.limit || len(q.pending) > MaxBatch {
		ready = q.pos
	}
	ready = max(min(ready, q.held()), q.passed)
	if ready > q.passed {
		q.frame(ready, false)
	}
	return q.finish()
}

// Close waits for the goroutine that Scan starts for the digests of oversize
// bytes. Call it last, after End or instead of it.
func (q *Requests) Close() { q.hashing.wait() }

// More reports whether the last Scan left lines for another one, of 0 bytes.
func (q *Requests) More() bool { return q.more }

// End returns the rest at the end of the stream. All of it is ready.
func (q *Requests) End() []Frame {
	q.clear()
	q.read(true)
	q.endLine(q.pos, true)
	if q.pos > q.passed || len(q.pending) > 0 {
		q.frame(q.pos, true)
	}
	return q.finish()
}

// Ready returns the bytes of the frames of the last Scan or End, contiguous.
func (q *Requests) Ready() []byte { return q.window.slice(q.first, q.passed) }

func (q *Requests) clear() {
	q.first, q.more = q.passed, false
	q.results.clear()
	if len(q.pending) == 0 {
		q.candidates = q.candidates[:0]
	}
}

// read scans the window. A CR at its end waits for the next byte, unless it is
// the last byte of the stream.
func (q *Requests) read(last bool) {
	w := &q.window
	lf := int64(-1) // of the next line end
	for end := w.end(); q.pos < end; {
		if lf < q.pos {
			lf = end
			if i := bytes.IndexByte(w.slice(q.pos, end), '\n'); i >= 0 {
				lf = q.pos + int64(i)
			}
		}
		if i := bytes.IndexByte(w.slice(q.pos, lf), '\r'); i >= 0 {
			cr := q.pos + int64(i)
			q.scan(cr)
			switch {
			case cr+1 < lf || cr+1 == end && last:
				q.bareCR(cr)
				continue
			case cr+1 == end:
				return
			}
			q.pos = lf
		}
		q.scan(lf)
		if lf < end {
			q.lineFeed(lf)
			if q.more = len(q.frames) >= maxFrames && q.pos < end && !last; q.more {
				return
			}
		}
	}
}

// scan scans up to an offset; there is no CR or LF before it.
func (q *Requests) scan(to int64) {
	for q.pos < to {
		fork := q.cr != q.line || q.stream != q.line
		cut := min(to, q.line.limit())
		if fork {
			cut = min(cut, q.cr.limit(), q.stream.limit())
		}
		cut = max(cut, q.pos)
		b := q.window.slice(q.pos, cut)
		q.line.run(b, q.pos)
		q.line.advance(cut)
		if fork {
			q.scanForks(b, cut)
		}
		q.pos = cut
	}
}

func (q *Requests) scanForks(b []byte, to int64) {
	q.forked = true
	if q.cr != q.line {
		q.cr.run(b, q.pos)
		q.cr.advance(to)
	}
	if q.stream == q.line {
		return
	}
	q.stream.run(b, q.pos)
	if q.stream.st == dead {
		q.stream.tellBroken(q.stream.failed)
		q.stream.tellOpaque(q.stream.failed, tellNothing, false)
		q.stream.reset()
		q.stream = q.line
		return
	}
	q.stream.advance(to)
}

// bareCR handles a CR that no LF follows.
func (q *Requests) bareCR(off int64) {
	q.lineFlags |= BareCR
	q.line.bareCR(off)
	if q.stream != q.line {
		q.stream.bareCR(off)
	}
	switch {
	case q.cr != q.line:
		q.cr.cut(off, tellNothing)
		q.cr.afterCR = true
	case !q.line.fresh():
		q.cr = q.spare()
		q.cr.afterCR = true
	}
	q.pos = off + 1
}

// lineFeed handles a LF, which ends a frame.
func (q *Requests) lineFeed(off int64) {
	q.endLine(off, false)
	q.pos = off + 1
	q.frame(q.pos, true)
	q.inside = q.stream != q.line
}

// endLine reports the bytes that the line ending at off holds besides messages,
// in one piece: from the first byte that cannot be read, to off.
//
// A value that continues on the next line cannot be read by servers that
// restart there, so each of its lines is opaque. The line on which a message
// ends that started earlier is part of it; lines that hold only the structure
// of such a value are not reported.
func (q *Requests) endLine(off int64, last bool) {
	if q.cr != q.line {
		q.cr.cut(off, tellNothing)
	}
	s, tell := q.stream, tellAll
	s.lineFeed(off)
	if s != q.line {
		switch {
		case s.explains && !(s.open && s.crossed):
			q.line.cut(off, tellNothing)
		case s.st != dead:
			q.line.cut(off, tellContent)
			tell = tellNothing
		default:
			q.line.cut(off, tellAll)
			tell = tellNothing
		}
	}
	if last || s.st == dead || s.fresh() {
		s.cut(off, tell)
		q.line, q.stream = s, s
	} else {
		if s == q.line {
			q.line = q.spare()
		}
		s.cross(off, tell)
	}
	q.cr = q.line
	if q.broken {
		q.reread(q.lineFrom, off)
	}
}

// held is where the bytes start that must wait for the end of the line.
func (q *Requests) held() int64 {
	if q.stream == q.line || q.stream.explains {
		return q.stream.held()
	}
	return q.line.held()
}

// spare returns a reading that is not in use.
func (q *Requests) spare() *reading {
	for i := range q.readings {
		if p := &q.readings[i]; p != q.line && p != q.cr && p != q.stream {
			p.reset()
			return p
		}
	}
	panic("wire: more than three readings")
}

func (q *Requests) streaming() bool {
	return q.line.streaming() || q.cr.streaming() || q.stream.streaming()
}

// frame makes a frame of the bytes held before an offset.
func (q *Requests) frame(to int64, complete bool) {
	if q.forked {
		q.pending = merge(q.pending)
		q.forked = q.cr != q.line || q.stream != q.line
	}
	f := Frame{Bytes: q.window.slice(q.passed, to), Complete: complete, Inside: q.inside, Anomalies: q.lineFlags}
	from := len(q.messages)
	rest := q.pending[:0]
	for i := range q.pending {
		t := &q.pending[i]
		if t.end > to {
			rest = append(rest, *t)
			continue
		}
		q.add(t, &q.window, q.candidates)
		f.Anomalies |= t.anomalies
		if !complete && to-q.lineFrom <= q.limit {
			q.early = append(q.early, t.off)
		}
	}
	if complete {
		q.lineFrom, q.broken, q.early = to, false, q.early[:0]
	}
	q.pending = rest
	q.spans = append(q.spans, [2]int{from, len(q.messages)})
	q.frames = append(q.frames, f)
	q.passed, q.lineFlags = to, 0
}

// reread reads the line from..to once more, for the servers that read what the
// scanner cannot. The messages that they execute become messages of their own,
// in strict JSON except for Raw, and are no longer opaque:
//
//   - The Kotlin SDK needs no quotes around names and strings. It retries a
//     broken line at its first brace.
//   - Ruby's JSON skips comments.
//
// Both need the whole line, so nothing is executed before its end. Lines beyond
// the limit, which are not kept, remain opaque: Kotlin ends at 16 MiB, Ruby at 4.
func (q *Requests) reread(from, to int64) {
	if q.rereads || from < q.window.off || to-from > q.limit {
		return
	}
	line := q.window.slice(from, to)
	if !bytes.Contains(line, []byte("method")) && !bytes.Contains(line, []byte(`\u`)) {
		return // no request
	}
	if b, brace := addQuotes(line); b != nil {
		off := from + int64(brace)
		end := from + int64(len(trimSpace(line)))
		list := q.again(b, off)
		if len(list) == 1 && list[0].Off == off && list[0].End == off+int64(len(b)) {
			list[0].End = end
			q.tellAgain(from, list)
			return
		}
	}
	if b := removeComments(line); b != nil {
		q.tellAgain(from, q.again(b, from))
	}
}

// again returns the messages in b, which is at off; none if b is not JSON.
func (q *Requests) again(b []byte, off int64) (list []*Message) {
	if q.rereader == nil {
		q.rereader = NewRequests(Config{Hash: q.hash})
		q.rereader.limit = math.MaxInt64 / 2
		q.rereader.rereads = true
		for i := range q.rereader.readings {
			q.rereader.readings[i].maxDepth = q.line.maxDepth
		}
	}
	r := q.rereader
	r.window.buf, r.window.off = b, off
	r.pos, r.first, r.passed, r.done, r.lineFrom = off, off, off, off, off
	for _, f := range r.End() {
		for _, m := range f.Messages {
			if m.State == Opaque && m.Anomalies&NotJSON != 0 {
				return nil
			}
			if m.State != Opaque {
				m.Candidates = slices.Clone(m.Candidates)
				list = append(list, &m)
			}
		}
	}
	return list
}

// tellAgain adds messages of the line that are not reported yet. Opaque bytes
// with such a message at one of their ends lose it.
func (q *Requests) tellAgain(from int64, list []*Message) {
	for _, m := range list {
		if slices.Contains(q.early, m.Off) ||
			slices.ContainsFunc(q.pending, func(t pendingMessage) bool { return t.state != Opaque && t.off == m.Off }) {
			continue
		}
		q.pending = slices.DeleteFunc(q.pending, func(t pendingMessage) bool {
			return t.state == Opaque && t.sum == nil && t.off >= from && q.without(m, &t)
		})
		for i := range q.pending {
			if t := &q.pending[i]; t.state == Opaque && t.sum == nil && t.off >= from {
				q.without(m, t)
			}
		}
		m.Raw = q.window.slice(m.Off, m.End)
		q.pending = append(q.pending, pendingMessage{off: m.Off, end: m.End, whole: m, anomalies: m.Anomalies | NotJSON})
		q.forked = true // so that frame sorts them
	}
}

// without removes m from either end of opaque bytes, and reports whether none
// are left.
func (q *Requests) without(m *Message, t *pendingMessage) bool {
	blank := func(from, to int64) bool { return from >= to || isBlank(q.window.slice(from, to)) }
	switch {
	case m.End <= t.off || m.Off >= t.end:
		return false
	case blank(t.off, m.Off):
		t.off, t.open = min(m.End, t.end), false
	case blank(m.End, t.end):
		t.end = m.Off
	}
	return blank(t.off, t.end)
}

// isBlank reports whether b is nothing but white space of any standard, and what
// is around the members of a batch.
func isBlank(b []byte) bool {
	for len(b) > 0 {
		n, _ := jsontext.WideSpace(b)
		switch c := b[0]; {
		case c <= ' ', c == ',', c == '[', c == ']':
			n = 1
		case n <= 0:
			return false
		}
		b = b[n:]
	}
	return true
}
