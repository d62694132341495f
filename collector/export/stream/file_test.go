package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/stream"
	"auditproxy/sink/spool/disk"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// toFile returns a Writer, and what it logs.
func toFile(t testing.TB, f stream.File) (*stream.Writer, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	return must(t)(stream.NewFile(stream.Config{Encode: raw, Log: zap.New(core)}, f)), logs
}

// written are the lines of a file and those it was before, the oldest first. All
// must be whole.
func written(t testing.TB, path string) []string {
	t.Helper()
	names, err := filepath.Glob(path + ".2*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var all []string
	for _, name := range append(names, path) {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			continue
		}
		if text[len(text)-1] != '\n' {
			t.Errorf("%q ends within a line: %q", name, text[max(0, len(text)-100):])
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return all
}

// once leaves out repeats.
func once(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

func send(t testing.TB, w *stream.Writer, list []receiver.Record) {
	t.Helper()
	if err := w.Send(t.Context(), list); err != nil {
		t.Fatal(err)
	}
}

// TestRotation checks the sizes, number and order of the files.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	list := records(t, 0, 100)
	most := int64(10 * len(list[99].Raw))
	w, _ := toFile(t, stream.File{Path: path, MaxSize: most})
	for i := range 10 {
		send(t, w, list[i*10:i*10+10])
	}
	if diff := cmp.Diff(texts(list), written(t, path)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 11 {
		t.Errorf("%d files, want more", len(names))
	}
	for _, name := range names {
		i, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if i.Mode() != 0o600 || i.Size() > most {
			t.Errorf("%q has mode %v and %d bytes, want 0600 and at most %d", name, i.Mode(), i.Size(), most)
		}
	}
	// A longer event is alone.
	long := []receiver.Record{large(t, 200, int(2*most))}
	send(t, w, long)
	if got := written(t, path); got[len(got)-1] != long[0].Raw {
		t.Error("a long event is not the last line")
	}
}

// TestOldFiles checks which files are removed: old ones of this stream only.
func TestOldFiles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config stream.File
		left   []string
	}{
		{"all are kept", stream.File{}, []string{"20200101T000000.000000000Z", "20200101T000000.000000001Z", "20990101T000000.000000000Z"}},
		{"two are kept", stream.File{Keep: 2}, []string{"20990101T000000.000000000Z"}},
		{"those of some time are kept", stream.File{KeepFor: 1e17}, []string{"20990101T000000.000000000Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "events.ndjson")
			others := []string{"events.ndjson.1", "events.ndjson.20200101T000000.000000000Z.gz", "other.20200101T000000.000000000Z"}
			for _, name := range append(slices.Clone(others), "events.ndjson.20200101T000000.000000000Z", "events.ndjson.20200101T000000.000000001Z", "events.ndjson.20990101T000000.000000000Z") {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tt.config.Path, tt.config.MaxSize = path, 10
			w, logs := toFile(t, tt.config)
			send(t, w, records(t, 0, 2)) // two files
			for _, name := range others {
				if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			names, err := filepath.Glob(path + ".2*Z")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range names[:len(names)-1] { // all but the new one
				got = append(got, strings.TrimPrefix(name, path+"."))
			}
			if diff := cmp.Diff(tt.left, got); diff != "" {
				t.Errorf("old files (-want +got):\n%s", diff)
			}
			if n := logs.FilterMessage("old export file removed").Len(); n != 3-len(tt.left) {
				t.Errorf("%d removals are logged, want %d", n, 3-len(tt.left))
			}
			// The clock is before the name of the last old file.
			if last := names[len(names)-1]; !strings.HasSuffix(last, ".20990101T000000.000000001Z") {
				t.Errorf("the new old file is %q, which is not after the others", last)
			}
		})
	}
}

// TestTornEnd checks what is cut from the end of a file, and which files are not
// touched.
func TestTornEnd(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 1023)+"\n", 9<<10)
	for _, tt := range []struct {
		name, text, want string
		refused          bool
	}{
		{"empty", "", "", false},
		{"whole", "{1}\n{2}\n", "{1}\n{2}\n", false},
		{"a part of a line", "{1}\n{2", "{1}\n", false},
		{"a part of the first line", "{1", "", false},
		{"zeros", "{1}\n\x00\x00\x00", "{1}\n", false},
		{"zeros in a line", "{1}\n{\x00\x00}\n{3}\n", "{1}\n", false},
		{"only zeros", "\x00\x00", "", false},
		{"after a long file", long + "{1", long, false},
		{"no lines", "PK\x03\x04", "", true},
		{"another last line", "key: value\nname", "", true},
		{"a long last line", "{" + strings.Repeat("x", 9<<20), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.ndjson")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			w, logs := toFile(t, stream.File{Path: path})
			list := records(t, 0, 1)
			err := w.Send(t.Context(), list)
			if (err != nil) != tt.refused || errors.Is(err, receiver.ErrRefused) {
				t.Errorf("error %v, want one: %t", err, tt.refused)
			}
			want := tt.want + list[0].Raw + "\n"
			if tt.refused {
				want = tt.text
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("the file is %q, want %q", cut(got), cut([]byte(want)))
			}
			if cuts := logs.FilterMessage("the end of the export file was cut to whole lines").Len(); (cuts == 1) != (!tt.refused && tt.text != tt.want) {
				t.Errorf("%d cuts are logged", cuts)
			}
		})
	}
}

