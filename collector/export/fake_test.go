package export_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/export"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/schemas/audit"
)

var (
	errStore = errors.New("the store failed")
	errAway  = errors.New("connection refused")
)

// A fakeStore is the part of ClickHouse that exports need.
type fakeStore struct {
	mu      sync.Mutex // guards all below
	rows    []receiver.Record
	hold    time.Time // an open mark; zero: none
	marks   map[string]export.Mark
	late    []export.Late
	sent    map[string]time.Time // how far, by receiver and late id
	refused map[string]export.Refused
	broken  map[uint64]bool // numbers of rows that cannot be read
	reads   int
	fails   func(what string) error // before
	lost    func(what string) error // after
}

func newFakeStore() *fakeStore {
	return &fakeStore{marks: map[string]export.Mark{}, sent: map[string]time.Time{}, refused: map[string]export.Refused{}, broken: map[uint64]bool{},
		fails: func(string) error { return nil }, lost: func(string) error { return nil }}
}

// try fails as the test wants before or after do.
func (s *fakeStore) try(what string, do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails(what); err != nil {
		return err
	}
	do()
	return s.lost(what)
}

// arrive stores records of a session now.
func (s *fakeStore) arrive(session string, numbers ...uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arriveAt(time.Now(), session, numbers...)
}

func (s *fakeStore) arriveAt(at time.Time, session string, numbers ...uint64) {
	for _, n := range numbers {
		r := receiver.Record{Arrived: at.Truncate(time.Millisecond)}
		r.Record = audit.Record{SessionID: session, Seq: n, RecordID: fmt.Sprint(session, " ", n), Tool: "x", Kind: audit.KindCall}
		s.rows = append(s.rows, r)
	}
	slices.SortStableFunc(s.rows, func(a, b receiver.Record) int { return compare(source.After(&a), source.After(&b)) })
}

func compare(a, b source.Position) int {
	return cmp.Or(a.Arrived.Compare(b.Arrived), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
}

func (s *fakeStore) Settled(_ context.Context, now time.Time) (t time.Time, err error) {
	err = s.try("settled", func() {
		t = now.Truncate(time.Millisecond).Add(-time.Millisecond)
		if !s.hold.IsZero() {
			t = s.hold
		}
	})
	return t, err
}

func (s *fakeStore) News(_ context.Context, after, upto time.Time) (n export.News, err error) {
	err = s.try("news", func() {
		for _, r := range s.rows {
			n.Records = n.Records || r.Arrived.After(after) && !r.Arrived.After(upto)
		}
		n.Late = uint64(len(s.late))
		for _, r := range s.refused {
			if !r.AskedAt.IsZero() {
				n.Asked += uint64(r.AskedAt.UnixMilli())
			}
		}
	})
	return n, err
}

func (s *fakeStore) ReadSome(_ context.Context, after source.Position, upto time.Time, limit int, do func([]receiver.Record) error, unreadable func(source.Position, error) error) (source.Position, bool, error) {
	var list []receiver.Record
	err := s.try("read", func() {
		s.reads++
		for _, r := range s.rows {
			if compare(source.After(&r), after) > 0 && !r.Arrived.After(upto) && len(list) < limit {
				list = append(list, r)
			}
		}
	})
	if err != nil || len(list) == 0 {
		return source.Upto(upto), false, err
	}
	more := len(list) == limit
	for len(list) > 0 {
		if s.broken[list[0].Record.Seq] {
			if err := unreadable(source.After(&list[0]), errors.New("damaged")); err != nil {
				return after, true, err
			}
			list = list[1:]
			continue
		}
		n := 0
		for n < len(list) && n < source.Page && !s.broken[list[n].Record.Seq] {
			n++
		}
		after = source.After(&list[n-1])
		if err := do(slices.Clone(list[:n])); err != nil {
			return after, true, err
		}
		list = list[n:]
	}
	if more {
		return after, true, nil
	}
	return source.Upto(upto), false, nil
}

func (s *fakeStore) Count(_ context.Context, after source.Position, upto time.Time) (n uint64, first time.Time, err error) {
	err = s.try("count", func() {
		for _, r := range s.rows {
			if compare(source.After(&r), after) > 0 && !r.Arrived.After(upto) {
				n++
			}
		}
	})
	return n, first, err
}

func (s *fakeStore) Marks(context.Context) (list []export.Mark, err error) {
	err = s.try("marks", func() {
		for _, m := range s.marks {
			list = append(list, m)
		}
	})
	return list, err
}

func (s *fakeStore) SetMarks(_ context.Context, marks []export.Mark) error {
	return s.try("set marks", func() {
		for _, m := range marks {
			if !m.At.Before(s.marks[m.Receiver].At) {
				s.marks[m.Receiver] = m
			}
		}
	})
}

func (s *fakeStore) Late(_ context.Context, to string) (list []export.Late, err error) {
	err = s.try("late", func() {
		for _, l := range s.late {
			if l.Sent = s.sent[to+" "+l.ID]; l.Sent.Before(l.Upto.Truncate(time.Millisecond)) {
				list = append(list, l)
			}
		}
	})
	return list, err
}

func (s *fakeStore) LateSent(_ context.Context, to string, list []export.Late, _ time.Time) error {
	return s.try("late sent", func() {
		for _, l := range list {
			s.sent[to+" "+l.ID] = l.Sent
		}
	})
}

func key(r export.Refused) string { return fmt.Sprint(r.Receiver, " ", r.SessionID, " ", r.Seq) }

func (s *fakeStore) SetRefused(_ context.Context, list []export.Refused) error {
	return s.try("refused", func() {
		for _, r := range list {
			s.refused[key(r)] = r
		}
	})
}

func (s *fakeStore) Asked(_ context.Context, to string) (list []export.Refused, err error) {
	err = s.try("asked", func() {
		for _, r := range s.refused {
			if r.Receiver == to && !r.AskedAt.IsZero() {
				list = append(list, r)
			}
		}
	})
	return list, err
}

func (s *fakeStore) Find(_ context.Context, refused export.Refused) (found *receiver.Record, err error) {
	err = s.try("find", func() {
		if s.broken[refused.Seq] {
			return
		}
		for _, r := range s.rows {
			if r.Record.SessionID == refused.SessionID && r.Record.Seq == refused.Seq {
				found = &r
			}
		}
	})
	if err == nil && s.broken[refused.Seq] {
		err = fmt.Errorf("%w: its columns differ", source.ErrDamaged)
	}
	return found, err
}

// listRefused returns the reasons of refused records that were not sent.
func (s *fakeStore) listRefused() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[string]string{}
	for _, r := range s.refused {
		if r.SentAt.IsZero() {
			list[key(r)] = r.Reason
		}
	}
	return list
}

