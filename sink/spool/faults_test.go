package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// sample is a closed session of about 20 KiB in memory, and its lines.
func sample(t testing.TB) (f *memFS, lines []string) {
	f = newMemFS()
	s, err := Create(Config{Dir: "/spool", FS: f, Machine: "m"}, testID)
	must(t, err)
	for n := 1; n <= 28; n++ {
		for _, l := range [][]byte{intent(n), final(n, uint64(n-1))} {
			appendLines(t, s, l, true)
			lines = append(lines, string(l))
		}
	}
	end := boundary(audit.KindSessionEnd, 28)
	appendLines(t, s, end, true)
	lines = append(lines, string(end))
	must(t, s.Close())
	return f, lines
}

const segment1 = "/spool/sessions/" + testID + "/00000001.jsonl"

func fileOf(t testing.TB, f *memFS, name string) *node {
	t.Helper()
	n, err := f.walk(name)
	must(t, err)
	return n
}

// TestOnlySealedLines plants whole sealed lines in the text of an argument.
func TestOnlySealedLines(t *testing.T) {
	s := create(t, Config{})
	planted := string(final(7, 7))
	l := audit.AppendIntent(nil, &audit.Record{
		RecordID: callID(1), CallNo: 1, TS: when(1), Method: "tools/call", Tool: planted,
		Args: audit.JSON(jsontext.AppendQuote(nil, "\n"+planted)),
	})
	appendLines(t, s, l, false)
	if diff := cmp.Diff([]string{string(l)}, texts(items(t, ReaderConfig{Dir: s.c.Dir}))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestDamageCostsTheTouchedLines flips, zeroes and cuts a spool of 20 KiB
// at each of its bytes, then recovers it and writes on.
func TestDamageCostsTheTouchedLines(t *testing.T) {
	f, lines := sample(t)
	index := map[string]int{}
	for i, l := range lines {
		index[strings.TrimSuffix(l, "\n")] = i
	}
	n := fileOf(t, f, segment1)
	whole := n.data
	for at := 0; at < len(whole); at += stride(97) {
		touched := bytes.Count(whole[:at], []byte("\n"))
		for _, d := range []struct {
			name   string
			damage func(b []byte) []byte
			lost   int // lines from the touched one on, at most
		}{
			{"flipped", func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b }, 2},
			{"zeroed", func(b []byte) []byte { clear(b[at:min(at+16, len(b))]); return b }, 2},
			{"cut", func(b []byte) []byte { return b[:at] }, len(lines)},
		} {
			n.data = d.damage(slices.Clone(whole))
			got := linesTold(t, f, index)
			for i := range lines {
				if (i < touched || i >= touched+d.lost) && !got[i] {
					t.Fatalf("%s at byte %d: line %d is lost, it touched line %d", d.name, at, i, touched)
				}
			}
			if at%97 == 0 {
				repairTwice(t, f.died(), fmt.Sprintf("%s at byte %d", d.name, at))
			}
		}
	}
}

// linesTold returns the indexes of the lines that a reader returns.
func linesTold(t *testing.T, f *memFS, index map[string]int) []bool {
	t.Helper()
	got := make([]bool, len(index))
	r, err := OpenReader(ReaderConfig{Dir: "/spool", Session: testID, FS: f})
	must(t, err)
	defer r.Close()
	for {
		item, err := r.Next()
		if err == io.EOF {
			return got
		}
		must(t, err)
		if item.Damage != Intact {
			continue
		}
		i, ok := index[string(item.Line)]
		if !ok {
			t.Fatalf("told a line that was never written: %s", item.Line)
		}
		got[i] = true
	}
}

// repairTwice recovers a damaged spool: no byte is gone, all remaining lines
// can be read, and the second recovery changes nothing.
func repairTwice(t *testing.T, f *memFS, context string) {
	t.Helper()
	before := slices.Clone(fileOf(t, f, segment1).data)
	recoverAll(t, f, context)
	var kept []byte
	dir := fileOf(t, f, filepath.Dir(segment1))
	kept = append(kept, dir.names["00000001.jsonl"].data...)
	for name, n := range dir.names {
		if strings.Contains(name, tornInfix) && !bytes.Contains(before, n.data) {
			t.Errorf("%s: %q holds other bytes", context, name)
		} else if strings.Contains(name, tornInfix) {
			kept = append(kept, n.data...)
		}
	}
	for line := range bytes.SplitAfterSeq(before, []byte("\n")) {
		if !bytes.Contains(kept, line) {
			t.Errorf("%s: recovery dropped %q", context, line)
		}
	}
	ops := f.ops
	recoverAll(t, f, context)
	if f.ops != ops {
		t.Errorf("%s: a second recovery changed something", context)
	}
}

// TestTruncatesAfterFailedWrite fails a write half way, with the cut working
// and failing, and writes on.
func TestTruncatesAfterFailedWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail map[string]verdict
	}{
		{"cut", map[string]verdict{"write": half}},
		{"not cut", map[string]verdict{"write": half, "truncate": lost}},
		{"written all the same", map[string]verdict{"write": ghost}},
		{"written all the same and not cut", map[string]verdict{"write": ghost, "truncate": lost}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newMemFS()
			s := create(t, Config{Dir: "/spool", FS: f})
			appendLines(t, s, intent(1), false)
			failed := map[string]bool{}
			f.judge = func(_ int, op, name string) (verdict, error) {
				if strings.HasSuffix(name, "1.jsonl") && !failed[op] {
					failed[op] = true
					return tt.fail[op], nil
				}
				return fine, nil
			}
			appendLines(t, s, intent(2), false)
			f.judge = nil
			appendLines(t, s, intent(3), false)
			if !failed["write"] {
				t.Fatal("nothing failed")
			}
			var got []string
			for _, l := range texts(items(t, ReaderConfig{Dir: "/spool", FS: f})) {
				if strings.Contains(l, `"intent"`) {
					got = append(got, l)
				}
			}
			if diff := cmp.Diff([]string{string(intent(1)), string(intent(2)), string(intent(3))}, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTornTailIsNoLoss: what a failed write left, and nothing could remove, is cut off
// by the next sync. It is not taken for another program's change.
func TestTornTailIsNoLoss(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f, OnLoss: func(l Loss) { t.Errorf("loss %+v", l) }})
	pos := appendLines(t, s, intent(1), false)
	f.judge = func(_ int, op, name string) (verdict, error) {
		switch op {
		case "write":
			return half, nil
		case "truncate", "create":
			return lost, nil
		}
		return fine, nil
	}
	if _, err := s.Append(intent(2), false); !errors.Is(err, ErrFull) {
		t.Fatalf("Append = %v, want %v", err, ErrFull)
	}
	f.judge = nil
	if !s.Wait(pos, 0) {
		t.Error("Wait = false")
	}
	if got := texts(items(t, ReaderConfig{Dir: "/spool", FS: f})); len(got) != 1 || got[0] != string(intent(1)) {
		t.Errorf("lines %q, want the first", got)
	}
}

// TestFailedSyncEndsTheFile fails a sync of the first segment, the way
// Linux does: the second would succeed, and the pages are gone.
func TestFailedSyncEndsTheFile(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f, Head: head})
	if !s.Wait(appendLines(t, s, intent(1), false), 0) {
		t.Fatal("not synced")
	}
	syncs := 0
	f.judge = func(_ int, op, name string) (verdict, error) {
		if op == "sync" && strings.HasSuffix(name, "1.jsonl") {
			if syncs++; syncs == 1 {
				return lost, unix.EIO
			}
		}
		return fine, nil
	}
	appendLines(t, s, intent(2), false)
	if !s.Wait(appendLines(t, s, final(1, 0), true), 0) {
		t.Fatal("not synced elsewhere")
	}
	if syncs != 1 {
		t.Errorf("the file was synced %d times, want once", syncs)
	}
	g := f.crash(none)
	n := fileOf(t, g, segment1)
	n.data = n.data[:bytes.LastIndexByte(n.data[:len(n.data)-1], '\n')+1] // the lost pages
	second := string(fileOf(t, g, filepath.Dir(segment1)+"/00000002.jsonl").data)
	for _, l := range [][]byte{intent(2), final(1, 0)} {
		if !strings.Contains(second, string(l)) {
			t.Errorf("second segment lacks %s", l)
		}
	}
	count := map[string]int{}
	for _, l := range texts(items(t, ReaderConfig{Dir: "/spool", FS: f, Durable: true})) {
		count[l]++
	}
	for _, l := range [][]byte{intent(1), intent(2), final(1, 0)} {
		if count[string(l)] != 1 {
			t.Errorf("told %d times: %s", count[string(l)], l)
		}
	}
}

