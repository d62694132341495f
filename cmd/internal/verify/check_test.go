package verify

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	evidence "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"

	"github.com/google/go-cmp/cmp"
)

// TestSessionThatEnds has a session continue and end after it has been read,
// but before its state is read again.
func TestSessionThatEnds(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, now := t.TempDir(), time.Now()
	r := audit.Record{Kind: audit.KindSessionStart, RecordID: audit.NewID(now), SessionID: audit.NewID(now), TS: now, Duration: -1}
	s, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, r.SessionID)
	must(err)
	write := func(line []byte) {
		t.Helper()
		_, err := s.Append(line, true)
		must(err)
	}
	write(audit.AppendRecord(nil, &r))
	r.Kind, r.RecordID, r.CallNo, r.Seq, r.Method, r.Tool = audit.KindCall, audit.NewID(now), 1, 1, "tools/call", "tool"
	write(audit.AppendIntent(nil, &r))

	c := newCheck(spool.Entry{ID: r.SessionID, State: spool.Live, Segments: []uint32{1}}, nil, false)
	c.run(dir, nil, func() bool { return false }, func() (spool.State, error) {
		r.Outcome = audit.OutcomeOK
		write(audit.AppendRecord(nil, &r))
		end := audit.Record{Kind: audit.KindSessionEnd, RecordID: audit.NewID(now), SessionID: r.SessionID, TS: now, Seq: 2, Duration: -1}
		write(audit.AppendRecord(nil, &end))
		must(s.Close())
		return spool.Ended, nil
	})
	want := report{SessionID: r.SessionID, State: "ended", Machine: "test", FirstSegment: 1, Lines: 4, Records: 3, Calls: 1}
	if diff := cmp.Diff(want, c.report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestSessionThatGoesOn: a call of a live session has time for its record, and its
// writer may be in the middle of a line. Once it is dead, both are findings.
func TestSessionThatGoesOn(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	r := audit.Record{Kind: audit.KindSessionStart, RecordID: audit.NewID(now), SessionID: audit.NewID(now), TS: now, Duration: -1}
	s, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, r.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lines := audit.AppendRecord(nil, &r)
	r.Kind, r.RecordID, r.CallNo, r.Seq, r.Method, r.Tool = "", audit.NewID(now), 1, 1, "tools/call", "tool"
	if _, err := s.Append(audit.AppendIntent(lines, &r), true); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "sessions", r.SessionID, "00000001.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(`{"v":1,"kind":"call"`)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[spool.State]int{spool.Live: 0, spool.Dead: 2} {
		c := newCheck(spool.Entry{ID: r.SessionID, State: state, Segments: []uint32{1}}, nil, false)
		c.run(dir, nil, func() bool { return false }, func() (spool.State, error) { return state, nil })
		if c.report.Error != "" || c.report.Running != 1 || len(c.report.Problems) != want {
			t.Errorf("%v: report %+v, want a call that runs, %d problems", state, c.report, want)
		}
	}
}

