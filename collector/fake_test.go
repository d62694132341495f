package collector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/brokers"
	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"

	"github.com/google/uuid"
)

func TestMain(m *testing.M) {
	brokers.BoundBatches()
	os.Exit(cluster.Run(m))
}

// A fault says how an insert of the fake store fails.
type fault int

const (
	none       fault = iota
	lost             // an error, nothing stored
	ackDropped       // an error, all stored
	hang             // an error after a while, nothing stored
	refused          // a configuration error
	wrongTable       // rows are refused, except those of the tool that takes names
	slow             // stored after a while, unless ctx ends first
	slowWeeks        // no time for rows of more than someWeeks
	small            // no memory for more than smallBatch rows or dead letters
	full             // no memory for any row
)

// someWeeks is of how many weeks a store with little time takes records at once.
const someWeeks = 4

// smallBatch is how many of them a store with little memory takes at once.
const smallBatch = 10

var errStore = errors.New("the store failed")

// goodTool is the tool of rows that a wrong table takes.
const goodTool = "good"

// poisonTool is the tool of rows that the fake store refuses.
const poisonTool = "poison"

// hugeTool is the tool of rows for which alone the fake store lacks memory.
const hugeTool = "huge"

// A letterID identifies a dead letter: two sessions of a spool have the same
// offsets.
type letterID struct {
	ingest.Source
	key string
}

// A fakeStore keeps rows by the identity that ClickHouse collapses them by.
type fakeStore struct {
	mu      sync.Mutex
	rows    map[[16]byte]int // how often each payload came
	ids     map[string]bool  // record ids
	numbers map[string]bool  // session and number of records
	letters map[letterID]ingest.DeadLetter
	gaps    map[ingest.Gap]bool
	filled  map[ingest.Gap]ingest.Gap   // what the last insert of each said
	next    map[brokers.Partition]int64 // by the first place of each record
	nextAll map[brokers.Partition]int64 // by all places
	inserts int                         // of rows, that succeeded
	tries   int                         // of inserts of rows
	takes   string                      // the tool of rows that a wrong table takes
	faults  []fault                     // of the next inserts
	always  fault                       // of all after those
}

func newFakeStore() *fakeStore {
	return &fakeStore{rows: map[[16]byte]int{}, ids: map[string]bool{}, numbers: map[string]bool{}, letters: map[letterID]ingest.DeadLetter{}, gaps: map[ingest.Gap]bool{}, filled: map[ingest.Gap]ingest.Gap{}, next: map[brokers.Partition]int64{}, nextAll: map[brokers.Partition]int64{}}
}