// TestForeignSegmentStays puts a file in the place of the next segment: the lines go to
// the one after it.
func TestForeignSegmentStays(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f})
	foreign, err := f.OpenFile(filepath.Join(s.dir, segmentName(2)), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	_, err = foreign.Write([]byte("foreign"))
	must(t, errors.Join(err, foreign.Close()))
	f.judge = func(_ int, op, name string) (verdict, error) {
		if op == "sync" && strings.HasSuffix(name, segmentName(1)) {
			return lost, unix.EIO
		}
		return fine, nil
	}
	if !s.Wait(appendLines(t, s, intent(1), false), 0) {
		t.Error("not synced elsewhere")
	}
	if got := string(fileOf(t, f, filepath.Join(s.dir, segmentName(2))).data); got != "foreign" {
		t.Errorf("the foreign file is %q", got)
	}
	if got := string(fileOf(t, f, filepath.Join(s.dir, segmentName(3))).data); !strings.Contains(got, string(intent(1))) {
		t.Errorf("the segment after it is %q", got)
	}
}

// TestDifferingRepeatIsReported puts another record with a repeated one's id
// into the second segment.
func TestDifferingRepeatIsReported(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f})
	appendLines(t, s, final(1, 0), true)
	must(t, s.Close())
	dir := fileOf(t, f, filepath.Dir(segment1))
	second := f.node(false, 0o600)
	second.data = append(appendRepeat(nil, 1), final(1, 1)...)
	dir.names["00000002.jsonl"] = second
	list := items(t, ReaderConfig{Dir: "/spool", FS: f})
	if last := list[len(list)-1]; last.Damage != Conflicted || !last.Record() {
		t.Errorf("last item is %v, want a conflict", texts(list[len(list)-1:]))
	}
}

