package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// A finding is one thing that the log can show: a record, damage, or the
// intent of a call that has no record yet.
type finding struct {
	key     int64      // when it was written, see scanner.clock
	item    spool.Item // Line is nil for damage
	outcome string     // of an intent; "" is the record's own
}

// A scanner reads one session and knows when its lines were written. A record
// is written when its call ends, at ts and duration_ms: that is the order of
// the log, also while it is being followed. Within a session lines stay in
// the order in which they stand, whatever their clock said.
type scanner struct {
	r       *spool.Reader
	clock   int64                // the latest end of a record so far, microseconds since 1970
	calls   map[recordKey][]byte // intents without a record
	spare   [][]byte             // of calls
	ended   bool                 // the last record was a session_end
	read    func(int64)          // is told how many bytes were read
	unread  int64                // bytes that read has not been told of
	endedAt spool.Position       // the end of the last item
}

func (v *view) scan(session string, from spool.Position) (*scanner, error) {
	r, err := spool.OpenReader(spool.ReaderConfig{Dir: v.dir, Session: session, From: from})
	if err != nil {
		return nil, err
	}
	return &scanner{r: r, calls: make(map[recordKey][]byte), read: v.progress.Add, endedAt: from}, nil
}

// next returns the next finding. Its line is valid until the call after it.
// It returns io.EOF as spool.Reader does.
func (s *scanner) next() (finding, error) {
	for {
		item, err := s.r.Next()
		if err != nil {
			s.tell(0)
			return finding{}, err
		}
		if item.Damage != spool.Missing {
			s.endedAt = item.End()
			s.tell(item.Length)
		}
		switch {
		case item.Record():
			s.record(item.Line)
		case item.Damage != spool.Intact:
			item.Line = nil
		case bytes.HasPrefix(item.Line, []byte(`{"line":"`+audit.LineIntent+`"`)):
			s.intent(item.Line)
			continue
		default:
			continue
		}
		return finding{key: s.clock, item: item}, nil
	}
}

// tell passes on how much was read, not for every line.
func (s *scanner) tell(n int64) {
	if s.unread += n; n == 0 || s.unread > 1<<20 {
		s.read(s.unread)
		s.unread = 0
	}
}

func (s *scanner) record(line []byte) {
	if ts, ok := lineTime(line); ok {
		s.clock = max(s.clock, ts+lineDuration(line))
	}
	s.ended = bytes.HasPrefix(line, []byte(`{"v":1,"kind":"session_end"`))
	if len(s.calls) > 0 && bytes.HasPrefix(line, []byte(`{"v":1,"kind":"call"`)) {
		key := keyOf(line)
		if intent, ok := s.calls[key]; ok {
			delete(s.calls, key)
			s.spare = append(s.spare, intent)
		}
	}
}

func (s *scanner) intent(line []byte) {
	var space []byte
	if n := len(s.spare); n > 0 {
		space, s.spare = s.spare[n-1][:0], s.spare[:n-1]
	}
	s.calls[keyOf(line)] = append(space, line...)
}

// A recordKey is a record_id, cut after a UUID's length.
type recordKey [36]byte

func keyOf(line []byte) (k recordKey) {
	copy(k[:], spool.RecordID(line))
	return k
}

// rest returns what is left at the end of a session: a torn line, and the
// calls that have no record. In a session that is alive both are in progress.
func (s *scanner) rest(state spool.State) []finding {
	var list []finding
	outcome, key := outcomeLost, s.clock
	if state == spool.Live {
		outcome, key = outcomeRunning, int64(1)<<62 // they end later than all that has ended
	} else if pos, n := s.r.Tail(); n > 0 {
		list = append(list, finding{key: key, item: spool.Item{Pos: pos, Length: n, Damage: spool.TornEnd}})
	}
	if s.ended {
		return list
	}
	for _, line := range s.calls {
		list = append(list, finding{key: key, item: spool.Item{Line: line}, outcome: outcome})
	}
	slices.SortStableFunc(list, func(a, b finding) int {
		if c := bytes.Compare(lineStamp(a.item.Line), lineStamp(b.item.Line)); c != 0 {
			return c
		}
		return bytes.Compare(a.item.Line, b.item.Line)
	})
	return list
}

