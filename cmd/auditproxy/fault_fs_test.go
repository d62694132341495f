package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"auditproxy/sink/spool"
)

// What the test binary takes from its environment when it is the program.
const (
	// envStop is "N" or "N half": SIGKILL instead of the spool's Nth operation,
	// or in the middle of it if it is a write.
	envStop = "FAULT_STOP"
	// envRoom names a file with how many bytes the spool's disk holds, -1 for
	// one without a free inode either. While the file is missing there is no
	// limit.
	envRoom = "FAULT_ROOM"
)

// faultFSFromEnv returns nil if the environment asks for no fault.
func faultFSFromEnv() spool.FS {
	stop, room := os.Getenv(envStop), os.Getenv(envRoom)
	if stop == "" && room == "" {
		return nil
	}
	f := &faultFS{FS: spool.HostFS(), room: room}
	at, half, _ := strings.Cut(stop, " ")
	f.half = half != ""
	if stop != "" {
		var err error
		if f.stopAt, err = strconv.Atoi(at); err != nil {
			panic(err)
		}
	}
	return f
}

// A faultFS is the real file system until it is time for a fault.
type faultFS struct {
	spool.FS
	stopAt int // number of the operation not to survive, from 1; 0: none
	half   bool
	room   string

	mu   sync.Mutex
	ops  int
	used int64 // bytes in the files written through it
}

// operation counts one that changes something. In the middle of one that
// cannot be half done, nothing is different.
func (f *faultFS) operation() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ops++; f.ops == f.stopAt && !f.half {
		die()
	}
}

func die() {
	unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// limit is how many bytes the disk holds, false for no limit. It is called
// with mu held.
func (f *faultFS) limit() (int64, bool) {
	if f.room == "" {
		return 0, false
	}
	b, err := os.ReadFile(f.room)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, true // being written
	}
	return n, true
}

func (f *faultFS) inode(op, name string) error {
	f.operation()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, limited := f.limit(); limited && n < 0 {
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENOSPC}
	}
	return nil
}

// grow accounts for n bytes and returns how many there is room for.
func (f *faultFS) grow(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if limit, limited := f.limit(); limited {
		n = max(0, min(n, limit-f.used))
	}
	f.used += n
	return n
}

func (f *faultFS) shrink(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= n
}

func (f *faultFS) OpenFile(name string, flag int, perm fs.FileMode) (spool.File, error) {
	before, err := f.FS.Lstat(name)
	switch {
	case flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist):
		if err := f.inode("open", name); err != nil {
			return nil, err
		}
	case flag&os.O_TRUNC != 0:
		f.operation()
		f.shrink(before.Size)
	}
	g, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: g, fs: f}, nil
}

func (f *faultFS) Mkdir(name string, perm fs.FileMode) error {
	if err := f.inode("mkdir", name); err != nil {
		return err
	}
	return f.FS.Mkdir(name, perm)
}

func (f *faultFS) Rename(from, to string) error {
	f.operation()
	return f.FS.Rename(from, to)
}

func (f *faultFS) Remove(name string) error {
	f.operation()
	before, err := f.FS.Lstat(name)
	if err == nil && before.Mode.IsRegular() {
		f.shrink(before.Size)
	}
	return f.FS.Remove(name)
}

type faultFile struct {
	spool.File
	fs *faultFS
}

func (g *faultFile) Write(b []byte) (int, error) {
	g.fs.mu.Lock()
	if g.fs.ops++; g.fs.ops == g.fs.stopAt {
		if g.fs.half {
			g.File.Write(b[:len(b)/2])
		}
		die()
	}
	g.fs.mu.Unlock()
	room := g.fs.grow(int64(len(b)))
	n, err := g.File.Write(b[:room])
	if err == nil && n < len(b) {
		err = &fs.PathError{Op: "write", Path: "spool", Err: syscall.ENOSPC}
	}
	return n, err
}

func (g *faultFile) WriteAt(b []byte, off int64) (int, error) {
	g.fs.operation()
	return g.File.WriteAt(b, off)
}

func (g *faultFile) Sync() error {
	g.fs.operation()
	return g.File.Sync()
}

func (g *faultFile) Truncate(size int64) error {
	g.fs.operation()
	if before, err := g.File.Stat(); err == nil {
		g.fs.shrink(before.Size - size)
	}
	return g.File.Truncate(size)
}

// setRoom lets the disk of a running program hold n bytes. A rename: the
// program must not see the file half written.
func setRoom(room string, n int64) error {
	tmp := filepath.Join(filepath.Dir(room), "room.tmp")
	if err := os.WriteFile(tmp, strconv.AppendInt(nil, n, 10), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, room)
}