// TestDeadDevice fails every sync: waiters fail immediately, lines are still
// written, and nothing is missing once the device works again.
func TestDeadDevice(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f})
	f.judge = func(_ int, op, name string) (verdict, error) {
		if op == "sync" {
			return lost, unix.EIO
		}
		return fine, nil
	}
	if s.Wait(appendLines(t, s, intent(1), false), 0) {
		t.Error("Wait = true, nothing was synced")
	}
	appendLines(t, s, intent(2), false)
	if got := texts(items(t, ReaderConfig{Dir: "/spool", FS: f.died()})); !slices.Contains(got, string(intent(2))) {
		t.Errorf("a line after the failed sync would not survive the process: %q", got)
	}
	f.judge = nil
	s.mu.Lock()
	s.segmentAt = s.segmentAt.Add(-retryLast)
	s.mu.Unlock()
	if !s.Wait(appendLines(t, s, intent(3), false), 0) {
		t.Error("Wait = false, the device works")
	}
	got := strings.Join(texts(items(t, ReaderConfig{Dir: "/spool", FS: f.crash(none)})), "")
	for _, l := range [][]byte{intent(1), intent(2), intent(3)} {
		if !strings.Contains(got, string(l)) {
			t.Errorf("lost %s", l)
		}
	}
}