func cut(b []byte) []byte { return b[max(0, len(b)-300):] }

// TestNotOurFile checks that no other file is written to.
func TestNotOurFile(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		make       func(path, other string) error
	}{
		{"a link", "symbolic link", func(path, other string) error { return os.Symlink(other, path) }},
		{"a second name", "another name", func(path, other string) error { return os.Link(other, path) }},
		{"a pipe", "not a regular file", func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }},
		{"a directory", "is a directory", func(path, _ string) error { return os.Mkdir(path, 0o700) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "events.ndjson"), filepath.Join(dir, "other")
			if err := errors.Join(os.WriteFile(other, []byte("{1}\n"), 0o600), tt.make(path, other)); err != nil {
				t.Fatal(err)
			}
			w, _ := toFile(t, stream.File{Path: path})
			if err := w.Send(t.Context(), records(t, 0, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if got, err := os.ReadFile(other); err != nil || string(got) != "{1}\n" {
				t.Errorf("the other file is %q, %v", got, err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "events.ndjson")
	first, _ := toFile(t, stream.File{Path: path})
	second, _ := toFile(t, stream.File{Path: path})
	send(t, first, records(t, 0, 1))
	if err := second.Send(t.Context(), records(t, 1, 1)); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two writers: %v", err)
	}
}

// TestChangedFromOutside checks that events go to the file that has the name now.
func TestChangedFromOutside(t *testing.T) {
	list := records(t, 0, 3)
	for _, tt := range []struct {
		name   string
		change func(path string) error
		want   []string // at the path
	}{
		{"removed", os.Remove, texts(list[1:])},
		{"renamed", func(path string) error { return os.Rename(path, path+".1") }, texts(list[1:])},
		{"renamed and made", func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		}, texts(list[1:])},
		{"cut", func(path string) error { return os.Truncate(path, 0) }, texts(list[1:])},
		{"cut in a line", func(path string) error { return os.Truncate(path, 10) }, texts(list[1:])},
		{"a part of a line added", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(`{"v`)
			return errors.Join(err, f.Close())
		}, texts(list)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.ndjson")
			w, logs := toFile(t, stream.File{Path: path})
			send(t, w, list[:1])
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			send(t, w, list[1:2])
			send(t, w, list[2:])
			if diff := cmp.Diff(tt.want, written(t, path)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if logs.FilterMessageSnippet("export file was").Len() == 0 {
				t.Error("the change is not logged")
			}
		})
	}
}

// removing is a file system on which another program removes the first file that is
// synced with contents.
type removing struct {
	disk.FS
	done bool
}

type removingFile struct {
	disk.File
	fs   *removing
	name string
}

func (r *removing) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := r.FS.OpenFile(name, flag, perm)
	return &removingFile{f, r, name}, err
}

func (f *removingFile) Sync() error {
	if i, err := f.Stat(); err == nil && i.Mode.IsRegular() && i.Size > 0 && !f.fs.done {
		f.fs.done = true
		return errors.Join(f.File.Sync(), os.Remove(f.name))
	}
	return f.File.Sync()
}

