package spool

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// die ends a session as the death of its process does.
func die(t testing.TB, s *Session) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	must(t, s.release())
}

// TestRecoverWritesWhatIsMissing has one call of each kind that a dead proxy
// can leave.
func TestRecoverWritesWhatIsMissing(t *testing.T) {
	s := create(t, Config{Head: head})
	appendLines(t, s, boundary(audit.KindSessionStart, 0), true)
	appendLines(t, s, intent(1), false)
	appendLines(t, s, final(1, 1), true)
	appendLines(t, s, intent(2), false)
	appendLines(t, s, audit.AppendRecord(nil, &audit.Record{ // interim: it does not end the call
		Kind: audit.KindOpen, RecordID: callID(500), SessionID: testID, Seq: 2, CallNo: 2, TS: when(2), Duration: -1,
	}), true)
	appendLines(t, s, audit.AppendIntent(nil, &audit.Record{ // again, with the name known
		RecordID: callID(2), CallNo: 2, TS: when(2), Method: "tools/call", Tool: "pipe_pane", RequestID: "2", RequestIDType: "number",
	}), false)
	appendLines(t, s, audit.AppendContext(nil, &audit.Record{SessionID: testID, Host: "elsewhere"}), true)
	appendLines(t, s, intent(3), false)
	torn := intent(4)[:40]
	appendLines(t, s, torn, false)
	die(t, s)

	done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
	must(t, err)
	if len(skipped) > 0 || len(done) != 1 || done[0].Unknown != 2 || len(done[0].Torn) != 1 {
		t.Fatalf("Recover = %+v, skipped %v", done, skipped)
	}
	kept, err := os.ReadFile(filepath.Join(s.dir, done[0].Torn[0]))
	must(t, err)
	if string(kept) != string(torn) {
		t.Errorf("set aside %q, want %q", kept, torn)
	}
	var got []audit.Record
	for _, i := range items(t, ReaderConfig{Dir: s.c.Dir, Durable: true}) {
		if !i.Record() {
			continue
		}
		r, err := audit.Parse(i.Line)
		must(t, err)
		if r.Recovered {
			got = append(got, r)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d recovered records, want 3", len(got))
	}
	want := []audit.Record{{
		Kind: audit.KindCall, RecordID: callID(2), SessionID: testID, Seq: 3, CallNo: 2, TS: when(2),
		Method: "tools/call", Tool: "pipe_pane", RequestID: "2", RequestIDType: "number",
		Outcome: audit.OutcomeUnknown, ErrorType: audit.ErrProxyDied, Recovered: true, Duration: -1,
		Client: audit.Peer{Name: "tester"}, Host: "here", PID: 7,
	}, {
		Kind: audit.KindCall, RecordID: callID(3), SessionID: testID, Seq: 4, CallNo: 3, TS: when(3),
		Method: "tools/call", Tool: "send_keys", RequestID: "3", RequestIDType: "number", Args: `{"keys":{"len":3}}`, ArgsBytes: 14,
		Outcome: audit.OutcomeUnknown, ErrorType: audit.ErrProxyDied, Recovered: true, Duration: -1,
		Host: "elsewhere", Tier: "mutating", ToolHash: "ab",
	}}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Errorf("unknown records (-want +got):\n%s", diff)
	}
	if end := got[2]; end.Kind != audit.KindSessionEnd || end.Seq != 5 || end.Host != "elsewhere" {
		t.Errorf("session_end = %+v", end)
	}
	if _, err := os.Lstat(filepath.Join(s.dir, ballastFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ballast is still there: %v", err)
	}
}

// TestRecoverNewerProxy uses kinds of records and lines that this version
// does not know: some after its end do not make a session dead, and numbers
// continue after theirs.
func TestRecoverNewerProxy(t *testing.T) {
	future := func(seq uint64) []byte { return boundary("novelty", seq) }
	line := audit.Seal([]byte(`{"line":"future","v":1,"kind":7}`), 0)
	start, end := boundary(audit.KindSessionStart, 0), boundary(audit.KindSessionEnd, 1)
	for _, tt := range []struct {
		name   string
		lines  [][]byte
		rotate int    // line at which a segment starts
		kinds  string // of the records after recovery
		again  int    // sessions to recover
	}{
		{name: "after the end", lines: [][]byte{start, end, future(2), line}, kinds: "session_start session_end novelty"},
		{name: "in a segment after the end", lines: [][]byte{start, end, future(2)}, rotate: 2, again: 1, kinds: "session_start session_end novelty"},
		{name: "and no end", lines: [][]byte{start, future(1), intent(1), future(2)}, again: 1, kinds: "session_start novelty novelty call session_end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := create(t, Config{})
			for i, l := range tt.lines {
				if i > 0 && i == tt.rotate {
					s.mu.Lock()
					s.cur.limitForTest()
					s.mu.Unlock()
				}
				appendLines(t, s, l, true)
			}
			must(t, s.Close())
			done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
			must(t, err)
			if len(done) != tt.again || len(skipped) > 0 {
				t.Errorf("recovered %v, skipped %v, want %d", done, skipped, tt.again)
			}
			var kinds []string
			for _, i := range items(t, ReaderConfig{Dir: s.c.Dir, Durable: true}) {
				if !i.Record() {
					continue
				}
				r, err := audit.Parse(i.Line)
				must(t, err)
				if r.Seq != uint64(len(kinds)) {
					t.Errorf("record %d has seq %d", len(kinds), r.Seq)
				}
				kinds = append(kinds, string(r.Kind))
			}
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("records %s, want %s", got, tt.kinds)
			}
			if e, _ := Look(s.c.Dir, testID); e.State != Ended {
				t.Errorf("the session is %v, want it ended", e.State)
			}
		})
	}
}

