package spool

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
func segments(f FS, session string) ([]uint32, error) {
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
func readDurable(f File) (Position, error) {
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

// makeDirs makes dir and its missing parents. A crash leaves some of them,
// and the next call makes the others.
func makeDirs(f FS, dir string) error {
	err := f.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := makeDirs(f, filepath.Dir(dir)); err != nil {
			return err
		}
		err = f.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// checkDir refuses a directory that other users could change. Its parents may
// be links; it itself may not.
func checkDir(f FS, dir string) error {
	i, err := f.Lstat(dir)
	switch {
	case err != nil:
		return err
	case i.Mode&fs.ModeSymlink != 0:
		return fmt.Errorf("%q is a symbolic link: name the directory that it points to", dir)
	case !i.Mode.IsDir():
		return fmt.Errorf("%q is not a directory: remove it or choose another spool.dir", dir)
	case i.UID != os.Geteuid():
		return fmt.Errorf("%q belongs to uid %d, we run as uid %d: choose another spool.dir or change its owner", dir, i.UID, os.Geteuid())
	case i.Mode&0o022 != 0:
		return fmt.Errorf("%q can be written by others: chmod 700 it", dir)
	}
	return nil
}

// checkRegular refuses anything but a regular file of this user.
func checkRegular(f File, name string) error {
	i, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !i.Mode.IsRegular():
		return fmt.Errorf("%q is not a regular file", name)
	case i.UID != os.Geteuid():
		return fmt.Errorf("%q belongs to uid %d, we run as uid %d", name, i.UID, os.Geteuid())
	}
	return nil
}

// checkSize refuses a segment that is longer than any proxy writes: reading all
// of it could take hours.
func checkSize(i Info, name string) error {
	if i.Size > maxSegment {
		return fmt.Errorf("%q has %d bytes, more than a proxy writes: move it to a safe place", name, i.Size)
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

// DefaultDir returns the spool directory if none is configured:
// $STATE_DIRECTORY, as systemd sets it; /var/lib/auditproxy for uid 0; else
// auditproxy in $XDG_STATE_HOME or ~/.local/state.
func DefaultDir(getenv func(string) string, uid int) (string, error) {
	// systemd.exec(5): several directories are separated by colons.
	if dir, _, _ := strings.Cut(getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if uid == 0 {
		return "/var/lib/auditproxy", nil
	}
	// The XDG specification says to ignore a path that is not absolute.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "auditproxy"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "auditproxy"), nil
	}
	return "", errors.New("choosing a spool directory: HOME is not set: set spool.dir")
}
