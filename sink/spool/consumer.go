package spool

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"auditproxy/internal/diskfull"
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
		return nil, fmt.Errorf("opening session as its consumer: %w", diskfull.WithRemedy(err))
	}
	ok, err := l.Lock(false)
	if err == nil && !ok {
		err = ErrBusy
	}
	var r *Reader
	shipped := readShipped(f, session)
	if err == nil {
		// For overwrite, which is all that works on a full disk. If the disk is full
		// already, this fails too.
		_ = makeShipped(f, session)
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
// are returned again. On a full disk it needs no space, so that what is shipped
// can be removed.
func (c *Consumer) Commit(p Position) error {
	err := disk.ReplaceFile(c.fs, filepath.Join(c.session, shippedFile), fmt.Appendf(nil, "%d %d\n", p.Segment, p.Offset))
	if full := err; diskfull.Is(full) {
		if err = c.overwrite(p); err != nil {
			err = errors.Join(full, err)
		}
	}
	if err != nil {
		return fmt.Errorf("committing cursor: %w", diskfull.WithRemedy(err))
	}
	c.shipped = p
	return nil
}

// overwritten begins a cursor that was written over another one, and so has a
// checksum: a crash may have left a part of it.
const overwritten = "+"

// overwrite writes the cursor over the last one.
func (c *Consumer) overwrite(p Position) error {
	name := filepath.Join(c.session, shippedFile)
	f, err := c.fs.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err = checkAlone(f, name); err == nil {
		_, err = f.WriteAt([]byte(withChecksum(fmt.Sprintf("%s%d %d", overwritten, p.Segment, p.Offset))+"\n"), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = disk.SyncNames(c.fs, c.session) // of makeShipped
	}
	return errors.Join(err, f.Close())
}

// checkAlone refuses a file with another name: in a backup, it must not change.
func checkAlone(f disk.File, name string) error {
	if err := disk.CheckRegular(f, name); err != nil {
		return err
	}
	i, err := f.Stat()
	if err == nil && i.Links != 1 {
		err = fmt.Errorf("%q has %d names", name, i.Links)
	}
	return err
}

func withChecksum(text string) string {
	return fmt.Sprintf("%s %08x", text, crc32.ChecksumIEEE([]byte(text)))
}

// makeShipped makes a cursor at the start, unless there is one. Nothing is synced: a
// missing one is the start too.
func makeShipped(f disk.FS, session string) error {
	name := filepath.Join(session, shippedFile)
	w, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = w.Write([]byte("0 0\n"))
	if err = errors.Join(err, w.Close()); err != nil {
		_ = f.Remove(name) // the next consumer makes it
	}
	return err
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
	line, _, whole := strings.Cut(string(b), "\n")
	if strings.HasPrefix(line, overwritten) {
		text := line[:max(0, strings.LastIndexByte(line, ' '))]
		if line != withChecksum(text) {
			return Position{}
		}
		line = text[len(overwritten):]
	}
	if _, err := fmt.Sscanf(line+"\n", "%d %d\n", &p.Segment, &p.Offset); err != nil || !whole || p.Offset < 0 {
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
