package stream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"auditproxy/internal/diskfull"
	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// A File is a file with a line for each event, which is renamed at a size and
// begun again. The name of an old file has the time when it was renamed:
// NAME.20261123T201622.000000000Z.
type File struct {
	Path    string        // No link. Required.
	Mode    fs.FileMode   // of new files, 0600 or 0640. Zero: 0600
	MaxSize int64         // bytes after which it is renamed; a longer event is alone in its file. Zero: 100 MiB
	Keep    int           // old files that are kept. Zero: all
	KeepFor time.Duration // how long old files are kept. Zero: forever

	FS disk.FS // nil: the host's, for tests
}

const (
	fileEvents = 1 << 30

	pruneEvery = 10 * time.Minute // old files are looked for when one is made, and so often
)

// NewFile returns a Writer that writes to a file. It opens the file with the first
// Send, and after another program has renamed or removed it.
//
// An acknowledged event is on the disk, and each line is whole: a line that a
// crash or a full disk has cut is removed, and its event comes again. Only one
// process can write to the file.
func NewFile(c Config, f File) (*Writer, error) {
	problems := c.problems()
	if !filepath.IsAbs(f.Path) {
		problems = append(problems, fmt.Errorf("path is %q, want an absolute path", f.Path))
	}
	if f.Mode != 0 && f.Mode != 0o600 && f.Mode != 0o640 {
		problems = append(problems, fmt.Errorf("mode is %#o, want 0600 or 0640", uint32(f.Mode)))
	}
	if f.MaxSize < 0 || f.Keep < 0 || f.KeepFor < 0 {
		problems = append(problems, errors.New("the size of a file, and how many old ones are kept for how long, cannot be negative"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring a stream to a file: %w", err)
	}
	if f.Mode == 0 {
		f.Mode = 0o600
	}
	if f.MaxSize == 0 {
		f.MaxSize = 100 << 20
	}
	return newWriter(c, &file{config: f, fs: disk.OrHost(f.FS), log: c.log().With(zap.String("file", f.Path))}), nil
}

// file is the target of a File.
type file struct {
	config File
	fs     disk.FS
	log    *zap.Logger

	f      disk.File // nil: not open
	size   int64     // of f, all of it whole lines that are synced
	retire bool      // a sync of f failed: it gets no more lines
	pruned time.Time // when old files were last looked for
}

func (t *file) limit() (bytes, events int) { return int(min(fileBytes, t.config.MaxSize)), fileEvents }

func (t *file) close() error {
	if t.f == nil {
		return nil
	}
	f := t.f
	t.f = nil
	return f.Close()
}

// write appends the events and syncs them.
func (t *file) write(_ context.Context, b *batch) error {
	if err := t.append(b.text); err != nil {
		return fmt.Errorf("writing to %q: %w", t.config.Path, diskfull.WithRemedy(err))
	}
	if time.Since(t.pruned) > pruneEvery {
		t.prune()
	}
	return nil
}

func (t *file) append(text []byte) error {
	if err := t.current(); err != nil {
		return err
	}
	if t.retire || t.size > 0 && t.size+int64(len(text)) > t.config.MaxSize {
		if err := t.rotate(); err != nil {
			return err
		}
	}
	// The file was opened to append: where another program cut it, this leaves no
	// hole. A crash here leaves a part of text, whose last line openCurrent cuts.
	if _, err := t.f.Write(text); err != nil {
		return t.undo(err)
	}
	if err := t.f.Sync(); err != nil {
		// A second sync could report success for pages that this one lost.
		t.retire = true
		return t.undo(fmt.Errorf("syncing: %w", err))
	}
	t.size += int64(len(text))
	i, err := t.f.Stat()
	if err != nil {
		return err
	}
	if i.Links == 0 {
		return errors.Join(errors.New("it was removed meanwhile"), t.close())
	}
	return nil
}

// undo removes what a failed write left, because the lines come again and the last
// may be cut. Where that fails too, the next write opens the file again.
func (t *file) undo(err error) error {
	if cutErr := t.f.Truncate(t.size); cutErr != nil {
		return errors.Join(err, cutErr, t.close())
	}
	return err
}

// current makes sure that f is the file at the path, that it ends with a whole
// line and that size is its size.
func (t *file) current() error {
	if t.f != nil {
		at, err := t.fs.Lstat(t.config.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, statErr := t.f.Stat()
		if statErr != nil {
			return statErr
		}
		switch {
		case err != nil || at.Inode != f.Inode:
			t.log.Info("export file was moved or removed; a new one is begun")
			if err := t.close(); err != nil {
				return err
			}
		case f.Size != t.size:
			t.log.Info("export file was changed by another program", zap.Int64("size", f.Size), zap.Int64("expected", t.size))
			if err := t.close(); err != nil {
				return err
			}
		}
	}
	if t.f != nil {
		return nil
	}
	return t.open()
}

// open opens the file at the path, or makes it.
func (t *file) open() error {
	f, err := t.fs.OpenFile(t.config.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, t.config.Mode)
	if err != nil {
		return err
	}
	size, err := t.check(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.f, t.size, t.retire = f, size, false
	return nil
}

// check refuses what is not a file of this stream, cuts its end to whole lines and
// returns its size.
func (t *file) check(f disk.File) (size int64, err error) {
	if err := disk.CheckRegular(f, t.config.Path); err != nil {
		return 0, err
	}
	i, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if i.Links > 1 {
		return 0, errors.New("it has another name too: name another file")
	}
	locked, err := f.Lock(false)
	if err != nil {
		return 0, err
	}
	if !locked {
		return 0, errors.New("another process writes to it: name another file")
	}
	size, err = wholeLines(f, i.Size)
	if err != nil {
		return 0, err
	}
	if size < i.Size {
		t.log.Warn("the end of the export file was cut to whole lines", zap.Int64("removed_bytes", i.Size-size))
		if err := f.Truncate(size); err != nil {
			return 0, err
		}
	}
	// What a killed process has left is synced, so that a power cut can damage no
	// more than one batch. The name may be new.
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return size, disk.SyncNames(t.fs, filepath.Dir(t.config.Path))
}

// rotate renames the file and begins a new one.
func (t *file) rotate() error {
	old, err := oldFiles(t.fs, t.config.Path)
	if err != nil {
		return err
	}
	at := time.Now().UTC()
	if n := len(old); n > 0 && !at.After(old[n-1].at) {
		at = old[n-1].at.Add(1) // the clock was set back
	}
	to := t.config.Path + "." + at.Format(oldTime)
	if _, err := t.fs.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errors.New("the name for the old file is taken"), err)
	}
	// All that the file has is synced. A crash before the rename leaves a file
	// that is too long, which the next write renames; a crash after it leaves no
	// file, and the next write makes it.
	if err := t.fs.Rename(t.config.Path, to); err != nil {
		return err
	}
	if err := t.close(); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return err
	}
	t.prune()
	return nil
}

// prune removes old files that need not be kept. Where it cannot, no event is
// lost: it is logged, and tried again.
func (t *file) prune() {
	t.pruned = time.Now()
	if t.config.Keep == 0 && t.config.KeepFor == 0 {
		return
	}
	old, err := oldFiles(t.fs, t.config.Path)
	if err != nil {
		t.log.Warn("old export files cannot be listed", zap.Error(err))
		return
	}
	for i, f := range old {
		tooMany := t.config.Keep > 0 && len(old)-i > t.config.Keep
		tooOld := t.config.KeepFor > 0 && time.Since(f.at) > t.config.KeepFor
		if !tooMany && !tooOld {
			continue
		}
		if err := t.fs.Remove(f.name); err != nil {
			t.log.Warn("old export file cannot be removed", zap.String("old", f.name), zap.Error(err))
			continue
		}
		t.log.Info("old export file removed", zap.String("old", f.name))
	}
}