func (s *fakeStore) fault() fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) == 0 {
		return s.always
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

func (s *fakeStore) InsertRows(ctx context.Context, rows []ingest.Row, _ time.Time) error {
	f := s.fault()
	s.mu.Lock()
	s.tries++
	s.mu.Unlock()
	switch f {
	case lost:
		return errStore
	case wrongTable:
		for i := range rows {
			if rows[i].Record.Tool != s.takes {
				return &ingest.Error{Class: ingest.Poison, Err: errStore}
			}
		}
	case refused:
		return &ingest.Error{Class: ingest.Configuration, Err: errStore}
	case full:
		return &ingest.Error{Class: ingest.Oversize, Err: errStore}
	case slowWeeks:
		weeks := map[int64]bool{}
		for i := range rows {
			weeks[rows[i].Record.TS.Unix()/(7*24*60*60)] = true
		}
		if len(weeks) > someWeeks {
			wait.For(ctx, 20*time.Second)
			return fmt.Errorf("inserting: %w", context.DeadlineExceeded)
		}
	case small:
		if len(rows) > smallBatch {
			return &ingest.Error{Class: ingest.Oversize, Err: errStore}
		}
	case slow:
		if err := wait.For(ctx, 5*time.Second); err != nil {
			return err
		}
	case hang:
		wait.For(ctx, 20*time.Second)
		return errStore
	}
	for i := range rows {
		if rows[i].Record.Tool == hugeTool {
			return &ingest.Error{Class: ingest.Oversize, Err: errStore}
		}
		if rows[i].Record.Tool == poisonTool {
			return &ingest.Error{Class: ingest.Poison, Err: errStore}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rows {
		s.rows[rows[i].Hash]++
		s.ids[rows[i].Record.RecordID] = true
		s.numbers[fmt.Sprint(rows[i].Record.SessionID, rows[i].Record.Seq)] = true
		s.reach(rows[i].Source, rows[i].Source.Offset, s.rows[rows[i].Hash] == 1)
	}
	s.inserts++
	if f == ackDropped {
		return errStore
	}
	return nil
}

func (s *fakeStore) InsertDeadLetters(_ context.Context, letters []ingest.DeadLetter) error {
	f := s.fault()
	if f == lost {
		return errStore
	}
	if f == small && len(letters) > smallBatch {
		return &ingest.Error{Class: ingest.Oversize, Err: errStore}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range letters {
		s.letters[letterID{l.Source, l.Key}] = l
	}
	if f == ackDropped {
		return errStore
	}
	return nil
}

func (s *fakeStore) InsertGaps(_ context.Context, gaps []ingest.Gap) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range gaps {
		all := g
		g.Seen, g.TopicID, g.ReadTo = time.Time{}, uuid.UUID{}, 0
		s.gaps[g] = true
		s.filled[g] = all
		s.reach(ingest.Source{Topic: g.Topic, Partition: g.Partition}, g.To, true)
	}
	return nil
}

// reach notes that the store has the offset last of a partition.
func (s *fakeStore) reach(at ingest.Source, last uint64, first bool) {
	id := brokers.Partition{Topic: at.Topic, Number: int(at.Partition)}
	s.nextAll[id] = max(s.nextAll[id], int64(last)+1)
	if first {
		s.next[id] = max(s.next[id], int64(last)+1)
	}
}

// Reached is Config.Reached, for offsets that are set forward.
func (s *fakeStore) Reached(_ context.Context, places []ingest.Source) (next []uint64, err error) {
	if s.fault() == lost {
		return nil, errStore
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range places {
		reached := s.next
		if p.Offset < 1<<48 {
			reached = s.nextAll
		}
		next = append(next, uint64(min(reached[brokers.Partition{Topic: p.Topic, Number: int(p.Partition)}], int64(p.Offset))))
	}
	return next, nil
}

// Unfilled is Config.Unfilled.
func (s *fakeStore) Unfilled(_ context.Context, topics []string) (gaps []ingest.Gap, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.filled {
		if slices.Contains(topics, g.Topic) && (g.Reason == ingest.OffsetWasSet || g.Reason == ingest.StoreIsOlder) && g.ReadTo <= g.To {
			gaps = append(gaps, g)
		}
	}
	return gaps, nil
}

// readTo returns up to which offsets gaps were read later.
func (s *fakeStore) readTo(gaps ...ingest.Gap) (to []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range gaps {
		to = append(to, s.filled[g].ReadTo)
	}
	return to
}

// Lacks is Config.Lacks.
func (s *fakeStore) Lacks(_ context.Context, list []ingest.Stored) (lacks []bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range list {
		lacks = append(lacks, !s.numbers[fmt.Sprint(r.Session, r.Seq)])
	}
	return lacks, nil
}

// stored returns the numbers of different records and of dead letters.
func (s *fakeStore) stored() (records, letters int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows), len(s.letters)
}

// reasons returns the number of dead letters for each reason.
func (s *fakeStore) reasons() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	reasons := map[string]int{}
	for _, l := range s.letters {
		reasons[l.Reason]++
	}
	return reasons
}

const testSession = "019e8b1c-0000-7aaa-8bbb-0123456789ab"

// line returns the bytes of a call's record.
func line(no int, change ...func(*audit.Record)) []byte {
	now := time.Now()
	r := audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(now), SessionID: testSession, Seq: uint64(no), CallNo: uint64(no),
		TS: now, Method: "tools/call", Tool: "list_panes", Outcome: audit.OutcomeOK, Tenant: "acme",
		Args: `{"text":{"len":300,"hmac_sha256_prefix":"0123456789abcdef"}}`,
	}
	for _, c := range change {
		c(&r)
	}
	b := audit.AppendRecord(nil, &r)
	return b[:len(b)-1]
}

func newTestCollector(t *testing.T, store Inserter) *Collector {
	t.Helper()
	c, err := New(Config{Store: store, Keep: 400 * 24 * time.Hour, Spools: []string{"/"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew(t *testing.T) {
	_, err := New(Config{})
	if err == nil {
		t.Fatal("New of nothing succeeded")
	}
	for _, want := range []string{"no store", "no time", "neither brokers nor spools"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New = %q, want %q in it", err, want)
		}
	}
}