// TestRecoverWithoutStart recovers a session whose proxy was killed before its first
// record. What it started is in the context.
func TestRecoverWithoutStart(t *testing.T) {
	s := create(t, Config{})
	appendLines(t, s, audit.AppendContext(nil, &audit.Record{SessionID: testID, ServerCommand: audit.Command{Command: "tmux-mcp"}, Host: "here", PID: 7}), true)
	die(t, s)
	for range 2 {
		_, _, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
		must(t, err)
	}
	var got []audit.Record
	for _, i := range items(t, ReaderConfig{Dir: s.c.Dir, Durable: true}) {
		if i.Record() {
			r, err := audit.Parse(i.Line)
			must(t, err)
			got = append(got, r)
		}
	}
	if len(got) != 2 || got[1].Kind != audit.KindSessionEnd || got[1].Seq != 1 {
		t.Fatalf("records %+v, want session_start and session_end", got)
	}
	want := audit.Record{
		Kind: audit.KindSessionStart, RecordID: got[0].RecordID, SessionID: testID, TS: time.UnixMilli(0x0198f3c27b1a).UTC(), Duration: -1,
		ServerCommand: audit.Command{Command: "tmux-mcp"}, Host: "here", PID: 7, Recovered: true,
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("session_start (-want +got):\n%s", diff)
	}
}

// TestBegun reads the times of session ids, which anybody may have chosen.
func TestBegun(t *testing.T) {
	now := when(0)
	for id, want := range map[string]time.Time{
		testID: time.UnixMilli(0x0198f3c27b1a),
		"":     now, "x": now, "-0000000-0001": time.UnixMilli(1),
		"ffffffff-ffff-7000-8000-000000000000": now,
	} {
		if got := begun(id, now); !got.Equal(want) {
			t.Errorf("session %q began at %v, want %v", id, got, want)
		}
	}
}

func TestRecoverLeavesAlone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, s *Session)
		force bool
		done  bool
		want  string // of the reason
	}{
		{name: "a live session", make: func(t *testing.T, s *Session) {}},
		{name: "a session of another machine", want: "another machine", make: func(t *testing.T, s *Session) {
			must(t, os.WriteFile(filepath.Join(s.dir, machineFile), []byte("other\n"), 0o600))
			die(t, s)
		}},
		{name: "one of another machine, but by force", force: true, done: true, make: func(t *testing.T, s *Session) {
			must(t, os.WriteFile(filepath.Join(s.dir, machineFile), []byte("other\n"), 0o600))
			die(t, s)
		}},
		{name: "a session whose lock was removed", want: "lock file is gone", make: func(t *testing.T, s *Session) {
			must(t, os.Remove(filepath.Join(s.dir, lockFile)))
		}},
		{name: "a session behind a link", want: "symbolic link", make: func(t *testing.T, s *Session) {
			die(t, s)
			must(t, os.Rename(s.dir, s.dir+".elsewhere"))
			must(t, os.Symlink(s.dir+".elsewhere", s.dir))
		}},
		{name: "a session of another user", want: "belongs to uid", make: func(t *testing.T, s *Session) {
			dev.Superuser(t)
			die(t, s)
			must(t, os.Chown(s.dir, 1234, 1234))
		}},
		{name: "a segment of another user", want: "belongs to uid", make: func(t *testing.T, s *Session) {
			dev.Superuser(t)
			die(t, s)
			must(t, os.Chown(filepath.Join(s.dir, segmentName(1)), 1234, 1234))
		}},
		{name: "a session with a pipe for a segment", want: "not a regular file", make: func(t *testing.T, s *Session) {
			die(t, s)
			must(t, unix.Mkfifo(filepath.Join(s.dir, segmentName(2)), 0o600))
		}},
		{name: "a session with a pipe for its durable position", want: "not a regular file", make: func(t *testing.T, s *Session) {
			die(t, s)
			must(t, os.Remove(filepath.Join(s.dir, durableFile)))
			must(t, unix.Mkfifo(filepath.Join(s.dir, durableFile), 0o600))
		}},
		{name: "nothing, of a dead session", done: true, make: func(t *testing.T, s *Session) { die(t, s) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := create(t, Config{})
			appendLines(t, s, intent(1), false)
			tt.make(t, s)
			done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir, Force: tt.force})
			must(t, err)
			if (len(done) > 0) != tt.done {
				t.Errorf("recovered %v", done)
			}
			switch {
			case tt.want == "" && len(skipped) > 0:
				t.Errorf("skipped %v", skipped)
			case tt.want != "" && (len(skipped) != 1 || !strings.Contains(skipped[0].Err.Error(), tt.want)):
				t.Errorf("skipped %v, want %q", skipped, tt.want)
			}
		})
	}
}

