package exportfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool/disk"
)

// bufferBytes is the most that waits for a write.
const bufferBytes = 1 << 20

// A lineWriter writes lines.
type lineWriter struct {
	format   Format
	w        io.Writer
	terminal bool
	buf      []byte
}

func (l *lineWriter) add(r *receiver.Record) error {
	from := len(l.buf)
	buf, err := l.format.encode(l.buf, r)
	switch {
	case err != nil:
		return refusedError{err}
	case len(buf) == from:
		return errWithout
	case !l.format.text && bytes.IndexByte(buf[from:], '\n') >= 0:
		return refusedError{errors.New("its event has a line feed")}
	}
	if l.terminal {
		line := bytes.Clone(buf[from:])
		if buf = buf[:from]; l.format.text {
			buf = append(buf, escape.Text(string(line))...)
		} else {
			buf = escape.AppendJSON(buf, line)
		}
	}
	l.buf = append(buf, '\n')
	if len(l.buf) < bufferBytes {
		return nil
	}
	return l.flush()
}

func (l *lineWriter) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.w.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// A lineStream writes lines to a stream.
type lineStream struct{ lineWriter }

func (l *lineStream) commit(source.Position, bool) error { return l.flush() }

func (l *lineStream) close() error { return nil }

func (l *lineStream) files() []string { return nil }

// A lineFile writes lines to a file with a mark.
type lineFile struct {
	lineWriter
	config *Config
	f      disk.File
	marked source.Position
	begun  bool // there is a mark
}

// openLines begins a file, or continues it where its mark says. What a killed
// process has written after the mark is removed first: these records come again.
func openLines(c *Config) (out output, after source.Position, continued bool, err error) {
	f, m, err := c.openFile(c.File)
	if err != nil {
		return nil, after, false, err
	}
	l := &lineFile{lineWriter: lineWriter{format: c.Format, w: f}, config: c, f: f, begun: m != nil}
	if m == nil {
		l.buf = []byte(c.Format.header)
		return l, after, false, nil
	}
	if err := m.check(f); err != nil {
		return nil, after, false, errors.Join(err, f.Close())
	}
	if err := f.Truncate(m.Size); err != nil {
		return nil, after, false, errors.Join(err, f.Close())
	}
	l.marked, err = m.position()
	return l, l.marked, true, err
}

// openFile makes a file, or opens that which c's mark is for. It returns the mark,
// nil for a new file.
func (c *Config) openFile(name string) (disk.File, *mark, error) {
	m, err := c.readMark()
	if err != nil {
		return nil, nil, err
	}
	flags := os.O_RDWR | os.O_APPEND
	if m == nil {
		flags |= os.O_CREATE
	}
	f, err := disk.Host().OpenFile(name, flags, 0o600)
	switch {
	case m != nil && errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("it is not there, though its mark is: put it back, or remove %q to begin again", markName(c.File))
	case err != nil:
		return nil, nil, err
	}
	err = disk.CheckRegular(f, name)
	if err == nil {
		var locked bool
		if locked, err = f.Lock(false); err == nil && !locked {
			err = errors.New("another process writes to it")
		}
	}
	if err == nil && m == nil {
		err = c.emptied(f)
	}
	if err == nil {
		err = disk.SyncNames(disk.Host(), filepath.Dir(name))
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, m, nil
}

// emptied empties a file that has nothing but a part of the header: a crash or a full
// disk before the first mark leaves it. It refuses other contents.
func (c *Config) emptied(f disk.File) error {
	i, err := f.Stat()
	if err != nil || i.Size == 0 {
		return err
	}
	if i.Size <= int64(len(c.Format.header)) {
		text := make([]byte, i.Size)
		if n, err := f.ReadAt(text, 0); n < len(text) {
			return err
		}
		if strings.HasPrefix(c.Format.header, string(text)) {
			return f.Truncate(0)
		}
	}
	return errors.New("it exists, without a mark: name another file")
}

// commit syncs the file, then writes the mark. A crash between leaves lines after
// the mark, which openLines removes.
func (l *lineFile) commit(after source.Position, _ bool) error {
	if l.begun && after == l.marked && len(l.buf) == 0 {
		return nil
	}
	if err := l.flush(); err != nil {
		return fmt.Errorf("writing %q: %w", l.config.File, err)
	}
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("syncing %q: %w", l.config.File, err)
	}
	i, err := l.f.Stat()
	if err != nil {
		return err
	}
	m := l.config.newMark(after)
	m.Files, m.Size = 1, i.Size
	if m.End, err = endOf(l.f, m.Size); err != nil {
		return fmt.Errorf("reading %q: %w", l.config.File, err)
	}
	if err := m.write(l.config.File); err != nil {
		return fmt.Errorf("writing the mark of %q: %w", l.config.File, err)
	}
	l.marked, l.begun = after, true
	return nil
}

func (l *lineFile) close() error { return l.f.Close() }

func (l *lineFile) files() []string { return []string{l.config.File} }
