package exportfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/sink/spool/disk"
)

// partBytes is what a Parquet file has of records; then the next one begins. A
// file without its end is not one, so a killed process writes its last one again.
const partBytes = 1 << 30

// parquetFiles writes Parquet files: FILE, then with a number before the last dot
// of its name, such as events.2.parquet. A file has that name once it is whole,
// until then FILE.part.
type parquetFiles struct {
	config *Config
	last   mark // of the whole files
	names  []string
	f      disk.File // nil: no file is begun
	w      *parquetWriter
	bytes  int
}

// openParquets begins files, or continues after those that the mark counts.
func openParquets(c *Config) (out output, after source.Position, continued bool, err error) {
	p := &parquetFiles{config: c}
	m, err := c.readMark()
	if err != nil {
		return nil, after, false, err
	}
	if m == nil {
		if _, err := disk.Host().Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
			return nil, after, false, errors.Join(errors.New("it exists, without a mark: name another file"), err)
		}
		return p, after, false, nil
	}
	p.last = *m
	if m.Files > 0 {
		err = p.finish()
	}
	if err == nil {
		after, err = m.position()
	}
	return p, after, true, err
}

// finish renames the last file, if the process was killed before it did.
func (p *parquetFiles) finish() error {
	last := p.name(p.last.Files)
	f, err := disk.Host().OpenFile(last, os.O_RDONLY, 0)
	renamed := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		f, err = disk.Host().OpenFile(p.part(), os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%q is not there, though its mark is: put it back, or remove %q to begin again", last, markName(p.config.File))
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(disk.CheckRegular(f, last), p.last.check(f)); err != nil {
		return fmt.Errorf("%q: %w", last, err)
	}
	if renamed {
		return nil
	}
	return p.rename(last)
}

func (p *parquetFiles) part() string { return p.config.File + ".part" }

// name returns the name of the file with a number, from 1.
func (p *parquetFiles) name(n int) string {
	if n == 1 {
		return p.config.File
	}
	ext := filepath.Ext(p.config.File)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(p.config.File, ext), n, ext)
}

func (p *parquetFiles) add(r *receiver.Record) error {
	if p.f == nil {
		if err := p.begin(); err != nil {
			return fmt.Errorf("exporting to %q: %w", p.config.File, err)
		}
	}
	p.bytes += len(r.Raw)
	if err := p.w.add(r); err != nil {
		return fmt.Errorf("writing %q: %w", p.part(), err)
	}
	return nil
}

// begin begins a file. What a killed process has begun is removed: it is not a
// file, and its records come again.
func (p *parquetFiles) begin() error {
	next := p.name(p.last.Files + 1)
	if _, err := disk.Host().Lstat(next); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("the next file, %q, exists: name another file", next), err)
	}
	f, err := disk.Host().OpenFile(p.part(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	locked := false
	if err = disk.CheckRegular(f, p.part()); err == nil {
		if locked, err = f.Lock(false); err == nil && !locked {
			err = errors.New("another process writes to it")
		}
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	p.f, p.w, p.bytes = f, newParquetWriter(f), 0
	return nil
}

// commit ends the file if it has enough, or is the last one.
func (p *parquetFiles) commit(after source.Position, last bool) error {
	if p.f == nil {
		// Records that do not match were read.
		m := p.config.newMark(after)
		m.Files, m.Size, m.End = p.last.Files, p.last.Size, p.last.End
		if m == p.last {
			return nil
		}
		p.last = m
		return m.write(p.config.File)
	}
	if !last && p.bytes < cmp.Or(p.config.PartBytes, partBytes) {
		return nil
	}
	if err := p.end(after); err != nil {
		return fmt.Errorf("exporting to %q: %w", p.config.File, err)
	}
	return nil
}

// end makes a whole file of the one that was begun.
func (p *parquetFiles) end(after source.Position) error {
	if err := p.w.close(); err != nil {
		return err
	}
	if err := p.f.Sync(); err != nil {
		return err
	}
	i, err := p.f.Stat()
	if err != nil {
		return err
	}
	m := p.config.newMark(after)
	m.Files, m.Size = p.last.Files+1, i.Size
	if m.End, err = endOf(p.f, m.Size); err != nil {
		return err
	}
	// A crash before the mark leaves a part, which begin removes. A crash after it
	// leaves a part that the mark counts, which finish renames.
	if err := m.write(p.config.File); err != nil {
		return err
	}
	name := p.name(m.Files)
	if err := p.rename(name); err != nil {
		return err
	}
	p.last, p.names = m, append(p.names, name)
	f := p.f
	p.f = nil
	return f.Close()
}

func (p *parquetFiles) rename(name string) error {
	if err := disk.Host().Rename(p.part(), name); err != nil {
		return err
	}
	return disk.SyncNames(disk.Host(), filepath.Dir(name))
}

func (p *parquetFiles) close() error {
	if p.f == nil {
		return nil
	}
	return p.f.Close()
}

func (p *parquetFiles) files() []string { return p.names }