// TestDiskFull fills the disk and frees it: open calls get their final
// records, others are refused, and service resumes.
func TestDiskFull(t *testing.T) {
	for _, errno := range []error{unix.ENOSPC, unix.EDQUOT} {
		f := newMemFS()
		s := create(t, Config{Dir: "/spool", FS: f})
		for n := 1; n <= 100; n++ {
			appendLines(t, s, intent(n), false)
		}
		f.room, f.full = 100, errno
		if _, err := s.Append(intent(101), false); !errors.Is(err, ErrFull) || !errors.Is(err, errno) || !strings.Contains(err.Error(), "or inodes") {
			t.Fatalf("Append of an intent on a full disk = %v, want ErrFull and what to do", err)
		}
		for n := 1; n <= 100; n++ {
			if _, err := s.Append(final(n, uint64(n-1)), true); err != nil {
				t.Fatalf("final record %d: %v", n, err)
			}
			if _, err := s.Append(intent(101), false); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "or inodes") {
				t.Fatalf("Append of an intent without ballast = %v, want ErrFull and what to do", err)
			}
		}
		f.room = 1 << 20
		s.mu.Lock()
		s.ballastAt = s.ballastAt.Add(-ballastEvery)
		s.mu.Unlock()
		appendLines(t, s, intent(101), false)
		if _, err := f.walk(filepath.Dir(segment1) + "/" + ballastFile); err != nil {
			t.Errorf("an intent was taken without ballast: %v", err)
		}
		appendLines(t, s, final(101, 100), true)
		appendLines(t, s, boundary(audit.KindSessionEnd, 101), true)
		must(t, s.Close())
		checkLines(t, items(t, ReaderConfig{Dir: "/spool", FS: f, Durable: true}), [][]byte{intent(101), final(100, 99)}, "disk full")
	}
}

// TestQuotaExceeded lets every operation fail that needs space, as btrfs does beyond a
// quota: a torn line cannot be cut off, and no segment made, until the ballast is free.
// The sync that follows has lines to repeat, and says so.
func TestQuotaExceeded(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f})
	appendLines(t, s, append(intent(1), final(1, 0)...), true)
	appendLines(t, s, intent(2), false)
	exceeded := true
	f.judge = func(_ int, op, name string) (verdict, error) {
		switch {
		case op == "remove" && strings.HasSuffix(name, ballastFile):
			exceeded = false
		case exceeded && (op == "write" || op == "pwrite"):
			return half, unix.EDQUOT
		case exceeded && op != "sync":
			return lost, unix.EDQUOT
		}
		return fine, nil
	}
	if _, err := s.Append(intent(3), false); !errors.Is(err, ErrFull) {
		t.Fatalf("Append beyond the quota = %v, want ErrFull", err)
	}
	must(t, s.sync1())
	if exceeded {
		t.Fatal("the ballast was not freed")
	}
	appendLines(t, s, final(2, 1), true)
	must(t, s.sync1())
	checkLines(t, items(t, ReaderConfig{Dir: "/spool", FS: f, Durable: true}), [][]byte{final(1, 0), final(2, 1)}, "a quota")
}

// TestFailedStartLeavesNothing fills the disk at each operation of a start:
// recovery would end a session that never began, one for each attempt.
func TestFailedStartLeavesNothing(t *testing.T) {
	for _, hides := range []bool{false, true} {
		for failing := 0; ; failing++ {
			f, n := newMemFS(), 0
			f.hides = hides
			f.judge = func(_ int, op, _ string) (verdict, error) {
				if n++; n > failing && op != "remove" {
					return half, unix.ENOSPC
				}
				return fine, nil
			}
			s, err := Create(Config{Dir: "/spool", FS: f, Machine: "m"}, testID)
			f.judge = nil
			if err == nil {
				must(t, s.Close())
				break
			}
			if list, err := f.ReadDir("/spool/sessions"); len(list) > 0 {
				t.Errorf("after %d operations: sessions has %q, %v", failing, list, err)
			}
			if f.opens != 0 {
				t.Errorf("after %d operations: %d files are open", failing, f.opens)
			}
		}
	}
}

// TestFileTooLarge meets a limit of the file's size: another file still grows.
func TestFileTooLarge(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f})
	f.judge = func(_ int, op, name string) (verdict, error) {
		if n, err := f.walk(name); op == "write" && err == nil && len(n.data) > 2000 {
			return half, unix.EFBIG
		}
		return fine, nil
	}
	for n := 1; n <= 50; n++ {
		appendLines(t, s, intent(n), false)
		appendLines(t, s, final(n, uint64(n-1)), true)
	}
	checkLines(t, items(t, ReaderConfig{Dir: "/spool", FS: f}), [][]byte{final(50, 49)}, "file too large")
}