// TestRecoverUnnamed has directories whose makers died before they had a name.
func TestRecoverUnnamed(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for id, segments := range map[string][][]byte{"empty": {nil}, "used": {intent(1)}, "later": {nil, intent(1)}, "young": {intent(1)}} {
		session := filepath.Join(dir, sessionsDir, newPrefix+id)
		must(t, os.MkdirAll(session, 0o700))
		for i, data := range segments {
			must(t, os.WriteFile(filepath.Join(session, segmentName(uint32(i+1))), data, 0o600))
		}
		if id != "young" {
			must(t, os.Chtimes(session, old, old))
		}
	}
	done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: dir})
	must(t, err)
	if len(skipped) > 0 || len(done) != 2 || done[0].Unknown != 1 || done[1].Unknown != 1 {
		t.Errorf("Recover = %+v, skipped %v", done, skipped)
	}
	names, err := disk.Host().ReadDir(filepath.Join(dir, sessionsDir))
	must(t, err)
	if diff := cmp.Diff([]string{".new-young", "later", "used"}, names); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
}

// TestRecoverBeginsSegmentWithHead loses the last segment of a dead session: the
// recovered record is in a new one, which says where and by whom, since retention may
// remove those before it.
func TestRecoverBeginsSegmentWithHead(t *testing.T) {
	s := create(t, Config{Head: head})
	appendLines(t, s, intent(1), false)
	s.mu.Lock()
	s.cur.limit = 1
	s.mu.Unlock()
	appendLines(t, s, intent(2), false)
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(s.dir, segmentName(2))))
	if done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir}); err != nil || len(skipped) > 0 || len(done) != 1 {
		t.Fatalf("Recover = %+v, %v, %v", done, skipped, err)
	}
	got, err := os.ReadFile(filepath.Join(s.dir, segmentName(3)))
	must(t, err)
	if !bytes.HasPrefix(got, head(nil)) || !bytes.Contains(got, []byte(callID(1))) {
		t.Errorf("the new segment has no head, or no record of the call:\n%s", got)
	}
}

// TestRecoverersRace lets ten recover one session at once.
func TestRecoverersRace(t *testing.T) {
	s := create(t, Config{})
	for n := 1; n <= 50; n++ {
		appendLines(t, s, intent(n), false)
	}
	die(t, s)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir}); err != nil || len(skipped) > 0 {
				t.Errorf("Recover: %v, skipped %v", err, skipped)
			}
		})
	}
	wg.Wait()
	// A recovery that met another's check of the lock left the session to the
	// next.
	_, _, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
	must(t, err)
	checkLines(t, items(t, ReaderConfig{Dir: s.c.Dir, Durable: true}), nil, "race")
	if e := onlySession(t, s.c.Dir); e.State != Ended {
		t.Errorf("session is %v", e.State)
	}
}

