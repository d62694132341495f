package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"

	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// A testLink is a place in a chain of sessions.
type testLink struct {
	described atomic.Int32 // how often the proxy was asked for its member of session_start
	leaf      evidence.Hash
	steps     string
	failAt    string
}

func (l *testLink) Enter(leaf evidence.Hash) error {
	l.leaf = leaf
	return l.step("enter")
}
func (l *testLink) Written() error { return l.step("written") }
func (l *testLink) Close() error   { return l.step("close") }

func (l *testLink) step(name string) error {
	l.steps += name + " "
	if l.failAt == name {
		return errors.New("broken")
	}
	return nil
}

// provenSession is testSession with evidence, that has begun.
func provenSession(t *testing.T, failAt string) (*session, *lines, *testLink) {
	t.Helper()
	s, j, link := startedSession(t, failAt)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	return s, j, link
}

// startedSession is a session with evidence whose session_start is still to come.
func startedSession(t *testing.T, failAt string) (*session, *lines, *testLink) {
	t.Helper()
	s, j, link := unstartedSession(t, failAt)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return s, j, link
}

func unstartedSession(t *testing.T, failAt string) (*session, *lines, *testLink) {
	t.Helper()
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := note.GenerateKey(rand.Reader, "auditproxy/h")
	if err != nil {
		t.Fatal(err)
	}
	host, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	j, link := &lines{}, &testLink{failAt: failAt}
	base := audit.Record{SessionID: audit.NewID(time.Now()), Host: "h"}
	c := testClient(t, Config{Journal: j, Redactor: red, Log: zap.NewNop(), Base: base, Evidence: func(key string) (Link, evidence.Session, error) {
		if failAt == "begin" {
			return nil, evidence.Session{}, errors.New("broken")
		}
		e := evidence.Session{Origin: evidence.Origin("h", base.SessionID), Key: key, HostKey: public, HostSeq: 1}
		return link, e, e.Sign(host)
	}, Proxy: func() audit.JSON {
		link.described.Add(1)
		return `{"version":"1"}`
	}})
	return c.s, j, link
}

// event writes one record that is no checkpoint.
func (s *session) event(word string) { s.lost(word) }

// checkProof checks all checkpoints in a journal: each covers every record before
// it, and is signed with the session's key. It returns their sizes.
func checkProof(t *testing.T, j *lines) (sizes []int64) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var tree evidence.Tree
	var known note.Verifiers
	for line := range bytes.Lines(j.b.Bytes()) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		kind, r, err := audit.ParseLine(line)
		if err != nil {
			t.Fatal(err)
		}
		if kind != audit.LineRecord {
			continue
		}
		if r.Seq != uint64(tree.Size()) {
			t.Fatalf("record %d comes after %d records", r.Seq, tree.Size())
		}
		switch r.Kind {
		case audit.KindSessionStart:
			e, err := evidence.ReadSession(&r)
			if err == nil {
				err = e.Verify()
			}
			if err != nil {
				t.Fatal(err)
			}
			v, err := note.NewVerifier(e.Key)
			if err != nil {
				t.Fatal(err)
			}
			known = note.VerifierList(v)
		case audit.KindCheckpoint:
			signed, err := evidence.CheckpointOf(&r)
			if err != nil {
				t.Fatal(err)
			}
			c, _, err := evidence.OpenCheckpoint(signed, known)
			if err == nil {
				err = c.CheckRecord(line, signed)
			}
			c.Record = evidence.Hash{}
			if want := (evidence.Checkpoint{Origin: evidence.Origin("h", r.SessionID), Size: tree.Size(), Root: tree.Root()}); err != nil || c != want {
				t.Fatalf("checkpoint %d: %+v, %v, want %+v", r.Seq, c, err, want)
			}
			sizes = append(sizes, c.Size)
		}
		tree.Append(evidence.Leaf(line))
	}
	return sizes
}

// TestCheckpointTimes writes records at some times. A checkpoint follows 256
// records, or the first record by ten seconds, and the end; an idle session writes
// nothing.
func TestCheckpointTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j, link := provenSession(t, "")
		if want := "enter written close "; link.steps != want {
			t.Errorf("the link's steps are %q, want %q", link.steps, want)
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { s.runCheckpoints(stop) })
		sizes := func() string {
			synctest.Wait()
			return fmt.Sprint(checkProof(t, j))
		}
		for _, step := range []struct {
			records int
			after   time.Duration
			want    string
		}{
			{0, 9 * time.Second, "[]"},
			{3, 0, "[]"},
			{0, time.Second, "[4]"},
			{0, time.Hour, "[4]"},
			{1, 9 * time.Second, "[4]"},
			{1, time.Second, "[4 7]"},
			{255, 0, "[4 7]"},
			{1, 0, "[4 7 264]"},
		} {
			for i := range step.records {
				s.event(fmt.Sprint("event ", i))
			}
			if step.after > 0 {
				<-time.After(step.after)
			}
			if got := sizes(); got != step.want {
				t.Errorf("%d records and %v later the checkpoints are of %s records, want %s", step.records, step.after, got, step.want)
			}
		}
		s.event("the last")
		close(stop)
		s.end("")
		wg.Wait()
		if got, want := sizes(), "[4 7 264 267]"; got != want {
			t.Errorf("at the end the checkpoints are of %s records, want %s", got, want)
		}
		list := j.records(t)
		if n := len(list); list[n-1].Kind != audit.KindCheckpoint || list[n-2].Kind != audit.KindSessionEnd {
			t.Errorf("the last records are %v and %v", list[n-2].Kind, list[n-1].Kind)
		}
	})
}

