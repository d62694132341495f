package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrBusy means that another process consumes the session.
var ErrBusy = errors.New("another process consumes the session")

// A Consumer reads a session's records and commits its position. Retain may
// remove committed segments.
type Consumer struct {
	fs      FS
	session string
	lock    File
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
	f, session := orOS(c.FS), filepath.Join(c.Dir, sessionsDir, c.Session)
	if err := checkDir(f, session); err != nil {
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
	err := replaceFile(c.fs, filepath.Join(c.session, shippedFile), fmt.Appendf(nil, "%d %d\n", p.Segment, p.Offset))
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
func readShipped(f FS, session string) Position {
	b, err := readFile(f, filepath.Join(session, shippedFile), 64)
	if err != nil {
		return Position{}
	}
	var p Position
	if _, err := fmt.Sscanf(string(b), "%d %d\n", &p.Segment, &p.Offset); err != nil || p.Offset < 0 {
		return Position{}
	}
	return p
}

// removeAll removes a directory of files, the lock last. It follows no link: the
// files behind one are not the spool's.
func removeAll(f FS, dir string) error {
	if err := checkDir(f, dir); err != nil {
		return err
	}
	names, err := f.ReadDir(dir)
	if err != nil {
		return err
	}
	// A crash leaves the lock as long as any other file.
	names = slices.DeleteFunc(names, func(name string) bool { return name == lockFile })
	for _, name := range append(names, lockFile) {
		if err := f.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.Remove(dir)
}