func (s *fakeStore) mark(name string) export.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[name]
}

// A fakeReceiver takes records.
type fakeReceiver struct {
	mu    sync.Mutex // guards all below
	got   []string   // record ids
	sends int
	// answer returns what becomes of an attempt, and whether its records are taken.
	answer func(ctx context.Context, records []receiver.Record) (taken bool, err error)
}

func (r *fakeReceiver) attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sends
}

func (r *fakeReceiver) Send(ctx context.Context, records []receiver.Record) error {
	r.mu.Lock()
	answer := r.answer
	r.sends++
	r.mu.Unlock()
	taken, err := true, error(nil)
	if answer != nil {
		taken, err = answer(ctx, records)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if taken {
		for i := range records {
			r.got = append(r.got, records[i].Record.RecordID)
		}
	}
	return err
}

func (r *fakeReceiver) Close() error { return nil }

func (r *fakeReceiver) answers(answer func(ctx context.Context, records []receiver.Record) (bool, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// take returns what came since the last call.
func (r *fakeReceiver) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// ids returns record ids.
func ids(session string, numbers ...uint64) (list []string) {
	for _, n := range numbers {
		list = append(list, fmt.Sprint(session, " ", n))
	}
	return list
}

// numbers returns the numbers from one up to, not including, another.
func numbers(from, to uint64) (list []uint64) {
	for ; from < to; from++ {
		list = append(list, from)
	}
	return list
}

// begin starts an engine, until the function that it returns is called.
func begin(t *testing.T, s *fakeStore, run string, to map[string]*fakeReceiver, change ...func(*export.Config)) (stop func()) {
	t.Helper()
	c := export.Config{Store: s, Run: run}
	for name, r := range to {
		c.Receivers = append(c.Receivers, export.Receiver{Name: name, To: r})
	}
	slices.SortFunc(c.Receivers, func(a, b export.Receiver) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range change {
		f(&c)
	}
	return beginReal(t, c)
}

// beginReal starts an engine, until the function that it returns is called.
func beginReal(t *testing.T, c export.Config) (stop func()) {
	t.Helper()
	e, err := export.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// wait lets the bubble's time pass.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal("the test is over")
	case <-time.After(d):
	}
}
