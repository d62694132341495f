package exportfile_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/cmd/internal/exportfile"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

var start = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func row(t testing.TB, r audit.Record) receiver.Record {
	t.Helper()
	return receiver.Record{Row: ingesttest.Row(t, r, ingest.Source{}), Arrived: start.Add(time.Duration(r.Seq) * time.Millisecond)}
}

func records(t testing.TB, n int) []receiver.Record {
	t.Helper()
	var list []receiver.Record
	for i := range n {
		r := ingesttest.Call(i, "list_keys", start)
		r.RecordID = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012d", i)
		list = append(list, row(t, r))
	}
	return list
}

func texts(list []receiver.Record) []string {
	var all []string
	for _, r := range list {
		all = append(all, r.Raw)
	}
	return all
}

// memory is a source of records that are in order.
type memory struct {
	list []receiver.Record
	page int
	read func(n int) error // after so many records, nil: nothing
	down []error           // of the next calls of Settled
	late time.Duration     // how long ago that is

	damage  error // of the record with a number, in a page of its own; nil: none
	damaged uint64
}

func (m *memory) Settled(_ context.Context, now time.Time) (time.Time, error) {
	now = now.Add(-m.late)
	if len(m.down) > 0 {
		err := m.down[0]
		m.down = m.down[1:]
		return now, err
	}
	return now, nil
}

func (m *memory) after(p source.Position, upto time.Time) []receiver.Record {
	i := 0
	if !p.Arrived.IsZero() {
		i, _ = slices.BinarySearchFunc(m.list, p, func(r receiver.Record, p source.Position) int {
			if p.Session == "" {
				return r.Arrived.Compare(p.Arrived)
			}
			if r.Arrived.After(p.Arrived) {
				return 1
			}
			return -1
		})
	}
	return slices.DeleteFunc(slices.Clone(m.list[i:]), func(r receiver.Record) bool { return r.Arrived.After(upto) })
}

func (m *memory) Count(_ context.Context, after source.Position, upto time.Time) (uint64, time.Time, error) {
	return uint64(len(m.after(after, upto))), time.Time{}, nil
}

