package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

// lineOf returns the index of the nth line that contains all the given strings.
func lineOf(t *testing.T, lines [][]byte, nth int, parts ...string) int {
	t.Helper()
	for i, line := range lines {
		has := true
		for _, p := range parts {
			has = has && bytes.Contains(line, []byte(p))
		}
		if has {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
	t.Fatalf("no line has %q in it", parts)
	return -1
}

func TestVerifyFinds(t *testing.T) {
	intent := []string{`"line":"intent"`, `"call_no":2`}
	final := []string{`"kind":"call"`, `"call_no":2`}
	remove := func(parts ...string) func(*testing.T, [][]byte) [][]byte {
		return func(t *testing.T, lines [][]byte) [][]byte {
			i := lineOf(t, lines, 0, parts...)
			return slices.Delete(lines, i, i+1)
		}
	}
	repeat := func(parts ...string) func(*testing.T, [][]byte) [][]byte {
		return func(t *testing.T, lines [][]byte) [][]byte {
			i := lineOf(t, lines, 0, parts...)
			return slices.Insert(lines, i+1, lines[i])
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, [][]byte) [][]byte
		want   []string // problems, without their places
	}{
		{"it is content with a whole session", func(_ *testing.T, l [][]byte) [][]byte { return l }, nil},
		{"it finds a record that is not there", remove(final...), []string{"seq 2 is missing before this line", "call 2 has no record"}},
		{"it finds an intent that is not there", remove(intent...), []string{"call 2 has a record and no intent", "call_no 2 is missing before this line"}},
		{"it finds two records that are not there", func(t *testing.T, l [][]byte) [][]byte {
			return remove(`"kind":"call"`, `"call_no":3`)(t, remove(final...)(t, l))
		}, []string{"seq 2 to 3 are missing before this line", "call 2 has no record", "call 3 has no record"}},
		{"it finds a duplicate record", repeat(final...), []string{"seq 2 is repeated or out of order", "call 2 has a record already"}},
		{"it takes an intent that is written again for one", repeat(intent...), nil},
		{"it finds a start that is not there", remove(`"session_start"`), []string{"seq 0 is missing before this line"}},
		{"it finds a flipped bit", func(t *testing.T, l [][]byte) [][]byte {
			l[lineOf(t, l, 0, intent...)][40] ^= 4
			return l
		}, []string{"line fails its checksum: 219 bytes", "call 2 has a record and no intent", "call_no 2 is missing before this line"}},
		{"it finds a line of another session", func(t *testing.T, l [][]byte) [][]byte {
			r := audit.Record{Kind: audit.KindAnomaly, SessionID: "another", Seq: 5, TS: noon}
			return slices.Insert(l, len(l)-1, audit.AppendRecord(nil, &r))
		}, []string{`line of another session, "another"`}},
		{"it counts lines of another session, as in a directory that was renamed", func(t *testing.T, l [][]byte) [][]byte {
			for i, line := range l {
				if at := bytes.Index(line, []byte(`"session_id":"`)); at >= 0 {
					b := bytes.Clone(line[:bytes.LastIndex(line, []byte(`,"crc":`))])
					b[at+len(`"session_id":"`)] ^= 1
					l[i] = audit.Seal(b, 0)
				}
			}
			return l
		}, []string{`6 lines of another session, "11a1f8d3-ea00-7000-8000-000000000000", the first of them here`,
			"session is dead and not recovered: the next auditproxy on its host does it, or auditproxy recover; 4 calls without a record"}},
		{"it finds a line that is nothing", func(t *testing.T, l [][]byte) [][]byte {
			return slices.Insert(l, 1, audit.Seal([]byte(`{"a":1}`), 0))
		}, []string{"line is neither a record nor says what it is"}},
		{"it passes over lines that it does not know", func(t *testing.T, l [][]byte) [][]byte {
			return slices.Insert(l, 1, audit.Seal([]byte(`{"line":"novelty","v":1}`), 0))
		}, nil},
		{"it finds a session without an end", remove(`"session_end"`),
			[]string{"session is dead and not recovered: the next auditproxy on its host does it, or auditproxy recover"}},
		{"it finds a torn line", func(t *testing.T, l [][]byte) [][]byte {
			l[len(l)-1] = l[len(l)-1][:9]
			return l
		}, []string{"line is torn: 9 bytes", "session is dead and not recovered: the next auditproxy on its host does it, or auditproxy recover"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			w := writeFourCalls(t, dir)
			w.edit(func(b []byte) []byte {
				lines := bytes.SplitAfter(b, []byte("\n"))
				return bytes.Join(tt.change(t, lines[:len(lines)-1]), nil)
			})
			checkProblems(t, runApp(t, dir, "verify", "--damage-only"), tt.want)
		})
	}
}

func writeFourCalls(t *testing.T, dir string) *logWriter {
	t.Helper()
	w := startSession(t, dir, noon)
	for i := range 4 {
		w.done(audit.Record{TS: after(time.Duration(i) * time.Second), Tool: "tool", Duration: time.Millisecond})
	}
	w.end(after(time.Minute))
	return w
}

// checkProblems compares the problems of one session, and the exit code.
func checkProblems(t *testing.T, out string, want []string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(out) {
		if place, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Contains(place, ".jsonl:") {
			got = append(got, strings.TrimSpace(text))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s\n%s", diff, out)
	}
	if failed := strings.HasSuffix(out, "exit 1\n"); failed != (len(want) > 0) {
		t.Errorf("with %d problems:\n%s", len(want), out)
	}
}

func TestVerifyAfterRetention(t *testing.T) {
	dir := t.TempDir()
	w := writeFourCalls(t, dir)
	w.edit(func(b []byte) []byte { return splitSegments(t, w, b, 3) })
	checkProblems(t, runApp(t, dir, "verify", "--damage-only"), nil)

	// A call may have its intent in a file that was removed.
	if err := os.Remove(w.segment(1)); err != nil {
		t.Fatal(err)
	}
	out := runApp(t, dir, "verify", "--damage-only")
	checkProblems(t, out, nil)
	if !strings.Contains(out, "checked from 00000002.jsonl on") {
		t.Errorf("nothing is said of the file that was removed:\n%s", out)
	}

	if err := os.Remove(w.segment(3)); err != nil {
		t.Fatal(err)
	}
	if out := runApp(t, dir, "verify", "--damage-only"); !strings.Contains(out, "segments are missing: 1") || !strings.HasSuffix(out, "exit 1\n") {
		t.Errorf("a file in the middle is not missed:\n%s", out)
	}
}

func TestVerifyListsSomeProblems(t *testing.T) {
	const maxProblems = 100
	dir := t.TempDir()
	w := writeFourCalls(t, dir)
	w.edit(func(b []byte) []byte { return append(bytes.Repeat([]byte("damage\n"), maxProblems+7), b...) })
	if out := runApp(t, dir, "verify", "--damage-only"); strings.Count(out, "line fails") != maxProblems || !strings.Contains(out, "and 7 more") {
		t.Errorf("%d problems are listed:\n%s", strings.Count(out, "line fails"), out)
	}
}

func TestVerifyCannotTell(t *testing.T) {
	dir := t.TempDir()
	w := writeFourCalls(t, dir)
	if err := os.Rename(w.segment(1), w.segment(1)+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.segment(1)+".away", w.segment(1)); err != nil {
		t.Fatal(err)
	}
	if out := runApp(t, dir, "verify", "--damage-only"); !strings.Contains(out, "not read") || !strings.Contains(out, "00000001.jsonl: ") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("a file that cannot be read: %s", out)
	}
	// A problem elsewhere is certain all the same.
	v := startSession(t, dir, after(time.Hour))
	v.end(time.Time{})
	if out := runApp(t, dir, "verify", "--damage-only"); !strings.HasSuffix(out, "exit 1\n") {
		t.Errorf("a dead session beside it: %s", out)
	}
}

func TestVerifyUnknownIsInOrder(t *testing.T) {
	dir := t.TempDir()
	w := startSession(t, dir, noon)
	r := w.intent(audit.Record{TS: after(time.Second), Tool: "tool"})
	r.Outcome, r.ErrorType, r.Recovered, r.Duration = audit.OutcomeUnknown, audit.ErrProxyDied, true, -1
	w.record(r)
	w.end(after(time.Minute))
	out := runApp(t, dir, "verify", "--damage-only")
	checkProblems(t, out, nil)
	if want := fmt.Sprintf("%s ended        4        3        1        1  ok\n", w.id); !strings.Contains(out, want) {
		t.Errorf("verify says\n%swant a line\n%s", out, want)
	}
}
