package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

// planted makes a session whose files the test writes itself.
func planted(t testing.TB, segments ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	session := filepath.Join(dir, sessionsDir, testID)
	must(t, os.MkdirAll(session, 0o700))
	for i, b := range segments {
		must(t, os.WriteFile(filepath.Join(session, segmentName(uint32(i+1))), b, 0o600))
	}
	return dir
}

func TestReaderTellsDamage(t *testing.T) {
	good := func(n int) []byte { return final(n, uint64(n)) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	long := append(bytes.Repeat([]byte("x"), audit.MaxLine+1), '\n')
	n := len(good(1))
	for _, tt := range []struct {
		name     string
		segments [][]byte
		want     []string
	}{
		{"a bad line between two", [][]byte{join(good(1), []byte("nonsense\n"), good(2))},
			[]string{string(good(1)), fmt.Sprintf("line fails its checksum at 1:%d, 9", n), string(good(2))}},
		{"a line too long", [][]byte{join(good(1), long, good(2))},
			[]string{string(good(1)), fmt.Sprintf("line is too long at 1:%d, %d", n, len(long)), string(good(2))}},
		{"a torn end before a segment", [][]byte{join(good(1), good(2)[:9]), good(3)},
			[]string{string(good(1)), fmt.Sprintf("line is torn at 1:%d, 9", n), string(good(3))}},
		{"no more than a torn end at the end", [][]byte{join(good(1), good(2)[:9])}, []string{string(good(1))}},
		{"an empty segment", [][]byte{good(1), nil, good(2)}, []string{string(good(1)), string(good(2))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := texts(items(t, ReaderConfig{Dir: planted(t, tt.segments...)}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderTellsMissingSegments(t *testing.T) {
	dir := planted(t, final(1, 1), final(2, 2), final(3, 3), final(4, 4))
	session := filepath.Join(dir, sessionsDir, testID)
	must(t, os.Remove(filepath.Join(session, segmentName(1)))) // retention
	must(t, os.Remove(filepath.Join(session, segmentName(3)))) // not retention
	want := []string{string(final(2, 2)), "segments are missing at 3:0, 1", string(final(4, 4))}
	if diff := cmp.Diff(want, texts(items(t, ReaderConfig{Dir: dir}))); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

// TestReaderFollows continues after each io.EOF, across segments, and from
// each returned position.
func TestReaderFollows(t *testing.T) {
	s := create(t, Config{})
	r, err := OpenReader(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	defer r.Close()
	for n := 1; n <= 20; n++ {
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("Next = %v before line %d, want io.EOF", err, n)
		}
		if n%7 == 0 {
			s.mu.Lock()
			s.cur.limit = 1
			s.mu.Unlock()
		}
		appendLines(t, s, intent(n), false)
		item, err := r.Next()
		must(t, err)
		if got := string(item.Line) + "\n"; got != string(intent(n)) {
			t.Fatalf("line %d = %s", n, got)
		}
		rest := items(t, ReaderConfig{Dir: s.c.Dir, From: item.Pos})
		if len(rest) != 1 || rest[0].Pos != item.Pos {
			t.Errorf("from %v: %v", item.Pos, texts(rest))
		}
	}
}

func TestReaderTail(t *testing.T) {
	dir := planted(t, append(final(1, 1), `{"v":1`...))
	r, err := OpenReader(ReaderConfig{Dir: dir, Session: testID})
	must(t, err)
	defer r.Close()
	drain(t, r.Next)
	if pos, n := r.Tail(); pos != (Position{1, int64(len(final(1, 1)))}) || n != 6 {
		t.Errorf("Tail = %v, %d", pos, n)
	}
}

// TestReaderLongLine reads 200 MB without a line feed in constant memory.
func TestReaderLongLine(t *testing.T) {
	dir := planted(t, nil)
	name := filepath.Join(dir, sessionsDir, testID, segmentName(1))
	must(t, os.Truncate(name, 200<<20)) // sparse
	g, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = g.Write(append([]byte("\n"), final(1, 1)...))
	must(t, err)
	must(t, g.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := texts(items(t, ReaderConfig{Dir: dir}))
	runtime.ReadMemStats(&after)
	want := []string{fmt.Sprintf("line is too long at 1:0, %d", 200<<20+1), string(final(1, 1))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestReaderRefusesLinksAndPipes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		plant func(path string) error
	}{
		{"a link", func(path string) error { return os.Symlink("/etc/passwd", path) }},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"a segment longer than any", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := planted(t)
			must(t, tt.plant(filepath.Join(dir, sessionsDir, testID, segmentName(1))))
			r, err := OpenReader(ReaderConfig{Dir: dir, Session: testID})
			must(t, err)
			defer r.Close()
			if item, err := r.Next(); err == nil || err == io.EOF {
				t.Errorf("Next = %q, %v, want an error", item.Line, err)
			}
		})
	}
}

func TestSegmentNumbers(t *testing.T) {
	for name, want := range map[string]uint32{
		"00000001.jsonl": 1, "12345678.jsonl": 12345678, "123456789.jsonl": 123456789,
		"00000000.jsonl": 0, "1.jsonl": 0, "000000001.jsonl": 0, "99999999999.jsonl": 0, "0000000x.jsonl": 0, "+0000001.jsonl": 0, "00000001": 0, "00000001.jsonl.gz": 0,
	} {
		if got, ok := segmentNo(name); ok != (want != 0) || ok && got != want {
			t.Errorf("segmentNo(%q) = %d, %v, want %d", name, got, ok, want)
		}
	}
}

func TestRecordID(t *testing.T) {
	for line, want := range map[string]string{
		string(final(1, 0)):             callID(1),
		string(intent(2)):               callID(2),
		`{"line":"context","host":"h"}`: "",
		`{"v":1,"record_id":"no end`:    "",
		`{"v":1,"record_id":7}`:         "",
		``:                              "",
	} {
		if got := string(RecordID([]byte(line))); got != want {
			t.Errorf("RecordID(%q) = %q, want %q", line, got, want)
		}
	}
}

// FuzzReader puts foreign bytes into two segments: every whole sealed line
// between line feeds is returned, in order, and nothing else counts as
// intact; all bytes are accounted for.
func FuzzReader(f *testing.F) {
	f.Add(final(1, 1), final(2, 2))
	f.Add(append(final(1, 1), "torn"...), append(appendRepeat(nil, 1), final(1, 1)...))
	f.Add([]byte("\n\n{}\n"), appendRepeat(nil, 2))
	f.Add(append(appendRepeat(nil, 7), final(1, 1)...), append(appendRepeat(nil, 1), final(1, 3)...))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		m := newMemFS()
		for _, dir := range []string{"/spool", "/spool/sessions", filepath.Dir(segment1)} {
			must(t, m.Mkdir(dir, 0o700))
		}
		dir := fileOf(t, m, filepath.Dir(segment1))
		var want []string
		for i, data := range [][]byte{a, b} {
			n := m.node(false, 0o600)
			n.data = data
			dir.names[segmentName(uint32(i+1))] = n
			for line := range bytes.SplitAfterSeq(data, []byte("\n")) {
				text, whole := bytes.CutSuffix(line, []byte("\n"))
				if whole && audit.Check(text) && len(text) <= audit.MaxLine {
					want = append(want, string(text))
				}
			}
		}
		var got []string
		var length int64
		for _, i := range items(t, ReaderConfig{Dir: "/spool", FS: m}) {
			if i.Damage == Intact || i.Damage == Conflicted {
				got = append(got, string(i.Line))
			}
			length += i.Length
		}
		first, _, _ := bytes.Cut(b, []byte("\n"))
		_, repeats := repeatFrom(first)
		if repeats {
			// Repeated lines are returned once.
			want, got = distinct(want), distinct(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		if repeats {
			return
		}
		tail := len(b) - (bytes.LastIndexByte(b, '\n') + 1)
		if all := int64(len(a) + len(b) - tail); length != all {
			t.Errorf("items cover %d bytes of %d", length, all)
		}
	})
}

func distinct(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

func BenchmarkReader(b *testing.B) {
	line := sized(400)
	segment := bytes.Repeat(line, segmentSize/len(line))
	dir := planted(b, segment, segment, segment, segment)
	b.SetBytes(int64(4 * len(segment)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := OpenReader(ReaderConfig{Dir: dir, Session: testID})
		must(b, err)
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		must(b, r.Close())
	}
}
