// Package counter keeps the counters of a policy's limits in files, so that all
// sessions of a user share them.
//
// A server has one file, which is locked for each update. It has a header and a
// slot of 128 bytes for each counter. A slot never crosses a page, and is written
// with one call: a process that is killed leaves the old slot or the new one. It
// may leave some counters of a call counted and others not, but the call was not
// forwarded: too much is counted, never too little. Nothing is synced: after a
// power cut the counts may be older, or the file damaged.
//
// A file that is not what this package wrote is never repaired. Calls are denied
// until it is removed.
//
// What no policy uses any more goes by its age, when no window can reach back to
// it: a counter when another one needs its slot, a file when another server's is
// made.
package counter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"auditproxy/internal/diskfull"
	"auditproxy/mcpproxy/policy"

	"golang.org/x/sys/unix"
)

const (
	slotSize = 128                // divides the size of a page
	maxSlots = policy.MaxUser + 1 // of the counters of one server, and the header
)

// lockWait is how long an update waits for other processes. It is less than
// what package policy allows the time of a call to lie before its update.
const lockWait = time.Second

// A Store keeps counters: those of scope policy.User in a file, the others in
// memory. Create one with New. It implements policy.Counters.
type Store struct {
	dir, name string
	memory    policy.Memory

	mu   sync.Mutex
	file *os.File // owned by mu; nil until the first use, and after an error
	text []byte   // owned by mu: a buffer for the file's content
	have []slot   // owned by mu: the counters of the file, in order
}

// A slot is a counter in the file.
type slot struct {
	id    [32]byte // see digest
	count policy.Count
}

// New returns the counters of a server. dir is the directory of the files; it is
// made when it is needed. server is any text that names the server and the
// configuration that shares its counters. New reads nothing.
func New(dir, server string) *Store {
	return &Store{dir: dir, name: filepath.Join(dir, digest(server)+".counters")}
}

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *Store) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Update implements policy.Counters.
func (s *Store) Update(at time.Time, counters []policy.Counter, decide func(values []int64) bool) error {
	var user, session []policy.Counter
	var index [2][]int // places in counters
	for i, c := range counters {
		if c.Scope == policy.User {
			user, index[0] = append(user, c), append(index[0], i)
		} else {
			session, index[1] = append(session, c), append(index[1], i)
		}
	}
	if len(user) == 0 {
		return s.memory.Update(at, counters, decide)
	}
	var failed error
	err := s.memory.Update(at, session, func(sessions []int64) (ok bool) {
		failed = s.update(at, user, func(users []int64) bool {
			values := make([]int64, len(counters))
			for list, part := range [][]int64{users, sessions} {
				for n, v := range part {
					values[index[list][n]] = v
				}
			}
			for n := range user {
				counters[index[0][n]].Start = user[n].Start
			}
			ok = decide(values)
			for n := range user {
				user[n].Amount = counters[index[0][n]].Amount
			}
			for n := range session {
				session[n].Amount = counters[index[1][n]].Amount
			}
			return ok
		})
		return ok && failed == nil
	})
	for n := range session {
		counters[index[1][n]].Start = session[n].Start
	}
	return errors.Join(err, failed)
}

