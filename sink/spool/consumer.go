package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrBusy means that another process consumes the session.
var ErrBusy = errors.New("another process consumes the session")

// A Consumer is the one who takes a session's records away. What it has
// committed may be removed by Retain.
type Consumer struct {
	fs      FS
	session string
	lock    File
	config  ReaderConfig // of r
	r       *Reader
	shipped Position
}

// OpenConsumer takes the session's ship.lock and continues after the last
// Commit. It returns ErrBusy if another process has the lock. c.From and
// c.Durable are not looked at: a consumer sees durable lines only.
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

// Rewind goes back to the first segment there is, for a destination that has
// lost what it had. The cursor stays where it is until the next Commit.
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

// Next returns the next durable record or damage, io.EOF where there is none
// now. Intents and what else is no record are left out.
func (c *Consumer) Next() (Item, error) {
	for {
		item, err := c.r.Next()
		if err != nil || item.Damage != Intact || item.Record() {
			return item, err
		}
	}
}

// Commit says that everything before p, the end of an item that Next returned,
// is safe elsewhere. A crash before it returns means that those records are
// told again.
func (c *Consumer) Commit(p Position) error {
	err := replaceFile(c.fs, filepath.Join(c.session, shippedFile), fmt.Appendf(nil, "%d %d\n", p.Segment, p.Offset))
	if err != nil {
		return fmt.Errorf("committing cursor: %w", err)
	}
	c.shipped = p
	return nil
}

// Shipped is the last position that was committed.
func (c *Consumer) Shipped() Position { return c.shipped }

// Close gives the lock back.
func (c *Consumer) Close() error { return errors.Join(c.r.Close(), c.lock.Close()) }

// readShipped reads a cursor. One that is missing or can not be read is the
// start: to tell a record twice is allowed, to leave one out is not.
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

// removeAll removes a directory of files, the lock last.
func removeAll(f FS, dir string) error {
	names, err := f.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range append(names, lockFile) {
		if err := f.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.Remove(dir)
}
