package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"auditproxy/sink/spool/disk"

	"golang.org/x/sys/unix"
)

// A verdict is the result of one operation of a memFS.
type verdict uint8

const (
	fine    verdict = iota
	lost            // an error, without effect
	half            // an error, after half of a write
	ghost           // an error, after the whole operation
	stopped         // the machine stops before it: no later operation has an effect
)

var errStopped = errors.New("machine stopped")

// A memFS is a file system in memory that fails on request, and computes what
// a power cut would leave.
type memFS struct {
	mu      sync.Mutex
	root    *node
	inodes  uint64
	stopped bool
	ops     int                                           // operations that change something, so far
	judge   func(n int, op, name string) (verdict, error) // nil: all is fine
	room    int64                                         // bytes that still fit; negative: any number
	full    error                                         // the error of a write beyond it
	delay   func(name string)                             // before a sync, with nothing locked
	opens   int                                           // files open
	hides   bool                                          // a removed file stays while it is open, as on NFS
}

// A node is a file or directory. Its fields are owned by the memFS's mu.
type node struct {
	dir         bool
	mode        fs.FileMode
	inode       uint64
	links       uint64
	data, safe  []byte           // of a file: as written, as synced
	names, kept map[string]*node // of a directory: as it is, as synced
	exclusive   *memFile
	shared      int
	opens       int
	closed      func() // by the last one, or nil
}

func newMemFS() *memFS {
	m := &memFS{room: -1, full: unix.ENOSPC}
	m.root = m.node(true, 0o700)
	return m
}

func (m *memFS) node(dir bool, perm fs.FileMode) *node {
	m.inodes++
	n := &node{dir: dir, mode: perm, inode: m.inodes, links: 1}
	if dir {
		n.mode |= fs.ModeDir
		n.names, n.kept = make(map[string]*node), make(map[string]*node)
	}
	return n
}

// judgeBy sets judge while other goroutines use the file system.
func (m *memFS) judgeBy(judge func(n int, op, name string) (verdict, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judge = judge
}

// count returns the number of operations that changed something.
func (m *memFS) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// verdict is called with mu held, for an operation that changes something.
func (m *memFS) verdict(op, name string) (verdict, error) {
	if m.stopped {
		return stopped, errStopped
	}
	m.ops++
	if m.judge == nil {
		return fine, nil
	}
	v, err := m.judge(m.ops, op, name)
	if v == stopped {
		m.stopped = true
		return v, errStopped
	}
	if v != fine && err == nil {
		err = unix.EIO
	}
	return v, err
}

// do performs op, as far as its verdict allows.
func (m *memFS) do(op, name string, f func() error) error {
	v, err := m.verdict(op, name)
	if v == fine || v == ghost {
		if done := f(); done != nil {
			return done
		}
	}
	return err
}

func (m *memFS) walk(name string) (*node, error) {
	n := m.root
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		if part == "" {
			continue
		}
		next := n.names[part]
		if next == nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		n = next
	}
	return n, nil
}

func (m *memFS) parent(name string) (*node, string, error) {
	n, err := m.walk(filepath.Dir(name))
	return n, filepath.Base(name), err
}

func (m *memFS) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return nil, errStopped
	}
	n, err := m.walk(name)
	switch {
	case err == nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case err != nil && flag&os.O_CREATE != 0:
		dir, base, err := m.parent(name)
		if err != nil {
			return nil, err
		}
		n = m.node(false, perm)
		if err := m.do("create", name, func() error { dir.names[base] = n; return nil }); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case flag&os.O_TRUNC != 0:
		if err := m.do("truncate", name, func() error { m.free(n); n.data = nil; return nil }); err != nil {
			return nil, err
		}
	}
	m.opens++
	n.opens++
	return &memFile{m: m, n: n, name: name}, nil
}

func (m *memFS) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return err
	}
	if dir.names[base] != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	return m.do("mkdir", name, func() error { dir.names[base] = m.node(true, perm); return nil })
}

func (m *memFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, x, err := m.parent(from)
	if err != nil {
		return err
	}
	b, y, err := m.parent(to)
	if err != nil {
		return err
	}
	return m.do("rename", to, func() error {
		if old := b.names[y]; old != nil {
			old.links--
		}
		b.names[y] = a.names[x]
		delete(a.names, x)
		return nil
	})
}

func (m *memFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(name)
	if err != nil {
		return err
	}
	dir, base, _ := m.parent(name)
	return m.do("remove", name, func() error {
		if len(n.names) > 0 {
			return unix.ENOTEMPTY
		}
		if n.links--; n.links == 0 {
			m.free(n)
		}
		delete(dir.names, base)
		if m.hides && n.opens > 0 {
			hidden := fmt.Sprintf(".nfs%d", n.inode)
			dir.names[hidden] = n
			n.closed = func() { delete(dir.names, hidden) }
		}
		return nil
	})
}

func (m *memFS) free(n *node) {
	if m.room >= 0 {
		m.room += int64(len(n.data))
	}
}

// Chtimes does nothing: files have no times here.
func (m *memFS) Chtimes(string, time.Time) error { return nil }

func (m *memFS) Lstat(name string) (disk.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(name)
	if err != nil {
		return disk.Info{}, err
	}
	return n.info(), nil
}