// lineStamp is the text of a line's ts, by which lines can be sorted.
func lineStamp(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`,"ts":"`))
	return rest[:min(len(rest), len("2006-01-02T15:04:05.000000Z"))]
}

// startOf is when a session can first have written something: its id is a
// UUIDv7, whose first 48 bits are milliseconds since 1970 (RFC 9562, section
// 5.7). Of another id nothing is known.
func startOf(session string) int64 {
	digits := strings.ReplaceAll(session, "-", "")
	if len(digits) != 32 || digits[12] != '7' {
		return 0
	}
	var ms int64
	for _, c := range []byte(digits[:12]) {
		n := strings.IndexByte("0123456789abcdef", c)
		if n < 0 {
			return 0
		}
		ms = ms<<4 | int64(n)
	}
	return ms * 1000
}

// sessions lists the sessions that can hold what is asked for, oldest first.
func (v *view) sessions() ([]spool.Entry, error) {
	entries, err := listSessions(v.dir)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e spool.Entry) bool { return !strings.HasPrefix(e.ID, v.session) })
	if len(entries) == 0 && v.session != "" {
		return nil, noSession(v.session)
	}
	return slices.DeleteFunc(entries, func(e spool.Entry) bool {
		switch {
		case e.Err != nil:
			return false // and said so when it is opened
		case v.filter.since != 0 && e.State != spool.Live && e.Modified.UnixMicro()+clockSlack < v.filter.since:
			return true // a record is never younger than the file it stands in
		default:
			return v.filter.until != 0 && startOf(e.ID) > v.filter.until+clockSlack
		}
	}), nil
}

func noSession(prefix string) error { return fmt.Errorf("no session's id starts with %q", prefix) }

// clockSlack is how far the clock may have been set back within a session, in
// microseconds, before --since, --until and -n overlook one of its records.
const clockSlack = int64(10 * 60 * 1e6)

// render appends the text of f, or nothing if f is not asked for.
func (v *view) render(dst []byte, session string, f finding) []byte {
	line := f.item.Line
	switch {
	case line == nil:
		if f.key != 0 && !v.filter.inTime(f.key) {
			return dst
		}
		return v.damage(dst, session, f.key, damageText(f.item))
	case f.outcome == "" && !v.filter.mayMatch(line), f.outcome != "" && v.json:
		return dst
	case v.json && !v.filter.parses():
		return appendRaw(dst, line, v.terminal)
	}
	_, rec, err := audit.ParseLine(line)
	if err != nil {
		// The checksum holds, so somebody wrote it like this.
		return v.damage(dst, session, f.key, fmt.Sprintf("%v: line at %s", err, place(f.item.Pos)))
	}
	outcome := f.outcome
	if outcome == "" {
		outcome = recordOutcome(&rec)
	} else {
		rec.Kind, rec.SessionID = audit.KindCall, session
	}
	switch {
	case !v.filter.inTime(rec.TS.UnixMicro()), !v.filter.match(&rec, outcome), v.filter.grep != nil && !v.filter.grep.Match(line):
		return dst
	case v.json:
		return appendRaw(dst, line, v.terminal)
	}
	return append(dst, v.renderer.record(&rec, outcome)...)
}

// damage appends the text for what is no record. Among records as JSON it has
// no place, so it goes to standard error.
func (v *view) damage(dst []byte, session string, key int64, text string) []byte {
	if v.json {
		v.warn(session, text)
		return dst
	}
	var ts time.Time
	if key != 0 {
		ts = time.UnixMicro(key)
	}
	return append(dst, v.renderer.damage(ts, session, text)...)
}

// drain reads what there is now and gives each finding to use.
func (s *scanner) drain(use func(finding) error) error {
	for {
		f, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = use(f)
		}
		if err != nil {
			return err
		}
	}
}
