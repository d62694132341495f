package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// A Walk reads the calls of a spool in the order of their intents, which is that
// of the gate's decisions. Memory does not grow with the records.
type Walk struct {
	Dir      string
	Sessions []spool.Entry
	Merge    bool // calls of all sessions in one order, else session by session
	Named    bool // calls made before the server said its name have it too
	Progress *terminal.Progress

	// Begin is called for each session, with the time before which its calls are
	// not known: retention has removed them, or they are in a gap. It may be
	// called again for a later time.
	Begin func(id string, before time.Time)

	// Call is called for each call, with the client, server, host and user of
	// its session. What it returns is given to End with the record of the call,
	// or with nil if it has none.
	Call func(id string, rec *audit.Record) any
	End  func(call any, rec *audit.Record)

	Done    func(id string)          // the session is read; nil: not needed
	Late    func()                   // too many sessions overlap: calls from now on may not be in order
	Tool    func(rec *audit.Record)  // a tool that a listing had; nil: not needed
	Problem func(id string, e error) // what could not be read
}

// Bounds of one session's state: more than a proxy leaves.
const (
	maxOpen    = 1 << 17  // calls without a record so far
	maxMissing = 1024     // ranges of calls whose intents were not there
	maxSources = 128      // sessions at a time, each with 1 MiB; others wait, and are then late
	maxNaming  = 16 << 20 // bytes before a server says its name
)

// A source is a session that is being read.
type source struct {
	id      string
	r       *spool.Reader
	base    audit.Record // of the last context
	server  audit.Peer   // for calls without one
	clock   int64        // of what was read, microseconds since 1970
	call    *audit.Record
	record  bool // call is a record, else an intent
	open    map[uint64]any
	high    uint64      // call_no of the last intent
	missing [][2]uint64 // ranges of call_no up to high without an intent
	started bool
	pruned  bool // retention has removed the beginning
	damage  int64
	unread  int64 // bytes that Progress does not have yet
}