// Release implements policy.Counters.
func (s *Store) Release(counters []policy.Counter) error {
	var session, user []policy.Counter
	for _, c := range counters {
		if c.Scope == policy.User {
			user = append(user, c)
		} else {
			session = append(session, c)
		}
	}
	s.memory.Release(session) // never fails
	if len(user) == 0 {
		return nil
	}
	return s.locked("releasing", func() error {
		for _, c := range user {
			n := s.find(c.Key)
			if n == len(s.have) {
				continue // the file was removed since
			}
			if err := s.write(n, c.Key, s.have[n].count.Less(c.Start, c.Window, c.Amount)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) update(at time.Time, counters []policy.Counter, decide func(values []int64) bool) error {
	return s.locked("updating", func() error {
		counts := make([]policy.Count, len(counters))
		values := make([]int64, len(counters))
		for i := range counters {
			c := &counters[i]
			if n := s.find(c.Key); n < len(s.have) {
				counts[i] = s.have[n].count
			}
			var err error
			if counts[i], c.Start, values[i], err = counts[i].At(at, c.Window); err != nil {
				return fmt.Errorf("%w: if it is right now, remove the file", err)
			}
		}
		if !decide(values) {
			return nil
		}
		for i, c := range counters {
			if err := s.write(s.find(c.Key), c.Key, counts[i].Add(c.Start, c.Amount)); err != nil {
				return err // what was written before it is counted for a call that is denied
			}
		}
		return nil
	})
}

// locked calls f with the file locked and read.
func (s *Store) locked(doing string, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.lock()
	if err == nil {
		err = s.read()
		if err == nil {
			err = f()
		}
		if e := unix.Flock(int(s.file.Fd()), unix.LOCK_UN); err == nil && e != nil {
			err = fmt.Errorf("unlocking: %w: %w", policy.ErrCounter, e)
		}
	}
	if err != nil {
		s.close() // the next update opens what is there then
		return fmt.Errorf("%s the counters in %q: %w", doing, s.name, err)
	}
	return nil
}

// lock opens and locks the file that has the name. Between the two it may have
// been replaced.
func (s *Store) lock() error {
	for deadline := time.Now().Add(lockWait); ; {
		if s.file == nil {
			if err := s.open(); err != nil {
				return err
			}
		}
		if err := flock(s.file, deadline); err != nil {
			return err
		}
		var open, named unix.Stat_t
		if err := unix.Fstat(int(s.file.Fd()), &open); err != nil {
			return fmt.Errorf("%w: %w", policy.ErrCounter, err)
		}
		err := unix.Lstat(s.name, &named)
		if err == nil && open.Ino == named.Ino && open.Dev == named.Dev {
			return own(&open, unix.S_IFREG, 0o600)
		}
		s.close()
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: it is replaced again and again", policy.ErrBusy)
		}
	}
}

// flock waits for the lock until a deadline. A stopped process may hold it for
// ever.
func flock(f *os.File, deadline time.Time) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 2*time.Millisecond) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return nil
		case err != unix.EWOULDBLOCK && err != unix.EINTR:
			return fmt.Errorf("%w: %w", policy.ErrCounter, err)
		case time.Now().After(deadline):
			return fmt.Errorf("%w: waited %v", policy.ErrBusy, lockWait)
		}
		time.Sleep(wait)
	}
}

// open opens the file, or makes it.
func (s *Store) open() error {
	if err := s.openDir(); err != nil {
		return err
	}
	for {
		f, err := os.OpenFile(s.name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			s.file = f
			return nil
		case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%w: %w: remove it", policy.ErrForeign, err)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %w", policy.ErrCounter, err)
		}
		if err := s.create(); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: %w", policy.ErrFull, diskfull.WithRemedy(err))
		}
	}
}

// create makes the file with its header under another name and links it, so that
// no process sees a part of it. A crash leaves the other name.
func (s *Store) create() error {
	s.sweep(time.Now())
	f, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(header()); err != nil {
		return err
	}
	return os.Link(f.Name(), s.name)
}

// sweep removes the files that were not written for so long that all their counts
// are over, and the remainders of crashes.
func (s *Store) sweep(now time.Time) {
	list, _ := os.ReadDir(s.dir) // what is not seen stays
	for _, e := range list {
		old := func(i fs.FileInfo, err error) bool {
			return err == nil && i.Mode().IsRegular() && now.Unix()-i.ModTime().Unix() > policy.Idle
		}
		if !old(e.Info()) {
			continue
		}
		name := filepath.Join(s.dir, e.Name())
		f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		// Who waits for the lock finds that the file is gone; see lock.
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && old(f.Stat()) {
			os.Remove(name)
		}
		f.Close()
	}
}

// openDir makes and checks the directory.
func (s *Store) openDir() error {
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", policy.ErrFull, diskfull.WithRemedy(err))
	}
	var st unix.Stat_t
	if err := unix.Lstat(s.dir, &st); err != nil {
		return fmt.Errorf("%w: %w", policy.ErrCounter, err)
	}
	return own(&st, unix.S_IFDIR, 0o700)
}

