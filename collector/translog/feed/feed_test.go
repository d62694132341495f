package feed_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/translog/feed"
	"auditproxy/collector/translog/tiles"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"golang.org/x/mod/sumdb/note"
)

// stored are records with evidence.
type stored struct {
	rows []row
	err  error
	read int

	asked atomic.Int64 // for a window
}

type row struct {
	raw string
	at  time.Time
}

func (s *stored) Evidence(_ context.Context, from, to time.Time, do func([]byte) error) error {
	slices.SortStableFunc(s.rows, func(a, b row) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, r := range s.rows {
		if !r.at.Before(from) && r.at.Before(to) {
			s.read++
			if err := do([]byte(r.raw)); err != nil {
				return err
			}
		}
	}
	s.asked.Add(1)
	return s.err
}

func (s *stored) SessionStart(_ context.Context, session string) (string, error) {
	for _, r := range s.rows {
		if strings.Contains(r.raw, `"session_start"`) && strings.Contains(r.raw, session) {
			return r.raw, nil
		}
	}
	return "", nil
}

func (s *stored) FirstEvidence(_ context.Context, from time.Time) (first time.Time, err error) {
	for _, r := range s.rows {
		if !r.at.Before(from) && (first.IsZero() || r.at.Before(first)) {
			first = r.at
		}
	}
	return first, s.err
}

// log is a log in memory. It fails in both ways: without having added, and after.
type log struct {
	mu      sync.Mutex // guards all below while a Feed runs
	entries []string
	fail    string // "before", "after"
}

func (l *log) Add(_ context.Context, entries [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail == "before" || slices.ContainsFunc(entries, func(e []byte) bool { return len(e) > tiles.MaxEntry }) {
		return errors.New("broken")
	}
	for _, e := range entries {
		if !slices.Contains(l.entries, string(e)) {
			l.entries = append(l.entries, string(e))
		}
	}
	if l.fail == "after" {
		return errors.New("broken")
	}
	return nil
}

func newKey(t *testing.T, name string) (note.Signer, string) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

// A writer makes the records of one session.
type writer struct {
	t         *testing.T
	id        string
	host, key note.Signer
	hostKey   string
	start     string
}

func newWriter(t *testing.T, id string) *writer {
	w := &writer{t: t, id: id}
	w.host, w.hostKey = newKey(t, "auditproxy/h")
	w.begin(w.hostKey)
	return w
}

// begin makes a session_start, with a new key.
func (w *writer) begin(hostKey string) {
	w.t.Helper()
	var key string
	w.key, key = newKey(w.t, evidence.Origin("h", w.id))
	e := evidence.Session{Origin: evidence.Origin("h", w.id), Key: key, HostKey: hostKey, HostSeq: 1}
	if err := e.Sign(w.host); err != nil {
		w.t.Fatal(err)
	}
	w.start = w.line(audit.Record{Kind: audit.KindSessionStart, Evidence: e.JSON()})
}

// signed is a signed checkpoint in no record.
func (w *writer) signed(size int64) string {
	signed, err := evidence.Checkpoint{Origin: evidence.Origin("h", w.id), Size: size}.Sign(w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(signed)
}

func (w *writer) line(r audit.Record) string {
	r.SessionID, r.RecordID, r.Duration = w.id, fmt.Sprint("r", r.Seq), -1
	return strings.TrimSuffix(string(audit.AppendRecord(nil, &r)), "\n")
}

func (w *writer) checkpoint(size int64, root string, by note.Signer, recovered bool) string {
	r := audit.Record{Kind: audit.KindCheckpoint, Seq: uint64(size), Recovered: recovered, SessionID: w.id, RecordID: fmt.Sprint("r", size), Duration: -1}
	if err := (evidence.Checkpoint{Origin: evidence.Origin("h", w.id), Size: size, Root: evidence.Leaf([]byte(root))}).SignRecord(&r, by); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSuffix(string(audit.AppendRecord(nil, &r)), "\n")
}

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func newFeed(t *testing.T, s *stored, l *log, found *[]string) *feed.Feed {
	t.Helper()
	f, err := feed.New(feed.Config{Source: s, Log: l, Mark: filepath.Join(t.TempDir(), "mark"), Found: func(_ context.Context, c feed.Contradiction) error {
		*found = append(*found, fmt.Sprintf("%s %s %d", c.SessionID, c.What, c.Seq))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestContradictions takes sessions to a log. All of them are logged; what
// contradicts is found, and nothing else.
func TestContradictions(t *testing.T) {
	a := newWriter(t, "a")
	other := newWriter(t, "a")
	again := &writer{t: t, id: "a", host: a.host}
	again.begin(a.hostKey)
	// A checkpoint has at most 64 KiB, and an entry one byte less.
	signed := a.signed(1)
	signed += strings.Repeat("x", tiles.MaxEntry+1-len(signed))
	long := a.line(audit.Record{Kind: audit.KindCheckpoint, Seq: 1, Evidence: audit.JSON(`{"checkpoint":` + strconv.Quote(signed) + `}`)})
	longStart := (&evidence.Session{Origin: evidence.Origin("h", "a"), HostKey: strings.Repeat("x", tiles.MaxEntry), HostSeq: 1}).JSON()
	good := []string{a.start, a.checkpoint(1, "1", a.key, false), a.checkpoint(5, "5", a.key, false), a.checkpoint(9, "9", a.host, true)}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"whole", good, nil},
		{"a record that came twice", append(slices.Clone(good), good...), nil},
		{"without the start", good[1:], nil},
		{"two versions", append(slices.Clone(good), a.checkpoint(5, "another", a.key, false)), []string{"a forked 5"}},
		{"one that is smaller", []string{a.start, a.checkpoint(5, "5", a.key, false), a.checkpoint(3, "3", a.key, false)}, []string{"a rolled_back 3"}},
		{"a foreign key", []string{a.start, a.checkpoint(1, "1", other.key, false)}, []string{"a bad_signature 1"}},
		{"the host's key too early", []string{a.start, a.checkpoint(1, "1", a.host, false)}, []string{"a bad_signature 1"}},
		{"the session's key too late", []string{a.start, a.checkpoint(1, "1", a.key, true)}, []string{"a bad_signature 1"}},
		{"a start that the host did not sign", []string{strings.Replace(a.start, `"host_seq":1`, `"host_seq":2`, 1)}, nil}, // its checksum is wrong: no record
		{"two starts by the host", []string{a.start, a.checkpoint(1, "1", a.key, false), again.start, a.checkpoint(5, "5", a.key, false), again.checkpoint(7, "7", again.key, false)}, []string{"a bad_signature 7", "a forked 0"}},
		{"the start after a checkpoint, and another one", []string{a.checkpoint(1, "1", a.key, false), a.start, again.start}, []string{"a forked 0"}},
		{"a checkpoint that is too long, as none", []string{a.start, long, a.checkpoint(5, "5", a.key, false)}, []string{"a bad_signature 1"}},
		{"a start that is too long, as none", []string{a.line(audit.Record{Kind: audit.KindSessionStart, Evidence: longStart}), a.start}, []string{"a bad_signature 0"}},
		{"a checkpoint that is none", []string{a.start, a.line(audit.Record{Kind: audit.KindCheckpoint, Seq: 1, Evidence: `{"checkpoint":"x"}`})}, []string{"a bad_signature 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l := &stored{}, &log{}
			for i, line := range tt.lines {
				s.rows = append(s.rows, row{line, noon.Add(time.Duration(i) * time.Second)})
			}
			var found []string
			f := newFeed(t, s, l, &found)
			for i := range 3 { // what is read again is not found again
				if err := f.Pass(t.Context(), noon.Add(time.Minute+time.Duration(i)*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(found)
			if got := slices.Compact(found); !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			distinct := map[string]bool{}
			for _, line := range tt.lines {
				distinct[line] = true
			}
			for _, e := range l.entries {
				if _, err := evidence.ReadEntry([]byte(e)); err != nil {
					t.Errorf("entry %q: %v", e, err)
				}
			}
			if unreadable := strings.Contains(tt.name, "none") || strings.Contains(tt.name, "did not sign"); !unreadable && len(l.entries) != len(distinct) {
				t.Errorf("the log has %d entries, want %d", len(l.entries), len(distinct))
			}
		})
	}
}

// TestPasses fails at each step; nothing is missed, and passes read what is new.
func TestPasses(t *testing.T) {
	w := newWriter(t, "a")
	s, l := &stored{}, &log{}
	var found []string
	f := newFeed(t, s, l, &found)
	now := noon
	pass := func(want string) {
		t.Helper()
		err := f.Pass(t.Context(), now)
		if got := fmt.Sprint(len(l.entries), err != nil); got != want {
			t.Errorf("at %v the log has entries, and an error: %s, want %s (%v)", now.Format(time.TimeOnly), got, want, err)
		}
	}
	arrive := func(raw string, at time.Time) { s.rows = append(s.rows, row{raw, at}) }
	pass("0 false")
	arrive(w.start, now)
	now = now.Add(time.Second)
	l.fail = "before"
	pass("0 true")
	l.fail = "after"
	pass("1 true")
	l.fail = ""
	pass("1 false")
	s.err = errors.New("broken")
	arrive(w.checkpoint(1, "1", w.key, false), now)
	now = now.Add(time.Second)
	pass("1 true")
	s.err = nil
	pass("2 false")
	now = now.Add(3 * time.Hour)
	pass("2 false")
	// An insert that became visible late: some passes look back so far.
	arrive(w.checkpoint(2, "2", w.key, false), now.Add(-2*time.Hour))
	now = now.Add(time.Minute)
	pass("2 false")
	now = now.Add(time.Hour)
	pass("3 false")
	before := s.read
	for range 10 {
		now = now.Add(5 * time.Second)
		pass("3 false")
	}
	if s.read != before {
		t.Errorf("ten passes without arrivals read %d records", s.read-before)
	}
	if got := f.Status().Upto; !got.Equal(now) {
		t.Errorf("the log is said to have all up to %v, want %v", got, now)
	}
}

// TestMark continues after a restart, and reads all again where the mark is lost.
func TestMark(t *testing.T) {
	w := newWriter(t, "a")
	s, l := &stored{rows: []row{{w.start, noon}}}, &log{}
	mark := filepath.Join(t.TempDir(), "mark")
	run := func(now time.Time) {
		t.Helper()
		f, err := feed.New(feed.Config{Source: s, Log: l, Mark: mark, Found: func(context.Context, feed.Contradiction) error { return nil }})
		if err == nil {
			err = f.Pass(t.Context(), now)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(noon.Add(time.Minute))
	run(noon.Add(72 * time.Hour))
	if run(noon.Add(96 * time.Hour)); s.read != 2 {
		t.Errorf("%d records were read, want 2: at a start it looks back a day", s.read)
	}
	if err := os.WriteFile(mark, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if run(noon.Add(96 * time.Hour)); s.read != 3 || len(l.entries) != 1 {
		t.Errorf("without a mark %d records were read, and the log has %d entries, want 3 and 1", s.read, len(l.entries))
	}
}

// TestRestarted continues, after a restart, with sessions that began days before: their
// checkpoints are compared with the keys of their starts, and another start is found.
func TestRestarted(t *testing.T) {
	a := newWriter(t, "a")
	again := &writer{t: t, id: "a", host: a.host}
	again.begin(a.hostKey)
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"it continues", []string{a.checkpoint(5, "5", a.key, false)}, nil},
		{"a foreign key", []string{a.checkpoint(5, "5", again.key, false)}, []string{"a bad_signature 5"}},
		{"another start", []string{a.checkpoint(5, "5", a.key, false), again.start}, []string{"a forked 0"}},
		{"another start alone", []string{again.start}, []string{"a forked 0"}},
		{"its start again", []string{a.start}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l := &stored{rows: []row{{a.start, noon}}}, &log{}
			var found []string
			mark := filepath.Join(t.TempDir(), "mark")
			for i, now := range []time.Time{noon.Add(time.Second), noon.Add(48 * time.Hour), noon.Add(72 * time.Hour)} {
				f, err := feed.New(feed.Config{Source: s, Log: l, Mark: mark, Found: func(_ context.Context, c feed.Contradiction) error {
					found = append(found, fmt.Sprintf("%s %s %d", c.SessionID, c.What, c.Seq))
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				if i == 2 {
					for n, line := range tt.lines {
						s.rows = append(s.rows, row{line, now.Add(time.Duration(n)*time.Second - time.Minute)})
					}
				}
				if err := f.Pass(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(found, tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

// TestBehind catches up with records that arrived by a clock of 1970, and then by the
// right one, without asking for each hour between them.
func TestBehind(t *testing.T) {
	w := newWriter(t, "a")
	s, l := &stored{rows: []row{{w.start, time.Unix(1000, 0)}, {w.checkpoint(1, "1", w.key, false), noon.Add(-72 * time.Hour)}, {w.checkpoint(2, "2", w.key, false), noon.Add(-time.Minute)}}}, &log{}
	var found []string
	f := newFeed(t, s, l, &found)
	if err := f.Pass(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if len(l.entries) != 3 || s.asked.Load() > 40 {
		t.Errorf("the log has %d entries after %d questions, want 3 after at most 40", len(l.entries), s.asked.Load())
	}
	if got := f.Status().Upto; !got.Equal(noon) {
		t.Errorf("the log is said to have all up to %v, want %v", got, noon)
	}
}

// TestNothingYet has no evidence at first: the log lacks nothing then, and nothing of what
// arrives after.
func TestNothingYet(t *testing.T) {
	w := newWriter(t, "a")
	s, l := &stored{}, &log{}
	var found []string
	f := newFeed(t, s, l, &found)
	for i, at := range []time.Duration{0, time.Minute, 2 * time.Minute} {
		if i == 2 { // seen late
			s.rows = []row{{w.start, noon.Add(-30 * time.Minute)}}
		}
		if err := f.Pass(t.Context(), noon.Add(at)); err != nil {
			t.Fatal(err)
		}
		if got := f.Status().Upto; !got.Equal(noon.Add(at)) {
			t.Errorf("after pass %d the log is said to have all up to %v, want %v", i, got, noon.Add(at))
		}
	}
	if len(l.entries) != 1 {
		t.Errorf("the log has %d entries, want 1", len(l.entries))
	}
}

// TestAllAhead has only records that arrived by a clock that was ahead: the mark is set
// back once, not in each pass.
func TestAllAhead(t *testing.T) {
	w := newWriter(t, "a")
	s, l := &stored{rows: []row{{w.start, noon.Add(time.Hour)}}}, &log{}
	var found []string
	f := newFeed(t, s, l, &found)
	for i, at := range []time.Duration{time.Hour + time.Second, 0, 5 * time.Second} {
		if err := f.Pass(t.Context(), noon.Add(at)); err != nil {
			t.Fatal(err)
		}
		if got := f.Status().Upto; !got.Equal(noon.Add(at)) {
			t.Errorf("after pass %d the log is said to have all up to %v, want %v", i, got, noon.Add(at))
		}
	}
	if len(l.entries) != 1 {
		t.Errorf("the log has %d entries, want 1", len(l.entries))
	}
}

// TestMarkAhead sets the clock back after passes by one that was ahead: what arrives then
// is logged, once, and so is what another collector stored meanwhile.
func TestMarkAhead(t *testing.T) {
	for _, ahead := range []time.Duration{2 * time.Minute, 3 * time.Hour, 25 * time.Hour, 3 * 365 * 24 * time.Hour} {
		w := newWriter(t, "a")
		s, l := &stored{rows: []row{{w.start, noon}}}, &log{}
		var found []string
		f := newFeed(t, s, l, &found)
		pass := func(now time.Time, want int) {
			t.Helper()
			if err := f.Pass(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			if len(l.entries) != want {
				t.Errorf("%v ahead, at %v: the log has %d entries, want %d", ahead, now, len(l.entries), want)
			}
		}
		pass(noon.Add(time.Second), 1)
		pass(noon.Add(ahead), 1)
		s.rows = append(s.rows, row{w.checkpoint(1, "1", w.key, false), noon.Add(2 * time.Second)}) // by another one
		s.rows = append(s.rows, row{w.checkpoint(2, "2", w.key, false), noon.Add(20 * time.Second)})
		pass(noon.Add(30*time.Second), 3)
		before := s.read
		pass(noon.Add(35*time.Second), 3)
		if read := s.read - before; read > 3 {
			t.Errorf("%v ahead: the pass after that read %d records", ahead, read)
		}
		if got := f.Status().Upto; !got.Equal(noon.Add(35 * time.Second)) {
			t.Errorf("%v ahead: the log is said to have all up to %v", ahead, got)
		}
	}
}

// TestRun retries after a failure, and reports it.
func TestRun(t *testing.T) {
	w := newWriter(t, "a")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, l := &stored{rows: []row{{w.start, time.Now()}}}, &log{fail: "before"}
		f, err := feed.New(feed.Config{Source: s, Log: l, Mark: filepath.Join(dir, "mark"), Found: func(context.Context, feed.Contradiction) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		<-time.After(time.Second)
		synctest.Wait()
		first := f.Status()
		if first.Err == nil || first.Failing.IsZero() || !first.Upto.IsZero() {
			t.Errorf("while the log fails the status is %+v", first)
		}
		before := s.asked.Load()
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if st := f.Status(); st.Err == nil || !st.Failing.Equal(first.Failing) {
			t.Errorf("later it fails since %v, want %v: %v", st.Failing, first.Failing, st.Err)
		}
		if n := s.asked.Load() - before; n > 11 {
			t.Errorf("it asked %d times in ten minutes of failures, want once a minute", n)
		}
		l.mu.Lock()
		l.fail = ""
		l.mu.Unlock()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if st := f.Status(); st.Err != nil || !st.Failing.IsZero() || st.Upto.IsZero() || len(l.entries) != 1 {
			t.Errorf("after that it is %+v with %d entries", st, len(l.entries))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