func (m *memory) Read(_ context.Context, after source.Position, upto time.Time, do func([]receiver.Record) error, unreadable func(source.Position, error) error) error {
	n := 0
	for list := range slices.Chunk(m.after(after, upto), max(m.page, 1)) {
		var err error
		if m.damage != nil && list[0].Record.Seq == m.damaged {
			err = unreadable(source.After(&list[0]), m.damage)
		} else {
			err = do(list)
		}
		if err != nil {
			return err
		}
		n += len(list)
		if m.read != nil {
			if err := m.read(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func format(t testing.TB, name string) exportfile.Format {
	t.Helper()
	f, err := exportfile.NewFormat(name, func(dst []byte, r *receiver.Record) ([]byte, error) {
		if r.Record.Kind == audit.KindCheckpoint {
			return dst, nil
		}
		if r.Record.Tool == "broken" {
			return dst, errors.New("cannot be encoded")
		}
		return fmt.Appendf(dst, `{"uid":%q}`, r.Record.RecordID), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func export(t testing.TB, c exportfile.Config) (exportfile.Result, error) {
	t.Helper()
	if c.Refused == nil {
		c.Refused = func(id string, err error) { t.Errorf("%s is refused: %v", id, err) }
	}
	return exportfile.Run(t.Context(), c)
}

// ids are the ids of the records of an export.
func ids(t testing.TB, name, file string) (list []string) {
	t.Helper()
	if name == "parquet" {
		ext := filepath.Ext(file)
		for n := 1; ; n++ {
			one := file
			if n > 1 {
				one = fmt.Sprintf("%s.%d%s", strings.TrimSuffix(file, ext), n, ext)
			}
			if _, err := os.Stat(one); err != nil {
				return list
			}
			rows, err := parquet.ReadFile[struct {
				ID  string `parquet:"record_id"`
				Raw string `parquet:"raw"`
			}](one)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if !strings.Contains(r.Raw, r.ID) {
					t.Errorf("record %s has the bytes %s", r.ID, r.Raw)
				}
				list = append(list, r.ID)
			}
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		t.Errorf("%s ends within a line", file)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if name == "csv" && i == 0 || line == "" {
			continue
		}
		_, id, found := strings.Cut(line, "019e8b1c-4a10-7aaa-8bbb-")
		if !found {
			t.Fatalf("line %d has no id: %s", i+1, line)
		}
		list = append(list, "019e8b1c-4a10-7aaa-8bbb-"+id[:12])
	}
	return list
}

func idsOf(list []receiver.Record) []string {
	var all []string
	for _, r := range list {
		all = append(all, r.Record.RecordID)
	}
	return all
}

// TestKilledAtEveryPage copies the files of an export after each page, as a killed
// process leaves them, and continues the copies: each record is there once, in
// order.
func TestKilledAtEveryPage(t *testing.T) {
	list := records(t, 40)
	large := ingesttest.Call(40, "large", start)
	large.RecordID = "019e8b1c-4a10-7aaa-8bbb-000000000040"
	large.Args = audit.JSON(`{"a":"` + strings.Repeat("x", 200_000) + `"}`)
	for i := range 60 { // enough for a mark on the way
		large.Seq = uint64(40 + i)
		large.RecordID = fmt.Sprintf("019e8b1c-4a10-7aaa-8bbb-%012d", 40+i)
		list = append(list, row(t, large))
	}
	for _, name := range exportfile.Names() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "records."+name)
			var copies []string
			src := &memory{list: list, page: 5, read: func(int) error {
				to := t.TempDir()
				copies = append(copies, to)
				return os.CopyFS(to, os.DirFS(dir))
			}}
			c := exportfile.Config{Source: src, Format: format(t, name), File: file, PartBytes: 1 << 20}
			res, err := export(t, c)
			if err != nil || res.Written != uint64(len(list)) {
				t.Fatalf("%+v, %v", res, err)
			}
			if diff := cmp.Diff(idsOf(list), ids(t, name, file)); diff != "" {
				t.Fatalf("records (-want +got):\n%s", diff)
			}
			for i, to := range copies {
				c.Source, c.File, c.Resume = &memory{list: list, page: 7}, filepath.Join(to, "records."+name), true
				res, err := export(t, c)
				if err != nil {
					t.Fatalf("after page %d: %v", i+1, err)
				}
				if diff := cmp.Diff(idsOf(list), ids(t, name, c.File)); diff != "" {
					t.Errorf("after page %d (-want +got):\n%s", i+1, diff)
				}
				if last := i == len(copies)-1; last && name != "parquet" && res.Written == uint64(len(list)) {
					t.Error("there was no mark on the way")
				}
				// Nothing new, then more.
				if res, err = export(t, c); err != nil || res.Written != 0 {
					t.Errorf("again: %+v, %v", res, err)
				}
			}
		})
	}
}

// TestResumeRefuses checks that only the file of a mark is continued, and only as
// it was begun.
func TestResumeRefuses(t *testing.T) {
	list := records(t, 3)
	for _, tt := range []struct {
		name   string
		format string
		change func(t *testing.T, file string, c *exportfile.Config) error
		want   string // "": continued
	}{
		{"nothing", "ndjson", func(*testing.T, string, *exportfile.Config) error { return nil }, ""},
		{"lines after the mark", "ndjson", func(_ *testing.T, file string, _ *exportfile.Config) error {
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("{}\n{\"v")
			return errors.Join(err, f.Close())
		}, ""},
		{"an empty file and no mark", "ndjson", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return errors.Join(os.Remove(file+".mark"), os.Truncate(file, 0))
		}, ""},
		{"another format", "ndjson", func(t *testing.T, _ string, c *exportfile.Config) error {
			c.Format = format(t, "csv")
			return nil
		}, "begun with --format ndjson"},
		{"another filter", "ndjson", func(_ *testing.T, _ string, c *exportfile.Config) error {
			c.When = "tool == 'x'"
			return nil
		}, `begun with --when ""`},
		{"a mark without its file", "ndjson", func(_ *testing.T, file string, _ *exportfile.Config) error { return os.Remove(file) }, "is not there, though its mark is"},
		{"a file without its mark", "ndjson", func(_ *testing.T, file string, _ *exportfile.Config) error { return os.Remove(file + ".mark") }, "without a mark"},
		{"another file", "ndjson", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return os.WriteFile(file, bytes.Repeat([]byte("x\n"), 1000), 0o600)
		}, "not the one that its mark was written for"},
		{"a shorter file", "csv", func(_ *testing.T, file string, _ *exportfile.Config) error { return os.Truncate(file, 10) }, "not the one"},
		{"a mark that is none", "csv", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return os.WriteFile(file+".mark", []byte("{}"), 0o600)
		}, "not a mark of this version"},
		{"no --resume", "ndjson", func(_ *testing.T, _ string, c *exportfile.Config) error {
			c.Resume = false
			return nil
		}, "continue it with --resume"},
		{"a link", "ndjson", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return errors.Join(os.Rename(file, file+".other"), os.Symlink(file+".other", file))
		}, "symbolic link"},
		{"Parquet", "parquet", func(*testing.T, string, *exportfile.Config) error { return nil }, ""},
		{"Parquet, killed before the name", "parquet", func(_ *testing.T, file string, _ *exportfile.Config) error { return os.Rename(file, file+".part") }, ""},
		{"Parquet, killed in the next file", "parquet", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return os.WriteFile(file+".part", []byte("PAR1"), 0o600)
		}, ""},
		{"Parquet without its file", "parquet", func(_ *testing.T, file string, _ *exportfile.Config) error { return os.Remove(file) }, "is not there"},
		{"Parquet that is another", "parquet", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return os.WriteFile(file, []byte("PAR1"), 0o600)
		}, "not the one"},
		{"Parquet whose next file exists", "parquet", func(_ *testing.T, file string, _ *exportfile.Config) error {
			return os.WriteFile(strings.TrimSuffix(file, ".x")+".2.x", nil, 0o600)
		}, "exists"},
		{"Parquet, no --resume", "parquet", func(_ *testing.T, _ string, c *exportfile.Config) error {
			c.Resume = false
			return nil
		}, "continue it with --resume"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "records.x")
			c := exportfile.Config{Source: &memory{list: list[:2]}, Format: format(t, tt.format), File: file}
			if _, err := export(t, c); err != nil {
				t.Fatal(err)
			}
			c.Resume = true
			if err := tt.change(t, file, &c); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(file)
			c.Source = &memory{list: list}
			_, err := export(t, c)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(idsOf(list), ids(t, tt.format, file)); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Errorf("the file was changed from %q to %q", before, after)
			}
		})
	}
}