func (m *memFS) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

func (n *node) info() disk.Info {
	return disk.Info{Mode: n.mode, UID: os.Geteuid(), Inode: n.inode, Links: n.links, Size: int64(len(n.data)), Disk: int64(len(n.data)), ModTime: time.Time{}}
}

// crash returns the file system after the machine stopped: synced contents,
// and of the rest the share that keep returns for each name.
func (m *memFS) crash(keep func() float64) *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &memFS{room: -1, inodes: m.inodes}
	c.root = m.root.crash(keep)
	return c
}

func (n *node) crash(keep func() float64) *node {
	c := &node{dir: n.dir, mode: n.mode, inode: n.inode, links: 1}
	share := keep()
	if !n.dir {
		c.data = slices.Clone(n.data)
		if share < 1 {
			// The old bytes, then a share of what was added, the rest zeros: the
			// size may reach the medium before the bytes do.
			from := min(len(n.safe), len(n.data))
			to := from + int(share*float64(len(n.data)-from))
			c.data = append(slices.Clone(n.safe[:from]), n.data[from:to]...)
			if share > 0 {
				c.data = append(c.data, make([]byte, (len(n.data)-to)/2)...)
			}
		}
		c.safe = slices.Clone(c.data)
		return c
	}
	names := n.names
	if share < 0.5 {
		names = n.kept
	}
	c.names = make(map[string]*node)
	for name, child := range names {
		c.names[name] = child.crash(keep)
	}
	c.kept = maps.Clone(c.names)
	return c
}

// died returns the file system after the process died: everything, with
// unsynced contents still unsynced.
func (m *memFS) died() *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &memFS{room: -1, inodes: m.inodes}
	c.root = m.root.died(make(map[*node]*node))
	return c
}

func (n *node) died(clones map[*node]*node) *node {
	if c := clones[n]; c != nil {
		return c
	}
	c := &node{dir: n.dir, mode: n.mode, inode: n.inode, links: n.links, data: slices.Clone(n.data), safe: slices.Clone(n.safe)}
	clones[n] = c
	if n.dir {
		c.names, c.kept = make(map[string]*node), make(map[string]*node)
	}
	for name, child := range n.names {
		c.names[name] = child.died(clones)
	}
	for name, child := range n.kept {
		c.kept[name] = child.died(clones)
	}
	return c
}

// withNames is died with all names synced and no contents: a file system may
// write a rename before the bytes of the file.
func (m *memFS) withNames() *memFS {
	c := m.died()
	c.root.syncNames()
	return c
}

func (n *node) syncNames() {
	n.kept = maps.Clone(n.names)
	for _, child := range n.names {
		child.syncNames()
	}
}

// none keeps synced contents only; some keeps a random share of the rest.
func none() float64 { return 0 }
func some(seed uint64) func() float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	return func() float64 { return [...]float64{0, r.Float64(), 1}[r.IntN(3)] }
}

// A memFile is an open node.
type memFile struct {
	m      *memFS
	n      *node
	name   string
	lock   bool
	shared bool
	closed bool
}

func (f *memFile) Write(b []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	v, err := f.m.verdict("write", f.name)
	n := len(b)
	switch v {
	case lost, stopped:
		n = 0
	case half:
		n /= 2
	}
	if f.m.room >= 0 && int64(n) > f.m.room {
		n, err = int(f.m.room), f.m.full
	}
	if f.m.room >= 0 {
		f.m.room -= int64(n)
	}
	f.n.data = append(f.n.data, b[:n]...)
	return n, err
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.m.do("pwrite", f.name, func() error {
		if need := int(off) + len(b); need > len(f.n.data) {
			// What is written over a part of a file fits in its block.
			if more := int64(need - len(f.n.data)); f.m.room >= 0 && (off > 0 || len(f.n.data) == 0) {
				if more > f.m.room {
					return f.m.full
				}
				f.m.room -= more
			}
			f.n.data = append(f.n.data, make([]byte, need-len(f.n.data))...)
		}
		copy(f.n.data[off:], b)
		return nil
	})
	return len(b), err
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.stopped {
		return 0, errStopped
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Sync() error {
	if f.m.delay != nil {
		f.m.delay(f.name)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.do("sync", f.name, func() error {
		f.n.safe = slices.Clone(f.n.data)
		f.n.kept = maps.Clone(f.n.names)
		return nil
	})
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.do("truncate", f.name, func() error {
		if f.m.room >= 0 {
			f.m.room += int64(len(f.n.data)) - size
		}
		f.n.data = f.n.data[:size:size]
		return nil
	})
}

func (f *memFile) Stat() (disk.Info, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.stopped {
		return disk.Info{}, errStopped
	}
	return f.n.info(), nil
}

func (f *memFile) Lock(shared bool) (bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.n.exclusive != nil || !shared && f.n.shared > 0 {
		return false, nil
	}
	f.lock, f.shared = true, shared
	if shared {
		f.n.shared++
	} else {
		f.n.exclusive = f
	}
	return true, nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.m.opens--
	if f.n.opens--; f.n.opens == 0 && f.n.closed != nil {
		f.n.closed()
	}
	switch {
	case f.lock && f.shared:
		f.n.shared--
	case f.lock:
		f.n.exclusive = nil
	}
	return nil
}