// TestCheckpointsWhileJournalFails has the journal refuse lines for a while: no
// checkpoint covers what was not written, and later ones cover all of it.
func TestCheckpointsWhileJournalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j, _ := provenSession(t, "")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { s.runCheckpoints(stop) })
		s.event("written")
		j.fail(true)
		for range 300 {
			s.event("kept")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got := checkProof(t, j); len(got) > 0 {
			t.Errorf("while the journal fails there are checkpoints of %d records", got)
		}
		j.fail(false)
		s.event("written again")
		<-time.After(checkpointEvery)
		synctest.Wait()
		if got := fmt.Sprint(checkProof(t, j)); got != "[303]" {
			t.Errorf("the checkpoints are of %s records, want [303]", got)
		}
		j.fail(true)
		s.event("lost")
		close(stop)
		s.end("")
		wg.Wait()
		if got := fmt.Sprint(checkProof(t, j)); got != "[303]" {
			t.Errorf("after a lost end the checkpoints are of %s records, want [303]", got)
		}
	})
}

// TestCheckpointsUnderLoad writes from several goroutines, lines of every size.
func TestCheckpointsUnderLoad(t *testing.T) {
	s, j, _ := provenSession(t, "")
	stop := make(chan struct{})
	var wg, writers sync.WaitGroup
	wg.Go(func() { s.runCheckpoints(stop) })
	for i := range 4 {
		writers.Go(func() {
			for k := range 2000 {
				s.event(string(bytes.Repeat([]byte("x"), i*k/8)))
			}
		})
	}
	writers.Wait()
	close(stop)
	s.end("")
	wg.Wait()
	sizes := checkProof(t, j)
	if last := sizes[len(sizes)-1]; last < 8000 {
		t.Errorf("the last checkpoint covers %d records, want all 8000", last)
	}
	if cap(s.proof.fresh) > 8*hashBytes {
		t.Errorf("%d bytes are kept for lines", cap(s.proof.fresh))
	}
}

// TestStartFollows starts sessions: session_start is not in the way of the server's
// start, and no other record or intent comes before it.
func TestStartFollows(t *testing.T) {
	kinds := func(t *testing.T, j *lines) (list []audit.Kind) {
		for _, r := range j.records(t) {
			list = append(list, r.Kind)
		}
		return list
	}
	for name, tt := range map[string]struct {
		next func(s *session)
		want []audit.Kind
	}{
		"nothing else is written": {func(s *session) { <-time.After(beginAfter) }, []audit.Kind{audit.KindSessionStart}},
		"a record is written":     {func(s *session) { s.event("x") }, []audit.Kind{audit.KindSessionStart, audit.KindAnomaly}},
		"it ends":                 {func(s *session) { s.end("") }, []audit.Kind{audit.KindSessionStart, audit.KindSessionEnd, audit.KindCheckpoint}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j, link := startedSession(t, "")
				stop := make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() { s.runCheckpoints(stop) })
				synctest.Wait()
				s.mu.Lock() // which the next lines are written with
				if link.described.Load() > 0 {
					t.Error("the start waits for what session_start says of the proxy")
				}
				if got := kinds(t, j); len(got) > 0 || link.steps != "" {
					t.Errorf("the start writes the records %v and takes the steps %q, want none", got, link.steps)
				}
				if j.b.Len() == 0 {
					t.Error("the start writes nothing: the server would be started without a journal")
				}
				s.mu.Unlock()
				tt.next(s)
				synctest.Wait()
				if diff := cmp.Diff(tt.want, kinds(t, j)); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
				if got := j.records(t)[0].Proxy; got != `{"version":"1"}` || link.described.Load() != 1 {
					t.Errorf("session_start has the proxy %s, made %d times, want {\"version\":\"1\"}, made once", got, link.described.Load())
				}
				checkProof(t, j)
				close(stop)
				s.end("")
				wg.Wait()
			})
		})
	}
}

// TestStartFollowsFailure has the journal refuse the first lines: the start says so,
// and when they can be written, they are the first, with evidence.
func TestStartFollowsFailure(t *testing.T) {
	s, j, _ := unstartedSession(t, "")
	j.fail(true)
	if err := s.start(); err == nil {
		t.Error("the start does not report that the journal is broken")
	}
	j.fail(false)
	s.event("x")
	s.end("")
	if got := fmt.Sprint(checkProof(t, j)); got != "[3]" {
		t.Errorf("the checkpoints are of %s records, want [3]", got)
	}
}

// TestNoEvidence breaks each step of a session's start: the session goes on, and no
// record of it claims evidence.
func TestNoEvidence(t *testing.T) {
	for _, step := range []string{"begin", "enter", "written", "close"} {
		s, j, _ := provenSession(t, step)
		s.event("x")
		s.end("")
		list := j.records(t)
		// After Enter the line is written; what follows only delays the next session.
		proved := step == "written" || step == "close"
		if got := list[0].Evidence != ""; got != proved {
			t.Errorf("%s fails: session_start has the evidence %q", step, list[0].Evidence)
		}
		if last := list[len(list)-1].Kind; (last == audit.KindCheckpoint) != proved {
			t.Errorf("%s fails: the last record is a %s", step, last)
		}
		for i, r := range list {
			if r.Seq != uint64(i) {
				t.Errorf("%s fails: record %d has the number %d", step, i, r.Seq)
			}
		}
	}
}