// own checks that something is of a type, this user's, and closed to others.
func own(st *unix.Stat_t, kind, mode uint32) error {
	switch {
	case uint32(st.Mode)&unix.S_IFMT != kind:
		return fmt.Errorf("%w: it is not a regular file, or not in a directory: remove it", policy.ErrForeign)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%w: user %d owns it: remove it", policy.ErrForeign, st.Uid)
	case uint32(st.Mode)&0o777&^mode != 0:
		return fmt.Errorf("%w: its mode is %#o, want %#o: chmod it", policy.ErrForeign, uint32(st.Mode)&0o777, mode)
	}
	return nil
}

// read reads the file, and checks all of it: a damaged slot may be of any
// counter.
func (s *Store) read() error {
	s.text, s.have = s.text[:0], s.have[:0]
	for {
		s.text = slices.Grow(s.text, 4*slotSize)
		n, err := s.file.ReadAt(s.text[len(s.text):cap(s.text)], int64(len(s.text)))
		s.text = s.text[:len(s.text)+n]
		if len(s.text) > maxSlots*slotSize {
			return fmt.Errorf("%w: it has more than %d bytes: remove it", policy.ErrDamaged, maxSlots*slotSize)
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("%w: %w", policy.ErrDamaged, err)
		}
	}
	if len(s.text)%slotSize != 0 || !bytes.HasPrefix(s.text, header()) {
		return fmt.Errorf("%w: it is torn, or not a file of counters: remove it", policy.ErrDamaged)
	}
	for at := slotSize; at < len(s.text); at += slotSize {
		slot, ok := parse(s.text[at:][:slotSize])
		if !ok {
			return fmt.Errorf("%w: byte %d and the %d after it are not what was written: remove the file", policy.ErrDamaged, at, slotSize-1)
		}
		s.have = append(s.have, slot)
	}
	return nil
}

// find returns the place of a counter in s.have, or its length.
func (s *Store) find(key string) int {
	id := [32]byte([]byte(digest(key)))
	for n := range s.have {
		if s.have[n].id == id {
			return n
		}
	}
	return len(s.have)
}

// write writes a counter to a place, in the file and in s.have. In a full file a
// new counter takes the place of one that is over.
func (s *Store) write(n int, key string, c policy.Count) error {
	if n+2 > maxSlots {
		n = slices.IndexFunc(s.have, func(o slot) bool { return c.Start-o.count.Start > policy.Idle })
	}
	if n < 0 {
		return fmt.Errorf("%w: it has %d counters: remove it", policy.ErrFull, len(s.have))
	}
	text := format(key, c)
	if _, err := s.file.WriteAt(text, int64((n+1)*slotSize)); err != nil {
		if n == len(s.have) {
			s.file.Truncate(int64((n + 1) * slotSize)) // a part may be written; if this fails, the file is torn
		}
		return fmt.Errorf("%w: %w", policy.ErrFull, diskfull.WithRemedy(err))
	}
	if n == len(s.have) {
		s.have = append(s.have, slot{})
	}
	s.have[n] = slot{[32]byte(text), c}
	return nil
}

// digest is a key as slots and names of files have it.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func header() []byte { return seal([]byte("auditproxy counters 1")) }

// seal makes a slot of text: blanks, a checksum and a line feed.
func seal(text []byte) []byte {
	for len(text) < slotSize-9 {
		text = append(text, ' ')
	}
	return fmt.Appendf(text, "%08x\n", checksum(text))
}

func checksum(text []byte) uint32 {
	return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))
}

func format(key string, c policy.Count) []byte {
	return seal(fmt.Appendf(nil, "%s %d %d %d", digest(key), c.Start, c.Value, c.Before))
}

// parse reads a slot.
func parse(line []byte) (s slot, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) != 5 || len(fields[0]) != len(s.id) || line[slotSize-1] != '\n' {
		return s, false
	}
	sum, err := strconv.ParseUint(string(line[slotSize-9:slotSize-1]), 16, 32)
	if err != nil || uint32(sum) != checksum(line[:slotSize-9]) || bytes.ContainsAny(line[slotSize-9:], "ABCDEF") {
		return s, false
	}
	copy(s.id[:], fields[0])
	for i, to := range []*int64{&s.count.Start, &s.count.Value, &s.count.Before} {
		n, err := strconv.ParseInt(string(fields[1+i]), 10, 64)
		if err != nil || i > 0 && n < 0 {
			return s, false
		}
		*to = n
	}
	return s, true
}