// TestRemovedMeanwhile checks that events in a file without a name are not
// acknowledged.
func TestRemovedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	w, _ := toFile(t, stream.File{Path: path, FS: &removing{FS: disk.Host()}})
	list := records(t, 0, 2)
	if err := w.Send(t.Context(), list); err == nil || !strings.Contains(err.Error(), "removed meanwhile") {
		t.Errorf("error %v, want one", err)
	}
	send(t, w, list)
	if diff := cmp.Diff(texts(list), written(t, path)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

var errStopped = errors.New("stopped")

// steps is a file system on which an operation fails, or after which the process
// has been killed. A write that is killed or fails has written a part.
type steps struct {
	disk.FS
	left   int  // operations until then
	killed bool // no operation works from then on; else only one fails
}

func (s *steps) step() error {
	s.left--
	if s.left == 0 || s.killed && s.left < 0 {
		return errStopped
	}
	return nil
}

func (s *steps) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &stepFile{f, s}, nil
}

func (s *steps) Rename(from, to string) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.FS.Rename(from, to)
}

func (s *steps) Remove(name string) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.FS.Remove(name)
}

func (s *steps) ReadDir(name string) ([]string, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	return s.FS.ReadDir(name)
}

type stepFile struct {
	disk.File
	s *steps
}

func (f *stepFile) Write(b []byte) (int, error) {
	if err := f.s.step(); err != nil {
		n, writeErr := f.File.Write(b[:len(b)*2/3])
		return n, errors.Join(err, writeErr)
	}
	return f.File.Write(b)
}

func (f *stepFile) Sync() error {
	if err := f.s.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *stepFile) Truncate(size int64) error {
	if err := f.s.step(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *stepFile) Stat() (disk.Info, error) {
	if err := f.s.step(); err != nil {
		return disk.Info{}, err
	}
	return f.File.Stat()
}

// TestStopAtEveryOperation fails or kills the process at each operation: what was
// acknowledged is there, in order, each line is whole, and what is there twice is
// what was sent twice.
func TestStopAtEveryOperation(t *testing.T) {
	const batches, size = 8, 3
	all := records(t, 0, batches*size)
	most := int64(2*size*len(all[1].Raw)) + 20
	for _, killed := range []bool{false, true} {
		for at := 1; ; at++ {
			path := filepath.Join(t.TempDir(), "events.ndjson")
			// A crash of before.
			if err := os.WriteFile(path, []byte("{\"v"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := &steps{FS: disk.Host(), left: at, killed: killed}
			config := stream.File{Path: path, MaxSize: most, FS: s}
			w, err := stream.NewFile(stream.Config{Encode: raw}, config)
			if err != nil {
				t.Fatal(err)
			}
			failed := false
			for i := 0; i < len(all); i += size {
				for w.Send(t.Context(), all[i:i+size]) != nil {
					failed = true
					if killed {
						_ = w.Close()
						config.FS = nil
						if w, err = stream.NewFile(stream.Config{Encode: raw}, config); err != nil {
							t.Fatal(err)
						}
					}
				}
				// A reader at any time sees whole lines.
				if diff := cmp.Diff(texts(all[:i+size]), once(written(t, path))); diff != "" {
					t.Fatalf("operation %d, killed %t, after %d (-want +got):\n%.2000s", at, killed, i+size, diff)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if n := len(written(t, path)); n > len(all)+size {
				t.Errorf("operation %d, killed %t: %d lines of %d events", at, killed, n, len(all))
			}
			if !failed && s.left > 0 {
				if at < 50 {
					t.Errorf("only %d operations", at)
				}
				break
			}
		}
	}
}

// FuzzTornEnd checks that no line is ever broken, whatever a crash left.
func FuzzTornEnd(f *testing.F) {
	f.Add([]byte("{1}\n{2"))
	f.Add([]byte("{1}\n\x00\x00\n"))
	list := records(f, 0, 1)
	f.Fuzz(func(t *testing.T, before []byte) {
		path := filepath.Join(t.TempDir(), "events.ndjson")
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		w, _ := toFile(t, stream.File{Path: path})
		sendErr := w.Send(t.Context(), list)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sendErr != nil {
			if !bytes.Equal(got, before) {
				t.Errorf("refused, and changed from %q to %q", before, got)
			}
			return
		}
		kept, found := bytes.CutSuffix(got, []byte(list[0].Raw+"\n"))
		if !found || !bytes.HasPrefix(before, kept) || len(kept) > 0 && kept[len(kept)-1] != '\n' || bytes.IndexByte(kept, 0) >= 0 {
			t.Errorf("from %q to %q", before, got)
		}
		if rest := before[len(kept):]; bytes.Contains(rest, []byte("\n")) && !bytes.Contains(rest, []byte("\x00")) {
			t.Errorf("a whole line is gone: %s", fmt.Sprintf("%q", rest))
		}
	})
}