// TestManyWritersInOneDirectory starts 50 sessions and recoveries
// concurrently.
func TestManyWritersInOneDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	var wg sync.WaitGroup
	keys := make([][]byte, 50)
	for w := range keys {
		wg.Go(func() {
			id := fmt.Sprintf("0198f3c2-0000-7000-9000-%012d", w)
			var err error
			if keys[w], _, err = LoadKey(dir); err != nil {
				t.Error(err)
			}
			s, err := Create(Config{Dir: dir}, id)
			if err != nil {
				t.Error(err)
				return
			}
			for n := 1; n <= 20; n++ {
				if _, err := s.Append(intent(n), false); err != nil {
					t.Error(err)
				}
			}
			if done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: dir}); err != nil || len(skipped) > 0 {
				t.Errorf("recovering beside others: %v, %v, %v", done, skipped, err)
			}
			if _, err := s.Append(boundary(audit.KindSessionEnd, 0), true); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for w, key := range keys {
		if len(key) != KeySize || !bytes.Equal(key, keys[0]) {
			t.Errorf("process %d has another key", w)
		}
	}
	entries, err := List(dir)
	must(t, err)
	if len(entries) != len(keys) {
		t.Errorf("%d sessions, want %d", len(entries), len(keys))
	}
	for _, e := range entries {
		if e.State != Ended || e.Err != nil {
			t.Errorf("session %s is %v, %v", e.ID, e.State, e.Err)
		}
		if n := len(items(t, ReaderConfig{Dir: dir, Session: e.ID, Durable: true})); n != 21 {
			t.Errorf("session %s has %d lines, want 21", e.ID, n)
		}
	}
}

// TestFilesAreOurs checks modes, and links planted by others.
func TestFilesAreOurs(t *testing.T) {
	s := create(t, Config{Head: head})
	err := filepath.WalkDir(s.c.Dir, func(path string, d os.DirEntry, err error) error {
		must(t, err)
		i, err := d.Info()
		must(t, err)
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; i.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, i.Mode().Perm(), want)
		}
		return nil
	})
	must(t, err)
	target := filepath.Join(t.TempDir(), "target")
	must(t, os.WriteFile(target, nil, 0o600))
	must(t, os.Symlink(target, filepath.Join(s.dir, segmentName(2))))
	s.mu.Lock()
	s.cur.limit = 1
	s.mu.Unlock()
	appendLines(t, s, intent(1), false)
	appendLines(t, s, intent(2), false)
	if b, err := os.ReadFile(target); err != nil || len(b) > 0 {
		t.Errorf("the link was followed: %q, %v", b, err)
	}
}

