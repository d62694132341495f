package view

import (
	"bytes"
	"cmp"
	"io"
	"sort"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// A finding is one item of the log: a record, damage, or the intent of a call
// that has no record yet.
type finding struct {
	key     int64      // when it was written, see scanner.clock
	item    spool.Item // Line is nil for damage
	outcome string     // of an intent; "" is the record's own
}

// A scanner reads one session and tracks when its lines were written. A record
// is written when its call ends, at ts and duration_ms: that is the order of
// the log, also while it is being followed. Within a session lines stay in file
// order, even if their clock went back.
type scanner struct {
	r       *spool.Reader
	clock   int64                // the latest end of a record so far, microseconds since 1970
	calls   map[recordKey][]byte // intents without a record
	spare   [][]byte             // of calls
	ended   bool                 // the last record was a session_end
	read    func(int64)          // called with how many bytes were read
	unread  int64                // bytes that read was not called with yet
	endedAt spool.Position       // the end of the last item
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

// tell reports how much was read, but not for every line.
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
	sort.SliceStable(list, func(i, j int) bool { // a third of the code of slices.SortStableFunc
		a, b := list[i].item.Line, list[j].item.Line
		return cmp.Or(bytes.Compare(lineStamp(a), lineStamp(b)), bytes.Compare(a, b)) < 0
	})
	return list
}

// lineStamp is the text of a line's ts, by which lines can be sorted.
func lineStamp(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`,"ts":"`))
	return rest[:min(len(rest), len("2006-01-02T15:04:05.000000Z"))]
}

// drain reads the available lines and passes each finding to use.
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