// TestSessionThatBegins has a session write its first record after it has been read,
// and then the next one begin, which names it.
func TestSessionThatBegins(t *testing.T) {
	dir := t.TempDir()
	h, other := evidencetest.NewHost("build-7", time.Now()), evidencetest.NewHost("build-8", time.Now().Add(time.Hour))
	first, next, last := h.Session(evidencetest.Plan{}), h.Session(evidencetest.Plan{}), other.Session(evidencetest.Plan{})
	create := func(s *evidencetest.Session) *spool.Session {
		t.Helper()
		w, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	write := func(w *spool.Session, s *evidencetest.Session) {
		t.Helper()
		for _, line := range s.Lines {
			if _, err := w.Append(append(bytes.Clone(line), '\n'), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(began func()) (string, error) {
		t.Helper()
		entry := func(s *evidencetest.Session) spool.Entry {
			return spool.Entry{ID: s.ID, State: spool.Live, Segments: []uint32{1}}
		}
		var out bytes.Buffer
		cfg := Config{Dir: dir, Stdout: &out, Stderr: io.Discard, Evidence: evidence.Config{Hosts: []string{h.Key, other.Key}}}
		err := Run(t.Context(), cfg, []spool.Entry{entry(first), entry(last)}, func() ([]string, error) {
			began()
			return []string{first.ID, next.ID, last.ID}, nil
		})
		return out.String(), err
	}
	w := create(first)
	write(create(last), last)
	if out, err := run(func() {
		write(w, first)
		write(create(next), next)
	}); err != nil || strings.Contains(out, "tampered") {
		t.Errorf("Run = %v\n%s", err, out)
	}
	// Its records are gone, and its writer is alive.
	if err := os.Truncate(filepath.Join(dir, "sessions", first.ID, "00000001.jsonl"), 0); err != nil {
		t.Fatal(err)
	}
	if out, err := run(func() {}); !errors.As(err, new(cli.ExitError)) || !strings.Contains(out, "seq 0 deleted: session "+next.ID) {
		t.Errorf("Run = %v\n%s", err, out)
	}
}

// TestSyncedEnd cuts the end of a session off while its writer is alive, and before it
// has more than the lines that are being written.
func TestSyncedEnd(t *testing.T) {
	dir := t.TempDir()
	h := evidencetest.NewHost("build-7", time.Now())
	s := h.Session(evidencetest.Plan{Calls: 3, End: evidencetest.Running})
	w, err := spool.Create(spool.Config{Dir: dir, Durability: spool.OS, Machine: "test"}, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, line := range s.Lines {
		if r, err := audit.Parse(bytes.Clone(line)); err == nil && r.Kind == audit.KindCall {
			line = append(audit.AppendIntent(nil, &r), line...)
		}
		if _, err := w.Append(append(bytes.Clone(line), '\n'), true); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "sessions", s.ID, "00000001.jsonl")
	whole, err := os.ReadFile(name)
	if err == nil {
		synced := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1), uint32(len(whole)))
		err = os.WriteFile(filepath.Join(dir, "sessions", s.ID, "durable"), synced, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for _, tt := range []struct {
		name string
		left []byte
		want string
	}{
		{"whole", whole, ""},
		{"a line is being written", append(bytes.Clone(whole), '{'), ""},
		{"without its last line", whole[:last], fmt.Sprintf("00000001.jsonl:%d the session's end is missing: its proxy has synced up to 00000001.jsonl:%d", last, len(whole))},
		{"empty", nil, fmt.Sprintf("00000001.jsonl:0 the session's end is missing: its proxy has synced up to 00000001.jsonl:%d", len(whole))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(name, tt.left, 0o600); err != nil {
				t.Fatal(err)
			}
			e, _ := spool.Look(dir, s.ID)
			var out bytes.Buffer
			cfg := Config{Dir: dir, Stdout: &out, Stderr: io.Discard, Evidence: evidence.Config{Hosts: []string{h.Key}, Partial: true, Now: time.Now()}}
			err := Run(t.Context(), cfg, []spool.Entry{e}, func() ([]string, error) { return []string{s.ID}, nil })
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(out.String(), tt.want)) {
				t.Errorf("Run = %v, want %q\n%s", err, tt.want, &out)
			}
		})
	}
}

// TestPipe verifies what comes through a pipe, which cannot be read a second time:
// a session whose records are repeated much later.
func TestPipe(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Now().Add(-time.Hour))
	var export []byte
	lines := h.Session(evidencetest.Plan{Calls: 2000, Every: 100}).Lines
	for range 2 {
		for _, line := range lines {
			export = append(append(export, line...), '\n')
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(export)
		w.Close()
		written <- err
	}()
	var out bytes.Buffer
	cfg := Config{Stdout: &out, Stderr: io.Discard, Evidence: evidence.Config{Hosts: []string{h.Key}}}
	if err := RunFile(t.Context(), cfg, fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil {
		t.Errorf("RunFile = %v\n%s", err, &out)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestOtherFiles verifies files that have no record on each line.
func TestOtherFiles(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Now().Add(-time.Hour))
	lines := h.Session(evidencetest.Plan{Calls: 20}).Lines
	whole := append(bytes.Join(lines, []byte("\n")), '\n')
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(whole); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var wide []byte
	for _, c := range utf16.Encode([]rune("\ufeff" + string(whole))) {
		wide = binary.LittleEndian.AppendUint16(wide, c)
	}
	flipped := bytes.Clone(whole)
	flipped[0] = '['
	for name, tt := range map[string]struct {
		text []byte
		code int
		want string
	}{
		"compressed":              {packed.Bytes(), cli.ExitUnclear, "unpack or convert it"},
		"UTF-16":                  {wide, cli.ExitUnclear, "unpack or convert it"},
		"an array":                {slices.Concat([]byte("["), bytes.Join(lines, []byte(",")), []byte("]")), cli.ExitUnclear, "it is a JSON array"},
		"an array of lines":       {slices.Concat([]byte("[\n"), bytes.Join(lines, []byte(",\n")), []byte("\n]\n")), cli.ExitUnclear, "it is a JSON array"},
		"ClickHouse's escapes":    {bytes.ReplaceAll(whole, []byte(`\`), []byte(`\\`)), cli.ExitUnclear, "line 12 is a record with other backslashes"},
		"JSON around the records": {bytes.ReplaceAll(whole, []byte(`{"v"`), []byte(`{"raw":{"v"`)), cli.ExitUnclear, "with one record on each line as it was written"},
		"many other lines":        {bytes.Repeat([]byte("x\n"), 1500), cli.ExitUnclear, "1500 lines without a whole record"},
		"a byte of it is flipped": {flipped, cli.ExitFound, "seq 0 edited"},
	} {
		file := filepath.Join(t.TempDir(), "export")
		if err := os.WriteFile(file, tt.text, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := RunFile(t.Context(), Config{Stdout: &out, Stderr: io.Discard, Evidence: evidence.Config{Hosts: []string{h.Key}}}, file)
		var exit cli.ExitError
		if !errors.As(err, &exit) || exit.Code != tt.code || strings.Count(out.String()+fmt.Sprint(exit.Err), tt.want) != 1 {
			t.Errorf("%s: RunFile = %v\n%s", name, err, &out)
		}
	}
}

// TestCopiedLines verifies a file that a program copied with other ends of lines.
func TestCopiedLines(t *testing.T) {
	h := evidencetest.NewHost("build-7", time.Now().Add(-time.Hour))
	lines := h.Session(evidencetest.Plan{Calls: 20}).Lines
	for name, text := range map[string][]byte{
		"CRLF":                    append(bytes.Join(lines, []byte("\r\n")), "\r\n"...),
		"CRLF, and empty lines":   append(bytes.Join(lines, []byte("\r\n\r\n")), "\r\n"...),
		"no line feed at its end": bytes.Join(lines, []byte("\n")),
	} {
		file := filepath.Join(t.TempDir(), "export.ndjson")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cfg := Config{Stdout: &out, Stderr: io.Discard, Evidence: evidence.Config{Hosts: []string{h.Key}}}
		if err := RunFile(t.Context(), cfg, file); err != nil {
			t.Errorf("%s: RunFile = %v\n%s", name, err, &out)
		}
	}
}

// TestInterruptedPipe has a pipe whose writer writes nothing: a signal must end the
// wait for it.
func TestInterruptedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- RunFile(ctx, Config{Stdout: io.Discard, Stderr: io.Discard}, fmt.Sprintf("/dev/fd/%d", r.Fd()))
	}()
	cancel()
	select {
	case err := <-done:
		if err == nil || err.Error() != "verifying: interrupted" {
			t.Errorf("RunFile = %v, want interrupted", err)
		}
	case <-time.After(time.Minute):
		t.Error("RunFile waits for the pipe")
	}
}