// TestDirectoryIsRefused lists the directories that are refused as a spool.
func TestDirectoryIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string)
		want string
	}{
		{"a link", func(t *testing.T, dir string) { must(t, os.Symlink(t.TempDir(), dir)) }, "name the directory that it points to"},
		{"a file", func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o600)) }, "not a directory"},
		{"open to others", func(t *testing.T, dir string) { must(t, os.Mkdir(dir, 0o700)); must(t, os.Chmod(dir, 0o770)) }, "chmod 700"},
		{"sessions a link", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(t.TempDir(), filepath.Join(dir, sessionsDir)))
		}, "symbolic link"},
		{"somebody else's", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			if os.Geteuid() == 0 {
				must(t, os.Chown(dir, 12345, -1))
			} else {
				must(t, os.Remove(dir))
				must(t, os.Symlink("/", dir)) // owned by another user either way
			}
		}, "uid 12345"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spool")
			tt.make(t, dir)
			want := tt.want
			if tt.name == "somebody else's" && os.Geteuid() != 0 {
				want = "symbolic link"
			}
			s, err := Create(Config{Dir: dir}, testID)
			if err == nil {
				s.Close()
				t.Fatal("Create succeeded")
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Create = %v, want %q in it", err, want)
			}
		})
	}
	_, err := Create(Config{Durability: 9}, "../x")
	for _, want := range []string{"dir is required", "durability is 9", `session id "../x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Create = %v, want %q in it", err, want)
		}
	}
}

// TestNothingPastTheSyncedOffset reads as a consumer would.
func TestNothingPastTheSyncedOffset(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f, Machine: "m"})
	durable := ReaderConfig{Dir: "/spool", FS: f, Durable: true}
	if !s.Wait(appendLines(t, s, intent(1), false), 0) {
		t.Fatal("not synced")
	}
	appendLines(t, s, final(1, 0), true)
	if diff := cmp.Diff([]string{string(intent(1))}, texts(items(t, durable))); diff != "" {
		t.Errorf("durable lines (-want +got):\n%s", diff)
	}
	// After a power cut, recovery gives the number to another record. The
	// first was never reported as written.
	durable.FS = f.crash(none)
	recoverAll(t, durable.FS.(*memFS), "power cut")
	list := items(t, durable)
	if r, err := audit.Parse(list[1].Line); err != nil || r.Seq != 0 || r.Outcome != audit.OutcomeUnknown {
		t.Errorf("after the power cut: %s, %v", list[1].Line, err)
	}
}

// TestNumbersOfDamagedRecordsStayTaken damages the last record that had been
// published: it may be in Kafka, so its number must not be reused.
func TestNumbersOfDamagedRecordsStayTaken(t *testing.T) {
	f := newMemFS()
	s := create(t, Config{Dir: "/spool", FS: f, Machine: "m"})
	for n := 1; n <= 3; n++ {
		appendLines(t, s, final(n, uint64(n-1)), true)
	}
	must(t, s.Close())
	n := fileOf(t, f, segment1)
	n.data[len(n.data)-30] ^= 4
	size := len(n.data)
	recoverAll(t, f, "damaged")
	list := items(t, ReaderConfig{Dir: "/spool", FS: f})
	if r, err := audit.Parse(list[len(list)-1].Line); err != nil || r.Seq != 3 {
		t.Errorf("session_end has seq %d, %v, want 3", r.Seq, err)
	}
	if n := fileOf(t, f, segment1); len(n.data) < size {
		t.Errorf("published bytes were cut: %d of %d left", len(n.data), size)
	}
}

// TestLossIsNoticed removes, renames, cuts and extends files during writing.
func TestLossIsNoticed(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		harm         func(t *testing.T, segment string)
	}{
		{"rm", "removed", func(t *testing.T, segment string) { must(t, os.Remove(segment)) }},
		{"mv", "removed", func(t *testing.T, segment string) { must(t, os.Rename(segment, segment+".old")) }},
		{"replace", "removed", func(t *testing.T, segment string) {
			must(t, os.Remove(segment))
			must(t, os.WriteFile(segment, nil, 0o600))
		}},
		{"mv and replace", "replaced", func(t *testing.T, segment string) {
			must(t, os.Rename(segment, segment+".old"))
			must(t, os.WriteFile(segment, nil, 0o600))
		}},
		{"truncate", "changed", func(t *testing.T, segment string) { must(t, os.Truncate(segment, 0)) }},
		{"append", "changed", func(t *testing.T, segment string) {
			g, err := os.OpenFile(segment, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			_, err = g.WriteString("pane output")
			must(t, errors.Join(err, g.Close()))
		}},
		{"rm -rf session", "removed", func(t *testing.T, segment string) { must(t, os.RemoveAll(filepath.Dir(segment))) }},
		{"rm -rf spool", "removed", func(t *testing.T, segment string) {
			must(t, os.RemoveAll(filepath.Join(filepath.Dir(segment), "../..")))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var losses []Loss
			var s *Session
			s = create(t, Config{Head: head, OnLoss: func(l Loss) {
				losses = append(losses, l)
				appendLines(t, s, boundary(audit.KindAnomaly, 0), true)
			}})
			if !s.Wait(appendLines(t, s, intent(1), false), 0) {
				t.Fatal("not synced")
			}
			appendLines(t, s, intent(2), false)
			tt.harm(t, filepath.Join(s.dir, segmentName(1)))
			if !s.Wait(appendLines(t, s, intent(3), false), 0) {
				t.Error("not synced elsewhere")
			}
			if len(losses) != 1 || losses[0].Reason != tt.reason || losses[0].Segment != 1 {
				t.Errorf("losses = %v, want one of segment 1, %s", losses, tt.reason)
			}
			if !s.Wait(appendLines(t, s, intent(4), false), 0) {
				t.Error("not synced afterwards")
			}
			got := strings.Join(texts(items(t, ReaderConfig{Dir: s.c.Dir, Durable: true})), "")
			for n, l := range [][]byte{intent(2), intent(3), intent(4), boundary(audit.KindAnomaly, 0)} {
				if c := strings.Count(got, string(l)); c != 1 {
					t.Errorf("line %d stands %d times", n, c)
				}
			}
		})
	}
}