// Run reads all sessions.
func (w *Walk) Run(ctx context.Context) error {
	entries := slices.Clone(w.Sessions)
	sort.SliceStable(entries, func(i, j int) bool { return startOf(entries[i].ID) < startOf(entries[j].ID) }) // a third of the code of slices.SortStableFunc
	var open []*source
	defer func() {
		for _, s := range open {
			s.r.Close()
		}
	}()
	most := 1
	if w.Merge {
		most = maxSources
	}
	for n := 0; ; n++ {
		// A session that starts after the next call cannot have an earlier one.
		for len(entries) > 0 && (len(open) == 0 || len(open) < most && startOf(entries[0].ID) <= open[0].clock) {
			if s := w.openSource(entries[0]); s != nil {
				open = w.next(s, open)
			}
			entries = entries[1:]
		}
		if len(open) == 0 {
			return nil
		}
		if w.Merge && len(open) == most && len(entries) > 0 && startOf(entries[0].ID) <= open[0].clock {
			w.Late()
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		s := open[0]
		w.take(s)
		open = w.next(s, open[1:])
	}
}

// startOf is when a session can first have recorded a call: its id is a UUIDv7.
func startOf(session string) int64 { return max(0, audit.TimeOfID(session).UnixMicro()) }

func (w *Walk) openSource(e spool.Entry) *source {
	err := e.Err
	if err == nil {
		var r *spool.Reader
		if r, err = spool.OpenReader(spool.ReaderConfig{Dir: w.Dir, Session: e.ID}); err == nil {
			s := &source{id: e.ID, r: r, open: map[uint64]any{}, pruned: len(e.Segments) > 0 && e.Segments[0] > 1}
			if w.Named {
				s.server = w.serverOf(e.ID)
			}
			s.base.SessionID, s.base.Server = e.ID, s.server
			return s
		}
	}
	w.Problem(e.ID, err)
	return nil
}

// serverOf returns what the server of a session says of itself. Calls can come
// before that, and have no name in their intents.
func (w *Walk) serverOf(session string) (server audit.Peer) {
	r, err := spool.OpenReader(spool.ReaderConfig{Dir: w.Dir, Session: session})
	if err != nil {
		return server
	}
	defer r.Close()
	for read := int64(0); server.Name == "" && read < maxNaming; {
		item, err := r.Next()
		if err != nil {
			return server // the walk meets it too
		}
		read += item.Length
		if item.Damage != spool.Intact {
			continue
		}
		if _, rec, err := audit.ParseLine(item.Line); err == nil {
			server = rec.Server
		}
	}
	return server
}

// next reads up to the next call or record of one, and puts s where it belongs
// among the open sources. At the end of the session it closes s.
func (w *Walk) next(s *source, open []*source) []*source {
	for s.call = nil; s.call == nil; {
		item, err := s.r.Next()
		if err != nil {
			w.close(s, err)
			return open
		}
		if s.unread += item.Length; s.unread > 1<<20 {
			w.Progress.Add(s.unread)
			s.unread = 0
		}
		w.line(s, item)
	}
	i, _ := slices.BinarySearchFunc(open, s, func(a, b *source) int {
		return cmp.Or(cmp.Compare(a.clock, b.clock), cmp.Compare(a.id, b.id))
	})
	return slices.Insert(open, i, s)
}

func (w *Walk) close(s *source, err error) {
	w.Progress.Add(s.unread)
	s.r.Close()
	if err != io.EOF {
		w.Problem(s.id, err)
	}
	// A torn end is no problem: a call is forwarded only after its intent is
	// whole.
	if s.damage > 0 {
		w.Problem(s.id, fmt.Errorf("%s damaged or missing: run auditproxy verify", terminal.Count(int(s.damage), "line")))
	}
	w.flush(s)
	if w.Done != nil {
		w.Done(s.id)
	}
}

// flush ends the calls that have no record.
func (w *Walk) flush(s *source) {
	for no, call := range s.open {
		w.End(call, nil)
		delete(s.open, no)
	}
}

// line reads one line. It sets s.call if that is for take.
func (w *Walk) line(s *source, item spool.Item) {
	if item.Damage != spool.Intact {
		s.damage++
		return
	}
	kind, rec, err := audit.ParseLine(item.Line)
	if err != nil {
		s.damage++
		return
	}
	switch kind {
	case audit.LineContext:
		rec.SessionID, rec.Server = s.id, cmp.Or(rec.Server, s.server)
		s.base = rec
	case audit.LineTool:
		if w.Tool != nil {
			rec.Server, rec.ServerCommand = s.base.Server, s.base.ServerCommand
			w.Tool(&rec)
		}
	case audit.LineIntent:
		rec.Kind, rec.SessionID = audit.KindCall, s.id
		rec.Client, rec.Server, rec.ServerCommand = s.base.Client, s.base.Server, s.base.ServerCommand
		rec.Host, rec.User, rec.Tenant = s.base.Host, s.base.User, s.base.Tenant
		s.clock = max(s.clock, rec.TS.UnixMicro())
		s.call, s.record = &rec, false
	case audit.LineRecord:
		switch rec.Kind {
		case audit.KindCall:
			rec.SessionID = s.id // as the directory has it
			rec.Server = cmp.Or(rec.Server, s.server)
			s.clock = max(s.clock, rec.TS.Add(max(rec.Duration, 0)).UnixMicro())
			s.call, s.record = &rec, true
		case audit.KindGap:
			if rec.Count > rec.Denied { // calls were made without a record
				w.begin(s, rec.To)
			}
		}
	}
}

func (w *Walk) begin(s *source, before time.Time) {
	s.started = true
	w.Begin(s.id, before)
}

// take gives the call at hand to its function.
func (w *Walk) take(s *source) {
	rec, no := s.call, s.call.CallNo
	if !s.started {
		before := time.Time{}
		if s.pruned {
			before = rec.TS
		}
		w.begin(s, before)
	}
	fresh := no > s.high
	if fresh {
		if no > s.high+1 {
			s.missing = append(s.missing, [2]uint64{s.high + 1, no - 1})
			if len(s.missing) > maxMissing {
				s.missing = s.missing[1:]
			}
		}
		s.high = no
	}
	call, open := s.open[no]
	switch {
	case s.record && open:
		delete(s.open, no)
	case !fresh && !s.found(no): // twice in the spool
		return
	default:
		call = w.Call(s.id, rec)
	}
	if s.record {
		w.End(call, rec)
		return
	}
	if len(s.open) >= maxOpen {
		w.flush(s)
	}
	s.open[no] = call
}

// found removes a call_no from those without an intent so far, and reports
// whether it was one.
func (s *source) found(no uint64) bool {
	i := slices.IndexFunc(s.missing, func(r [2]uint64) bool { return r[0] <= no && no <= r[1] })
	if i < 0 {
		return false
	}
	r := s.missing[i]
	s.missing = slices.Delete(s.missing, i, i+1)
	if no > r[0] {
		s.missing = append(s.missing, [2]uint64{r[0], no - 1})
	}
	if no < r[1] {
		s.missing = append(s.missing, [2]uint64{no + 1, r[1]})
	}
	return true
}

// A Selection selects the calls of a report.
type Selection struct {
	Session      string // how the id of a session starts
	Since, Until time.Time
}

func (s Selection) has(id string, at time.Time) bool {
	return strings.HasPrefix(id, s.Session) && (s.Since.IsZero() || !at.Before(s.Since)) && (s.Until.IsZero() || !at.After(s.Until))
}

// clockSlack is how far the clock may have been set back within a session.
const clockSlack = 10 * time.Minute

// walkOver returns a Walk over the sessions that can have calls of a selection.
// The caller finishes its Progress.
func walkOver(dir string, entries []spool.Entry, sel Selection, stderr io.Writer) Walk {
	var total int64
	w := Walk{Dir: dir}
	for _, e := range entries {
		if sel.reaches(e) {
			w.Sessions = append(w.Sessions, e)
			total += e.Bytes
		}
	}
	w.Progress = terminal.StartReading(stderr, total)
	return w
}

// reaches reports whether a session can have calls of the selection. One whose
// times cannot be read may.
func (sel Selection) reaches(e spool.Entry) bool {
	switch {
	case !strings.HasPrefix(e.ID, sel.Session):
		return false
	case e.Err != nil:
		return true
	case !sel.Since.IsZero() && e.State != spool.Live && e.Modified.Add(clockSlack).Before(sel.Since):
		return false
	}
	return sel.Until.IsZero() || startOf(e.ID) <= sel.Until.Add(clockSlack).UnixMicro()
}

// Spool replays the calls of a spool's sessions.
func (r *Replay) Spool(ctx context.Context, dir string, entries []spool.Entry, sel Selection, stderr io.Writer) error {
	p := r.cfg.Policy
	longest := max(p.Longest("session"), p.Longest("user"))
	read := sel
	if !read.Since.IsZero() {
		read.Since = read.Since.Add(-longest) // limits count what was before
	}
	shared := p.Longest("user") > 0
	if shared {
		read.Session = "" // limits count what other sessions did
	}
	w := walkOver(dir, entries, read, stderr)
	w.Merge = shared
	defer w.Progress.Finish()
	sessions := map[string]*Session{} // those that are being read
	counted := map[string]bool{}
	w.Begin = func(id string, before time.Time) {
		s := sessions[id]
		if s == nil {
			s = new(Session)
			sessions[id] = s
		}
		r.Forget(s, before)
	}
	w.Late = r.lose
	w.Call = func(id string, rec *audit.Record) any {
		counts := sel.has(id, rec.TS)
		if !counts && longest == 0 {
			return nil
		}
		if counts {
			counted[id] = true
		}
		return r.Call(sessions[id], rec, counts)
	}
	w.End = func(call any, rec *audit.Record) {
		if c, ok := call.(*Call); ok {
			r.End(c, rec)
		}
	}
	w.Done = func(id string) {
		delete(sessions, id)
		if counted[id] {
			r.report.Sessions++
			delete(counted, id)
		}
	}
	w.Problem = func(id string, err error) {
		if strings.HasPrefix(id, sel.Session) || shared {
			r.Problem(fmt.Sprintf("session %s: %v", id, err))
		}
	}
	return w.Run(ctx)
}

// lose marks the order of calls as unknown from now on: what limits by user
// count is then not known.
func (r *Replay) lose() {
	never := time.Unix(1<<40, 0)
	if r.known.Equal(never) {
		return
	}
	r.known = never
	for _, h := range r.users {
		h.From = never
	}
	r.Problem(fmt.Sprintf("more than %d sessions overlap: limits by user are undecidable from there on", maxSources))
}