// TestSelection checks which records are written.
func TestSelection(t *testing.T) {
	list := records(t, 10)
	for _, tt := range []struct {
		name         string
		since, until time.Duration
		match        bool
		want         []string
	}{
		{"all", 0, 0, false, idsOf(list)},
		{"since", 7 * time.Millisecond, 0, false, idsOf(list[7:])},
		{"until", 0, 2 * time.Millisecond, false, idsOf(list[:3])},
		{"a filter", 2 * time.Millisecond, 5 * time.Millisecond, true, idsOf([]receiver.Record{list[2], list[4]})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := exportfile.Config{Source: &memory{list: list, page: 3}, Format: format(t, "ndjson"), File: filepath.Join(t.TempDir(), "records")}
			if tt.since > 0 {
				c.Since = start.Add(tt.since)
			}
			if tt.until > 0 {
				c.Until = start.Add(tt.until)
			}
			if tt.match {
				c.Match = func(r *receiver.Record) bool { return r.Record.Seq%2 == 0 }
			}
			if _, err := export(t, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, ids(t, "ndjson", c.File)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpto checks that an export has what arrived before it began, and tells what it
// leaves out because it is not settled.
func TestUpto(t *testing.T) {
	for _, tt := range []struct {
		name  string
		late  time.Duration
		until time.Duration // before the start; 0: none
		left  bool
	}{
		{"a collector that runs", 5 * time.Second, 0, false},
		{"one that is slow", 15 * time.Second, 0, true},
		{"one that died", 2 * time.Minute, 0, true},
		{"one that died after what was asked for", 2 * time.Minute, time.Hour, false},
		{"one that died before", 2 * time.Minute, time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				last := now.Add(-tt.until) // of what was asked for
				list := records(t, 2)
				list[0].Arrived, list[1].Arrived = last.Add(-time.Second), last.Add(time.Millisecond)
				c := exportfile.Config{Source: &memory{list: list, late: tt.late}, Format: format(t, "ndjson"), Out: io.Discard}
				if tt.until > 0 {
					c.Until = last
				}
				res, err := export(t, c)
				if left := !res.Upto.IsZero(); err != nil || left != tt.left || left && !res.Upto.Before(last) {
					t.Errorf("the export is %+v, %v", res, err)
				}
				if tt.late < time.Minute && !tt.left && res.Written < 1 {
					t.Error("it lacks a record that arrived before it began")
				}
				if time.Since(now) > 11*time.Second || tt.late > time.Minute && time.Since(now) > time.Second {
					t.Errorf("it took %v", time.Since(now))
				}
			})
		})
	}
}

// TestFollow checks that records which arrive later are written, also after the
// store was away, and that a full output ends the export.
func TestFollow(t *testing.T) {
	list := records(t, 4)
	src := &memory{list: list[:2], down: []error{nil, errors.New("away")}}
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waited := 0
	done := make(chan error, 1)
	go func() {
		_, err := exportfile.Run(ctx, exportfile.Config{Source: src, Format: format(t, "ndjson"), Out: in, Follow: true,
			Waiting: func(error) { waited++; src.list = list }, Refused: func(string, error) {}})
		done <- err
	}()
	got := make([]byte, len(strings.Join(texts(list), "\n"))+1)
	if _, err := io.ReadFull(out, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(texts(list), "\n")+"\n", string(got)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	cancel()
	if err := <-done; err != nil || waited != 1 {
		t.Errorf("it ended with %v and waited %d times", err, waited)
	}
	full := syscall.ENOSPC
	_, err := exportfile.Run(t.Context(), exportfile.Config{Source: &memory{list: list}, Format: format(t, "ndjson"), Out: failing{full}, Follow: true,
		Waiting: func(error) { t.Error("it waits for a full output") }, Refused: func(string, error) {}})
	if want := "free space there, or inodes if df -i shows that none are left"; !errors.Is(err, full) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %v: %s", err, full, want)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestRefused checks that a record which the format cannot have is named, and the
// others are written.
func TestRefused(t *testing.T) {
	list := records(t, 3)
	broken := list[1].Record
	broken.Tool = "broken"
	list[1] = row(t, broken)
	list[2].Record.Kind = audit.KindCheckpoint
	var out bytes.Buffer
	var refused []string
	res, err := export(t, exportfile.Config{Source: &memory{list: list}, Format: format(t, "ocsf"), Out: &out,
		Refused: func(id string, _ error) { refused = append(refused, id) }})
	if err != nil || res.Written != 1 || res.Refused != 1 || res.Without != 1 || !slices.Equal(refused, []string{broken.RecordID}) {
		t.Errorf("%+v, %v, %q", res, err, refused)
	}
}

// TestDamaged checks that a record which is damaged in the store is named, holds up no
// other, and is not named again.
func TestDamaged(t *testing.T) {
	list := records(t, 3)
	for damaged := range list {
		src := &memory{list: list, damage: errors.New("damaged"), damaged: list[damaged].Record.Seq}
		file := filepath.Join(t.TempDir(), "records")
		for _, want := range []exportfile.Result{{Written: 2, Refused: 1}, {}} {
			var named []string
			res, err := export(t, exportfile.Config{Source: src, Format: format(t, "ndjson"), File: file, Resume: true,
				Refused: func(id string, err error) { named = append(named, fmt.Sprint(id, " ", err)) }})
			res.Files = nil
			if diff := cmp.Diff(want, res); err != nil || diff != "" || len(named) != int(want.Refused) {
				t.Errorf("record %d: %v, named %q (-want +got):\n%s", damaged, err, named, diff)
			}
		}
		want := slices.Delete(idsOf(list), damaged, damaged+1)
		if diff := cmp.Diff(want, ids(t, "ndjson", file)); diff != "" {
			t.Errorf("record %d: file (-want +got):\n%s", damaged, diff)
		}
	}
}

// TestSpreadsheet checks that no cell of a hostile record is calculated, and that
// each has the text.
func TestSpreadsheet(t *testing.T) {
	for _, text := range []string{
		"=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "＝1", "＋1", "'=1", "'", "a=1", "", "a,b", `"=1"`, "a\nb", "\xff=",
	} {
		r := ingesttest.Call(1, text, start)
		code := int64(-32600)
		r.ErrorCode = &code
		var out bytes.Buffer
		if _, err := export(t, exportfile.Config{Source: &memory{list: []receiver.Record{row(t, r)}}, Format: format(t, "csv"), Out: &out}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) {
			t.Fatalf("%q: %q, %v", text, rows, err)
		}
		cells := map[string]string{}
		for i, name := range rows[0] {
			cells[name] = rows[1][i]
			if c := rows[1][i]; c != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(strings.TrimSpace(c) + " ")[0]) && name != "error_code" {
				t.Errorf("%q: column %s is %q", text, name, c)
			}
		}
		// encoding/csv reads CR LF as LF; no text here has both.
		if got := strings.TrimPrefix(cells["tool"], "'"); got != strings.ToValidUTF8(text, "\uFFFD") {
			t.Errorf("%q is %q", text, cells["tool"])
		}
		if cells["error_code"] != "-32600" {
			t.Errorf("error_code is %q", cells["error_code"])
		}
	}
}

// TestParquetOfLongTexts checks that a file is smaller than its records where
// these have long texts: pages have no copies of them in their headers.
func TestParquetOfLongTexts(t *testing.T) {
	r := ingesttest.Call(1, "send_keys", start)
	r.Args = audit.JSON(`{"keys":"` + strings.Repeat("x", 200_000) + `"}`)
	long := row(t, r)
	file := filepath.Join(t.TempDir(), "records.parquet")
	if _, err := export(t, exportfile.Config{Source: &memory{list: slices.Repeat([]receiver.Record{long}, 200), page: 50}, Format: format(t, "parquet"), File: file}); err != nil {
		t.Fatal(err)
	}
	i, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if i.Size() > 1<<20 {
		t.Errorf("40 MB of equal texts have %d bytes", i.Size())
	}
}
