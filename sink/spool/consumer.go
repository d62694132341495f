package spool

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"auditproxy/sink/spool/disk"
)

// ErrBusy means that another process consumes the session.
var ErrBusy = errors.New("another process consumes the session")

// A Consumer reads a session's records and commits its position. Retain may
// remove committed segments.
type Consumer struct {
	fs      disk.FS
	session string
	lock    disk.File
	config  ReaderConfig // of r
	r       *Reader
	shipped Position
}

// OpenConsumer takes the session's ship.lock and continues after the last
// Commit. It returns ErrBusy if another process has the lock. It ignores
// c.From and c.Durable: a consumer sees durable lines only.
func OpenConsumer(c ReaderConfig) (*Consumer, error) {
	if err := validID(c.Session); err != nil {
		return nil, fmt.Errorf("opening session as its consumer: %w", err)
	}
	f, session := disk.OrHost(c.FS), filepath.Join(c.Dir, sessionsDir, c.Session)
	if err := disk.CheckDir(f, session); err != nil {
		return nil, fmt.Errorf("opening session as its consumer: %w", err)
	}
	// A crash leaves the lock file, unlocked.
	l, err := f.OpenFile(filepath.Join(session, shipLockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening session as its consumer: %w", err)
	}
	ok, err := l.Lock(false)
	if err == nil && !ok {
		err = ErrBusy
	}
	var r *Reader
	shipped := readShipped(f, session)
	if err == nil {
		c.From, c.Durable = shipped, true
		r, err = OpenReader(c)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("opening session %q as its consumer: %w", c.Session, err)
	}
	return &Consumer{fs: f, session: session, lock: l, config: c, r: r, shipped: shipped}, nil
}

// Rewind returns to the first remaining segment, for a destination that has
// lost its records. The cursor stays where it is until the next Commit.
func (c *Consumer) Rewind() error {
	config := c.config
	config.From = Position{}
	r, err := OpenReader(config)
	if err != nil {
		return fmt.Errorf("rewinding: %w", err)
	}
	err = c.r.Close()
	c.r = r
	return err
}

// Next returns the next durable record or damage, or io.EOF while there is
// none. It skips intents and other lines that are not records.
func (c *Consumer) Next() (Item, error) {
	for {
		item, err := c.r.Next()
		if err != nil || item.Damage != Intact || item.Record() {
			return item, err
		}
	}
}

// Commit records that everything before p, the end of an item that Next
// returned, is safe elsewhere. After a crash before it returns, those records
// are returned again.
func (c *Consumer) Commit(p Position) error {
	err := disk.ReplaceFile(c.fs, filepath.Join(c.session, shippedFile), fmt.Appendf(nil, "%d %d\n", p.Segment, p.Offset))
	if err != nil {
		return fmt.Errorf("committing cursor: %w", err)
	}
	c.shipped = p
	return nil
}

// Shipped returns the last committed position.
func (c *Consumer) Shipped() Position { return c.shipped }

// Close releases the lock.
func (c *Consumer) Close() error { return errors.Join(c.r.Close(), c.lock.Close()) }

// readShipped reads a cursor. A missing or unreadable one is the start: a
// record may be repeated, never skipped.
func readShipped(f disk.FS, session string) Position {
	b, err := disk.ReadFile(f, filepath.Join(session, shippedFile), 64)
	if err != nil {
		return Position{}
	}
	var p Position
	if _, err := fmt.Sscanf(string(b), "%d %d\n", &p.Segment, &p.Offset); err != nil || p.Offset < 0 {
		return Position{}
	}
	return p
}

const asideDir = "quarantine" // for lines that could not be delivered

// SetAside keeps a line of the session, without its line feed, in its own
// file, which retention never removes, and returns the file's path. It
// returns nil only when the file would survive a crash of the machine. The
// same line goes to the same file.
func (c *Consumer) SetAside(line []byte) (path string, err error) {
	dir := filepath.Join(filepath.Dir(filepath.Dir(c.session)), asideDir)
	path = filepath.Join(dir, fmt.Sprintf("%s-%.8x.json", filepath.Base(c.session), sha256.Sum256(line)))
	if err = disk.MakeDirs(c.fs, dir); err == nil {
		err = disk.CheckDir(c.fs, dir)
	}
	if err == nil {
		err = disk.ReplaceFile(c.fs, path, append(slices.Clone(line), '\n'))
	}
	if err == nil {
		err = disk.SyncNames(c.fs, filepath.Dir(dir)) // the directory's own name
	}
	if err != nil {
		return "", fmt.Errorf("setting aside a line of session %q: %w", filepath.Base(c.session), err)
	}
	return path, nil
}
