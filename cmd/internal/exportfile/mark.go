package exportfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"auditproxy/collector/export/source"
	"auditproxy/sink/spool/disk"
)

// A mark says how far an export has come. It is in FILE.mark, and written when
// what it says of the file is durable.
type mark struct {
	Version int    `json:"v"`
	Format  string `json:"format"`
	When    string `json:"when"`
	Header  string `json:"header,omitempty"` // the file's first line

	Files int    `json:"files"` // of an export to several files
	Size  int64  `json:"size"`  // of the last file, bytes; what is after them was not marked
	End   string `json:"end"`   // SHA-256 of the last of these bytes, so that another file is not continued

	Arrived int64  `json:"arrived_ms"` // the position after the last record
	Session string `json:"session_id"`
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"`
}

const (
	markVersion = 1
	maxMark     = 64 << 10
	endBytes    = 4096
)

func markName(file string) string { return file + ".mark" }

// readMark returns the mark of a file, nil if there is none.
func (c *Config) readMark() (*mark, error) {
	data, err := disk.ReadFile(disk.Host(), markName(c.File), maxMark)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !c.Resume {
		return nil, fmt.Errorf("there is a mark of an earlier export, %q: continue it with --resume, or name another file", markName(c.File))
	}
	m := new(mark)
	if err := json.Unmarshal(data, m); err != nil || m.Version != markVersion {
		return nil, fmt.Errorf("%q is not a mark of this version: name another file", markName(c.File))
	}
	want := c.newMark(source.Position{})
	switch {
	case m.Format != want.Format:
		return nil, fmt.Errorf("it was begun with --format %s, and is continued only so: name another file for --format %s", m.Format, want.Format)
	case m.When != want.When:
		return nil, fmt.Errorf("it was begun with --when %q, and is continued only so: name another file for --when %q", m.When, want.When)
	case m.Header != want.Header:
		return nil, errors.New("it was begun by another version, whose columns were others: name another file")
	}
	if _, err := m.position(); err != nil {
		return nil, fmt.Errorf("%q is damaged: %w", markName(c.File), err)
	}
	return m, nil
}

// newMark returns the mark of a position, without a file.
func (c *Config) newMark(after source.Position) mark {
	m := mark{Version: markVersion, Format: c.Format.name, When: c.When, Header: c.Format.header,
		Session: after.Session, Seq: after.Seq, Hash: hex.EncodeToString(after.Hash[:])}
	if !after.Arrived.IsZero() {
		m.Arrived = after.Arrived.UnixMilli()
	}
	return m
}

func (m *mark) position() (p source.Position, err error) {
	hash, err := hex.DecodeString(m.Hash)
	if err != nil || len(hash) != len(p.Hash) {
		return p, errors.New("its hash is not one")
	}
	p = source.Position{Session: m.Session, Seq: m.Seq, Hash: [16]byte(hash)}
	if m.Arrived != 0 {
		p.Arrived = time.UnixMilli(m.Arrived).UTC()
	}
	return p, nil
}

// write makes the mark durable. A crash leaves the mark before it, with which the
// same is done again.
func (m *mark) write(file string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return disk.ReplaceFile(disk.Host(), markName(file), append(text, '\n'))
}

// endOf returns the sum of the end of the first size bytes of a file.
func endOf(f io.ReaderAt, size int64) (string, error) {
	from := max(0, size-endBytes)
	end := make([]byte, size-from)
	if n, err := f.ReadAt(end, from); n < len(end) {
		return "", err
	}
	sum := sha256.Sum256(end)
	return hex.EncodeToString(sum[:]), nil
}

// check returns an error if f is not the file that the mark was written for.
func (m *mark) check(f disk.File) error {
	i, err := f.Stat()
	if err != nil {
		return err
	}
	if i.Size >= m.Size {
		end, err := endOf(f, m.Size)
		if err != nil || end == m.End {
			return err
		}
	}
	return errors.New("the file is not the one that its mark was written for: begin again with another file")
}