// TestTornTwice tears the tail of a session at the same offset again, after
// a first recovery set it aside and died.
func TestTornTwice(t *testing.T) {
	f := newMemFS()
	s, err := Create(Config{Dir: "/spool", FS: f, Machine: "m"}, testID)
	must(t, err)
	appendLines(t, s, intent(1), false)
	must(t, s.Close())
	n := fileOf(t, f, segment1)
	good := len(n.data)
	for _, tail := range []string{"first", "second", "second"} {
		n.data = append(n.data[:good:good], tail...)
		f.judge = func(_ int, op, name string) (verdict, error) {
			if op == "write" && name == segment1 {
				return stopped, nil
			}
			return fine, nil
		}
		_, _, err := Recover(t.Context(), RecoverConfig{Dir: "/spool", Machine: "m", FS: f})
		must(t, err)
		f = f.died()
		n = fileOf(t, f, segment1)
	}
	var torn []string
	for name, k := range fileOf(t, f, filepath.Dir(segment1)).names {
		if strings.Contains(name, tornInfix) {
			torn = append(torn, string(k.data))
		}
	}
	if len(torn) != 2 {
		t.Errorf("set aside %q, want both tails once", torn)
	}
}

// TestRecoverTriesACutAgain: a tail that is set aside and cannot be cut off is not
// done with. The next attempt finds its copy.
func TestRecoverTriesACutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMemFS()
		s, err := Create(Config{Dir: "/spool", Machine: "m", FS: f}, testID)
		must(t, err)
		appendLines(t, s, intent(1), false)
		must(t, s.Close())
		n := fileOf(t, f, segment1)
		n.data = append(n.data, "torn"...)
		f.judge = func(_ int, op, name string) (verdict, error) {
			if op == "truncate" {
				return lost, nil
			}
			return fine, nil
		}
		r := NewRecoverer(RecoverConfig{Dir: "/spool", Machine: "m", FS: f})
		done, skipped, err := r.Pass(t.Context())
		must(t, err)
		if len(done) != 0 || len(skipped) != 1 || len(r.failed) != 1 {
			t.Errorf("without the cut: Pass = %+v, skipped %v, want one skipped", done, skipped)
		}
		f.judge = nil
		<-time.After(recoverAgain)
		done, skipped, err = r.Pass(t.Context())
		must(t, err)
		if len(done) != 1 || len(done[0].Torn) != 1 || done[0].Damaged != 0 || len(skipped) > 0 || len(r.failed) > 0 {
			t.Errorf("again: Pass = %+v, skipped %v, %d failed, want one recovered with its tail set aside", done, skipped, len(r.failed))
		}
		if strings.Contains(string(fileOf(t, f, segment1).data), "torn") {
			t.Error("the tail is still there")
		}
	})
}

// TestRecoverHalfARepeat died while it repeated lines after a failed sync:
// the intent is there twice, its final record once, between them.
func TestRecoverHalfARepeat(t *testing.T) {
	s := create(t, Config{})
	appendLines(t, s, intent(1), false)
	appendLines(t, s, final(1, 0), true)
	die(t, s)
	second := append(append(appendRepeat(nil, 1), intent(1)...), final(1, 0)[:30]...)
	must(t, os.WriteFile(filepath.Join(s.dir, segmentName(2)), second, 0o600))
	done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
	must(t, err)
	if len(done) != 1 || len(skipped) > 0 || done[0].Unknown != 0 {
		t.Errorf("Recover = %+v, skipped %v, want no open call", done, skipped)
	}
	checkLines(t, items(t, ReaderConfig{Dir: s.c.Dir}), [][]byte{final(1, 0)}, "half a repeat")
}

// TestRecoverWritesToNoOtherFile plants hard links to other files in a dead
// session. The files keep their contents, and the session is ended.
func TestRecoverWritesToNoOtherFile(t *testing.T) {
	for _, name := range []string{segmentName(1), segmentName(2), durableFile, durableFile + ".tmp", lockFile, ballastFile} {
		t.Run(name, func(t *testing.T) {
			s := create(t, Config{Head: head})
			appendLines(t, s, intent(1), false)
			must(t, s.sync1())
			die(t, s)
			planted, other := filepath.Join(s.dir, name), filepath.Join(t.TempDir(), "other")
			text, err := os.ReadFile(planted)
			if errors.Is(err, fs.ErrNotExist) {
				text = []byte("another's\n")
			}
			if name == segmentName(1) {
				text = append(text, "a torn line"...)
			}
			must(t, os.WriteFile(other, text, 0o600))
			if err := os.Remove(planted); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			must(t, os.Link(other, planted))
			done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
			if err != nil || len(skipped) > 0 || len(done) != 1 || done[0].Unknown != 1 {
				t.Errorf("Recover = %+v, %+v, %v, want one session with one call", done, skipped, err)
			}
			got, err := os.ReadFile(other)
			must(t, err)
			if !bytes.Equal(got, text) {
				t.Errorf("the other file holds %q, want %q", got, text)
			}
			if e, there := Look(s.c.Dir, testID); !there || e.State != Ended || e.Err != nil {
				t.Errorf("the session is %v, %v", e.State, e.Err)
			}
		})
	}
}
