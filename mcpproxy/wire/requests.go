package wire

import (
	"bytes"
	"cmp"
	"hash"
	"hash/maphash"
	"slices"
)

const (
	minRead   = 64 << 10
	maxRead   = 128 << 10 // the most that Space returns; also the window's first size
	maxFrames = 4096      // of one Scan: lines can be shorter than their messages in memory
	growth    = 4         // of the window, as large buffers are slow to be collected
	idleReads = 32        // that need little of a large window, until it is released
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
	hash  func() hash.Hash
	seed  maphash.Seed
	limit int64 // Limit, less in tests

	// All of this is the caller's goroutine's.
	window window
	pos    int64 // the bytes before it were scanned
	inside bool  // the line under way starts inside a value
	first  int64 // start of the bytes that became ready in the last Scan
	passed int64 // end of it
	done   int64 // end of the last value that completed
	chunks int   // of levels that the readings may still allocate
	idle   int   // calls of Space in a row with a window too large
	more   bool  // the last Scan left lines

	readings  [3]reading
	line      *reading // restarts at LF
	cr        *reading // and at CR
	stream    *reading // continues over lines
	forked    bool     // pending may have messages that two of them reported
	lineFrom  int64    // where the line under way starts
	broken    bool     // line could not read it
	early     []int64  // offsets of its messages that frames before its end have
	hashing   hashing
	rereader  *Requests
	rereads   bool    // this is a rereader
	lineFlags Anomaly // of the frame, beyond those of its messages

	pending    []told      // reported with the next frame that reaches its end
	candidates []candidate // of pending
	scratch    []byte

	// The results of the last Scan.
	frames        []Frame
	messages      []Message
	outCandidates []Candidate
	spans         [][2]int // of messages, for each frame
}

// NewRequests returns a Requests at the start of a stream.
func NewRequests(c Config) *Requests {
	q := &Requests{hash: c.Hash, seed: maphash.MakeSeed(), limit: Limit, chunks: maxChunks}
	q.window.hashing = &q.hashing
	for i := range q.readings {
		p := &q.readings[i]
		p.q, p.v, p.w, p.maxDepth = q, p, &q.window, MaxDepth
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

// move moves the window's bytes from an offset on to the start of buf.
func (w *window) move(buf []byte, from int64) {
	w.hashing.wait()
	w.buf = append(buf, w.buf[from-w.off:]...)
	w.off = from
}

func (w *window) end() int64 { return w.off + int64(len(w.buf)) }

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
	q.frames, q.messages, q.spans = q.frames[:0], q.messages[:0], q.spans[:0]
	q.outCandidates = q.outCandidates[:0]
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
		q.merge()
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
		q.messages = append(q.messages, Message{})
		q.message(&q.messages[len(q.messages)-1], t)
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

// merge leaves one of each message that two readings reported.
func (q *Requests) merge() {
	slices.SortStableFunc(q.pending, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.off, b.off))
	})
	n := 0
	for _, t := range q.pending {
		if n > 0 && q.pending[n-1].off == t.off && q.pending[n-1].end == t.end && q.pending[n-1].state == t.state {
			q.pending[n-1].anomalies |= t.anomalies
			continue
		}
		q.pending[n] = t
		n++
	}
	q.pending = q.pending[:n]
	q.forked = q.cr != q.line || q.stream != q.line
}

// message makes m of t.
func (q *Requests) message(m *Message, t *told) {
	if t.whole != nil {
		*m = *t.whole
		m.Anomalies = t.anomalies
		return
	}
	m.State, m.Off, m.End, m.Anomalies, m.Sum, m.Open = t.state, t.off, t.end, t.anomalies, t.sum, t.open
	if t.sum != nil {
		return
	}
	m.Raw = q.window.slice(t.off, t.end)
	m.ID, m.VariantID = q.bytes(t.id), q.bytes(t.variantID)
	m.Method, m.Params = q.bytes(t.method), q.bytes(t.params)
	m.Name, m.URI = q.bytes(t.name), q.bytes(t.uri)
	m.Arguments, m.Meta = q.bytes(t.arguments), q.bytes(t.meta)
	m.ArgumentsBytes = int64(t.arguments.n)
	m.HasResult, m.HasError = t.hasResult, t.hasError
	if t.candidates[0] == t.candidates[1] {
		return
	}
	from := len(q.outCandidates)
	for _, c := range q.candidates[t.candidates[0]:t.candidates[1]] {
		q.outCandidates = append(q.outCandidates, Candidate{
			Method: q.bytes(c.method), Name: q.bytes(c.name), Differs: c.differs, Arguments: q.bytes(c.arguments)})
	}
	m.Candidates = q.outCandidates[from:len(q.outCandidates):len(q.outCandidates)]
}

func (q *Requests) bytes(v value) []byte {
	if v.n == 0 {
		return nil
	}
	return q.window.slice(v.from, v.from+int64(v.n))
}

func (q *Requests) finish() []Frame {
	for i, s := range q.spans {
		q.frames[i].Messages = q.messages[s[0]:s[1]:s[1]]
	}
	return q.frames
}
