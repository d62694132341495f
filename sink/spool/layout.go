package spool

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"auditproxy/sink/spool/disk"
)

// Names in a spool directory. Only segments end in ".jsonl", so that a log
// agent can read sessions/*/*.jsonl.
const (
	sessionsDir  = "sessions"
	newPrefix    = ".new-"     // of a session's directory until it is locked
	lockFile     = "lock"      // flocked by the writer while it lives
	machineFile  = "machine"   // the machine whose locks can be trusted
	durableFile  = "durable"   // how far the writer has synced
	ballastFile  = "ballast"   // space for the final records of open calls
	shipLockFile = "ship.lock" // flocked by the consumer
	shippedFile  = "shipped"   // the consumer's cursor
	segmentExt   = ".jsonl"
	tornInfix    = ".torn-" // in the name of a bad tail that recovery cut off
)

// A Position is a place in a session: a byte of a segment. Segments are
// numbered from 1; the zero Position precedes everything.
type Position struct {
	Segment uint32
	Offset  int64
}

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool {
	return p.Segment < q.Segment || p.Segment == q.Segment && p.Offset < q.Offset
}

func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Segment, p.Offset) }

// Place returns the file in the session's directory and the offset, as
// "00000001.jsonl:4096".
func (p Position) Place() string { return fmt.Sprintf("%s:%d", segmentName(p.Segment), p.Offset) }

func segmentName(no uint32) string { return fmt.Sprintf("%08d%s", no, segmentExt) }

func segmentNo(name string) (uint32, bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) < 8 {
		return 0, false
	}
	no, err := strconv.ParseUint(digits, 10, 32)
	return uint32(no), err == nil && no > 0 && segmentName(uint32(no)) == name
}

// segments lists the numbers of a session's segments, ascending.
func segments(f disk.FS, session string) ([]uint32, error) {
	names, err := f.ReadDir(session)
	if err != nil {
		return nil, err
	}
	var list []uint32
	for _, name := range names {
		if no, ok := segmentNo(name); ok {
			list = append(list, no)
		}
	}
	return list, nil
}

// appendPosition appends the eight bytes of a durable file: segment and
// offset, little-endian.
func appendPosition(dst []byte, p Position) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, p.Segment)
	return binary.LittleEndian.AppendUint32(dst, uint32(p.Offset))
}

// readDurable reads how far the writer has synced. A pread may see half of
// the writer's pwrite, so a value counts only when it was read twice.
func readDurable(f disk.File) (Position, error) {
	var a, b [8]byte
	for {
		n, err := f.ReadAt(a[:], 0)
		if n < len(a) {
			// Short: created but not published, or left so by a crash.
			return Position{}, ignoreEOF(err)
		}
		if _, err := f.ReadAt(b[:], 0); err != nil {
			return Position{}, ignoreEOF(err)
		}
		if a == b {
			return Position{binary.LittleEndian.Uint32(a[:]), int64(binary.LittleEndian.Uint32(a[4:]))}, nil
		}
	}
}

// validID accepts a session id: a name that cannot leave the directory or hide
// in it.
func validID(id string) error {
	for i, c := range []byte(id) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && (c != '-' || i == 0) {
			return fmt.Errorf("session id %q has a character that is no letter, digit or hyphen", id)
		}
	}
	if id == "" || len(id) > 64 {
		return fmt.Errorf("session id %q is not 1 to 64 characters long", id)
	}
	return nil
}

// machineID identifies this machine. machine-id(5) asks not to show the id
// itself, so it is a hash. Without an id it is the host name.
func machineID() string {
	if id := machineUUID(); id != "" {
		sum := sha256.Sum256([]byte("auditproxy " + id))
		return hex.EncodeToString(sum[:16])
	}
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return "host-" + host
}

// removeAll removes a directory of files, the lock last. It follows no link: the
// files behind one are not the spool's.
func removeAll(f disk.FS, dir string) error {
	if err := disk.CheckDir(f, dir); err != nil {
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

// removeLocked removes a directory whose lock is held, and closes the lock. NFS and
// FUSE keep a removed file in its directory, under another name, while it is open.
func removeLocked(f disk.FS, dir string, lock disk.File) error {
	err := removeAll(f, dir)
	lock.Close() // only locked
	if errors.Is(err, syscall.ENOTEMPTY) {
		err = f.Remove(dir)
	}
	return err
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
