package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"auditproxy/sink/spool/disk"

	"golang.org/x/sys/unix"
)

// Variables that the test binary reads when it is the program.
const (
	// envStop is "N" or "N half": SIGKILL instead of the spool's Nth operation,
	// or in the middle of it if it is a write.
	envStop = "FAULT_STOP"
	// envRoom names a file that limits the spool's disk: "bytes", beyond those
	// in use when the file appears, or "inodes". A missing file sets no limit.
	envRoom = "FAULT_ROOM"
	// envHang asks for syncs that never return.
	envHang = "FAULT_HANG"
)

// faultFSFromEnv returns nil if the environment asks for no fault.
func faultFSFromEnv() disk.FS {
	stop, room, hang := os.Getenv(envStop), os.Getenv(envRoom), os.Getenv(envHang)
	if stop == "" && room == "" && hang == "" {
		return nil
	}
	f := &faultFS{FS: disk.Host(), room: room, hang: hang != ""}
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

// A faultFS is the real file system until a fault is due.
type faultFS struct {
	disk.FS
	stopAt int // number of the operation not to survive, from 1; 0: none
	half   bool
	room   string
	hang   bool

	mu   sync.Mutex
	ops  int
	full bool
	free int64 // bytes, while full
}

// operation counts an operation that changes something. One that cannot be half
// done has no middle.
func (f *faultFS) operation() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ops++; f.ops == f.stopAt && !f.half {
		die()
	}
}

func die() {
	unix.Kill(os.Getpid(), unix.SIGKILL)
	<-time.After(time.Hour) // without a timer, Go would end it as a deadlock
}

// lacks reports whether a resource is used up. It is called with mu held.
func (f *faultFS) lacks(what string) bool {
	if f.room == "" {
		return false
	}
	b, err := os.ReadFile(f.room)
	if errors.Is(err, fs.ErrNotExist) {
		f.full = false
		return false
	}
	return string(b) == what
}

func (f *faultFS) inode(op, name string) error {
	f.operation()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lacks("inodes") {
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENOSPC}
	}
	return nil
}

// grow accounts for n bytes and returns how many fit.
func (f *faultFS) grow(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lacks("bytes") {
		if !f.full {
			f.full, f.free = true, 0
		}
		n = min(n, f.free)
		f.free -= n
	}
	return n
}

func (f *faultFS) shrink(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free += n
}

func (f *faultFS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
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
	disk.File
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
	if g.fs.hang {
		<-time.After(time.Hour) // without a timer, Go would end it as a deadlock
	}
	return g.File.Sync()
}

func (g *faultFile) Truncate(size int64) error {
	g.fs.operation()
	if before, err := g.File.Stat(); err == nil {
		g.fs.shrink(before.Size - size)
	}
	return g.File.Truncate(size)
}

// takeRoom removes all room for what from the disk of a running program. It
// renames: the program must not see the file half written.
func takeRoom(room, what string) error {
	if err := os.WriteFile(room+".tmp", []byte(what), 0o600); err != nil {
		return err
	}
	return os.Rename(room+".tmp", room)
}
